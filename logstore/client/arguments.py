"""Arguments of producers and consumers: partitions, offsets, groups; checked before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from numbers import Real
from operator import index as as_index
from typing import Any, NamedTuple

from ..config.client import storable
from ..coordinator.groups.membership import ConsumerGroupMetadata
from ..coordinator.groups.offsets import NO_LEADER_EPOCH, OffsetAndMetadata
from ..errors import InvalidGroupIdError, UsageError
from ..layout.utf8 import is_unicode
from ..model import TopicPartition, name_of, topic_partition, whole_number

LONG_MAX, INT_MAX = (1 << 63) - 1, (1 << 31) - 1
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
_NUMBER = int | float | Real  # each poll asks: the first two are found sooner than by `Real` alone


class OffsetAndTimestamp(NamedTuple):
    """A record found by its time (`OffsetAndTimestamp`); timestamp in ms."""

    offset: int
    timestamp: int
    leader_epoch: int | None = None


#: by partition the offset of the next record to read, with or without metadata
Offsets = Mapping[tuple[str, int], int | OffsetAndMetadata] | Mapping[TopicPartition, int | OffsetAndMetadata]


def by_name(what: str, given: Any) -> Mapping[str, Any]:
    """Return values such as configurations; raise UsageError unless they are given by name."""
    if isinstance(given, Mapping) and all(isinstance(name, str) for name in given):
        return given
    raise UsageError(f"{what} are given by name", expected="a dict with names as keys", found=repr(given))


def by_partition(what: str, given: Any) -> dict[TopicPartition, Any]:
    """Return values such as offsets; raise UsageError unless they are given by partition."""
    if isinstance(given, Mapping):
        return {topic_partition(partition): value for partition, value in given.items()}
    raise UsageError(f"{what} are given by partition", expected="a dict", found=repr(given))


def duration(name: str, given: Any, *, least: float = 0) -> float:
    """Return a time to wait; raise UsageError unless it is a number from `least` on (`Timer`)."""
    is_number = isinstance(given, _NUMBER)
    if is_number and given >= least:  # not NaN
        wait: float = given
        return wait
    expected = "a number from 0 on" if least == 0 else "a number"
    raise UsageError(f"Invalid {name}: {given}", expected=expected, found=repr(given), java_class=ILLEGAL_ARGUMENT)


def time_left(given: Any) -> float | None:
    """Return a timeout in seconds, which may be over; None is none. Raise UsageError unless it is a number."""
    return None if given is None else max(duration("timeout", given, least=-inf), 0.0)


def require_function(what: str, given: Any) -> None:
    """Raise UsageError for what cannot be called."""
    if not callable(given):
        raise UsageError(f"The {what} is no function", expected="a callable", found=repr(given))


def not_negative(name: str, value: Any, maximum: int) -> int:
    """Return `value` as an int; raise UsageError unless it is from 0 to `maximum` (`ProducerRecord`)."""
    try:
        number = as_index(value)
    except TypeError:
        number = -1
    if 0 <= number <= maximum:
        return number
    what = "Partition number" if name == "partition" else name.capitalize()
    raise UsageError(
        f"Invalid {name}: {value}. {what} should always be non-negative or null.",
        expected=f"an int from 0 to {maximum}",
        found=repr(value),
        java_class=ILLEGAL_ARGUMENT,
    )


def offset_and_metadata(given: Any) -> OffsetAndMetadata:
    """Return an offset that is given alone or with metadata, as by the tuples of kafka-python and aiokafka.

    A leader epoch of -1 is none. Raises UsageError for what is no whole number.
    """
    is_tuple = isinstance(given, tuple) and len(given) in (2, 3)
    value = OffsetAndMetadata(*given) if is_tuple else OffsetAndMetadata(given)
    epoch = None if value.leader_epoch is None else whole_number("leader epoch", value.leader_epoch)
    return value._replace(
        offset=whole_number("offset", value.offset), leader_epoch=None if epoch == NO_LEADER_EPOCH else epoch
    )


def offset_commits(
    offsets: Offsets, leader_epoch_before: Callable[[TopicPartition, int], int | None]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets in the form that coordinators take; a number gets the leader epoch of the record before it.

    Raises UsageError for what no record can hold.
    """
    commits: dict[TopicPartition, OffsetAndMetadata] = {}
    for partition, given in by_partition("Offsets", offsets).items():
        value = offset_and_metadata(given)
        offset, epoch = value.offset, value.leader_epoch
        if not 0 <= offset <= LONG_MAX:
            text = "Invalid negative offset" if offset < 0 else "An offset has 63 bits"
            raise UsageError(text, found=offset, java_class=ILLEGAL_ARGUMENT)
        if epoch is not None and not 0 <= epoch <= INT_MAX:
            raise UsageError("A leader epoch has 31 bits", expected="None, or an int", found=epoch)
        metadata = "" if value.metadata is None else value.metadata  # as Java's, and kafka-python's, constructor
        if not isinstance(metadata, str) or not is_unicode(metadata):
            raise UsageError("The metadata of an offset is a text", expected="a str", found=ascii(metadata))
        epoch = epoch if isinstance(given, tuple) else leader_epoch_before(partition, offset)
        commits[partition] = OffsetAndMetadata(offset, metadata, epoch)
    return commits


def checked_group(group: ConsumerGroupMetadata | str | None) -> ConsumerGroupMetadata:
    """Return a group given by id or by `Consumer.group_metadata` (`KafkaProducer.throwIfInvalidGroupMetadata`).

    Raises UsageError for no group, or a generation without a member, InvalidGroupIdError for an empty group id.
    """
    if group is None:
        raise UsageError("Consumer group metadata could not be null", java_class=ILLEGAL_ARGUMENT)
    known = ConsumerGroupMetadata(group) if isinstance(group, str) else group
    if not isinstance(known, ConsumerGroupMetadata):
        raise UsageError("A group is given by its id or by Consumer.group_metadata", found=repr(group))
    if not name_of("group", known.group_id):
        raise InvalidGroupIdError
    if not is_unicode(known.group_id):
        raise UsageError("A group id is a text", expected="a str", found=ascii(known.group_id))
    storable("group.id", known.group_id)
    if known.generation_id > 0 and not known.member_id:
        raise UsageError(
            f"Passed in group metadata GroupMetadata(groupId = {known.group_id}, generationId = {known.generation_id}, "
            f"memberId = {known.member_id}, groupInstanceId = {known.group_instance_id or ''}) has generationId > 0 "
            "but the member.id is unknown",
            java_class=ILLEGAL_ARGUMENT,
        )
    return known
