"""What is written to an internal topic is read back; what the schema does not allow is refused, never bent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logstore.errors import SchemaError
from logstore.layout.kafka_uuid import format_uuid
from logstore.messages.reader import UNKNOWN_TAGGED_FIELDS, read
from logstore.messages.schema import Field, Message, StructSpec
from logstore.messages.writer import write
from logstore.topics import cluster_metadata, consumer_offsets, family, transaction_state
from logstore.topics.frames import read_value, write_value
from logstore.topics.transaction_state import TransactionState

TABLES = ["consumer_offsets", "transaction_state", "cluster_metadata", "consumer_protocol", "share_group_state"]
MESSAGES = [message for table in TABLES for message in family(table).values()]
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
EPOCHS = st.integers(-(2**15), 2**15 - 1)
TIMES = st.integers(-(2**63), 2**63 - 1)


def values(struct: StructSpec, version: int, is_flexible: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Any value of a struct that `version` can hold: absent fields have their defaults."""
    fields = {
        field.name: field_values(field, version, is_flexible) if version in field.versions else st.just(field.default)
        for field in struct.fields
    }
    return st.fixed_dictionaries(fields)


def field_values(field: Field, version: int, is_flexible: bool) -> st.SearchStrategy[Any]:
    plain = plain_values(field, version, is_flexible)
    if field.is_array:
        plain = st.lists(plain, max_size=3)
    return st.none() | plain if field.is_nullable else plain


def plain_values(field: Field, version: int, is_flexible: bool) -> st.SearchStrategy[Any]:
    if field.struct is not None:
        return values(field.struct, version, is_flexible)
    if field.kind in BITS:
        top = 2 ** (BITS[field.kind] - 1)
        return st.just(field.default or 0) | st.integers(-top, top - 1)
    return {
        "uint16": st.integers(0, 2**16 - 1),
        "bool": st.booleans(),
        "float64": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16).map(format_uuid),
        "string": TEXTS,
        "bytes": st.binary(max_size=8),
    }[field.kind]


@given(data=st.data(), message=st.sampled_from(MESSAGES))
def test_a_message_comes_back(data: st.DataObject, message: Message) -> None:
    version = data.draw(st.integers(message.versions.low, message.versions.high))
    value = data.draw(values(message.root, version, message.is_flexible(version)))
    written = write(message, version, value)
    assert read(message, version, written) == value
    assert write(message, version, read(message, version, written)) == written


@given(state=st.sampled_from([state for state in TransactionState if state]), data=st.data())
def test_transaction_metadata_comes_back(state: TransactionState, data: st.DataObject) -> None:
    names = data.draw(st.lists(TEXTS, unique=True, max_size=3))
    metadata = transaction_state.TransactionMetadata(
        producer_id=data.draw(TIMES),
        producer_epoch=data.draw(EPOCHS),
        state=state,
        transaction_timeout_ms=data.draw(st.integers(-(2**31), 2**31 - 1)),
        partitions=tuple((name, partition) for name in names for partition in range(data.draw(st.integers(1, 3)))),
        start_timestamp_ms=data.draw(TIMES),
        last_update_timestamp_ms=data.draw(TIMES),
        previous_producer_id=data.draw(TIMES),
        next_producer_id=data.draw(TIMES),
        next_producer_epoch=-1,
        client_transaction_version=data.draw(st.integers(0, 2)),
    )
    written = transaction_state.encode_value(metadata)
    assert transaction_state.decode_value(written) == metadata
    fields = read_value("transaction_state", 0, written).fields  # by the schema, which orders nothing else than ours
    assert write_value("transaction_state", 0, 1, fields) == written
    transactional_id = data.draw(TEXTS)
    assert transaction_state.decode_key(transaction_state.encode_key(transactional_id)) == transactional_id


@given(group=TEXTS, topic=TEXTS, partition=st.integers(0, 2**31 - 1), data=st.data())
def test_a_committed_offset_comes_back(group: str, topic: str, partition: int, data: st.DataObject) -> None:
    has_expiry = data.draw(st.booleans())
    key = consumer_offsets.OffsetKey(group, topic, partition)
    value = consumer_offsets.CommittedOffset(
        offset=data.draw(TIMES),
        leader_epoch=-1 if has_expiry else data.draw(st.integers(-1, 2**31 - 1)),
        metadata=data.draw(TEXTS),
        commit_timestamp_ms=data.draw(TIMES),
        expire_timestamp_ms=data.draw(st.integers(0, 2**63 - 1)) if has_expiry else -1,
        topic_id=None if has_expiry else format_uuid(data.draw(st.binary(min_size=16, max_size=16)) or bytes(16)),
    )
    if value.topic_id == "A" * 22:
        return
    assert consumer_offsets.decode_key(consumer_offsets.encode_key(key)) == key
    assert consumer_offsets.decode_value(key, consumer_offsets.encode_value(value)) == value


