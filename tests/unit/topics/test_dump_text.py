"""What the dump prints of keys and values by its decoders, and of records of remote segments that are wrong."""

from __future__ import annotations

import re

import pytest

from logstore.errors import LogstoreError
from logstore_tools.dump.decoders import decoder, parsers

REMOTE_ID = "05 74 6f7069 00112233445566778899aabbccddeeff 00000002 00 ffeeddccbbaa99887766554433221100 00"

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


def test_a_state_of_a_partition_that_does_not_exist_is_an_error_without_a_message() -> None:
    topic = "05 74 6f7069 00112233445566778899aabbccddeeff 00000002 00"
    value = bytes.fromhex(f"01 02 00 {topic} 00000001 0000000000000006 03 00")
    assert parsers()["remote-log-metadata"](5, None, value) == (None, "Error at offset 5, skipping. null")


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
    assert (caught.value.java_class, caught.value.message) == ("java.nio.BufferUnderflowException", None)


@pytest.mark.parametrize("name", ["StringDecoder", "kafka.serializer.StringDecoder", "", "java.lang.String"])
def test_other_decoder_classes_do_not_load(name: str) -> None:
    with pytest.raises(LogstoreError) as caught:
        decoder(name)
    assert (caught.value.java_class, caught.value.message) == (
        "java.lang.RuntimeException",
        "Failed to load decoder class",
    )
