"""The consumer, with the names and the guarantees of Kafka's; see `consumer.consumer`."""

from .consumer import Consumer

__all__ = ["Consumer"]
