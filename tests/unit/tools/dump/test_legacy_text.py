"""The dump's lines for magic 0 and 1, with what is printed before the tool dies."""

from __future__ import annotations

import io
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pytest

from logstore.errors import LogstoreError, SchemaError
from logstore_tools.dump.decoders import parsers
from logstore_tools.dump.findings import Findings, Gaps
from logstore_tools.dump.output import Output
from logstore_tools.dump.text import TextWriter
from logstore_tools.dump.walk import LogWalk
from tests.naive import legacy
from tests.naive.legacy import Message

# Written by Kafka's own MemoryRecordsBuilder, printed by its DumpLogSegments: key `k1`, value `v1`, LogAppendTime.
ENTRY = bytes.fromhex("00000000000000070000001a8028631401080000018bcfe56800000000026b31000000027631")
LINE = (
    b"offset: 7 position: 3 LogAppendTime: 1700000000000 size: 38 magic: 1 compresscodec: none crc: 2150130452 "
    b"isvalid: true\n"
)
METADATA = b"| offset: 7 LogAppendTime: 1700000000000 keySize: 2 valueSize: 2 isValid: true crc: 2150130452"


@dataclass
class Options:
    prints_contents: bool = False
    skips_metadata: bool = False
    parser: object = None
    is_deep: bool = True
    shows_batches: bool = True
    needs_python: bool = False
    is_record_table: bool = False
    format: str = "text"

    @staticmethod
    def key_decoder(data: bytes) -> str:
        return data.decode()

    @staticmethod
    def value_decoder(data: bytes) -> str:
        return data.decode()


class Offsets(Gaps):
    """The offsets that were told."""

    def __init__(self) -> None:
        super().__init__("0.log", Findings(lambda line: None))
        self.told: list[int] = []

    def note(self, offsets: npt.NDArray[np.int64]) -> None:
        self.told += offsets.tolist()


def printed(entry: bytes, options: Options) -> tuple[list[int], bytes, LogstoreError | None]:
    """Offsets, text and error of the entry."""
    stream, offsets, error = io.BytesIO(), Offsets(), None
    out, table = Output.to_stream(stream), SimpleNamespace(position=[3], size=[len(entry)])
    writer = TextWriter("0.log", options, out)  # type: ignore[arg-type]
    walk = LogWalk("0.log", np.frombuffer(b"pad" + entry, np.uint8), options, None, writer, offsets, Findings(print))  # type: ignore[arg-type]
    try:
        walk.write_entry(table, 0)  # type: ignore[arg-type]
    except LogstoreError as raised:
        error = raised
    out.flush()
    return offsets.told, stream.getvalue(), error


def batch_text(entry: bytes) -> tuple[bytes, LogstoreError | None]:
    return printed(entry, Options(is_deep=False))[1:]


def record_text(entry: bytes, options: Options) -> tuple[list[tuple[int, bytes]], LogstoreError | None]:
    offsets, text, error = printed(entry, options)
    lines = text.splitlines(keepends=True)[1:] or [b""]
    return list(zip(offsets, lines, strict=True)), error


def test_the_batch_line_is_kafkas() -> None:
    assert batch_text(ENTRY) == (LINE, None)


@pytest.mark.parametrize(("codec", "name"), [(1, b"gzip"), (2, b"snappy"), (3, b"lz4"), (4, b"zstd")])
def test_a_wrapper_names_its_codec(codec: int, name: bytes) -> None:
    text, error = batch_text(legacy.entry(0, legacy.message(0, None, b"", attributes=codec)))
    assert error is None
    assert b" NoTimestampType: -1 size: 26 magic: 0 compresscodec: " + name + b" crc: " in text


@pytest.mark.parametrize(
    ("magic", "attributes", "message"),
    [(1, 6, "Unknown compression type id: 6"), (-3, 0, "Invalid magic used in LegacyRecord: -3")],
)
def test_only_the_offset_is_printed_before_a_header_that_is_wrong(magic: int, attributes: int, message: str) -> None:
    text, error = batch_text(legacy.entry(9, legacy.message(magic, b"k", b"v", attributes=attributes)))
    assert text == b"offset: 9"
    assert (error.java_class, error.message) == ("java.lang.IllegalArgumentException", message)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (Options(), METADATA),
        (Options(prints_contents=True), METADATA + b" key: k1 payload: v1"),
        (Options(prints_contents=True, skips_metadata=True), b"| key: k1 payload: v1"),
        (Options(skips_metadata=True), b""),
        (
            Options(prints_contents=True, parser=lambda offset, key, value: (f"{offset}{key!r}", None)),
            METADATA + b" key: 7b'k1'",
        ),
    ],
)
def test_the_record_line_is_kafkas(options: Options, line: bytes) -> None:
    assert record_text(ENTRY, options) == ([(7, line + b"\n")], None)


def test_null_key_and_value_print_no_contents() -> None:
    entry = legacy.message_set(1, [Message(7, 5, None, None)])
    options = Options(prints_contents=True, skips_metadata=True)
    assert record_text(entry, options) == ([(7, b"\n")], None)


def test_the_metadata_stays_when_the_contents_do_not_decode() -> None:
    def refuse(data: bytes) -> str:
        raise SchemaError(None, java_class="java.nio.BufferUnderflowException")

    options = Options(prints_contents=True)
    options.value_decoder = refuse  # type: ignore[method-assign]
    lines, error = record_text(ENTRY, options)
    assert lines == [(7, METADATA)]
    assert error.java_class == "java.nio.BufferUnderflowException"


def test_a_size_that_cannot_be_read_leaves_no_line_but_the_offset_counts() -> None:
    entry = legacy.entry(7, legacy.message(1, b"k1", b"v1")[:16])
    lines, error = record_text(entry, Options())
    assert lines == [(7, b"")]
    assert error.java_class == "java.lang.IndexOutOfBoundsException"


def test_the_type_of_the_timestamp_is_the_batchs() -> None:
    inner = legacy.message_set(1, [Message(0, 1234, None, b"v")])
    wrapper = legacy.wrapped(0, [Message(0, 1234, None, b"v")])
    assert inner
    lines, error = record_text(wrapper, Options())
    assert error is None
    assert lines[0][1].startswith(b"| offset: 0 NoTimestampType: -1 ")


@pytest.mark.parametrize(
    ("parser", "contents"),
    [
        ("offsets", b" key: Error at offset 7, skipping. newLimit > capacity: (2 > 1)"),
        ("cluster-metadata", b" payload: Error at 7, skipping. newLimit > capacity: (2 > 1)"),
        ("remote-log-metadata", b" payload: Error at offset 7, skipping. newLimit > capacity: (2 > 1)"),
    ],
)
def test_a_parser_prints_that_the_value_is_cut(parser: str, contents: bytes) -> None:
    entry = legacy.entry(7, legacy.message(1, b"k1", b"v1")[:-1])
    ((_, line),), error = record_text(entry, Options(prints_contents=True, parser=parsers()[parser]))
    assert error is None
    assert line.endswith(contents + b"\n")


def test_a_missing_key_counts_more_than_a_cut_value() -> None:
    entry = legacy.entry(7, legacy.message(1, None, b"v1")[:-1])
    _, error = record_text(entry, Options(prints_contents=True, parser=parsers()["offsets"]))
    assert error.java_class == "java.lang.RuntimeException"
