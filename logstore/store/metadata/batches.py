"""Batches of `__cluster_metadata` and its snapshots (`BatchAccumulator`, `RecordsSnapshotWriter`).

Unlike a client's batches, they have offsets and a leader epoch before they are appended, and null keys.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from ...columns.batch_table import ByteArray
from ...columns.record_building import build_batch
from ...columns.record_columns import RecordColumns
from ...messages.schema import Value
from ...model import ControlRecordType
from ...topics.control_records import write_kraft_record

_CONTROL_KEY = struct.Struct(">hh")
_CONTROL_KEY_VERSION = 0
BATCH_COUNT_MAX = 10_000  # records of a batch where there are many; KRaft's batches have 8 MiB at most


def voter_fields(node_id: int, directory_id: str) -> Value:
    """Return the fields of a voter in a VotersRecord, with the address of a broker started here later."""
    return {
        "voterId": node_id,
        "voterDirectoryId": directory_id,
        "endpoints": [{"name": "CONTROLLER", "host": "localhost", "port": 9093}],
        "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
    }


def data_batch(values: Sequence[bytes], base_offset: int, leader_epoch: int, timestamp_ms: int) -> ByteArray:
    """Return one batch of metadata records."""
    columns = RecordColumns.from_records([(None, value, timestamp_ms, ()) for value in values])
    return build_batch(columns, base_offset=base_offset, partition_leader_epoch=leader_epoch)


def control_batch(
    records: Sequence[tuple[ControlRecordType, Value]], base_offset: int, leader_epoch: int, timestamp_ms: int
) -> ByteArray:
    """Return one batch of KRaft's control records, each with its type and fields."""
    columns = RecordColumns.from_records(
        (_CONTROL_KEY.pack(_CONTROL_KEY_VERSION, kind), write_kraft_record(kind, fields), timestamp_ms, ())
        for kind, fields in records
    )
    return build_batch(columns, base_offset=base_offset, partition_leader_epoch=leader_epoch, is_control=True)


def leader_change(leader_id: int) -> tuple[ControlRecordType, Value]:
    """Return the record of the only voter's new epoch (`LeaderState.appendStartOfEpochControlRecords`)."""
    voters = [{"voterId": leader_id}]
    fields = {"version": 0, "leaderId": leader_id, "voters": voters, "grantingVoters": voters}
    return ControlRecordType.LEADER_CHANGE, fields


def dynamic_quorum(voter: Value) -> list[tuple[ControlRecordType, Value]]:
    """Return the records of `kraft.version` 1 and the only voter, which the log has from then on (KIP-853)."""
    return [
        (ControlRecordType.KRAFT_VERSION, {"version": 0, "kRaftVersion": 1}),
        (ControlRecordType.KRAFT_VOTERS, {"version": 0, "voters": [voter]}),
    ]


def snapshot_bytes(
    control: Sequence[tuple[ControlRecordType, Value]],
    values: Sequence[bytes],
    log_time_ms: int,
    now_ms: int,
    epoch: int = 0,
) -> bytes:
    """Return a snapshot: header with control records, metadata records, footer.

    The last record that it covers has `log_time_ms` and `epoch`.
    """
    header = ControlRecordType.SNAPSHOT_HEADER, {"version": 0, "lastContainedLogTimestamp": log_time_ms}
    batches = [control_batch([header, *control], 0, epoch, now_ms)]
    offset = 1 + len(control)
    for start in range(0, len(values), BATCH_COUNT_MAX):
        part = values[start : start + BATCH_COUNT_MAX]
        batches.append(data_batch(part, offset, epoch, now_ms))
        offset += len(part)
    footer = ControlRecordType.SNAPSHOT_FOOTER, {"version": 0}
    batches.append(control_batch([footer], offset, epoch, now_ms))
    return np.concatenate(batches).tobytes()
