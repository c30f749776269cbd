"""Every codec against a twin that decodes byte by byte, and its fast path against its slow one."""

from __future__ import annotations

import gzip as standard_gzip

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.codec import decompress, library_of
from logstore.codec.outcome import collect
from logstore.model import Codec
from tests.naive import lz4, records, snappy

SIZE_MAX = 1 << 20
COMPRESSED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]

# Repeats, so that there is something to compress.
chunks = st.lists(st.binary(max_size=40), max_size=20).map(lambda parts: b"".join(parts + parts[::2] + parts))
bodies = st.lists(st.binary(max_size=300) | st.integers(0, 3000).map(bytes), max_size=30)


def encoded(codec: Codec, data: bytes, block_size: int) -> bytes:
    blocks = [data[start : start + block_size] for start in range(0, len(data), block_size)]
    if codec is Codec.GZIP:
        return standard_gzip.compress(data, mtime=0)
    if codec is Codec.SNAPPY:
        return snappy.framed([bytes(cramjam.snappy.compress_raw(block)) for block in blocks])
    if codec is Codec.LZ4:
        packed = [bytes(cramjam.lz4.compress_block(block, store_size=False)) for block in blocks]
        return lz4.framed([(block, True) for block in packed])
    return bytes(cramjam.zstd.compress(data))


@given(chunks, st.integers(1, 70))
def test_snappy_blocks_decode_as_the_twin_does(data: bytes, block_size: int) -> None:
    for stream in encoded(Codec.SNAPPY, data, block_size), snappy.framed([snappy.stored(data)]):
        outcome = decompress(Codec.SNAPPY, memoryview(stream), 2, SIZE_MAX)
        assert outcome.error is None
        assert outcome.data.tobytes() == snappy.decode_stream(stream) == data


@given(chunks.filter(len))
def test_lz4_blocks_decode_as_the_twin_does(data: bytes) -> None:
    for block in bytes(cramjam.lz4.compress_block(data, store_size=False)), lz4.stored(data):
        outcome = decompress(Codec.LZ4, memoryview(lz4.framed([(block, True)])), 2, SIZE_MAX)
        assert outcome.error is None
        assert outcome.data.tobytes() == lz4.decode_block(block) == data


@given(st.data())
def test_a_damaged_snappy_block_is_refused_when_the_twin_refuses_it(data: st.DataObject) -> None:
    raw = data.draw(chunks.filter(len))
    block = bytearray(cramjam.snappy.compress_raw(raw))
    block[data.draw(st.integers(0, len(block) - 1))] ^= data.draw(st.integers(1, 255))
    try:
        expected = snappy.decode_block(bytes(block))
    except (ValueError, IndexError):
        expected = None
    outcome = decompress(Codec.SNAPPY, memoryview(snappy.framed([bytes(block)])), 2, SIZE_MAX)
    assert (outcome.error is not None) == (expected is None)


@pytest.mark.parametrize("codec", COMPRESSED)
@given(bodies, st.integers(1, 5000))
def test_the_slow_path_delivers_what_the_fast_one_does(codec: Codec, contents: list[bytes], block_size: int) -> None:
    data = records.stream(contents)
    payload = encoded(codec, data, block_size)
    fast = decompress(codec, memoryview(payload), 2, SIZE_MAX)
    slow = collect(library_of(codec).pieces(memoryview(payload), SIZE_MAX, 2), SIZE_MAX)
    assert fast.error is None
    assert slow.error is None
    assert fast.data.tobytes() == slow.data.tobytes() == data


@pytest.mark.parametrize("codec", COMPRESSED)
@given(bodies.filter(len), st.data())
def test_a_damaged_stream_delivers_no_more_than_its_cap_and_raises_nothing(
    codec: Codec, contents: list[bytes], data: st.DataObject
) -> None:
    payload = bytearray(encoded(codec, records.stream(contents), 1000))
    for _ in range(data.draw(st.integers(1, 3))):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    payload = payload[: data.draw(st.integers(0, len(payload)))]
    outcome = decompress(codec, memoryview(payload), data.draw(st.sampled_from([0, 1, 2])), 50_000)
    assert outcome.data.size <= 50_000


@pytest.mark.parametrize("codec", COMPRESSED)
@given(bodies.filter(len), st.data())
def test_cut_stream_delivers_the_beginning(codec: Codec, contents: list[bytes], data: st.DataObject) -> None:
    whole = records.stream(contents)
    payload = encoded(codec, whole, 1000)
    cut = payload[: data.draw(st.integers(0, len(payload) - 1))]
    outcome = decompress(codec, memoryview(cut), 2, SIZE_MAX)
    if codec is Codec.SNAPPY and len(cut) < 16:  # without its header it is one raw block
        assert outcome.error is not None
    else:
        assert outcome.data.tobytes() == whole[: outcome.data.size]
