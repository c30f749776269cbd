"""What a broker does with each directory is said before, and what is missing is written where it is known."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from logstore.audit.directory_audit import audit_directory
from logstore.disk.lock import DataDirectoryLock
from logstore.disk.seam import SEAM
from logstore.disk.side_files import topic_id_of
from logstore.errors import CheckpointFormatError, DataDirectoryError, InconsistentTopicIdError, InvalidTopicError
from logstore.layout.checkpoint_writing import quorum_state_bytes
from logstore.layout.quorum_state import QuorumState
from logstore.topics.cluster_metadata import encode_value
from logstore_tools.commands import logstore as command_line
from logstore_tools.takeover.adoption import adopt
from logstore_tools.takeover.inspection import inspect
from tests.support import stores
from tests.support.formatted import formatted, level
from tests.support.stores import FEW_PARTITIONS, append_metadata, begun, open_store, values_of

UNIQUE = "0f2a0f2a0f2a0f2a0f2a0f2a0f2a0f2a"
OTHER_ID = "dqEnd-x7SkKckvU0_kJgLQ"
REPLICA_ELSEWHERE = {"partitionId": 2, "replicas": [2], "isr": [2], "leader": 2, "leaderEpoch": 0, "partitionEpoch": 0}
STATE = "__transaction_state-0"


def call(*args: str) -> Result:
    return CliRunner().invoke(command_line, list(args))


contents = partial(stores.contents, but=".lock")  # a look into it would let go of the lock


def of_partitions(root: Path) -> dict[str, bytes]:
    return {name: content for name, content in contents(root).items() if "/" in name}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store that was closed in order: two topics, and a transaction."""
    root = tmp_path / "data"
    with open_store(root, config=FEW_PARTITIONS) as store:
        store.create_topic("orders", 2)
        store.create_topic("payments")
        with begun(store, "billing") as producer:
            for number in (0, 1):
                producer.send("orders", b"paid", partition=number)
            producer.send("payments", b"paid")
            producer.commit_transaction()
    return root


def ids(root: Path) -> dict[str, str | None]:
    return {path.name: topic_id_of(str(path)) for path in root.iterdir() if path.is_dir()}


def forget_owner(root: Path) -> None:
    for path in root.iterdir():
        if path.is_file():
            path.unlink()
    shutil.rmtree(root / "__cluster_metadata-0")


def write_id(path: Path, content: bytes | None) -> None:
    file = path / "partition.metadata"
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)


