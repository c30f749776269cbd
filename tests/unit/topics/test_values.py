"""Records of internal topics as values for programs."""

from __future__ import annotations

import pytest

from logstore.errors import SchemaError
from logstore.topics import cluster_metadata, consumer_offsets, transaction_state
from logstore.topics.consumer_offsets import CommittedOffset, GroupKey, GroupMember, GroupMetadata, OffsetKey
from logstore.topics.frames import CoordinatorKey, DecodedValue, write_value
from logstore.topics.transaction_state import TransactionMetadata, TransactionState

TIMESTAMP_MS = 1_600_000_000_000
TRANSACTION_V1 = bytes.fromhex(
    "0001 0000000000000007 0003 0000ea60 01 02 05 746f7069 03 00000002 00000005 00"
    "00000174876e8000 00000174876e7fff 02 00 08 0000000000000006 02 02 0002"
)


def test_a_transaction_with_partitions_and_tagged_fields() -> None:
    assert transaction_state.decode_key(bytes.fromhex("0000 0003 747831")) == "tx1"
    assert transaction_state.decode_value(TRANSACTION_V1) == TransactionMetadata(
        producer_id=7,
        producer_epoch=3,
        state=TransactionState.ONGOING,
        transaction_timeout_ms=60000,
        partitions=(("topi", 2), ("topi", 5)),
        start_timestamp_ms=TIMESTAMP_MS - 1,
        last_update_timestamp_ms=TIMESTAMP_MS,
        previous_producer_id=6,
        next_producer_id=-1,
        next_producer_epoch=-1,
        client_transaction_version=2,
    )


def test_tombstones_are_none() -> None:
    assert transaction_state.decode_value(None) is None
    assert consumer_offsets.decode_value(GroupKey("g"), None) is None


def test_a_state_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(
        SchemaError, match="Unknown transaction state id 9 from the transaction status message; at offset 5"
    ):
        transaction_state.decode_value(TRANSACTION_V1.replace(b"\x00\xea\x60\x01", b"\x00\xea\x60\x09"), offset=5)


def test_an_offset_of_every_generation() -> None:
    key = consumer_offsets.decode_key(bytes.fromhex("0001 0003 677270 0001 74 00000003"))
    legacy = consumer_offsets.decode_key(bytes.fromhex("0000 0003 677270 0001 74 00000003"))
    assert key == legacy == OffsetKey("grp", "t", 3)
    old = bytes.fromhex("0000 000000000000002a 0001 6d 00000174876e8000")
    assert consumer_offsets.decode_value(legacy, old) == CommittedOffset(42, -1, "m", TIMESTAMP_MS, -1, None)
    assert consumer_offsets.decode_value(key, old) == CommittedOffset(42, -1, "m", TIMESTAMP_MS, -1, None)
    expiring = bytes.fromhex("0001 000000000000002a 0001 6d 00000174876e8000 00000174876e8001")
    assert consumer_offsets.decode_value(key, expiring) == CommittedOffset(
        42, -1, "m", TIMESTAMP_MS, TIMESTAMP_MS + 1, None
    )
    tail = bytes.fromhex("01 00 10 00112233445566778899aabbccddeeff")
    newest = bytes.fromhex("0004 000000000000002a 00000005 02 6d 00000174876e8000") + tail
    assert consumer_offsets.decode_value(key, newest) == CommittedOffset(
        42, 5, "m", TIMESTAMP_MS, -1, "ABEiM0RVZneImaq7zN3u_w"
    )


def test_a_legacy_offset_has_only_its_own_version() -> None:
    legacy = OffsetKey("grp", "t", 3, is_legacy=True)
    with pytest.raises(SchemaError, match="unknown record version 3 for 0 type"):
        consumer_offsets.decode_value(legacy, bytes.fromhex("0003"))


def test_a_classic_group_and_what_its_members_say() -> None:
    key = consumer_offsets.decode_key(bytes.fromhex("0002 0001 67"))
    assert key == GroupKey("g")
    subscription = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000000")
    assignment = bytes.fromhex("0000 00000001 0001 74 00000001 00000002 00000001 aa")
    member = b"\0\1m\xff\xff\0\1c\0\2/h" + bytes.fromhex("0000ea60 0000afc8")
    member += len(subscription).to_bytes(4) + subscription + len(assignment).to_bytes(4) + assignment
    group = bytes.fromhex("0003 0008") + b"consumer" + bytes.fromhex("00000004 0005") + b"range" + b"\0\1m"
    group += TIMESTAMP_MS.to_bytes(8) + bytes.fromhex("00000001") + member
    value = consumer_offsets.decode_value(key, group)
    expected_member = GroupMember("m", None, "c", "/h", 60000, 45000, subscription, assignment)
    assert value == GroupMetadata("consumer", 4, "range", "m", TIMESTAMP_MS, (expected_member,))
    assert consumer_offsets.decode_embedded("ConsumerProtocolSubscription", subscription) == {
        "topics": ["t"],
        "userData": None,
        "ownedPartitions": [],
        "generationId": -1,
        "rackId": None,
    }
    assert consumer_offsets.decode_embedded("ConsumerProtocolAssignment", assignment) == {
        "assignedPartitions": [{"topic": "t", "partitions": [2]}],
        "userData": b"\xaa",
    }
    with pytest.raises(SchemaError):
        consumer_offsets.decode_embedded("ConsumerProtocolAssignment", b"\0")


