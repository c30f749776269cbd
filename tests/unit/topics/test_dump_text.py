"""What the dump prints of records of internal topics: text, errors in its place, and errors that end it."""

from __future__ import annotations

import re

import pytest

from logstore.errors import LogstoreError
from logstore_tools.dump.decoders import control_record_text, decoder, parsers

GROUP_KEY = "0002 0001 67"
SUBSCRIPTION = "0000000f 0000 00000001 0001 74 00000001 2a 00"
REMOTE_ID = "05 74 6f7069 00112233445566778899aabbccddeeff 00000002 00 ffeeddccbbaa99887766554433221100 00"

#: parser, key, value, text of the key, text of the payload; the offset is 5
PARSED = [
    (
        "offsets",
        "0001 0003 677270 0001 74 00000003",
        "0001 000000000000002a 0001 22 0000000000000007 ffffffffffffffff",
        '{"type":"1","data":{"group":"grp","topic":"t","partition":3}}',
        '{"version":"1","data":{"offset":42,"metadata":"\\"","commitTimestamp":7,"expireTimestamp":-1}}',
    ),
    ("offsets", "0003 0001 67", None, '{"type":"3","data":{"groupId":"g"}}', "<DELETE>"),
    ("offsets", "0018", None, "Unknown record type 24 at offset 5, skipping.", None),
    ("offsets", "0009", "0000", "Unknown record type 9 at offset 5, skipping.", None),
    ("offsets", "ffff", "0000", "Unknown record type -1 at offset 5, skipping.", None),
    ("offsets", "", "00", "Error at offset 5, skipping. Could not read version from key's buffer.", None),
    (
        "offsets",
        "0003 0001 67",
        "00",
        "Error at offset 5, skipping. Could not read version from value's buffer.",
        None,
    ),
    (
        "offsets",
        "0003 0001 67",
        "0001",
        "Error at offset 5, skipping. Found an unknown record version 1 for 3 type",
        None,
    ),
    (
        "offsets",
        "0003 0001 67",
        "0000 0000",
        "Error at offset 5, skipping. Could not read record with version 0 from value's buffer due to: null.",
        None,
    ),
    (
        "offsets",
        "0003 ffff",
        None,
        "Error at offset 5, skipping. Could not read record with version 3 from key's buffer due to: "
        "non-nullable field groupId was serialized as null.",
        None,
    ),
    (
        "transaction",
        "0000 0002 7478",
        "0000 0000000000000007 0002 0000ea60 00 ffffffff 0000000000000001 ffffffffffffffff",
        '{"type":"0","data":{"transactionalId":"tx"}}',
        '{"version":"0","data":{"producerId":7,"producerEpoch":2,"transactionTimeoutMs":60000,'
        '"transactionStatus":"Empty","transactionPartitions":null,"transactionLastUpdateTimestampMs":1,'
        '"transactionStartTimestampMs":-1}}',
    ),
    ("transaction", "0001 0002 7478", None, "Unknown record type 1 at offset 5, skipping.", None),
    (
        "share-group-state",
        "0001 0001 67 00112233445566778899aabbccddeeff 00000000",
        "0000 00000001 00000002 0000000000000003 02 0000000000000004 0000000000000005 02 0001 0001 00 04 00000009",
        '{"type":"1","data":{"groupId":"g","topicId":"ABEiM0RVZneImaq7zN3u_w","partition":0}}',
        '{"version":"0","data":{"snapshotEpoch":1,"leaderEpoch":2,"startOffset":3,"deliveryCompleteCount":9,'
        '"stateBatches":[{"firstOffset":4,"lastOffset":5,"deliveryState":2,"deliveryCount":1}]}}',
    ),
    (
        "cluster-metadata",
        None,
        "01 0e 00 02 05 75736572 00 00 02 71 4130000000000000 00 00",
        None,
        '{"type":"CLIENT_QUOTA_RECORD","version":0,"data":{"entity":[{"entityType":"user","entityName":null}],'
        '"key":"q","value":1048576.0,"remove":false}}',
    ),
    ("cluster-metadata", "00", "01 14 00 00", None, '{"type":"NO_OP_RECORD","version":0,"data":{}}'),
    ("cluster-metadata", None, "01 14 09 00", None, '{"type":"NO_OP_RECORD","version":9,"data":{}}'),
    ("cluster-metadata", None, None, None, "Error at 5, skipping. Error while reading frame version"),
    ("cluster-metadata", None, "01 14 00", None, "Error at 5, skipping. Failed to deserialize record with type 20"),
    (
        "remote-log-metadata",
        None,
        "01 02 00 05 74 6f7069 0011",
        None,
        "Error at offset 5, skipping. Failed to deserialize record with type 2",
    ),
    (
        "remote-log-metadata",
        None,
        None,
        None,
        'Error at offset 5, skipping. Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
        '"org.apache.kafka.common.record.internal.Record.value()" is null',
    ),
]


