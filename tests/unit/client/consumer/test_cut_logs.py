"""Groups whose logs a power failure has cut below what they committed (KIP-320)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import logstore
from logstore import clock
from logstore.client.consumer import Consumer
from logstore.client.store import Store
from logstore.errors import DataDirectoryError, OffsetOutOfRangeError
from logstore.log.load.loader import LogLoader
from logstore.model import TopicPartition
from logstore_tools.commands import logstore as command
from tests.support.stores import open_store

T0 = TopicPartition("t", 0)


@pytest.fixture(params=["one crash", "two crashes", "deleted records", "recover"])
def cut(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The directory of a store whose group `g` has committed offset 5, and of whose log 3 records are left."""
    root = tmp_path / "store"
    with open_store(root) as store:
        store.create_topic("t")
        log = store.log("t", 0)
        for number in range(3):
            log.append_records([b"%d" % number])
        size = log.size
        if request.param == "two crashes":
            root = Path(shutil.copytree(root, tmp_path / "crashed"))
    with open_store(root) as store:
        store.log("t", 0).append_records([b"3", b"4"])
        consumer = store.consumer("t", group_id="g", auto_offset_reset="earliest")
        consumer.poll()
        consumer.commit()
        if request.param == "deleted records":  # which come back, as the checkpoint of their end is lost
            store.log("t", 0).delete_records(5)
            consumer.commit()
        consumer.close()
        cut = Path(shutil.copytree(root, tmp_path / "cut"))
    if request.param == "recover":  # of a directory that was closed
        cut = root
    with (cut / "t-0" / f"{0:020d}.log").open("r+b") as file:
        file.truncate(size + 1 if request.param == "recover" else size)
    if request.param == "recover":
        assert CliRunner().invoke(command, ["recover", str(cut / "t-0"), "--unclean"]).exit_code == 0
    return cut


def read(store: Store, **config: str) -> list[bytes]:
    with store.consumer("t", group_id="g", **config) as consumer:
        return [record.value for records in consumer.poll().values() for record in records]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_group_reads_what_came_where_its_log_was_cut(cut: Path, count: int) -> None:
    written = [b"new %d" % number for number in range(count)]
    with open_store(cut) as store:
        store.log("t", 0).append_records(written)
        assert read(store) == written


def test_a_group_goes_on_at_the_end_of_a_cut_log(cut: Path) -> None:
    with open_store(cut) as store, store.consumer("t", group_id="g", auto_offset_reset="earliest") as consumer:
        assert consumer.poll() == {}
        assert consumer.position(T0) == 3


@pytest.mark.parametrize(
    "seek",
    [
        lambda consumer: consumer.seek_to_committed(),
        lambda consumer: consumer.seek(T0, consumer.committed(T0)[T0]),
    ],
)
def test_seeking_goes_back_to_where_a_log_was_cut(cut: Path, seek: Callable[[Consumer], None]) -> None:
    with open_store(cut) as store, store.consumer(group_id="g") as consumer:
        store.log("t", 0).append_records([b"new"] * 3)
        consumer.assign([T0])
        seek(consumer)
        assert consumer.position(T0) == 3


