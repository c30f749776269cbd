"""Append requests, one class for each form in which data comes, and the answer to an append."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ...codec import decompress
from ...columns.batch_table import Batches, ByteArray
from ...columns.record_building import build_marker
from ...columns.record_table import DECOMPRESSED_SIZE_MAX
from ...folds.producer_update import UNKNOWN_TRANSACTION_VERSION, AppendOrigin
from ...folds.verification import VerificationGuard
from ...kernels.append import structs as kinds
from ...layout.batch import (
    ATTRIBUTES,
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    MAGIC_V2,
    NO_SEQUENCE,
    PRODUCER_ID,
    TRANSACTIONAL_FLAG,
)
from ...layout.marker import marker_record
from ...model import Codec, ControlRecordType
from ..state import LogState
from .analyze import NUMBERING, analyze, require_continuation
from .kernel_request import KernelRequest
from .validate import validate

_COORDINATOR_EPOCH_MAX = (1 << 31) - 1
_VERSION_MAX = 2


class AppendInfo(NamedTuple):
    """The answer to one append (`LogAppendInfo`).

    Attributes:
        first_offset, last_offset: in the log; of the first append if this one is a duplicate; -1 if no batch was given.
        max_timestamp: largest of the records, in ms; -1 none.
        log_append_time: ms, when a LogAppendTime topic took the batch, else -1; for a duplicate the largest timestamp
            of the first append, whatever the topic.
        log_start_offset: of the log.
        record_count: offsets used; 0 if nothing was written.
        is_duplicate: the batch equals one of its producer's last five; nothing was written.
    """

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    record_count: int
    is_duplicate: bool


class AppendRequest(Protocol):
    """One append, in a form that both paths accept."""

    @property
    def origin(self) -> AppendOrigin:
        """The sender of the batches."""

    @property
    def guard(self) -> VerificationGuard | None:
        """The guard from `begin_verification`, for the first batch of a transaction."""

    @property
    def transaction_version(self) -> int:
        """The transaction version of a marker, 0 to 2."""

    def write_to(self, request: KernelRequest, now_ms: int) -> bytes | None:
        """Write the request into the kernel's struct; return the bytes of RECORDS or of a MARKER, b"" for other kinds.

        Return None if the fast path cannot take it. No code of the caller runs in here.
        """

    def numbered(self, state: LogState, now_ms: int) -> Batches | None:
        """Build the batches as they are to be written, None if there is none; raise LogstoreError if refused."""


class BatchRequest(NamedTuple):
    """A batch that gets its offsets here; from REPLICATION or a RAFT_LEADER, batches that have theirs.

    Attributes:
        data: uint8, 1-D, contiguous; not changed.
    """

    data: ByteArray
    leader_epoch: int
    origin: AppendOrigin
    guard: VerificationGuard | None = None
    transaction_version: int = UNKNOWN_TRANSACTION_VERSION

    def write_to(self, request: KernelRequest, now_ms: int) -> bytes | None:
        size = self.data.size
        if size > request.out_size or size < HEADER_SIZE or self.origin not in NUMBERING:
            return None
        batch = request.out
        # a copy: the kernel stamps offset and epoch into it, and the caller's bytes must stay
        batch[:size] = self.data
        codec = int(batch[ATTRIBUTES + 1]) & CODEC_MASK
        request.struct.records_size = 0
        if codec:
            if codec > Codec.ZSTD or request.rules.target_codec(Codec(codec)) != codec:
                return None
            stream = decompress(Codec(codec), batch[HEADER_SIZE:size].data, MAGIC_V2, DECOMPRESSED_SIZE_MAX)
            # the slow path words the error
            if stream.error is not None:
                return None
            request.hold("records", stream.data)
            request.struct.records_size = stream.data.size
        producer_id = int.from_bytes(batch[PRODUCER_ID : PRODUCER_ID + 8].tobytes(), "big", signed=True)
        verification = request.verification_of(producer_id, self.guard)
        if not request.put(kinds.BATCH, now_ms, self.leader_epoch, self.origin, verification):
            return None
        request.struct.size, request.struct.transaction_version = size, self.transaction_version
        return b""

    def numbered(self, state: LogState, now_ms: int) -> Batches | None:
        batches = analyze(self.data, origin=self.origin, leader_epoch=self.leader_epoch, rules=state.rules)
        if not len(batches.table):
            return None
        if self.origin in NUMBERING:
            return validate(
                batches,
                origin=self.origin,
                base_offset=state.log_end_offset,
                leader_epoch=self.leader_epoch,
                now_ms=now_ms,
                rules=state.rules,
            )
        require_continuation(
            self.data,
            batches.table,
            log_end_offset=state.log_end_offset,
            log_start_offset=state.log_start_offset,
            rules=state.rules,
        )
        return batches


class MarkerRequest(NamedTuple):
    """The marker that ends a producer's transaction, from its coordinator."""

    producer_id: int
    producer_epoch: int
    is_commit: bool
    coordinator_epoch: int
    transaction_version: int
    leader_epoch: int
    origin: AppendOrigin = AppendOrigin.COORDINATOR
    guard: None = None

    @property
    def _type(self) -> ControlRecordType:
        return ControlRecordType.COMMIT if self.is_commit else ControlRecordType.ABORT

    def write_to(self, request: KernelRequest, now_ms: int) -> bytes | None:
        if not 0 <= self.coordinator_epoch <= _COORDINATOR_EPOCH_MAX:
            return None
        if not 0 <= self.transaction_version <= _VERSION_MAX:
            return None
        verification = request.verification_of(self.producer_id, None)
        if not request.put(kinds.MARKER, now_ms, self.leader_epoch, self.origin, verification):
            return None
        struct = request.struct
        struct.record_count, struct.base_sequence = 1, NO_SEQUENCE
        struct.producer_id, struct.producer_epoch = self.producer_id, self.producer_epoch
        struct.attributes = TRANSACTIONAL_FLAG | CONTROL_FLAG
        struct.transaction_version, struct.coordinator_epoch = self.transaction_version, self.coordinator_epoch
        struct.marker_type = self._type
        record = marker_record(self._type, self.coordinator_epoch)
        struct.data_size = len(record)
        return record

    def numbered(self, state: LogState, now_ms: int) -> Batches | None:
        marker = build_marker(
            self._type,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            coordinator_epoch=self.coordinator_epoch,
            timestamp_ms=now_ms,
        )
        return BatchRequest(marker, self.leader_epoch, AppendOrigin.COORDINATOR).numbered(state, now_ms)
