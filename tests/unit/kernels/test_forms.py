"""A kernel runs compiled or interpreted, by the environment; and the buffers that judge the two catch what is wrong."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from logstore.kernels.scan.crc32c import crc32c_range
from logstore.native.kernel import Kernel
from tests.support.kernel_forms import Fenced, Guarded, StrayIndexError, run_both

DUMP = "from logstore_tools.main import main; main()"


def dumped(path: Path, **environment: str) -> bytes:
    argv = [sys.executable, "-c", DUMP, "dump", "--files", str(path), "--print-data-log"]
    done = subprocess.run(argv, capture_output=True, check=True, env={**os.environ, **environment})
    return done.stdout


def test_a_dump_is_the_same_without_compiled_kernels(golden: Callable[[str], Path]) -> None:
    path = golden("demo") / "payments-0" / "00000000000000000000.log"
    compiled = dumped(path, NUMBA_DISABLE_JIT="0")
    assert dumped(path, NUMBA_DISABLE_JIT="1") == compiled
    assert compiled.count(b"| offset: ") > 5


def test_an_interpreted_kernel_takes_matrices_and_gives_a_plain_int() -> None:
    matrix = np.frombuffer(b"123456789", np.uint8).reshape(3, 3)
    result = crc32c_range.interpret(matrix, 0, 9)
    assert (type(result), result) == (int, 0xE3069283)


def test_a_bound_kernel_takes_what_it_keeps_and_the_rest() -> None:
    data = np.frombuffer(b"123456789", np.uint8)
    bound = crc32c_range.bound(data, 0, 9)
    assert bound.run() == 0xE3069283
    assert crc32c_range.bound(data, 0, 0).run() == 0
    assert crc32c_range.bound(np.frombuffer(b"0123456789", np.uint8), 1).run(10) == 0xE3069283
    assert crc32c_range.bound().run(b"123456789", 0, 9) == 0xE3069283


def test_a_bound_kernel_is_the_same_interpreted() -> None:
    script = (
        "import numpy as np; from logstore.kernels.scan.crc32c import crc32c_range;"
        "data = np.frombuffer(b'123456789', np.uint8);"
        "print(crc32c_range.bound(data, 0).run(9))"
    )
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=environment)
    assert int(done.stdout) == 0xE3069283


def test_numba_is_not_imported_to_run_a_compiled_kernel() -> None:
    script = "import sys; from logstore.kernels.scan.crc32c import crc32c; crc32c(b'x'); print('numba' in sys.modules)"
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    crc32c_range(np.zeros(1, np.uint8), 0, 1)  # the library is there from now on
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, env=environment)
    assert done.stdout == b"False\n"


@pytest.mark.parametrize("index", [-1, 4, slice(-1, 2), slice(2, 5), slice(4, 5), slice(3, 3)])
def test_a_guarded_buffer_refuses_to_be_read_outside(index: int | slice) -> None:
    buffer = Guarded(np.arange(4, dtype=np.uint8))
    with pytest.raises(StrayIndexError):
        buffer[index]
    with pytest.raises(StrayIndexError):
        buffer[index] = 0
    assert buffer[3] == 3


def test_a_guarded_buffer_refuses_to_be_read_beyond_its_limit() -> None:
    buffer = Guarded(np.arange(4, dtype=np.uint8), limit=2)
    assert bytes(buffer[0:2]) == b"\x00\x01"
    with pytest.raises(StrayIndexError):
        buffer[2]


def test_a_fence_shows_what_was_written_outside() -> None:
    for place in -1, 8:
        fenced = Fenced(np.zeros(8, np.uint8))
        fenced.assert_intact()
        ctypes.memset(fenced.array.ctypes.data + place, 0, 1)
        with pytest.raises(AssertionError):
            fenced.assert_intact()


def test_forms_that_disagree_are_noticed() -> None:
    class Odd(Kernel):
        def __call__(self, *arguments: object) -> int:
            return 0

    def one(*arguments: object) -> int:
        return 1

    with pytest.raises(AssertionError):
        run_both(Odd(one, "i64"), 5)


def test_forms_that_write_differently_are_noticed() -> None:
    class Odd(Kernel):
        def __call__(self, buffer: object) -> int:
            buffer[0] = 7  # type: ignore[index]
            return 0

    def nothing(buffer: object) -> int:
        return 0

    with pytest.raises(AssertionError, match="wrote differently"):
        run_both(Odd(nothing, "u8*"), np.zeros(3, np.uint8))


def test_a_kernel_called_with_a_float_fails_before_it_runs() -> None:
    with pytest.raises(TypeError):
        crc32c_range(np.zeros(1, np.uint8), 0, 1.5)
