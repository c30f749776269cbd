"""Which processors compute CRC-32C themselves or fold, and what is made of it for each."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from logstore.kernels.scan.crc32c import FOLDED_SIZE, MASK32
from logstore.kernels.scan.crc_folding import emit_crc32c_word, emit_folding
from logstore.kernels.scan.crc_intrinsics import crc32c_instruction, folding_size
from tests.naive import checksum
from tests.support.dice import Dice

I64, POINTER = ir.IntType(64), ir.IntType(8).as_pointer()
LINUX_ON_X86 = "x86_64-unknown-linux-gnu"


def compiled(
    triple: str, features: str, argument_types: list[ir.Type], emit: Callable[..., Any]
) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    """A module with the function `emitted` of what `emit(builder, *arguments)` gives, and the machine for it."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = ir.Module()
    module.triple = triple
    function = ir.Function(module, ir.FunctionType(I64, argument_types), "emitted")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(emit(builder, *function.args))
    return llvm.parse_assembly(str(module)), llvm.Target.from_triple(triple).create_target_machine(features=features)


def compiled_folding(triple: str, features: str, vector_size: int) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    return compiled(
        triple, features, [I64, POINTER, POINTER], lambda builder, *given: emit_folding(builder, vector_size, *given)
    )


CASES = [
    ("x86_64", {"sse4.2": True, "crc32": True}, "llvm.x86.sse42.crc32.64.64"),
    ("x86_64", {"sse4.2": False, "crc32": False}, None),
    ("aarch64", {"crc": True}, "llvm.aarch64.crc32cx"),
    ("aarch64", {"crc": False}, None),
    ("aarch64", {}, None),
    ("arm64", {}, "llvm.aarch64.crc32cx"),
    ("riscv64", {"crc32": True}, None),
]


@pytest.mark.parametrize(("machine", "features", "instruction"), CASES)
def test_processor_decides_the_checksum_instruction(
    machine: str, features: dict[str, bool], instruction: str | None
) -> None:
    assert crc32c_instruction(machine, features) == instruction


@pytest.mark.parametrize(
    ("triple", "feature", "instruction", "assembly"),
    [
        ("aarch64-unknown-linux-gnu", "+crc", "llvm.aarch64.crc32cx", "crc32cx"),
        (LINUX_ON_X86, "+crc32", "llvm.x86.sse42.crc32.64.64", "crc32q"),
    ],
)
def test_checksum_of_a_word_becomes_one_instruction(triple: str, feature: str, instruction: str, assembly: str) -> None:
    module, machine = compiled(
        triple, feature, [I64, I64], lambda builder, *given: emit_crc32c_word(builder, instruction, *given)
    )
    assert machine.emit_assembly(module).count(assembly) == 1


FOLDING = {"sse4.2": True, "crc32": True, "pclmul": True, "avx2": True, "vpclmulqdq": True}


@pytest.mark.parametrize(
    ("features", "size"),
    [
        ({**FOLDING, "avx512f": True}, 64),
        ({**FOLDING, "avx512f": False}, 32),
        (FOLDING, 32),
        ({**FOLDING, "vpclmulqdq": False, "avx512f": True}, 0),
        ({**FOLDING, "crc32": False}, 0),
        ({"crc": True}, 0),
        ({}, 0),
    ],
)
def test_processor_decides_how_much_is_folded_at_once(features: dict[str, bool], size: int) -> None:
    assert folding_size(features) == size


@pytest.mark.parametrize(("vector_size", "register"), [(64, "%zmm"), (32, "%ymm")])
def test_vectors_are_folded_whole(vector_size: int, register: str) -> None:
    features = "+sse4.2,+crc32,+pclmul,+avx2,+vpclmulqdq" + (",+avx512f" if vector_size == 64 else "")
    module, machine = compiled_folding(LINUX_ON_X86, features, vector_size)
    lines = [line for line in machine.emit_assembly(module).splitlines() if "pclmul" in line and register in line]
    assert len(lines) >= 2 * FOLDED_SIZE // vector_size


@pytest.mark.parametrize("vector_size", [64, 32])
def test_each_width_gives_the_checksum_where_the_processor_has_it(vector_size: int) -> None:
    host = llvm.get_host_cpu_features()
    if folding_size(host) < vector_size:
        pytest.skip(f"the processor does not fold {vector_size} bytes at a time")
    module, machine = compiled_folding(llvm.get_process_triple(), host.flatten(), vector_size)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    fold = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)(
        engine.get_function_address("emitted")
    )
    noise = Dice("folding").take(10 * FOLDED_SIZE)
    data = np.frombuffer(noise, np.uint8)
    for start in (0, 1, 63):
        for size in range(FOLDED_SIZE, 9 * FOLDED_SIZE, FOLDED_SIZE):
            address = data.ctypes.data + start
            assert fold(MASK32, address, address + size) ^ MASK32 == checksum.crc32c(noise[start : start + size])
