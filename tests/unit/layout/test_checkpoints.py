"""Small text files: checkpoints, partition.metadata, meta.properties, quorum-state, the clean shutdown marker."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from functools import partial

import pytest

from logstore.errors import CheckpointFormatError
from logstore.layout.java_properties import parse_properties
from logstore.layout.kafka_uuid import format_uuid, parse_uuid
from logstore.layout.leader_epoch_checkpoint import parse_leader_epoch_checkpoint
from logstore.layout.meta_properties import MetaProperties, parse_meta_properties
from logstore.layout.offset_checkpoint import parse_offset_checkpoint
from logstore.layout.partition_metadata import PartitionMetadata, parse_partition_metadata
from logstore.layout.quorum_state import QuorumState, parse_quorum_state

TOPIC_ID = b"dqEnd-x7SkKckvU0_kJgLQ"
IO_EXCEPTION = "java.io.IOException"
RUNTIME_EXCEPTION = "java.lang.RuntimeException"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
NUMBER_FORMAT = "java.lang.NumberFormatException"

offsets = partial(parse_offset_checkpoint, path="/d/c")
epochs = partial(parse_leader_epoch_checkpoint, path="/d/c")
metadata = partial(parse_partition_metadata, path="/d/p")
quorum = partial(parse_quorum_state, path="/d/q")


def test_a_checkpoint_is_read_however_its_lines_end_and_its_fields_part() -> None:
    assert offsets(b"0\n2\na 0 5\nb\t1  +7\n") == {("a", 0): 5, ("b", 1): 7}
    assert offsets(b"0\r\n1\ra 0 5") == {("a", 0): 5}
    assert offsets(b"0\n2\na 0 5\na 0 6") == {("a", 0): 6}
    assert epochs(b"0\n2\n0 0\n2 18 \n") == [(0, 0), (2, 18)]


@pytest.mark.parametrize("data", [b"", b"0\n", b"0\n0\n"])
def test_a_checkpoint_without_entries_is_empty(data: bytes) -> None:
    assert offsets(data) == {}
    assert epochs(data) == []


@pytest.mark.parametrize(
    ("parse", "data", "java_class", "text"),
    [
        (offsets, b"1\n", IO_EXCEPTION, "Unrecognised version:1, expected version: 0 in checkpoint file at: /d/c"),
        (offsets, b"0 \n", IO_EXCEPTION, "Malformed line in checkpoint file [/d/c]: 0 "),
        (offsets, b"0\nx\n", IO_EXCEPTION, "Malformed line in checkpoint file [/d/c]: x"),
        (offsets, b"0\n1\na 0\n", IO_EXCEPTION, "Malformed line in checkpoint file [/d/c]: a 0"),
        (offsets, b"0\n1\n a 0 1\n", IO_EXCEPTION, "Malformed line in checkpoint file [/d/c]:  a 0 1"),
        (offsets, b"0\n2\na 0 1\n", IO_EXCEPTION, "Expected [2] entries in checkpoint file [/d/c], but found only [1]"),
        (offsets, b"0\n0\na 0 1\n", IO_EXCEPTION, "Expected [0] entries in checkpoint file [/d/c], but found only [1]"),
        (offsets, b"0\n-1\n", ILLEGAL_ARGUMENT, "Illegal Capacity: -1"),
        (offsets, b"0\n1\na b 1\n", NUMBER_FORMAT, 'For input string: "b"'),
        (offsets, b"0\n1\na 2147483648 1\n", NUMBER_FORMAT, 'For input string: "2147483648"'),
        (offsets, b"0\n1\na 0 \xff\n", "java.nio.charset.MalformedInputException", "Input length = 1"),
        (epochs, b"0\n1\n1 2 3\n", IO_EXCEPTION, "Malformed line in checkpoint file [/d/c]: 1 2 3"),
        (epochs, b"0\n1\n1 x\n", NUMBER_FORMAT, 'For input string: "x"'),
        (metadata, b"version: x\n", IO_EXCEPTION, "Malformed line in partition metadata file [/d/p]: version: x"),
        (metadata, b"version 0\n", IO_EXCEPTION, "Malformed line in partition metadata file [/d/p]: version 0"),
        (metadata, b"version: -1\n", IO_EXCEPTION, "Unrecognized version of partition metadata file (/d/p): -1"),
        (metadata, b"version: 0\nid\n", IO_EXCEPTION, "Malformed line in partition metadata file [/d/p]: id"),
        (metadata, b"version: 0", "java.lang.NullPointerException", None),
        (metadata, b"v: 0\nid: " + b"A" * 22, IO_EXCEPTION, "Invalid topic ID in partition metadata file (/d/p)"),
        (metadata, b"v: 0\nid: A/", ILLEGAL_ARGUMENT, "Illegal base64 character 2f"),
        (parse_meta_properties, b"version=2", RUNTIME_EXCEPTION, "Unknown meta.properties version number 2"),
        (parse_meta_properties, b"version=x", RUNTIME_EXCEPTION, "Invalid meta.properties version string 'x'"),
        (parse_meta_properties, b"version=1", RUNTIME_EXCEPTION, "Failed to find node.id"),
        (parse_meta_properties, b"version=1\nnode.id=1", RUNTIME_EXCEPTION, "cluster.id was not found."),
        (parse_meta_properties, b"broker.id=x", RUNTIME_EXCEPTION, "Unable to read broker.id as a base-10 number."),
        (
            parse_meta_properties,
            b"directory.id=AAAA",
            RUNTIME_EXCEPTION,
            "Unable to read directory.id as a Uuid: Input string `AAAA` decoded as 3 bytes, which is not equal to the "
            "expected 16 bytes of a base64-encoded UUID",
        ),
        (parse_properties, rb"a=\u12x4", ILLEGAL_ARGUMENT, r"Malformed \uxxxx encoding."),
        (
            quorum,
            b"[]",
            "java.io.UncheckedIOException",
            "Error while reading the Quorum status from the file /d/q",
        ),
        (
            quorum,
            b'{"data_version":2}',
            "java.lang.IllegalStateException",
            "data_version (2) is not within the min (0) and max (1) supported version",
        ),
        (
            quorum,
            b'{"leaderId":1,"data_version":1}',
            RUNTIME_EXCEPTION,
            "QuorumStateData: unable to locate field 'leaderEpoch', which is mandatory in version 1",
        ),
    ],
)
def test_a_damaged_file_is_named_as_by_kafka(
    parse: Callable[[bytes], object], data: bytes, java_class: str, text: str | None
) -> None:
    with pytest.raises(CheckpointFormatError) as caught:
        parse(data)
    assert (caught.value.java_class, caught.value.message) == (java_class, text)


def test_partition_metadata_is_read_with_and_without_a_last_newline() -> None:
    expected = PartitionMetadata(0, TOPIC_ID.decode())
    assert metadata(b"version: 0\ntopic_id: " + TOPIC_ID) == expected
    assert metadata(b"version: 0\ntopic_id:\t" + TOPIC_ID + b"==\nmore\n") == expected


def test_meta_properties_of_both_versions_are_parsed() -> None:
    directory_id = TOPIC_ID.decode()
    data = b"#\n#Sat Nov 21\nnode.id=1\ndirectory.id=" + TOPIC_ID + b"\nversion=1\ncluster.id=c\nother=x\n"
    assert parse_meta_properties(data) == MetaProperties(1, "c", 1, directory_id)
    assert parse_meta_properties(b"version= 0 \nbroker.id=7\n") == MetaProperties(0, None, 7, None)
    assert parse_meta_properties(b"") == MetaProperties(0, None, None, None)


def test_properties_are_parsed_with_everything_that_java_allows() -> None:
    data = b"! no\r  a\\=b : c\\\r\n\t d\\\\\n\\u00e9\\tx y=\xe9\nlone\nz==1\na\\=b=last\n\\"
    assert parse_properties(data) == {"a=b": "last", "é\tx": "y=é", "lone": "", "z": "=1", "": ""}


def test_a_huge_key_takes_little_more_memory_than_its_bytes() -> None:
    data = b"a" * 1_000_000 + b"\\:" * 10_000
    tracemalloc.start()
    try:
        assert [*map(len, parse_properties(data))] == [1_010_000]
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


def test_quorum_state_of_both_versions_is_parsed() -> None:
    static = (
        b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1},{"voterId":3}],"data_version":0}'
    )
    assert quorum(static) == QuorumState(0, 1, 2, -1, None, (1, 3))
    dynamic = b'{"leaderId":-1,"leaderEpoch":5,"votedId":3,"votedDirectoryId":"%s","data_version":1}' % TOPIC_ID
    assert quorum(dynamic + b"\nmore") == QuorumState(1, -1, 5, 3, TOPIC_ID.decode(), ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A", "Input byte[] should at least have 2 bytes for base64 bytes"),
        ("A" * 25, "Input string with prefix `AAAAAAAAAAAAAAAAAAAAAAAA` is too long to be decoded as a base64 UUID"),
        ("AAAAA", "Last unit does not have enough valid bits"),
        ("AAAA=", "Input byte array has wrong 4-byte ending unit"),
        ("AA=", "Input byte array has wrong 4-byte ending unit"),
        ("AAA=A", "Input byte array has incorrect ending byte at 4"),
        ("AAé", "Illegal base64 character -17"),
    ],
)
def test_text_that_is_no_uuid_is_named_as_by_java(text: str, message: str) -> None:
    with pytest.raises(CheckpointFormatError) as caught:
        parse_uuid(text)
    assert caught.value.message == message


def test_a_uuid_is_written_as_it_is_read() -> None:
    assert parse_uuid("dqEnd-x7SkKckvU0_kJgLQ==") == parse_uuid(TOPIC_ID.decode())
    assert format_uuid(parse_uuid("__________-__________w")) == "__________-__________w"
