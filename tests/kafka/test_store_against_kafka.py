"""One data directory, by turns a store's and an unmodified broker's: what clients see stays what it was."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import logstore
from logstore.client.store import Store
from logstore.model import FetchIsolation
from logstore_tools.commands import logstore as command_line
from tests.support.broker import Broker
from tests.support.logs import records_of
from tests.support.oracle import Oracle
from tests.support.take_over import ask, warnings

pytestmark = pytest.mark.kafka


def committed(store: Store, topic: str, partition: int) -> list[str]:
    records = records_of(store.log(topic, partition), isolation=FetchIsolation.READ_COMMITTED)
    return [f"{record.offset}:{(record.value or b'').decode()}" for record in records]


def seen(store: Store, state: dict[str, Any]) -> dict[str, Any]:
    """What clients of a broker tell of topics, told by a store."""
    topics = {}
    for name, topic in store.topics.items():
        topics[name] = {"id": topic.topic_id, "partitions": topic.partition_count, "config": dict(topic.config)}
        if "read" in state["topics"][name]:
            logs = [store.log(name, number) for number in range(topic.partition_count)]
            topics[name]["read"] = [
                {
                    "start": log.log_start_offset,
                    "end": log.log_end_offset,
                    "stable": log.last_stable_offset,
                    "values": committed(store, name, number),
                }
                for number, log in enumerate(logs)
            ]
    return topics


def test_a_store_becomes_a_brokers_and_a_stores_again(oracle: Oracle, tmp_path: Path) -> None:
    root = tmp_path / "data"
    with logstore.open(root) as store:
        made = store.create_topic("orders", 2, {"compression.type": "zstd", "retention.ms": -1})
        store.create_topic("gone")
        store.delete_topic("gone")
        store.log("orders", 0).append_records([b"a", b"b"], keys=[b"1", b"2"])
        taken = [store.next_producer_id() for _ in range(3)]
    broker = Broker(oracle, root, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        [first] = ask(oracle, address, tmp_path, "work", "state")
    assert warnings(broker) == []
    orders = first["topics"]["orders"]
    assert (orders["id"], orders["partitions"], orders["config"]) == (made.topic_id, 2, made.config)
    assert orders["read"][0]["values"] == ["0:a", "1:b"]
    assert first["transactions"]["left-open"].startswith("Ongoing")
    assert int(first["transactions"]["billing"].split()[1]) > max(taken)

    with logstore.open(root) as store:
        assert seen(store, first) == first["topics"]
        assert store.stray_directories == ()
        epoch = store.log("orders", 1).leader_epoch
        assert epoch > 0
        store.log("orders", 1).append_records([b"c"], leader_epoch=epoch)
        store.add_partitions("orders", 3)
        taken.append(store.next_producer_id())
        second = seen(store, first)
    with broker.running(signal.SIGTERM) as address:
        third, finished = ask(oracle, address, tmp_path, "state", "finish")
    assert warnings(broker) == []
    assert third["topics"] == {**first["topics"], "orders": second["orders"]}
    assert (third["groups"], third["transactions"]) == (first["groups"], first["transactions"])
    assert first["groups"] == {"audit": {"ledger-0": "1 half"}, "readers": {"ledger-1": "2 "}}
    assert (finished["transaction"], finished["aborted"]) == ("Ongoing", True)
    assert max(finished["producerIds"]) > max(taken) >= 1000
    with logstore.open(root) as store:
        assert committed(store, "ledger", 0)[-2:] == ["7:again", "9:fresh"]


@pytest.mark.long
def test_a_crashed_store_a_killed_broker_and_what_is_left_of_it_are_taken_over(oracle: Oracle, tmp_path: Path) -> None:
    root = tmp_path / "data"
    store = logstore.open(root)
    store.create_topic("orders", 2)
    store.log("orders", 1).append_records([b"a"])
    copy = tmp_path / "crashed"
    shutil.copytree(root, copy)
    store.close()
    assert not (copy / ".kafka_cleanshutdown").exists()
    broker = Broker(oracle, copy, {}, [], is_formatted=True)
    with broker.running(signal.SIGKILL) as address:
        [state] = ask(oracle, address, tmp_path, "work", "state")
    assert warnings(broker) == []
    assert state["topics"]["orders"]["read"][1]["values"] == ["0:a"]
    with logstore.open(copy) as again:
        assert seen(again, state) == state["topics"]
        assert again.log("ledger", 0).last_stable_offset < again.log("ledger", 0).log_end_offset

    for path in copy.iterdir():  # only the partitions are left
        if path.is_file():
            path.unlink()
    shutil.rmtree(copy / "__cluster_metadata-0")
    result = CliRunner().invoke(command_line, ["promote", str(copy)])
    assert result.exit_code == 0, result.output
    broker = Broker(oracle, copy, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        last, finished = ask(oracle, address, tmp_path, "state", "finish")
    assert warnings(broker) == []
    assert (last["groups"], last["transactions"]) == (state["groups"], state["transactions"])
    assert {name: without_config(topic) for name, topic in last["topics"].items()} == {
        name: without_config(topic) for name, topic in state["topics"].items()
    }
    assert (finished["transaction"], finished["aborted"]) == ("Ongoing", True)
    assert max(finished["producerIds"]) > max(int(one.split()[1]) for one in state["transactions"].values())


def without_config(topic: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in topic.items() if name != "config"}
