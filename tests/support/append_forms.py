"""The kernels of an append in both forms, over the structs and arrays that a log has, and beside their twin's."""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from logstore.columns.batch_table import scan as scan_batches
from logstore.folds.producer_buffers import ProducerBuffers
from logstore.folds.segment_indexes import SegmentIndexes
from logstore.kernels.append import structs as kinds
from logstore.kernels.append.steps import append_request, finish_append
from logstore.kernels.append.validation import ROW_COUNT
from logstore.kernels.decode import records as decode
from logstore.kernels.fold import producer_struct
from logstore.kernels.scan import batches as scan
from logstore.layout.batch import TRANSACTIONAL_FLAG
from logstore.layout.record import EncodedHeaders, encode_headers
from logstore.log.append.kernel_request import RequestColumns
from logstore.native.kernel import Kernel
from logstore.native.structs import Struct
from tests.naive import append as naive
from tests.support.kernel_forms import Fenced

ENTRY_ROOM = 64
LEADER_EPOCH = 3
OUT_CAPACITY = 600


class AppendForms:
    """One log as the kernels see it; each call runs compiled and interpreted, which must agree in everything.

    Attributes:
        log, fast, request: the structs, as the last call left them.
        written: the descriptor and the bytes of each write.
    """

    def __init__(self, out_size: int, **settings: int) -> None:
        """`settings`: fields of `FastPathStruct`; by default all is allowed."""
        self.indexes = SegmentIndexes(0, index_interval_bytes=150)
        self.indexes.reserve(ENTRY_ROOM)
        self.producers = ProducerBuffers()
        self.log, self.fast, self.request = kinds.LogStruct(), kinds.FastPathStruct(), kinds.RequestStruct()
        self.log.first_unstable_offset, self.log.first_timestamp = -1, -1
        self.fast.out, self.fast.out_size = np.zeros(out_size, np.uint8), out_size
        self.fast.row = np.full((scan.COLUMN_COUNT, 1), -77, np.int64)
        self.fast.decode_state = np.zeros(decode.STATE_COUNT, np.int64)
        self.fast.decoded = np.zeros((decode.COLUMN_COUNT, ROW_COUNT), np.int64)
        self.request.built = self.request.records = np.zeros(1, np.uint8)
        self.request.columns = np.zeros(4, np.int64)
        self.fast.is_bound, self.fast.codec, self.fast.descriptor = 1, -1, 5
        self.fast.flush_message_count = self.fast.timestamp_before_max_ms = self.fast.timestamp_after_max_ms = 2**62
        self.fast.batch_size_max = self.fast.segment_size_max = 2**31 - 1
        self.fast.segment_age_max_ms = 2**62
        for name, value in settings.items():
            setattr(self.fast, name, value)
        self.written: list[tuple[int, bytes]] = []
        self.write_by(lambda _, data: len(data))

    def write_by(self, write: Callable[[int, bytes], int]) -> None:
        """Let what this returns be what the system says of a write."""

        def called(descriptor: int, data: int, size: int) -> int:
            self.written.append((descriptor, ctypes.string_at(data, size)))
            return write(*self.written[-1])

        self._write = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)(called)
        self.fast.write_address = ctypes.cast(self._write, ctypes.c_void_p).value or 0

    def append(self, data: bytes = b"", **fields: int) -> int:
        """Append a request of these fields, by default a client's at the log's end; the status."""
        usual = {
            "log_end_offset": self.log.log_end_offset,
            "leader_epoch": self.fast.leader_epoch,
            "origin": producer_struct.CLIENT,
            "transaction_version": -1,
            "producer_id": -1,
            "producer_epoch": -1,
            "base_sequence": -1,
            "is_verified": 1,
            "lowest_sequence": 2**31 - 1,
        }
        for name, kind in type(self.request).kinds.items():
            if kind == "i64":
                setattr(self.request, name, 0)
        for name, value in (usual | fields).items():
            setattr(self.request, name, value)
        return self._run_both(append_request, data)

    def finish(self) -> int:
        """Let an UNFINISHED batch count; the status."""
        return self._run_both(finish_append)

    def _run_both(self, kernel: Kernel, *data: bytes) -> int:
        structs = self.log, self.fast, self.request, self.producers.struct, self.indexes.struct
        copies = [_copied(each, fenced=False) for each in structs]
        fenced = [_copied(each, fenced=True) for each in structs]
        written = len(self.written)
        status = kernel(*[each for each, _ in fenced], *data)
        compiled_writes = self.written[written:]
        assert kernel.interpret(*[each for each, _ in copies], *data) == status
        assert self.written[written:] == 2 * compiled_writes
        del self.written[written + len(compiled_writes) :]
        for struct, (of_compiled, fences), (of_interpreted, _) in zip(structs, fenced, copies, strict=True):
            for name, kind in type(struct).kinds.items():
                value, other = getattr(of_compiled, name), getattr(of_interpreted, name)
                if kind == "i64":
                    assert value == other, name
                    setattr(struct, name, value)
                else:
                    fences[name].assert_intact()
                    assert np.array_equal(value.reshape(-1), other.reshape(-1)), name
                    array = getattr(struct, name)
                    if array.flags.writeable:
                        array.reshape(-1)[:] = value.reshape(-1)
        return status

    def unchanged(self) -> dict[str, Any]:
        """All that an append that is not for the fast path must leave."""
        producers = self.producers.struct
        return {
            "log": [getattr(self.log, name) for name in type(self.log).kinds],
            "indexes": self.indexes.mark(),
            "producers": self.producers.entries.tolist(),
            "counts": [producers.update_count, producers.started_count, producers.completed_count],
            "end": producers.map_end_offset,
            "ongoing": self.producers.transactions.ongoing_entries().tolist(),
        }


