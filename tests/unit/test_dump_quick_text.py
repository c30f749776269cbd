"""Small plain logs are printed without numpy, as the dump for everything prints them; that one gets all else."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.segments import write_segment
from logstore.jit.kernel import INTERPRETED
from logstore_tools.dump import quick_text as module
from logstore_tools.dump import run
from logstore_tools.dump.options import DumpOptions
from logstore_tools.dump.quick_text import quick_text
from tests.naive.encoder import Batch, Rec

pytestmark = pytest.mark.skipif(INTERPRETED, reason="it is for compiled kernels only")
LOG = "00000000000000000000.log"
DEPTHS = [[], ["--deep-iteration"], ["--print-data-log"], ["--print-data-log", "--skip-record-metadata"]]
LARGE = {"numpy", "numba", "llvmlite", "click", "queue", "dataclasses", "importlib.metadata"}


def answer(argv: list[str]) -> tuple[int, bytes, str]:
    stdout, stderr = io.BytesIO(), io.StringIO()
    return run(argv, stdout, stderr), stdout.getvalue(), stderr.getvalue()


def quick(argv: list[str]) -> bytes | None:
    options = DumpOptions.parse(argv)
    pieces = quick_text(options.files, options)
    return None if pieces is None else b"".join(pieces)


def slow(argv: list[str], monkeypatch: pytest.MonkeyPatch) -> tuple[int, bytes, str]:
    with monkeypatch.context() as patched:
        patched.setattr(module, "SIZE_MAX", -1)
        return answer(argv)


@pytest.mark.parametrize("depth", DEPTHS, ids=" ".join)
@pytest.mark.parametrize("size", [500, 10_000, 300_000])
def test_it_is_what_the_other_dump_prints(
    size: int, depth: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "OUT_CAPACITY", 20_000)
    write_segment(Path(LOG), size, batch_size=min(size, 3000))
    argv = ["--files", f"{LOG},{LOG}", *depth]
    code, text, told = slow(argv, monkeypatch)
    assert quick(argv) == text
    assert (code, told) == (0, "")
    assert answer(argv) == (0, text, "")


@pytest.mark.parametrize("name", ["demo", "legacy"])
def test_every_log_of_a_broker_prints_as_before(
    name: str, golden: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_count = 0
    for path in sorted(golden(name).rglob("*.log")):
        for depth in DEPTHS:
            argv = ["--files", str(path), *depth]
            code, text, told = slow(argv, monkeypatch)
            found = quick(argv)
            quick_count += found is not None
            assert found is None or (found, code, told) == (text, 0, "")
            assert answer(argv) == (code, text, told)
    assert quick_count > 0 or name == "legacy"


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(Batch(0, [Rec()]).to_bytes() + b"\x00" * 9, id="bytes at the end"),
        pytest.param(Batch(5, [Rec()]).to_bytes(), id="gap"),
        pytest.param(Batch(0, [Rec()]).to_bytes()[:-1], id="cut off"),
        pytest.param(bytes(8) + (3).to_bytes(4, "big") + bytes(99), id="length too small"),
    ],
)
def test_what_is_not_plain_is_left_to_the_other(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_bytes(content)
    assert quick(["--files", str(path), "--deep-iteration"]) is None


def test_an_empty_log_is_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / LOG).write_bytes(b"")
    argv = ["--files", str(tmp_path / LOG)]
    assert quick(argv) == slow(argv, monkeypatch)[1]


@pytest.mark.parametrize(
    "words", [["--max-bytes", "99"], ["--format", "json"], ["--offset", "1"], ["--offsets-decoder"]]
)
def test_other_options_are_left_to_the_other(words: list[str], tmp_path: Path) -> None:
    path = tmp_path / LOG
    path.write_bytes(Batch(0, [Rec()]).to_bytes())
    assert quick(["--files", str(path)]) is not None
    assert quick(["--files", str(path), *words]) is None


def test_other_files_are_left_to_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    plain = Batch(0, [Rec()]).to_bytes()
    for name in (LOG, "x.log", "00000000000000000000.index"):
        Path(name).write_bytes(plain)
    Path("1.log").mkdir()
    for name in ("x.log", "00000000000000000000.index", "1.log", "missing/0.log"):
        assert quick(["--files", f"{LOG},{name}"]) is None
    monkeypatch.setattr(module, "SIZE_MAX", len(plain))
    assert quick(["--files", LOG]) is not None
    assert quick(["--files", f"{LOG},{LOG}"]) is None


def test_a_record_larger_than_the_buffer_is_left_to_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / LOG
    path.write_bytes(Batch(0, [Rec(value=b"v" * 9000)]).to_bytes())
    monkeypatch.setattr(module, "OUT_CAPACITY", 20_000)
    argv = ["--files", str(path), "--print-data-log"]
    assert quick(argv) is None
    assert answer(argv)[1].endswith(b"v" * 9000 + b"\n")


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
    path.write_bytes(Batch(5, [Rec()]).to_bytes())  # a gap, so it is for the dump for everything
    script = "import sys; from logstore_tools.dump import run; run(sys.argv[1:], sys.stdout.buffer, sys.stderr)"
    script += "; print(sorted(name for name in sys.modules if name.startswith(('logstore.topics', 'llvmlite'))))"
    argv = [sys.executable, "-c", script, "--print-data-log", "--files", str(path)]
    done = subprocess.run(argv, capture_output=True, check=True, text=True)
    assert "| offset: 5 " in done.stdout
    assert done.stdout.endswith("\n[]\n") or not sys.platform.startswith("linux")
