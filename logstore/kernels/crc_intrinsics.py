"""The compiled forms of what `crc32c` asks of the processor: an instruction for 8 bytes, and folding of many.

Folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009) takes bytes to fewer
that have the same checksum: 16 bytes are multiplied, without carries, by what the bits between them and later ones are
worth, and are added to those. One instruction does this to 64 bytes or 32, and needs no table.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from .byte_pointer import BYTE_POINTER
from .crc32c import FOLDED_SIZE, POLYNOMIAL

_LANE_SIZE = 16  # bytes that are multiplied at a time
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def crc32c_instruction(machine: str, features: Mapping[str, bool]) -> str | None:
    """LLVM's name for the processor's CRC-32C of 8 bytes; None where it has none.

    Args:
        machine: as `platform.machine()` says it.
        features: LLVM's names of what the processor can do; Apple's processors do not tell and all have it.
    """
    if machine in ("x86_64", "AMD64"):
        has_it = features.get("crc32", False) and features.get("sse4.2", False)
        return "llvm.x86.sse42.crc32.64.64" if has_it else None
    if machine in ("aarch64", "arm64"):
        return "llvm.aarch64.crc32cx" if features.get("crc", machine == "arm64") else None
    return None


def folding_size(features: Mapping[str, bool]) -> int:
    """Bytes that one instruction of the processor folds; 0 where folding is not faster than `crc32c_instruction`."""
    if not all(features.get(name, False) for name in ("crc32", "sse4.2", "pclmul", "vpclmulqdq", "avx2")):
        return 0
    return 64 if features.get("avx512f", False) else 32


def emit_crc32c_word(builder: Any, instruction: str, crc: Any, word: Any) -> Any:
    """The instruction on two i64 values, as an i64: x86 takes the register as 64 bits, ARM as 32."""
    register = _I64 if ".x86." in instruction else _I32
    function = builder.module.declare_intrinsic(instruction, (), ir.FunctionType(register, [register, _I64]))
    if register is _I64:
        return builder.call(function, [crc, word])
    return builder.zext(builder.call(function, [builder.trunc(crc, _I32), word]), _I64)


def emit_folding(builder: Any, vector_size: int, crc: Any, start: Any, end: Any) -> Any:
    """The register after the bytes between two pointers, a multiple of FOLDED_SIZE and not none; an i64."""
    vector = ir.VectorType(_I64, vector_size // 8)
    count = FOLDED_SIZE // vector_size
    before = builder.block
    firsts = _load(builder, vector, start, count)
    firsts[0] = builder.xor(firsts[0], builder.insert_element(ir.Constant(vector, None), crc, _I32(0)))
    loop, body, behind = (builder.append_basic_block(name) for name in ("fold", "fold.step", "folded"))
    builder.branch(loop)

    builder.position_at_end(loop)
    place = builder.phi(start.type)
    sums = [builder.phi(vector) for _ in range(count)]
    after = builder.gep(place, [_I64(FOLDED_SIZE)])
    builder.cbranch(builder.icmp_unsigned("<", after, end), body, behind)

    builder.position_at_end(body)
    nexts = _load(builder, vector, after, count)
    folded = [builder.xor(_fold(builder, each, FOLDED_SIZE), new) for each, new in zip(sums, nexts, strict=True)]
    builder.branch(loop)
    for phi, first, later in zip([place, *sums], [start, *firsts], [after, *folded], strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, body)

    builder.position_at_end(behind)
    lanes = _lanes(builder, _joined(builder, sums, vector_size))
    return _register(builder, _joined(builder, lanes, _LANE_SIZE))


def _load(builder: Any, vector: Any, start: Any, count: int) -> list[Any]:
    first = builder.bitcast(start, vector.as_pointer())
    return [builder.load(builder.gep(first, [_I64(index)]), align=1) for index in range(count)]


def _lanes(builder: Any, value: Any) -> list[Any]:
    """The 16 bytes each that a vector has."""
    pairs = [[index, index + 1] for index in range(0, value.type.count, 2)]
    return [builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(_I32, 2), pair)) for pair in pairs]


def _joined(builder: Any, parts: list[Any], size: int) -> Any:
    """One part that stands for all; each follows `size` bytes behind the one before."""
    result = parts[0]
    for part in parts[1:]:
        result = builder.xor(_fold(builder, result, size), part)
    return result


def _fold(builder: Any, value: Any, distance_size: int) -> Any:
    """What the lanes of a vector are worth `distance_size` bytes further on."""
    lane_count = value.type.count // 2
    # the product has a bit less than 128, hence the shift; 32 bits of the distance are the checksum's own
    low, high = (_power(8 * distance_size + more) << 1 for more in (32, -32))
    by = ir.Constant(value.type, [low, high] * lane_count)
    suffix = {1: "", 2: ".256", 4: ".512"}[lane_count]
    signature = ir.FunctionType(value.type, [value.type, value.type, _I8])
    multiply = builder.module.declare_intrinsic(f"llvm.x86.pclmulqdq{suffix}", (), signature)
    lows, highs = (builder.call(multiply, [value, by, _I8(halves)]) for halves in (0x00, 0x11))
    return builder.xor(lows, highs)


def _power(exponent: int) -> int:
    """x to the power of `exponent`, modulo the polynomial, its bits in reverse."""
    value = 1 << 31
    for _ in range(exponent):
        value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
    return value


def _register(builder: Any, lane: Any) -> Any:
    """The register after 16 bytes that nothing came before."""
    crc = ir.Constant(_I64, 0)
    for index in range(2):
        word = builder.extract_element(lane, _I32(index))
        crc = emit_crc32c_word(builder, "llvm.x86.sse42.crc32.64.64", crc, word)
    return crc


def _target_features() -> dict[str, bool]:
    """What the code may use: numba can be told of less than the processor has (NUMBA_CPU_NAME, NUMBA_ENABLE_AVX)."""
    names = cpu_target.target_context.codegen()._tm_features.split(",")
    return {name[1:]: name[0] == "+" for name in names if name}


def _target_instruction() -> str | None:
    return crc32c_instruction(platform.machine(), _target_features())


def _target_folding_size() -> int:
    return folding_size(_target_features())


@intrinsic
def _has_crc32c(typingctx: Any) -> Any:
    """1 where the processor computes CRC-32C itself, decided when the kernels are compiled for it."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _I64(int(_target_instruction() is not None))

    return types.int64(), codegen


@intrinsic
def _has_folding(typingctx: Any) -> Any:
    """1 where the processor folds many bytes at a time."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _I64(int(_target_folding_size() > 0))

    return types.int64(), codegen


@intrinsic
def _crc32c_word(typingctx: Any, crc: Any, word: Any) -> Any:
    """CRC-32C of 8 more bytes by the processor's own instruction; only reached where `has_crc32c` is 1."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        instruction = _target_instruction()
        return _I64(0) if instruction is None else emit_crc32c_word(builder, instruction, *arguments)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _crc32c_folded(typingctx: Any, crc: Any, data: Any, start: Any, end: Any) -> Any:
    """CRC-32C of whole steps; only reached where `has_folding` is 1."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        crc, data, start, end = arguments
        size = _target_folding_size()
        if size == 0:
            return _I64(0)
        return emit_folding(builder, size, crc, builder.gep(data, [start]), builder.gep(data, [end]))

    return types.int64(types.int64, BYTE_POINTER, types.int64, types.int64), codegen


CRC_INTRINSICS = {
    "has_crc32c": _has_crc32c,
    "has_folding": _has_folding,
    "crc32c_word": _crc32c_word,
    "crc32c_folded": _crc32c_folded,
}
