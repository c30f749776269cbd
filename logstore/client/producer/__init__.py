"""The producer, with the names and guarantees of Kafka's; see `producer.producer`."""

from .producer import Producer

__all__ = ["Producer"]
