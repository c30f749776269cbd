"""The dump: text identical to that of Kafka's `kafka-dump-log`, and JSON."""

from .command import run

__all__ = ["run"]
