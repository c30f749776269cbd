"""Everything that two producers, two partitions and a stopping coordinator can do within some steps of every moment in
the lives of two transactions: one that is committed, and one that a second producer ends."""

from __future__ import annotations

import pytest

from logstore.coordinator.transactions.transaction import Transaction, log_record
from logstore.topics.transaction_state import TransactionState
from tests.naive.transactions import broken_rules, broken_rules_at_rest
from tests.properties.coordinator_world import ID, World
from tests.support.sampling import case_count

#: how far every moment is followed, in all directions
STEPS = case_count("LOGSTORE_WORLD_STEPS", sample=3, whole=4)
BEGIN = ["init 0", "append", "begin 0 0", "append", "write 0 0"]
COMMITTED = [*BEGIN, "add 0 1", "append", "write 0 1", "commit 0", "append", "marker 1", "marker 0", "complete"]
REPEATED = [*COMMITTED[:9], "append, answer lost", "marker 0", "marker 1", "complete", "end again 0", "begin 0 0"]
FENCED = [*BEGIN, "init 1", "append", "marker 0", "complete", "init again 1", "append", "begin 1 0", "append"]
FENCED += ["write 1 0", "abort 1", "append", "marker 0", "complete"]


def loaded(version: int, epoch: int) -> World:
    """A world whose transactional id has used up all but a few of its epochs."""
    current = Transaction(ID, 0, epoch, TransactionState.COMPLETE_COMMIT, 1000, start_timestamp_ms=0)
    return World(version, current=current, log=log_record(current, version=min(version, 1)))


CASES = {
    "version 1": World(1),
    "version 2": World(2),
    "version 1, last epochs": loaded(1, 32764),
    "version 2, last epochs": loaded(2, 32764),
}


def identity(world: World) -> tuple[int, int]:
    assert world.current is not None
    return world.current.producer_id, world.current.producer_epoch


def story(parents: dict[World, tuple[str, World] | None], world: World) -> str:
    steps = []
    parent = parents[world]
    while parent is not None:
        steps.append(parent[0])
        parent = parents[parent[1]]
    return "; ".join(reversed(steps))


def check(before: World, after: World) -> None:
    """What holds in every world, and after every crash."""
    assert not after.zombie_wrote
    assert broken_rules(after.partitions, after.acknowledged) == []
    if before.log is not None and before.log != after.log:
        assert identity(before.at_rest()) <= identity(after.at_rest())
    rest = after.at_rest()
    ongoing = rest.ongoing if rest.current is not None and rest.current.state == TransactionState.ONGOING else None
    assert broken_rules_at_rest(rest.partitions, rest.acknowledged, ongoing) == []
    if rest.current is not None and rest.log is not None:
        assert rest.current.state not in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)


def moments(start: World, steps: list[str]) -> list[World]:
    """The worlds along a way."""
    worlds = [start]
    for step in steps:
        worlds.append(dict(worlds[-1].successors())[step])
    return worlds


def explore(start: World, parents: dict[World, tuple[str, World] | None], seen: set[str]) -> None:
    """Check all that is within STEPS of `start` and was not met before."""
    frontier = [start]
    near = {start}
    for _ in range(STEPS):
        following = []
        for world in frontier:
            for step, after in world.successors():
                if after in near:
                    continue
                near.add(after)
                following.append(after)
                if after in parents:
                    continue
                parents[after] = step, world
                seen.add(step.split(" ")[0])
                try:
                    check(world, after)
                except AssertionError as error:
                    raise AssertionError(story(parents, after)) from error
        frontier = following


@pytest.mark.parametrize("case", CASES)
def test_no_order_of_steps_breaks_a_transaction(case: str) -> None:
    start = CASES[case]
    parents: dict[World, tuple[str, World] | None] = {start: None}
    seen: set[str] = set()
    for way in (COMMITTED, REPEATED, FENCED):
        worlds = moments(start, way)
        for before, after, step in zip(worlds, worlds[1:], way, strict=False):
            parents.setdefault(after, (step, before))
        for world in worlds:
            explore(world, parents, seen)
    assert seen >= {"init", "begin", "add", "write", "commit", "abort", "append", "append,", "marker", "complete"}
    assert seen >= {"crash", "timeout", "end"}
    assert any(len(world.acknowledged) == 2 for world in parents)
    assert any(world.partitions[0].decided & world.partitions[1].decided for world in parents)
