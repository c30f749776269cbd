"""The library's readers take URLs."""

from __future__ import annotations

import time
from operator import attrgetter
from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore.audit.directory_audit import audit_directory
from logstore.disk import objects, paths
from logstore.errors import UsageError
from logstore.view.partition_reader import PartitionReader
from logstore_tools.commands import logstore as command_line
from tests.support.golden import Golden
from tests.support.object_store import ObjectStore

NOW_MS = 1_760_000_000_000


@pytest.mark.parametrize("isolation_level", ["read_committed", "read_uncommitted"])
def test_a_store_reads_the_records_of_the_copy(
    isolation_level: str, store: ObjectStore, demo: str, golden: Golden
) -> None:
    found, expected = (
        [
            (record.topic, record.partition, record.offset, record.key, record.value, record.timestamp)
            for topic in ("orders", "payments")
            for record in opened.read(topic, isolation_level=isolation_level)
        ]
        for opened in (logstore.open(place, read_only=True) for place in (demo, str(golden("demo"))))
    )
    assert found == expected
    assert len(found) > 10


def test_a_store_of_a_url_has_the_topics_of_the_copy(store: ObjectStore, demo: str, golden: Golden) -> None:
    found, expected = (logstore.open(place, read_only=True) for place in (demo, golden("demo")))
    assert dict(found.topics) == dict(expected.topics)
    assert found.properties == expected.properties


def test_a_url_that_was_not_there_is_asked_for_again(store: ObjectStore, demo: str, golden: Golden) -> None:
    with pytest.raises(UsageError, match="There is no such directory"):
        logstore.audit("s3://logs/later")
    store.put_all(golden("demo"), "later")
    assert logstore.audit("s3://logs/later").audited.partition_count == logstore.audit(demo).audited.partition_count


def test_a_reader_sees_segments_that_were_added(store: ObjectStore, golden: Golden) -> None:
    directory = golden("demo") / "orders-0"
    logs = sorted(directory.glob("*.log"))
    for path in (path for path in directory.iterdir() if path.name < logs[-1].name):
        store.put(f"growing/orders-0/{path.name}", path.read_bytes())
    reader = PartitionReader("s3://logs/growing/orders-0")
    before = reader.log_end_offset
    store.put_all(directory, "growing/orders-0")
    reader.refresh()
    assert before < reader.log_end_offset == PartitionReader(str(directory)).log_end_offset


def test_an_audit_of_a_url_finds_what_it_finds_in_the_copy(store: ObjectStore, demo: str, golden: Golden) -> None:
    found, expected = (audit_directory(place, NOW_MS) for place in (demo, str(golden("demo"))))
    read = attrgetter("segment_count", "batch_count", "size", "log_end_offset", "is_end_known", "producer_id")
    assert [read(one.evidence) for one in found.partitions] == [read(one.evidence) for one in expected.partitions]
    assert found.findings == expected.findings


def test_a_sample_of_a_url_is_a_sample_of_the_copy(
    store: ObjectStore, demo: str, golden: Golden, tmp_path: Path
) -> None:
    for name, place in (("url", demo), ("copy", golden("demo"))):
        words = ["sample", f"{place}/orders-0", str(tmp_path / name), "--batches", "5", "--now", str(NOW_MS)]
        result = CliRunner().invoke(command_line, words, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    logs = [sorted((tmp_path / name).rglob("*.log")) for name in ("url", "copy")]
    assert [path.read_bytes() for path in logs[0]] == [path.read_bytes() for path in logs[1]]
    assert logs[0]


@pytest.mark.parametrize("name", ["topics", "segments", "groups", "producers", "verify", "audit", "dump"])
def test_a_function_answers_of_a_url_as_of_the_copy(name: str, store: ObjectStore, demo: str, golden: Golden) -> None:
    local, function = str(golden("demo")), getattr(logstore, name)
    found, expected = (list(map(str, function(place))) for place in (demo, local))
    assert [row.replace(demo, local) for row in found] == expected
    assert expected or name in ("verify", "audit")


def test_a_url_is_not_opened_for_writing() -> None:
    with pytest.raises(UsageError, match="cannot be written; at s3://logs/demo; open it with read_only=True"):
        logstore.open("s3://logs/demo")


def test_an_object_has_the_time_at_which_it_was_written(store: ObjectStore, demo: str) -> None:
    day_s = 86_400
    status = objects.stat(f"{demo}/meta.properties")
    assert abs(status.st_mtime_ns / 1e9 - time.time()) < day_s


def test_a_listing_is_of_the_store_that_the_options_name(store: ObjectStore) -> None:
    store.put("named/one", b"1")
    assert [entry.name for entry in paths.scan("s3://logs/named")] == ["one"]
    store.put("named/two", b"2")  # as of another store: the server has but one bucket
    objects.configure({"aws_region": "eu-west-1"})
    assert paths.exists("s3://logs/named/two")


def test_the_endpoint_of_s3_alone_may_be_without_tls(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", store.endpoint)
    store.put("endpoint/x", b"1")
    assert [entry.name for entry in paths.scan("s3://logs/endpoint")] == ["x"]
