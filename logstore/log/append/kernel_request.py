"""The request that the kernel of an append reads, and what a request has to know of the log to write it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...columns.batch_table import ByteArray, Int64Array
from ...folds.producer_update import NO_LOWEST_SEQUENCE
from ...folds.verification import VerificationGuard
from ...kernels.append.records import COLUMN_COUNT_MAX
from ...kernels.append.structs import RequestStruct
from ...kernels.scan import batches as fields
from ...layout.record import EncodedHeaders
from ..state import LogState

_ROW_COUNT_MIN = 1024
_WORD_SIZE = 8  # bytes
_VALUES_ONLY = (False, False, False)
_CALL = struct.Struct("=8q")  # the first fields of `RequestStruct`
_NO_BYTES = np.zeros(1, np.uint8)


class KernelRequest:
    """One request after the other, in memory that is reused.

    Attributes:
        struct: what the kernel reads, and its answer.
        columns: columns of the records in it.
        out: uint8[out_size], where the kernel builds a batch.
        row: int64[scan.COLUMN_COUNT, 1], the header fields of that batch.
        rules, log_struct: of the log.
        unverified: (is_verified, lowest sequence, supports_epoch_bump) for a producer that is not being verified.
    """

    def __init__(self, state: LogState) -> None:
        self.struct, self.columns = RequestStruct(), RequestColumns()
        self.out: ByteArray = np.empty(0, np.uint8)
        self.out_size = 0
        self.row = np.zeros((fields.COLUMN_COUNT, 1), np.int64)
        self.rules, self.log_struct = state.rules, state.struct
        self.unverified = 0, NO_LOWEST_SEQUENCE, 0
        self._producers = state.producers.state
        self._known_columns: Int64Array | None = None
        self._holds_arrays = False

    def put(self, kind: int, now_ms: int, leader_epoch: int, origin: int, verification: tuple[int, int, int]) -> bool:
        """Write the first fields; return False if a number does not fit. Exact ints only."""
        try:
            _CALL.pack_into(
                self.struct, 0, kind, self.log_struct.log_end_offset, now_ms, leader_epoch, origin, *verification
            )
        except struct.error:
            return False
        return True

    def put_columns(self) -> None:
        """Point the kernel to the columns of records, if their memory was replaced."""
        if self.columns.memory is not self._known_columns:
            self.struct.columns = self._known_columns = self.columns.memory

    def put_built(self, batch: ByteArray, row: Int64Array) -> None:
        """Point the kernel to a batch that is built already, uint8, writable, and its fields."""
        self._holds_arrays = True
        self.struct.built, self.struct.size = batch, batch.size
        self.row[:, 0] = row

    def put_decompressed(self, records: ByteArray | None) -> None:
        """Point the kernel to the decompressed records of a batch; None if it is not compressed."""
        self.struct.records_size = 0
        if records is not None:
            self._holds_arrays = True
            self.struct.records, self.struct.records_size = records, records.size

    def release(self) -> None:
        """Drop the references to the caller's memory."""
        if self._holds_arrays:
            self.struct.built = self.struct.records = _NO_BYTES
            self._holds_arrays = False

    def verification_of(self, producer_id: int, guard: VerificationGuard | None) -> tuple[int, int, int]:
        """Return a producer's verification in the form of `unverified`, which stands for none."""
        producers = self._producers
        entry = producers.verification_of(int(producer_id)) if len(producers.verification) else None
        if entry is None:
            return self.unverified
        return entry.guard is guard or bool(self.unverified[0]), entry.lowest_sequence, entry.supports_epoch_bump


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
