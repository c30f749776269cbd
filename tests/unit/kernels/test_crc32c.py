"""CRC-32C: published checksums, every short length, the joints of steps, and what each processor computes itself."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir

from logstore.kernels.scan.crc32c import BLOCK_SIZE, crc32c, crc32c_range
from logstore.kernels.scan.crc_intrinsics import crc32c_instruction, emit_crc32c_word
from tests.naive import checksum
from tests.support.crc32c_ways import crcs_of
from tests.support.dice import Dice

RFC_3720 = {
    "32 zeroes": (bytes(32), 0x8A9136AA),
    "32 ones": (b"\xff" * 32, 0x62A8AB43),
    "32 counted up": (bytes(range(32)), 0x46DD794E),
    "32 counted down": (bytes(range(31, -1, -1)), 0x113FDB5C),
    "a SCSI read command": (
        bytes.fromhex("01c00000000000000000000000000000140000000000040000000014000000182800000000000000")
        + bytes.fromhex("0200000000000000"),
        0xD9963A56,
    ),
    "nine digits": (b"123456789", 0xE3069283),
    "nothing": (b"", 0),
}
LINE_SIZE = 256
NOISE = Dice("checksums").take(max(6 * LINE_SIZE, 4 * BLOCK_SIZE))
THREE_BLOCKS = 3 * BLOCK_SIZE


@pytest.mark.parametrize(("data", "expected"), RFC_3720.values(), ids=RFC_3720)
def test_checksums_are_those_of_rfc_3720(data: bytes, expected: int) -> None:
    assert checksum.crc32c(data) == expected
    assert crc32c(data) == expected
    assert crcs_of(data, 0, len(data)) == {expected}


def test_every_length_up_to_200_from_every_start_in_a_word() -> None:
    for size in range(201):
        start = size % 9
        assert crcs_of(NOISE[:250], start, start + size) == {checksum.crc32c(NOISE[start : start + size])}


@pytest.mark.parametrize("whole_size", [THREE_BLOCKS, LINE_SIZE, 2 * LINE_SIZE, 5 * LINE_SIZE])
@pytest.mark.parametrize("more_size", [-8, -1, 0, 1, 7, 8, 9])
def test_checksums_are_right_around_whole_steps(whole_size: int, more_size: int) -> None:
    end = 3 + whole_size + more_size
    assert crcs_of(NOISE, 3, end) == {checksum.crc32c(NOISE[3:end])}


@pytest.mark.parametrize("size", [LINE_SIZE, 2 * LINE_SIZE, 2 * LINE_SIZE + 1])
def test_no_byte_behind_the_end_is_read(size: int) -> None:
    """A reader of the page behind, which nobody may read, would end here."""
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    data = np.frombuffer(pages, np.uint8)
    data[mmap.PAGESIZE - size : mmap.PAGESIZE] = np.frombuffer(NOISE[:size], np.uint8)
    second_page = ctypes.c_void_p(data.ctypes.data + mmap.PAGESIZE)
    no_access = 0
    assert ctypes.CDLL(None).mprotect(second_page, ctypes.c_size_t(mmap.PAGESIZE), no_access) == 0
    assert crc32c_range(data, mmap.PAGESIZE - size, mmap.PAGESIZE) == checksum.crc32c(NOISE[:size])


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
