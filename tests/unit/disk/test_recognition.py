"""What a directory is taken for: a partition, a data directory, or neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.disk.directory import list_data_directory
from logstore.disk.recognition import is_partition, names_partition, require_data_directory, require_kafka
from logstore.errors import DataDirectoryError, LogstoreError, UsageError
from spark_dumps.directories import find_partitions
from spark_dumps.options import TopicChoice

LOG = f"{0:020d}.log"
PARTITIONS = {
    "orders-0": ["orders-0/"],
    "segments": ["orders-0/" + LOG],
    "beside a directory": ["orders-0/" + LOG, "orders-0/lost+found/"],
    "metadata": ["__cluster_metadata-0/" + LOG, "__cluster_metadata-0/quorum-state"],
}
DATA_DIRECTORIES = {
    "identity": ["data/meta.properties"],
    "partition": ["data/orders-0/"],
    "a partition's name": ["kafka-1/meta.properties", "kafka-1/orders-0/" + LOG],
    "a partition's name and no file": ["kafka-1/orders-0/" + LOG],
    "beside something else": ["data/orders-0/" + LOG, "data/lost+found/"],
    "left-overs of a log": [f"data/orders-0/{LOG}.swap"],
    "beside a broker's own logs": [
        "logs/meta.properties",
        "logs/orders-0/" + LOG,
        "logs/server.log",
        "logs/kafka-gc.log",
    ],
    "beside a broker's own logs, without its files": ["logs/orders-0/" + LOG, "logs/server.log"],
}
NEITHER = {
    "empty": ["data/"],
    "a file": ["data/notes.txt"],
    "a program's log": ["data/server.log"],
    "data directories of brokers": [f"data/kafka-1/{name}" for name in ("meta.properties", "orders-0/" + LOG)],
    "directories with those of brokers": ["data/broker-1/logs/meta.properties", "data/broker-1/logs/orders-0/" + LOG],
    "a volume of Strimzi": [f"data-0/kafka-log0/{name}" for name in ("meta.properties", "orders-0/" + LOG)],
    "a volume around one of a container": [f"disk-1/kafka-0/{name}" for name in ("meta.properties", "orders-0/" + LOG)],
    "of the system": ["data/dbus-1/system.conf", "data/hosts", "data/apt/sources.list"],
    "one directory that ends in -1": ["data/dbus-1/system.conf", "data/fstab"],
}


def made(root: Path, names: list[str]) -> Path:
    """The directory of the first name, with all of them in it."""
    for name in names:
        path = root / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.touch()
    return root / names[0].partition("/")[0]


def spark_finds(path: Path) -> bool:
    """Whether Spark takes the path for a partition: it looks for its name alone."""
    found = find_partitions([str(path)], TopicChoice(is_everything=True), is_strict=False)
    return [one.files.path for one in found.listed] == [str(path)]


@pytest.mark.parametrize("case", PARTITIONS)
def test_partitions(case: str, tmp_path: Path) -> None:
    path = made(tmp_path, PARTITIONS[case])
    assert is_partition(list_data_directory(str(path)))
    assert names_partition(str(path))
    assert spark_finds(path)
    with pytest.raises(UsageError, match=f"This is a partition, not a data directory.*did you mean {tmp_path}"):
        require_data_directory(str(path))


@pytest.mark.parametrize("case", DATA_DIRECTORIES)
def test_data_directories(case: str, tmp_path: Path) -> None:
    path = made(tmp_path, DATA_DIRECTORIES[case])
    assert not is_partition(list_data_directory(str(path)))
    assert not names_partition(str(path))
    assert not spark_finds(path)
    require_data_directory(str(path))


def test_no_partition_is_listed_beside_files_of_a_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logstore.disk.recognition.list_data_directory", pytest.fail)
    assert not names_partition(str(made(tmp_path, DATA_DIRECTORIES["a partition's name"])))
    for name in ("data/meta.properties/", f"segments/{LOG}"):
        path = made(tmp_path, [name, f"{Path(name).parts[0]}/cleaner-offset-checkpoint/"])
        with pytest.raises(pytest.fail.Exception):
            names_partition(str(path))


@pytest.mark.parametrize("case", NEITHER)
def test_what_is_neither_is_refused_in_the_same_words_everywhere(case: str, tmp_path: Path) -> None:
    path = made(tmp_path, NEITHER[case])
    assert not is_partition(list_data_directory(str(path)))
    told = set()
    for ask in (
        lambda: require_kafka(list_data_directory(str(path))),
        lambda: require_data_directory(str(path)),
        lambda: names_partition(str(path)),
        lambda: spark_finds(path),
    ):
        with pytest.raises(UsageError, match="This is not a Kafka data directory") as raised:
            ask()
        told.add(str(raised.value))
    assert len(told) == 1


def test_a_partition_that_is_linked_from_elsewhere_is_not_followed(tmp_path: Path) -> None:
    target = made(tmp_path / "elsewhere", PARTITIONS["segments"])
    link = made(tmp_path, ["data/meta.properties"]) / "orders-0"
    link.symlink_to(target)
    told = set()
    for ask in (lambda: is_partition(list_data_directory(str(link))), lambda: spark_finds(link)):
        with pytest.raises(DataDirectoryError, match=r"not followed.*name what it leads to") as raised:
            ask()
        told.add(str(raised.value))
    assert len(told) == 1


def test_segments_in_a_directory_of_another_name_are_a_partition_without_a_name(tmp_path: Path) -> None:
    path = made(tmp_path, ["copy/" + LOG])
    assert is_partition(list_data_directory(str(path)))
    with pytest.raises(LogstoreError, match=r"(?s)not in the form of.*give the directory of a copy the name"):
        spark_finds(path)
