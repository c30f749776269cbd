"""`verify` finds nothing in what brokers wrote, and each planted fault by its rule."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore.audit.directory_verify import verify_directory
from logstore.audit.finding import Finding, Severity
from logstore.audit.partition import open_partition
from logstore.audit.verify import verify_partition
from logstore_tools.check_commands import verify as command
from tests.support.audit_faults import FAULTS, PLAIN_FAULTS, ROLLED, Plant, lay_plain, plain_batches
from tests.support.golden import WRITTEN, Golden


def findings_of(root: Path) -> list[Finding]:
    """All of a data directory."""
    return [*verify_directory(str(root)).findings]


@pytest.fixture
def copied(golden: Golden, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a golden directory that may be damaged."""

    def copy(name: str) -> Path:
        return shutil.copytree(golden(name), tmp_path / name)

    return copy


@pytest.mark.parametrize("name", WRITTEN)
def test_nothing_is_found_in_what_a_broker_wrote(golden: Golden, name: str) -> None:
    result = verify_directory(str(golden(name)))
    assert findings_of(golden(name)) == []
    assert sum(one.evidence.batch_count for one in result.partitions) > 40


def test_brokers_with_zookeeper_know_topics_without_ids(copied: Callable[[str], Path]) -> None:
    """Such as before Kafka 2.8, or with an older `inter.broker.protocol.version`."""
    root = copied("demo")
    shutil.rmtree(root / "__cluster_metadata-0")
    for path in root.glob("*/partition.metadata"):
        path.unlink()
    assert {finding.rule for finding in findings_of(root)} == {"partition-metadata"}
    (root / "meta.properties").write_text("version=0\nbroker.id=1\ncluster.id=c\n")
    assert findings_of(root) == []


def test_a_broker_that_was_migrated_from_zookeeper_sets_what_has_no_id_aside(copied: Callable[[str], Path]) -> None:
    """It keeps its `meta.properties` of version 0."""
    root = copied("demo")
    properties = root / "meta.properties"
    properties.write_text(properties.read_text().replace("version=1", "version=0").replace("node.id", "broker.id"))
    assert findings_of(root) == []
    (root / "orders-0" / "partition.metadata").unlink()
    assert [(finding.rule, finding.where.topic) for finding in findings_of(root)] == [("partition-metadata", "orders")]


def test_data_that_a_broker_set_aside_for_want_of_an_id_is_told(copied: Callable[[str], Path]) -> None:
    """The partition is empty since, and nothing else may tell."""
    root = copied("demo")
    stray = (root / "orders-0").rename(root / f"orders-0.{'0f2a' * 8}-stray")
    assert findings_of(root) == []  # it is of an earlier topic of its name
    (stray / "partition.metadata").unlink()
    (finding,) = findings_of(root)
    assert (finding.rule, finding.where.path) == ("partition-metadata", str(stray))
    for path in stray.iterdir():
        path.unlink()
    assert findings_of(root) == []


def test_more_data_than_the_partition_has_in_a_directory_set_aside_is_told(copied: Callable[[str], Path]) -> None:
    """The metadata did not have the partition at a start, and has it again."""
    root = copied("demo")
    stray = root / f"orders-0.{'0f2a' * 8}-stray"
    shutil.copytree(root / "orders-0", stray)
    assert findings_of(root) == []  # a broker that is a replica again has copied everything from the leader
    for path in (root / "orders-0").glob("0*"):
        path.unlink() if path.suffix == ".snapshot" else path.write_bytes(b"")
    told = [finding.where.path for finding in findings_of(root) if finding.rule == "partition-set-aside"]
    assert told == [str(stray)]
    (stray / "partition.metadata").write_bytes(b"version: 0\ntopic_id: dqEnd-x7SkKckvU0_kJgLQ")  # an earlier topic
    assert "partition-set-aside" not in {finding.rule for finding in findings_of(root)}


@pytest.mark.parametrize("node", [1, 3000])
def test_a_metadata_log_alone_is_in_no_brokers_registration(copied: Callable[[str], Path], node: int) -> None:
    """It is that of a controller that is no broker, or `metadata.log.dir` is none of `log.dirs`."""
    root = copied("demo")
    for path in set(root.glob("*-[0-9]")) - {root / "__cluster_metadata-0"}:
        shutil.rmtree(path)
    for path in (*root.glob("*-offset-checkpoint"), root / ".kafka_cleanshutdown"):
        path.unlink()
    identity = f"version=1\ncluster.id=c\nnode.id={node}\ndirectory.id=dqEnd-x7SkKckvU0_kJgLQ\n"
    (root / "meta.properties").write_text(identity)
    assert findings_of(root) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", WRITTEN)
def test_nothing_is_found_in_a_partition_on_its_own(golden: Golden, name: str, tmp_path: Path) -> None:
    logs = sorted(golden(name).glob("*-[0-9]/*.log"))
    assert logs
    for log in logs:
        alone = tmp_path / log.parent.name
        if not alone.exists():
            shutil.copytree(log.parent, alone)
            assert verify_partition(open_partition(str(alone))).findings == (), alone


