"""Which records a dump is about: by offset, time, producer id and key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from logstore.columns.batch_table import BatchTable
from logstore.columns.record_table import RecordTable
from logstore.errors import UsageError
from logstore.layout.batch import NO_PRODUCER_ID

from .arguments import Arguments

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class RecordFilter:
    """All conditions must hold; bounds are inclusive.

    Attributes:
        offsets: first and last offset.
        timestamps_ms: first and last timestamp.
        producer_id: of the batch; None for any.
        key: exact bytes; None for any.
    """

    offsets: tuple[int, int] = (INT64_MIN, INT64_MAX)
    timestamps_ms: tuple[int, int] = (INT64_MIN, INT64_MAX)
    producer_id: int | None = None
    key: bytes | None = None

    @classmethod
    def from_arguments(cls, arguments: Arguments) -> RecordFilter | None:
        """The filter of `--offset`, `--time`, `--producer-id` and `--key`; None when none is given."""
        if not any(arguments.has(name) for name in ("offset", "time", "producer-id", "key")):
            return None
        time = arguments.text("time")
        producer_id, key = arguments.text("producer-id"), arguments.text("key")
        return cls(
            offsets=_bounds(arguments.text("offset"), ":", _offset),
            timestamps_ms=_bounds(time, "/" if _is_iso(time) else ":", _timestamp_ms),
            producer_id=None if producer_id is None else _number("producer-id", producer_id),
            key=None if key is None else key.encode("utf-8", "surrogateescape"),
        )

    def batches(self, table: BatchTable) -> BoolArray:
        """Rows that may hold a record that passes, bool[count]; a key is not looked at."""
        first, last = self.offsets
        # a v0/v1 entry names only its last offset and a delete horizon hides the first timestamp
        is_in = np.where(table.magic >= 2, table.base_offset <= last, True) & (table.last_offset >= first)
        is_in &= (table.max_timestamp >= self.timestamps_ms[0]) | (table.max_timestamp < 0)
        if self.producer_id is not None:
            is_in &= table.producer_id == self.producer_id
        return is_in

    def records(self, table: RecordTable) -> BoolArray:
        """Rows that pass, bool[count]; the producer id is the batch's."""
        passes = (table.offset >= self.offsets[0]) & (table.offset <= self.offsets[1])
        passes &= (table.timestamp >= self.timestamps_ms[0]) & (table.timestamp <= self.timestamps_ms[1])
        if self.key is not None:
            passes &= table.key_size == len(self.key)
            for index in np.flatnonzero(passes):
                passes[index] = table.key(int(index)) == self.key
        return passes

    def passes(self, offset: int, timestamp_ms: int, key: bytes | None) -> bool:
        """Whether one record of a batch without producer id passes."""
        return (
            self.producer_id in (None, NO_PRODUCER_ID)
            and self.offsets[0] <= offset <= self.offsets[1]
            and self.timestamps_ms[0] <= timestamp_ms <= self.timestamps_ms[1]
            and self.key in (None, key)
        )


def _bounds(text: str | None, separators: str, parse: Callable[[str], int]) -> tuple[int, int]:
    """`A:B`, `A:`, `:B` or `A` alone, which means exactly A."""
    if text is None:
        return INT64_MIN, INT64_MAX
    separator = next((s for s in separators if s in text), None)
    first, last = (text, text) if separator is None else text.split(separator, 1)
    return (parse(first) if first else INT64_MIN), (parse(last) if last else INT64_MAX)


def _is_iso(text: str | None) -> bool:
    return text is not None and ("T" in text or "-" in text[1:])


def _number(option: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise UsageError(f"--{option} takes whole numbers", expected="a whole number", found=text) from error


def _offset(text: str) -> int:
    return _number("offset", text)


def _timestamp_ms(text: str) -> int:
    if not _is_iso(text):
        return _number("time", text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            "--time takes milliseconds or ISO 8601",
            expected="1700000000000:1700000060000 or 2023-11-14T22:13:20Z/2023-11-14T22:14:20Z",
            found=text,
        ) from error
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)
