"""Readers of the partitions that a real broker is writing, rolling and cleaning meanwhile."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from logstore.layout.file_names import parse_partition_directory
from logstore.model import FetchIsolation
from logstore.view.partition_reader import PartitionReader
from logstore.view.records import Record
from tests.kafka.broker import Broker
from tests.kafka.make_golden import RECIPES
from tests.kafka.oracle import Oracle

pytestmark = pytest.mark.kafka


class Follower:
    """What a read_committed consumer of one partition has got so far."""

    def __init__(self, directory: Path) -> None:
        self.reader = PartitionReader(str(directory))
        self.position = 0
        self.got: list[Record] = []

    def poll(self) -> None:
        self.reader.refresh()
        bounds = self.reader.bounds
        assert self.reader.problem is None
        self.position = max(self.position, bounds.log_start_offset)
        records = self.reader.records(self.position, isolation=FetchIsolation.READ_COMMITTED)
        for chunk in records.chunks():
            assert int(chunk.records.offset[0]) >= self.position
            self.got += chunk.to_records()
            self.position = chunk.next_offset
        assert self.position <= bounds.last_stable_offset
        self.position = max(self.position, records.position)


def follow_while_it_runs(oracle: Oracle, name: str, place: Path) -> Iterator[dict[str, Follower]]:
    """Followers of all partitions of the golden directory `name` as it comes to be; at last when its broker ended."""
    recipe = RECIPES[name]
    directory = place / name
    broker = Broker(oracle, directory, recipe.settings, list(recipe.features))
    arguments = [argument.format(directory=directory) for argument in recipe.arguments]
    followers: dict[str, Follower] = {}
    with broker.running(signal.SIGTERM) as bootstrap, ThreadPoolExecutor(1) as pool:
        work = pool.submit(oracle.run, recipe.main_class, bootstrap, *arguments, cwd=place)
        while not work.done():
            poll_all(directory, followers)
            yield followers
        work.result()
    poll_all(directory, followers)
    yield followers


def poll_all(directory: Path, followers: dict[str, Follower]) -> None:
    for path in sorted(directory.iterdir()):
        if path.is_dir() and path.name not in followers and parse_partition_directory(path.name) is not None:
            followers[path.name] = Follower(path)
    for follower in followers.values():
        follower.poll()


@pytest.mark.parametrize("name", ["transactions", "compacted"])
def test_what_was_got_on_the_way_is_what_is_there_in_the_end(oracle: Oracle, tmp_path: Path, name: str) -> None:
    polls = list(follow_while_it_runs(oracle, name, tmp_path))
    followers = polls[-1]
    assert len(polls) > 5
    assert sum(len(follower.got) for follower in followers.values()) > 100
    for partition, follower in followers.items():
        fresh = PartitionReader(str(tmp_path / name / partition))
        assert follower.reader.bounds == fresh.bounds
        left = Follower(tmp_path / name / partition)
        left.poll()
        offsets = [record.offset for record in follower.got]
        assert offsets == sorted(set(offsets))
        # a cleaner may have taken some away since, and added none
        by_offset = {record.offset: record for record in follower.got}
        assert [by_offset.get(record.offset) for record in left.got] == left.got
        if name == "transactions" and not partition.startswith("__"):
            assert follower.got == left.got
