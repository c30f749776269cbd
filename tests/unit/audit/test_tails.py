"""Answers from the end of each log beside those of a pass over all of it."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.audit.answers import open_transaction_row
from logstore.audit.cluster import Cluster
from logstore.audit.directory_audit import audit_directory, read_groups, read_transactions
from logstore.audit.facts.offsets import OffsetRanges
from logstore.audit.groups import group_lags
from logstore.audit.listings import producer_row
from logstore.audit.open_transactions import Explanation
from logstore.audit.partition import open_partitions
from logstore.audit.tails import start_at
from logstore.audit.verify import Asked, verify_partition
from logstore.disk.loaded import LoadedFile
from logstore.folds import producer_update
from logstore.folds.producer_state import ProducerState
from logstore.view.walk import Run, walk
from tests.support.audit_faults import FAULTS as FILE_FAULTS
from tests.support.audit_story_faults import FAULTS as STORY_FAULTS
from tests.support.golden import AFTER_GOLDEN_MS, WRITTEN, Golden
from tests.support.logs import read_so_far
from tests.support.offset_ranges import each_range
from tests.support.sampling import sampled

DAY_MS = 86_400_000
SEEDS = range(4)
GIB = 1 << 30


def answers(root: Path, now_ms: int) -> dict[str, Any]:
    """What the tails say."""
    groups, _, _ = read_groups(str(root))
    found, _ = read_transactions(str(root), now_ms)
    return {
        "groups": group_lags(groups),
        "open": list(map(open_transaction_row, found.open)),
        "ends": {key: (one.last_stable_offset, one.log_end_offset) for key, one in found.histories.items()},
        "why": explanations(found),
    }


def answers_of_all(root: Path, now_ms: int) -> dict[str, Any]:
    """The same, of a pass over every byte."""
    audited = audit_directory(str(root), now_ms)
    found = audited.transactions
    return {
        "groups": group_lags(audited.groups),
        "open": list(map(open_transaction_row, found.open)),
        "ends": {key: (one.last_stable_offset, one.log_end_offset) for key, one in found.histories.items()},
        "why": explanations(found),
    }


def explanations(found: Any) -> list[Any]:
    asked = (
        Explanation(history, [one for one in found.open if one.history is history])
        for history in found.histories.values()
    )
    return [(one.why, one.missing, one.advice) for one in asked]


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_golden_directories_answer_as_a_pass_over_all(name: str, golden: Golden, tmp_path: Path) -> None:
    root = golden(name)
    assert answers(root, AFTER_GOLDEN_MS) == answers_of_all(root, AFTER_GOLDEN_MS)
    killed = Path(shutil.copytree(root, tmp_path / "data"))  # without the snapshots of a clean end
    (killed / ".kafka_cleanshutdown").unlink(missing_ok=True)
    for partition in killed.glob("*-*"):
        bases = {log.stem for log in partition.glob("*.log")}
        for snapshot in partition.glob("*.snapshot"):
            if snapshot.stem not in bases:
                snapshot.unlink()
    assert answers(killed, AFTER_GOLDEN_MS) == answers_of_all(killed, AFTER_GOLDEN_MS)


@pytest.mark.slow
@pytest.mark.parametrize("rule", sorted(FILE_FAULTS.keys() - {"log-size"}))
def test_planted_faults_of_files_change_no_answer(rule: str, golden: Golden, tmp_path: Path) -> None:
    root = Path(shutil.copytree(golden("transactions"), tmp_path / "data"))
    FILE_FAULTS[rule][0](root)
    assert answers(root, AFTER_GOLDEN_MS) == answers_of_all(root, AFTER_GOLDEN_MS)


@pytest.mark.parametrize("rule", STORY_FAULTS)
def test_planted_faults_of_transactions_and_groups_have_the_same_answer(rule: str, tmp_path: Path) -> None:
    for number, tell in enumerate(STORY_FAULTS[rule]):
        story = tell()
        root = Path(story.write(tmp_path / str(number)))
        assert answers(root, story.now_ms + 1000) == answers_of_all(root, story.now_ms + 1000)


@pytest.fixture(scope="module", params=sampled(SEEDS, [1], pytest.mark.slow))
def worlds(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A directory with logs of many small segments, transactions of all ages, and groups at any offset.

    Closed in order, and as a kill leaves it.
    """
    place, dice = tmp_path_factory.mktemp("world"), random.Random(request.param)
    root, left = place / "data", place / "left"
    with logstore.open(root) as store:
        for topic in ("a", "b"):
            store.create_topic(
                topic, partitions=2, config={"internal.segment.bytes": 4096, "index.interval.bytes": 200}
            )
        producers = [store.producer(transactional_id=f"t{number}") for number in range(4)]
        for producer in producers:
            producer.init_transactions()
        begun = set[int]()
        for _ in range(dice.randrange(50, 250)):
            number = dice.randrange(len(producers))
            producer = producers[number]
            if number not in begun:
                producer.begin_transaction()
                begun.add(number)
            for _ in range(dice.randrange(4)):
                size = dice.randrange(1, 300)
                producer.send(dice.choice("ab"), partition=dice.randrange(2), value=dice.randbytes(size))
            producer.flush()
            if dice.random() < 0.2:
                target = logstore.TopicPartition(dice.choice("ab"), dice.randrange(2))
                offset = dice.randrange(store.log(*target).log_end_offset + 1)
                producer.send_offsets_to_transaction({target: offset}, group_id=f"g{dice.randrange(3)}")
            # one of them ends few of its transactions
            if dice.random() < (0.5 if number else 0.02):
                (producer.commit_transaction if dice.random() < 0.6 else producer.abort_transaction)()
                begun.discard(number)
        shutil.copytree(root, left)
    return {"closed": root, "left": left}


