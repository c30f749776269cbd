"""Requests made of records: as arrays for the kernel, which builds the batch."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ...codec import compress
from ...columns.any_columns import timestamps_ms
from ...columns.batch_fields import SentFieldArguments
from ...columns.batch_table import Batches
from ...columns.record_columns import BytesColumn, RecordColumns
from ...errors import UsageError
from ...folds.producer_update import UNKNOWN_TRANSACTION_VERSION, AppendOrigin
from ...folds.verification import VerificationGuard
from ...kernels.append.structs import COMPRESSED, RECORDS, TO_COMPRESS
from ...kernels.scan import batches as fields
from ...layout.batch import HEADER_SIZE, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from ...layout.record import EncodedHeaders, headers_bytes
from ...model import Codec
from ..state import LogState
from .columns import built_request
from .kernel_request import KernelRequest

_REQUEST = struct.Struct("=17q")  # the first fields of `RequestStruct`


class RecordsRequest(NamedTuple):
    """One batch of records; attributes as in `PartitionLog.append_records`."""

    values: tuple[bytes | None, ...]
    keys: tuple[bytes | None, ...] | None
    timestamps: Sequence[int] | None
    headers: EncodedHeaders | None
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    leader_epoch: int
    guard: VerificationGuard | None
    codec: Codec = Codec.NONE
    level: int | None = None
    origin: AppendOrigin = AppendOrigin.CLIENT
    transaction_version: int = UNKNOWN_TRANSACTION_VERSION

    def write_to(self, request: KernelRequest, now_ms: int) -> bytes | None:
        kind = RECORDS
        if self.codec and request.rules.limits_records(self.codec):
            return None
        if request.rules.target_codec(self.codec):
            kind = TO_COMPRESS
        # the end offset first: `take` may run code of the caller that appends, and the kernel then refuses
        columns, end_offset = request.columns, request.log_struct.log_end_offset
        data = columns.take(self.values, self.keys, self.timestamps, self.headers)
        if data is None:
            return None
        request.put_columns()
        producer_id = self.producer_id
        verification = request.verification_of(producer_id, self.guard)
        try:
            _REQUEST.pack_into(
                request.struct, 0,
                kind, end_offset, now_ms, self.leader_epoch, self.origin, *verification,
                columns.count, producer_id, self.producer_epoch, self.base_sequence,
                TRANSACTIONAL_FLAG if self.is_transactional else 0, len(data), *columns.given,
            )  # fmt: skip
        except struct.error:  # a number is no 64-bit int
            return None
        return data

    def compress(self, request: KernelRequest) -> bool:
        """Compress the batch that the kernel has built, and request it; False if it is too large for the topic."""
        codec, row = request.rules.target_codec(self.codec), request.row
        level = request.rules.level(codec) if self.level is None or codec is not self.codec else self.level
        stream = compress(codec, request.out[HEADER_SIZE : int(row[fields.SIZE, 0])].data, level)
        size = HEADER_SIZE + len(stream)
        if size > request.out_size:
            return False
        request.out[HEADER_SIZE:size] = np.frombuffer(stream, np.uint8)
        row[fields.ATTRIBUTES, 0] |= codec
        request.struct.kind, request.struct.size = COMPRESSED, size
        return True

    def numbered(self, state: LogState, now_ms: int) -> Batches | None:
        if self.is_transactional and self.producer_id <= NO_PRODUCER_ID:
            raise UsageError("Cannot write transactional messages without a valid producer ID")
        if not self.values:
            return None
        columns = RecordColumns(
            len(self.values),
            None if self.keys is None else BytesColumn.of_values(self.keys),
            BytesColumn.of_values(self.values),
            None if self.timestamps is None else timestamps_ms(self.timestamps),
            None if self.headers is None else BytesColumn.of_values(list(map(headers_bytes, self.headers))),
        ).stamped(now_ms)
        sent: SentFieldArguments = {
            "producer_id": self.producer_id,
            "producer_epoch": self.producer_epoch,
            "base_sequence": self.base_sequence,
            "is_transactional": self.is_transactional,
            "codec": self.codec,
            "level": self.level,
        }
        request = built_request(state, columns, now_ms, self.leader_epoch, self.guard, sent, self.origin)
        return request.numbered(state, now_ms)


new_records_request = partial(tuple.__new__, RecordsRequest)  # takes a tuple of the fields: half the time
