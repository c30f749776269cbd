"""Records without headers as a request: as arrays for the kernel, or as a batch."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from itertools import chain
from types import NoneType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...columns.batch_table import Int64Array
from ...columns.record_building import build_batch
from ...columns.record_columns import BytesColumn, RecordColumns
from ...errors import UsageError
from ...folds.producer_update import UNKNOWN_TRANSACTION_VERSION, AppendOrigin
from ...folds.verification import VerificationGuard
from ...kernels.append_records import KEY_SIZE, ROW_WIDTH, TIMESTAMP, VALUE_SIZE
from ...kernels.append_struct import RECORDS
from ...layout.batch import NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from ...model import Codec
from .request import BatchRequest
from .validate import Validated

if TYPE_CHECKING:
    from ..partition_log import PartitionLog
    from .fast import FastPath

_BYTES, _BYTES_OR_NULL, _INTS = {bytes}, {bytes, NoneType}, {int}
_LIST_OR_NONE = (list, NoneType)
_ROW_COUNT_MIN = 1024
_REQUEST = struct.Struct("=13q")  # the first fields of `RequestStruct`
_CLIENT = int(AppendOrigin.CLIENT)


class RecordsRequest(NamedTuple):
    """One batch of records, compressed as the topic is; attributes as in `PartitionLog.append_records`."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    timestamps: Sequence[int] | None
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    leader_epoch: int
    guard: VerificationGuard | None

    @property
    def origin(self) -> AppendOrigin:
        """A client."""
        return AppendOrigin.CLIENT

    @property
    def transaction_version(self) -> int:
        """Of markers only."""
        return UNKNOWN_TRANSACTION_VERSION

    def fill(self, fast: FastPath, now_ms: int) -> bytes | None:
        """See `AppendRequest`."""
        if not fast.stores_uncompressed:
            return None
        rows = fast.rows
        data = rows.take(self.values, self.keys, self.timestamps, now_ms)
        if data is None:
            return None
        fast.put_rows()
        producer_id = self.producer_id
        verification = fast.verification_of(producer_id, self.guard) if len(fast.states) else fast.unverified
        try:
            _REQUEST.pack_into(
                fast.request, 0,
                RECORDS, fast.log_struct.log_end_offset, now_ms, self.leader_epoch, _CLIENT, *verification,
                rows.count, producer_id, self.producer_epoch, self.base_sequence,
                TRANSACTIONAL_FLAG if self.is_transactional else 0,
            )  # fmt: skip
        except struct.error:  # no ints of 64 bits
            return None
        return data

    def numbered(self, log: PartitionLog, now_ms: int) -> Validated | None:
        """See `AppendRequest`."""
        if self.is_transactional and self.producer_id <= NO_PRODUCER_ID:
            raise UsageError("Cannot write transactional messages without a valid producer ID")
        columns = RecordColumns(
            len(self.values),
            None if self.keys is None else BytesColumn.of_values(self.keys),
            BytesColumn.of_values(self.values),
            None if self.timestamps is None else np.array(self.timestamps, np.int64),
        )
        codec = log.rules.target_codec(Codec.NONE)
        batch = build_batch(
            columns.stamped(now_ms),
            codec=codec,
            level=log.rules.level(codec),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            is_transactional=self.is_transactional,
        )
        return BatchRequest(batch, self.leader_epoch, AppendOrigin.CLIENT).numbered(log, now_ms)


new_records_request = partial(tuple.__new__, RecordsRequest)  # of a tuple of its fields: half the time


class RequestRows:
    """The rows of one request after the other, in memory that is used again.

    Attributes:
        rows: int64[n, ROW_WIDTH], n at least `count`.
        count: records of the last request.
    """

    __slots__ = ("_first", "count", "rows")

    def __init__(self) -> None:
        self.count = 0
        self._reserve(_ROW_COUNT_MIN)

    def _reserve(self, count: int) -> None:
        self.rows: Int64Array = np.empty((count, ROW_WIDTH), np.int64)
        self._first = self.rows.reshape(-1).data  # whose items are set more quickly than those of an array

    def take(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        timestamps: Sequence[int] | None,
        now_ms: int,
    ) -> bytes | None:
        """Return the keys and values, one behind the other, and fill the rows; None for what is no list of such items.

        Items of exact types are taken only, so no code of the caller's runs.
        """
        if type(values) is not list or type(keys) not in _LIST_OR_NONE or type(timestamps) not in _LIST_OR_NONE:
            return None
        values = values.copy()  # which no other thread changes, as are the others
        keys = None if keys is None else keys[:]
        timestamps = None if timestamps is None else timestamps[:]
        self.count = count = len(values)
        if keys is None and timestamps is None and count == 1 and type(values[0]) is bytes:
            first = self._first
            first[KEY_SIZE], first[VALUE_SIZE], first[TIMESTAMP] = -1, len(values[0]), now_ms
            return values[0]
        if not count or (keys is not None and len(keys) != count):
            return None
        if timestamps is not None and (len(timestamps) != count or set(map(type, timestamps)) != _INTS):
            return None
        if count > len(self.rows):
            self._reserve(2 * count)
        rows = self.rows[:count]
        try:
            rows[:, TIMESTAMP] = now_ms if timestamps is None else timestamps
        except OverflowError:
            return None
        rows[:, KEY_SIZE] = -1
        if not _fill_sizes(rows, VALUE_SIZE, values) or (keys is not None and not _fill_sizes(rows, KEY_SIZE, keys)):
            return None
        parts = values if keys is None else chain.from_iterable(zip(keys, values, strict=True))
        return b"".join(filter(None, parts))


def _fill_sizes(rows: Int64Array, column: int, items: Sequence[bytes | None]) -> bool:
    kinds = set(map(type, items))
    if kinds == _BYTES:
        rows[:, column] = np.fromiter(map(len, items), np.int64, len(items))  # type: ignore[arg-type]
    elif kinds <= _BYTES_OR_NULL:
        rows[:, column] = [-1 if item is None else len(item) for item in items]
    return kinds <= _BYTES_OR_NULL
