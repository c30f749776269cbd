"""What opening a log that was closed in order asks of the system: its directory once, and each of its files once."""

from __future__ import annotations

import os
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from logstore.errors import LogstoreError
from logstore.layout.file_names import LOG_SUFFIX
from logstore.log.partition_log import PartitionLog
from tests.support.logs import open_partition_log, records_of
from tests.support.seams import ListeningSeam

TOPIC_ID = "Zzsa1rsoQAqDc5QNzy3jmA"


def opened(path: Path) -> PartitionLog:
    return open_partition_log(path, {"index.interval.bytes": "100"}, topic_id=TOPIC_ID)


def test_nothing_is_listed_or_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t-0"
    log = opened(path)
    for number in range(40):
        log.append_records([b"v" * 100], producer_id=7, producer_epoch=0, base_sequence=number)
        if number in (9, 19, 29):
            log.roll()
    log.close()

    asked: Counter[str] = Counter()
    for name in ("open", "scandir"):
        monkeypatch.setattr(os, name, counting(getattr(os, name), asked, path))
    log = opened(path)
    assert log.log_end_offset == 40

    last = f"{log.state.segments.base_offsets[-1]:020d}{LOG_SUFFIX}"
    assert asked.pop(last) == 1  # its last headers are read
    assert asked.pop(".") == 1
    assert asked, "the indexes"
    assert set(asked.values()) == {1}
    log.close()


@pytest.mark.parametrize("is_torn", [False, True])
def test_an_index_that_leads_to_no_batch_cuts_none_that_is_whole(tmp_path: Path, is_torn: bool) -> None:
    path = tmp_path / "t-0"
    log = opened(path)
    ends = []
    for _ in range(4):
        log.append_records([b"v" * 100])
        ends.append(log.state.active.size)
    log.close()
    file, index = path / f"{0:020}.log", path / f"{0:020}.index"
    whole = file.read_bytes()
    if is_torn:  # within the batch that the last entry leads to
        file.write_bytes(whole[:-1])
    else:
        index.write_bytes(index.read_bytes()[:-8] + struct.pack(">ii", 3, len(whole)))
    count = 3 if is_torn else 4

    log = opened(path)
    assert log.log_end_offset == count
    assert file.read_bytes() == whole[: ends[count - 1]]
    assert log.append_records([b"next"]).first_offset == count
    log.close()
    log = opened(path)
    found = [record.value for record in records_of(log)]
    assert found == [b"v" * 100] * count + [b"next"]
    log.close()


def test_batches_below_the_base_offset_are_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    log = opened(path)
    log.append_records([b"v"] * 3)
    log.close()
    whole = (path / f"{0:020}.log").read_bytes()
    (path / f"{0:020}.log").rename(path / f"{10:020}.log")
    for name in path.glob(f"{0:020}.*"):
        name.unlink()
    for kind in ("index", "timeindex"):
        (path / f"{10:020}.{kind}").touch()
    with pytest.raises(LogstoreError):
        opened(path)
    assert (path / f"{10:020}.log").read_bytes() == whole


def counting(function: Any, asked: Counter[str], directory: Path) -> Any:
    def counted(path: Any, *arguments: Any, **keywords: Any) -> Any:
        asked[os.path.relpath(path, directory)] += 1
        return function(path, *arguments, **keywords)

    return counted


def test_a_new_partition_syncs_its_metadata_and_each_directory_once(tmp_path: Path) -> None:
    """Of files that are empty only the names have to be there."""
    seam = ListeningSeam()
    log = open_partition_log(tmp_path / "t-0", seam=seam, topic_id=TOPIC_ID)
    synced = [call for call in seam.calls if call.startswith("sync")]
    assert synced == [f"sync directory {tmp_path.name}", "sync", "sync directory t-0"]
    log.close()
