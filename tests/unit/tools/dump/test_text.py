"""Logs are printed the same whether they are read into memory or mapped, in tables and buffers of any size."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.support.data import write_segment
from logstore.native.kernel import INTERPRETED
from logstore_tools.dump import log_dump, output, run
from logstore_tools.dump import text as text_module
from tests.naive.legacy import Message, entry, message, message_set
from tests.support.encoder import GZIP, Batch, Rec
from tests.support.golden import Golden

LOG = "00000000000000000000.log"
DEPTHS = [[], ["--deep-iteration"], ["--print-data-log"], ["--print-data-log", "--skip-record-metadata"]]
LARGE = {"numpy", "numba", "llvmlite", "click", "queue", "dataclasses", "importlib.metadata"}
DECODER = ["--value-decoder-class", "org.apache.kafka.tools.api.LongDecoder"]


def answer(argv: list[str]) -> tuple[int, bytes, str]:
    stdout, stderr = io.BytesIO(), io.StringIO()
    return run(argv, stdout, stderr), stdout.getvalue(), stderr.getvalue()


def check_same(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, bytes, str]:
    """The answer, which is the same of a mapped file, and in small tables and buffers."""
    found = answer(argv)
    with monkeypatch.context() as patched:
        patched.setattr(log_dump, "SMALL_SIZE_MAX", -1)
        assert answer(argv) == found
    with monkeypatch.context() as patched:
        patched.setattr(log_dump, "ROW_CAPACITY", 3)
        patched.setattr(text_module, "RECORD_CAPACITY", 2)
        patched.setattr(text_module, "GAP_CAPACITY", 2)
        patched.setattr(output, "BUFFER_SIZE", 100)
        assert answer(argv) == found
    return found


@pytest.mark.parametrize("depth", DEPTHS, ids=" ".join)
@pytest.mark.parametrize("name", ["demo", "legacy", "control"])
def test_every_log_of_a_broker(name: str, depth: list[str], golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = sorted(golden(name).rglob("*.log"))
    assert paths
    for path in paths:
        check_same(["--files", str(path), *depth], monkeypatch)


@pytest.mark.parametrize("options", [*DEPTHS, DECODER, ["--offset", "2:7"], ["--max-bytes", "150"]], ids=" ".join)
def test_plain_rows_go_on_after_others(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = [Rec(b"k%d" % i, bytes(8), offset_delta=2 * i) for i in range(4)]
    plain, packed = Batch(0, records, 6).to_bytes(), Batch(10, records, 6, GZIP).to_bytes()
    old = message_set(1, [Message(20, 0, b"k", bytes(8))])
    (tmp_path / LOG).write_bytes(plain + packed + plain + old + plain + b"\x00" * 9)
    code, text, told = check_same(["--files", str(tmp_path / LOG), *options], monkeypatch)
    assert code == 0
    if options == DEPTHS[1]:
        assert text.count(b"| offset: ") == 17
        assert text.endswith(b"Found 9 invalid bytes at the end of " + LOG.encode() + b"\n")
        assert "  6 is followed by 20\n" in told
    assert ("Non-consecutive" in told) == (options in DEPTHS[1:] or options == DECODER)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(Batch(0, [Rec()]).to_bytes()[:-1], id="cut off"),
        pytest.param(Batch(0, [Rec()]).to_bytes() + bytes(8) + (3).to_bytes(4, "big") + bytes(99), id="bad length"),
        pytest.param(Batch(0, [Rec()]).to_bytes()[:22] + b"\x07" + Batch(0, [Rec()]).to_bytes()[23:], id="bad codec"),
        pytest.param(Batch(0, range(9), stream=b"\x00" * 9).to_bytes(), id="bad records"),
    ],
)
def test_damage(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / LOG).write_bytes(content)
    check_same(["--files", str(tmp_path / LOG), "--deep-iteration"], monkeypatch)


@pytest.mark.parametrize("name", ["missing/0.log", "1.log", "2.log", "2.snapshot", "/dev/null/0.log"])
def test_a_file_that_cannot_be_read_ends_the_dump(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("1.log").mkdir()
    os.mkfifo("2.log")
    os.mkfifo("2.snapshot")
    assert check_same(["--files", name], monkeypatch)[0] == 1


@pytest.mark.skipif(INTERPRETED, reason="interpreted kernels check arrays by numpy")
def test_nothing_large_is_imported_for_a_small_log(tmp_path: Path) -> None:
    write_segment(tmp_path / LOG, 10_000, batch_size=3000)
    script = (
        "import sys\nold = set(sys.modules)\nfrom logstore_tools.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(sorted(name for name in sys.modules.keys() - old if name in sys.argv[-1].split(',')), file=sys.stderr)"
    )
    argv = [sys.executable, "-c", script, "dump", "--print-data-log", "--files", str(tmp_path / LOG), ",".join(LARGE)]
    done = subprocess.run(argv, capture_output=True, check=True, env={**os.environ, "NUMBA_DISABLE_JIT": "0"})
    assert done.stdout.count(b"\n") > 10
    assert done.stderr == b"[]\n" or not sys.platform.startswith("linux")


def test_decoders_are_not_imported_where_none_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_bytes(Batch(5, [Rec()]).to_bytes())  # a gap
    script = "import sys; from logstore_tools.dump import run; run(sys.argv[1:], sys.stdout.buffer, sys.stderr)"
    script += "; print(sorted(name for name in sys.modules if name.startswith(('logstore.topics', 'llvmlite'))))"
    argv = [sys.executable, "-c", script, "--print-data-log", "--files", str(path)]
    done = subprocess.run(argv, capture_output=True, check=True, text=True)
    assert "| offset: 5 " in done.stdout
    assert done.stdout.endswith("\n[]\n") or not sys.platform.startswith("linux")


@pytest.mark.parametrize("form", [[], ["--format", "json"]], ids=["text", "json"])
def test_records_before_the_damage_of_a_stream_are_printed(
    form: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Batch(0, [Rec(b"k%d" % i, b"paid") for i in range(40)], 39, GZIP).to_bytes()
    size = len(whole) - 8  # the checksum and the size of the content are cut off
    (tmp_path / LOG).write_bytes(whole[:8] + (size - 12).to_bytes(4, "big") + whole[12:size])
    rc, stdout, stderr = check_same(["--files", str(tmp_path / LOG), "--print-data-log", *form], monkeypatch)
    assert (rc, stdout.count(b"paid")) == (1, 40)
    assert "The gzip stream does not decompress beyond its byte " in stderr


def test_a_missing_key_of_an_internal_topic_counts_more_than_a_cut_value(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(entry(7, message(1, None, b"v1")[:-1]))
    code, _, told = answer(["--files", str(tmp_path / LOG), "--offsets-decoder"])
    assert code == 1
    assert "Failed to decode message at offset 7 using the specified decoder (message had a missing key)" in told
