"""Files, directories and globs on the command line: which files they mean, in which order, and what is left out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from logstore.errors import DataDirectoryError
from logstore_tools import paths as sources
from logstore_tools.paths import Note, dump_files
from tests.conformance.dumping import answer
from tests.support.encoder import Batch, Rec
from tests.support.golden import Golden

SEGMENT = ("00000000000000000000.log", "00000000000000000000.index", "00000000000000000000.timeindex")
LATER = tuple(name.replace("0.", "9.") for name in SEGMENT)
SNAPSHOTS = ("00000000000000000009.snapshot", "00000000000000000012.snapshot")
OTHERS = ("leader-epoch-checkpoint", "partition.metadata", "00000000000000000000.log.deleted", "notes.txt")


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "place").mkdir()
    monkeypatch.chdir(tmp_path / "place")


def make(directory: str, names: Sequence[str] = SEGMENT) -> None:
    Path(directory).mkdir(parents=True)
    for name in names:
        (Path(directory) / name).write_bytes(b"")


def found(*words: str) -> tuple[list[str], list[str]]:
    notes: list[str] = []
    return dump_files(list(words), lambda error: notes.append(str(error))), notes


def below(directory: str, *names: str) -> list[str]:
    return [f"{directory}/{name}" for name in names]


def test_files_stay_as_they_are_named() -> None:
    assert found("b.log", "missing/a.index", "b.log", "-", "") == (["b.log", "missing/a.index", "b.log", "-", ""], [])


@pytest.mark.parametrize("options", [[], ["--records"], ["--records", "--format", "json"], ["--key=k"]], ids=" ".join)
def test_a_topic_for_a_partition_is_refused_with_its_name(options: list[str]) -> None:
    make("data/orders-0")
    told = "expected a file, a partition or a data directory, found nothing; did you mean data/orders-0?\n"
    found = answer([*options, "data/orders-0", "data/orders"])
    assert found == (2, "", f"logstore: There is no such file or directory; at data/orders; {told}")
    assert answer(["--files", "data/orders"])[0] == 0  # as Kafka's tool


def test_a_dump_of_nothing_is_not_fine() -> None:
    Path("0.log.gz").write_bytes(b"packed")
    assert answer(["0.log.gz"]) == (3, "Dumping 0.log.gz\n", "Ignoring unknown file 0.log.gz\n")
    assert answer(["--files", "0.log.gz"])[0] == 0  # as Kafka's tool
    make("orders-0", SNAPSHOTS)
    told = "logstore: there are records in logs alone, and none is named\n"
    assert answer(["--records", "orders-0"]) == (3, "", told)


def test_a_partition_is_its_segments_by_offset_then_its_snapshots() -> None:
    make("orders-0", [*reversed(SNAPSHOTS), *LATER, *reversed(SEGMENT), *OTHERS])
    expected = [*SEGMENT, *LATER, *SNAPSHOTS]
    assert found("orders-0") == (below("orders-0", *expected), [])
    assert found("./orders-0/") == (below("./orders-0", *expected), [])
    os.chdir("orders-0")
    assert found(".") == (below(".", *expected), [])


def test_segments_in_any_other_directory_count_too() -> None:
    names = ["00000000000000000007-0000000002.checkpoint", "00000000000000000010-0000000002.checkpoint"]
    make(
        "backup", [*reversed(SNAPSHOTS), *reversed(names), *LATER, *reversed(SEGMENT), *OTHERS, "server.log", "x.index"]
    )
    assert found("backup") == (below("backup", *SEGMENT, *LATER, *names, *SNAPSHOTS), [])


@pytest.mark.parametrize("directory", ["orders-0", "backup"])
def test_an_index_without_its_log_is_left_out(directory: str) -> None:
    make(directory, [*SEGMENT, *LATER[1:]])
    assert found(directory) == (below(directory, *SEGMENT), [])


@pytest.mark.parametrize("directory", ["data", "kafka-1"])
def test_a_data_directory_is_its_partitions_by_name(directory: str) -> None:
    for partition in ("b-0", "a-1", "a-0", "__cluster_metadata-0"):
        make(f"{directory}/{partition}")
    for name in ("bootstrap.checkpoint", "meta.properties", "recovery-point-offset-checkpoint"):
        (Path(directory) / name).write_bytes(b"")
    partitions = [f"{directory}/{name}" for name in ("__cluster_metadata-0", "a-0", "a-1", "b-0")]
    expected = [f"{directory}/bootstrap.checkpoint", *(path for each in partitions for path in below(each, *SEGMENT))]
    assert found(directory) == (expected, [])


def test_directories_that_are_no_partitions_are_left_out_and_told() -> None:
    make("data/a-0")
    make("data/a-0/nested-0")
    make("data/lost+found", ["x.log"])
    paths, notes = found("data")
    assert paths == below("data/a-0", *SEGMENT)
    assert len(notes) == 1
    assert "'lost+found' is not in the form of topic-partition" in notes[0]
    rc, _, stderr = answer(["data"])
    assert rc == 3  # it did not look at all of it
    assert stderr.startswith("logstore: Found directory ")
    assert stderr.count("\n") == 1


@pytest.mark.parametrize("words", [["data"], ["data/*"], ["data/**/*.log"], ["data/a-0"]])
def test_links_that_lead_out_are_not_followed(words: list[str]) -> None:
    make("data/a-0")
    make("elsewhere/b-0")
    Path("data/b-0").symlink_to(Path("elsewhere/b-0").absolute())
    Path("data/a-0/00000000000000000005.log").symlink_to(Path("elsewhere/b-0/00000000000000000000.log").absolute())
    paths, notes = found(*words)
    assert paths == (below("data/a-0", *SEGMENT) if "**" not in words[0] else below("data/a-0", SEGMENT[0]))
    assert notes
    assert all("is not followed" in note for note in notes)
    assert answer(words)[0] == 3


def test_links_that_stay_inside_are_followed() -> None:
    make("data/a-0")
    Path("data/b-0").symlink_to("a-0")
    Path("link").symlink_to("data")
    expected = [*below("link/a-0", *SEGMENT), *below("link/b-0", *SEGMENT)]
    assert found("link") == found("link/*") == (expected, [])


def test_globs_are_in_the_order_of_names_and_expand_directories() -> None:
    make("data/a-0", [*SEGMENT, *OTHERS])
    make("data/a-1")
    make("data/.hidden", SEGMENT)
    assert found("data/a-*") == ([*below("data/a-0", *SEGMENT), *below("data/a-1", *SEGMENT)], [])
    assert found("data/a-?/*.log") == (["data/a-0/" + SEGMENT[0], "data/a-1/" + SEGMENT[0]], [])
    assert found("data/a-[!0]/*index") == (below("data/a-1", *SEGMENT[1:]), [])
    assert found("data/**/*.log") == found("**/*.log") == found("data/a-?/*.log")
    assert found("data/**/.hidden/*.log") == (["data/.hidden/" + SEGMENT[0]], [])
    assert found(str(Path("data/a-1").absolute()) + "/*.log") == ([str(Path("data/a-1").absolute() / SEGMENT[0])], [])


@pytest.mark.parametrize("pattern", ["**", "**/*", "*"])
def test_a_file_that_a_glob_finds_twice_is_dumped_once(pattern: str) -> None:
    make("a-0")
    make("a-1")
    assert found(pattern) == ([*below("a-0", *SEGMENT), *below("a-1", *SEGMENT)], [])


def test_loops_of_links_end() -> None:
    make("a-0")
    for name in ("one", "two", "three"):
        Path(f"a-0/{name}").symlink_to(".")
    Path("self").symlink_to("self")
    paths, _ = found("**/*.log")
    assert paths == ["a-0/" + SEGMENT[0]]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file() -> None:
    make("d", ["[0].log", "0.log"])
    assert found("d/[0].log") == (["d/[0].log"], [])


@pytest.mark.parametrize("word", ["nothing/*.log", "*.log", "**/*.log", "[", "a**b/*", "empty/*"])
def test_a_pattern_without_a_match_is_an_error(word: str) -> None:
    Path("empty").mkdir()
    with pytest.raises(DataDirectoryError, match="No file matches"):
        found(word)
    rc, stdout, stderr = answer([word])
    assert (rc, stdout) == (1, "")
    assert stderr == f"logstore: No file matches; at {word}; quote the pattern so that the shell leaves it alone\n"


@pytest.mark.parametrize("directory", ["orders-0", "data", "backup"])
def test_a_directory_with_nothing_to_dump_is_an_error(directory: str) -> None:
    make(directory, OTHERS)
    rc, stdout, stderr = answer([directory])
    assert (rc, stdout) == (1, "")
    assert stderr.startswith(f"logstore: There is nothing to dump in the directory; at {directory}; ")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="everything can be read")
def test_directories_that_cannot_be_read_are_told() -> None:
    make("data/a-0")
    make("data/b-0")
    Path("data/b-0").chmod(0)
    try:
        paths, notes = found("data")
        with pytest.raises(DataDirectoryError):
            found("data/b-0")
    finally:
        Path("data/b-0").chmod(0o755)
    assert paths == below("data/a-0", *SEGMENT)
    assert len(notes) == 1


@pytest.mark.parametrize("options", [[], ["--format", "json"], ["--records"]], ids=" ".join)
def test_files_that_are_deleted_after_the_listing_are_told_and_passed_over(
    options: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_and_delete(words: Sequence[str], note: Note) -> list[str]:
        files = dump_files(words, note)
        for name in SEGMENT:
            Path("orders-0", name).unlink(missing_ok=True)
        return files

    monkeypatch.setattr(sources, "dump_files", list_and_delete)
    make("orders-0", [*SEGMENT, LATER[0]])
    Path("orders-0", LATER[0]).write_bytes(Batch(10, [Rec()]).to_bytes())
    rc, stdout, stderr = answer(["--deep-iteration", *options, "orders-0"])
    assert (rc, "10" in stdout) == (3, True)
    assert stderr.startswith(f"logstore: The file was deleted before it was dumped; at orders-0/{SEGMENT[0]}\n")
    assert answer([f"orders-0/{SEGMENT[0]}"])[0] == 1  # what is named is asked for


def test_files_beside_words_ignores_the_words_as_kafkas_tool_does(golden: Golden) -> None:
    make("orders-0", SEGMENT)
    assert answer(["orders-0", "--files", "x.unknown", "no/*"])[1:] == (
        "Dumping x.unknown\n",
        "Ignoring unknown file x.unknown\n",
    )


def test_a_whole_data_directory_is_dumped(golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden("demo"))
    rc, stdout, _ = answer(["."])
    dumped = [line.removeprefix("Dumping ./") for line in stdout.split("\n") if line.startswith("Dumping ")]
    expected = {
        str(path.relative_to(golden("demo")))
        for path in golden("demo").rglob("*.*")
        if path.suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".checkpoint")
    }
    assert rc == 0
    assert set(dumped) == expected
    assert len(dumped) == len(expected)
    names = dict.fromkeys(Path(path).parent.name for path in dumped)
    assert list(names) == sorted(names)
