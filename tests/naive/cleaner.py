"""What a round of cleaning leaves of a log, told of each batch and record by looking at all the others.

Not how Kafka goes about it: there is no state that is carried along, and whether a transaction was aborted is asked of
the markers that come later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

EMPTY = "none"


@dataclass(frozen=True)
class Message:
    """A record; a tombstone has no value."""

    offset: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Entry:
    """A batch; `marker` is "commit" or "abort" if it ends a transaction of its producer, EMPTY if it did."""

    base_offset: int
    last_offset: int
    messages: tuple[Message, ...]
    producer_id: int | None = None
    is_transactional: bool = False
    marker: str | None = None
    horizon: int | None = None


@dataclass(frozen=True)
class Rules:
    """The dirty part is [first_dirty, end); `last_offsets` are those of the last batches of known producers."""

    first_dirty: int
    end: int
    now: int
    retention: int
    last_offsets: dict[int, int]


def clean(log: Sequence[Entry], rules: Rules) -> list[Entry]:
    """The log after the round; what is at or behind `end` stays."""
    latest = _latest(log, rules)
    cleaned = [_cleaned(log, entry, rules, latest) for entry in log if entry.base_offset < rules.end]
    return [entry for entry in cleaned if entry] + [entry for entry in log if entry.base_offset >= rules.end]


def _latest(log: Sequence[Entry], rules: Rules) -> dict[bytes, int]:
    """Of each key the last offset in the dirty part, but for aborted data."""
    return {
        message.key: message.offset
        for entry in log
        if rules.first_dirty <= entry.base_offset < rules.end and not entry.marker and not _is_aborted(log, entry)
        for message in entry.messages
        if message.key is not None
    }


def _is_aborted(log: Sequence[Entry], entry: Entry) -> bool:
    later = [other for other in log if _same(other, entry) and other.base_offset > entry.base_offset]
    ends = [other.marker for other in later if other.marker in ("commit", "abort")]
    return entry.is_transactional and bool(ends) and ends[0] == "abort"


def _has_data(log: Sequence[Entry], marker: Entry) -> bool:
    """Whether data is left of the transaction that a marker ends."""
    before = [other for other in log if _same(other, marker) and other.base_offset < marker.base_offset]
    known = [other for other in before if other.marker != EMPTY]
    return bool(known) and known[-1].marker is None


def _same(entry: Entry, other: Entry) -> bool:
    return entry.is_transactional and entry.producer_id == other.producer_id


def _cleaned(log: Sequence[Entry], entry: Entry, rules: Rules, latest: dict[bytes, int]) -> Entry | None:
    is_over = entry.horizon is not None and entry.horizon <= rules.now
    is_lonely_marker = entry.marker is not None and bool(entry.messages) and not _has_data(log, entry)
    kept: tuple[Message, ...]
    if entry.marker:
        kept = () if is_lonely_marker and is_over else entry.messages
    elif _is_aborted(log, entry):
        kept = ()
    else:
        kept = tuple(m for m in entry.messages if _stays(m, latest) and (m.value is not None or not is_over))
    is_dated = is_lonely_marker or (not entry.marker and any(m.value is None for m in kept))
    if kept:
        horizon = rules.now + rules.retention if is_dated and entry.horizon is None else entry.horizon
        return replace(entry, messages=kept, horizon=horizon)
    is_last = entry.producer_id is not None and rules.last_offsets.get(entry.producer_id) == entry.last_offset
    is_end = entry.last_offset + 1 == rules.end
    marker = EMPTY if entry.marker else None
    return replace(entry, messages=(), horizon=None, marker=marker) if is_last or is_end else None


def _stays(message: Message, latest: dict[bytes, int]) -> bool:
    return message.key is not None and message.offset >= latest.get(message.key, -1)
