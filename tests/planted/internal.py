"""Faults in the logs of internal topics, which brokers write as any other, and which are closed as any other."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tests.planted.planter import OF_GROUPS, OF_PRODUCERS, Planted, Planter, UnsuitableError, at_batch, register
from tests.planted.records import Change, has_several, other
from tests.planted.segment import Segment
from tests.planted.side_files import ENTRIES, RULES

METADATA = "__cluster_metadata"
TOPICS = (METADATA, "__consumer_offsets", "__transaction_state")
ALSO = {*OF_PRODUCERS, *OF_GROUPS, "coordinator-state", "offsets-lost"}


def records(topic: str, name: str, change: Change, *, is_of_several: bool = False) -> None:
    """Register a fault that writes other records in the place of a batch's, which can still be read."""

    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(has_several if is_of_several else Segment.is_data, topic)
        before = segment.records(row)
        changed = change(before, planter.dice.below(len(before)))
        assert not isinstance(changed, bytes)
        segment.write_records(row, changed)
        return at_batch(segment, row)

    register(f"{name} in {topic}", plant, ["log-records"], ALSO)


for topic in TOPICS:
    records(topic, "offset raised", other(lambda record: replace(record, offset_delta=record.offset_delta + 1000)))
    records(topic, "offset below the batch", other(lambda record: replace(record, offset_delta=-3)))
    records(topic, "timestamp above the largest", other(lambda record: replace(record, timestamp_delta=1 << 40)))
records("__consumer_offsets", "records out of order", lambda found, number: found[::-1], is_of_several=True)


def index_entry(suffix: str, column: int, topic: str, planter: Planter) -> Planted:
    """Change the last entry of an index."""
    entry = ENTRIES[suffix]
    path = planter.file(f"*{suffix}", entry.size, topic)
    rows = [list(row) for row in entry.iter_unpack(path.read_bytes())]
    if not any(rows[-1]):
        raise UnsuitableError  # an index in use, which 4.4 leaves of the metadata log, may end in wrong entries
    rows[-1][column] += 1
    path.write_bytes(b"".join(entry.pack(*row) for row in rows))
    return Planted(path.parent.name)


def epoch_start(topic: str, planter: Planter) -> Planted:
    """Let the first leader epoch begin behind the first batches."""
    segment, _ = planter.batch(lambda segment, row: segment.last_offset(row) >= 3, topic)
    if any(not path.name.startswith("0" * 20) for path in segment.log.parent.glob("*.checkpoint")):
        raise UnsuitableError  # where a snapshot let the log start be raised, the epochs may begin later
    path = segment.log.with_name("leader-epoch-checkpoint")
    version, count, first, *others = path.read_text().splitlines()
    epoch, start = map(int, first.split())
    path.write_text("\n".join([version, count, f"{epoch} {start + 3}", *others]) + "\n")
    return Planted(path.parent.name)


for topic in TOPICS:
    for suffix, column in ((".index", 0), (".index", 1), (".timeindex", 0), (".timeindex", 1)):
        name = f"{suffix} whose last entry is wrong in field {column} in {topic}"
        register(name, partial(index_entry, suffix, column, topic), [RULES[suffix]], ["time-index-end"])
    register(f"leader epoch that starts later in {topic}", partial(epoch_start, topic), ["leader-epochs"])


def no_epochs(planter: Planter) -> Planted:
    """The metadata log always has an epoch; of other logs nobody knows where they began."""
    path = planter.root / f"{METADATA}-0" / "leader-epoch-checkpoint"
    path.write_text("0\n0\n")
    return Planted(path.parent.name)


register(f"no leader epoch in {METADATA}", no_epochs, ["leader-epochs"])
