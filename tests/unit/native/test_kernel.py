"""What a kernel takes, in both of its forms, and what a build refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
import pytest

from logstore.kernels.scan.crc32c import crc32c_range
from logstore.kernels.table.key_hashes import murmur2_keys
from logstore.native import cpu
from logstore.native.device import BUILDING_VARIABLE
from logstore.native.kernel import Kernel
from logstore.native.structs import Bytes, Struct, Words, bytes_at, struct, words_at

_SOURCE = """
from __future__ import annotations
from logstore.native.kernel import kernel
from logstore.native.structs import Bytes, Struct, Words, bytes_at, struct, words_at

@struct
class Sums(Struct):
    count: int
    data: Bytes
    sums: Words

@kernel(Sums, "i64")
def add_up(state, limit):
    data = bytes_at(state.data)
    sums = words_at(state.sums)
    for at in range(min(state.count, limit)):
        sums[at] = sums[at] + data[at]
    state.count = state.count - limit
    return state.count

@kernel("i64")
def divide(number):
    if number == 0:
        raise ValueError
    return 10 // number
"""
_COMPILED = """
import ctypes, subprocess, sys
import llvmlite.binding as llvm
import numpy as np
from logstore.native.build import _linked
from logstore.native.compiling import compile_kernels
from sample import Sums, add_up, divide
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
machine = llvm.Target.from_default_triple().create_target_machine(opt=3, reloc="pic", codemodel="default")
open("add_up.so", "wb").write(_linked(compile_kernels([add_up], machine))[0])
state = Sums()
state.count, state.data, state.sums = 4, np.array([1, 2, 255, 9], np.uint8), np.array([10, 20, 30, 40])
function = ctypes.CDLL("./add_up.so").logstore_add_up
function.restype, function.argtypes = ctypes.c_int64, [ctypes.c_void_p, ctypes.c_int64]
print(function(ctypes.addressof(state), 3), state.count, state.sums.tolist())
try:
    compile_kernels([divide], machine)
except RuntimeError as error:
    print(error)
"""


@struct
class Sums(Struct):
    """A struct as a kernel has it."""

    count: int
    data: Bytes
    sums: Words


def _add_up(state: Any, limit: int) -> int:
    """As `add_up` of the sample, for the interpreted run."""
    data = bytes_at(state.data)
    sums = words_at(state.sums)
    for at in range(min(state.count, limit)):
        sums[at] = sums[at] + data[at]
    state.count = state.count - limit
    return int(state.count)


add_up_here = Kernel(_add_up, Sums, "i64")


def _sums() -> Sums:
    state = Sums()
    state.count = 4
    state.data = np.array([1, 2, 255, 9], np.uint8)
    state.sums = np.array([10, 20, 30, 40])
    return state


def test_a_struct_is_shared_by_name_in_both_forms(tmp_path: Path) -> None:
    state = _sums()
    assert (add_up_here.interpret(state, 3), state.count, state.sums.tolist()) == (1, 1, [11, 22, 285, 40])
    (tmp_path / "sample.py").write_text(_SOURCE)
    environment = {
        **os.environ,
        BUILDING_VARIABLE: "1",
        "NUMBA_DISABLE_JIT": "0",
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.getcwd()]),
    }
    done = subprocess.run(
        [sys.executable, "-c", _COMPILED], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    compiled, refusal = done.stdout.splitlines() or [done.stderr, ""]
    assert compiled == "1 1 [11, 22, 285, 40]"
    assert refusal.startswith("kernels may not call ")


def test_an_interpreted_kernel_stays_within_the_arrays_of_its_struct() -> None:
    state = _sums()
    state.sums = np.array([10, 20])
    with pytest.raises(IndexError):
        add_up_here.interpret(state, 3)


def test_a_struct_keeps_its_arrays_and_takes_no_others() -> None:
    state = _sums()
    with pytest.raises(TypeError, match=r"expected a C-contiguous array of uint8, not int64\[4\]"):
        state.data = np.zeros(4, np.int64)  # type: ignore[assignment]
    with pytest.raises(TypeError, match="expected a C-contiguous array of int64, not int64"):
        state.sums = np.zeros(8, np.int64)[::2]
    with pytest.raises(TypeError, match="not list"):
        state.sums = [1, 2]  # type: ignore[assignment]
    assert state.data.tolist() == [1, 2, 255, 9]
    assert state.sums.tolist() == [10, 20, 30, 40]


def test_a_struct_of_another_class_is_refused_in_both_forms() -> None:
    @struct
    class Others(Struct):
        count: int

    for call in (add_up_here.interpret, add_up_here.bound):
        with pytest.raises(TypeError, match="not a Others"):
            call(Others(), 3)


@pytest.mark.parametrize("array", [np.zeros(4, np.int64), np.zeros(8, np.uint8)[::2], [1, 2], "text"])
def test_both_forms_refuse_the_same_arrays(array: Any) -> None:
    for call in (crc32c_range, crc32c_range.interpret, crc32c_range.bound):
        with pytest.raises(TypeError, match="a kernel expected a C-contiguous array of uint8"):
            call(array, 0, 1)


def test_an_array_of_the_wrong_items_is_refused_wherever_it_stands() -> None:
    arguments = [np.zeros(4, np.uint8), *[np.zeros(4, np.int32)] * (len(murmur2_keys.argument_types) - 1)]
    for call in (murmur2_keys, murmur2_keys.interpret):
        with pytest.raises(TypeError):
            call(*arguments)


def test_the_best_level_that_the_processor_can_run_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "_architecture", lambda: "x86_64")
    for level in cpu.LEVELS["x86_64"]:
        monkeypatch.setattr(cpu, "_features", lambda has=level.needs: set(has))
        assert cpu.level() == level == cpu.level_named(level.name)
    monkeypatch.setattr(cpu, "_architecture", lambda: "s390x")
    with pytest.raises(RuntimeError, match="not on s390x"):
        cpu.level()


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="only Linux says what the processor has")
def test_linux_and_llvm_say_the_same_of_this_processor() -> None:
    needs = set().union(*[level.needs for level in cpu.LEVELS[cpu._architecture()]])
    told = cpu._linux_features() & needs
    names = {
        "sse4_1": "sse4.1",
        "sse4_2": "sse4.2",
        "pni": "sse3",
        "abm": "lzcnt",
        "bmi1": "bmi",
    }
    features = llvmlite.binding.get_host_cpu_features()
    assert told
    for name in told - {"xsave", "lahf_lm", "cx16", "crc32"}:
        assert features[names.get(name, name)], name


def test_a_kernel_is_called_with_as_many_arguments_as_it_has() -> None:
    assert isinstance(crc32c_range, Kernel)
    with pytest.raises(TypeError):
        crc32c_range(np.zeros(4, np.uint8), 0)
