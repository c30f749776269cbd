"""Names of segments, snapshots and partition directories, and numbers as Java reads them."""

from __future__ import annotations

import pytest

from logstore.errors import InvalidNameError
from logstore.layout.file_names import (
    LOG_SUFFIX,
    DirectoryKind,
    KraftSnapshotName,
    PartitionDirectory,
    base_offset_of,
    foreign_directory_text,
    parse_kraft_snapshot_name,
    parse_partition_directory,
    segment_file_name,
)
from logstore.layout.java_integer import parse_int, parse_long


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", None),
        ("+007", 7),
        ("٣９", 39),
        ("\N{MATHEMATICAL DOUBLE-STRUCK DIGIT ONE}", None),
        ("-", None),
        ("--1", None),
        ("1e3", None),
        ("0" * 4000 + "1", 1),
        ("0" * 5000 + "1", None),
    ],
)
def test_a_number_is_what_java_takes_for_one(text: str, value: int | None) -> None:
    assert parse_long(text) == value


def test_an_int_has_32_bits() -> None:
    assert (parse_int("2147483647"), parse_int("2147483648"), parse_int("-2147483648")) == (2**31 - 1, None, -(2**31))


def test_a_base_offset_is_the_number_before_the_first_dot() -> None:
    assert base_offset_of("00000000000000000320.log.deleted") == 320
    assert base_offset_of("-5.index") == -5
    assert segment_file_name(2**63 - 1, LOG_SUFFIX) == "09223372036854775807.log"
    with pytest.raises(InvalidNameError) as caught:
        base_offset_of("leader-epoch-checkpoint.log")
    assert caught.value.java_class == "java.lang.NumberFormatException"
    assert caught.value.message == 'For input string: "leader-epoch-checkpoint"'


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("t-0", ("t", 0, DirectoryKind.LIVE)),
        ("my-topic.x-12", ("my-topic.x", 12, DirectoryKind.LIVE)),
        ("t-+1", ("t", 1, DirectoryKind.LIVE)),
        ("--1", ("-", 1, DirectoryKind.LIVE)),
        ("t-0.abc-delete", ("t", 0, DirectoryKind.DELETE)),
        ("t.u-3.ab.c-future", None),
        ("t-3.abc-future", ("t", 3, DirectoryKind.FUTURE)),
        ("a-b-3.a-c-stray", ("a-b", 3, DirectoryKind.STRAY)),
        ("t", None),
        ("t-", None),
        ("-1", None),
        ("t-x", None),
        ("t-2147483648", None),
        ("t-0-delete", None),
        ("t-0.-delete", None),
        ("t 0-0.abc-delete", None),
        ("t-.abc-delete", None),
        ("-3.abc-delete", None),
        ("remote-log-index-cache", None),
    ],
)
def test_a_directory_is_of_a_partition_or_not(name: str, expected: tuple[str, int, DirectoryKind] | None) -> None:
    assert parse_partition_directory(name) == (None if expected is None else PartitionDirectory(*expected))


def test_a_foreign_directory_is_named_as_by_kafka() -> None:
    assert foreign_directory_text("x", "/data/x") == (
        "Found directory /data/x, 'x' is not in the form of topic-partition or topic-partition.uniqueId-delete (if "
        "marked for deletion).\nKafka's log directories (and children) should only contain Kafka topic data."
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000000042-0000000003.checkpoint", KraftSnapshotName(42, 3, False, False)),
        ("00000000000000000042_0000000003-77.checkpoint.part", KraftSnapshotName(42, 3, True, False)),
        ("00000000000000000042-0000000003.checkpoint.deleted", KraftSnapshotName(42, 3, False, True)),
        ("00000000000000000042.log", None),
    ],
)
def test_a_kraft_snapshot_says_its_end_and_epoch(name: str, expected: KraftSnapshotName | None) -> None:
    assert parse_kraft_snapshot_name(name) == expected


@pytest.mark.parametrize(
    ("name", "java_class", "text"),
    [
        ("bootstrap.checkpoint", "java.lang.NumberFormatException", 'For input string: "bootstrap.checkpoint"'),
        ("1.checkpoint", "java.lang.StringIndexOutOfBoundsException", "begin 0, end 20, length 12"),
        ("00000000000000000042.checkpoint", "java.lang.NumberFormatException", 'For input string: "checkpoint"'),
        (
            "000000000.checkpoint",
            "java.lang.NumberFormatException",
            'For input string: "000000000.checkpoint"',
        ),
        (
            "00000000000000000042-.checkpoint"[1:],
            "java.lang.NumberFormatException",
            'For input string: "0000000000000000042-"',
        ),
    ],
)
def test_another_checkpoint_is_refused_as_by_java(name: str, java_class: str, text: str) -> None:
    with pytest.raises(InvalidNameError) as caught:
        parse_kraft_snapshot_name(name)
    assert (caught.value.java_class, caught.value.message) == (java_class, text)
