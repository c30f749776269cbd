"""Many streams in a call: those that are plain, up to the first that is not."""

from __future__ import annotations

import gzip as standard_gzip
import random
import threading

import cramjam
import numpy as np
import pytest

from logstore.codec import compress
from logstore.codec.streams import decompress_streams
from logstore.kernels.codec.copying import SLACK_SIZE
from logstore.model import Codec
from tests.naive import lz4, snappy, zstd

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
CAPACITY = 1 << 20


def content(number: int, size: int = 3000) -> bytes:
    dice = random.Random(number)
    return b"".join(dice.choice([b"some words ", dice.randbytes(9)]) for _ in range(size // 10))


def streams_of(codec: Codec, payloads: list[bytes], out_size: int = CAPACITY, enough: int = CAPACITY) -> list[bytes]:
    data = np.frombuffer(b"".join(payloads), np.uint8)
    ends = np.cumsum([len(payload) for payload in payloads], dtype=np.int64)
    starts = ends - np.array([len(payload) for payload in payloads], np.int64)
    out = np.full(out_size, 0x55, np.uint8)
    places = decompress_streams(codec, data, starts, ends, out, enough)
    return [out[start:end].tobytes() for start, end in zip(*(each.tolist() for each in places), strict=True)]


@pytest.mark.parametrize("codec", CODECS)
def test_streams_come_as_they_were_compressed(codec: Codec) -> None:
    contents = [content(number) for number in range(30)] + [b"", b"x"]
    payloads = [compress(codec, memoryview(each)) for each in contents]
    assert streams_of(codec, payloads) == contents
    assert streams_of(codec, []) == []


@pytest.mark.parametrize("codec", CODECS)
def test_the_first_that_is_odd_ends_the_call(codec: Codec) -> None:
    contents = [content(number) for number in range(9)]
    payloads = [compress(codec, memoryview(each)) for each in contents]
    odd_ones = [payloads[5][:-5], payloads[5][:40], b"\0" * 30, b""]
    if codec is not Codec.LZ4:  # Kafka does not look behind a frame of LZ4
        odd_ones.append(payloads[5] + b"garbage")
    for odd in odd_ones:
        assert streams_of(codec, [*payloads[:5], odd, *payloads[6:]]) == contents[:5]
        assert streams_of(codec, [odd, *payloads]) == []


@pytest.mark.parametrize("codec", CODECS)
def test_no_stream_is_begun_when_there_is_enough_or_no_room(codec: Codec) -> None:
    contents = [content(number) for number in range(9)]
    payloads = [compress(codec, memoryview(each)) for each in contents]
    size = len(contents[0])
    assert streams_of(codec, payloads, enough=3 * size) == contents[:4]
    for room in range(size - 5, 3 * size, 1000):
        found = streams_of(codec, payloads, out_size=room)
        assert found == contents[: len(found)]
        assert len(found) < 3


@pytest.mark.parametrize("codec", CODECS)
def test_a_buffer_smaller_than_the_slack_takes_nothing(codec: Codec) -> None:
    data = np.frombuffer(compress(codec, memoryview(b"")), np.uint8)
    for size in range(SLACK_SIZE + 1):
        memory = np.full(size + 64, 0x55, np.uint8)
        starts, _ = decompress_streams(codec, data, np.zeros(1, np.int64), np.array([data.size]), memory[:size], 9)
        assert starts.size == (size == SLACK_SIZE)
        assert (memory[size:] == 0x55).all()


@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_that_is_not_within_the_data_is_not_read(codec: Codec) -> None:
    data = np.frombuffer(compress(codec, memoryview(content(1))), np.uint8)
    out = np.empty(CAPACITY, np.uint8)
    for start, end in ((-1, data.size), (0, data.size + 1), (0, 1 << 40), (data.size, 0)):
        starts, _ = decompress_streams(codec, data, np.array([start]), np.array([end]), out, CAPACITY)
        assert starts.size == 0


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD])
def test_a_thread_has_contexts_of_its_own(codec: Codec) -> None:
    contents = [content(number, 20_000) for number in range(20)]
    payloads = [compress(codec, memoryview(each)) for each in contents]
    found: list[list[bytes]] = []
    threads = [threading.Thread(target=lambda: found.append(streams_of(codec, payloads))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [contents] * 4


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_left_alone(codec: Codec) -> None:
    bomb = compress(codec, memoryview(bytes(8 * CAPACITY)))
    payload = compress(codec, memoryview(b"a record"))
    assert streams_of(codec, [payload, bomb, payload]) == [b"a record"]


def test_a_gzip_trailer_that_lies_about_the_size_is_not_believed() -> None:
    data = standard_gzip.compress(b"twelve bytes", mtime=0)
    for claimed in (0, 11, 13, 2**32 - 1):
        assert streams_of(Codec.GZIP, [data[:-4] + claimed.to_bytes(4, "little")]) == []
    assert streams_of(Codec.GZIP, [data]) == [b"twelve bytes"]


def test_a_zstd_frame_that_ends_within_the_next_one_is_found_out() -> None:
    whole = bytes(cramjam.zstd.compress(content(1)))
    raw_size = 60  # of a last block whose bytes are not all there: what follows would be taken for them
    cut = b"\x28\xb5\x2f\xfd\x00\x58" + (raw_size << 3 | 1).to_bytes(3, "little") + b"twenty bytes of sixty"
    assert streams_of(Codec.ZSTD, [whole, cut, whole]) == [content(1)]
    assert streams_of(Codec.ZSTD, [cut, whole, whole]) == []


ZERO_OFFSET_FRAME = "28b52ffd0058440000106161010234c002010000"  # libzstd 1.5.4 makes something of it


def test_of_zstd_no_more_is_taken_than_a_reader_of_streams_takes() -> None:
    """Behind a frame, and in one that tells its size, the library does not look as closely as such a reader."""
    good = zstd.block(zstd.RAW, 5, b"bytes")
    assert streams_of(Codec.ZSTD, [zstd.framed(good)]) == [b"bytes"]
    sized = (200_000).to_bytes(4, "little")
    large, repeated = zstd.block(zstd.RAW, 200_000, bytes(200_000)), zstd.block(zstd.REPEATED, 200_000, b"x")
    for odd in (
        zstd.framed(good) * 2,
        zstd.framed(good) + b"x",
        zstd.framed(good) + b"\x50\x2a\x4d\x18" + bytes(4),
        b"\x50\x2a\x4d\x18" + bytes(8),
        zstd.framed(good, descriptor=0x20, content_size=b"\0"),
        zstd.framed(good, descriptor=0x80, content_size=sized),
        zstd.framed(large, descriptor=0xA0, content_size=sized),
        zstd.framed(repeated, descriptor=0xA0, content_size=sized),
        zstd.framed(good, descriptor=0xE0, content_size=(1 << 62).to_bytes(8, "little")),
        zstd.framed(good, window=(17 << 3) + 1, descriptor=0x80, content_size=(5).to_bytes(4, "little")),
        bytes.fromhex(ZERO_OFFSET_FRAME),
    ):
        assert streams_of(Codec.ZSTD, [odd]) == []
    many = b"".join(zstd.block(zstd.RAW, 1000, bytes(1000), is_last=last) for last in (False, True))
    assert streams_of(Codec.ZSTD, [zstd.framed(many, window=0, descriptor=0x40, content_size=b"\xd0\x06")]) == []


def test_large_streams_end_where_they_end() -> None:
    contents = [content(1, 200_000), b"", content(2, 29_000), content(3, 80_000)]
    for codec in CODECS:
        assert streams_of(codec, [compress(codec, memoryview(each)) for each in contents]) == contents


def test_lz4_and_snappy_of_other_writers_are_taken_or_left() -> None:
    data = content(7)
    sized = lz4.framed([(lz4.stored(data), True)], content_size=len(data))
    assert streams_of(
        Codec.LZ4, [lz4.framed([(data, False)]), lz4.framed([(lz4.stored(data), True)], size_code=7)]
    ) == [
        data,
        data,
    ]
    assert streams_of(Codec.LZ4, [sized]) == []
    assert streams_of(Codec.SNAPPY, [snappy.framed([snappy.stored(data)] * 2), snappy.stored(data)]) == [data * 2]
