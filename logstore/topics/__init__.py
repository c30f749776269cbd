"""Records of Kafka's internal topics; `tables/` has their schemas.

Called, this package is the function `audit.listings.topics`, see `called_packages`.
"""

from __future__ import annotations

from functools import cache

from ..called_packages import make_callable
from ..config.kafka_version import NEWEST, KafkaVersion
from ..messages.schema import Message, read_table

make_callable(__name__)

#: topics that only Kafka itself writes (`Topic.isInternal`); the metadata log is none of them
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@cache
def family(name: str, kafka: KafkaVersion = NEWEST) -> dict[str, Message]:
    """Return all messages of one table by name.

    >>> family("transaction_state")["TransactionLogKey"].versions
    Versions(low=0, high=0)
    """
    return read_table(__name__, name, kafka)


@cache
def record_types(name: str, suffix: str = "", kafka: KafkaVersion = NEWEST) -> dict[int, Message]:
    """Return the messages of one table by record type, only those whose name ends in `suffix` (`Key`, `Value`)."""
    return {
        message.record_type: message
        for message in family(name, kafka).values()
        if message.record_type is not None and message.name.endswith(suffix)
    }
