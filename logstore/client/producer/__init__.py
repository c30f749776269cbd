"""The producer, with the names and the guarantees of Kafka's; see `producer.producer`."""

from .producer import Producer

__all__ = ["Producer"]