@given(st.lists(st.tuples(TEXTS, st.none() | TEXTS, st.binary(max_size=5)), max_size=3))
def test_a_classic_group_comes_back(members: list[tuple[str, str | None, bytes]]) -> None:
    value = consumer_offsets.GroupMetadata(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader=None,
        state_timestamp_ms=5,
        members=tuple(
            consumer_offsets.GroupMember(member_id, instance_id, "client", "/host", 6, 7, blob, blob * 2)
            for member_id, instance_id, blob in members
        ),
    )
    key = consumer_offsets.GroupKey("g")
    assert consumer_offsets.decode_key(consumer_offsets.encode_key(key)) == key
    assert consumer_offsets.decode_value(key, consumer_offsets.encode_value(value)) == value


@given(st.sampled_from(sorted(family("cluster_metadata"))), st.data())
def test_a_metadata_record_comes_back(name: str, data: st.DataObject) -> None:
    message = family("cluster_metadata")[name]
    version = data.draw(st.integers(message.versions.low, message.versions.high))
    value = data.draw(values(message.root, version, message.is_flexible(version)))
    record = cluster_metadata.decode_value(cluster_metadata.encode_value(name, value, version=version))
    assert (record.message.name, record.version, record.fields) == (name, version, value)


@pytest.mark.parametrize(
    ("table", "name", "version", "value", "text"),
    [
        (
            "consumer_offsets",
            "OffsetCommitValue",
            4,
            {"metadata": None},
            "non-nullable field metadata must not",
        ),
        ("consumer_offsets", "OffsetCommitValue", 4, {"metadata": "x" * 32768}, "'metadata' field is too long"),
        ("consumer_offsets", "OffsetCommitValue", 4, {"metadata": "\ud800"}, "metadata cannot be"),
        ("consumer_offsets", "OffsetCommitValue", 4, {"offset": 2**63}, "offset cannot be"),
        ("consumer_offsets", "OffsetCommitValue", 4, {"offset": None}, "offset cannot be None"),
        ("consumer_offsets", "OffsetCommitValue", 4, {"topicId": "?"}, "topicId cannot be"),
        ("consumer_offsets", "OffsetCommitValue", 4, {"topicId": 7}, "topicId cannot be 7"),
        ("consumer_offsets", "OffsetCommitValue", 4, {"offsett": 1}, "OffsetCommitValue cannot be"),
        ("consumer_offsets", "OffsetCommitValue", 5, {}, "Can't write version 5 of OffsetCommitValue"),
        ("consumer_offsets", "OffsetCommitValue", 3, {UNKNOWN_TAGGED_FIELDS: [(7, b"")]}, "Tagged fields were set"),
        ("consumer_offsets", "OffsetCommitValue", 4, {UNKNOWN_TAGGED_FIELDS: [(0, b"")]}, "as an undefined tag"),
        ("consumer_offsets", "OffsetCommitValue", 4, {UNKNOWN_TAGGED_FIELDS: [(7, b""), (7, b"")]}, "Invalid raw tag"),
        ("consumer_offsets", "GroupMetadataValue", 3, {"members": {}}, "members cannot be"),
        ("consumer_offsets", "GroupMetadataValue", 3, {"members": None}, "non-nullable field members"),
        ("consumer_offsets", "GroupMetadataValue", 3, {"members": [{"assignment": 5}]}, "assignment cannot be 5"),
        ("consumer_offsets", "GroupMetadataValue", 3, {"members": [{"assignment": None}]}, "non-nullable"),
        ("cluster_metadata", "RegisterBrokerRecord", 0, {"inControlledShutdown": True}, "Attempted to write a non-"),
        ("cluster_metadata", "RegisterBrokerRecord", 0, {"fenced": 1}, "fenced cannot be 1"),
        ("transaction_state", "TransactionLogValue", 0, {"clientTransactionVersion": 2}, "at version 0"),
    ],
)
def test_values_outside_the_schema_are_refused(
    table: str, name: str, version: int, value: dict[str, Any], text: str
) -> None:
    with pytest.raises(SchemaError, match=text):
        write(family(table)[name], version, value)


def test_an_empty_transaction_has_no_partitions() -> None:
    empty = TransactionState.EMPTY
    metadata = transaction_state.TransactionMetadata(1, 0, empty, 5, (("t", 0),), -1, 0, -1, -1, -1, 0)
    with pytest.raises(SchemaError, match="not expected to have any partitions"):
        transaction_state.encode_value(metadata)


@pytest.mark.parametrize("field", ["producer_id", "producer_epoch", "client_transaction_version"])
def test_a_number_too_large_for_transaction_metadata_is_named(field: str) -> None:
    metadata = transaction_state.TransactionMetadata(1, 0, TransactionState.ONGOING, 5, (), -1, 0, -1, -1, -1, 2)
    words = field.split("_")
    with pytest.raises(SchemaError, match=words[0] + "".join(map(str.capitalize, words[1:]))):
        transaction_state.encode_value(metadata._replace(**{field: 2**63}))


def test_an_unknown_metadata_record_is_refused() -> None:
    with pytest.raises(SchemaError, match="NoSuchRecord is no record of cluster_metadata"):
        cluster_metadata.encode_value("NoSuchRecord", {})
