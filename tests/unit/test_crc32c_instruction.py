"""Which processors compute CRC-32C themselves, and what is made of it for each."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from logstore.kernels.intrinsics import crc32c_instruction, emit_crc32c_word

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
def test_instruction_by_processor(machine: str, features: dict[str, bool], instruction: str | None) -> None:
    assert crc32c_instruction(machine, features) == instruction


@pytest.mark.parametrize(
    ("triple", "feature", "instruction", "assembly"),
    [
        ("aarch64-unknown-linux-gnu", "+crc", "llvm.aarch64.crc32cx", "crc32cx"),
        ("x86_64-unknown-linux-gnu", "+crc32", "llvm.x86.sse42.crc32.64.64", "crc32q"),
    ],
)
def test_it_becomes_one_instruction(triple: str, feature: str, instruction: str, assembly: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    i64 = ir.IntType(64)
    module = ir.Module()
    module.triple = triple
    function = ir.Function(module, ir.FunctionType(i64, [i64, i64]), "word")
    builder = ir.IRBuilder(function.append_basic_block())
    builder.ret(emit_crc32c_word(builder, instruction, *function.args))
    machine = llvm.Target.from_triple(triple).create_target_machine(features=feature)
    text = machine.emit_assembly(llvm.parse_assembly(str(module)))
    assert text.count(assembly) == 1
