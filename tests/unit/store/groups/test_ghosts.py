"""Members of a process that has ended: none is left in the log, where a broker would wait for it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore.client.store import Store
from logstore.replay.internal_topic import ReplayedRecord, replayed
from logstore.topics.consumer_offsets import GroupKey, GroupMetadata, decode_key, decode_value
from logstore_tools.commands import logstore as command_line
from tests.support.group_members import member

CONFIG = {"offsets.topic.num.partitions": 1}


def groups_of(path: Path) -> list[GroupMetadata]:
    """Every state of group `g` in the log."""
    found = []
    with logstore.open(path, read_only=True) as store:
        for one in replayed(store.log("__consumer_offsets", 0)):
            assert isinstance(one, ReplayedRecord)
            assert one.key is not None
            key = decode_key(one.key)
            value = decode_value(key, one.value)
            if key == GroupKey("g"):
                assert isinstance(value, GroupMetadata)
                found.append(value)
    return found


def joined(store: Store) -> list[object]:
    """Two members of group `g`, one of them static."""
    store.create_topic("t", 4)
    members = [member(store), member(store, group_instance_id="a")]
    for _ in range(4):
        for one in members:
            one.poll()
    assert len(store.groups.describe("g").members) == 2
    return list(members)


def test_the_timeouts_of_a_member_are_logged_as_kafka_has_them(tmp_path: Path) -> None:
    with logstore.open(tmp_path, config=CONFIG) as store:
        store.create_topic("t")
        member(store, session_timeout_ms=7_000, max_poll_interval_ms=90_000).poll()
        member(store).poll()
    timeouts = {(one.session_timeout_ms, one.rebalance_timeout_ms) for one in groups_of(tmp_path)[0].members}
    assert timeouts == {(7_000, 90_000)}


def test_a_store_that_is_closed_leaves_no_members(tmp_path: Path) -> None:
    with logstore.open(tmp_path, config=CONFIG) as store:
        _members = joined(store)
    states = groups_of(tmp_path)
    assert [len(one.members) for one in states[-2:]] == [2, 0]
    with logstore.open(tmp_path) as store:
        member(store).poll()
        assert store.groups.describe("g").generation == states[-1].generation + 1


@pytest.mark.parametrize(
    "taken_over",
    [
        lambda path: logstore.open(path).close(),
        lambda path: CliRunner().invoke(command_line, ["promote", str(path)], catch_exceptions=False),
        lambda path: CliRunner().invoke(command_line, ["import", str(path)], catch_exceptions=False),
    ],
    ids=["open", "promote", "import"],
)
def test_members_of_a_process_that_died_are_expelled_by_the_recovery(
    tmp_path: Path, taken_over: Callable[[Path], object]
) -> None:
    with logstore.open(tmp_path / "running", config=CONFIG) as store:
        _members = joined(store)
        crashed = Path(shutil.copytree(tmp_path / "running", tmp_path / "crashed"))
    assert len(groups_of(crashed)[-1].members) == 2
    taken_over(crashed)
    assert groups_of(crashed)[-1].members == ()
    before = (crashed / "__consumer_offsets-0" / f"{0:020d}.log").read_bytes()
    logstore.open(crashed).close()  # there is nothing more to say
    assert (crashed / "__consumer_offsets-0" / f"{0:020d}.log").read_bytes() == before