@pytest.fixture(params=["closed", "left"])
def world(request: pytest.FixtureRequest, worlds: dict[str, Path]) -> Path:
    return worlds[request.param]


def test_random_logs_answer_as_a_pass_over_all(world: Path) -> None:
    now_ms = max(int(os.stat(log).st_mtime * 1000) for log in world.glob("*/*.log"))
    for later_ms in (1, DAY_MS):
        assert answers(world, now_ms + later_ms) == answers_of_all(world, now_ms + later_ms)


def test_producers_are_those_that_a_pass_over_all_leaves(world: Path) -> None:
    found = list(logstore.producers(world))
    owners = {row.producer_id: row.transactional_id for row in found}
    assert found == list(producers_of_all(world, owners))


def producers_of_all(root: Path, owners: dict[int, str | None]) -> Iterator[Any]:
    for partition in open_partitions(str(root)):
        state = ProducerState(partition.name)
        state.start_at(0)
        for segment in partition.files.segments:
            with LoadedFile(segment.log) as log:
                for piece in walk(log, segment.base_offset):
                    assert isinstance(piece, Run) or not log.data[piece.start :].any()
                    if isinstance(piece, Run):
                        producer_update.step(state, *piece)
        for producer in sorted(state, key=lambda one: one.producer_id):
            yield producer_row(partition.files, producer, owners.get(producer.producer_id))


@pytest.mark.parametrize("name", WRITTEN)
def test_ends_of_segments_tell_what_their_contents_do(name: str, golden: Golden) -> None:
    assert ends_of(golden(name)) == contents_of(golden(name))


def test_ends_of_random_segments_tell_what_their_contents_do(world: Path) -> None:
    assert ends_of(world) == contents_of(world)


def ends_of(root: Path) -> list[Any]:
    found = logstore.segments(root)
    assert (found.problems, {row.batch_count for row in found}) == ((), {None})
    return list(found)


def contents_of(root: Path) -> list[Any]:
    counted = ("batch_count", "record_count", "control_count", "transactional_count", "damaged_size", "codecs")
    return [row._replace(**dict.fromkeys(counted)) for row in logstore.segments(root, contents=True)]


def test_damage_at_the_end_of_a_segment_is_told(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("transactions"), tmp_path / "data")
    log = sorted(root.glob("*/*.log"))[-1]
    content = bytearray(log.read_bytes())
    content[-1] ^= 1
    log.write_bytes(content)
    (problem,) = logstore.segments(log.parent).problems
    assert ("checksum" in str(problem), problem.path) == (True, str(log))


def test_a_pass_from_any_offset_sees_all_that_follows(world: Path) -> None:
    cluster = Cluster(str(world))
    for partition in open_partitions(str(world)):
        whole = verify_partition(partition, cluster, Asked.NOTHING)
        for offset in range(0, whole.evidence.log_end_offset, 41):
            start = start_at(partition, offset)
            assert start.offset <= offset
            tail = verify_partition(partition, cluster, Asked.NOTHING, start=start)
            assert tail.findings == ()
            assert behind(tail.ranges, offset) == behind(whole.ranges, offset)


def behind(ranges: OffsetRanges, offset: int) -> list[tuple[int, int, str]]:
    return [(max(one.start, offset), one.end, one.label.value) for one in each_range(ranges) if one.end > offset]


def bytes_read(ask: Callable[[], Any]) -> tuple[Any, int]:
    """What was asked, and the bytes that system calls read for it."""
    ask()  # what is imported for it is imported
    before = read_so_far()
    answer = ask()
    return answer, read_so_far() - before


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A directory, as a kill leaves it, in which all but the last segments are of 1 GiB, and nearly all zeros."""
    root = tmp_path / "left"
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("a", partitions=2, config={"internal.segment.bytes": "30000"})
        producer = store.producer(transactional_id="t")
        producer.init_transactions()
        for number in range(100):
            producer.begin_transaction()
            producer.send("a", partition=number % 2, value=bytes(1000))
            producer.send_offsets_to_transaction({("a", 0): store.log("a", 0).log_end_offset}, group_id="g")
            producer.commit_transaction() if number < 99 else producer.flush()
        shutil.copytree(tmp_path / "data", root)
    for partition in root.glob("a-*"):
        for log in sorted(partition.glob("*.log"))[:-1]:
            os.truncate(log, GIB)
    return root


QUESTIONS: dict[str, Callable[[Path], Any]] = {
    "groups": logstore.groups,
    "transactions": logstore.transactions,
    "explain": logstore.explain,
    "producers": logstore.producers,
    "topics": logstore.topics,
    "segments": logstore.segments,
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_read_what_their_answer_needs(question: str, large: Path) -> None:
    size = sum(log.stat().st_size for log in large.glob("a-*/*.log"))
    rows, read = bytes_read(lambda: QUESTIONS[question](large))
    assert size > 2 * GIB
    cut = 2 if question == "segments" else 0  # it looks at the ends of all segments, where there are zeros
    assert (len(rows) > 0, len(rows.problems)) == (True, cut)
    assert read < size / 100
