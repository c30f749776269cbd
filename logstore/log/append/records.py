"""Requests made of records: as arrays for the kernel, or as a built batch."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...columns.batch_table import Int64Array
from ...columns.record_building import build_batch
from ...columns.record_columns import BytesColumn, RecordColumns
from ...errors import UsageError
from ...folds.producer_update import UNKNOWN_TRANSACTION_VERSION, AppendOrigin
from ...folds.verification import VerificationGuard
from ...kernels.append.records import COLUMN_COUNT_MAX
from ...kernels.append.structs import RECORDS
from ...layout.batch import NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from ...layout.record import EncodedHeaders, headers_bytes
from ...model import Codec
from ..state import LogState
from .request import BatchRequest
from .validate import Validated

if TYPE_CHECKING:
    from .fast import FastPath

_ROW_COUNT_MIN = 1024
_WORD_SIZE = 8  # bytes
_VALUES_ONLY = (False, False, False)
_REQUEST = struct.Struct("=17q")  # the first fields of `RequestStruct`
_CLIENT = int(AppendOrigin.CLIENT)
CLIENTS = AppendOrigin.CLIENT, UNKNOWN_TRANSACTION_VERSION  # the last fields of `RecordsRequest`


class RecordsRequest(NamedTuple):
    """One batch of records, compressed as the topic is; attributes as in `PartitionLog.append_records`."""

    values: Sequence[bytes | None]
    keys: Sequence[bytes | None] | None
    timestamps: Sequence[int] | None
    headers: EncodedHeaders | None
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    leader_epoch: int
    guard: VerificationGuard | None
    origin: AppendOrigin = AppendOrigin.CLIENT
    transaction_version: int = UNKNOWN_TRANSACTION_VERSION

    def fill(self, fast: FastPath, now_ms: int) -> bytes | None:
        """See `AppendRequest`."""
        if not fast.stores_uncompressed:
            return None
        # the end offset first: `take` may run code of the caller that appends, and the kernel then refuses
        columns, end_offset = fast.columns, fast.log_struct.log_end_offset
        data = columns.take(self.values, self.keys, self.timestamps, self.headers)
        if data is None:
            return None
        fast.put_columns()
        producer_id = self.producer_id
        verification = fast.verification_of(producer_id, self.guard)
        try:
            _REQUEST.pack_into(
                fast.request, 0,
                RECORDS, end_offset, now_ms, self.leader_epoch, _CLIENT, *verification,
                columns.count, producer_id, self.producer_epoch, self.base_sequence,
                TRANSACTIONAL_FLAG if self.is_transactional else 0, len(data), *columns.given,
            )  # fmt: skip
        except struct.error:  # a number is no 64-bit int
            return None
        return data

    def numbered(self, state: LogState, now_ms: int) -> Validated | None:
        """See `AppendRequest`."""
        if self.is_transactional and self.producer_id <= NO_PRODUCER_ID:
            raise UsageError("Cannot write transactional messages without a valid producer ID")
        columns = RecordColumns(
            len(self.values),
            None if self.keys is None else BytesColumn.of_values(self.keys),
            BytesColumn.of_values(self.values),
            None if self.timestamps is None else np.array(self.timestamps, np.int64),
            None if self.headers is None else BytesColumn.of_values(list(map(headers_bytes, self.headers))),
        )
        codec = state.rules.target_codec(Codec.NONE)
        batch = build_batch(
            columns.stamped(now_ms),
            codec=codec,
            level=state.rules.level(codec),
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            is_transactional=self.is_transactional,
        )
        return BatchRequest(batch, self.leader_epoch, AppendOrigin.CLIENT).numbered(state, now_ms)


new_records_request = partial(tuple.__new__, RecordsRequest)  # takes a tuple of the fields: half the time


class RequestColumns:
    """Columns of one request after the other, in memory that is reused.

    Attributes:
        count: records of the last request.
        given: flags: has it keys, headers, timestamps.
    """

    __slots__ = ("_memory", "count", "given")

    def __init__(self) -> None:
        self.count, self.given = 0, _VALUES_ONLY
        self._memory = _reserved(_ROW_COUNT_MIN)

    @property
    def memory(self) -> Int64Array:
        """int64[n], of which the kernel reads the beginning; see `put_records`."""
        return self._memory[1]

    def take(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        timestamps: Sequence[int] | None,
        headers: EncodedHeaders | None,
    ) -> bytes | None:
        """Fill the columns, and return values, keys and headers joined; None for other types than lists and tuples."""
        if type(values) is not list and type(values) is not tuple:
            return None
        is_alone = len(values) == 1 and keys is None and timestamps is None and headers is None
        if is_alone and type(values[0]) is bytes:
            self.count, self.given, self._memory[0][0] = 1, _VALUES_ONLY, len(values[0])
            return values[0]
        try:
            return self._take(values, keys, timestamps, headers)
        except (TypeError, struct.error):  # an item that is not bytes, a timestamp that is no int64
            return None

    def _take(self, values: Any, keys: Any, timestamps: Any, headers: Any) -> bytes | None:
        """Do the work of `take`, or raise TypeError.

        Joining subclasses of bytes may run code that appends, so the shared columns are filled only after it.
        """
        count = len(values)
        items = [*_column(values, count)]
        if keys is not None:
            items += _column(keys, count)
        if headers is not None:
            items += _column(tuple(headers), count)
        numbers = _sizes(items)
        if timestamps is not None:
            times = _column(timestamps, count)
            if list(map(type, times)).count(int) != count:
                return None
            numbers += times
        data = _joined(items)
        if not count:
            return None
        if count * COLUMN_COUNT_MAX > len(self._memory[0]):
            self._memory = _reserved(2 * count)  # one assignment: an interrupt cannot leave views of different memory
        struct.pack_into(f"={len(numbers)}q", self._memory[2], 0, *numbers)
        self.count, self.given = count, (keys is not None, headers is not None, timestamps is not None)
        return data


def _reserved(count: int) -> tuple[memoryview, Int64Array, bytearray]:
    """Return the same memory as a memoryview (quick to set one item), an array, and a bytearray (quick to set many)."""
    memory = bytearray(COLUMN_COUNT_MAX * _WORD_SIZE * count)
    return memoryview(memory).cast("q"), np.frombuffer(memory, np.int64), memory


def _column(items: Any, count: int) -> tuple[Any, ...]:
    """Return the items as a tuple, which no other thread can change."""
    column = tuple(items) if type(items) is list else items
    if type(column) is not tuple or len(column) != count:
        raise TypeError(f"{type(column).__name__} of {len(column)}")
    return column


def _sizes(items: list[Any]) -> list[int]:
    try:
        return list(map(len, items))
    except TypeError:
        return [-1 if item is None else len(item) for item in items]


def _joined(items: list[Any]) -> bytes:
    try:
        return b"".join(items)
    except TypeError:
        return b"".join([item for item in items if item is not None])