BAD_IDS = pytest.mark.parametrize(
    "content",
    [None, b"", b"version: 0\n", b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA", b"\x01noise\xff"],
    ids=["missing", "empty", "cut", "zero", "noise"],
)


@BAD_IDS
@pytest.mark.parametrize("name", ["orders-1", STATE])
@pytest.mark.parametrize("command", ["promote", "import"])
def test_a_topic_id_that_is_not_there_is_told_and_written(
    root: Path, command: str, name: str, content: bytes | None
) -> None:
    whole, before = ids(root), of_partitions(root)
    write_id(root / name, content)
    changed = contents(root)
    dry = call(command, "--dry-run", str(root))
    fate = "a broker sets the directory aside as -stray" if content is None else "no broker starts"
    assert (dry.exit_code, f"write partition.metadata of {name}, without which {fate}" in dry.output) == (0, True)
    assert contents(root) == changed
    assert [one.rule for one in audit_directory(str(root), 0).findings] == ["partition-metadata"]
    done = call(command, str(root))
    assert (done.exit_code, f"write partition.metadata of {name}" in done.output) == (0, True), done.output
    assert (ids(root), of_partitions(root)) == (whole, before)
    assert audit_directory(str(root), 0).findings == ()
    with open_store(root) as store:
        assert values_of(store, "orders", 1) == [b"paid"]


@pytest.mark.parametrize("words", [["promote", "--dry-run"], ["import", "--dry-run"], ["import"]])
def test_a_log_that_ends_before_what_was_flushed_is_told(root: Path, words: list[str]) -> None:
    """Somebody removed a file by hand: nothing is left to be removed, and offsets would come again."""
    assert "are gone" not in call("import", "--dry-run", str(root)).output
    (root / "orders-1" / f"{0:020d}.log").unlink()
    answer = call(*words, str(root))
    assert answer.exit_code == 0
    assert "orders-1 ends at offset 0, and was flushed up to 2: 2 offsets are gone" in answer.output
    if "--dry-run" in words:
        shutil.rmtree(root / "orders-1")
        text = "orders-1 has no directory, and was flushed up to 2: 2 offsets are gone"
        assert text in call(*words, str(root)).output


def test_a_partition_of_another_cluster_in_the_place_of_one_is_told_by_both_ids(root: Path) -> None:
    write_id(root / "orders-1", f"version: 0\ntopic_id: {OTHER_ID}".encode())
    told = f"orders-1 has topic id {OTHER_ID}, and orders is {ids(root)['orders-0']}: a broker sets it aside as -stray"
    assert told in call("import", "--dry-run", str(root)).output


@BAD_IDS
def test_an_opening_writes_it_too(root: Path, content: bytes | None) -> None:
    whole = ids(root)
    for name in ("orders-0", "payments-0"):
        write_id(root / name, content)
    open_store(root).close()
    assert ids(root) == whole


def test_without_meta_properties_the_metadata_log_knows_the_ids(root: Path) -> None:
    whole = ids(root)
    for name in ("orders-0", STATE):
        write_id(root / name, None)
    (root / "meta.properties").unlink()
    with (root / "orders-0" / f"{0:020d}.log").open("ab") as log:
        log.write(b"torn")
    assert (root / ".kafka_cleanshutdown").exists()  # of which nobody knows whether it is of these files
    steps = inspect(str(root)).steps
    assert steps[0] == "make meta.properties"
    assert "recover all partitions, because nobody says that they were closed in order" in steps
    assert call("promote", str(root)).exit_code == 0
    assert ids(root) == whole
    assert not (root / "orders-0" / f"{0:020d}.log").read_bytes().endswith(b"torn")
    assert audit_directory(str(root), 0).findings == ()


def test_a_static_quorum_without_meta_properties_is_known_by_its_broker(tmp_path: Path) -> None:
    root = tmp_path / "data"
    (root / "__cluster_metadata-0").mkdir(parents=True)
    (root / "meta.properties").write_text(f"version=1\ncluster.id=c\nnode.id=7\ndirectory.id={OTHER_ID}\n")
    with open_store(root) as store:
        store.create_topic("orders")
    log = root / "__cluster_metadata-0" / f"{0:020d}.log"
    before = log.read_bytes()
    (root / "meta.properties").unlink()
    adopt(str(root), seam=SEAM, now_ms=lambda: 0)
    with open_store(root) as store:
        assert (store.node_id, store.directory_id, list(store.topics)) == (7, OTHER_ID, ["orders"])
    assert log.read_bytes().startswith(before)


def test_a_metadata_log_of_several_nodes_is_not_taken_for_one(root: Path) -> None:
    (root / "meta.properties").unlink()
    node = {"brokerId": 2, "incarnationId": OTHER_ID, "brokerEpoch": 9, "endPoints": [], "features": []}
    append_metadata(
        root,
        encode_value("RegisterBrokerRecord", {**node, "logDirs": [OTHER_ID]}),
        encode_value("PartitionRecord", {**REPLICA_ELSEWHERE, "topicId": ids(root)["orders-0"]}),
    )
    before = contents(root)
    for opened in (inspect, lambda path: adopt(path, seam=SEAM, now_ms=lambda: 0)):
        with pytest.raises(DataDirectoryError, match="has replicas in other directories or on other nodes"):
            opened(str(root))
    assert contents(root) == before


def test_what_is_not_of_one_directory_is_refused_before_anything_changes(root: Path) -> None:
    """No broker starts beside a second metadata log, of which an opening left an empty one in the second directory."""
    second = root.with_name("second")
    shutil.copytree(root, second)
    shutil.rmtree(second / "__cluster_metadata-0")
    topic_ids = ids(root)
    append_metadata(
        root,
        encode_value("RemoveTopicRecord", {"topicId": topic_ids["payments-0"]}),
        encode_value("PartitionRecord", {**REPLICA_ELSEWHERE, "topicId": topic_ids["orders-0"]}),
    )
    for path, words in ((root, "replicas in other directories"), (second, "metadata of their topics is not here")):
        before = contents(path)
        result = call("import", str(path))
        assert (result.exit_code, words in result.stderr) == (1, True)
        with pytest.raises(DataDirectoryError, match=words):
            open_store(path)
        assert contents(path) == before
    assert not (second / "__cluster_metadata-0").exists()


def test_a_brokers_directory_whose_controller_is_another_node_is_refused(root: Path) -> None:
    """After an opening, which led a quorum of its own, the broker could not register with its controller any more."""
    quorum = QuorumState(0, 3000, 1, -1, None, (3000,))
    (root / "__cluster_metadata-0" / "quorum-state").write_bytes(quorum_state_bytes(quorum))
    before = contents(root)
    with pytest.raises(DataDirectoryError, match="quorum of other nodes"):
        open_store(root)
    result = call("import", str(root), "--dry-run")
    assert (result.exit_code, "voters 3000, 1 in directory" in result.stderr) == (1, True)
    assert contents(root) == before


def test_a_file_in_the_place_of_a_partition_is_refused_in_the_dry_run_too(root: Path) -> None:
    shutil.rmtree(root / "orders-1")
    (root / "orders-1").touch()
    before = contents(root)
    results = [call("import", str(root), *words) for words in (["--dry-run"], [])]
    assert [result.exit_code for result in results] == [1, 1]
    assert results[0].stderr == results[1].stderr
    assert f"in the place of a partition's directory; at {root}/orders-1" in results[0].stderr
    assert contents(root) == before


def test_bootstrap_records_that_no_broker_reads_are_told(root: Path) -> None:
    """A broker reads them at each start, a store only for an empty metadata log."""
    (root / "bootstrap.checkpoint").write_bytes(b"\x01noise\xff")
    result = call("import", str(root), "--dry-run")
    assert (result.exit_code, "a broker does not start on it" in result.stdout) == (0, True)
    result = call("promote", str(root))
    assert (result.exit_code, "bootstrap.checkpoint: expected" in result.stderr) == (1, True)


def test_a_directory_that_is_not_the_voters_is_refused(tmp_path: Path) -> None:
    """No broker finds a leader there, and so it does not start."""
    open_store(tmp_path).close()
    properties = tmp_path / "meta.properties"
    properties.write_text(re.sub(r"directory\.id=.*", f"directory.id={OTHER_ID}", properties.read_text()))
    with pytest.raises(DataDirectoryError, match="quorum of other nodes or directories"):
        open_store(tmp_path)
    assert call("import", str(tmp_path), "--dry-run").exit_code == 1


def test_a_partition_that_an_old_level_may_have_in_another_directory_is_not_made(tmp_path: Path) -> None:
    """Below 3.7 no record has directories; beside an empty one and the partition no broker started."""
    root = formatted(tmp_path / "data", level("metadata.version", 14))
    with open_store(root) as store:
        store.create_topic("orders", 2)
    shutil.rmtree(root / "orders-1")
    before = contents(root)
    with pytest.raises(DataDirectoryError, match="in other directories") as caught:
        open_store(root)
    assert caught.value.found == "no directory of orders-1, though the broker was stopped in order"
    assert contents(root) == before
    (root / ".kafka_cleanshutdown").unlink()  # a crash may have come before the directory was made
    open_store(root).close()


@pytest.mark.parametrize("unassigned", ["AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ"])
def test_a_partition_that_is_not_assigned_yet_is_in_the_only_directory(root: Path, unassigned: str) -> None:
    """A snapshot has it where the level was raised to that of directories, and the broker was not started since."""
    here = {**REPLICA_ELSEWHERE, "replicas": [1], "isr": [1], "leader": 1, "directories": [unassigned]}
    append_metadata(root, encode_value("PartitionRecord", {**here, "topicId": ids(root)["orders-0"]}))
    with open_store(root) as store:
        assert store.topics["orders"].partition_count == 3
        assert values_of(store, "orders") == [b"paid"]
        known = store.directory._metadata.image.brokers[1]
    more = {**known.registration, "logDirs": [*known.directories, OTHER_ID]}
    append_metadata(root, encode_value("RegisterBrokerRecord", more))
    with pytest.raises(DataDirectoryError, match="has replicas in other directories"):
        open_store(root)


def test_bare_partitions_take_the_id_of_their_topic_or_a_new_one(root: Path) -> None:
    whole = ids(root)
    forget_owner(root)
    write_id(root / "orders-0", None)
    write_id(root / "payments-0", b"")
    result = call("promote", str(root))
    assert result.exit_code == 0, result.output
    assert ids(root)["orders-0"] == ids(root)["orders-1"] == whole["orders-1"]
    assert ids(root)["payments-0"] not in (None, whole["payments-0"])
    assert audit_directory(str(root), 0).findings == ()
    with open_store(root) as store:
        assert store.stray_directories == ()
        assert [values_of(store, *key) for key in (("orders", 0), ("payments", 0))] == [[b"paid"], [b"paid"]]


@pytest.mark.parametrize("has_metadata", [False, True], ids=["bare", "with a metadata log"])
def test_two_topics_of_one_id_are_refused(root: Path, has_metadata: bool) -> None:
    shutil.copytree(root / "orders-0", root / "copy-0")
    if has_metadata:
        (root / "meta.properties").unlink()
    else:
        forget_owner(root)
    before = contents(root)
    for opened in (inspect, lambda path: adopt(path, seam=SEAM, now_ms=lambda: 0)):
        with pytest.raises(InconsistentTopicIdError, match=r"Topics .*(orders and copy|copy and orders).* same id"):
            opened(str(root))
    assert contents(root) == before
    write_id(root / "copy-0", None)
    assert call("promote", str(root)).exit_code == 0
    assert ids(root)["copy-0"] not in (None, ids(root)["orders-0"])
    with open_store(root) as store:
        assert values_of(store, "copy") == values_of(store, "orders") == [b"paid"]


def test_a_name_that_no_topic_may_have_is_told_with_its_path(root: Path) -> None:
    forget_owner(root)
    (root / "a b-0").mkdir()
    with pytest.raises(InvalidTopicError, match="other than ASCII") as caught:
        inspect(str(root))
    assert caught.value.path == str(root / "a b-0")


def test_topics_of_a_deleted_id_are_not_made_again(root: Path) -> None:
    shutil.copytree(root / "payments-0", root.parent / "payments-0")
    with open_store(root) as store:
        store.delete_topic("payments")
    shutil.copytree(root.parent / "payments-0", root / "payments-0")
    (root / "meta.properties").unlink()
    assert "set payments-0 aside to be deleted, as its topic was" in inspect(str(root)).steps
    adopt(str(root), seam=SEAM, now_ms=lambda: 0)
    with open_store(root) as store:
        assert "payments" not in store.topics


def beside(root: Path) -> str:
    shutil.copytree(root / "orders-0", root / f"orders-0.{UNIQUE}-future")
    return f"orders-0.{UNIQUE}-future"


def twice(root: Path) -> str:
    (root / "orders-0").rename(root / f"orders-0.{UNIQUE}-future")
    shutil.copytree(root / f"orders-0.{UNIQUE}-future", root / f"orders-0.{UNIQUE[::-1]}-future")
    return f"orders-0.{UNIQUE[::-1]}-future"


def unreadable(root: Path) -> str:
    shutil.copytree(root / "orders-0", root / "unknown-0")
    write_id(root / "unknown-0", b"")
    return "unknown-0"


def unreadable_aside(root: Path) -> str:
    shutil.copytree(root / "orders-0", root / f"orders-0.{UNIQUE}-stray")
    write_id(root / f"orders-0.{UNIQUE}-stray", b"")
    return f"orders-0.{UNIQUE}-stray"


def foreign(root: Path) -> str:
    shutil.copytree(root / "orders-0", root / f"orders-0.{UNIQUE}-delete")
    (root / f"orders-0.{UNIQUE}-delete" / "first.log").write_bytes(b"")
    return "first.log"


@pytest.mark.parametrize("lay", [beside, twice, unreadable, unreadable_aside, foreign])
def test_a_directory_beside_which_no_broker_starts_is_named(root: Path, lay: Callable[[Path], str]) -> None:
    name, before = lay(root), contents(root)
    for args in (["promote", str(root)], ["promote", "--dry-run", str(root)]):
        refused = call(*args)
        assert (refused.exit_code, refused.stdout) == (1, "")
        assert "No broker starts on this directory" in refused.stderr
        assert name in refused.stderr
    assert contents(root) == before
    told = call("import", "--dry-run", str(root))
    assert (told.exit_code, name in told.output) == (0, True)
    with open_store(root) as store:  # which needs no more than its partitions
        assert values_of(store, "orders", 1) == [b"paid"]


def test_a_directory_that_was_moving_here_becomes_the_partition(root: Path) -> None:
    (root / "orders-0").rename(root / f"orders-0.{UNIQUE}-future")
    assert f"rename orders-0.{UNIQUE}-future to orders-0, as a broker does" in inspect(str(root)).steps
    assert call("promote", str(root)).exit_code == 0
    with open_store(root) as store:
        assert values_of(store, "orders", 0) == [b"paid"]
    (root / "orders-0").rename(root / f"orders-0.{UNIQUE}-future")
    forget_owner(root)
    assert call("promote", str(root)).exit_code == 0
    with open_store(root) as store:
        assert values_of(store, "orders", 0) == [b"paid"]


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_number_that_kafka_would_write_otherwise_is_refused(root: Path, is_alone: bool) -> None:
    shutil.copytree(root / "orders-0", root / "orders-00")
    if is_alone:
        shutil.rmtree(root / "orders-0")
    before = contents(root)
    for opened in (inspect, open_store):
        with pytest.raises(DataDirectoryError, match="expected orders-0, found orders-00"):
            opened(str(root))  # type: ignore[operator]
    assert contents(root) == before


def test_what_a_broker_does_with_other_directories_is_said(root: Path) -> None:
    for name in ("orders-7", "copy-0", f"orders-0.{UNIQUE}-delete", f"orders-0.{UNIQUE}-stray"):
        shutil.copytree(root / "orders-0", root / name)
    shutil.copytree(root / "orders-0", root / "payments-1")
    write_id(root / "orders-7", f"version: 0\ntopic_id: {OTHER_ID}".encode())
    write_id(root / "payments-1", None)
    for command in ("promote", "import"):
        output = call(command, "--dry-run", str(root)).output
        for text in (
            "orders-7 is unknown to the metadata: a broker sets it aside as -stray",
            "payments-1 is unknown to the metadata: a broker sets it aside as -stray",
            "copy-0 has the id of a topic of another name: a broker neither serves it nor sets it aside",
            f"orders-0.{UNIQUE}-delete is being deleted: a broker deletes it",
            f"orders-0.{UNIQUE}-stray was set aside: a broker leaves it there",
        ):
            assert text in output
    with open_store(root) as store:
        assert sorted(map(os.path.basename, store.stray_directories)) == ["copy-0", "orders-7", "payments-1"]
    assert (root / "copy-0").exists()


@pytest.mark.parametrize("name", ["recovery-point", "log-start", "replication", "cleaner"])
def test_a_checkpoint_that_does_not_parse_is_refused_as_by_a_broker(root: Path, name: str) -> None:
    path = root / f"{name}-offset-checkpoint"
    path.write_bytes(b"0\n9\nx\n")
    before = contents(root)
    with pytest.raises(CheckpointFormatError, match=r"Malformed line.*; no broker starts on it: put it back") as caught:
        open_store(root)
    assert (caught.value.path, contents(root)) == (str(path), before)
    path.write_bytes(b"")
    open_store(root).close()
    path.unlink()
    open_store(root).close()


@pytest.mark.parametrize("content", [b"", b"#\n#Thu Nov 26\n"])
def test_an_emptied_meta_properties_is_not_taken_for_one_of_zookeeper(root: Path, content: bytes) -> None:
    path = root / "meta.properties"
    path.write_bytes(content)
    for opened in (inspect, open_store):
        with pytest.raises(
            CheckpointFormatError, match=r"emptied or cut.*let `logstore promote` make another"
        ) as caught:
            opened(str(root))  # type: ignore[operator]
        assert caught.value.path == str(path)
    path.rename(root.parent / "aside")
    assert call("promote", str(root)).exit_code == 0
    with open_store(root) as store:
        assert sorted(store.topics) == ["__transaction_state", "orders", "payments"]


@pytest.mark.parametrize(
    ("verb", "place", "words"),
    [
        ("import", "", []),
        ("promote", "", []),
        ("features", "", ["upgrade", "--release-version", "4.4"]),
        ("recover", "t-0", []),
    ],
)
def test_a_dry_run_is_refused_while_the_directory_is_in_use(
    verb: str, place: str, words: list[str], tmp_path: Path
) -> None:
    with open_store(tmp_path, config=FEW_PARTITIONS) as store:
        store.create_topic("t")
        results = [call(verb, str(tmp_path / place), *words, *how) for how in (["--dry-run"], [])]
        store.create_topic("u")  # the store has its lock
        with pytest.raises(DataDirectoryError, match="Failed to acquire lock"):
            DataDirectoryLock(str(tmp_path))
    assert [result.exit_code for result in results] == [1, 1]
    assert all("Failed to acquire lock" in result.stderr for result in results)


def test_a_read_only_mount_is_told_as_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=os.ST_RDONLY))
    assert f"{root}: Read-only file system" in call("import", str(root)).stderr
