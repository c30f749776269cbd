"""The inspecting commands on directories that brokers wrote: what they print for people and for programs."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
from functools import cached_property
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from logstore.audit import answers
from logstore.audit.checks import RULES
from logstore.audit.cluster import Cluster
from logstore.audit.evidence import Evidence
from logstore.audit.partition import open_partition
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata, commit_records, encode_records
from logstore.kernels.scan.crc32c import crc32c
from logstore.model import TopicPartition
from logstore.rows.schema import iso_text
from logstore.view.partition_reader import PartitionReader
from logstore_tools import about_commands, diff_command, listing_commands, txns_command
from logstore_tools.check_commands import audit, verify
from logstore_tools.commands import COMMANDS, logstore
from logstore_tools.paths import input_paths, place_of
from tests.support.audit_faults import FAULTS, ROLLED
from tests.support.audit_story_faults import FAULTS as STORIES
from tests.support.audit_story_faults import clean
from tests.support.golden import Golden
from tests.support.stores import FEW_PARTITIONS, open_store

LATER_MS = 1_795_246_963_000 + 3_600_000  # an hour after the golden directory `demo` was written


def asked(command: click.Command, *words: object) -> list[dict[str, Any]]:
    """What the command answers in JSON."""
    result = CliRunner().invoke(command, [*map(str, words), "--format", "jsonl"], catch_exceptions=False)
    return [json.loads(line) for line in result.output.splitlines()]


def printed(command: click.Command, *words: object) -> str:
    """What the command prints, and exits with 0."""
    result = CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_groups_count_offsets_and_records(golden: Golden) -> None:
    rows = {(row["topic"], row["partition"]): row for row in asked(listing_commands.groups, golden("demo"))}
    orders = rows["orders", 0]
    assert (orders["groupId"], orders["offset"], orders["lag"], orders["recordLag"]) == ("copiers", 3, 35, 15)
    assert orders["producerId"] == 3  # committed in a transaction
    text = printed(listing_commands.groups, golden("demo")).splitlines()
    assert text[0].split()[:2] == ["group", "partition"]
    assert text[1].split()[:5] == ["copiers", "orders-0", "3", "35", "15"]


def test_a_lost_partition_of_a_coordinator_is_told(tmp_path: Path) -> None:
    with open_store(tmp_path, config=FEW_PARTITIONS) as store:
        store.create_topic("orders")
        store.groups.commit(ConsumerGroupMetadata("readers"), {("orders", 0): OffsetAndMetadata(0)})
        lost = f"__consumer_offsets-{store.groups.partition_of('readers')}"
    shutil.rmtree(tmp_path / lost)
    result = CliRunner().invoke(listing_commands.groups, [str(tmp_path)])
    assert (result.exit_code, f"expected a directory {lost}" in result.stderr) == (1, True), result.stderr


def test_offsets_of_an_open_transaction_are_listed(tmp_path: Path) -> None:
    with open_store(tmp_path, config=FEW_PARTITIONS) as store:
        store.create_topic("orders")
        store.groups.commit(ConsumerGroupMetadata("known"), {("orders", 0): OffsetAndMetadata(4)})
        producer = store.producer(transactional_id="x")
        producer.init_transactions()
        producer.begin_transaction()
        for group in ("known", "new"):
            producer.send_offsets_to_transaction({("orders", 0): 7}, group)
        rows = asked(listing_commands.groups, tmp_path)
        names = "groupId", "offset", "producerId", "commitTimestamp", "pendingOffset", "pendingProducerId"
        held = 7, store.transactions.describe("x").producer_id
        known, new = ([row.get(name) for name in names] for row in rows)
        assert (known[:3], known[4:]) == (["known", 4, None], [*held])
        assert new == ["new", -1, None, None, *held]
        producer.abort_transaction()
        assert [row["pendingOffset"] for row in asked(listing_commands.groups, tmp_path)] == [None]


@pytest.mark.parametrize("step", [1, 2])
def test_a_group_in_two_partitions_has_what_its_coordinator_knows(tmp_path: Path, step: int) -> None:
    """As after partitions were added to the topic (KIP-895): what came in the highest one was listed."""
    with open_store(tmp_path, config=FEW_PARTITIONS | {"offsets.topic.num.partitions": 3}) as store:
        store.create_topic("orders")
        store.groups.commit(ConsumerGroupMetadata("readers"), {("orders", 0): OffsetAndMetadata(4)})
        right = store.groups.partition_of("readers")
        commits = commit_records("readers", {TopicPartition("orders", 0): OffsetAndMetadata(9)}, now_ms=5)
        [(key, value)] = encode_records(commits)
        store.log("__consumer_offsets", (right + step) % 3).append_records([value], keys=[key])
    result = CliRunner().invoke(listing_commands.groups, [str(tmp_path), "--format", "jsonl"])
    assert (result.exit_code, "internal-partition" in result.stderr) == (1, True), result.stderr
    row = json.loads(result.stdout)
    assert (row["groupId"], row["offset"]) == ("readers", 4)


@pytest.mark.parametrize("words", [["txns", "list"], ["producers"]], ids=" ".join)
def test_rows_of_several_data_directories_tell_which(words: list[str], golden: Golden, tmp_path: Path) -> None:
    roots = [golden("demo"), shutil.copytree(golden("demo"), tmp_path / "other")]
    result = CliRunner().invoke(logstore, [*words, *map(str, roots), "--format", "jsonl"])
    assert {Path(json.loads(line)["path"]).parent for line in result.stdout.splitlines()} == set(roots)
    tables = CliRunner().invoke(logstore, [*words, *map(str, roots)]).stdout.split("\n\n")
    assert [(*table.split()[:2],) for table in tables] == [(f"{root}:", "partition") for root in roots]


def two_directories(demo: Path, place: Path) -> tuple[Path, Path]:
    """A copy as a broker with two `log.dirs` has it: coordinators and the metadata log lie in the first."""
    first, second = shutil.copytree(demo, place / "1"), place / "2"
    second.mkdir()
    for name in ("orders-0", "payments-0"):
        shutil.move(first / name, second / name)
    ids = (first / "meta.properties").read_text()
    (second / "meta.properties").write_text(re.sub("directory.id=.*", "directory.id=AAAAAAAAAAAAAAAAAAAABB", ids))
    return first, second


def test_coordinators_in_another_directory_of_the_broker_are_asked(golden: Golden, tmp_path: Path) -> None:
    def verdicts(*roots: Path) -> list[str]:
        return [row["verdict"] for row in asked(txns_command.list_, *roots, "--now", str(LATER_MS))]

    first, second = two_directories(golden("demo"), tmp_path)
    assert verdicts(second) == ["unknown"] * 2
    assert verdicts(first, second) == verdicts(second / "orders-0", first) * 2 == verdicts(golden("demo"))
    (why,) = answers.explain(second / "orders-0", beside=[first], now_ms=LATER_MS)
    listed = answers.transactions(second, beside=[first], now_ms=LATER_MS)
    assert why.blocking in list(listed)
    assert [row.verdict for row in listed] == verdicts(golden("demo"))
    copied = shutil.copytree(first, tmp_path / "3")  # of another time, perhaps
    assert verdicts(second, first, copied) == ["unknown"] * 2


@pytest.mark.parametrize("words", ["groups", "topics", "producers"])
def test_several_directories_of_a_broker_count_as_one(words: str, golden: Golden, tmp_path: Path) -> None:
    def listed(*roots: Path) -> list[dict[str, Any]]:
        rows = asked(getattr(listing_commands, words), *roots)
        return sorted(({**row, "path": Path(row.get("path", "")).name} for row in rows), key=str)

    first, second = two_directories(golden("demo"), tmp_path)
    assert listed(first, second) == listed(second, first) == listed(golden("demo")) not in (listed(first), [])
    shutil.move(first / "recovery-point-offset-checkpoint", second)
    shutil.rmtree(first / "__consumer_offsets-1")
    told = CliRunner().invoke(getattr(listing_commands, words), [str(first), str(second)]).stderr
    assert ("expected a directory __consumer_offsets-1, found none" in told) == (words == "groups")


@pytest.mark.parametrize("words", ["groups", "topics"])
def test_directories_of_several_brokers_are_not_listed_as_one(words: str, golden: Golden, tmp_path: Path) -> None:
    first, second = two_directories(golden("demo"), tmp_path)
    copied, other = (shutil.copytree(second, tmp_path / name) for name in "34")
    ids = (other / "meta.properties").read_text()
    (other / "meta.properties").write_text(ids.replace("node.id=1", "node.id=2"))
    for roots in ([first, other], [first, second, copied]):
        result = CliRunner().invoke(logstore, [words, *map(str, roots)])
        assert (result.exit_code, f"same broker; at {roots[1]};" in result.stderr) == (2, True), result.stderr


def test_producers_are_named_by_their_transactional_ids(golden: Golden) -> None:
    rows = asked(listing_commands.producers, golden("demo") / "orders-0")
    still_open = next(row for row in rows if row["currentTxnFirstOffset"] is not None)
    assert (still_open["transactionalId"], still_open["currentTxnFirstOffset"]) == ("left-open", 34)
    everywhere = asked(listing_commands.producers, golden("demo"))
    assert {row["topic"] for row in everywhere} == {"orders", "payments", "__consumer_offsets"}
    assert "left-open" in printed(listing_commands.producers, golden("demo") / "orders-0")


def test_producers_of_a_stray_directory_are_not_the_partitions(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    stray = shutil.copytree(root / "orders-0", root / f"orders-0.{'0123456789abcdef' * 2}-stray")
    assert {row["path"] for row in asked(listing_commands.producers, root / "orders-0")} == {str(root / "orders-0")}
    assert {row["path"] for row in asked(listing_commands.producers, stray)} == {str(stray)}
    places = {row["path"] for row in asked(listing_commands.producers, root) if row["topic"] == "orders"}
    assert {str(root / "orders-0"), str(stray)} <= places
    assert stray.name in printed(listing_commands.producers, root)


def test_topics_have_ids_and_configurations(golden: Golden) -> None:
    rows = {row["topic"]: row for row in asked(listing_commands.topics, golden("demo"))}
    assert rows["payments"]["config"] == {"index.interval.bytes": "100"}
    assert rows["__transaction_state"]["partitionCount"] == 2
    metadata = (golden("demo") / "orders-0" / "partition.metadata").read_text()
    assert rows["orders"]["topicId"] == metadata.split()[-1]
    assert "index.interval.bytes=100" in printed(listing_commands.topics, golden("demo"))


def test_topics_without_a_metadata_log_have_the_ids_of_their_directories(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    expected = {row["topic"]: row["topicId"] for row in asked(listing_commands.topics, root)}
    shutil.rmtree(root / "__cluster_metadata-0")
    found = {row["topic"]: row["topicId"] for row in asked(listing_commands.topics, root)}
    assert found == {name: topic_id for name, topic_id in expected.items() if name != "__cluster_metadata"}


def test_zeros_of_a_preallocated_index_are_no_entries(golden: Golden, tmp_path: Path) -> None:
    copy = shutil.copytree(golden("demo") / "orders-0", tmp_path / "orders-0")
    for words in ([], ["--contents"]):
        before = asked(listing_commands.segments, copy, *words)
        for index in (*copy.glob("*.index"), *copy.glob("*.timeindex")):
            os.truncate(index, index.stat().st_size + 24_000)
        assert asked(listing_commands.segments, copy, *words) == before


def test_segments_are_counted(golden: Golden) -> None:
    rows = asked(listing_commands.segments, "--contents", golden("transactions") / ROLLED)
    assert [row["baseOffset"] for row in rows] == [0, 16, 33, 49, 65]
    assert [row["endOffset"] for row in rows] == [16, 33, 49, 65, 76]
    assert [row["offsetEntries"] for row in rows] == [3, 3, 3, 3, 2]
    assert [row["abortedEntries"] for row in rows] == [2, 2, 2, 2, 1]
    assert sum(row["batchCount"] for row in rows) == 52
    assert sum(row["recordCount"] for row in rows) == 76
    assert sum(row["controlCount"] for row in rows) == 26
    (mixed,) = asked(listing_commands.segments, "--contents", golden("demo") / "orders-0")
    assert (mixed["batchCount"], mixed["controlCount"], mixed["transactionalCount"]) == (33, 12, 29)
    assert all(row["damagedSize"] == 0 for row in rows)
    text = printed(listing_commands.segments, "--contents", golden("compacted"), golden("transactions") / ROLLED)
    assert "gzip lz4 none" in text


def test_damage_is_counted_in_segments(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("transactions"), tmp_path / "data")
    FAULTS["log-crc"][0](root)
    sizes = [row["damagedSize"] for row in asked(listing_commands.segments, "--contents", root / ROLLED)]
    assert sizes[1] > 61
    assert sizes[0] == sum(sizes[2:]) == 0


@pytest.mark.parametrize("words", [["topics"], ["groups"], ["producers"], ["segments"], ["txns", "list", "--now", "0"]])
def test_rows_are_the_same_in_every_format(words: list[str], golden: Golden) -> None:
    texts = {
        form: CliRunner().invoke(logstore, [*words, str(golden("demo")), "--format", form]).stdout
        for form in ("jsonl", "csv", "table")
    }
    rows = [json.loads(line) for line in texts["jsonl"].splitlines()]
    cells = list(csv.DictReader(texts["csv"].splitlines()))
    for row, found in zip(rows, cells, strict=True):
        del row["type"]
        assert list(found) == list(row)
        for name, value in row.items():
            if isinstance(value, list | dict):
                assert json.loads(found[name]) == value
            else:
                assert found[name] == ("" if value is None else str(value))
    assert len(texts["table"].splitlines()) == 1 + len(rows)


@pytest.mark.parametrize(
    "words", [["diff", "orders-0", "orders-0"], ["txns", "explain", "orders-0"], ["salvage", "orders-0"]]
)
def test_a_command_with_one_object_prints_one_line(
    words: list[str], golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(golden("demo"))
    (line,) = CliRunner().invoke(logstore, [*words, "--format", "jsonl"]).stdout.splitlines()
    assert json.loads(line)
    names, values = CliRunner().invoke(logstore, [*words, "--format", "csv"]).stdout.splitlines()
    assert names.count(",") <= values.count(",")


@pytest.mark.parametrize("content", [None, "notes.txt", "data/meta.properties"])
@pytest.mark.parametrize(
    "words",
    [
        *(["promote"], ["import"], ["salvage"], ["repair"], ["sample", "--redact"], ["diff"], ["verify"], ["audit"]),
        *(["report", "-o", "page.html"], ["topics"], ["groups"], ["producers"], ["segments"], ["txns", "list"]),
    ],
)
def test_a_directory_without_anything_of_kafkas_is_refused_and_left_alone(
    words: list[str], content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "given"
    directory.mkdir()
    if content is not None:
        (directory / content).parent.mkdir(exist_ok=True)
        (directory / content).touch()
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    other = {"sample": ["new"], "diff": ["given"]}.get(words[0], [])
    result = CliRunner().invoke(logstore, [*words, "given", *other], catch_exceptions=False)
    assert (result.exit_code, sorted(tmp_path.rglob("*"))) == (2, before)
    assert "not a Kafka data directory" in result.stderr
    assert content != "data/meta.properties" or "did you mean given/data?" in result.stderr


@pytest.mark.parametrize("words", [["salvage"], ["repair"], ["sample", "--redact"], ["diff"]])
def test_a_data_directory_is_no_partition(words: list[str], golden: Golden) -> None:
    result = CliRunner().invoke(logstore, [*words, str(golden("demo")), str(golden("demo"))])
    assert result.exit_code == 2
    assert "not a partition" in result.stderr
    assert f"did you mean {golden('demo') / 'orders-0'}?" in result.stderr


def test_two_partitions_are_compared_only_if_told_so(golden: Golden, tmp_path: Path) -> None:
    one, other = golden("demo") / "orders-0", golden("demo") / "payments-0"
    refused = CliRunner().invoke(diff_command.command, [str(one), str(other)])
    assert refused.exit_code == 2
    assert "two partitions" in refused.output
    assert asked(diff_command.command, one, other, "--force")[0]["isSame"] is False
    stray = shutil.copytree(one, tmp_path / f"orders-0.{'0' * 32}-stray")
    assert asked(diff_command.command, one, stray)[0]["isSame"] is True


def test_replicas_are_compared_up_to_the_first_divergent_batch(golden: Golden, tmp_path: Path) -> None:
    one = golden("transactions") / ROLLED
    assert asked(diff_command.command, one, one)[0]["isSame"] is True
    other = shutil.copytree(one, tmp_path / ROLLED)
    last = sorted(other.glob("*.log"))[-1]
    content = last.read_bytes()
    last.write_bytes(content[:-78])
    assert "goes on in" in printed(diff_command.command, one, other)
    (shorter,) = asked(diff_command.command, one, other)
    assert (shorter["isShorter"], shorter["endOffset"], shorter["batchCount"]) == (True, 75, 51)
    last.write_bytes(content[:12] + b"\x00\x00\x00\x09" + content[16:])  # another leader epoch
    result = CliRunner().invoke(diff_command.command, [str(one), str(other)])
    assert result.exit_code == 1
    assert "partition_leader_epoch" in result.output
    (different,) = asked(diff_command.command, one, other)
    assert (different["fields"], different["endOffset"]) == (["partitionLeaderEpoch"], 65)


@pytest.mark.parametrize("position", [80, -1], ids=["first", "last"])
def test_which_replica_is_damaged_is_told(golden: Golden, tmp_path: Path, position: int) -> None:
    one = golden("transactions") / ROLLED
    other = shutil.copytree(one, tmp_path / ROLLED)
    log = sorted(other.glob("*.log"))[-1 if position < 0 else 0]
    content = bytearray(log.read_bytes())
    content[position] ^= 1
    log.write_bytes(content)
    start = len(content) - 78 if position < 0 else 0
    for replicas in ([one, other], [other, one]):
        result = CliRunner().invoke(diff_command.command, [*map(str, replicas)])
        assert (result.exit_code, f"{log} is damaged at byte {start}" in result.output) == (1, True)
        (found,) = asked(diff_command.command, *replicas)
        damaged = [{"path": str(log), "position": start} if path == other else None for path in replicas]
        assert (found["isShorter"], found["damaged"]) == (False, damaged)


def test_replicas_may_cut_their_segments_elsewhere(golden: Golden, tmp_path: Path) -> None:
    one = golden("transactions") / ROLLED
    other = tmp_path / ROLLED
    other.mkdir()
    logs = sorted(one.glob("*.log"))
    (other / f"{0:020d}.log").write_bytes(b"".join(log.read_bytes() for log in logs))
    assert asked(diff_command.command, one, other)[0]["isSame"] is True
    (other / f"{0:020d}.log").unlink()
    (other / logs[2].name).write_bytes(b"".join(log.read_bytes() for log in logs[2:]))
    (later,) = asked(diff_command.command, one, other)
    assert (later["isSame"], later["startOffset"]) == (True, 33)


def test_compacted_offsets_are_not_compared(golden: Golden, tmp_path: Path) -> None:
    one = golden("compacted") / "tombstones-kept-0"
    other = shutil.copytree(one, tmp_path / "data" / "tombstones-kept-0")
    (other / f"{65:020d}.log").write_bytes(b"")
    (found,) = asked(diff_command.command, one, other)
    assert (found["isSame"], found["startOffset"]) == (True, 193)


def test_formats_prints_the_pages_of_the_library() -> None:
    from logstore.layout import time_index

    assert "time_index" in printed(about_commands.formats)
    assert printed(about_commands.formats, "time_index").strip() == (time_index.__doc__ or "").strip()
    assert CliRunner().invoke(about_commands.formats, ["nothing"]).exit_code == 2


def test_doctor_tells_versions_and_kernels() -> None:
    text = printed(about_commands.doctor, "--compile")
    words = {line.split()[0] for line in text.splitlines()}
    assert {"python", "numpy", "llvmlite", "kernels", "processor", "java"} <= words
    assert re.search(r"kernels +shared library +/.*/x86-64.*\.so|kernels +(interpreted|loaded by LLVM) ", text)
    assert "not built" not in text


def test_paths_tell_partitions_from_data_directories(golden: Golden, tmp_path: Path) -> None:
    demo = golden("demo")
    notes: list[object] = []

    def found(path: Path | str) -> list[tuple[str, bool]]:
        return input_paths(str(path), notes.append)

    assert found(demo) == [(str(demo), False)]
    assert found(demo / "orders-0") == found(f"{demo}/orders-*") == [(str(demo / "orders-0"), True)]
    assert found(f"{demo}/orders-0/*") == found(next(demo.glob("orders-0/*.log"))) == [(str(demo / "orders-0"), True)]
    assert len(found(f"{demo}/*")) == 7  # and no file of the data directory
    assert place_of(str(demo / "orders-0"), True) == (str(demo), "orders-0")
    assert place_of(str(demo), False) == (str(demo), None)
    named = shutil.copytree(demo, tmp_path / "kafka-1")  # a data directory with the name of a partition
    assert found(named) == [(str(named), False)]
    (tmp_path / "empty-0").mkdir()
    assert found(tmp_path / "empty-0") == [(str(tmp_path / "empty-0"), True)]
    assert notes == []


DIRECTORY_COMMANDS = [["audit"], ["groups"], ["topics"], ["report", "-o", "report.html"]]
PATH_COMMANDS = [["verify"], ["segments"], ["producers"], ["txns", "list"], ["txns", "hanging"], ["txns", "explain"]]


@pytest.mark.parametrize("words", [*DIRECTORY_COMMANDS, *PATH_COMMANDS], ids=" ".join)
def test_commands_refuse_a_path_that_is_no_data_directory(
    words: list[str], golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "parent"):
        Path(name).mkdir()
    Path("parent/data").symlink_to(golden("demo"))
    Path("file").write_bytes(b"")
    for path, told in [
        ("empty", "This is not a Kafka data directory: no meta.properties, no partition; at empty"),
        ("parent", "at parent; did you mean parent/data?"),
        ("file", "There is no such directory; at file; expected"),
        ("nosuch", "There is no such directory; at nosuch"),
        (
            "/dev/null",
            "There is no such directory; at /dev/null; expected a data directory or a partition, found a file",
        ),
    ]:
        result = CliRunner().invoke(logstore, [*words, path])
        assert (result.exit_code, told.removesuffix("; expected") in result.output) == (2, True), result.output
    if words in DIRECTORY_COMMANDS:
        result = CliRunner().invoke(logstore, [*words, str(golden("demo") / "orders-0")])
        assert (result.exit_code, f"did you mean {golden('demo')}?" in result.output) == (2, True), result.output


@pytest.mark.parametrize("words", [["groups"], ["topics"], ["segments"], ["producers"], ["txns", "list"]], ids=" ".join)
def test_a_link_that_is_not_followed_is_told_with_exit_code_3(words: list[str], golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    assert CliRunner().invoke(logstore, [*words, str(root)]).exit_code == 0
    (tmp_path / "elsewhere-0").mkdir()
    (root / "elsewhere-0").symlink_to(tmp_path / "elsewhere-0")
    result = CliRunner().invoke(logstore, [*words, str(root)])
    assert result.exit_code == 3
    assert f"{root}/elsewhere-0" in result.output
    assert "is not followed" in result.output


def test_what_a_pattern_leaves_out_is_told_with_exit_code_3(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    (root / "orders-1").symlink_to(shutil.copytree(root / "orders-0", tmp_path / "orders-1"))
    result = CliRunner().invoke(logstore, ["segments", f"{root}/orders-*"])
    assert (result.exit_code, "orders-0" in result.stdout, "is not followed" in result.stderr) == (3, True, True)


@pytest.mark.parametrize("words", [["audit"], ["txns", "explain"], ["salvage"]], ids=" ".join)
def test_a_pattern_that_names_several_is_refused_where_one_is_asked(words: list[str], golden: Golden) -> None:
    result = CliRunner().invoke(logstore, [*words, f"{golden('demo')}/*s-0"])
    assert (result.exit_code, "The pattern matches several" in result.stderr) == (2, True), result.stderr
    result = CliRunner().invoke(logstore, [*words, ""])  # a variable of the shell that is not set
    assert (result.exit_code, "not empty" in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize("words", [["segments"], ["diff"], ["salvage"], ["repair"], ["sample"]], ids=" ".join)
def test_a_segment_elsewhere_is_told_of_a_partition(words: list[str], golden: Golden, tmp_path: Path) -> None:
    """A link that leads out of the data directory is not followed: a copy without its segment would be no copy."""
    partition = shutil.copytree(golden("demo"), tmp_path / "data") / "orders-0"
    segment = next(partition.glob("*.log"))
    segment.symlink_to(segment.rename(tmp_path / segment.name))
    others = {"diff": [str(partition)], "sample": [str(tmp_path / "copy" / "orders-0")]}
    result = CliRunner().invoke(logstore, [*words, str(partition), *others.get(words[0], [])])
    assert (result.exit_code, f"{segment}" in result.output, "is not followed" in result.output) == (3, True, True)


@pytest.mark.parametrize(
    "words",
    [
        *(["verify"], ["segments"], ["producers"], ["txns", "list"], ["txns", "explain"]),
        *(["diff"], ["salvage"], ["repair"], ["sample"], ["recover"]),
    ],
    ids=" ".join,
)
def test_a_partition_that_is_a_link_elsewhere_is_refused(words: list[str], golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    partition = root / "orders-0"
    partition.symlink_to(partition.rename(tmp_path / "orders-0"))
    others = {"diff": [str(partition)], "sample": [str(tmp_path / "copy" / "orders-0")]}
    result = CliRunner().invoke(logstore, [*words, str(partition), *others.get(words[0], [])])
    assert result.exit_code == (1 if words == ["recover"] else 3)
    assert "is not followed" in result.stderr
    assert "name what it leads to" in result.stderr
    whole = CliRunner().invoke(logstore, ["verify", str(root), "--format", "jsonl"])
    assert re.findall(r'"rule": ?"([a-z-]+)"', whole.output) == ["directory-entry"]  # none that has it lost


def test_a_misspelled_path_gets_a_suggestion(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    for path, meant in [(root / "ordres-0", root / "orders-0"), (tmp_path / "dta", root)]:
        result = CliRunner().invoke(logstore, ["verify", str(path)])
        assert (result.exit_code, f"did you mean {meant}?" in result.stderr) == (2, True), result.stderr


def test_times_are_printed_in_utc() -> None:
    assert iso_text(1_700_000_000_020) == "2023-11-14T22:13:20.020Z"
    assert [iso_text(-1), iso_text(-(2**62))] == [None, str(-(2**62))]
    assert [iso_text(-62_135_596_800_000), iso_text(253_402_300_799_999)] == [
        "0001-01-01T00:00:00.000Z",
        "9999-12-31T23:59:59.999Z",
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = CliRunner().invoke(logstore, [name, "--help"])
    assert result.output.strip() or name == "dump"  # which prints its own, past the runner
    assert COMMANDS[name][2].endswith(".")


def test_each_rule_is_explained() -> None:
    for rule in RULES:
        told = CliRunner().invoke(audit, ["--explain", rule.name])
        assert told.exit_code == 0
        assert all(words in told.output for words in (rule.name, rule.about, rule.advice))
    assert (
        "between the two there should have been a marker"
        in CliRunner().invoke(audit, ["--explain", "marker-missing"]).output
    )
    unknown = CliRunner().invoke(audit, ["--explain", "marker-mising"])
    assert unknown.exit_code == 2
    assert "Did you mean marker-missing?" in unknown.output


@pytest.mark.parametrize("command", [audit, verify])
def test_checksums_only_trusts_records(command: click.Command, tmp_path: Path) -> None:
    story = STORIES["log-records"][0]()
    root = story.write(tmp_path / "data")
    arguments = [str(root), "--format", "jsonl"] + (["--now", str(story.now_ms)] if command is audit else [])
    decoded = CliRunner().invoke(command, arguments)
    assert (decoded.exit_code, "log-records" in decoded.output) == (1, True)
    trusted = CliRunner().invoke(command, [*arguments, "--checksums-only"])
    assert "log-records" not in trusted.output


def test_a_finding_in_a_checkpoint_names_its_partition_and_counts_what_is_gone(golden: Golden, tmp_path: Path) -> None:
    root = Path(shutil.copytree(golden("demo"), tmp_path / "data"))
    (root / "recovery-point-offset-checkpoint").write_text("0\n2\norders 0 63\npayments 0 26\n")
    (root / "replication-offset-checkpoint").write_text("0\n1\nlost 3 7\n")
    told = CliRunner().invoke(audit, [str(root), "--now", "0"]).output
    lines = " ".join(told.split())
    assert f"{root}/recovery-point-offset-checkpoint, orders-0" in lines
    assert "63: 25 offsets are gone from the log's end" in lines
    assert f"{root}/recovery-point-offset-checkpoint, payments-0" in lines
    assert "none, and the cluster has no such partition" in lines
    rows = asked(audit, root, "--now", 0)
    told = {(row["topic"], row["partition"]) for row in rows[1:] if row["found"] != "no entry"}
    assert told == {("orders", 0), ("payments", 0), ("lost", 3)}


@pytest.mark.parametrize("where", ["beside", "within", "file"])
def test_a_bare_name_finds_the_data_directory_around_it(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a follower's copy of a compacted topic may have holes, which nothing but the directory around it explains."""
    story = clean()
    story.make_topic("orders", policy="compact")
    story.plain("orders-0", offset=story.end("orders-0") + 3)
    root = story.write(tmp_path)
    (root / ".kafka_cleanshutdown").write_text("")
    (root / "cleaner-offset-checkpoint").write_text("0\n0\n")
    monkeypatch.chdir(root if where == "beside" else root / "orders-0")
    word = {"beside": "orders-0", "within": ".", "file": f"{0:020d}.log"}[where]
    bare = asked(verify, word)
    whole = asked(verify, root / "orders-0")
    assert [row.get("rule") for row in bare] == [row.get("rule") for row in whole]
    cluster = Evidence(open_partition("orders-0" if where == "beside" else ".")).cluster
    assert cluster.has_metadata


