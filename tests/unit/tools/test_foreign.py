"""Partitions and data directories that are foreign, or lie where none is expected."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore.errors import LogstoreError
from logstore_tools.commands import logstore as command
from tests.support.odd_logs import FOREIGN, PASSED_OVER

READERS = (
    "verify",
    "audit",
    "segments",
    "topics",
    "dump",
    "producers",
    "txns list",
    "diff",
    "sample",
    "salvage",
    "repair",
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory with three records, closed cleanly."""
    root = tmp_path / "data"
    with logstore.open(str(root)) as store:
        store.create_topic("orders")
        producer = store.producer()
        for _ in range(3):
            producer.send("orders", b"v").get()
        producer.close()
    return root


def words_of(verb: str, data: Path) -> list[str]:
    partition = str(data / "orders-0")
    match verb:
        case "audit" | "topics" | "txns list":
            return [*verb.split(), str(data)]
        case "diff":
            return ["diff", partition, partition]
        case "sample" | "salvage" | "repair":
            return [verb, partition, str(data.parent / f"new {verb}")]
        case _:
            return [verb, partition]


@pytest.mark.parametrize("name", FOREIGN)
def test_readers_name_a_foreign_file_and_go_on(name: str, data: Path) -> None:
    silent = {verb: CliRunner().invoke(command, words_of(verb, data)).stdout for verb in READERS[:8]}
    foreign = data / "orders-0" / name
    foreign.write_bytes(b"foreign")
    for verb in READERS:
        told = CliRunner().invoke(command, words_of(verb, data))
        assert isinstance(told.exception, SystemExit | None), (verb, told.exception)
        assert verb == "topics" or name in told.output, (verb, told.output)
        if verb in ("segments", "dump", "diff", "producers"):
            assert silent[verb].splitlines()[-1] in told.stdout, verb
        if verb in ("sample", "salvage", "repair"):
            assert (data.parent / f"new {verb}" / "orders-0" / f"{0:020d}.log").stat().st_size


@pytest.mark.parametrize("name", FOREIGN)
def test_writers_name_a_foreign_file_and_stop(name: str, data: Path) -> None:
    foreign = data / "orders-0" / name
    foreign.write_bytes(b"foreign")
    with pytest.raises(LogstoreError) as raised:
        logstore.open(str(data)).consumer("orders")
    assert str(raised.value.path) == str(foreign)
    assert "move the file out" in str(raised.value)
    told = CliRunner().invoke(command, ["recover", str(data / "orders-0"), "--unclean"])
    assert (told.exit_code != 0, str(foreign) in told.output) == (True, True), told.output
    assert foreign.read_bytes() == b"foreign"


@pytest.mark.parametrize("name", PASSED_OVER)
def test_files_that_a_broker_passes_over_stop_nobody(name: str, data: Path) -> None:
    (data / "orders-0" / name).write_bytes(b"foreign")
    told = CliRunner().invoke(command, ["recover", str(data / "orders-0"), "--unclean"])
    assert told.exit_code == 0, told.output
    with logstore.open(str(data)) as store:
        assert store.log("orders", 0).log_end_offset == 3
    for verb in READERS:
        told = CliRunner().invoke(command, words_of(verb, data))
        assert told.exit_code in (0, 1), (verb, told.output)
        assert isinstance(told.exception, SystemExit | None), (verb, told.exception)


@pytest.mark.parametrize("name", [f"{0:020d}.log.gz", f"{0:020d}.LOG", f"{0:020d}.log.zst"])
def test_a_partition_whose_logs_were_packed_is_not_told_as_empty(name: str, data: Path) -> None:
    """Backups pack and rename files; a broker that starts beside them begins the partition anew."""
    (data / "orders-0" / f"{0:020d}.log").rename(data / "orders-0" / name)
    for verb in READERS:
        told = CliRunner().invoke(command, words_of(verb, data))
        assert (told.exit_code in (1, 3), name in told.output) == (True, True), (verb, told.output)
    for words in (["groups", data], ["txns", "explain", data / "orders-0"], ["promote", data, "--dry-run"]):
        told = CliRunner().invoke(command, list(map(str, words)))
        assert (told.exit_code in (1, 3), name in told.output) == (True, True), (words, told.output)
    told = CliRunner().invoke(command, ["import", str(data), "--dry-run"])
    assert f"{name} is not read: the partition would begin empty" in told.output


FILES = (
    "fstab",
    "hosts",
    "apt/sources.list",
    "dbus-1/system.conf",
    "dbus-1/session.d/one.conf",
    "python-3/debian_config",
)
VERBS = ("verify", "audit", "topics", "groups", "segments", "producers", "txns list", "report -o page.html", "promote")


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """A directory such as `/etc`: files, links that lead out, and directories, of which some end in a number."""
    root = tmp_path / "etc"
    for name in FILES:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x")
    (tmp_path / "zone").write_text("x")
    (root / "localtime").symlink_to(tmp_path / "zone")
    (root / "gtk-2").mkdir()
    return root


@pytest.mark.parametrize("verb", VERBS)
def test_a_directory_of_the_system_is_refused_in_one_line(
    verb: str, foreign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    told = CliRunner().invoke(command, [*verb.split(), str(foreign)], catch_exceptions=False)
    _, _, error = told.stderr.partition("Error: ")
    expected = f"This is not a Kafka data directory: no meta.properties, no partition; at {foreign}\n"
    assert (told.exit_code, told.stdout, error) == (2, "", expected)
    assert sorted(tmp_path.rglob("*")) == before


def test_one_file_of_kafkas_makes_it_a_data_directory(foreign: Path) -> None:
    """What is not Kafka's in it is found then."""
    (foreign / "dbus-1" / f"{0:020d}.log").touch()
    told = CliRunner().invoke(command, ["verify", str(foreign)], catch_exceptions=False)
    assert (told.exit_code, "directory-entry" in told.stdout) == (1, True), told.output
