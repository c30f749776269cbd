"""Records that retention would delete half a minute after a start are told before, with their number."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import logstore
from logstore.client.store import Store
from logstore_tools.commands import logstore as command_line
from logstore_tools.takeover.inspection import inspect
from tests.support.clock import Clock
from tests.support.logs import read_so_far
from tests.support.stores import FEW_PARTITIONS, open_store, values_of

DAY_MS = 86_400_000
START_MS = 1_700_000_000_000
MONTH_LATER_MS = START_MS + 30 * DAY_MS
SEGMENT = {"internal.segment.bytes": 400}  # of two batches with 100 bytes each


def call(*args: str) -> Result:
    return CliRunner().invoke(command_line, list(args))


def fill(store: Store, topic: str, times_ms: list[int], **config: object) -> None:
    """One batch of 100 bytes at each of these times."""
    store.create_topic(topic, config={"segment.ms": 2**60, **config})
    for number, time_ms in enumerate(times_ms):
        store.log(topic, 0).append_records([b"x" * 100], keys=[b"%d" % number], timestamps=[time_ms])


def told(root: Path, now_ms: int = MONTH_LATER_MS) -> list[str]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("logstore.clock.now_ms", lambda: now_ms)
        return [text for text in inspect(str(root)).warnings if text.startswith("retention: ")]


def deleted(root: Path, topic: str, now_ms: int = MONTH_LATER_MS) -> int:
    """How many offsets the first run of retention deletes."""
    with open_store(root, now_ms=lambda: now_ms) as store:
        before = store.log(topic, 0).log_start_offset
        store.directory._housekeeping.delete_old_segments()
        store.directory._housekeeping.delete_old_segments(is_compacted=True)
        return store.log(topic, 0).log_start_offset - before


OLD, NEW = START_MS, START_MS + 29 * DAY_MS


@pytest.mark.parametrize("was_clean", [True, False], ids=["closed", "crashed"])
@pytest.mark.parametrize(
    ("times_ms", "config", "count"),
    [
        ([OLD] * 5, {}, 5),
        ([OLD] * 3 + [NEW] * 2, SEGMENT, 2),
        ([OLD, NEW, OLD, OLD, OLD], SEGMENT, 0),  # a newer record in the first segment keeps all
        ([OLD] * 5, {"retention.ms": -1}, 0),
        ([OLD] * 5, {"retention.ms": 31 * DAY_MS}, 0),
        ([OLD] * 5, {"retention.ms": 31 * DAY_MS, "retention.bytes": 500, **SEGMENT}, 2),
        ([NEW] * 5, {"retention.bytes": 0, **SEGMENT}, 5),
        ([OLD] * 5, {"cleanup.policy": "compact"}, 0),
        ([OLD] * 5, {"cleanup.policy": "compact,delete"}, 5),
        ([], {}, 0),
    ],
    ids=["old", "some", "mixed", "for ever", "longer", "size", "no size", "compact", "both", "empty"],
)
def test_as_much_is_told_as_is_deleted(
    tmp_path: Path, times_ms: list[int], config: dict[str, object], count: int, was_clean: bool
) -> None:
    root = tmp_path / "data"
    with open_store(root, config=FEW_PARTITIONS, now_ms=lambda: MONTH_LATER_MS) as store:
        fill(store, "orders", times_ms, **config)
        if not was_clean:
            shutil.copytree(root, tmp_path / "copy")
    root = root if was_clean else tmp_path / "copy"
    texts = told(root)
    assert [f"deletes {count} of {len(times_ms)} offsets of topic orders" in one for one in texts] == [True] * bool(
        count
    )
    assert deleted(root, "orders") == count


def test_a_segment_without_timestamps_has_the_time_of_its_file(tmp_path: Path) -> None:
    with open_store(tmp_path, now_ms=lambda: MONTH_LATER_MS) as store:
        fill(store, "orders", [-1, -1])
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    for age_ms, count in ((DAY_MS, 0), (8 * DAY_MS, 1)):
        os.utime(path, ((MONTH_LATER_MS - age_ms) / 1000,) * 2)
        assert len(told(tmp_path)) == count


def test_the_rule_is_told_and_whether_it_is_a_default(tmp_path: Path) -> None:
    with open_store(tmp_path, now_ms=lambda: MONTH_LATER_MS, config={"log.retention.hours": -1}) as store:
        fill(store, "orders", [OLD])
    assert "by retention.ms=604800000 by default" in told(tmp_path)[0]
    with open_store(tmp_path, now_ms=lambda: MONTH_LATER_MS) as store:
        assert store.alter_config("orders", {"retention.ms": DAY_MS}).config["retention.ms"] == str(DAY_MS)
    assert "by retention.ms=86400000: " in told(tmp_path)[0]


@pytest.mark.parametrize("command", ["promote", "import"])
def test_commands_tell_it_before(tmp_path: Path, command: str) -> None:
    with open_store(tmp_path, now_ms=lambda: MONTH_LATER_MS) as store:
        fill(store, "orders", [OLD] * 4)
    for args in (["--dry-run"], []):
        result = call(command, *args, str(tmp_path))
        assert result.exit_code == 0, result.output
        assert "deletes 4 of 4 offsets of topic orders half a minute after its start" in result.output
        assert "the newest of 2023-11-14" in result.output


def test_an_opening_tells_it_before_it_happens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with open_store(tmp_path, now_ms=lambda: MONTH_LATER_MS) as store:
        fill(store, "orders", [OLD] * 4)
    assert caplog.records == []  # it was empty when it was opened
    clock = Clock(MONTH_LATER_MS)
    with open_store(tmp_path, now_ms=clock) as store:
        (record,) = caplog.records
        assert (record.levelno, record.name) == (logging.WARNING, "logstore")
        assert "deletes 4 of 4 offsets of topic orders" in record.getMessage()
        store.alter_config("orders", {"retention.ms": -1})
        clock.now_ms += 60_000
        store.run_due()
        assert len(values_of(store, "orders")) == 4
    caplog.clear()
    open_store(tmp_path, now_ms=clock).close()
    assert caplog.records == []


def test_topics_that_nobody_configured_keep_everything(tmp_path: Path) -> None:
    root = tmp_path / "data"
    with open_store(root, config=FEW_PARTITIONS, now_ms=lambda: MONTH_LATER_MS) as store:
        fill(store, "orders", [OLD] * 4)
        fill(store, "prices", [OLD] * 4, **{"cleanup.policy": "compact"})
        store.transactions.init_producer_id("billing", 60_000)
    copies = tmp_path / "copies"
    copies.mkdir()
    for name in ("orders-0", "prices-0", "__transaction_state-0"):
        shutil.copytree(root / name, copies / name)
    for args in (["--dry-run"], []):
        result = call("promote", *args, str(copies))
        assert (result.exit_code, "deletes" in result.output) == (0, False), result.output
        for name in ("orders", "prices"):
            assert f"make topic {name} of 1 partitions with id" in result.output
        assert result.output.count("and with retention.ms=-1, as nobody knows its configuration") == 2
    with logstore.open(copies) as store:
        configs = {name: topic.config for name, topic in store.topics.items()}
        assert configs["orders"] == configs["prices"] == {"retention.ms": "-1"}
        assert configs["__transaction_state"]["cleanup.policy"] == "compact"
        assert len(values_of(store, "orders")) == 4
    assert told(copies) == []


def test_a_partition_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    with open_store(tmp_path, now_ms=lambda: MONTH_LATER_MS) as store:
        fill(store, "orders", [OLD])
        fill(store, "prices", [OLD])
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_bytes(b"7\n")
    assert len(told(tmp_path)) == 2  # no record is read by its epoch
    log = tmp_path / "orders-0" / f"{0:020d}.log"
    log.unlink()
    log.mkdir()
    assert ["of topic prices " in text for text in told(tmp_path)] == [True]
    open_store(tmp_path, now_ms=lambda: MONTH_LATER_MS).close()
    shutil.rmtree(tmp_path / "orders-0")
    (tmp_path / "orders-0").write_bytes(b"")
    assert ["of topic prices " in text for text in told(tmp_path)] == [True]


@pytest.mark.parametrize("was_clean", [True, False], ids=["closed", "crashed"])
def test_little_of_a_large_log_is_read_for_it(tmp_path: Path, was_clean: bool) -> None:
    """Without snapshots too: a reader of the partition would begin at the newest one."""
    root = tmp_path / "data"
    with open_store(root, config=FEW_PARTITIONS, now_ms=lambda: MONTH_LATER_MS) as store:
        store.create_topic("orders", config={"internal.segment.bytes": 1 << 20})
        for number in range(300):
            store.log("orders", 0).append_records([b"x" * 20_000], timestamps=[OLD + number])
        if not was_clean:
            shutil.copytree(root, tmp_path / "copy")
    root = root if was_clean else tmp_path / "copy"
    for snapshot in (root / "orders-0").glob("*.snapshot"):
        snapshot.unlink()
    told(root)  # what is imported for it is imported
    before = read_so_far()
    (text,) = told(root)
    assert "deletes 300 of 300 offsets of topic orders" in text
    assert read_so_far() - before < 6_000_000 / 2
