"""Appends of records that are not a batch yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..columns.record_building import build_batch
from ..columns.record_columns import BytesColumn, RecordColumns
from ..errors import UsageError
from ..folds.verification import VerificationGuard
from ..layout.batch import NO_PRODUCER_ID
from ..model import Codec
from .append_info import AppendInfo

if TYPE_CHECKING:
    from .log_appends import LogAppends


def append_records(
    log: LogAppends,
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None] | None,
    timestamps: Sequence[int] | None,
    *,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    is_transactional: bool,
    leader_epoch: int,
    guard: VerificationGuard | None,
) -> AppendInfo:
    """One batch of records, the long way; see `PartitionLog.append_records`."""
    if is_transactional and producer_id <= NO_PRODUCER_ID:
        raise UsageError("Cannot write transactional messages without a valid producer ID")
    with log.lock:
        columns = RecordColumns(
            len(values),
            None if keys is None else BytesColumn.of_values(keys),
            BytesColumn.of_values(values),
            None if timestamps is None else np.array(timestamps, np.int64),
        )
        codec = log.rules.target_codec(Codec.NONE)
        batch = build_batch(
            columns.stamped(log.now_ms()),
            codec=codec,
            level=log.rules.level(codec),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            is_transactional=is_transactional,
        )
        return log.append_as_leader(batch, leader_epoch=leader_epoch, guard=guard)
