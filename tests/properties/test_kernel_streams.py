"""What goes through compressed batches, a kernel or a library, against twins: frames to bytes, streams to records."""

from __future__ import annotations

import gzip as standard_gzip
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import NamedTuple

import cramjam
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from logstore.codec import compress
from logstore.codec.streams import decompress_streams
from logstore.columns.batch_table import scan
from logstore.kernels.codec.copying import SLACK_SIZE
from logstore.kernels.codec.streams import decompress_plain_streams
from logstore.kernels.decode import batches as decode_batches
from logstore.kernels.decode import records as decode
from logstore.model import Codec
from tests.naive import gzip, lz4, snappy, zstd
from tests.naive.record import Context, read_stream
from tests.properties.kernel_inputs import record_streams
from tests.support.encoder import LOG_APPEND_TIME, Batch
from tests.support.kernel_decode import assert_decoded, decoded_batches, read_batches
from tests.support.kernel_forms import Fenced, run_both
from tests.support.sampling import examples

UNTOUCHED = -77
Int64Array = npt.NDArray[np.int64]
ROOM = 1 << 16

pieces = st.binary(max_size=40) | st.sampled_from([b"", bytes(300), b"abcdefgh" * 9, b"xyz" * 40, b"q" * 700])
contents = st.lists(pieces, max_size=8).map(lambda parts: b"".join(parts + parts[::2] + parts))


def lz4_frame(data: bytes, block_size: int) -> bytes:
    blocks = [data[start : start + block_size] for start in range(0, len(data), block_size)]
    packed = [(bytes(cramjam.lz4.compress_block(block, store_size=False)), True) for block in blocks]
    return lz4.framed([(block, False) if number % 3 == 2 else packed[number] for number, block in enumerate(blocks)])


def snappy_stream(data: bytes, block_size: int) -> bytes:
    blocks = [data[start : start + block_size] for start in range(0, len(data), block_size)]
    return snappy.framed([bytes(cramjam.snappy.compress_raw(block)) for block in blocks])


def decoded_by_a_library(codec: Codec, streams: list[bytes], rest: bytes, enough: int, capacity: int) -> list[bytes]:
    """What comes of them by one call of a library for each."""
    data, starts, ends = laid_out(streams, rest)
    out = Fenced(np.full(capacity + SLACK_SIZE, 0x55, np.uint8))
    places = decompress_streams(codec, data, starts, ends, out.array, enough)
    out.assert_intact()
    assert (out.array[capacity:] == 0x55).all()
    return [out.array[start:end].tobytes() for start, end in zip(*(each.tolist() for each in places), strict=True)]


def laid_out(streams: list[bytes], rest: bytes) -> tuple[npt.NDArray[np.uint8], Int64Array, Int64Array]:
    """The streams one behind the other, and where each starts and ends; `rest` is behind the last."""
    ends = np.array(list(accumulate(map(len, streams))), np.int64)
    return np.frombuffer(b"".join(streams) + rest + b"\0", np.uint8), ends - [len(stream) for stream in streams], ends


def decoded(codec: Codec, streams: list[bytes], rest: bytes, enough: int, capacity: int) -> list[bytes]:
    """What the kernel makes of streams."""
    data, starts, ends = laid_out(streams, rest)
    out = np.full(capacity + SLACK_SIZE, 0x55, np.uint8)
    out_ends = np.full(len(streams), UNTOUCHED, np.int64)
    arguments = (int(codec), data, data.size, starts, ends, len(streams), out, enough, capacity, out_ends)
    count = run_both(decompress_plain_streams, *arguments)
    assert (out_ends[count:] == UNTOUCHED).all()
    bounds = [0, *out_ends[:count].tolist()]
    return [out[start:end].tobytes() for start, end in pairwise(bounds)]


class Way(NamedTuple):
    """How a codec's streams are written, Kafka's way first, read by a twin, and decompressed by the product."""

    codec: Codec
    encoders: list[Callable[[bytes], bytes]]
    twin: Callable[[bytes], bytes]
    decoded: Callable[[Codec, list[bytes], bytes, int, int], list[bytes]]
    contents: st.SearchStrategy[bytes] = contents


def in_blocks(encode: Callable[[bytes, int], bytes]) -> list[Callable[[bytes], bytes]]:
    """In one block, and in more of fewer bytes."""
    return [lambda data, size=size: encode(data, size) for size in (5000, 100, 7)]  # type: ignore[misc]


