"""The fast path: the common append in one kernel call, the write included.

Takes a batch of a client or a coordinator, records given as lists for a topic that stores them uncompressed, or a
commit marker, if the producer's sequence is the next one and the segment has room. A batch of one record takes a few
microseconds. Both paths write the same bytes; property tests compare them.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import Any, cast

import numpy as np

from ...errors import DataDirectoryError
from ...folds.producer_update import NO_LOWEST_SEQUENCE
from ...kernels.append import structs as kinds
from ...kernels.append.steps import append_request, finish_append
from ...kernels.append.structs import FastPathStruct, RequestStruct
from ...kernels.append.validation import ROW_COUNT
from ...kernels.decode import records as decode
from ...kernels.fold.indexes import IndexStruct
from ...kernels.scan import batches as fields
from ...model import TimestampType
from ..failure import APPEND_FAILURE_TEXT
from ..maintain.flush import flush
from ..state import LogState
from .kernel_request import KernelRequest
from .records import RecordsRequest
from .request import AppendInfo, AppendRequest

_OUT_SIZE_MAX = 1 << 21  # bytes; a larger batch takes the slow path
_ENTRY_ROOM = 1024  # free index entries after each `_bind`; when they are used up the kernel asks for another
_ANSWER = struct.Struct("=6q?")
_ANSWER_POSITION = RequestStruct.first_offset.offset  # type: ignore[attr-defined]
_info = partial(tuple.__new__, AppendInfo)  # takes a tuple of the fields: half the time of calling `AppendInfo`


class FastPath:
    """The fast path into one log.

    Attributes:
        struct: `LogState.fast`, which the kernel reads; filled by `_bind`, void after `LogState.invalidate`.
        request: the request that the kernel reads.
    """

    def __init__(self, state: LogState) -> None:
        self._state, self._log_struct = state, state.struct
        self.struct, self.request = state.fast, KernelRequest(state)
        self._arrays = {
            "row": self.request.row,
            "decode_state": np.zeros(decode.STATE_COUNT, np.int64),
            "decoded": np.zeros((decode.COLUMN_COUNT, ROW_COUNT), np.int64),
        }
        self._bound_indexes: IndexStruct | None = None

    def try_append(self, request: AppendRequest) -> AppendInfo | None:
        """Append, or return None: nothing has changed, and the slow path must be taken."""
        now_ms = self._state.host.now_ms()  # first: a clock that the caller passed may change the log
        if not self.struct.is_bound and not self._bind():
            return None
        data = request.write_to(self.request, now_ms)
        if data is None:
            return None
        status = self._run(data)
        if status == kinds.COMPRESSION_IS_DUE:
            if not cast("RecordsRequest", request).compress(self.request):
                return None
            status = self._run(b"")
        if status == kinds.UNFINISHED:
            status = self._finish()
        if self.request.holds_arrays:
            self.request.release()
        if status == kinds.NOT_FOR_FAST_PATH:
            return None
        info: AppendInfo = _info(_ANSWER.unpack_from(self.request.struct, _ANSWER_POSITION))
        states = self._state.producers.state.verification
        if len(states):
            # a guard is used up by one append; if an interrupt comes before this line, `verification_of` notices
            row = self.request.row[:, 0]
            states.accepted(int(row[fields.PRODUCER_ID]), int(row[fields.PRODUCER_EPOCH]), int(row[fields.ATTRIBUTES]))
        if status == kinds.FLUSH_IS_DUE:
            with self._state.failure.poisoned_by(APPEND_FAILURE_TEXT):
                flush(self._state)
        return info

    def _finish(self) -> int:
        """Write the rest of a batch after a short write, and count it, or poison the log. Return the status."""
        state, request = self._state, self.request.struct
        try:
            batch = request.built if request.kind == kinds.BUILT else self.request.out
            rest = batch[request.written_size : self._log_struct.unfinished_size]
            state.directory.seam.finish_write(self.struct.descriptor, rest.data)
            return self._finish_run()
        except BaseException as error:
            if self._log_struct.unfinished_size:
                state.failure.leave(APPEND_FAILURE_TEXT, error)
            raise

    def _bind(self) -> bool:
        """Copy the state of the log into the struct; return False if it is not for the fast path."""
        state, bound, entries = self._state, self.struct, self._state.epochs.entries
        # a refused batch may have left an epoch that begins behind the log's end
        if not state.failure.is_writable or not entries or entries[-1][1] > self._log_struct.log_end_offset:
            return False
        try:
            state.open_active()
        except DataDirectoryError:
            return False  # the slow path raises it again, and poisons the log
        bound.leader_epoch = entries[-1][0]
        self.request.unverified = not state.producers.state.requires_verification, NO_LOWEST_SEQUENCE, 0
        self._bind_topic()
        self._bind_segment()
        # last: an interrupt before this line leaves the struct unbound
        bound.is_bound = 1
        return True

    def _bind_topic(self) -> None:
        rules, bound, request = self._state.rules, self.struct, self.request
        request.rules = rules
        bound.batch_size_max = rules.max_message_bytes
        self._arrays["decode_state"][decode.SIZE_MAX] = rules.record_size_max
        bound.codec = -1 if rules.codec is None else rules.codec
        bound.needs_keys = rules.is_compacted
        bound.is_log_append_time = rules.timestamp_type is TimestampType.LOG_APPEND_TIME
        bound.timestamp_before_max_ms = rules.timestamp_before_max_ms
        bound.timestamp_after_max_ms = rules.timestamp_after_max_ms
        bound.flush_message_count = self._state.flush_message_count
        size = min(rules.max_message_bytes, _OUT_SIZE_MAX)
        if size != request.out_size:
            request.out = np.empty(size, np.uint8)  # memory once it is written to
            request.out_size = bound.out_size = size
        _set(bound, "out", request.out)
        for name, array in self._arrays.items():
            _set(bound, name, array)

    def _bind_segment(self) -> None:
        active, bound = self._state.active, self.struct
        active.load_first_timestamp()
        # the reserved space ends the fast path too: behind it the slow path asks the disk for more
        bound.segment_size_max = min(self._state.rules.segment_size_max, active.space.end)
        bound.segment_age_max_ms = self._state.segment_ms_max - active.roll_jitter_ms
        bound.segment_created_ms = active.created_ms
        bound.write_address, bound.descriptor = active.write_address, active.descriptor
        active.indexes.reserve(_ENTRY_ROOM)
        if self._bound_indexes is not active.indexes.struct:
            producers, indexes = self._state.producers.state.buffers.struct, active.indexes.struct
            structs = self._log_struct, self.struct, self.request.struct, producers, indexes
            self._run, self._finish_run = append_request.bound(*structs).run, finish_append.bound(*structs).run
            self._bound_indexes = indexes  # last: an interrupt leaves kernels that are bound again


def _set(bound: FastPathStruct, name: str, array: Any) -> None:
    """Set an array field only if it is another array: setting one is slow."""
    if getattr(bound, name) is not array:
        setattr(bound, name, array)