@pytest.mark.parametrize(("parser", "key", "value", "key_text", "payload_text"), PARSED)
def test_records_and_what_is_wrong_with_them(
    parser: str, key: str | None, value: str | None, key_text: str | None, payload_text: str | None
) -> None:
    assert parsers()[parser](5, _bytes(key), _bytes(value)) == (key_text, payload_text)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


@pytest.mark.parametrize("parser", ["offsets", "transaction", "share-group-state"])
def test_a_coordinator_record_without_a_key_ends_the_dump(parser: str) -> None:
    with pytest.raises(LogstoreError) as caught:
        parsers()[parser](5, None, b"")
    assert (caught.value.java_class, caught.value.message) == (
        "java.lang.RuntimeException",
        "Failed to decode message at offset 5 using the specified decoder (message had a missing key)",
    )


@pytest.mark.parametrize(
    ("protocol_type", "subscription", "text"),
    [
        ("consumer", SUBSCRIPTION, '{"topics":["t"],"userData":"Kg=="}'),
        ("connect", SUBSCRIPTION, '"AAAAAAABAAF0AAAAASoA"'),
        ("consumer", "00000000", '""'),
        ("consumer", "00000001 00", '"AA=="'),
        ("consumer", "00000003 000000", '"AAAA"'),
        (
            "consumer",
            "00000014 0009 00000000 00000000 00000000 00000005 ffff",
            '{"topics":[],"userData":"","ownedPartitions":[],"generationId":5,"rackId":null}',
        ),
        ("consumer", "00000014 0009 00000000 00000000 00000001 00000005 ffff", '"AAkAAAAAAAAAAAAAAAEAAAAF//8="'),
    ],
)
def test_members_of_consumer_groups_show_what_they_subscribed_to(
    protocol_type: str, subscription: str, text: str
) -> None:
    head = f"0000 {len(protocol_type):04x} {protocol_type.encode().hex()} 00000003 ffff"
    group = f"{head} ffff 00000001 0001 6d 0001 63 0002 2f68 00000005 {subscription} 00000000"
    _, payload = parsers()["offsets"](5, bytes.fromhex(GROUP_KEY), bytes.fromhex(group))
    found = re.search('"subscription":(.*),"assignment":""', payload or "")
    assert found is not None, payload
    assert found[1] == text


SEGMENT = f"01 00 00 {REMOTE_ID} %s 0000000000000009 00000001 0000000000000007 0000000000000006 %s 00000400 %s %s %s"
EPOCHS = "04 00000003 0000000000000005 00  00000000 0000000000000000 00  00000003 0000000000000007 00"


