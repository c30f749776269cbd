"""Many streams in a call: those that are plain, up to the first that is not."""

from __future__ import annotations

import gzip as standard_gzip
import random

import cramjam
import numpy as np
import pytest

from logstore.codec import compress
from logstore.codec import streams as module
from logstore.codec.streams import decompress_streams
from logstore.model import Codec
from tests.naive import lz4, snappy

CODECS = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
CAPACITY = 1 << 20


@pytest.fixture(autouse=True, params=["functions of C", "libraries of Python"])
def without_functions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways to gzip and zstd; the functions are not there on every machine."""
    is_without: bool = request.param == "libraries of Python"
    if is_without:
        monkeypatch.setattr(module, "inflate_functions", lambda: None)
        monkeypatch.setattr(module, "zstd_function", lambda: None)
    return is_without


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
    odd_ones = [payloads[5][:-5], payloads[5][:40], b"\0" * 30]
    if codec is not Codec.LZ4:  # Kafka does not look behind a frame of LZ4
        odd_ones.append(payloads[5] + b"garbage")
    if codec is not Codec.ZSTD:  # nothing is no frames, which are right
        odd_ones.append(b"")
    for odd in odd_ones:
        assert streams_of(codec, [*payloads[:5], odd, *payloads[6:]]) == contents[:5]
        assert streams_of(codec, [odd, *payloads]) == []


@pytest.mark.parametrize("codec", CODECS)
def test_no_stream_is_begun_when_there_is_enough_or_no_room(codec: Codec) -> None:
    contents = [content(number) for number in range(9)]
    payloads = [compress(codec, memoryview(each)) for each in contents]
    size = len(contents[0])
    if codec is not Codec.ZSTD:
        assert streams_of(codec, payloads, enough=3 * size) == contents[:4]
    for room in range(size - 5, 3 * size, 1000):
        found = streams_of(codec, payloads, out_size=room)
        assert found == contents[: len(found)]
        assert len(found) < 3


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


def test_zstd_streams_are_as_large_as_they_are_whatever_stands_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = b"m" * 16
    payloads = [bytes(cramjam.zstd.compress(each)) for each in (b"one", b"mm", b"three")]
    with monkeypatch.context() as patch:
        patch.setattr(module.os, "urandom", lambda size: mark[:size])
        assert streams_of(Codec.ZSTD, payloads)[0] == b"one"
    assert streams_of(Codec.ZSTD, payloads) == [b"one", b"mm", b"three"]


def test_a_zstd_frame_that_ends_within_the_next_one_is_found_out() -> None:
    whole = bytes(cramjam.zstd.compress(content(1)))
    raw_size = 60  # of a last block whose bytes are not all there: what follows would be taken for them
    cut = b"\x28\xb5\x2f\xfd\x00\x58" + (raw_size << 3 | 1).to_bytes(3, "little") + b"twenty bytes of sixty"
    assert streams_of(Codec.ZSTD, [whole, cut, whole]) == [content(1)]
    assert streams_of(Codec.ZSTD, [cut, whole, whole]) == []


def test_zstd_streams_are_joined_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [content(number) for number in range(12)]
    payloads = [compress(Codec.ZSTD, memoryview(each)) for each in contents]
    monkeypatch.setattr(module, "_JOINED_SIZE_MAX", 2 * len(payloads[0]))
    assert streams_of(Codec.ZSTD, payloads) == contents
    found = streams_of(Codec.ZSTD, payloads, enough=3 * len(contents[0]))
    assert found == contents[: len(found)]
    assert 3 <= len(found) <= 6


def test_large_streams_end_where_they_end() -> None:
    contents = [content(1, 200_000), b"", content(2, 29_000), content(3, 80_000)]
    for codec in CODECS:
        assert streams_of(codec, [compress(codec, memoryview(each)) for each in contents]) == contents


def test_lz4_and_snappy_of_other_writers() -> None:
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