WAYS = {
    "lz4": Way(Codec.LZ4, in_blocks(lz4_frame), lz4.decode_frame, decoded),
    "snappy": Way(Codec.SNAPPY, in_blocks(snappy_stream), snappy.decode_stream, decoded),
    "gzip": Way(
        Codec.GZIP,
        [
            lambda data: compress(Codec.GZIP, memoryview(data)),
            lambda data: standard_gzip.compress(data, 9, mtime=7),
            lambda data: standard_gzip.compress(data, 0, mtime=7),
        ],
        gzip.decode_member,
        decoded_by_a_library,
        contents.filter(len),
    ),
    "zstd": Way(
        Codec.ZSTD,
        [
            lambda data: compress(Codec.ZSTD, memoryview(data)),
            lambda data: bytes(cramjam.zstd.compress(data, level=19)),
            lambda data: zstd.framed(zstd.block(zstd.RAW, len(data), data)),
            zstd.single_segment,
        ],
        zstd.decode_frames,
        decoded_by_a_library,
        contents.filter(len),
    ),
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


@ways
@settings(max_examples=examples(60))
@given(st.data(), st.sampled_from([0, 20, 200]))
def test_streams_of_a_library_are_decoded_as_the_twin_does(way: Way, data: st.DataObject, rest_size: int) -> None:
    datas = data.draw(st.lists(way.contents, min_size=1, max_size=4))
    streams = [data.draw(st.sampled_from(way.encoders))(each) for each in datas]
    assert way.decoded(way.codec, streams, bytes(rest_size), ROOM, ROOM) == list(map(way.twin, streams)) == datas


@ways
@settings(max_examples=examples(300))
@given(contents, st.data())
def test_damaged_streams_are_taken_as_far_as_the_twin_takes_them(way: Way, content: bytes, data: st.DataObject) -> None:
    stream = bytearray(data.draw(st.sampled_from(way.encoders))(content))
    for _ in range(data.draw(st.integers(1, 3))):
        byte = data.draw(st.sampled_from([0, 1, 127, 128, 240, 255]) | st.integers(0, 255))
        stream[data.draw(st.integers(0, len(stream) - 1) | st.integers(0, min(15, len(stream) - 1)))] = byte
    damaged = bytes(stream[: data.draw(st.just(len(stream)) | st.integers(0, len(stream)))])
    found = way.decoded(way.codec, [damaged], b"\xff" * data.draw(st.sampled_from([0, 100])), ROOM, ROOM)
    assert found in ([], [_or_nothing(way.twin, damaged)])


@ways
@settings(max_examples=examples(60))
@given(st.lists(contents.filter(len), min_size=2, max_size=4), st.integers(0, 2000), st.integers(0, 2000))
def test_streams_stop_where_there_is_enough_or_no_room(
    way: Way, datas: list[bytes], enough: int, capacity: int
) -> None:
    streams = list(map(way.encoders[0], datas))
    found = way.decoded(way.codec, streams, b"", enough, capacity)
    starts = [0, *accumulate(map(len, datas))]
    fitting = [start < enough and start + len(data) <= capacity for start, data in zip(starts, datas, strict=False)]
    count = fitting.index(False) if False in fitting else len(datas)
    assert found == list(map(way.twin, streams))[: len(found)]
    # a block of LZ4 may ask for some bytes more than it fills
    assert len(found) <= count
    assert len(found) == count or way.codec is Codec.LZ4


def test_zstd_frames_that_tell_their_size_are_taken() -> None:
    way = WAYS["zstd"]
    for size in (1, 255, 256, 70_000):
        stream = zstd.single_segment(bytes(size))
        assert way.decoded(way.codec, [stream], b"", ROOM, 2 * ROOM) == [bytes(size)]
    assert way.decoded(way.codec, [zstd.single_segment(b"bytes")[:-1]], b"", ROOM, ROOM) == []


def _or_nothing(twin: Callable[[bytes], bytes], stream: bytes) -> bytes | None:
    try:
        return twin(stream)
    except (ValueError, IndexError, gzip.WrongStreamError):
        return None


contexts = st.builds(
    Batch,
    base_offset=st.integers(0, 2**40),
    flags=st.sampled_from([0, 0, LOG_APPEND_TIME]),
    base_timestamp=st.sampled_from([0, 2**62, -1]),
    max_timestamp=st.just(7),
    base_sequence=st.sampled_from([-1, 0, 2**31 - 2]),
)


@example([((b"\x01\x00", 1), Batch(0))], b"")  # a size of -1, which is no count of -1
@settings(max_examples=examples(150))
@given(st.lists(st.tuples(record_streams(), contexts), min_size=1, max_size=4), st.binary(max_size=9))
def test_streams_are_decoded_to_the_records_that_the_twin_reads(
    parts: list[tuple[tuple[bytes, int], Batch]], between: bytes
) -> None:
    table = scan(np.frombuffer(b"".join(batch.to_bytes() for _, batch in parts), np.uint8))
    streams = [stream for (stream, _), _ in parts]
    table.record_count[:] = [count for (_, count), _ in parts]
    data = np.frombuffer(b"".join(between + stream for stream in streams) + b"\0", np.uint8)
    ends = np.array(list(accumulate(len(between + stream) for stream in streams)), np.int64)
    starts = ends - np.array([len(stream) for stream in streams], np.int64)
    found = decoded_batches(data, starts, ends, decode.STREAM, table, data.size + len(parts) + 1)
    contexts_of = (context_of(batch) for _, batch in parts)
    of_twin = [(stream, count, context) for ((stream, count), _), context in zip(parts, contexts_of, strict=True)]
    assert_decoded(found, data, *read_batches(read_stream, of_twin))


def context_of(batch: Batch) -> Context:
    log_append_time = batch.max_timestamp if batch.flags & LOG_APPEND_TIME else None
    return Context(batch.base_offset, batch.base_timestamp, batch.base_sequence, log_append_time)


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.integers(1, 12))
def test_streams_stop_at_the_row_that_has_no_room(counts: list[int], capacity: int) -> None:
    record = bytes([12, 0, 0, 0, 1, 1, 0])
    table = scan(np.frombuffer(Batch(0, []).to_bytes() * len(counts), np.uint8))
    table.record_count[:] = counts
    data = np.frombuffer(record * sum(counts) + b"\0", np.uint8)
    ends = np.cumsum(counts, dtype=np.int64) * len(record)
    starts = ends - np.array(counts, np.int64) * len(record)
    found = decoded_batches(data, starts, ends, decode.STREAM, table, capacity)
    fitting = int(np.searchsorted(np.cumsum(counts), capacity, side="right"))
    assert found.batch_count == fitting
    assert (found.status == decode_batches.RECORDS_FULL) == (fitting < len(counts))
