"""Directories that a process left with open transactions and members of groups, given to a broker, and taken back."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore.client.store import Store
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import CoordinatorError, GroupIdNotFoundError, UnknownMemberIdError
from logstore.replay.internal_topic import ReplayedRecord, replayed
from logstore.topics.consumer_offsets import GroupMetadata, decode_key, decode_value
from logstore_tools.commands import logstore as command_line
from tests.support.broker import Broker
from tests.support.oracle import Oracle
from tests.support.small_store import TransactionalClient
from tests.support.stores import values_of
from tests.support.take_over import ask, warnings

pytestmark = pytest.mark.kafka

SETTINGS = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2}
SESSION_MS = 6000  # the least that a broker takes
PLACE = ("ledger", 0)


def filled(store: Store) -> list[object]:
    """A committed and an open transaction, offsets of both, and a static and another member of a group."""
    store.create_topic("ledger", 2)
    done, left = TransactionalClient(store, "billing"), TransactionalClient(store, "left-open")
    done.send("ledger", b"paid", key=b"k")
    offsets = {PLACE: OffsetAndMetadata(1)}
    store.transactions.commit_offsets("billing", done.identity, ConsumerGroupMetadata("readers"), offsets)
    done.end(is_commit=True)
    left.send("ledger", b"pending", key=b"k")
    offsets = {PLACE: OffsetAndMetadata(2)}
    store.transactions.commit_offsets("left-open", left.identity, ConsumerGroupMetadata("audit"), offsets)
    members: list[object] = []
    for instance_id in (None, "static"):
        config = {"group_id": "members", "group_instance_id": instance_id, "session_timeout_ms": SESSION_MS}
        members.append(store.consumer("ledger", **config))
    for _ in range(3):
        for one in members:
            assert isinstance(one, logstore.Consumer)
            one.poll()
    assert len(store.groups.describe("members").members) == 2
    return members


def last_members(path: Path) -> int:
    """How many members the last record of group `members` has."""
    found = -1
    with logstore.open(path, read_only=True) as store:
        for number in range(2):
            for one in replayed(store.log("__consumer_offsets", number)):
                if isinstance(one, ReplayedRecord) and one.key is not None:
                    value = decode_value(decode_key(one.key), one.value)
                    found = len(value.members) if isinstance(value, GroupMetadata) else found
    return found


def failure(store: Store, group: str, *, in_transaction: bool) -> CoordinatorError | None:
    """What a commit of nobody in particular is refused with."""
    member, offsets = ConsumerGroupMetadata(group), {PLACE: OffsetAndMetadata(1)}
    try:
        if in_transaction:
            client = TransactionalClient(store, f"refused-{group}")
            store.transactions.commit_offsets(client.transactional_id, client.identity, member, offsets)
        else:
            store.groups.commit(member, offsets)
    except CoordinatorError as error:
        return error
    return None


@pytest.mark.long
def test_a_store_with_open_transactions_is_finished_at_a_broker_and_imported_again(
    oracle: Oracle, tmp_path: Path
) -> None:
    root, crashed = tmp_path / "data", tmp_path / "crashed"
    with logstore.open(root, config=SETTINGS) as store:
        _members = filled(store)
        shutil.copytree(root, crashed)
        shutil.copytree(root, tmp_path / "recovered")
    assert (last_members(root), last_members(crashed)) == (0, 2)
    for path, what in ((root, "promote"), (tmp_path / "recovered", "import")):
        result = CliRunner().invoke(command_line, [what, str(path)])
        assert result.exit_code == 0, result.output
        assert last_members(path) == 0

    broker = Broker(oracle, root, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        state, joined, finished, refused = ask(oracle, address, tmp_path, "state", "join", "finish", "refusals")
    assert warnings(broker) == []
    read = state["topics"]["ledger"]["read"][0]
    assert (read["values"], read["stable"], read["end"]) == (["0:paid"], 2, 3)
    assert {name: text.split()[0] for name, text in state["transactions"].items()} == {
        "billing": "CompleteCommit",
        "left-open": "Ongoing",
    }
    assert state["groups"] == {"audit": {}, "readers": {"ledger-0": "1 "}}
    assert joined["seconds"] < SESSION_MS / 1000
    assert (finished["transaction"], finished["aborted"]) == ("Ongoing", True)

    result = CliRunner().invoke(command_line, ["import", str(root)])
    assert result.exit_code == 0, result.output
    with logstore.open(root) as store:
        assert store.failures == {}
        assert values_of(store, *PLACE) == [b"paid", b"again", b"fresh"]
        assert store.log(*PLACE).last_stable_offset == store.log(*PLACE).log_end_offset
        offsets = store.groups.fetch("readers", [PLACE])[PLACE], store.groups.fetch("audit", [PLACE])[PLACE]
        assert [one and one.offset for one in offsets] == [1, None]
        errors = {group: [failure(store, group, in_transaction=one) for one in (False, True)] for group in refused}
    for group, found in errors.items():
        for one, theirs in zip(found, refused[group], strict=True):
            assert (one is None) == (theirs is None), (group, one, theirs)
            if one is not None:  # a producer's client has only the message
                assert theirs.startswith(type(one).__name__[: -len("Error")]) or one.kafka_message in theirs
    assert isinstance(errors["share"][0], GroupIdNotFoundError)
    assert isinstance(errors["modern"][0], UnknownMemberIdError)

    broker = Broker(oracle, crashed, {}, [], is_formatted=True)
    with broker.running(signal.SIGTERM) as address:
        [joined] = ask(oracle, address, tmp_path, "join")
    assert joined["seconds"] < 3 * SESSION_MS / 1000  # not max.poll.interval.ms, which is 300 s
