"""Records of internal topics: what we write is what Kafka's generated classes write, byte for byte."""

from __future__ import annotations

import os
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore.errors import SchemaError
from logstore.messages.reader import read
from logstore.messages.writer import write
from logstore.topics import family
from tests.naive import topics as naive
from tests.support.judges import judged
from tests.support.oracle import Oracle
from tests.support.sampling import case_count

pytestmark = pytest.mark.kafka

#: table: the package of Kafka's generated classes
PACKAGES = {
    "consumer_offsets": "org.apache.kafka.coordinator.group.generated",
    "transaction_state": "org.apache.kafka.coordinator.transaction.generated",
    "share_group_state": "org.apache.kafka.coordinator.share.generated",
    "cluster_metadata": "org.apache.kafka.common.metadata",
    "remote_log_metadata": "org.apache.kafka.server.log.remote.metadata.storage.generated",
    "control_records": "org.apache.kafka.common.message",
    "consumer_protocol": "org.apache.kafka.common.message",
}
SEED = 4310
#: random values of one message and version
VALUES = case_count("LOGSTORE_ORACLE_CASES", sample=4, whole=12)


def _definitions(oracle: Oracle) -> dict[str, naive.Definition]:
    wanted = {name for table in PACKAGES for name in family(table, judged())}
    found = {}
    for path in oracle.classpath.split(os.pathsep):
        for text in _json_texts(Path(path)):
            definition = naive.definition_of(text)
            if definition["name"] in wanted:
                found[definition["name"]] = definition
    return found


def _json_texts(path: Path) -> Iterator[str]:
    if path.name.startswith("kafka-") and path.suffix == ".jar":
        with zipfile.ZipFile(path) as jar:
            names = [name for name in jar.namelist() if name.endswith(".json")]
            yield from (jar.read(name).decode() for name in names)


def _questions(rng: random.Random, known: dict[str, naive.Definition]) -> Iterator[tuple[str, str, int, int, bytes]]:
    """Table, message, version to read, version to write, bytes to read."""
    for table in PACKAGES:
        for name, message in family(table, judged()).items():
            versions = range(message.versions.low, message.versions.high + 1)
            for version in versions:
                for _ in range(VALUES):
                    yield table, name, version, version, naive.random_message(rng, known[name], version)
                other = rng.choice(versions)
                yield table, name, version, other, naive.random_message(rng, known[name], version)


def test_messages_are_written_as_the_generated_classes_write_them(oracle: Oracle, tmp_path: Path) -> None:
    questions = list(_questions(random.Random(SEED), _definitions(oracle)))
    text = "".join(
        f"{PACKAGES[table]}.{name} {version} {other} {data.hex()}\n" for table, name, version, other, data in questions
    )
    answers = oracle.lines("Rewrites", cwd=tmp_path, text=text)
    assert len(answers) == len(questions)
    refused_count = 0
    for (table, name, version, other, data), answer in zip(questions, answers, strict=True):
        message = family(table, judged())[name]
        try:
            written = write(message, other, read(message, version, data)).hex()
        except SchemaError as error:
            written = f"{error.java_class}: {error.message}"
            refused_count += 1
        assert written == answer, (name, version, other, data.hex())
    assert refused_count > 0
