"""All that reads bytes which somebody else may have written, by what it reads.

A parser takes a read-only array that ends at a guard page, and answers or raises a LogstoreError. What takes bytes in
place of an array copies them first, so that only its answer is tried.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np

from logstore.audit.checks.records import bad_records, has_data
from logstore.codec import decompress
from logstore.columns.batch_table import BatchTable, ByteArray, scan
from logstore.columns.header_columns import columns_of_table
from logstore.columns.legacy import fill_legacy_is_valid, legacy_entry, read_legacy_records
from logstore.columns.record_table import BatchRecords
from logstore.columns.record_windows import record_windows
from logstore.disk.mapped import FileInMemory
from logstore.errors import LogstoreError
from logstore.folds import aborted_transactions, committed_filter, leader_epochs, producer_update, segment_indexes
from logstore.folds.aborted_transactions import AbortedTransactions
from logstore.folds.committed_filter import CommittedFilter
from logstore.folds.leader_epochs import LeaderEpochs
from logstore.folds.producer_state import ProducerState
from logstore.folds.segment_indexes import SegmentIndexes
from logstore.kernels.decode.batches import TO_CHECK
from logstore.kernels.scan import batches as fields
from logstore.layout.batch import MAGIC_V2
from logstore.layout.leader_epoch_checkpoint import parse_leader_epoch_checkpoint
from logstore.layout.meta_properties import parse_meta_properties
from logstore.layout.offset_checkpoint import parse_offset_checkpoint
from logstore.layout.offset_index import parse_offset_index
from logstore.layout.partition_metadata import parse_partition_metadata
from logstore.layout.producer_snapshot import parse_producer_snapshot
from logstore.layout.quorum_state import parse_quorum_state
from logstore.layout.time_index import parse_time_index
from logstore.layout.transaction_index import parse_transaction_index
from logstore.model import Codec
from logstore.topics import cluster_metadata, consumer_offsets, transaction_state
from logstore.view.walk import walk
from logstore_tools.dump.decoders import parsers as record_parsers
from logstore_tools.dump.findings import Findings, Gaps
from logstore_tools.dump.log_dump import LogDump
from logstore_tools.dump.options import DumpOptions
from logstore_tools.dump.output import Output
from tests.support.logs import open_partition_log

PATH = "/data/orders-0/00000000000000000000.log"
SIZE_MAX = 1 << 22  # of what a stream is decompressed to
APPENDED_COUNT = 4
MAGIC_COUNT = MAGIC_V2 + 1
CODECS = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
Parser = Callable[[ByteArray], object]


def batches(data: ByteArray) -> None:
    """Scan, and walk around damage."""
    scan(data, check_crc=True).error(PATH, data.size)
    for _ in walk(FileInMemory(PATH, data), 0):
        pass


def records(data: ByteArray) -> None:
    """Decode batch after batch, whatever its checksum says."""
    table = scan(data)
    for row in np.flatnonzero(table.magic >= MAGIC_V2).tolist():
        with suppress(LogstoreError):
            for chunk in BatchRecords(data, table, row).chunks():
                columns_of_table(chunk)
                for index in range(min(len(chunk), 3)):
                    chunk.key(index), chunk.value(index), chunk.headers(index)


def record_checks(data: ByteArray) -> None:
    """Check the records of batches as an audit does."""
    table = scan(data, check_crc=True)
    list(bad_records(data, table, np.flatnonzero(has_data(table) & (table.magic == MAGIC_V2))))


def windows(data: ByteArray) -> None:
    """Read batches in windows of columns, streams of several at once."""
    for check in (TO_CHECK, 1):
        table = scan(data)
        table.matrix[fields.IS_VALID, : len(table)] = check
        rows = np.flatnonzero(table.magic >= MAGIC_V2)
        for _ in record_windows(data, table, rows):
            pass


def legacy(data: ByteArray) -> None:
    """Read messages and wrappers of magic 0 and 1."""
    table = scan(data)
    fill_legacy_is_valid(data, table)
    for row in np.flatnonzero(table.magic < MAGIC_V2).tolist():
        with suppress(LogstoreError):
            for record in read_legacy_records(legacy_entry(data, table, row), SIZE_MAX):
                for field in (record.key, record.value):
                    bytes(field or b"")


def folds(data: ByteArray) -> None:
    """Step the producers, transactions, indexes and epochs of a recovered segment."""
    table = scan(data)
    for step in (_producers, _indexes, _epochs, _committed):
        with suppress(LogstoreError):
            step(data, table)


def _producers(data: ByteArray, table: BatchTable) -> None:
    state, aborted = ProducerState("orders-0"), AbortedTransactions()
    try:
        completed = producer_update.step(state, data, table, 0, len(table))
    except LogstoreError:
        completed = state.buffers.take_completed()
    aborted_transactions.step(aborted, completed)


def _indexes(data: ByteArray, table: BatchTable) -> None:
    segment_indexes.step(SegmentIndexes(0, index_interval_bytes=0), table, 0, len(table))


def _epochs(data: ByteArray, table: BatchTable) -> None:
    leader_epochs.step_recovered(LeaderEpochs(), table, 0, len(table))


def _committed(data: ByteArray, table: BatchTable) -> None:
    aborted = [(int(producer_id), 0) for producer_id in table.producer_id[:4]]
    committed_filter.step(CommittedFilter(aborted), data, table, 0, len(table))


def append(data: ByteArray) -> None:
    """Append the last of what a client sent to a new log, batch after batch."""
    table = scan(data)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        log = open_partition_log(Path(place, "orders-0"), requires_verification=False)
        for row in range(max(len(table) - APPENDED_COUNT, 0), len(table)):
            start = int(table.position[row])
            for end in (start + int(table.size[row]), data.size):
                with suppress(LogstoreError):
                    log.append_as_leader(data[start:end], leader_epoch=0)
        log.close()


def dump(data: ByteArray) -> None:
    """Print batches and records."""
    options = DumpOptions(["--files", PATH, "--deep-iteration", "--print-data-log"])
    out = Output(lambda buffer, _: buffer)
    dump = LogDump(PATH, data, options, None, out, Gaps(PATH, None), Findings(print))
    dump.write([scan(data, check_crc=True)], 0, data.size)


def streams(data: ByteArray) -> None:
    """Decompress what the first byte says to be a stream of a codec and a magic."""
    if data.size:
        codec, magic = CODECS[data[0] % len(CODECS)], data[0] // len(CODECS) % MAGIC_COUNT
        decompress(codec, data[1:].data, int(magic), SIZE_MAX)


def offset_index(data: ByteArray) -> None:
    index = parse_offset_index(data, base_offset=0, path=PATH)
    index.sanity_check()
    index.lookup(100)
    index.lookup_positions(np.arange(0, 1000, 7))


def time_index(data: ByteArray) -> None:
    index = parse_time_index(data, base_offset=0, path=PATH)
    index.sanity_check()
    index.lookup(1_700_000_000_000)


def transaction_index(data: ByteArray) -> None:
    parse_transaction_index(data, path=PATH).sanity_check(0)


def producer_snapshot(data: ByteArray) -> None:
    parse_producer_snapshot(data.tobytes())


def small_files(data: ByteArray) -> None:
    """Read the checkpoints and properties, each as all of them."""
    content = data.tobytes()
    for parse in (
        lambda: parse_offset_checkpoint(content, path=PATH),
        lambda: parse_leader_epoch_checkpoint(content, path=PATH),
        lambda: parse_meta_properties(content),
        lambda: parse_partition_metadata(content, path=PATH),
        lambda: parse_quorum_state(content, path=PATH),
    ):
        with suppress(LogstoreError):
            parse()


def messages(data: ByteArray) -> None:
    """Read a key and a value, of lengths in two bytes each, as records of the internal topics."""
    content = data.tobytes()
    key_end = 2 + int.from_bytes(content[:2])
    key, value = content[2:key_end], content[key_end:]
    for parse in _readings(key, value):
        with suppress(LogstoreError):
            parse()


def _readings(key: bytes, value: bytes) -> Iterator[Callable[[], object]]:
    yield lambda: consumer_offsets.decode_value(consumer_offsets.decode_key(key), value)
    yield lambda: transaction_state.decode_key(key)
    yield lambda: transaction_state.decode_value(value)
    yield lambda: cluster_metadata.decode_value(value)
    yield lambda: consumer_offsets.decode_embedded("ConsumerProtocolSubscription", value)
    yield lambda: consumer_offsets.decode_embedded("ConsumerProtocolAssignment", value)
    for text in record_parsers().values():
        yield lambda text=text: text(5, key, value)


#: by the suffix of the files that it reads, as `tests.conformance.damage` has them
PARSERS: dict[str, tuple[Parser, ...]] = {
    ".log": (batches, records, record_checks, windows, legacy, folds, append, dump),
    ".stream": (streams,),
    ".index": (offset_index,),
    ".timeindex": (time_index,),
    ".txnindex": (transaction_index,),
    ".snapshot": (producer_snapshot,),
    ".text": (small_files,),
    ".message": (messages,),
}