def test_other_group_records_are_dicts() -> None:
    key = consumer_offsets.decode_key(bytes.fromhex("0003 0001 67"))
    assert isinstance(key, CoordinatorKey)
    assert (key.record_type, key.message.name, key.fields) == (3, "ConsumerGroupMetadataKey", {"groupId": "g"})
    value = consumer_offsets.decode_value(key, bytes.fromhex("0000 00000009 00"))
    assert isinstance(value, DecodedValue)
    assert (value.version, value.fields) == (0, {"epoch": 9, "metadataHash": 0})


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("7fff", "Found an unknown record type 32767; at offset 77"),
        ("00", "Could not read version from key's buffer."),
        (
            "0001 0009 61",
            "Could not read record with version 1 from key's buffer due to: "
            "Error reading byte array of 9 byte(s): only 1 byte(s) available.",
        ),
    ],
)
def test_broken_keys_name_their_offset(key: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        consumer_offsets.decode_key(bytes.fromhex(key), offset=77)
    assert str(caught.value).startswith(message)
    assert caught.value.offset == 77


def test_a_view_of_numbers_is_written_as_its_bytes() -> None:
    numbers = memoryview(bytes(range(8))).cast("i")
    written = consumer_offsets.encode_embedded("ConsumerProtocolAssignment", {"userData": numbers}, version=0)
    assert consumer_offsets.decode_embedded("ConsumerProtocolAssignment", written)["userData"] == bytes(range(8))


@pytest.mark.parametrize("version", [-1, 1000, 40000])
def test_no_value_is_written_in_an_unknown_version(version: int) -> None:
    with pytest.raises(SchemaError, match=f"Can't write version {version} of OffsetCommitValue"):
        write_value("consumer_offsets", 1, version, {})
    with pytest.raises(SchemaError, match=f"Can't write version {version} of ConsumerProtocolSubscription"):
        consumer_offsets.encode_embedded("ConsumerProtocolSubscription", {}, version=version)


def test_unknown_versions_name_version_and_offset() -> None:
    key = OffsetKey("g", "t", 0)
    with pytest.raises(SchemaError) as caught:
        consumer_offsets.decode_value(key, bytes.fromhex("0005"), offset=77)
    assert (caught.value.offset, caught.value.found) == (77, 5)
    assert "unknown record version 5 for 1 type; at offset 77; expected OffsetCommitValue" in str(caught.value)
    with pytest.raises(SchemaError, match="Unknown metadata id 40; at offset 78"):
        cluster_metadata.decode_value(bytes.fromhex("01 28 00 00"), offset=78)


def test_a_metadata_record_of_a_newer_version_is_read_as_the_newest_known_one() -> None:
    topic = cluster_metadata.encode_value("TopicRecord", {"name": "t"})
    record = cluster_metadata.decode_value(topic.replace(b"\x01\x02\x00", b"\x01\x02\x09"))
    assert (record.version, record.fields["name"], record.is_newer) == (9, "t", True)
    assert not cluster_metadata.decode_value(topic).is_newer


PARTITION = bytes.fromhex("01 03 01 00000000 00112233445566778899aabbccddeeff 02 00000001 02 00000001 01 01 00000001")
PARTITION += bytes.fromhex("00000004 00000005 02 ffeeddccbbaa99887766554433221100 00")


def test_a_metadata_record_is_its_message_and_a_dict() -> None:
    record = cluster_metadata.decode_value(PARTITION)
    assert (record.version, record.message.name, record.message.record_type) == (1, "PartitionRecord", 3)
    assert record.fields == {
        "partitionId": 0,
        "topicId": "ABEiM0RVZneImaq7zN3u_w",
        "replicas": [1],
        "isr": [1],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 1,
        "leaderRecoveryState": 0,
        "leaderEpoch": 4,
        "partitionEpoch": 5,
        "directories": ["_-7dzLuqmYh3ZlVEMyIRAA"],
        "eligibleLeaderReplicas": None,
        "lastKnownElr": None,
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "Error while reading frame version"),
        ("00", "Could not deserialize metadata record with frame version 0. Note that"),
        (
            "02",
            "Could not deserialize metadata record due to unknown frame version 2(only frame version 1 is supported)",
        ),
        ("01", "Error while reading type"),
        ("01 808004", "Value for type was too large."),
        ("01 14", "Error while reading version"),
        ("01 06 00", "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id 6"),
        ("01 ffffffff0f 00", "org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id -1"),
        ("01 14 00", "Failed to deserialize record with type 20"),
        ("01 14 00 00 0000", "Found 2 byte(s) of garbage after 20"),
    ],
)
def test_broken_frames_name_their_offset(value: str, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        cluster_metadata.decode_value(bytes.fromhex(value), offset=3)
    assert caught.value.message.startswith(message)
    assert caught.value.offset == 3
