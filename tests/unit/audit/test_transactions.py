"""Transactions, sequences, offsets and groups: nothing is found where nothing is wrong, and each fault by its rule."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from cProfile import Profile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore.audit import checks
from logstore.audit.cluster import Cluster
from logstore.audit.directory_audit import (
    AuditedDirectory,
    audit_directory,
    follow_all,
    read_transactions,
)
from logstore.audit.facts.coordinators import CoordinatorLog
from logstore.audit.facts.offsets import Label, visible_count
from logstore.audit.facts.states import StateRecords
from logstore.audit.groups import group_lags
from logstore.audit.open_transactions import Explanation, Verdict
from logstore.audit.partition import Partition
from logstore.audit.verify import PartitionFacts
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.model import TopicPartition
from logstore.topics.partition_for import partition_for
from logstore.topics.transaction_state import TransactionMetadata, TransactionState
from logstore_tools.check_commands import audit as audit_command
from logstore_tools.txns_command import command as txns_command
from tests.naive.legacy import Message, message_set, wrapped
from tests.support.audit_faults import FAULTS as SIDE_FILE_FAULTS
from tests.support.audit_faults import PLAIN_FAULTS
from tests.support.audit_story import COMPLETE_ABORT, ONGOING, PREPARE_ABORT, SOME_TIME, STATE, TIMEOUT_MS, Story
from tests.support.audit_story_faults import (
    AT_A,
    AT_B,
    FAULTS,
    NEXT,
    PAY,
    A,
    B,
    begin,
    clean,
    group_ahead,
    group_behind,
    hanging_unknown,
    late,
    marker_missing,
    timed_out,
)
from tests.support.audit_twenty_faults import twenty_faults
from tests.support.encoder import CONTROL, TRANSACTIONAL, Batch
from tests.support.golden import WRITTEN, Golden
from tests.support.offset_ranges import each_range
from tests.support.stores import FEW_PARTITIONS

SOON_MS = 1000


def audited(story: Story, root: Path) -> AuditedDirectory:
    return audit_directory(str(story.write(root)), story.now_ms + SOON_MS)


def test_a_marker_without_data_is_not_one_of_a_transaction_before_the_last(tmp_path: Path) -> None:
    story = Story()
    story.data(A, PAY, 0)
    story.marker(A, NEXT)  # as transactions of version 2 end, and those that follow as before (KIP-890)
    story.data(A, NEXT, 0)
    story.marker(A, NEXT, commit=False)
    story.marker(A, NEXT, commit=False)
    assert audited(story, tmp_path / "data").findings == ()


@pytest.mark.parametrize(("offset", "found"), [(2, ["marker-contradicting"]), (3, [])])
def test_a_marker_may_have_lost_its_data_to_the_cleaner(offset: int, found: list[str], tmp_path: Path) -> None:
    story = Story()
    story.make_topic("orders", policy="compact")
    story.data(A, PAY, 0)
    story.marker(A, NEXT)
    story.marker(A, NEXT, commit=False)
    story.batches[A][-1] = replace(story.batches[A][-1], base_offset=offset)
    assert [finding.rule for finding in audited(story, tmp_path / "data").findings] == found


@pytest.mark.parametrize(("is_emptied", "found"), [(False, ["marker-missing"]), (True, [])])
def test_data_behind_a_marker_that_was_cleaned_is_of_another_transaction(
    is_emptied: bool, found: list[str], tmp_path: Path
) -> None:
    story = Story()
    story.make_topic(AT_A[0], policy="compact")
    story.data(A, PAY, 0)
    if is_emptied:
        story.append(A, Batch(0, flags=TRANSACTIONAL | CONTROL, producer_id=PAY[0], producer_epoch=NEXT[1]))
    story.data(A, NEXT, 0)
    story.marker(A, (NEXT[0], NEXT[1] + 1))
    assert [finding.rule for finding in audited(story, tmp_path / "data").findings] == found


def test_a_profiler_changes_nothing(tmp_path: Path) -> None:
    profiler = Profile()
    expected = audited(hanging_unknown(), tmp_path / "data")
    found = profiler.runcall(audited, hanging_unknown(), tmp_path / "again")
    rows = [[history.table.tolist() for history in one.transactions.histories.values()] for one in (found, expected)]
    assert rows[0] == rows[1]
    assert any(rows[0])


@pytest.mark.parametrize("name", WRITTEN)
def test_nothing_is_found_in_what_a_broker_wrote(golden: Golden, name: str) -> None:
    root = str(golden(name))
    histories = audit_directory(root, 0).transactions.histories
    written_ms = max(history.largest_timestamp for history in histories.values() if history.largest_timestamp < 2**42)
    found = [(finding.rule, finding.where.offset) for finding in audit_directory(root, written_ms).findings]
    # its workload committed an offset that the log does not have
    assert found == ([("group-ahead", 6)] if name == "groups" else [])


def test_nothing_is_found_in_a_clean_story(tmp_path: Path) -> None:
    found = audited(clean(), tmp_path)
    assert found.findings == ()
    assert sum(len(history.transactions) for history in found.transactions.histories.values()) == 6


@pytest.mark.parametrize(
    ("rule", "story"),
    [pytest.param(rule, story, id=story.__name__) for rule, stories in FAULTS.items() for story in stories],
)
def test_a_planted_fault_is_found_and_nothing_else(rule: str, story: Callable[[], Story], tmp_path: Path) -> None:
    findings = audited(story(), tmp_path).findings
    assert {finding.rule for finding in findings} == {rule}
    assert len(findings) <= 2  # one in each partition that it concerns


def test_facts_go_from_process_to_process(tmp_path: Path) -> None:
    planted, now_ms = twenty_faults(tmp_path)

    def follow_elsewhere(partitions: list[Partition], cluster: Cluster) -> list[PartitionFacts]:
        facts = follow_all(*pickle.loads(pickle.dumps((partitions, cluster))))
        return [pickle.loads(pickle.dumps(one)) for one in facts]

    found = audit_directory(str(tmp_path), now_ms, follow_elsewhere).findings
    assert found == audit_directory(str(tmp_path), now_ms).findings
    assert len(found) == len(planted)


@pytest.mark.parametrize("story", [timed_out, late])
def test_nothing_is_late_where_no_broker_runs(story: Callable[[], Story], tmp_path: Path) -> None:
    found = story()
    root = found.write(tmp_path)
    (root / ".kafka_cleanshutdown").write_text("")
    rules = {finding.rule for finding in audit_directory(str(root), found.now_ms + SOON_MS).findings}
    assert not rules & {"transaction-timeout", "marker-late", "transaction-no-data"}


def test_a_compacted_log_may_have_holes(tmp_path: Path) -> None:
    story = clean()
    story.plain(A, offset=story.end(A) + 3)
    story.cleaner[A] = story.end(A)
    assert audited(story, tmp_path).findings == ()


def test_a_follower_may_have_old_records_of_coordinators_that_newer_ones_replaced(tmp_path: Path) -> None:
    story = clean()
    story.state("pay", NEXT, ONGOING, [AT_A])
    story.state("pay", NEXT, ONGOING, [AT_A, AT_B])
    story.data(A, NEXT, 0)
    story.data(B, NEXT, 0)
    story.state("pay", NEXT, PREPARE_ABORT, [AT_A, AT_B])
    story.marker(A, NEXT, commit=False)
    story.marker(B, NEXT, commit=False)
    story.state("pay", NEXT, COMPLETE_ABORT)
    rows = [row for row, batch in enumerate(story.batches[STATE]) if b"pay" in (batch.records[0].key or b"")]
    for row in (rows[-3], *reversed(rows[1:4])):  # its leader's cleaner took them, before they were fetched
        del story.batches[STATE][row]
    assert audited(story, tmp_path).findings == ()


def test_decisions_of_a_transactional_id_that_was_forgotten_may_be_gone() -> None:
    begun = TransactionMetadata(77, 0, TransactionState.EMPTY, TIMEOUT_MS, (), -1, SOME_TIME, -1, -1, -1, 0)
    ended = begun._replace(producer_id=7, state=TransactionState.COMPLETE_COMMIT, start_timestamp_ms=SOME_TIME)
    records = StateRecords(0)
    for offset, metadata in enumerate([ended, None, begun]):
        records.append("pay", offset, SOME_TIME, metadata)
    log = CoordinatorLog([records])
    assert [each and each.metadata for _, each in records] == [ended, None, begun]
    assert log.owner(7) == log.owner(77) == ("pay", (0, 2, SOME_TIME, begun))
    assert (log.knows_all_of(7), log.knows_all_of(77)) == (False, True)


@pytest.mark.parametrize("transactional_id", ["pay", "page"])
def test_a_transactional_id_in_two_partitions_is_as_its_coordinator_has_it(transactional_id: str) -> None:
    """As after partitions were added to the topic: the state of the highest one was told, and every other was wrong."""
    here = partition_for(transactional_id, 2)
    begun = TransactionMetadata(77, 0, TransactionState.ONGOING, TIMEOUT_MS, (), SOME_TIME, SOME_TIME, -1, -1, -1, 0)
    ended = begun._replace(producer_id=7, state=TransactionState.COMPLETE_COMMIT)
    parts = [StateRecords(0), StateRecords(1)]
    parts[here].append(transactional_id, 5, SOME_TIME, begun)
    parts[1 - here].append(transactional_id, 9, SOME_TIME, ended)
    log = CoordinatorLog(parts, count=2)
    assert log.owner(7) == log.owner(77) == (transactional_id, (here, 5, SOME_TIME, begun))
    assert (log.misfits, len(log.history[transactional_id])) == ([], 1)


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_missed_but_where_a_wrapper_may_hold_them(magic: int, tmp_path: Path) -> None:
    """A wrapper has the offset of its last message alone."""
    story = Story()
    story.make_topic("orders")
    log = story.plain(A).write(tmp_path) / A / f"{0:020}.log"
    first, last = (
        [Message(offset, SOME_TIME if magic else -1, None, b"v") for offset in some] for some in ((0, 1), (5,))
    )
    found = []
    for content in (message_set(magic, first + last), message_set(magic, first) + wrapped(magic, last)):
        log.write_bytes(content)
        findings = audit_directory(str(tmp_path), story.now_ms + SOON_MS).findings
        found.append([(finding.rule, finding.where.offset) for finding in findings])
    assert found == [[("offsets-lost", 2)], []]


def test_offsets_are_labelled_by_what_became_of_them(golden: Golden, tmp_path: Path) -> None:
    view = audited(hanging_unknown(), tmp_path).groups.view("orders", 0)
    ranges = list(each_range(view.ranges))
    assert [one.start for one in ranges] == [0, *(one.end for one in ranges)][:-1]
    assert ranges[-1].label is Label.OPEN
    assert {one.label for one in ranges} == {Label.COMMITTED, Label.CONTROL, Label.ABORTED, Label.OPEN}
    compacted = audit_directory(str(golden("compacted")), SOME_TIME).groups.view("tombstones-kept", 0)
    labels = {one.label for one in each_range(compacted.ranges)}
    assert Label.COMPACTED in labels
    assert Label.LOST not in labels


def test_lag_counts_records_that_a_consumer_gets(tmp_path: Path) -> None:
    groups = audited(hanging_unknown(), tmp_path).groups
    lags = {(lag.group_id, lag.topic): lag for lag in group_lags(groups)}
    copy, view = lags["copy", "orders"], groups.view("orders", 0)
    assert (copy.commit.offset, copy.lag) == (3, view.end - 3)
    # of what follows on offset 3: two committed, one plain, then six and one of the idempotent producer
    assert (copy.record_lag, copy.is_exact) == (2 + 1 + 6 + 1, True)
    assert visible_count(view.ranges, 0, view.stable_end) == (13, True)


def test_there_is_no_lag_behind_a_negative_offset(tmp_path: Path) -> None:
    with logstore.open(tmp_path, config=FEW_PARTITIONS) as store:
        store.create_topic("t")
        store.log("t", 0).append_records([b"a"])
        store.groups.commit(ConsumerGroupMetadata("g"), {TopicPartition("t", 0): OffsetAndMetadata(-1)})
    found = audit_directory(str(tmp_path), SOME_TIME)
    assert [(lag.lag, lag.record_lag) for lag in group_lags(found.groups)] == [(None, None)]
    assert found.findings == ()


@pytest.mark.parametrize(("story", "found"), [(group_behind(), "-2"), (group_ahead(), "99")])
def test_a_group_is_judged_by_its_last_commit(story: Story, found: str, tmp_path: Path) -> None:
    assert [finding.found for finding in audited(story, tmp_path).findings] == [found]


def test_lag_in_a_thinned_batch_is_the_least_it_can_be(golden: Golden) -> None:
    view = audit_directory(str(golden("compacted")), SOME_TIME).groups.view("tombstones-kept", 0)
    thin = next(one for one in each_range(view.ranges) if 0 < one.record_count < one.end - one.start)
    assert visible_count(view.ranges, thin.start, thin.end) == (thin.record_count, True)
    assert visible_count(view.ranges, thin.start + 1, thin.end)[1] is False


def test_explanations_name_who_holds_readers_back(tmp_path: Path) -> None:
    story = Story()
    story.plain(A, 4)
    begin(story)
    story.data(A, PAY, 0, 2)
    story.plain(A)
    root = story.write(tmp_path)
    transactions, _ = read_transactions(str(root), story.now_ms + SOON_MS, "orders-0")
    history = transactions.histories["orders", 0]
    explanation = Explanation(history, transactions.open)
    assert (history.last_stable_offset, history.log_end_offset, len(explanation.open)) == (4, 7, 1)
    assert explanation.blocking.transactional_id == "pay"
    assert explanation.blocking.verdict is Verdict.ONGOING
    assert explanation.missing == "a COMMIT or ABORT marker of producer 7 in orders-0"


def test_txns_prints_lists_and_explanations(tmp_path: Path) -> None:
    story = hanging_unknown()
    root = story.write(tmp_path)
    now = ["--now", str(story.now_ms + SOON_MS)]
    runner = CliRunner()
    listed = runner.invoke(txns_command, ["list", str(root), *now, "--format", "jsonl"])
    assert [json.loads(line)["verdict"] for line in listed.output.splitlines()] == ["hanging"]
    hanging = runner.invoke(txns_command, ["hanging", str(root), *now])
    assert (hanging.exit_code, "hanging" in hanging.output) == (1, True)
    explained = runner.invoke(txns_command, ["explain", str(root / A), *now])
    assert explained.exit_code == 1
    assert "kafka-transactions.sh" in explained.output
    assert "--topic orders --partition 0 --start-offset" in explained.output
    free = runner.invoke(txns_command, ["explain", str(root / "orders-1"), *now])
    assert (free.exit_code, "no transaction is open" in free.output) == (0, True)
    assert runner.invoke(txns_command, ["explain", str(root), *now]).exit_code == 2


@pytest.mark.parametrize(
    ("story", "verdicts"), [(marker_missing(), ["marker is missing"]), (begin(Story()).data(A, PAY, 0), [])]
)
def test_what_no_coordinator_is_going_to_end_is_listed_as_hanging(
    story: Story, verdicts: list[str], tmp_path: Path
) -> None:
    now = ["--now", str(story.now_ms + SOON_MS), "--format", "jsonl"]
    listed = CliRunner().invoke(txns_command, ["hanging", str(story.write(tmp_path)), *now])
    assert [json.loads(line)["verdict"] for line in listed.output.splitlines()] == verdicts
    assert listed.exit_code == len(verdicts)


def test_an_explanation_tells_what_is_open_behind_it_and_what_could_not_be_read(tmp_path: Path) -> None:
    story = begin(Story()).data(A, PAY, 0).data(A, (55, 0), 0).plain("orders-1")
    root = story.write(tmp_path)
    now = ["--now", str(story.now_ms + SOON_MS)]
    explained = CliRunner().invoke(txns_command, ["explain", str(root / A), *now])
    assert "Open behind it: 1 transaction, see `logstore txns list`." in explained.output
    with (root / STATE / f"{0:020}.log").open("r+b") as log:
        log.seek(70)
        log.write(b"!")
    explained = CliRunner().invoke(txns_command, ["explain", str(root / "orders-1"), *now])
    assert "no transaction is open" in explained.stdout
    assert (explained.exit_code, "log-crc" in explained.stderr) == (1, True)


def test_a_marker_is_late_by_the_clock_of_its_coordinator(tmp_path: Path) -> None:
    story = late()
    now = ["--now", str(story.now_ms + SOON_MS)]
    explained = CliRunner().invoke(txns_command, ["explain", str(story.write(tmp_path) / B), *now])
    assert "judged            by its coordinator's clock" in explained.output


def test_audit_prints_and_exits_with_what_it_found(tmp_path: Path) -> None:
    now = ["--now", str(SOME_TIME + TIMEOUT_MS)]
    runner = CliRunner()
    clean_root = clean().write(tmp_path / "clean")
    assert runner.invoke(audit_command, [str(clean_root), *now]).exit_code == 0
    dirty_root = hanging_unknown().write(tmp_path / "dirty")
    found = runner.invoke(audit_command, [str(dirty_root), *now, "--format", "jsonl"])
    assert found.exit_code == 1
    assert [json.loads(line).get("rule") for line in found.output.splitlines()] == [None, "transaction-hanging"]


def test_every_rule_has_a_fault() -> None:
    planted = FAULTS.keys() | SIDE_FILE_FAULTS.keys() | PLAIN_FAULTS.keys() | {"log-unreadable"}
    assert {rule.name for rule in checks.RULES} == planted
    assert len({rule.name for rule in checks.RULES}) == len(checks.RULES)
