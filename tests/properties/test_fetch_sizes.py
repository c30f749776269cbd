"""However little a reader takes at a time, it gives the same records in the end."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.columns.decoded_records import Record
from logstore.log.partition_log import PartitionLog
from logstore.model import Codec, FetchIsolation
from tests.support.built import build_batch_from_records
from tests.support.sampling import examples
from tests.support.small_store import SmallStore, TransactionalClient

SIZES = st.integers(0, 400)
STEPS = st.lists(
    st.tuples(st.sampled_from(["plain", "commit", "abort", "open"]), st.integers(1, 5), st.sampled_from(list(Codec))),
    max_size=12,
)


def write(store: SmallStore, steps: list[tuple[str, int, Codec]]) -> PartitionLog:
    """A log of batches of all kinds; a transaction that is left open hides what is behind it."""
    store.create_topic("t", partitions=1, config={"internal.segment.bytes": 1000, "index.interval.bytes": 100})
    log = store.log("t", 0)
    for number, (kind, count, codec) in enumerate(steps):
        if kind == "plain":
            records = [(b"%d" % number, bytes(20 * row), 5, [("h", b"")] if row % 2 else ()) for row in range(count)]
            log.append_as_leader(build_batch_from_records(records, codec=codec))
            continue
        client = TransactionalClient(store, f"{kind}-{number}")
        client.send("t", *[b"%d" % row for row in range(count)])
        if kind != "open":
            client.end(is_commit=kind == "commit")
    return log


def read(log: PartitionLog, isolation: FetchIsolation, **how: int) -> tuple[list[Record], int]:
    """All records, and where the reader ends up."""
    reader = log.records(isolation=isolation, **how)
    return [record for chunk in reader.chunks() for record in chunk.to_records()], reader.position


@settings(deadline=None, max_examples=examples(40))
@given(STEPS, SIZES, st.sampled_from([FetchIsolation.READ_COMMITTED, FetchIsolation.READ_UNCOMMITTED]))
def test_small_fetches_give_what_one_large_fetch_gives(
    steps: list[tuple[str, int, Codec]], size: int, isolation: FetchIsolation
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = SmallStore(Path(directory)).start()
        log = write(store, steps)
        assert read(log, isolation, fetch_size=size) == read(log, isolation)
        whole = list(log.records(isolation=isolation).chunks())
        parts = [one for chunk in whole for row in range(len(chunk)) for one in chunk.part(row, row + 1).to_records()]
        assert parts == read(log, isolation)[0]
        store.close()
