"""Enums, names and numbers that every module shares, with Kafka's values and words."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from numbers import Integral
from operator import index
from typing import Any, NamedTuple, NoReturn, Protocol

from .errors import UsageError


class Codec(IntEnum):
    """Attribute bits 0-2 of a batch (`CompressionType`); 5-7 do not exist."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def of(cls, given: Codec | str) -> Codec:
        """Return a codec that is given as such, or by Kafka's name for it; raise UsageError for anything else."""
        if isinstance(given, cls):
            return given
        for codec in cls:
            if given == codec.kafka_name:
                return codec
        names = ", ".join(codec.kafka_name for codec in cls)
        raise UsageError("There is no such codec", expected=names, found=repr(given))

    @property
    def kafka_name(self) -> str:
        """The name as Kafka's configuration and tools spell it."""
        return self.name.lower()


class LevelRange(NamedTuple):
    """The compression levels of a codec; `default` is allowed although gzip's is not within the range."""

    least: int
    greatest: int
    default: int


#: the values that `compression.<codec>.level` may have (`CompressionType`)
LEVELS = {
    Codec.GZIP: LevelRange(1, 9, -1),
    Codec.LZ4: LevelRange(1, 17, 9),
    Codec.ZSTD: LevelRange(-131072, 22, 3),
}


class TimestampType(IntEnum):
    """Who set a record's timestamp (`TimestampType`)."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1

    @property
    def kafka_name(self) -> str:
        """The name as Kafka's tools print it."""
        return {-1: "NoTimestampType", 0: "CreateTime", 1: "LogAppendTime"}[int(self)]


class ControlRecordType(IntEnum):
    """Type of a control record, from its key (`ControlRecordType`)."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class LogBounds(Protocol):
    """A log, or what was noted of it at one moment: offsets, exclusive."""

    @property
    def log_end_offset(self) -> int:
        """The end of all batches."""

    @property
    def high_watermark(self) -> int:
        """The end of what consumers may see."""

    @property
    def last_stable_offset(self) -> int:
        """The first offset of an open transaction; without one as `high_watermark`."""


class FetchIsolation(Enum):
    """How far a read goes (`FetchIsolation`, `IsolationLevel`); the values of the last two are configuration values."""

    LOG_END = "log_end"  # a replica's
    READ_UNCOMMITTED = "read_uncommitted"  # to the high watermark
    READ_COMMITTED = "read_committed"  # to the last stable offset, with the aborted transactions on the way

    @classmethod
    def of(cls, given: FetchIsolation | str) -> FetchIsolation:
        """Return an isolation that is given as such, or by Kafka's name for it.

        >>> FetchIsolation.of("read_committed")
        <FetchIsolation.READ_COMMITTED: 'read_committed'>
        """
        if isinstance(given, cls):
            return given
        try:
            return cls(given)
        except ValueError:
            names = ", ".join(isolation.value for isolation in cls)
            raise UsageError("There is no such isolation level", expected=names, found=repr(given)) from None

    def end_offset(self, log: LogBounds) -> int:
        """Return the offset up to which a read of this isolation goes, exclusive."""
        if self is FetchIsolation.LOG_END:
            return log.log_end_offset
        return log.high_watermark if self is FetchIsolation.READ_UNCOMMITTED else log.last_stable_offset


class TopicPartition(NamedTuple):
    """A partition by its name (`TopicPartition`); equal to the pair of both.

    >>> str(TopicPartition("orders", 0))
    'orders-0'
    """

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OfOneProcess:
    """An object with open files, locks or mapped memory: neither pickled nor copied, as the copy would be broken."""

    __slots__ = ()

    _instead = "another process opens the directory by its path, read_only beside an open store"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"A {type(self).__name__} is of one process, and neither pickled nor copied: {self._instead}")


def whole_number(name: str, given: Any) -> int:
    """Return an argument as an int; raise UsageError unless it is a whole number.

    >>> whole_number("offset", 1.5)
    Traceback (most recent call last):
    logstore.errors.UsageError: The offset is no whole number; expected an int, found 1.5
    """
    try:
        return index(given)
    except TypeError as error:
        raise UsageError(f"The {name} is no whole number", expected="an int", found=repr(given)) from error


def name_of(kind: str, given: Any) -> str:
    """Return the name of a thing of this kind, such as a topic; raise UsageError if it is not text."""
    if isinstance(given, str):
        return given if type(given) is str else str.__str__(given)  # a subclass may have a hash of the caller's
    raise UsageError(f"A {kind} is given by its name", expected="a str", found=repr(given))


def topic_partition(given: Any) -> TopicPartition:
    """Return a partition as `TopicPartition`; raise UsageError unless it is a topic name and a number."""
    if isinstance(given, tuple | list) and len(given) == 2:
        topic, number = given
        if isinstance(topic, str) and isinstance(number, Integral):
            return TopicPartition(topic, int(number))
    raise UsageError("A partition is a TopicPartition", expected="a topic's name and a number", found=repr(given))


def topic_partitions(given: Any) -> list[TopicPartition]:
    """Return several partitions; raise UsageError as `topic_partition` does, and if they are not a list."""
    if isinstance(given, Iterable):
        return [topic_partition(partition) for partition in given]
    raise UsageError("Partitions are given as a list", expected="a list", found=repr(given))