@pytest.mark.parametrize(
    ("rule", "plant"),
    [pytest.param(rule, plant, id=f"{rule}-{n}") for rule, plants in FAULTS.items() for n, plant in enumerate(plants)],
)
def test_a_planted_fault_is_found_and_nothing_else(copied: Callable[[str], Path], rule: str, plant: Plant) -> None:
    root = copied("transactions")
    plant(root)
    found = findings_of(root)
    assert {finding.rule for finding in found} == {rule}
    assert all(finding.expected != finding.found and finding.advice for finding in found)


@pytest.mark.parametrize("rule", PLAIN_FAULTS)
def test_a_batch_that_cannot_be_is_found(tmp_path: Path, rule: str) -> None:
    clean = lay_plain(tmp_path, plain_batches())
    assert verify_partition(open_partition(str(clean))).findings == ()
    for number, batches in enumerate(PLAIN_FAULTS[rule]):
        place = tmp_path / str(number)
        place.mkdir()
        found = verify_partition(open_partition(str(lay_plain(place, batches)))).findings
        assert rule in {finding.rule for finding in found}
        assert {finding.rule for finding in found} <= {rule, "time-index", "time-index-end", "leader-epochs"} | (
            {"log-offset-order", "log-offset-range", "log-record-count"} if rule.startswith("log-offset") else set()
        )


def test_a_segment_that_cannot_be_read_is_found(copied: Callable[[str], Path]) -> None:
    root = copied("transactions")
    with next((root / ROLLED).glob("*.log")).open("r+b") as log:
        log.truncate(2**31)  # more than a segment can have
    assert "log-size" in {finding.rule for finding in findings_of(root)}


def test_a_segment_that_is_gone_is_missed(copied: Callable[[str], Path]) -> None:
    root = copied("transactions")
    gone = sorted((root / ROLLED).glob("*.log"))[1]
    for path in (root / ROLLED).glob(f"{gone.stem}.*"):
        path.unlink()
    assert "offsets-lost" in {finding.rule for finding in findings_of(root)}
    printed = CliRunner().invoke(command, [str(root / ROLLED)])
    assert (printed.exit_code, "offsets-lost" in printed.output) == (1, True)


def test_of_markers_that_do_not_ascend_the_first_is_told(copied: Callable[[str], Path]) -> None:
    root = copied("transactions")
    path = next(path for path in (root / ROLLED).glob("*.txnindex") if path.stat().st_size)
    content = path.read_bytes()[:34]
    path.write_bytes(content * 3)
    marker = int.from_bytes(content[18:26])
    found = [one for one in findings_of(root) if one.expected == "ascending last offsets"]
    assert [(one.where.offset, one.found) for one in found] == [(marker, f"{marker} behind {marker}")]


def test_a_snapshot_without_a_segment_is_read(golden: Golden, tmp_path: Path) -> None:
    snapshot = min((golden("transactions") / ROLLED).glob("*.snapshot"))
    (tmp_path / ROLLED).mkdir()
    shutil.copy(snapshot, tmp_path / ROLLED / f"{0:020d}.snapshot")
    assert verify_partition(open_partition(str(tmp_path / ROLLED))).findings == ()


def test_the_batches_behind_damage_are_still_proven(copied: Callable[[str], Path]) -> None:
    root = copied("transactions")
    whole = verify_partition(open_partition(str(root / ROLLED))).evidence.batch_count
    for plant in FAULTS["log-length"][:1]:
        plant(root)
    damaged = verify_partition(open_partition(str(root / ROLLED)))
    assert damaged.evidence.batch_count == whole - 1
    assert damaged.evidence.log_end_offset == 76


def test_the_command_prints_and_exits_with_what_it_found(copied: Callable[[str], Path]) -> None:
    root = copied("transactions")
    runner = CliRunner()
    clean = runner.invoke(command, [str(root)])
    assert clean.exit_code == 0
    assert "no findings" in clean.output
    FAULTS["log-crc"][0](root)
    dirty = runner.invoke(command, [str(root / ROLLED)])
    assert dirty.exit_code == 1
    assert "log-crc" in dirty.output
    asked = runner.invoke(command, [f"{root}/roll*", "--format", "jsonl"])
    assert [row.get("rule") for row in map(json.loads, asked.output.splitlines())] == [None, "log-crc"]
    assert runner.invoke(command, [str(root / "nowhere")]).exit_code == 2
    assert runner.invoke(command, []).exit_code == 2


def test_a_finding_in_json_has_its_place(copied: Callable[[str], Path]) -> None:
    root = copied("transactions")
    FAULTS["log-crc"][0](root)
    (finding,) = findings_of(root)
    assert finding.severity is Severity.ERROR
    row = json.loads(CliRunner().invoke(command, [str(root), "--format", "jsonl"]).output.splitlines()[-1])
    assert row == {
        "type": "finding",
        "severity": "error",
        "rule": "log-crc",
        "topic": "rolled",
        "partition": 0,
        "path": f"{root}/{ROLLED}/00000000000000000016.log",
        "position": finding.where.position,
        "offset": finding.where.offset,
        "expected": finding.expected,
        "found": finding.found,
        "advice": finding.advice,
    }
