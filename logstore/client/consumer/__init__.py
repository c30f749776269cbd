"""Consumer with the names and guarantees of Kafka's, see `consumer.consumer`."""

from .consumer import Consumer

__all__ = ["Consumer"]
