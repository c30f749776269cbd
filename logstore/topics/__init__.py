"""Records of Kafka's internal topics, by the tables of their schemas in `tables/`.

>>> family("transaction_state")["TransactionLogKey"].versions
Versions(low=0, high=0)
"""

from __future__ import annotations

from functools import cache

from ..messages.schema import Message, read_table

#: topics that only Kafka writes (`Topic.isInternal`); beside them stands the metadata log
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


@cache
def family(name: str) -> dict[str, Message]:
    """Return all messages of one table by name, e.g. `family("consumer_offsets")["OffsetCommitKey"]`."""
    return read_table(__name__, name)


@cache
def record_types(name: str, suffix: str = "") -> dict[int, Message]:
    """Return the messages of one table by record type, only those whose name ends in `suffix` (`Key`, `Value`)."""
    return {
        message.record_type: message
        for message in family(name).values()
        if message.record_type is not None and message.name.endswith(suffix)
    }
