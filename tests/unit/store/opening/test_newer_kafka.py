"""Directories of a Kafka newer than any known here: what is known is read with a warning, nothing is written."""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore.audit.directory_audit import audit_directory
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import DataDirectoryError
from logstore.messages.reader import UNKNOWN_TAGGED_FIELDS
from logstore.topics.cluster_metadata import encode_value
from logstore.topics.consumer_offsets import OffsetKey, encode_key
from logstore_tools.commands import logstore as command
from logstore_tools.takeover.inspection import inspect
from tests.support.stores import append_metadata, contents, open_store

LEVEL = encode_value("FeatureLevelRecord", {"name": "metadata.version", "featureLevel": 34})
SHARE = encode_value("FeatureLevelRecord", {"name": "share.version", "featureLevel": 3})
TYPE = bytes.fromhex("01 28 00 05 01 02 03 00")  # of type 40
TOPIC = {"name": "later", "topicId": "dqEnd-x7SkKckvU0_kJgLQ"}
NEWER_TOPIC = bytearray(encode_value("TopicRecord", TOPIC))
NEWER_TOPIC[2] = 1  # its version
TAG = encode_value("TopicRecord", {**TOPIC, UNKNOWN_TAGGED_FIELDS: [(7, b"new")]})
BROKEN = bytes(NEWER_TOPIC) + b"of another form"
OF_LOST = encode_value("PartitionRecord", {"topicId": TOPIC["topicId"], "partitionId": 0})

CASES = {
    "level": ([LEVEL], "level 34", {"orders"}),
    "feature": ([SHARE], "share.version of level 3", {"orders"}),
    "type": ([TYPE], "1 metadata record is not known here", {"orders"}),
    "version": ([bytes(NEWER_TOPIC)], "1 metadata record is not known here", {"orders", "later"}),
    "tag": ([TAG, TYPE], "2 metadata records are not known here", {"orders", "later"}),
    "form": ([LEVEL, BROKEN, OF_LOST], "level 34, 1 metadata record is not known here", {"orders"}),
}
EVERY = pytest.mark.parametrize("case", CASES)


def written(root: Path, *values: bytes) -> Path:
    with logstore.open(root, config={"offsets.topic.num.partitions": 1}) as store:
        store.create_topic("orders")
        with store.producer() as producer:
            producer.send("orders", b"paid")
        store.groups.commit(ConsumerGroupMetadata("g"), {("orders", 0): OffsetAndMetadata(1)})
    if values:
        append(root, *values)
    return root


def append(root: Path, *values: bytes) -> None:
    """Add to the metadata log, as a process that was killed then."""
    append_metadata(root, *values)
    (root / ".kafka_cleanshutdown").unlink()


@EVERY
def test_it_is_read_with_one_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture, case: str) -> None:
    values, sign, topics = CASES[case]
    root = written(tmp_path, *values)
    with caplog.at_level(logging.WARNING, "logstore"), logstore.open(root, read_only=True) as store:
        store.refresh()
        assert set(store.topics) == {*topics, "__consumer_offsets"}
        assert [record.value for record in store.read("orders")] == [b"paid"]
    assert caplog.messages == [f"{root} was written by a newer Kafka ({sign}); the rest of it is read"]


@EVERY
def test_nothing_is_written(tmp_path: Path, case: str) -> None:
    values, sign, _ = CASES[case]
    root = written(tmp_path, *values)
    before = contents(root)
    for opened in (lambda path: inspect(str(path)), logstore.open, open_store):
        with pytest.raises(DataDirectoryError, match=re.escape(f"written by a newer Kafka ({sign.split(',')[0]}")):
            opened(root)
    assert contents(root) == before
    for words in (["import"], ["promote"], ["features"]):
        done = CliRunner().invoke(command, [words[0], str(root), *words[1:]])
        assert (done.exit_code == 0) == (words == ["features"]), done.output
    assert contents(root) == before


@EVERY
def test_it_is_audited_and_listed_with_one_finding(tmp_path: Path, case: str) -> None:
    values, sign, topics = CASES[case]
    root = written(tmp_path, *values)
    (finding,) = audit_directory(str(root), 0).findings
    assert (finding.rule, finding.severity.value) == ("newer-kafka", "warning")
    assert finding.found == f"written by a newer Kafka ({sign})"
    listed: list[Callable[[Path], object]] = [logstore.topics, logstore.groups, logstore.producers]
    for listing in listed:
        rows = listing(root)
        (problem,) = rows.problems  # type: ignore[attr-defined]
        assert problem.rule == "newer-kafka"
    assert {row.topic for row in logstore.topics(root)} == {*topics, "__consumer_offsets", "__cluster_metadata"}
    assert [row.group_id for row in logstore.groups(root)] == ["g"]
    for verb in ("audit", "topics", "groups"):
        said = CliRunner().invoke(command, [verb, str(root)])
        assert (said.exit_code, said.output.count("written by a newer Kafka")) == (1, 1), said.output


def test_what_a_record_left_out_may_have_made_is_not_unknown(tmp_path: Path) -> None:
    root = written(tmp_path, BROKEN, OF_LOST)
    shutil.copytree(root / "orders-0", root / "later-0")
    metadata = (root / "later-0" / "partition.metadata").read_text()
    (root / "later-0" / "partition.metadata").write_text(
        re.sub("topic_id: .*", f"topic_id: {TOPIC['topicId']}", metadata)
    )
    (root / "later-0" / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    assert [one.rule for one in audit_directory(str(root), 0).findings] == ["newer-kafka"]


def test_a_record_of_a_coordinator_is_told_where_nothing_else_tells(tmp_path: Path) -> None:
    for number, (key, value) in enumerate(
        [(b"\x00\x63newer", b"\x00\x00"), (encode_key(OffsetKey("g", "orders", 0)), b"\x00\x09newer")]
    ):
        root = written(tmp_path / str(number))
        with logstore.open(root) as store:
            store.log("__consumer_offsets", 0).append_records([value, value], [key, key])
        (finding,) = audit_directory(str(root), 0).findings
        assert (finding.rule, finding.where.topic) == ("newer-kafka", "__consumer_offsets")
        append(root, LEVEL)
        (finding,) = audit_directory(str(root), 0).findings
        assert (finding.rule, finding.where.topic) == ("newer-kafka", "__cluster_metadata")


def test_text_in_the_place_of_a_type_is_no_newer_kafka(tmp_path: Path) -> None:
    root = written(tmp_path)
    with logstore.open(root) as store:
        store.log("__consumer_offsets", 0).append_records([b"value"], [b"key"])
    (finding,) = audit_directory(str(root), 0).findings
    assert finding.rule == "internal-record"


@pytest.mark.parametrize(("values", "count"), [([LEVEL, LEVEL], 1), ([SHARE, TYPE], 0), ([], 0)])
def test_a_dump_tells_of_a_newer_level_on_stderr(tmp_path: Path, values: list[bytes], count: int) -> None:
    root = written(tmp_path, *values)
    log = str(root / "__cluster_metadata-0" / f"{0:020d}.log")
    for words in ([], ["--format", "json"]):
        said = CliRunner().invoke(command, ["dump", "--cluster-metadata-decoder", *words, "--files", log])
        assert said.exit_code == 0
        assert said.stderr.count("written by a newer Kafka (level 34)") == count
        assert "written by" not in said.stdout
