"""The group coordinator over real logs: offsets, members, and who may commit for whom."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logstore.client.consumer.assignors import ASSIGNORS
from logstore.coordinator.groups.membership import ConsumerGroupMetadata, GroupState, Joining, Member
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    IllegalGenerationError,
    InvalidGroupIdError,
    InvalidProducerEpochError,
    KafkaStorageError,
    NonEmptyGroupError,
    OffsetMetadataTooLargeError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    UsageError,
)
from logstore.model import TopicPartition
from logstore.replay.internal_topic import ReplayedRecord, replayed
from logstore.topics.consumer_offsets import (
    GroupKey,
    GroupMember,
    GroupMetadata,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from logstore.topics.frames import read_key, write_key, write_value
from tests.support.small_store import SmallStore, TransactionalClient, offline, started, topic_id_of

PLACE = ("in", 0)
DAY_MS = 86_400_000
_STREAMS_MEMBER = {
    "instanceId": None,
    "rackId": None,
    "clientId": "",
    "clientHost": "",
    "rebalanceTimeoutMs": 0,
    "topologyEpoch": 0,
    "processId": "",
    "userEndpoint": None,
    "clientTags": [],
}
_CONSUMER_MEMBER = {
    "instanceId": None,
    "rackId": None,
    "clientId": "",
    "clientHost": "",
    "subscribedTopicNames": [],
    "subscribedTopicRegex": None,
    "rebalanceTimeoutMs": 0,
    "serverAssignor": None,
}
#: by record type the value of a group of another protocol, or of its member
OTHER_PROTOCOLS: dict[int, dict[str, object]] = {
    3: {"epoch": 1, "metadataHash": 0},
    5: _CONSUMER_MEMBER,
    11: {"epoch": 1, "metadataHash": 0},
    17: {"epoch": 1, "metadataHash": 0},
    19: _STREAMS_MEMBER,
}


@pytest.fixture
def store(tmp_path: Path) -> SmallStore:
    return started(tmp_path, {"in": 3})


def again(store: SmallStore) -> SmallStore:
    store.close()
    return SmallStore(store.directory).start()


def committed(store: SmallStore, group_id: str = "g", place: tuple[str, int] = PLACE) -> int | None:
    found = store.groups.fetch(group_id, [place])[place]
    return None if found is None else found.offset


def joined(store: SmallStore, *member_ids: str, topics: tuple[str, ...] = ("in",)) -> list[ConsumerGroupMetadata]:
    """All of them in one generation."""
    for member_id in member_ids:
        store.groups.join("g", Joining(member_id=member_id, topics=topics, assignors=ASSIGNORS))
    found = [assigned(store, member_id) for member_id in member_ids]
    return [ConsumerGroupMetadata("g", one.generation, name) for name, one in zip(member_ids, found, strict=True)]


def assigned(store: SmallStore, member_id: str) -> Member:
    assignment = store.groups.sync("g", member_id)
    assert assignment is not None
    return assignment


def group_log(store: SmallStore, group_id: str = "g") -> list[tuple[str, object]]:
    """What was logged for a group, in order."""
    found = []
    for record in replayed(store.log("__consumer_offsets", store.groups.partition_of(group_id))):
        if isinstance(record, ReplayedRecord):
            assert record.key is not None
            key = decode_key(record.key)
            value = decode_value(key, record.value)
            found.append((type(key).__name__, value))
    return found


def test_a_commit_is_there_after_a_restart(store: SmallStore) -> None:
    assert store.groups.fetch("g") == {}
    assert committed(store) is None
    store.groups.commit(
        ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(7, "note", 3), ("in", 1): OffsetAndMetadata(1)}
    )
    store.groups.commit(ConsumerGroupMetadata("g"), {("in", 1): OffsetAndMetadata(2)})
    store = again(store)
    found = store.groups.fetch("g")
    assert {place: one.offset for place, one in found.items() if one is not None} == {PLACE: 7, ("in", 1): 2}
    first = found[PLACE]
    assert (first.leader_epoch, first.metadata, first.topic_id) == (3, "note", topic_id_of("in"))
    assert first.commit_timestamp_ms == store.now_ms()


def test_the_topic_is_made_as_a_broker_makes_it(store: SmallStore) -> None:
    store.groups.commit(ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(7)})
    assert store.topics["__consumer_offsets"].config == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


def test_metadata_that_is_too_long_is_refused(store: SmallStore) -> None:
    store.config["offset.metadata.max.bytes"] = 3
    with pytest.raises(OffsetMetadataTooLargeError):
        store.groups.commit(ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(7, metadata="long")})
    assert committed(store) is None


def test_offsets_of_a_topic_that_was_made_anew_do_not_count(store: SmallStore) -> None:
    store.groups.commit(ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(7)})
    store.log(*PLACE).state.topic_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    assert committed(store) is None
    store.groups.commit(ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(1)})
    assert committed(store) == 1


def test_offsets_of_a_deleted_topic_are_forgotten(store: SmallStore) -> None:
    store.create_topic("other", partitions=1, config={})
    store.groups.commit(ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(7), ("other", 0): OffsetAndMetadata(8)})
    store.groups.topic_deleted("in", topic_id_of("in"))
    assert set(store.groups.fetch("g")) == {("other", 0)}
    assert set(again(store).groups.fetch("g")) == {("other", 0)}


def test_members_share_the_partitions(store: SmallStore) -> None:
    (alone,) = joined(store, "m1")
    assert assigned(store, "m1").partitions == (("in", 0), ("in", 1), ("in", 2))
    store.groups.join("g", Joining(member_id="m2", topics=("in",), assignors=ASSIGNORS))
    assert store.groups.sync("g", "m2") is None
    with pytest.raises(RebalanceInProgressError):
        store.groups.heartbeat(alone)
    with pytest.raises(RebalanceInProgressError):
        store.groups.sync("g", "m1")
    store.groups.commit(alone, {PLACE: OffsetAndMetadata(7)})
    first, second = joined(store, "m1", "m2")
    assert first.generation_id == alone.generation_id + 1
    assert assigned(store, "m1").partitions == (("in", 0), ("in", 1))
    assert assigned(store, "m2").partitions == (("in", 2),)
    store.groups.heartbeat(second)
    with pytest.raises(IllegalGenerationError):
        store.groups.commit(alone, {PLACE: OffsetAndMetadata(8)})
    assert committed(store) == 7
    store.groups.leave("g", "m1")
    assert joined(store, "m2")[0].generation_id == first.generation_id + 1
    assert len(assigned(store, "m2").partitions) == 3


def test_every_generation_is_logged_before_anybody_hears_of_it(store: SmallStore) -> None:
    joined(store, "m1")
    store.groups.leave("g", "m1")
    values = [value for kind, value in group_log(store) if kind == "GroupKey"]
    assert [(one.generation, len(one.members)) for one in values if isinstance(one, GroupMetadata)] == [(1, 1), (2, 0)]


def test_a_silent_member_is_left_behind(store: SmallStore) -> None:
    first, second = joined(store, "m1", "m2")
    store.time_ms += 299_000
    store.groups.heartbeat(second)
    store.time_ms += 2_000
    store.jobs["group-rebalance"]()
    with pytest.raises(UnknownMemberIdError):
        store.groups.heartbeat(first)
    with pytest.raises(RebalanceInProgressError):
        store.groups.heartbeat(second)
    joined(store, "m2")
    assert len(assigned(store, "m2").partitions) == 3
    store.time_ms += 301_000
    store.jobs["group-rebalance"]()
    assert store.groups.describe("g").state.value == "Empty"


def test_who_does_not_join_in_time_is_left_behind(store: SmallStore) -> None:
    joined(store, "m1")
    store.groups.join("g", Joining(member_id="m2", topics=("in",), assignors=ASSIGNORS))
    store.time_ms += 299_999
    assert store.groups.sync("g", "m2") is None
    store.time_ms += 1
    assert len(assigned(store, "m2").partitions) == 3
    with pytest.raises(UnknownMemberIdError):
        store.groups.sync("g", "m1")


def test_a_member_that_waits_for_others_is_alive(store: SmallStore) -> None:
    """One that is slow to join again kept the others from being heard of, and they were expelled for it."""
    joined(store, "m1", "m2")
    store.groups.join("g", Joining(member_id="m1", topics=("in",), rebalance_timeout_ms=10_000, assignors=ASSIGNORS))
    store.groups.join("g", Joining(member_id="m3", topics=("in",), rebalance_timeout_ms=10_000, assignors=ASSIGNORS))
    for _ in range(3):
        store.time_ms += 8_000
        assert store.groups.sync("g", "m3") is None
        store.groups.remove_silent()
    assert "m3" in store.groups.describe("g").members


def test_an_error_of_another_group_is_not_raised_from_a_heartbeat(
    store: SmallStore, caplog: pytest.LogCaptureFixture
) -> None:
    (member,) = joined(store, "m1")
    other = next(
        name for name in map(str, range(99)) if store.groups.partition_of(name) != store.groups.partition_of("g")
    )
    store.groups.join(other, Joining(member_id="n1", topics=("in",), assignors=ASSIGNORS))
    assert store.groups.sync(other, "n1") is not None
    with offline(store.log("__consumer_offsets", store.groups.partition_of(other))):
        store.groups.abandon(other, "n1")
        store.groups.heartbeat(member)
        assert f"Group {other} cannot be written" in caplog.text
        with pytest.raises(KafkaStorageError):
            store.groups.remove_silent()  # it is tried again, and told of
    store.groups.remove_silent()
    assert store.groups.describe(other).state is GroupState.EMPTY


def test_a_group_begins_without_members_and_in_a_later_generation(store: SmallStore) -> None:
    (zombie,) = joined(store, "m1")
    store.groups.commit(zombie, {PLACE: OffsetAndMetadata(7)})
    store = again(store)
    with pytest.raises(UnknownMemberIdError):
        store.groups.commit(zombie, {PLACE: OffsetAndMetadata(8)})
    (member,) = joined(store, "m1")
    assert member.generation_id > zombie.generation_id + 1
    assert committed(store) == 7
    generations = [value for _, value in group_log(store) if isinstance(value, GroupMetadata)]
    assert [len(one.members) for one in generations] == [1, 0, 1]


@pytest.mark.parametrize("protocol_type", ["consumer", "connect"])
def test_members_whose_bytes_do_not_parse_do_not_keep_their_partition_from_loading(
    store: SmallStore, protocol_type: str
) -> None:
    store.groups.commit(ConsumerGroupMetadata("k"), {PLACE: OffsetAndMetadata(7)})
    foreign = GroupMember("m1", None, "", "", 1000, 1000, subscription=b"\0", assignment=b"\0")
    value = GroupMetadata(protocol_type, 3, "own", "m1", 5, (foreign,))
    log = store.log("__consumer_offsets", store.groups.partition_of("k"))
    log.append_records([encode_value(value)], [encode_key(GroupKey("k"))])
    store = again(store)
    assert committed(store, "k") == 7
    assert not store.groups.describe("k").members
    store.groups.join(
        "k", Joining(member_id="m2", topics=("in",), assignors=ASSIGNORS)
    )  # a group with no member takes it
    assert store.groups.sync("k", "m2") is not None


def test_nobody_joins_or_deletes_a_share_group(store: SmallStore) -> None:
    store = of_another_protocol(store, 11, "k")
    with pytest.raises(GroupIdNotFoundError, match="Group k is not a classic group"):
        store.groups.join("k", Joining(member_id="m1", topics=("in",), assignors=ASSIGNORS))
    with pytest.raises(InvalidGroupIdError):
        store.groups.join("", Joining(member_id="m1", topics=("in",), assignors=ASSIGNORS))
    with pytest.raises(GroupIdNotFoundError, match="Group k is not a classic group"):
        store.groups.delete("k")
    assert list(store.groups.group_ids()) == ["k"]


@pytest.mark.parametrize("record_type", [3, 17])
@pytest.mark.parametrize("how", ["join", "delete"])
def test_a_group_of_another_protocol_becomes_classic_or_goes(store: SmallStore, record_type: int, how: str) -> None:
    store = of_another_protocol(store, record_type, "k")
    store.groups.commit(ConsumerGroupMetadata("k"), {PLACE: OffsetAndMetadata(7)})
    member_type = {3: 5, 17: 19}[record_type]
    store = of_another_protocol(store, member_type, "k", memberId="m1")
    with pytest.raises(GroupIdNotFoundError, match="Group k is not a classic group"):
        store.groups.describe("k")
    if how == "join":
        store.groups.join("k", Joining(member_id="m2", topics=("in",), assignors=ASSIGNORS))
        member = store.groups.sync("k", "m2")
        assert len(member.partitions) == 3
    else:
        for act in (store.groups.delete, lambda group_id: store.groups.delete_offsets(group_id, [PLACE])):
            with pytest.raises(NonEmptyGroupError):
                act("k")
        store.time_ms += 45_000  # a broker has not heard of the member for its session timeout
        store.groups.delete("k")
    log = store.log("__consumer_offsets", store.groups.partition_of("k"))
    tombstones = [
        read_key("consumer_offsets", record.key).record_type
        for record in replayed(log)
        if isinstance(record, ReplayedRecord) and record.key is not None and record.value is None
    ]
    # the order of `createGroupTombstoneRecords`, which a broker wants when it loads the log
    assert [one for one in tombstones if one > 2] == {3: [8, 7, 6, 5, 3], 17: [22, 21, 20, 19, 17]}[record_type]
    store = again(store)
    assert committed(store, "k") == (7 if how == "join" else None)
    assert list(store.groups.group_ids()) == (["k"] if how == "join" else [])


def of_another_protocol(store: SmallStore, record_type: int, group: str, **member: str) -> SmallStore:
    """The store again, with a record of a group, or of its member, as a broker wrote it."""
    number = store.groups.partition_of(group)
    key = write_key("consumer_offsets", record_type, {"groupId": group, **member})
    value = write_value("consumer_offsets", record_type, 0, OTHER_PROTOCOLS[record_type])
    store.log("__consumer_offsets", number).append_records([value], [key])
    return again(store)


@pytest.mark.parametrize("record_type", [3, 17])
def test_for_a_consumer_or_streams_group_with_members_nobody_else_commits(store: SmallStore, record_type: int) -> None:
    nobody, zombie = ConsumerGroupMetadata("k"), ConsumerGroupMetadata("k", 1, "m1")
    store = of_another_protocol(store, record_type, "k")
    store.groups.commit(nobody, {PLACE: OffsetAndMetadata(7)})
    with pytest.raises(UnknownMemberIdError):
        store.groups.commit(zombie, {PLACE: OffsetAndMetadata(8)})
    store = of_another_protocol(store, {3: 5, 17: 19}[record_type], "k", memberId="m1")
    with pytest.raises(UnknownMemberIdError):
        store.groups.commit(nobody, {PLACE: OffsetAndMetadata(8)})
    client = TransactionalClient(store, "x")
    store.transactions.commit_offsets("x", client.identity, nobody, {PLACE: OffsetAndMetadata(9)})
    with pytest.raises(UnknownMemberIdError):
        store.transactions.commit_offsets("x", client.identity, zombie, {PLACE: OffsetAndMetadata(8)})
    client.end(is_commit=True)
    store.time_ms += 45_000  # a broker has not heard of the member for its session timeout
    store.groups.commit(nobody, {PLACE: OffsetAndMetadata(10)})
    committed = store.groups.fetch("k")[TopicPartition(*PLACE)]
    assert committed.offset == 10


def test_a_share_group_has_no_offsets_to_commit(store: SmallStore) -> None:
    store = of_another_protocol(store, 11, "k")
    client = TransactionalClient(store, "x")
    for member in (ConsumerGroupMetadata("k"), ConsumerGroupMetadata("k", 1, "m1")):
        with pytest.raises(GroupIdNotFoundError, match="Group k is not a consumer group"):
            store.groups.commit(member, {PLACE: OffsetAndMetadata(7)})
        with pytest.raises(GroupIdNotFoundError, match="Group k is not a consumer group"):
            store.transactions.commit_offsets("x", client.identity, member, {PLACE: OffsetAndMetadata(7)})
    assert store.groups.fetch("k") == {}


def test_a_zombie_cannot_commit_offsets_in_a_transaction(store: SmallStore) -> None:
    store.create_topic("out", partitions=1, config={})
    (member,) = joined(store, "m1")
    client = TransactionalClient(store, "x")
    transactions = store.transactions
    transactions.commit_offsets("x", client.identity, member, {PLACE: OffsetAndMetadata(7)})
    client.end(is_commit=True)
    assert committed(store) == 7
    joined(store, "m2", "m1")
    with pytest.raises(IllegalGenerationError):
        transactions.commit_offsets("x", client.identity, member, {PLACE: OffsetAndMetadata(8)})
    number = store.groups.partition_of("g")
    assert transactions.describe("x").partitions == {
        ("__consumer_offsets", number)
    }  # as with Kafka, before it is refused
    with pytest.raises(IllegalGenerationError):
        transactions.commit_offsets("x", client.identity, member, {PLACE: OffsetAndMetadata(8)})
    newer = TransactionalClient(store, "x")
    for who in (member, ConsumerGroupMetadata("g")):
        with pytest.raises(InvalidProducerEpochError):
            transactions.commit_offsets("x", client.identity, who, {PLACE: OffsetAndMetadata(8)})
    transactions.commit_offsets("x", newer.identity, ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(9)})
    newer.end(is_commit=False)
    assert committed(store) == committed(again(store)) == 7


def test_a_later_commit_is_not_undone_by_an_older_transaction(store: SmallStore) -> None:
    client = TransactionalClient(store, "x")
    store.transactions.commit_offsets("x", client.identity, ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(7)})
    store.groups.commit(ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(9)})
    client.end(is_commit=True)
    assert committed(store) == committed(again(store)) == 9


def test_offsets_expire_when_nobody_keeps_them_up(store: SmallStore, caplog: pytest.LogCaptureFixture) -> None:
    (member,) = joined(store, "m1")
    store.groups.commit(member, {PLACE: OffsetAndMetadata(7)})
    store.groups.commit(ConsumerGroupMetadata("simple"), {PLACE: OffsetAndMetadata(7)})
    client = TransactionalClient(store, "x")
    store.transactions.commit_offsets(
        "x", client.identity, ConsumerGroupMetadata("waiting"), {PLACE: OffsetAndMetadata(7)}
    )
    store.time_ms += 7 * DAY_MS
    store.jobs["group-metadata-expiration"]()
    assert (committed(store), committed(store, "simple")) == (7, None)
    assert set(store.groups.group_ids()) == {"g", "waiting"}
    store.groups.leave("g", "m1")
    store.time_ms += 7 * DAY_MS - 1
    store.jobs["group-metadata-expiration"]()
    assert committed(store) == 7
    store.time_ms += 1
    assert "Group g: " not in caplog.text
    store.jobs["group-metadata-expiration"]()
    assert f"Group g: committed offsets in 1 partition(s) of {PLACE[0]} have expired" in caplog.text
    assert committed(store) is None
    assert group_log(store)[-2:] == [("OffsetKey", None), ("GroupKey", None)]
    with pytest.raises(GroupIdNotFoundError):
        again(store).groups.describe("g")


def test_offsets_are_deleted_of_topics_that_no_member_subscribes_to(store: SmallStore) -> None:
    store.create_topic("other", partitions=2, config={})
    (member,) = joined(store, "m1")
    others = [TopicPartition("other", 0), TopicPartition("other", 1)]
    store.groups.commit(member, dict.fromkeys([PLACE, *others], OffsetAndMetadata(7)))
    with pytest.raises(GroupSubscribedToTopicError):
        store.groups.delete_offsets("g", [others[0], PLACE])
    assert set(store.groups.fetch("g")) == {PLACE, *others}
    store.groups.delete_offsets("g", (one for one in [others[1], TopicPartition("none", 0)]))
    assert set(store.groups.fetch("g")) == {PLACE, others[0]}
    store.groups.leave("g", "m1")
    store.groups.delete_offsets("g", [PLACE])
    assert set(again(store).groups.fetch("g")) == {others[0]}
    with pytest.raises(GroupIdNotFoundError):
        store.groups.delete_offsets("unknown", [PLACE])


def test_what_is_no_partition_and_no_name_is_told(store: SmallStore) -> None:
    groups: Any = store.groups
    assert list(groups.group_ids()) == []
    for wrong in (["t-0"], "t-0", ("t", 0), 5, [("t", "0")]):
        for call in (groups.delete_offsets, groups.fetch):
            with pytest.raises(UsageError, match=r"A partition is a TopicPartition|Partitions are given as a list"):
                call("g", wrong)
    for call in (groups.describe, groups.delete, groups.fetch, groups.partition_of):
        groups.commit(ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(7)})
        with pytest.raises(UsageError, match="A group is given by its name"):
            call(b"g")


def test_a_group_is_deleted_when_it_has_no_members(store: SmallStore) -> None:
    store.create_topic("other", partitions=1, config={})
    (member,) = joined(store, "m1")
    store.groups.commit(member, {PLACE: OffsetAndMetadata(7), ("other", 0): OffsetAndMetadata(1)})
    with pytest.raises(NonEmptyGroupError):
        store.groups.delete("g")
    store.groups.leave("g", "m1")
    store.groups.delete("g")
    for act in (store.groups.delete, store.groups.describe):
        with pytest.raises(GroupIdNotFoundError):
            act("g")
    assert list(again(store).groups.group_ids()) == []


def test_a_step_of_the_wall_clock_expels_nobody(store: SmallStore, monkeypatch: pytest.MonkeyPatch) -> None:
    (member,) = joined(store, "m1")
    ticks_ms = store.ticks_ms()
    monkeypatch.setattr(store, "ticks_ms", lambda: ticks_ms)
    store.time_ms += DAY_MS
    store.jobs["group-rebalance"]()
    store.groups.heartbeat(member)
    assert set(store.groups.describe("g").members) == {"m1"}


def test_only_members_commit_for_a_group_that_has_some(store: SmallStore) -> None:
    joined(store, "m1")
    with pytest.raises(UnknownMemberIdError):
        store.groups.commit(ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(7)})
    with pytest.raises(UnknownMemberIdError):
        store.groups.heartbeat(ConsumerGroupMetadata("nowhere", 1, "m1"))
    with pytest.raises(UnknownMemberIdError):
        store.groups.leave("nowhere", "m1")
    with pytest.raises(UnknownMemberIdError):
        store.groups.sync("nowhere", "m1")
