"""Directories that pass between stores and brokers of several Kafkas, whose levels decide who may start on them.

The table of what was tried stands in `docs/explanation/versions.md`.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.audit.directory_audit import audit_directory
from logstore.clock import now_ms
from logstore.config.kafka_version import (
    METADATA_VERSION,
    NEWEST,
    V4_3,
    VERSIONS,
    KafkaVersion,
    default_levels,
    level_name,
)
from logstore_tools.takeover.inspection import inspect
from tests.support.broker import Broker
from tests.support.oracle import FIRST, Oracle
from tests.support.take_over import ask, judge, run, warnings

pytestmark = pytest.mark.kafka

SETTINGS = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2}
OLDER = ("3.7.2", "3.9.2", "4.0.2", "4.1.2", "4.2.2")
FIRST_WITH_DYNAMIC_QUORUM, FIRST_WITH_USERS = 21, 11
BEFORE_4 = (
    "log4j.rootLogger=INFO, A\nlog4j.appender.A=org.apache.log4j.ConsoleAppender\n"
    "log4j.appender.A.layout=org.apache.log4j.PatternLayout\n"
    "log4j.appender.A.layout.ConversionPattern=[%d] %p %m (%c)%n\n"
)


def write(root: Path, processed: int) -> None:
    """Write as clients of a broker go on: a transaction with the offset processed so far, and a plain batch."""
    with logstore.open(root) as store:
        assert store.failures == {}
        with store.producer(transactional_id="billing") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("ledger", b"ours", key=b"k", partition=0)
            producer.send_offsets_to_transaction({logstore.TopicPartition("ledger", 1): processed}, group_id="readers")
            producer.commit_transaction()
        with store.producer() as plain:
            plain.send("ledger", b"plain of ours", key=b"k", partition=1)


def levels_of(root: Path) -> dict[str, int]:
    """The levels of the metadata; the one of the quorum itself is no record of them."""
    return {**inspect(str(root)).features, "kraft.version": 1}


def identity_of(root: Path) -> set[str]:
    return {line for line in (root / "meta.properties").read_text().splitlines() if not line.startswith("#")}


def assert_no_findings(root: Path) -> None:
    assert [str(finding) for finding in audit_directory(str(root), now_ms()).findings] == []


def assert_worked_on(state: dict[str, Any]) -> None:
    """What `TakeOver work`, `write` and `TakeOver finish` left is there, in order."""
    values = [[value.partition(":")[2] for value in read["values"]] for read in state["topics"]["ledger"]["read"]]
    assert values == [["plain", "paid", "ours", "again", "fresh"], ["p1", "q", "plain of ours"]]
    assert all(read["stable"] == read["end"] for read in state["topics"]["ledger"]["read"])
    assert state["groups"] == {"audit": {"ledger-0": "1 half"}, "readers": {"ledger-1": "3 "}}
    assert {name: text.split()[0] for name, text in state["transactions"].items()} == {
        "billing": "CompleteCommit",
        "left-open": "CompleteCommit",
    }


def raised(oracle: Oracle, root: Path) -> None:
    """Make a store, let clients of a broker work on it, raise all levels there, and write again in the store."""
    with logstore.open(root, config=SETTINGS) as store:
        store.create_topic("orders")
        with store.producer() as producer:
            producer.send("orders", b"before")
    assert inspect(str(root)).features[METADATA_VERSION] == V4_3.highest_level
    broker = Broker(oracle, root, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        (cluster,) = ask(oracle, address, root.parent, "work", "upgrade", "cluster")
    assert cluster["features"] == {name: highest for name, (_, highest) in NEWEST.features.items()}
    run("import", str(root))
    write(root, 3)
    assert_no_findings(root)


@pytest.mark.slow
def test_a_store_is_written_again_after_a_broker_raised_its_levels(tmp_path: Path) -> None:
    raised(judge(NEWEST.release), tmp_path / "data")
    assert levels_of(tmp_path / "data") == {name: highest for name, (_, highest) in NEWEST.features.items()}


@pytest.mark.long
def test_clients_of_a_broker_go_on_where_the_store_wrote_at_its_levels(tmp_path: Path) -> None:
    oracle, root = judge(NEWEST.release), tmp_path / "data"
    raised(oracle, root)
    run("promote", str(root))
    broker = Broker(oracle, root, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        finished, state, cluster = ask(oracle, address, tmp_path, "finish", "state", "cluster")
    assert warnings(broker) == []
    assert (finished["transaction"], finished["aborted"]) == ("Ongoing", True)
    assert_worked_on(state)
    assert cluster["features"] == {name: highest for name, (_, highest) in NEWEST.features.items()}
    with pytest.raises(RuntimeError, match="the broker did not start"):  # there is no way down
        start(Broker(judge(FIRST), root, {}, [], is_formatted=True))
    assert_no_findings(root)


def start(broker: Broker) -> None:
    with broker.running(signal.SIGTERM):
        assert broker.process is not None
        broker.process.wait(60)  # it may have said that it has started, just before it ends
        raise RuntimeError("the broker did not start")


def levels() -> list[tuple[int, bool]]:
    """Each level with a static quorum, and with a dynamic one where Kafka has one."""
    lowest, highest = NEWEST.features[METADATA_VERSION]
    all_levels = range(lowest, highest + 1)
    return [
        (level, is_static)
        for level in all_levels
        for is_static in (True, False)
        if is_static or level >= FIRST_WITH_DYNAMIC_QUORUM
    ]


def formatted(oracle: Oracle, root: Path, level: int, *, is_static: bool) -> dict[str, int]:
    """Let `kafka-storage format` make a directory; return the levels that it has to have."""
    broker = Broker(oracle, root, {}, [], is_formatted=True, is_static=is_static)
    flags = ["--release-version", level_name(level), *["--standalone"] * (not is_static)]
    if level >= FIRST_WITH_USERS:
        flags += ["--add-scram", "SCRAM-SHA-256=[name=alice,password=secret]"]
    broker.format(*flags)
    expected = default_levels(level)
    if is_static:
        expected.pop("kraft.version", None)
    return expected


@pytest.mark.long
@pytest.mark.parametrize(("level", "is_static"), levels())
def test_what_kafka_formatted_at_a_level_is_started_by_each_kafka_that_knows_it(
    level: int, is_static: bool, tmp_path: Path
) -> None:
    root = tmp_path / "data"
    expected = formatted(judge(NEWEST.release), root, level, is_static=is_static)
    identity = identity_of(root)
    users = ["alice"] * (level >= FIRST_WITH_USERS)
    with logstore.open(root, config=SETTINGS) as store:
        store.create_topic("ledger", 2)
    write(root, 0)
    run("promote", str(root))
    assert_no_findings(root)
    for kafka in VERSIONS:
        assert_started(kafka, root, expected, users, is_static=is_static)
    assert levels_of(root) == {"kraft.version": 1, **expected}
    assert identity_of(root) == identity


def assert_started(
    kafka: KafkaVersion, root: Path, levels: dict[str, int], users: list[str], *, is_static: bool
) -> None:
    """The broker of a version starts with these users and features, or, if it does not know the level, refuses to."""
    oracle = judge(kafka.release)
    broker = Broker(oracle, root, {}, [], is_formatted=True, is_static=is_static)
    if not kafka.knows_levels(levels):
        with pytest.raises(RuntimeError, match="the broker did not start"):
            start(broker)
        return
    with broker.running(signal.SIGTERM) as address:
        cluster, state = ask(oracle, address, root.parent, "cluster", "state")
    assert cluster == {"features": levels, "users": users, "topics": ["ledger"]}
    assert [read["values"][0].partition(":")[2] for read in state["topics"]["ledger"]["read"]] == [
        "ours",
        "plain of ours",
    ]


@pytest.mark.long
@pytest.mark.parametrize("release", OLDER)
def test_an_older_broker_starts_again_on_what_was_written_here(release: str, tmp_path: Path) -> None:
    older, clients, root = judge(release), judge(FIRST), tmp_path / "data"
    logging = tmp_path / "log4j.properties"
    logging.write_text(BEFORE_4)
    options = [f"-Dlog4j.configuration=file:{logging}"]
    is_static = release < "3.9"
    broker = Broker(older, root, {}, [], is_static=is_static, jvm_options=options)
    with broker.running(signal.SIGTERM) as address:
        (cluster,) = ask(clients, address, tmp_path, "work", "cluster")
    assert_no_findings(root)
    with logstore.open(root, read_only=True) as reading:
        assert reading.log("ledger", 0).log_end_offset == 6
    run("import", str(root))
    write(root, 3)
    run("promote", str(root))
    assert_no_findings(root)
    broker = Broker(older, root, {}, [], is_formatted=True, is_static=is_static, jvm_options=options)
    with broker.running(signal.SIGTERM) as address:
        finished, state, again = ask(clients, address, tmp_path, "finish", "state", "cluster")
    assert (finished["transaction"], finished["aborted"]) == ("Ongoing", True)
    assert_worked_on(state)
    assert again == cluster
    assert_no_findings(root)
