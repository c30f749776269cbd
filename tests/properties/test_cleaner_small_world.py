"""Every small log, cleaned twice: what is left must be what a model says that looks at each record alone.

`LOGSTORE_SMALL_WORLD_LENGTH` is how many batches a log has before the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from logstore.columns.batch_table import BatchTable, ByteArray, scan
from logstore.log.cleaner.offset_map import OffsetMap
from logstore.log.cleaner.rewriting import ActiveProducers, Round, TableCleaning, retention
from logstore.log.cleaner.rounds import put_table
from logstore.log.cleaner.segment_batches import AbortedEntry, CleanedTransactions
from tests.naive.cleaner import Entry, Message, Rules
from tests.naive.cleaner import clean as naive_clean
from tests.naive.record import Context, read_plain
from tests.properties.fold_stories import marker
from tests.support.encoder import CONTROL, DELETE_HORIZON, TRANSACTIONAL, Batch, Rec
from tests.support.sampling import case_count

LENGTH = case_count("LOGSTORE_SMALL_WORLD_LENGTH", sample=2, whole=3)
NOW, RETENTION = 1000, 10
HEADER_SIZE = 61
EMPTY = np.empty(0, np.uint8)
PLAIN = [((b"a", b"1"),), ((b"a", None),), ((b"b", b"1"),), ((b"a", b"1"), (b"b", None)), ((b"a", b"1"), (b"a", b"2"))]
IN_TRANSACTION = [((b"a", b"3"),), ((b"b", None),), ((b"b", b"3"), (b"a", b"3"))]
PRODUCERS = (1, 2)


@dataclass(frozen=True)
class Story:
    """A log as it grows: its entries, and the producers whose transaction is open."""

    entries: tuple[Entry, ...] = ()
    is_open: frozenset[int] = field(default_factory=frozenset)

    @property
    def end(self) -> int:
        return self.entries[-1].last_offset + 1 if self.entries else 0

    def grown(self) -> Iterator[Story]:
        """By every batch that may come next; producers are alike, so the second comes behind the first."""
        for pairs in PLAIN:
            yield Story((*self.entries, self._entry(pairs)), self.is_open)
        known = {entry.producer_id for entry in self.entries}
        for producer_id in PRODUCERS if PRODUCERS[0] in known else PRODUCERS[:1]:
            for pairs in IN_TRANSACTION:
                entry = self._entry(pairs, producer_id=producer_id, is_transactional=True)
                yield Story((*self.entries, entry), self.is_open | {producer_id})
            if producer_id in self.is_open:
                yield from (self.ended(producer_id, how) for how in ("commit", "abort"))

    def ended(self, producer_id: int, how: str) -> Story:
        entry = self._entry(((b"", b""),), producer_id=producer_id, is_transactional=True, marker=how)
        return Story((*self.entries, entry), self.is_open - {producer_id})

    def _entry(self, pairs: Sequence[tuple[bytes, bytes | None]], **fields: object) -> Entry:
        messages = tuple(Message(self.end + number, *pair) for number, pair in enumerate(pairs))
        return Entry(self.end, self.end + len(pairs) - 1, messages, **fields)  # type: ignore[arg-type]


def stories(length: int) -> Iterator[Story]:
    """All logs of that many batches, with what ends their transactions behind them."""
    found = [Story()]
    for _ in range(length):
        found = [longer for story in found for longer in story.grown()]
    for story in found:
        for how in ("commit", "abort") if story.is_open else ("",):
            whole = story
            for producer_id in sorted(story.is_open):
                whole = whole.ended(producer_id, how)
            yield whole


@cache
def as_bytes(entry: Entry) -> bytes:
    return as_batch(entry).to_bytes()


def as_batch(entry: Entry) -> Batch:
    horizon = 0 if entry.horizon is None else DELETE_HORIZON
    base = NOW if entry.horizon is None else entry.horizon
    fields = {"producer_id": entry.producer_id, "producer_epoch": 0} if entry.producer_id is not None else {}
    if entry.marker:
        is_abort = entry.marker == "abort"
        end = marker(entry.base_offset, is_abort=is_abort, coordinator_epoch=0, base_timestamp=base, **fields)
        return end if not horizon else Batch(**{**vars(end), "flags": end.flags | horizon})
    records = [Rec(m.key, m.value, offset_delta=m.offset - entry.base_offset) for m in entry.messages]
    flags = horizon | (TRANSACTIONAL if entry.is_transactional else 0)
    sequence = {} if entry.producer_id is None else {"base_sequence": 0}
    delta = entry.last_offset - entry.base_offset
    return Batch(entry.base_offset, records, delta, flags=flags, base_timestamp=base, **fields, **sequence)


def as_entries(content: bytes) -> list[Entry]:
    """Batches read slowly."""
    found = []
    table = scan(np.frombuffer(content, np.uint8), check_crc=True)
    assert table.next_position == len(content)
    for row in map(table.row, range(len(table))):
        assert row["is_valid"] == 1
        body = content[row["position"] + HEADER_SIZE : row["position"] + row["size"]]
        records = list(read_plain(body, row["record_count"], Context(row["base_offset"])))
        is_control = bool(row["attributes"] & CONTROL)
        kind = None
        if is_control:
            kind = "none" if not records else {0: "abort", 1: "commit"}[records[0].key[3]]  # type: ignore[index]
        messages = [Message(r.offset, b"" if is_control else r.key, b"" if is_control else r.value) for r in records]
        found.append(
            Entry(
                row["base_offset"],
                row["base_offset"] + row["last_offset_delta"],
                tuple(messages),
                None if row["producer_id"] < 0 else row["producer_id"],
                bool(row["attributes"] & TRANSACTIONAL),
                kind,
                row["base_timestamp"] if row["attributes"] & DELETE_HORIZON else None,
            )
        )
    return found


class KnownProducers(ActiveProducers):
    """Producers that are told, not taken from a log."""

    def __init__(self, last_offsets: dict[int, int]) -> None:
        producers = sorted(last_offsets.items())
        self._producer_ids = np.array([producer_id for producer_id, _ in producers], np.int64)
        self._last_offsets = np.array([offset for _, offset in producers], np.int64)
        self._epochs = np.zeros(len(producers), np.int64)


class Cleaning:
    """Our cleaning of a log that is one table in memory.

    Attributes:
        aborted: the aborted transactions of the log, as its `.txnindex` files have them.
    """

    def __init__(self, story: Story) -> None:
        self.content = b"".join(map(as_bytes, story.entries))
        self.aborted = [*aborted_of(story.entries)]

    def clean(self, rules: Rules) -> None:
        data = np.frombuffer(self.content, np.uint8)
        table = scan(data)
        offset_map = self._map(data, table, rules, end_offset=rules.end)
        assert offset_map.latest_offset == rules.end - 1
        transactions = CleanedTransactions()
        transactions.add_aborted(self.aborted)
        size = int(table.position[table.base_offset < rules.end].size)
        head = BatchTable(np.ascontiguousarray(table.matrix[:, :size]), size, table.status, 0)
        producers = KnownProducers(rules.last_offsets)
        round_ = Round(offset_map, rules.end, rules.now, rules.retention, producers)
        held = retention(round_, head, transactions.discardable(data, head), keeps_legacy_tombstones=True)
        pieces = TableCleaning(round_, data, head, held).pieces()
        searched = replace(round_, offset_map=self._map(data, table, rules, end_offset=0))
        same = TableCleaning(searched, data, head, held).pieces()
        assert np.concatenate([EMPTY, *same]).tobytes() == np.concatenate([EMPTY, *pieces]).tobytes()
        end_position = int(head.position[-1] + head.size[-1])
        self.aborted = transactions.needed + [one for one in self.aborted if one.last_offset >= rules.end]
        self.content = b"".join(piece.tobytes() for piece in pieces) + self.content[end_position:]

    def _map(self, data: ByteArray, table: BatchTable, rules: Rules, end_offset: int) -> OffsetMap:
        rows = np.flatnonzero((table.base_offset >= rules.first_dirty) & (table.base_offset < rules.end))
        dirty = BatchTable(np.ascontiguousarray(table.matrix[:, rows]), rows.size, table.status, 0)
        count = int(dirty.record_count.sum())
        offset_map = OffsetMap(count, first_offset=rules.first_dirty, end_offset=end_offset, buffer_size=4096)
        transactions = CleanedTransactions()
        transactions.add_aborted(one for one in self.aborted if one.last_offset >= rules.first_dirty)
        assert put_table(offset_map, transactions, data, dirty, rules.first_dirty)
        offset_map.latest_offset = rules.end - 1
        return offset_map


def aborted_of(entries: Sequence[Entry]) -> Iterator[AbortedEntry]:
    first: dict[int, int] = {}
    for entry in entries:
        if entry.is_transactional and entry.producer_id is not None:
            first.setdefault(entry.producer_id, entry.base_offset)
            if entry.marker:
                first_offset = first.pop(entry.producer_id)
                if entry.marker == "abort":
                    yield AbortedEntry(first_offset, entry.producer_id, entry.base_offset, entry.base_offset + 1)


def last_data_offsets(entries: Sequence[Entry]) -> dict[int, int]:
    return {e.producer_id: e.last_offset for e in entries if e.producer_id is not None and not e.marker}


def check(story: Story, first_dirty: int, known: dict[int, int]) -> int:
    """Two rounds, then one when what was dated is due; how many records went."""
    ours, model = Cleaning(story), list(story.entries)
    record_count = sum(len(entry.messages) for entry in model)
    end = story.end
    for rules in (
        Rules(first_dirty, end, NOW, RETENTION, known),
        Rules(0, end, NOW + 1, RETENTION, {}),
        Rules(0, end, NOW + RETENTION + 1, RETENTION, {}),
    ):
        ours.clean(rules)
        model = naive_clean(model, rules)
        assert as_entries(ours.content) == model, (story, rules)
        if not model:
            break
        assert ours.aborted == [*kept_aborted(story, model)], (story, rules)
    return record_count - sum(len(entry.messages) for entry in model)


def kept_aborted(story: Story, model: Sequence[Entry]) -> Iterator[AbortedEntry]:
    """Those whose marker is there, and has not been told to go."""
    for transaction in aborted_of(story.entries):
        marker_offset = transaction.last_offset
        if any((each.base_offset, each.marker, each.horizon) == (marker_offset, "abort", None) for each in model):
            yield transaction


def test_every_small_log_is_cleaned_as_the_model_says() -> None:
    story_count = gone_count = 0
    for length in range(1, LENGTH + 1):
        for story in stories(length):
            middle = story.entries[len(story.entries) // 2].base_offset
            gone_count += check(story, 0, {})
            gone_count += check(story, middle, last_data_offsets(story.entries))
            story_count += 1
    assert story_count >= 11**LENGTH // 2
    assert gone_count > story_count