@pytest.mark.parametrize(
    ("start_offset", "epochs", "custom", "state", "tags", "text"),
    [
        (
            "0000000000000000",
            EPOCHS,
            "00",
            "01",
            "00",
            "RemoteLogSegmentMetadata{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition="
            "ABEiM0RVZneImaq7zN3u_w:topi-2, id=_-7dzLuqmYh3ZlVEMyIRAA}, startOffset=0, endOffset=9, brokerId=1, "
            "maxTimestampMs=7, eventTimestampMs=6, segmentLeaderEpochs={0=0, 3=7}, segmentSizeInBytes=1024, "
            "customMetadata=Optional.empty, state=COPY_SEGMENT_FINISHED, txnIdxEmpty=false}",
        ),
        ("0000000000000000", EPOCHS, "04 010203", "00", "01 00 01 01", None),
        (
            "ffffffffffffffff",
            EPOCHS,
            "00",
            "01",
            "00",
            "Unexpected start offset = -1. StartOffset for a remote segment cannot be negative",
        ),
        (
            "000000000000000a",
            EPOCHS,
            "00",
            "01",
            "00",
            "Unexpected end offset = 9. EndOffset for a remote segment cannot be less than startOffset = 10",
        ),
        ("0000000000000000", "01", "00", "01", "00", "segmentLeaderEpochs can not be null or empty"),
        ("0000000000000000", EPOCHS, "00", "04", "00", "state can not be null"),
    ],
)
def test_remote_segments_print_as_kafka_s_objects(
    start_offset: str, epochs: str, custom: str, state: str, tags: str, text: str | None
) -> None:
    value = bytes.fromhex(SEGMENT % (start_offset, epochs, custom, state, tags))
    _, payload = parsers()["remote-log-metadata"](5, None, value)
    assert payload is not None
    if text is None:
        tail = "customMetadata=Optional[CustomMetadata{3 bytes}], state=COPY_SEGMENT_STARTED, txnIdxEmpty=true}"
        assert payload.endswith(tail)
    else:
        assert payload == (text if text.startswith("Remote") else f"Error at offset 5, skipping. {text}")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            f"01 01 00 {REMOTE_ID} 00000001 0000000000000006 00 02 00",
            "RemoteLogSegmentMetadataUpdate{remoteLogSegmentId=RemoteLogSegmentId{topicIdPartition="
            "ABEiM0RVZneImaq7zN3u_w:topi-2, id=_-7dzLuqmYh3ZlVEMyIRAA}, customMetadata=Optional.empty, "
            "state=DELETE_SEGMENT_STARTED, eventTimestampMs=6, brokerId=1}",
        ),
        (
            "01 02 00 05 74 6f7069 00112233445566778899aabbccddeeff 00000002 00 00000001 0000000000000006 01 00",
            "RemotePartitionDeleteMetadata{topicPartition=ABEiM0RVZneImaq7zN3u_w:topi-2, "
            "state=DELETE_PARTITION_STARTED, eventTimestampMs=6, brokerId=1}",
        ),
        (
            "01 02 00 05 74 6f7069 00112233445566778899aabbccddeeff 00000002 00 00000001 0000000000000006 03 00",
            "Error at offset 5, skipping. null",
        ),
        (
            "01 03 00 00112233445566778899aabbccddeeff 0000000000000001 0000000000000000 00000001 "
            "0000000000000007 0000000000000006 02 00000003 0000000000000005 00 00000400 00 03 00",
            "RemoteLogSegmentMetadataSnapshot{segmentId=ABEiM0RVZneImaq7zN3u_w, startOffset=1, endOffset=0, "
            "maxTimestampMs=7, segmentLeaderEpochs={3=5}, segmentSizeInBytes=1024, "
            "customMetadata=Optional.empty, state=DELETE_SEGMENT_FINISHED, txnIdxEmpty=false}",
        ),
    ],
)
def test_other_remote_log_records(value: str, text: str) -> None:
    assert parsers()["remote-log-metadata"](5, None, bytes.fromhex(value)) == (None, text)


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("0000 0000", "0000 00000007", " endTxnMarker: ABORT coordinatorEpoch: 7"),
        ("0000 0001", "0003 ffffffff 00", " endTxnMarker: COMMIT coordinatorEpoch: -1"),
        ("0007 0001 00", "0000 00000007", " endTxnMarker: COMMIT coordinatorEpoch: 7"),
        ("0000 0007", None, " controlType: UNKNOWN(7)"),
        ("0000 ffff", "", " controlType: UNKNOWN(-1)"),
        (
            "0000 0002",
            "0000 00000003 02 00000001 00 01 00",
            ' LeaderChange: {"version":0,"leaderId":3,"voters":[{"voterId":1}],"grantingVoters":[]}',
        ),
        (
            "0000 0002",
            "0001 00000003 02 00000001 00 01 00",
            ' LeaderChange: {"version":1,"leaderId":3,"voters":[{"voterId":1,'
            '"voterDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA"}],"grantingVoters":[]}',
        ),
        (
            "0000 0003",
            "0000 0000000000000005 00",
            ' SnapshotHeader {"version":0,"lastContainedLogTimestamp":5}',
        ),
        ("0000 0004", "0000 00", ' SnapshotFooter {"version":0}'),
        ("0000 0005", "0000 0001 00", ' KRaftVersion {"version":0,"kRaftVersion":1}'),
        (
            "0000 0006",
            "0000 02 00000001 00112233445566778899aabbccddeeff 02 02 43 02 68 2384 00 0000 0001 00 00 00",
            ' KRaftVoters {"version":0,"voters":[{"voterId":1,"voterDirectoryId":"ABEiM0RVZneImaq7zN3u_w",'
            '"endpoints":[{"name":"C","host":"h","port":9092}],'
            '"kRaftVersionFeature":{"minSupportedVersion":0,"maxSupportedVersion":1}}]}',
        ),
    ],
)
def test_control_records(key: str, value: str | None, text: str) -> None:
    assert control_record_text(bytes.fromhex(key), _bytes(value)) == text


