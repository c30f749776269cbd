"""Header fields of a batch to be built, within the bounds of `MemoryRecordsBuilder`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from ..codec import checked_level
from ..errors import UsageError
from ..kernels.scan import batches as scan
from ..layout import batch as layout
from ..layout.batch import NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from ..layout.record import PRODUCER_EPOCH_MAX, SEQUENCE_MAX
from ..model import Codec, TimestampType
from .batch_table import BoolArray, Int64Array
from .build_errors import refused

NO_EPOCH = -1
_LONG_MAX = (1 << 63) - 1
_RANGES = {
    "base_offset": (0, _LONG_MAX),
    "log_append_time": (-1, _LONG_MAX),
    "producer_id": (-1, _LONG_MAX),
    "producer_epoch": (-1, PRODUCER_EPOCH_MAX),
    "base_sequence": (-1, SEQUENCE_MAX),
    "partition_leader_epoch": (-1, (1 << 31) - 1),
    "delete_horizon_ms": (0, _LONG_MAX),
}


class ProducerFieldArguments(TypedDict, total=False):
    """The fields of `BatchFields` that tell a producer, as keyword arguments."""

    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool


class SentFieldArguments(ProducerFieldArguments, total=False):
    """The fields of `BatchFields` that a producer chooses, as keyword arguments."""

    codec: Codec
    level: int | None


class BatchFieldArguments(SentFieldArguments, total=False):
    """The fields of `BatchFields` as keyword arguments."""

    base_offset: int
    timestamp_type: TimestampType
    log_append_time: int
    partition_leader_epoch: int
    is_control: bool
    delete_horizon_ms: int | None


@dataclass(slots=True)
class BatchFields:
    """Header fields that do not follow from the records.

    Attributes:
        base_offset: of the first record.
        codec, level: compression of the records; level None takes Kafka's default.
        timestamp_type, log_append_time: with LOG_APPEND_TIME the latter, ms, is the batch's max timestamp.
        producer_id, producer_epoch, base_sequence: -1 for none.
        partition_leader_epoch: -1 from a producer.
        delete_horizon_ms: ms; None leaves bit 6 unset.

    Raises:
        UsageError: what `MemoryRecordsBuilder` refuses, in its words; a level that the codec does not have; a number
            that does not fit its field.
    """

    base_offset: int = 0
    codec: Codec = Codec.NONE
    level: int | None = None
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    log_append_time: int = NO_TIMESTAMP
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH
    base_sequence: int = NO_SEQUENCE
    partition_leader_epoch: int = -1
    is_transactional: bool = False
    is_control: bool = False
    delete_horizon_ms: int | None = None

    def __post_init__(self) -> None:
        problem = producer_problem(
            self.producer_id, self.producer_epoch, self.base_sequence, self.is_transactional, self.is_control
        )
        if problem is not None:
            raise refused(problem)
        if self.level is not None:
            checked_level(self.codec, self.level)
        if self.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE:
            raise refused("TimestampType must be set for magic >= 0")
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise UsageError(f"{name} has no room in a batch", expected=f"{least} to {most}", found=value)

    @property
    def attributes(self) -> int:
        """The attribute bits (`DefaultRecordBatch.computeAttributes`)."""
        bits = int(self.codec)
        if self.timestamp_type is TimestampType.LOG_APPEND_TIME:
            bits |= layout.LOG_APPEND_TIME_FLAG
        if self.is_transactional:
            bits |= layout.TRANSACTIONAL_FLAG
        if self.is_control:
            bits |= layout.CONTROL_FLAG
        if self.delete_horizon_ms is not None:
            bits |= layout.DELETE_HORIZON_FLAG
        return bits


def producer_problem(
    producer_id: int, producer_epoch: int, base_sequence: int, is_transactional: bool, is_control: bool
) -> str | None:
    """Return why `MemoryRecordsBuilder.validateProducerState` refuses producer fields; None if it takes them."""
    if producer_id == NO_PRODUCER_ID:
        return "Cannot write transactional messages without a valid producer ID" if is_transactional else None
    if producer_epoch == NO_EPOCH:
        return "Invalid negative producer epoch"
    return "Invalid negative sequence number used" if base_sequence < 0 and not is_control else None


def has_producer_problem(matrix: Int64Array) -> BoolArray:
    """Return which batches of a table's matrix `producer_problem` has something to say of."""
    is_transactional = matrix[scan.ATTRIBUTES] & layout.TRANSACTIONAL_FLAG != 0
    is_control = matrix[scan.ATTRIBUTES] & layout.CONTROL_FLAG != 0
    is_incomplete = (matrix[scan.PRODUCER_EPOCH] == NO_EPOCH) | (matrix[scan.BASE_SEQUENCE] < 0) & ~is_control
    return np.where(matrix[scan.PRODUCER_ID] == NO_PRODUCER_ID, is_transactional, is_incomplete)
