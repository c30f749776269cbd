"""A moment's disagreement is not told, a fault is; and segments may vanish while they are read."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from logstore.audit import log_pass, stable_reading
from logstore.audit.cluster import Cluster
from logstore.audit.directory_audit import audit_directory, follow_all
from logstore.audit.directory_verify import verify_directory
from logstore.audit.finding import Finding, Severity, Where
from logstore.audit.partition import Partition, open_partition, open_partitions
from logstore.audit.stable_reading import READING_COUNT_MAX, read_until_stable
from logstore.audit.verify import PartitionFacts, verify_partition, verify_partition_directory
from logstore.disk.loaded import LoadedFile
from logstore.topics.transaction_state import TOPIC
from logstore.view.walk import Damage, Run, walk
from tests.support.audit_faults import FAULTS, ROLLED
from tests.support.audit_story_faults import FAULTS as STORIES
from tests.support.golden import Golden


def finding(number: int) -> Finding:
    return Finding("log-crc", Severity.ERROR, Where("a.log", offset=number), "1", "2", "advice")


def readings(place: Path, answers: list[list[Finding]], *, changes: bool) -> tuple[int, tuple[Finding, ...]]:
    """How often was read, and what was told, if each reading answers so; the directory changes meanwhile or not."""
    count = 0

    def read() -> list[Finding]:
        nonlocal count
        count += 1
        if changes:
            (place / f"file{count}").write_text("")
        return answers[min(count, len(answers)) - 1]

    _, found = read_until_stable(str(place), read, lambda result: result)
    return count, found


def test_findings_in_a_directory_at_rest_stand_after_one_reading(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    os.utime(tmp_path / "old", (1, 1))
    assert readings(tmp_path, [[finding(1)], []], changes=False) == (1, (finding(1),))
    assert readings(tmp_path, [[]], changes=True) == (1, ())


def test_a_directory_written_to_a_moment_ago_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(threading.Event, "wait", lambda _, seconds: waits.append(seconds))
    (tmp_path / "new").touch()
    assert readings(tmp_path, [[finding(1)], []], changes=False) == (2, ())
    assert readings(tmp_path, [[finding(1)]], changes=False) == (2, (finding(1),))
    assert waits == [stable_reading.MOMENT_S] * 2


def test_findings_that_a_second_reading_does_not_have_are_dropped(tmp_path: Path) -> None:
    assert readings(tmp_path, [[finding(1)], [finding(2)]], changes=True) == (2, ())
    lasting = readings(tmp_path, [[finding(1), finding(2)], [finding(2)]], changes=True)
    assert lasting == (READING_COUNT_MAX, (finding(2),))


def test_all_findings_of_a_place_stay_with_the_words_of_the_last_reading(tmp_path: Path) -> None:
    grown = [replace(finding(1), found="3"), replace(finding(1), found="4")]
    lasting = readings(tmp_path, [[finding(1), replace(finding(1), found="3")], grown], changes=True)
    assert lasting == (READING_COUNT_MAX, tuple(grown))


def test_files_in_partitions_count_as_changes(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("demo"), tmp_path / "data")
    answers = [[finding(1)], []]

    def read() -> list[Finding]:
        with (root / "orders-0" / f"{0:020d}.log").open("ab") as log:
            log.write(b"more")
        return answers.pop(0)

    assert read_until_stable(str(root), read, lambda result: result)[1] == ()


def test_a_fault_beside_a_writer_is_told(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("transactions"), tmp_path / "data")
    FAULTS["log-crc"][0](root)
    assert [one.rule for one in verify_directory(str(root)).findings] == ["log-crc"]
    assert [one.rule for one in verify_partition_directory(str(root / ROLLED)).findings] == ["log-crc"]


def test_segments_that_vanish_are_passed_over(golden: Golden, tmp_path: Path) -> None:
    partition = open_partition(str(shutil.copytree(golden("transactions") / ROLLED, tmp_path / ROLLED)))
    for path in (tmp_path / ROLLED).glob(f"{0:020d}.*"):
        path.unlink()
    verified = verify_partition(partition)
    assert verified.findings == ()
    assert verified.evidence.segment_count == 4


def test_an_append_while_the_log_is_read_is_no_torn_tail(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = shutil.copytree(golden("transactions") / ROLLED, tmp_path / ROLLED)
    last = sorted(directory.glob("*.log"))[-1]
    whole = last.read_bytes()
    last.write_bytes(whole[:-10])
    assert "log-tail" in {one.rule for one in verify_partition(open_partition(str(directory))).findings}

    def walk_while_it_grows(log: LoadedFile, *where: int) -> Iterator[Run | Damage]:
        yield from walk(log, *where)
        last.write_bytes(whole)

    monkeypatch.setattr(log_pass, "walk", walk_while_it_grows)
    last.write_bytes(whole[:-10])
    assert "log-tail" not in {one.rule for one in verify_partition(open_partition(str(directory))).findings}


def looked_at(root: Path, now_ms: int) -> tuple[list[set[str]], set[str]]:
    """Return the partitions that each look at a growing directory reads, and the rules that an audit of it finds."""
    looks: list[set[str]] = []

    def follow_and_change(partitions: Sequence[Partition], cluster: Cluster) -> Sequence[PartitionFacts]:
        if not looks or any(one.files.topic != TOPIC for one in partitions):
            looks.append(set())
        looks[-1] |= {one.name for one in partitions}
        found = follow_all(partitions, cluster)
        (root / "orders-0" / "changes").write_text("more" * len(looks))
        return found

    return looks, {one.rule for one in audit_directory(str(root), now_ms, follow_and_change).findings}


def test_a_second_look_reads_what_was_found_and_the_coordinators(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("transactions"), tmp_path / "data")
    FAULTS["log-crc"][0](root)
    looks, rules = looked_at(root, 0)
    assert "log-crc" in rules
    everything = {one.name for one in open_partitions(str(root))}
    coordinators = {name for name in everything if name.startswith(f"{TOPIC}-")}
    assert looks[0] == everything
    assert looks[1:] == [{ROLLED, *coordinators}] * (READING_COUNT_MAX - 1)


def test_a_second_look_reads_what_a_group_has_read(tmp_path: Path) -> None:
    """The commit stands; that its input has come by then is seen only there."""
    story = STORIES["group-ahead"][0]()
    root = story.write(tmp_path / "data")
    looks, rules = looked_at(root, story.now_ms + 1000)
    assert rules == {"group-ahead"}
    topics = [{name.rpartition("-")[0] for name in look} for look in looks[1:]]
    assert topics == [{"__consumer_offsets", "__transaction_state", "orders"}] * (READING_COUNT_MAX - 1)