class TopicForms(AppendForms):
    """Appends to a log of a topic's configuration."""

    def __init__(self, topic: naive.Topic) -> None:
        super().__init__(
            OUT_CAPACITY,
            batch_size_max=topic.batch_size_max,
            needs_keys=topic.needs_keys,
            is_log_append_time=topic.is_log_append_time,
            timestamp_before_max_ms=topic.before_max_ms,
            timestamp_after_max_ms=topic.after_max_ms,
            segment_size_max=topic.segment_size_max,
            segment_age_max_ms=topic.age_max_ms,
            segment_created_ms=topic.created_ms,
            leader_epoch=LEADER_EPOCH,
        )
        self.columns = RequestColumns()

    def append_records(self, call: naive.Call) -> int:
        if any(item is not None and type(item) is not bytes for item in (*call.values, *(call.keys or ()))):
            return kinds.NOT_FOR_FAST_PATH  # `append_records` refuses it, see `bytes_column`
        headers = None if call.headers is None else EncodedHeaders(map(encode_headers, call.headers))
        keys = None if call.keys is None else tuple(call.keys)
        data = self.columns.take(tuple(call.values), keys, call.timestamps, headers)
        if data is None:
            return kinds.NOT_FOR_FAST_PATH
        self.request.columns = self.columns.memory
        return self.append(
            data,
            kind=kinds.RECORDS,
            record_count=self.columns.count,
            now_ms=call.now_ms,
            producer_id=call.producer_id,
            producer_epoch=call.epoch,
            base_sequence=call.sequence,
            attributes=TRANSACTIONAL_FLAG if call.is_transactional else 0,
            data_size=len(data),
            **dict(zip(("has_keys", "has_headers", "has_timestamps"), map(int, self.columns.given), strict=True)),
        )

    def append_built(self, batch: bytes, *, now_ms: int = 0) -> int:
        """Append a batch that was built before; the status."""
        self.request.built = np.frombuffer(bytearray(batch), np.uint8)
        self.fast.row[:] = scan_batches(self.request.built).matrix[:, :1]
        return self.append(kind=kinds.BUILT, size=len(batch), now_ms=now_ms)

    @property
    def batch(self) -> bytes:
        """What was written last."""
        return self.written[-1][1]


def assert_counts(forms: AppendForms, log: naive.Log) -> None:
    """The log of the kernels is at its twin's end, and knows the same producers."""
    struct = forms.log
    assert (struct.log_end_offset, struct.high_watermark, struct.segment_size, struct.unfinished_size) == (
        log.end_offset,
        log.end_offset,
        log.size,
        0,
    )
    assert forms.unchanged()["end"] == log.end_offset
    assert {row[0]: row[1] for row in forms.producers.entries.tolist()} == {
        producer_id: epoch for producer_id, (epoch, _, _) in log.producers.items()
    }


def _copied(struct: Struct, *, fenced: bool) -> tuple[Any, dict[str, Fenced]]:
    made, fences = type(struct)(), {}
    for name, kind in type(struct).kinds.items():
        value = getattr(struct, name)
        if kind == "i64":
            setattr(made, name, value)
        elif fenced:
            fences[name] = Fenced(value)
            setattr(made, name, fences[name].array)
        else:
            setattr(made, name, copy.deepcopy(np.ascontiguousarray(value)))
    return made, fences
