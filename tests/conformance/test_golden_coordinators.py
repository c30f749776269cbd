"""What real brokers wrote into their coordinators' topics: we write the same bytes, and take every step as they did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from logstore.coordinator.groups.membership import GroupState
from logstore.coordinator.groups.offsets import GroupOffsets
from logstore.coordinator.groups.records import group_from_record
from logstore.coordinator.transactions.outcomes import TransactionRules
from logstore.coordinator.transactions.table import TransactionTable
from logstore.coordinator.transactions.transaction import Transaction, from_record, log_record
from logstore.coordinator.transactions.transitions import (
    PREPARED,
    prepare_abort_or_commit,
    prepare_add_partitions,
    prepare_complete,
    prepare_increment_producer_epoch,
    supports_epoch_bump,
)
from logstore.topics import cluster_metadata, consumer_offsets
from logstore.topics.consumer_offsets import CommittedOffset, GroupKey, GroupMetadata, OffsetKey
from logstore.topics.transaction_state import TransactionState, decode_value
from tests.naive import batch
from tests.naive.record import Context, Record, read_plain

HEADER_SIZE = 61
CONTROL, COMPRESSED = 0x20, 0x07


def batches(root: Path, topic: str) -> Iterator[tuple[batch.Row, list[Record]]]:
    """The batches of a topic's partitions, with their records."""
    for path in sorted(root.glob(f"{topic}-*/*.log")):
        data = path.read_bytes()
        for row in batch.scan(data, 0, len(data)).rows:
            assert not row.attributes & COMPRESSED
            body = data[row.position + HEADER_SIZE : row.position + row.size]
            yield row, list(read_plain(body, row.record_count, Context(base_offset=row.base_offset)))


def key_of(record: Record) -> bytes:
    assert record.key is not None
    return record.key


@pytest.mark.parametrize("name", ["transactions", "transactions-v1", "transactions-v0", "killed", "demo"])
def test_every_step_of_a_real_coordinator_is_one_of_ours(name: str, golden: Callable[[str], Path]) -> None:
    known: dict[str, Transaction] = {}
    table = TransactionTable(TransactionRules(), coordinator_epoch=0)
    steps: Counter[str] = Counter()
    for _, records in batches(golden(name), "__transaction_state"):
        for record in records:
            table.replay(key_of(record), record.value)
            assert record.value is not None
            following = from_record(key_of(record), record.value)
            version = int.from_bytes(record.value[:2])
            written = log_record(following, version=version)
            assert decode_value(written[1]) == replace_order(record.value)
            assert (written[0], len(written[1])) == (record.key, len(record.value))
            before = known.get(following.transactional_id)
            if before is not None:
                take_step(before, following, version)
                steps[f"{before.state.name} {following.state.name}"] += 1
            known[following.transactional_id] = following
    assert set(table) == set(known.values())
    assert steps["ONGOING PREPARE_COMMIT"] > 0


def replace_order(value: bytes) -> object:
    """The meaning of a value, its partitions in order as ours have them."""
    metadata = decode_value(value)
    assert metadata is not None
    return metadata._replace(partitions=tuple(sorted(metadata.partitions)))


def take_step(before: Transaction, following: Transaction, version: int) -> None:
    """Our own transition between two records of a real coordinator; an abort by force raises the epoch first."""
    now_ms, client_version = following.last_update_timestamp_ms, following.client_transaction_version
    if following.state is TransactionState.EMPTY:
        ours = prepare_increment_producer_epoch(
            before, timeout_ms=following.timeout_ms, expected_epoch=None, now_ms=now_ms
        )
    elif following.state is TransactionState.ONGOING:
        partitions = following.partitions
        ours = prepare_add_partitions(before, partitions, client_transaction_version=client_version, now_ms=now_ms)
    elif following.state in PREPARED:
        if not supports_epoch_bump(client_version):
            before = before._replace(producer_epoch=following.producer_epoch)
        ours = prepare_abort_or_commit(
            before,
            following.state,
            client_transaction_version=client_version,
            next_producer_id=following.next_producer_id,
            has_no_partition=before.state is not TransactionState.ONGOING,
            now_ms=now_ms,
        )
    else:
        ours = prepare_complete(before, now_ms=now_ms)
    assert log_record(ours, version=version) == log_record(following, version=version)


@pytest.mark.parametrize("name", ["groups", "transactions", "killed", "demo"])
def test_offsets_and_groups_of_real_brokers_are_written_the_same(name: str, golden: Callable[[str], Path]) -> None:
    offsets = GroupOffsets()
    seen: Counter[str] = Counter()
    for row, records in batches(golden(name), "__consumer_offsets"):
        for record in records:
            if row.attributes & CONTROL:
                offsets.replay_marker(row.producer_id, is_commit=key_of(record)[3] == 1)
                seen["marker"] += 1
                continue
            key = consumer_offsets.decode_key(key_of(record))
            value = consumer_offsets.decode_value(key, record.value)
            if isinstance(key, OffsetKey):
                assert value is None or isinstance(value, CommittedOffset)
                offsets.replay(key, value, record_offset=record.offset, producer_id=row.producer_id)
            if isinstance(key, OffsetKey | GroupKey):
                assert consumer_offsets.encode_key(key) == record.key
            if isinstance(value, CommittedOffset | GroupMetadata):
                assert consumer_offsets.encode_value(value) == record.value
                seen[type(value).__name__] += 1
            if isinstance(key, GroupKey) and isinstance(value, GroupMetadata):
                group = group_from_record(key, value, ticks_ms=0)
                assert (group.generation, group.state is GroupState.STABLE) == (value.generation, bool(value.members))
    assert seen["CommittedOffset"] > 0
    assert any(offsets.fetch(group, one) for group in offsets.groups() for one in offsets.partitions(group))


@pytest.mark.parametrize("name", ["cluster", "demo", "newest"])
def test_metadata_of_real_controllers_is_written_the_same(name: str, golden: Callable[[str], Path]) -> None:
    seen: Counter[str] = Counter()
    for row, records in batches(golden(name), "__cluster_metadata"):
        for record in [] if row.attributes & CONTROL else records:
            assert record.value is not None
            read = cluster_metadata.decode_value(record.value)
            written = cluster_metadata.encode_value(read.message.name, read.fields, version=read.version)
            assert written == record.value
            seen[read.message.name] += 1
    assert len(seen) > 5
