"""Compression: framed as Kafka frames it, read back by the fast path, levels within its ranges; and no codec at all."""

from __future__ import annotations

import random
import subprocess
import sys
import zlib

import numpy as np
import pytest

from logstore.codec import checked_level, compress, decompress
from logstore.codec.streams import SLACK_SIZE, decompress_streams
from logstore.errors import UsageError
from logstore.model import LEVELS, Codec

SIZE_MAX = 1 << 30
NOISE = random.Random(1).randbytes(200_000)
WORDS = b"".join(b"word %d, " % (n % 700) for n in range(30_000))
# What org.apache.kafka 4.3.1 makes of "abcde"; LZ4 stores what does not shrink.
ABCDE = {
    Codec.NONE: "6162636465",
    Codec.GZIP: "1f8b08000000000000ff 4b4c4a4e490500 65d88785 05000000",
    Codec.SNAPPY: "82534e41505059000000000100000001 00000007 05106162636465",
    Codec.LZ4: "04224d18604082 05000080 6162636465 00000000",
    Codec.ZSTD: "28b52ffd0058 280000 6162636465 010000",
}
LIMITS = [0, 1, 32 * 1024 - 1, 32 * 1024, 32 * 1024 + 1, 64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 150_000]
CASES = [(codec, None) for codec in Codec] + [
    (codec, level) for codec, levels in LEVELS.items() for level in {levels.least, 5, min(levels.greatest, 17)}
]


def back(codec: Codec, stream: bytes) -> bytes:
    outcome = decompress(codec, memoryview(stream), 2, SIZE_MAX)
    assert outcome.error is None
    return outcome.data.tobytes()


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.kafka_name)
def test_a_short_stream_is_kafkas_to_the_byte(codec: Codec) -> None:
    assert compress(codec, memoryview(b"abcde")).hex() == ABCDE[codec].replace(" ", "")


@pytest.mark.parametrize(("codec", "level"), CASES, ids=lambda each: getattr(each, "kafka_name", str(each)))
@pytest.mark.parametrize("source", [NOISE, WORDS], ids=["noise", "words"])
def test_compressed_bytes_come_out_as_they_went_in(codec: Codec, level: int | None, source: bytes) -> None:
    for size in LIMITS:
        assert back(codec, compress(codec, memoryview(source)[:size], level)) == source[:size]


@pytest.mark.parametrize("level", [None, 1, 9, 17])
@pytest.mark.parametrize("source", [NOISE, WORDS], ids=["noise", "words"])
def test_lz4_frames_have_no_options(level: int | None, source: bytes) -> None:
    frame = np.frombuffer(compress(Codec.LZ4, memoryview(source), level), np.uint8)
    out = np.empty(len(source) + SLACK_SIZE, np.uint8)
    places = decompress_streams(Codec.LZ4, frame, np.zeros(1, np.int64), np.array([frame.size]), out, out.size)
    assert [each.tolist() for each in places] == [[0], [len(source)]]  # the kernel takes no frame with options
    assert out[: len(source)].tobytes() == source


def test_levels_make_a_difference() -> None:
    for codec, fast, small in ((Codec.GZIP, 1, 9), (Codec.LZ4, 9, 12), (Codec.ZSTD, -5, 12)):
        sizes = [len(compress(codec, memoryview(WORDS), level)) for level in (fast, small)]
        assert sizes[0] > sizes[1], codec


def test_gzip_is_zlibs_at_its_level() -> None:
    deflated = zlib.compressobj(4, zlib.DEFLATED, -15)
    raw = deflated.compress(WORDS) + deflated.flush()
    assert compress(Codec.GZIP, memoryview(WORDS), 4)[10:-8] == raw


@pytest.mark.parametrize(
    ("codec", "level", "message"),
    [
        (Codec.GZIP, 0, "gzip doesn't support given compression level: 0"),
        (Codec.GZIP, 10, "gzip doesn't support given compression level: 10"),
        (Codec.LZ4, 0, "lz4 doesn't support given compression level: 0"),
        (Codec.LZ4, 18, "lz4 doesn't support given compression level: 18"),
        (Codec.ZSTD, 23, "zstd doesn't support given compression level: 23"),
        (Codec.ZSTD, -131073, "zstd doesn't support given compression level: -131073"),
        (Codec.SNAPPY, 1, "Compression levels are not defined for this compression type: snappy"),
        (Codec.NONE, 1, "Compression levels are not defined for this compression type: none"),
    ],
)
def test_a_level_that_kafka_refuses_is_refused(codec: Codec, level: int, message: str) -> None:
    with pytest.raises(UsageError) as refused:
        compress(codec, memoryview(b""), level)
    assert refused.value.message == message


def test_defaults_are_kafkas() -> None:
    assert [checked_level(codec, None) for codec in Codec] == [0, -1, 0, 9, 3]
    assert checked_level(Codec.GZIP, -1) == -1


def test_an_uncompressed_stream_is_a_view_of_the_payload() -> None:
    file = np.arange(100, dtype=np.uint8)
    outcome = decompress(Codec.NONE, file[10:90].data, 2, 10)
    assert outcome.error is None
    assert np.shares_memory(outcome.data, file)
    assert outcome.data.tolist() == list(range(10, 90))


def test_a_read_only_file_is_decompressed_in_place() -> None:
    import cramjam

    file = np.frombuffer(bytes(cramjam.zstd.compress(b"\x04ab")), np.uint8)
    assert not file.flags.writeable
    assert decompress(Codec.ZSTD, file.data, 2, 10).data.tobytes() == b"\x04ab"


def test_codec_libraries_are_loaded_when_they_are_needed() -> None:
    code = "import sys, logstore.codec; print([name for name in ('cramjam', 'isal', 'xxhash') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
