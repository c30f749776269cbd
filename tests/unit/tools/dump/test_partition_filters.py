"""`--isolation-level` and `--transactional-id`: what the partition and the coordinators around a log say."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from logstore.layout.file_names import parse_partition_directory
from logstore.model import FetchIsolation
from logstore.view.partition_reader import PartitionReader
from tests.conformance.dumping import answer
from tests.support.golden import Golden

LOG = "00000000000000000000.log"


def offsets_of(directory: Path, *options: str, kind: str = "text") -> list[int]:
    """The records that are dumped of a partition."""
    logs = ",".join(map(str, sorted(directory.glob("*.log"))))
    code, text, told = answer(["--files", logs, "--deep-iteration", "--format", kind, *options])
    pattern = r"^\| offset: (\d+)" if kind == "text" else r'"type":"record".*?"offset":(\d+)'
    offsets = [int(offset) for offset in re.findall(pattern, text, re.MULTILINE)]
    assert code == 0
    assert told == ("" if offsets or not logs else f"logstore: nothing passes {' '.join(options)}\n")
    return offsets


@pytest.mark.parametrize("isolation", [FetchIsolation.READ_COMMITTED, FetchIsolation.READ_UNCOMMITTED])
@pytest.mark.parametrize("name", ["demo", "transactions", "transactions-v1", "killed", "compacted", "legacy"])
def test_the_dump_of_an_isolation_level_has_the_records_of_a_consumer(
    name: str, isolation: FetchIsolation, golden: Golden
) -> None:
    count = 0
    for directory in sorted(path for path in golden(name).iterdir() if parse_partition_directory(path.name)):
        if not list(directory.glob("*.log")) or directory.name.startswith(("__", "broken-")):
            continue
        chunks = PartitionReader(str(directory)).records(isolation=isolation).chunks()
        expected = [int(offset) for chunk in chunks for offset in chunk.offset]
        assert offsets_of(directory, "--isolation-level", isolation.value) == expected
        assert offsets_of(directory, "--isolation-level", isolation.value, kind="json") == expected
        count += len(expected)
    assert count > 20


def test_a_transactional_id_is_the_producer_ids_that_it_has_and_had(golden: Golden) -> None:
    partition = golden("demo") / "orders-0"
    assert offsets_of(partition, "--transactional-id", "left-open") == [34, 35]
    assert offsets_of(partition, "--transactional-id", "left-open", "--isolation-level", "read_committed") == []
    assert offsets_of(partition, "--producer-id", "3", "--transactional-id", "left-open") == []
    assert offsets_of(partition, "--transactional-id", "kopierer-ü") == offsets_of(partition, "--producer-id", "3")


def test_unknown_transactional_ids_and_places_without_a_topic_are_refused(golden: Golden, tmp_path: Path) -> None:
    log = golden("demo") / "orders-0" / LOG
    code, _, told = answer(["--files", str(log), "--transactional-id", "nobody"])
    assert (code, "expected one of billing-1, kopierer-ü, left-open" in told) == (2, True)
    (tmp_path / "copy").mkdir()
    shutil.copyfile(log, tmp_path / "copy" / LOG)
    code, _, told = answer(["--files", str(tmp_path / "copy" / LOG), "--transactional-id", "left-open"])
    assert (code, "expected partitions of __transaction_state" in told) == (2, True)
    code, _, told = answer(["--files", str(tmp_path / "copy" / LOG), "--isolation-level", "read_committed"])
    assert (code, "expected a directory with a name such as orders-0" in told) == (2, True)
    assert answer(["--files", str(log), "--isolation-level", "committed"])[0] == 2