def test_the_metadata_log_is_read_once_for_all_partitions_of_a_directory(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, replayed = golden("demo"), []
    image = Cluster.image.func
    counted = cached_property(lambda cluster: [replayed.append(cluster), image(cluster)][1])
    counted.__set_name__(Cluster, "image")
    monkeypatch.setattr(Cluster, "image", counted)
    assert CliRunner().invoke(verify, [f"{root}/*-*"]).exit_code == 0
    assert len(replayed) == 1
    assert CliRunner().invoke(listing_commands.producers, [str(root)]).exit_code == 0
    assert len(replayed) == 2


@pytest.mark.parametrize("verb", [listing_commands.groups, listing_commands.producers], ids=lambda verb: verb.name)
def test_damage_on_the_way_is_told(verb: click.Command, golden: Golden, tmp_path: Path) -> None:
    root = Path(shutil.copytree(golden("demo"), tmp_path / "data"))
    assert CliRunner().invoke(verb, [str(root)]).exit_code == 0
    name = "__consumer_offsets-1" if verb is listing_commands.groups else "__transaction_state-0"
    path = root / name / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    called = CliRunner().invoke(verb, [str(root)])
    assert called.exit_code == (1 if verb is listing_commands.groups else 3)  # its own producers cannot be listed
    assert f"log-crc {path}" in called.stderr


def test_producers_beside_damage_are_those_before_it(golden: Golden, tmp_path: Path) -> None:
    root = Path(shutil.copytree(golden("demo"), tmp_path / "data"))
    path = root / "orders-0" / f"{0:020d}.log"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    called = CliRunner().invoke(listing_commands.producers, [str(root / "orders-0")])
    assert called.exit_code == 3
    assert "is taken to end before" in called.stderr


def test_producers_beside_a_corrupt_snapshot_are_those_of_the_log(golden: Golden, tmp_path: Path) -> None:
    """It is told once, in Kafka's words and with its path."""
    root = Path(shutil.copytree(golden("demo"), tmp_path / "data"))
    before = asked(listing_commands.producers, root / "orders-0")
    path = max((root / "orders-0").glob("*.snapshot"))
    content = bytearray(path.read_bytes())
    stored = int.from_bytes(content[2:6])
    content[-1] ^= 1
    path.write_bytes(content)
    called = CliRunner().invoke(listing_commands.producers, [str(root / "orders-0"), "--format", "jsonl"])
    assert (called.exit_code, [json.loads(line) for line in called.stdout.splitlines()]) == (3, before)
    computed = crc32c(content[6:])
    assert called.stderr == (
        f"logstore: Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}; "
        f"at {path}; expected {stored}, found {computed}\n"
    )


def test_producers_are_those_that_a_broker_loads(golden: Golden, tmp_path: Path) -> None:
    """As Spark's table has them: not those that the newest snapshot has forgotten."""
    root = golden("transactions")
    for partition in ("rolled-0", "orders-0"):
        if (root / partition).is_dir():
            known = PartitionReader(str(root / partition)).producers
            rows = asked(listing_commands.producers, root / partition)
            assert [row["producerId"] for row in rows] == sorted(one.producer_id for one in known)
