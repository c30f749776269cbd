"""Generates LLVM instructions that compute the CRC-32C of many bytes by folding vectors.

Folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009) replaces bytes by
fewer with the same checksum: 16 bytes are multiplied, without carries, by the power of x for their distance to later
bytes, and added to those. One instruction multiplies 64 bytes or 32; no table is needed.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .crc32c import FOLDED_SIZE, POLYNOMIAL

_LANE_SIZE = 16  # bytes that are multiplied at a time
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_CRC32C = "llvm.x86.sse42.crc32.64.64"


def emit_crc32c_word(builder: Any, instruction: str, crc: Any, word: Any) -> Any:
    """Emit the CRC-32C instruction on two i64 values; returns an i64. x86 takes the register as 64 bits, ARM as 32."""
    register = _I64 if ".x86." in instruction else _I32
    function = builder.module.declare_intrinsic(instruction, (), ir.FunctionType(register, [register, _I64]))
    if register is _I64:
        return builder.call(function, [crc, word])
    return builder.zext(builder.call(function, [builder.trunc(crc, _I32), word]), _I64)


def emit_folding(builder: Any, vector_size: int, crc: Any, start: Any, end: Any) -> Any:
    """Emit the folding of the bytes between two pointers, a positive multiple of FOLDED_SIZE; returns an i64."""
    vector = ir.VectorType(_I64, vector_size // 8)
    sums = _load(builder, vector, start, FOLDED_SIZE // vector_size)
    sums[0] = builder.xor(sums[0], builder.insert_element(ir.Constant(vector, None), crc, _I32(0)))
    sums = _emit_loop(builder, start, end, sums)
    lanes = _lanes(builder, _joined(builder, sums, vector_size))
    return _register(builder, _joined(builder, lanes, _LANE_SIZE))


def _emit_loop(builder: Any, start: Any, end: Any, firsts: list[Any]) -> list[Any]:
    """Emit the loop that folds FOLDED_SIZE bytes, at first `firsts`, onto the next ones until `end`."""
    vector, before = firsts[0].type, builder.block
    loop, body, behind = (builder.append_basic_block(name) for name in ("fold", "fold.step", "folded"))
    builder.branch(loop)

    builder.position_at_end(loop)
    place = builder.phi(start.type)
    sums = [builder.phi(vector) for _ in firsts]
    after = builder.gep(place, [_I64(FOLDED_SIZE)])
    builder.cbranch(builder.icmp_unsigned("<", after, end), body, behind)

    builder.position_at_end(body)
    nexts = _load(builder, vector, after, len(sums))
    folded = [builder.xor(_fold(builder, each, FOLDED_SIZE), new) for each, new in zip(sums, nexts, strict=True)]
    builder.branch(loop)
    for phi, first, later in zip([place, *sums], [start, *firsts], [after, *folded], strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, body)

    builder.position_at_end(behind)
    return sums


def _load(builder: Any, vector: Any, start: Any, count: int) -> list[Any]:
    first = builder.bitcast(start, vector.as_pointer())
    return [builder.load(builder.gep(first, [_I64(index)]), align=1) for index in range(count)]


def _lanes(builder: Any, value: Any) -> list[Any]:
    """Split a vector into lanes of 16 bytes."""
    pairs = [[index, index + 1] for index in range(0, value.type.count, 2)]
    return [builder.shuffle_vector(value, value, ir.Constant(ir.VectorType(_I32, 2), pair)) for pair in pairs]


def _joined(builder: Any, parts: list[Any], size: int) -> Any:
    """Fold parts into the last one; each is `size` bytes behind the one before."""
    result = parts[0]
    for part in parts[1:]:
        result = builder.xor(_fold(builder, result, size), part)
    return result


def _fold(builder: Any, value: Any, distance_size: int) -> Any:
    """Multiply the lanes of a vector by the power of x for `distance_size` bytes."""
    lane_count = value.type.count // 2
    # a product has 127 bits, hence the shift; +32 and -32 are for the halves of a lane and a checksum of 32 bits
    low, high = (_power(8 * distance_size + more) << 1 for more in (32, -32))
    by = ir.Constant(value.type, [low, high] * lane_count)
    return builder.xor(_multiply(builder, value, by, 0x00), _multiply(builder, value, by, 0x11))


def _multiply(builder: Any, value: Any, by: Any, halves: int) -> Any:
    """Multiply without carries one half of each lane: the low ones (0x00) or the high ones (0x11)."""
    suffix = {1: "", 2: ".256", 4: ".512"}[value.type.count // 2]
    signature = ir.FunctionType(value.type, [value.type, value.type, _I8])
    multiply = builder.module.declare_intrinsic(f"llvm.x86.pclmulqdq{suffix}", (), signature)
    return builder.call(multiply, [value, by, _I8(halves)])


def _power(exponent: int) -> int:
    """Return x to the power of `exponent` modulo the polynomial, with reversed bits."""
    value = 1 << 31
    for _ in range(exponent):
        value = (value >> 1) ^ (POLYNOMIAL if value & 1 else 0)
    return value


def _register(builder: Any, lane: Any) -> Any:
    """Return the register after 16 bytes, from a register of 0."""
    crc = ir.Constant(_I64, 0)
    for index in range(2):
        word = builder.extract_element(lane, _I32(index))
        crc = emit_crc32c_word(builder, _CRC32C, crc, word)
    return crc
