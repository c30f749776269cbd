"""A directory of any level of `metadata.version` is imported, written and given back with the levels that it had."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore.audit.directory_audit import audit_directory
from logstore.config.kafka_version import NEWEST, default_levels
from logstore.replay.metadata_state import read_metadata
from logstore_tools.commands import logstore as command
from tests.support.formatted import USER, formatted, level
from tests.support.stores import FEW_PARTITIONS, begun, open_store

LOWEST, HIGHEST = NEWEST.features["metadata.version"]
DYNAMIC = 21  # as `kafka-storage format --standalone`, which came with Kafka 3.9


@pytest.mark.parametrize("number", range(LOWEST, HIGHEST + 1))
def test_every_level_is_worked_on_and_stays(tmp_path: Path, number: int) -> None:
    levels = default_levels(number)
    records = [level(name, of_feature) for name, of_feature in levels.items() if name != "kraft.version"]
    root = formatted(tmp_path / "data", *records, USER, is_dynamic=number >= DYNAMIC)
    done = CliRunner().invoke(command, ["import", str(root)])
    assert done.exit_code == 0, done.output
    for value in (b"first", b"second"):
        with open_store(root, config=FEW_PARTITIONS) as store:
            if value == b"first":
                store.create_topic("t", 2, {"min.insync.replicas": "1"})
            with begun(store) as producer:
                producer.send("t", value, partition=0)
                producer.send_offsets_to_transaction({("t", 0): 1}, "g")
                producer.commit_transaction()
    state = read_metadata(str(root / "__cluster_metadata-0"))
    assert state.levels == levels
    assert state.image.credentials == {("alice", 1)}
    done = CliRunner().invoke(command, ["promote", str(root), "--dry-run"])
    assert done.exit_code == 0, done.output
    assert audit_directory(str(root), 0).findings == ()
    with open_store(root) as store:
        assert [record.value for record in store.read("t")] == [b"first", b"second"]