INVALID_RECORD = "org.apache.kafka.common.InvalidRecordException"
NULL_POINTER = "java.lang.NullPointerException"
UNDERFLOW = "java.nio.BufferUnderflowException"


@pytest.mark.parametrize(
    ("key", "value", "java_class", "message"),
    [
        (
            "000000",
            "",
            INVALID_RECORD,
            "Invalid value size found for control record key. Must have at least 4 bytes, but found only 3",
        ),
        (
            "fffe0000",
            "",
            INVALID_RECORD,
            "Invalid version found for control record: -2. May indicate data corruption",
        ),
        (
            "00000000",
            "ffff00000000",
            INVALID_RECORD,
            "Invalid version found for end transaction marker: -1. May indicate data corruption",
        ),
        ("00000000", "00", UNDERFLOW, None),
        ("00000001", "0000000000", UNDERFLOW, None),
        ("00000005", "000000", UNDERFLOW, None),
        (
            "00000002",
            "0000 00000003 00",
            "java.lang.RuntimeException",
            "non-nullable field voters was serialized as null",
        ),
        (None, "", NULL_POINTER, 'Cannot invoke "java.nio.ByteBuffer.duplicate()" because "key" is null'),
        ("00000001", None, NULL_POINTER, 'Cannot invoke "java.nio.ByteBuffer.getShort()" because "value" is null'),
        ("00000003", None, NULL_POINTER, 'Cannot invoke "java.nio.ByteBuffer.slice()" because "data" is null'),
    ],
)
def test_broken_control_records_end_the_dump(
    key: str | None, value: str | None, java_class: str, message: str | None
) -> None:
    with pytest.raises(LogstoreError) as caught:
        control_record_text(_bytes(key), _bytes(value))
    assert (caught.value.java_class, caught.value.message) == (java_class, message)


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("StringDecoder", "61ff eda080", "a\ufffd\ufffd"),
        ("IntegerDecoder", "ffffffff 07", "-1"),
        ("LongDecoder", "8000000000000000", "-9223372036854775808"),
    ],
)
def test_the_standard_decoders(name: str, data: str, text: str) -> None:
    assert decoder(f"org.apache.kafka.tools.api.{name}")(bytes.fromhex(data)) == text


def test_the_default_decoder_prints_an_array_and_the_same_one_for_the_same_bytes() -> None:
    decode = decoder("org.apache.kafka.tools.api.DefaultDecoder")
    assert re.fullmatch("\\[B@[0-9a-f]{1,8}", decode(b"abc"))
    assert decode(b"abc") == decode(b"abc") != decode(b"abd")


@pytest.mark.parametrize(("name", "size"), [("IntegerDecoder", 4), ("LongDecoder", 8)])
def test_numbers_of_too_few_bytes_end_the_dump(name: str, size: int) -> None:
    with pytest.raises(LogstoreError) as caught:
        decoder(f"org.apache.kafka.tools.api.{name}")(bytes(size - 1))
    assert (caught.value.java_class, caught.value.message) == (UNDERFLOW, None)


@pytest.mark.parametrize("name", ["StringDecoder", "kafka.serializer.StringDecoder", "", "java.lang.String"])
def test_other_decoder_classes_do_not_load(name: str) -> None:
    with pytest.raises(LogstoreError) as caught:
        decoder(name)
    assert (caught.value.java_class, caught.value.message) == (
        "java.lang.RuntimeException",
        "Failed to load decoder class",
    )
