"""Streams that a library decompresses, one call each: what is taken, another library reads to the same bytes."""

from __future__ import annotations

import gzip as standard_gzip
from collections.abc import Callable
from itertools import accumulate

import cramjam
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.codec import compress
from logstore.codec.streams import decompress_streams
from logstore.kernels.codec.copying import SLACK_SIZE
from logstore.model import Codec
from tests.naive import gzip, zstd
from tests.support.kernel_forms import Fenced
from tests.support.sampling import examples

ROOM = 1 << 16
Streams = Callable[[bytes], bytes]

pieces = st.binary(max_size=40) | st.sampled_from([b"", bytes(300), b"abcdefgh" * 9, b"xyz" * 40, b"q" * 700])
contents = st.lists(pieces, max_size=8).map(lambda parts: b"".join(parts + parts[::2] + parts))

CODECS = [
    pytest.param(Codec.GZIP, gzip.decode_member, id="gzip"),
    pytest.param(Codec.ZSTD, zstd.decode_frames, id="zstd"),
]


def encoders(codec: Codec) -> list[Streams]:
    """Kafka's way, and others'."""
    if codec is Codec.GZIP:
        return [
            lambda data: compress(codec, memoryview(data)),
            lambda data: standard_gzip.compress(data, 9, mtime=7),
            lambda data: standard_gzip.compress(data, 0, mtime=7),
        ]
    return [
        lambda data: compress(codec, memoryview(data)),
        lambda data: bytes(cramjam.zstd.compress(data, level=19)),
        lambda data: zstd.framed(zstd.block(zstd.RAW, len(data), data)),
        lambda data: zstd.single_segment(data),
    ]


def decoded(codec: Codec, streams: list[bytes], rest: bytes, enough: int, capacity: int) -> list[bytes]:
    """What comes of the streams one behind the other; `rest` is behind the last."""
    data = np.frombuffer(b"".join(streams) + rest + b"\0", np.uint8)
    ends = np.array(list(accumulate(map(len, streams))), np.int64)
    starts = ends - np.array([len(stream) for stream in streams], np.int64)
    out = Fenced(np.full(capacity + SLACK_SIZE, 0x55, np.uint8))
    places = decompress_streams(codec, data, starts, ends, out.array, enough)
    out.assert_intact()
    assert (out.array[capacity:] == 0x55).all()
    return [out.array[start:end].tobytes() for start, end in zip(*(each.tolist() for each in places), strict=True)]


@pytest.mark.parametrize(("codec", "twin"), CODECS)
@settings(max_examples=examples(60))
@given(st.data(), st.sampled_from([0, 20, 200]))
def test_streams_are_decoded_as_the_twin_does(codec: Codec, twin: Streams, data: st.DataObject, rest_size: int) -> None:
    datas = data.draw(st.lists(contents.filter(len), min_size=1, max_size=4))
    streams = [data.draw(st.sampled_from(encoders(codec)))(each) for each in datas]
    assert decoded(codec, streams, bytes(rest_size), ROOM, ROOM) == list(map(twin, streams)) == datas


@pytest.mark.parametrize(("codec", "twin"), CODECS)
@settings(max_examples=examples(300))
@given(contents, st.data())
def test_damaged_streams_are_taken_as_far_as_the_twin_takes_them(
    codec: Codec, twin: Streams, content: bytes, data: st.DataObject
) -> None:
    stream = bytearray(data.draw(st.sampled_from(encoders(codec)))(content))
    for _ in range(data.draw(st.integers(1, 3))):
        byte = data.draw(st.sampled_from([0, 1, 127, 128, 240, 255]) | st.integers(0, 255))
        stream[data.draw(st.integers(0, len(stream) - 1) | st.integers(0, min(15, len(stream) - 1)))] = byte
    damaged = bytes(stream[: data.draw(st.just(len(stream)) | st.integers(0, len(stream)))])
    found = decoded(codec, [damaged], b"\xff" * data.draw(st.sampled_from([0, 100])), ROOM, ROOM)
    assert found in ([], [_or_nothing(twin, damaged)])


@pytest.mark.parametrize(("codec", "twin"), CODECS)
@settings(max_examples=examples(60))
@given(st.lists(contents.filter(len), min_size=2, max_size=4), st.integers(0, 2000), st.integers(0, 2000))
def test_streams_stop_where_there_is_enough_or_no_room(
    codec: Codec, twin: Streams, datas: list[bytes], enough: int, capacity: int
) -> None:
    streams = [compress(codec, memoryview(data)) for data in datas]
    found = decoded(codec, streams, b"", enough, capacity)
    starts = [0, *accumulate(map(len, datas))]
    fitting = [start < enough and start + len(data) <= capacity for start, data in zip(starts, datas, strict=False)]
    count = fitting.index(False) if False in fitting else len(datas)
    assert found == list(map(twin, streams))[:count]


def test_zstd_frames_that_tell_their_size_are_taken() -> None:
    for size in (1, 255, 256, 70_000):
        assert decoded(Codec.ZSTD, [zstd.single_segment(bytes(size))], b"", ROOM, 2 * ROOM) == [bytes(size)]
    assert decoded(Codec.ZSTD, [zstd.single_segment(b"bytes")[:-1]], b"", ROOM, ROOM) == []


def _or_nothing(twin: Streams, stream: bytes) -> bytes | None:
    try:
        return twin(stream)
    except (ValueError, gzip.WrongStreamError):
        return None