def test_a_recovery_that_is_interrupted_is_not_taken_for_a_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(tmp_path) as store:
        store.create_topic("t")
        store.log("t", 0).append_records([b"whole"])
    with (tmp_path / "t-0" / f"{0:020d}.log").open("ab") as file:
        file.write(b"torn")

    def interrupted(_: LogLoader) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LogLoader, "apply", interrupted)
    CliRunner().invoke(command, ["recover", str(tmp_path / "t-0"), "--unclean"])
    assert not (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Consumer, Callable[[int], None]]]:
    """Makes a consumer of ten records, which looks anew in each poll, and what cuts them to five and writes others."""
    monkeypatch.setattr(clock, "monotonic_s", count(step=2).__next__)

    def made(**config: Any) -> tuple[Consumer, Callable[[int], None]]:
        with open_store(tmp_path) as store:
            store.create_topic("t")
            log = store.log("t", 0)
            sizes = [log.append_records([b"%d" % number]) and log.size for number in range(10)]
        consumer = logstore.open(tmp_path, read_only=True).consumer(**config)
        consumer.assign([T0])
        consumer.seek_to_beginning()
        consumer.poll()

        def cut(new_count: int) -> None:
            (tmp_path / ".kafka_cleanshutdown").unlink()
            with (tmp_path / "t-0" / f"{0:020d}.log").open("r+b") as file:
                file.truncate(sizes[4])
            with open_store(tmp_path) as store:
                for _ in range(new_count):
                    store.log("t", 0).append_records([b"a larger one"])

        return consumer, cut

    return made


def of_records(consumer: Consumer) -> list[int]:
    return [record.offset for records in consumer.poll().values() for record in records]


def of_table(consumer: Consumer) -> list[int]:
    return consumer.to_arrow()["offset"].to_pylist()


both_ways = pytest.mark.parametrize("offsets", [of_records, of_table])


@both_ways
@pytest.mark.parametrize("new_count", [0, 1, 8])
def test_a_consumer_beside_the_writer_goes_back_to_where_the_log_was_cut(
    beside: Any, new_count: int, offsets: Callable[[Consumer], list[int]]
) -> None:
    consumer, cut = beside()
    assert (offsets(consumer), consumer.position(T0)) == ([], 10)
    cut(new_count)
    found = [offset for _ in range(3) for offset in offsets(consumer)]
    assert (found, consumer.position(T0)) == ([*range(5, 5 + new_count)], 5 + new_count)


def test_a_consumer_beside_the_writer_is_told_of_a_cut_without_a_reset_policy(beside: Any) -> None:
    consumer, cut = beside(auto_offset_reset="none")
    cut(8)
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError, match=r"Truncation detected .* at offset 10"):
            consumer.poll()
    consumer.seek(T0, 5)
    assert of_records(consumer) == [*range(5, 13)]


@both_ways
def test_a_consumer_beside_the_writer_reads_on_where_what_it_was_to_read_is_gone(
    beside: Any, offsets: Callable[[Consumer], list[int]]
) -> None:
    consumer, cut = beside(max_partition_fetch_bytes=1, max_poll_records=1)
    cut(0)
    with pytest.raises(DataDirectoryError, match="became shorter"):
        offsets(consumer)
    assert [offset for _ in range(6) for offset in offsets(consumer)] == [1, 2, 3, 4]
    assert consumer.position(T0) == 5


@both_ways
def test_a_consumer_beside_the_writer_goes_back_from_where_it_can_read_no_further(
    beside: Any, offsets: Callable[[Consumer], list[int]]
) -> None:
    consumer, cut = beside(max_partition_fetch_bytes=1, max_poll_records=8)
    cut(8)  # with larger batches: what was its last byte lies before its last offset
    found = [offset for _ in range(6) for offset in offsets(consumer)]
    assert (found[-8:], consumer.position(T0)) == ([*range(5, 13)], 13)


def test_without_a_reset_policy_a_cut_log_is_told(cut: Path) -> None:
    told = pytest.raises(OffsetOutOfRangeError, match=r"Truncation detected .* at offset 5")
    with open_store(cut) as store, store.consumer(group_id="g", auto_offset_reset="none") as consumer:
        store.create_topic("other")
        store.log("other", 0).append_records([b"read"])
        consumer.commit({("other", 0): 0})
        consumer.assign([T0, ("other", 0)])
        with told:
            consumer.poll()
        assert list(consumer.poll()) == [("other", 0)]
        for _ in range(2):
            with told:
                consumer.poll()
        with told:
            consumer.position(T0)
        consumer.seek(T0, 3)
        assert consumer.poll() == {}
