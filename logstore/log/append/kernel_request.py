"""The request that the kernel of an append reads, and what a request has to know of the log to write it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import numpy as np

from ...columns.batch_table import ByteArray, Int64Array
from ...folds.producer_update import NO_LOWEST_SEQUENCE
from ...folds.verification import VerificationGuard
from ...kernels.append.records import COLUMN_COUNT_MAX
from ...kernels.append.structs import RequestStruct
from ...kernels.scan import batches as fields
from ...layout.record import EncodedHeaders
from ..state import LogState

_ROW_COUNT_MIN = 64  # records; 10,000 logs that are open have one each
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
        holds_arrays: `struct` refers to memory of the caller.
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
        self.holds_arrays = False

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

    def hold(self, name: str, data: ByteArray) -> None:
        """Point the kernel to memory of the caller, uint8, until `release`; a `built` batch must be writable."""
        self.holds_arrays = True
        setattr(self.struct, name, data)

    def release(self) -> None:
        """Drop the references to the caller's memory."""
        self.struct.built = self.struct.records = _NO_BYTES
        self.holds_arrays = False

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
        values: tuple[bytes | None, ...],
        keys: tuple[bytes | None, ...] | None,
        timestamps: Sequence[int] | None,
        headers: EncodedHeaders | None,
    ) -> bytes | None:
        """Fill the columns, and return values, keys and headers joined; None if the slow path has to say what is wrong.

        Values and keys are exact bytes, see `bytes_column`.
        """
        count = len(values)
        if count == 1 and keys is None and timestamps is None and headers is None and values[0] is not None:
            self.count, self.given, self._memory[0][0] = 1, _VALUES_ONLY, len(values[0])
            return values[0]
        items = values
        for column in (keys, headers):
            if column is not None:
                if len(column) != count:
                    return None
                items += column
        if not count:
            return None
        try:
            numbers = list(map(len, items))  # type: ignore[arg-type]
            data = b"".join(items)  # type: ignore[arg-type]
        except TypeError:
            numbers = [-1 if item is None else len(item) for item in items]
            data = b"".join([item for item in items if item is not None])
        if timestamps is not None:
            times = list(timestamps) if isinstance(timestamps, Iterable) else []
            if list(map(type, times)).count(int) != count or len(times) != count:
                return None
            numbers += times
        if count * COLUMN_COUNT_MAX > len(self._memory[0]):
            self._memory = _reserved(2 * count)  # one assignment: an interrupt cannot leave views of different memory
        try:
            struct.pack_into(f"={len(numbers)}q", self._memory[2], 0, *numbers)
        except struct.error:  # a timestamp is no int64
            return None
        self.count, self.given = count, (keys is not None, headers is not None, timestamps is not None)
        return data


def _reserved(count: int) -> tuple[memoryview, Int64Array, bytearray]:
    """Return the same memory as a memoryview (quick to set one item), an array, and a bytearray (quick to set many)."""
    memory = bytearray(COLUMN_COUNT_MAX * _WORD_SIZE * count)
    return memoryview(memory).cast("q"), np.frombuffer(memory, np.int64), memory
