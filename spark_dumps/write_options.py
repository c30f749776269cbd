"""The options and the columns of a write, checked before anything is computed.

Columns and messages are those of Spark's Kafka sink (`KafkaWriter`); column `timestamp` is added. Other columns are
ignored, as there, so that a table that was read can be written unchanged.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql.types import BinaryType, DataType, IntegerType, StringType, StructType, TimestampType

from logstore.errors import InvalidTopicError, UsageError

from .locations import local_path
from .network_options import IGNORE_OPTION
from .options import KAFKAS_TOPICS, OptionReader
from .schemas import HEADERS

ID_PREFIX = "kafka_segments-"  # of the transactional id of each job: a store may have producers that are no jobs
PRODUCER_PREFIX = "kafka."
COLUMNS: dict[str, tuple[DataType, ...]] = {  # in the order in which the Kafka sink checks them
    "topic": (StringType(),),
    "key": (StringType(), BinaryType()),
    "value": (StringType(), BinaryType()),
    "headers": (HEADERS,),
    "partition": (IntegerType(),),
    "timestamp": (TimestampType(),),
}
_REQUIRED = {
    "topic": "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic.",
    "value": "Required attribute 'value' not found",
}
_PRODUCER_NAMES = "compression.type max.block.ms partitioner.ignore.keys transaction.timeout.ms"
_NAMES = ["path", "topic", "partitions", "stagingPath", "transactionalId", IGNORE_OPTION]
_NAMES += [PRODUCER_PREFIX + name for name in _PRODUCER_NAMES.split()]


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """The options of a write, checked; `source` describes them.

    Attributes:
        path: absolute path of the data directory.
        topic: the topic of all rows; None: each row names its own.
        partition_count: number of partitions of missing topics; None: they are an error.
        staging_path: the directory for staging directories; None: the parent of the data directory.
        transactional_id: of the job's producer, as the store knows it.
        producer: the given configurations of the producer, by Kafka's names.
    """

    path: str
    topic: str | None
    partition_count: int | None
    staging_path: str | None
    transactional_id: str
    producer: Mapping[str, str]


def parse_write_options(given: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a write as Spark passes them; names in any case.

    Raises:
        UsageError: an unknown name or a wrong value; configurations of the producer are not checked here.
        InvalidTopicError: an internal topic.
    """
    reader = OptionReader(given, _NAMES)
    values = reader.values
    paths = reader.paths()
    if len(paths) != 1:
        raise UsageError("one data directory is written", expected="a path", found=values["path"])
    topic = values.get("topic")
    if topic is not None:
        topic = topic.strip()
        require_no_internal_topic(topic)
    staging_path = values.get("stagingpath")
    given_id = values.get("transactionalid", str(uuid.uuid4()))
    if not given_id:
        raise UsageError("transactionalId is empty", advice="leave it out, and each job gets a new one")
    return WriteOptions(
        path=local_path(paths[0]),  # an object store cannot be written
        topic=topic,
        partition_count=reader.positive("partitions"),
        staging_path=None if staging_path is None else local_path(staging_path.strip()),
        transactional_id=f"{ID_PREFIX}{given_id}",
        producer={
            name[len(PRODUCER_PREFIX) :]: value for name, value in values.items() if name.startswith(PRODUCER_PREFIX)
        },
    )


def require_no_internal_topic(topic: str) -> None:
    """Raise InvalidTopicError for an internal topic (`ReplicaManager.appendToLocalLog`)."""
    if topic in KAFKAS_TOPICS:
        raise InvalidTopicError(f"Cannot append to internal topic {topic}", found=topic)


def find_columns(schema: StructType, topic: str | None) -> dict[str, int]:
    """Return the index in the schema of each column to write; with `topic`, column `topic` is ignored.

    Raises UsageError for a missing column or a wrong type, with the messages of Spark's Kafka sink.
    """
    found = {}
    for name, types in COLUMNS.items():
        index = next((at for at, field in enumerate(schema) if field.name == name), None)
        if name == "topic" and topic is not None:
            continue
        if index is None:
            if name in _REQUIRED:
                raise UsageError(_REQUIRED[name])
            continue
        kind = schema[index].dataType.simpleString()
        expected = [one.simpleString() for one in types]
        if kind not in expected:
            raise UsageError(
                f"{name} attribute unsupported type {kind}. {name} must be a(n) {' or '.join(expected)}", found=kind
            )
        found[name] = index
    return found
