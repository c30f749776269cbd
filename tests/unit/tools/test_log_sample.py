"""A sample has the shape of what it was taken of, and redacted none of its content."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from logstore.audit.partition import open_partition
from logstore.audit.verify import verify_partition
from logstore.columns.batch_table import scan
from logstore.columns.record_table import BatchRecords
from logstore.config.topic import parse_config
from logstore.errors import DataDirectoryError, UsageError
from logstore.layout.batch import CODEC_MASK
from logstore.log.load.loader import LoadSettings
from logstore_tools.copy_commands import sample as command
from logstore_tools.salvage.sample import Redaction, sample
from tests.support.encoder import SOME_TIME
from tests.support.golden import Golden
from tests.support.odd_logs import batch, hurt, lay_out
from tests.support.odd_logs import message as message_of

SETTINGS = LoadSettings(False, 0, 0, SOME_TIME, parse_config({}))
Shape = tuple[int, int, int, int | None, int | None, tuple[bytes, ...]]


def records_of(directory: Path) -> list[tuple[Shape, list[bytes]]]:
    """Of each record what stays, and what does not."""
    found = []
    for log in sorted(directory.glob("*.log")):
        data = np.fromfile(log, np.uint8)
        table = scan(data)
        for row in range(len(table)):
            for chunk in BatchRecords(data, table, row).chunks():
                for index in range(len(chunk)):
                    key, value, headers = chunk.key(index), chunk.value(index), chunk.headers(index)
                    sizes = [None if part is None else len(part) for part in (key, value)]
                    shape = (int(chunk.offset[index]), int(chunk.timestamp[index]), int(chunk.sequence[index]))
                    names = tuple(name for name, _ in headers)
                    content = [part for part in (key, value, *(part for _, part in headers)) if part]
                    is_control = bool(int(table.attributes[row]) & 0x20)
                    found.append(((*shape, *sizes, names), [] if is_control else content))
    return found


@pytest.mark.parametrize("partition", ["orders-0", "payments-0"])
def test_redacted_records_keep_their_shape_and_nothing_else(golden: Golden, tmp_path: Path, partition: str) -> None:
    source = golden("demo") / partition
    copy = tmp_path / partition
    taken = sample(str(source), str(copy), SETTINGS, first_offset=0, batch_count=1000, redaction=Redaction(b"secret"))
    assert taken.skipped_count == 0
    before, after = records_of(source), records_of(copy)
    assert [shape for shape, _ in before] == [shape for shape, _ in after]
    assert all(old != new for (_, a), (_, b) in zip(before, after, strict=True) for old, new in zip(a, b, strict=True))
    pairs = {(old, new) for (_, a), (_, b) in zip(before, after, strict=True) for old, new in zip(a, b, strict=True)}
    assert len(pairs) == len({old for old, _ in pairs}) > 10  # what was equal is equal still
    assert verify_partition(open_partition(str(copy))).findings == ()


def test_a_compressed_batch_is_redacted_too(golden: Golden, tmp_path: Path) -> None:
    source = golden("demo") / "orders-0"
    codecs = scan(np.fromfile(next(source.glob("*.log")), np.uint8)).attributes & CODEC_MASK
    assert (codecs > 0).sum() > 1
    sample(str(source), str(tmp_path / "orders-0"), SETTINGS, first_offset=0, batch_count=99, redaction=Redaction(b"s"))
    written = scan(np.fromfile(next((tmp_path / "orders-0").glob("*.log")), np.uint8), check_crc=True)
    assert not (written.attributes & CODEC_MASK).any()
    assert written.is_valid.all()


def test_a_sample_begins_at_an_offset_and_ends_after_some_batches(golden: Golden, tmp_path: Path) -> None:
    source = golden("transactions") / "rolled-0"
    copy = tmp_path / "rolled-0"
    taken = sample(str(source), str(copy), SETTINGS, first_offset=36, batch_count=3)
    assert (taken.batch_count, taken.log.log_start_offset) == (3, 36)
    inside = [shape for shape, _ in records_of(copy)]
    assert inside == [shape for shape, _ in records_of(source)][36 : 36 + len(inside)]


def test_samples_of_internal_topics_and_under_bad_names_are_refused(golden: Golden, tmp_path: Path) -> None:
    demo = golden("demo")
    for source, name, redaction, message in (
        ("orders-0", "other-0", None, "name"),
        ("__transaction_state-0", "__transaction_state-0", Redaction(b"s"), "internal"),
    ):
        with pytest.raises(UsageError, match=message):
            sample(
                str(demo / source),
                str(tmp_path / name),
                SETTINGS,
                first_offset=0,
                batch_count=1,
                redaction=redaction,
            )
    with pytest.raises(DataDirectoryError, match="no segment"):
        sample(str(demo / "orders-0"), str(tmp_path / "orders-0"), SETTINGS, first_offset=-5, batch_count=1)
    assert list(tmp_path.iterdir()) == []


def test_the_command_samples_with_a_secret_of_its_own(golden: Golden, tmp_path: Path) -> None:
    contents = []
    for number in ("1", "2"):
        (tmp_path / number).mkdir()
        copy = tmp_path / number / "orders-0"
        result = CliRunner().invoke(
            command, [str(golden("demo") / "orders-0"), str(copy), "--redact", "--batches", "5"]
        )
        assert result.exit_code == 0
        assert "5 batches" in result.output
        contents.append([content for _, content in records_of(copy)])
    assert contents[0] != contents[1]


def test_a_sample_begins_where_something_is(tmp_path: Path) -> None:
    """Above the log's end and in a hole too; of offsets and magics that one segment may hold."""
    log = {0: message_of(0, 1) + batch(1) + batch(4, 3, last_offset_delta=0), 20: batch(30) + batch(2**31 + 40)}
    source = lay_out(log, tmp_path / "orders-0")
    for number, (start, offset, kept) in enumerate(
        [(0, None, [0, 1, 4]), (2**40, None, [0, 1, 4]), (3, None, [4]), (0, 7, [30])]
    ):
        (tmp_path / str(number)).mkdir()
        copy = tmp_path / str(number) / "orders-0"
        settings = replace(SETTINGS, log_start_offset=start)
        taken = sample(str(source), str(copy), settings, first_offset=offset, batch_count=9)
        assert scan(np.fromfile(next(copy.glob("*.log")), np.uint8)).base_offset.tolist() == kept
        assert taken.batch_count == len(kept)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataDirectoryError, match="no batch"):
        sample(str(source), str(tmp_path / "none" / "orders-0"), SETTINGS, first_offset=2**40, batch_count=9)
    assert list((tmp_path / "none").iterdir()) == []


@pytest.mark.parametrize("first_offset", [0, 1])
def test_a_damaged_batch_among_the_sampled_ones_is_counted(first_offset: int, tmp_path: Path) -> None:
    source = lay_out({0: batch(0) + hurt(batch(1)) + batch(2) + batch(3)}, tmp_path / "orders-0")
    copy = tmp_path / "copies" / source.name
    copy.parent.mkdir()
    taken = sample(str(source), str(copy), SETTINGS, first_offset=first_offset, batch_count=2)
    assert (taken.batch_count, taken.skipped_count) == (2, 1)
    told = CliRunner().invoke(command, [str(source), str(tmp_path / "redacted"), "--redact", "--batches", "2"])
    assert "1 batch left out, which cannot be read or redacted" in told.output
