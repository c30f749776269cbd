"""Records that fit no buffer, batches of very many, and bombs: the same lines as of small ones, or one clear error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.kernels.scan.crc32c import crc32c
from logstore.layout.utf8 import java_utf8
from logstore_tools.dump import output
from tests.conformance.dumping import answer
from tests.naive.legacy import Message, message, message_set
from tests.support import encoder
from tests.support.encoder import GZIP, LZ4, NONE, SNAPPY, SOME_TIME, ZSTD, Batch, Rec, compressed, record_bytes
from tests.support.sampling import sampled

LOG = "00000000000000000000.log"
CODECS = {"none": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
MIB = 2**20
CAP = 128 * MIB
CONTENTS = {
    "ascii": b"0123456789abcde\n",
    "valid multi-byte": "aß世😀|".encode() + b"12345",
    "invalid": b"\xff" + b"\xed\xa0\x80" + b"valid" + b"\xf0\x9f\x98" + b"\xc3(",
}


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And with the checksums of the kernel, because the slow twin's take seconds for megabytes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(encoder, "crc32c", crc32c)


def record_lines(*options: str) -> str:
    """The text behind the header line and the first batch line."""
    rc, stdout, stderr = answer(["--files", LOG, *options])
    assert (rc, stderr) == (0, "")
    return stdout.split("\n", 3)[3]


def line(record: Rec, offset: int = 0) -> str:
    header_keys = ",".join(java_utf8(key) for key, _ in record.headers)
    key, value = record.key or b"", record.value or b""
    return (
        f"| offset: {offset} CreateTime: {SOME_TIME} keySize: {len(key)} valueSize: {len(value)} sequence: -1 "
        f"headerKeys: [{header_keys}] key: {java_utf8(key)} payload: {java_utf8(value)}\n"
    )


def check_records_larger_than(buffer_size: int, codec: str, kind: str) -> None:
    """Lines that do not fit, alone or behind each other, between lines that do."""
    large = CONTENTS[kind] * (buffer_size // len(CONTENTS[kind]) + 7)
    records = [
        Rec(b"small", b"value"),
        Rec(large[: buffer_size // 4], large, [(b"h", None)], offset_delta=1),
        Rec(large, large[: buffer_size // 4], offset_delta=2),
        Rec(b"last", b"value", offset_delta=3),
    ]
    Path(LOG).write_bytes(Batch(0, records, 3, CODECS[codec]).to_bytes())
    expected = "".join(line(record, offset) for offset, record in enumerate(records))
    assert record_lines("--print-data-log") == expected


@pytest.mark.parametrize("kind", list(CONTENTS))
@pytest.mark.parametrize("codec", sampled(CODECS, ("none", "zstd")))
def test_records_larger_than_a_buffer(codec: str, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "BUFFER_SIZE", 100_000)
    check_records_larger_than(100_000, codec, kind)


def test_records_larger_than_the_buffer() -> None:
    check_records_larger_than(output.BUFFER_SIZE, "none", "invalid")


@pytest.mark.parametrize("size", [-2, -1, 0, 1, 2])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_record_that_just_fits_or_just_does_not(codec: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "BUFFER_SIZE", 10_000)
    for room in (320, 640, 1000):
        content = b"x" * ((10_000 - room) // 3 + size)
        records = [Rec(b"", content), Rec(content, b"", offset_delta=1), Rec(content, content, offset_delta=2)]
        Path(LOG).write_bytes(Batch(0, records, 2, CODECS[codec]).to_bytes())
        expected = "".join(line(record, offset) for offset, record in enumerate(records))
        assert record_lines("--print-data-log") == expected


@pytest.mark.parametrize("codec", sampled(("none", "lz4"), ("lz4",)))
def test_many_and_large_headers(codec: str) -> None:
    many = Rec(b"k", b"v", [(b"%d" % i, None) for i in range(100_000)])
    large = Rec(b"k", b"v", [(b"n" * MIB, b"v" * MIB), (b"\xff" * MIB, None), ("ß".encode() * MIB, b"")], 1)
    Path(LOG).write_bytes(Batch(0, [many, large], 1, CODECS[codec]).to_bytes())
    assert record_lines("--print-data-log") == line(many) + line(large, 1)


@pytest.mark.slow
@pytest.mark.parametrize("codec", sampled(("none", "gzip", "zstd"), ("zstd",)))
def test_a_batch_of_very_many_tiny_records(codec: str) -> None:
    count = 300_000
    stream = b"".join(record_bytes(Rec(None, b"", offset_delta=i)) for i in range(count))
    batch = Batch(7, range(count), count - 1, CODECS[codec], stream=compressed(CODECS[codec], stream))
    Path(LOG).write_bytes(batch.to_bytes())
    rc, stdout, stderr = answer(["--files", LOG, "--print-data-log"])
    assert (rc, stderr) == (0, f"Non-consecutive offsets in @BASE@/{LOG}\n  -1 is followed by 7\n")
    lines = stdout.split("\n")[3:-1]
    assert len(lines) == count
    metadata = f" CreateTime: {SOME_TIME} keySize: -1 valueSize: 0 sequence: -1 headerKeys: [] payload: "
    assert all(text == f"| offset: {offset}{metadata}" for offset, text in enumerate(lines, 7))


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_record_larger_than_a_buffer(magic: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "BUFFER_SIZE", 100_000)
    large = CONTENTS["invalid"] * 10_000
    timestamp = SOME_TIME if magic else -1
    Path(LOG).write_bytes(message_set(magic, [Message(0, timestamp, b"k", large)]))
    assert record_lines("--print-data-log").endswith(f" key: k payload: {java_utf8(large)}\n")


BOMBS: dict[str, tuple[Callable[[], bytes], list[str]]] = {
    "one record of zeros": (lambda: record_bytes(Rec(None, bytes(CAP))), ["--deep-iteration"]),
    "records of nothing": (lambda: bytes(CAP + 1), ["--print-data-log", "--format", "json"]),
    "very many tiny records": (lambda: record_bytes(Rec(None, b"")) * (CAP // 7 + 1), ["--key", "x"]),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("codec", "kind"),
    [*(("gzip", kind) for kind in BOMBS), *((codec, "very many tiny records") for codec in ("snappy", "lz4", "zstd"))],
)
def test_a_bomb_is_refused_with_one_error_that_names_the_cap(codec: str, kind: str) -> None:
    bomb, options = BOMBS[kind]
    stream = compressed(CODECS[codec], bomb())
    Path(LOG).write_bytes(Batch(0, range(2**31 - 1), 0, CODECS[codec], stream=stream).to_bytes())
    rc, _, stderr = answer(["--files", LOG, *options])
    assert rc == 1
    assert stderr.startswith(f"logstore: The record stream is larger than the cap of {CAP} bytes; ")
    assert stderr.count("\n") == 1
    assert answer(["--files", LOG])[0] == 0, "nothing is decompressed for batch lines"


def test_an_old_bomb_is_refused_too() -> None:
    wrapper = message(1, None, compressed(GZIP, bytes(CAP + 1)), timestamp=SOME_TIME, attributes=GZIP)
    Path(LOG).write_bytes(bytes(8) + len(wrapper).to_bytes(4, "big") + wrapper)
    rc, _, stderr = answer(["--files", LOG, "--deep-iteration"])
    assert rc == 1
    assert stderr.startswith(f"logstore: The record stream is larger than the cap of {CAP} bytes; ")
