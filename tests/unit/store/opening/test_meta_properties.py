"""Whose a directory is: what `meta.properties` may say, and what is done about one that says something else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import logstore
from logstore.errors import CheckpointFormatError, DataDirectoryError, LogstoreError, UsageError
from logstore.layout.java_properties import escaped_value, parse_properties
from tests.support.stores import contents

DIRECTORY_ID = "wpbL9QuzSw6JQCrXAbQsfg"
WHOLE = {"version": "1", "cluster.id": "c", "node.id": "1", "directory.id": DIRECTORY_ID}


@pytest.mark.parametrize("cluster_id", ["", 7, b"abc"])
def test_a_bad_cluster_id_is_refused_before_anything_is_made(tmp_path: Path, cluster_id: str) -> None:
    with pytest.raises(UsageError, match="A cluster id is text, and not empty"):
        logstore.open(tmp_path / "data", cluster_id=cluster_id)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("cluster_id", ["test", " a=b #c:!\\ é\n\t😀\x00 ", "bG9nc3RvcmUtZ29sZGVuLQ"])
def test_any_text_is_a_cluster_id_as_for_kafka(tmp_path: Path, cluster_id: str) -> None:
    for _ in range(2):
        with logstore.open(tmp_path, cluster_id=cluster_id) as store:
            assert store.cluster_id == cluster_id


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"cluster.id": None}, CheckpointFormatError, "cluster.id was not found."),
        ({"node.id": None}, CheckpointFormatError, "Failed to find node.id"),
        ({"node.id": "one"}, CheckpointFormatError, "Unable to read node.id as a base-10 number."),
        ({"version": "2"}, CheckpointFormatError, "Unknown meta.properties version number 2"),
        ({"version": "one"}, CheckpointFormatError, "Invalid meta.properties version string 'one'"),
        ({"directory.id": "x"}, CheckpointFormatError, "Unable to read directory.id as a Uuid: "),
        (
            {"directory.id": "AAAAAAAAAAAAAAAAAAAAAQ"},
            DataDirectoryError,
            "Invalid resrved directory ID AAAAAAAAAAAAAAAA",
        ),
    ],
)
def test_a_file_that_tells_less_or_else_is_named_with_what_to_do(
    tmp_path: Path, change: dict[str, str | None], error: type[LogstoreError], text: str
) -> None:
    logstore.open(tmp_path).close()
    file = tmp_path / "meta.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in {**WHOLE, **change}.items() if value is not None))
    before = contents(tmp_path)
    with pytest.raises(error) as caught:
        logstore.open(tmp_path)
    assert contents(tmp_path) == before
    assert str(caught.value).startswith(text)
    assert caught.value.path == str(file)
    assert "logstore promote" in str(caught.value)


def test_values_are_escaped_as_java_does_it() -> None:
    text = " a=b #c:!\\ é\n\t😀\x00 "
    assert escaped_value(text) == r"\ a\=b \#c\:\!\\ \u00E9\n\t\uD83D\uDE00\u0000 "  # by `Properties.store` of Java 17
    assert parse_properties(f"k={escaped_value(text)}".encode()) == {"k": text}
