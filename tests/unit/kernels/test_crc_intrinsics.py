"""Which processors compute CRC-32C themselves, and what is made of it for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from logstore.kernels.scan.crc_intrinsics import crc32c_instruction, emit_crc32c_word

I64 = ir.IntType(64)
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
