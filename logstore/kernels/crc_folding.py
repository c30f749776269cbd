"""CRC-32C of many bytes in LLVM's own instructions: vectors are folded.

Folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009) takes bytes to fewer
that have the same checksum: 16 bytes are multiplied, without carries, by what the bits between them and later ones are
worth, and are added to those. One instruction does this to 64 bytes or 32, and needs no table.

Vectors of 32 bytes do not keep up with the memory: the processor's own instruction, which is another part of it, takes
every second FOLDED_SIZE meanwhile. What it comes to is multiplied as above and added to the bytes folded next, so that
neither waits for the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from .crc32c import FOLDED_SIZE, POLYNOMIAL

_LANE_SIZE = 16  # bytes that are multiplied at a time
_WOVEN_VECTOR_SIZE = 32  # bytes; with 64 the memory is reached
_STREAM_COUNT = 4  # of the instruction, which gives its result after three cycles
_STREAM_SIZE = FOLDED_SIZE // _STREAM_COUNT  # bytes
_LINE_SIZE = 64  # bytes of the processor's cache
_AHEAD_SIZE = 2048  # bytes; nearer, or not at all, costs a fifth of the bytes from memory
_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_LANE = ir.VectorType(_I64, _LANE_SIZE // 8)
_CRC32C = "llvm.x86.sse42.crc32.64.64"


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
    sums = _load(builder, vector, start, FOLDED_SIZE // vector_size)
    sums[0] = builder.xor(sums[0], builder.insert_element(ir.Constant(vector, None), crc, _I32(0)))
    place = start
    if vector_size == _WOVEN_VECTOR_SIZE:
        place, sums = _emit_loop(builder, place, end, sums, _emit_streams)
    _, sums = _emit_loop(builder, place, end, sums, None)
    lanes = _lanes(builder, _joined(builder, sums, vector_size))
    return _register(builder, _joined(builder, lanes, _LANE_SIZE))


def _emit_loop(
    builder: Any, start: Any, end: Any, firsts: list[Any], between: Callable[[Any, Any], Any] | None
) -> tuple[Any, list[Any]]:
    """Fold as long as there is enough; a pointer to the last FOLDED_SIZE bytes that were folded, and what they are.

    Args:
        firsts: the FOLDED_SIZE bytes at `start`.
        between: emits what FOLDED_SIZE bytes that are not folded are worth to the 16 behind them; None: all are folded.
    """
    vector, before = firsts[0].type, builder.block
    step_size = FOLDED_SIZE if between is None else 2 * FOLDED_SIZE
    loop, body, behind = (builder.append_basic_block(name) for name in ("fold", "fold.step", "folded"))
    builder.branch(loop)

    builder.position_at_end(loop)
    place = builder.phi(start.type)
    sums = [builder.phi(vector) for _ in firsts]
    after = builder.gep(place, [_I64(step_size)])
    builder.cbranch(builder.icmp_unsigned("<", after, end), body, behind)

    builder.position_at_end(body)
    nexts = _load(builder, vector, after, len(sums))
    if between is not None:
        worth = between(builder, builder.gep(place, [_I64(FOLDED_SIZE)]))
        nexts[0] = builder.xor(nexts[0], _widened(builder, worth, vector))
    folded = [builder.xor(_fold(builder, each, step_size), new) for each, new in zip(sums, nexts, strict=True)]
    builder.branch(loop)
    for phi, first, later in zip([place, *sums], [start, *firsts], [after, *folded], strict=True):
        phi.add_incoming(first, before)
        phi.add_incoming(later, body)

    builder.position_at_end(behind)
    return place, sums


def _emit_streams(builder: Any, start: Any) -> Any:
    """What FOLDED_SIZE bytes are worth to the lane behind them, by the instruction; fetches bytes for later steps."""
    fetch = builder.module.declare_intrinsic(
        "llvm.prefetch", (start.type,), ir.FunctionType(ir.VoidType(), [start.type, _I32, _I32, _I32])
    )
    for line in range(0, 2 * FOLDED_SIZE, _LINE_SIZE):
        place = builder.gep(start, [_I64(_AHEAD_SIZE + line)])
        builder.call(fetch, [place, _I32(0), _I32(3), _I32(1)])  # to be read, and soon, into the nearest cache of data
    words = _load(builder, _I64, start, FOLDED_SIZE // 8)
    crcs = [ir.Constant(_I64, 0)] * _STREAM_COUNT
    for index in range(_STREAM_SIZE // 8):
        for stream in range(_STREAM_COUNT):
            word = words[stream * _STREAM_SIZE // 8 + index]
            crcs[stream] = emit_crc32c_word(builder, _CRC32C, crcs[stream], word)
    worth = ir.Constant(_LANE, None)
    for stream, crc in enumerate(crcs):
        distance_size = FOLDED_SIZE - (stream + 1) * _STREAM_SIZE
        lane = builder.insert_element(ir.Constant(_LANE, None), crc, _I32(0))
        by = ir.Constant(_LANE, [_power(8 * distance_size + 32) << 1, 0])
        worth = builder.xor(worth, _multiply(builder, lane, by, 0x00))
    return worth


def _widened(builder: Any, lane: Any, vector: Any) -> Any:
    """A vector that begins with the lane, and is else zero."""
    indexes = [*range(_LANE.count), *[_LANE.count] * (vector.count - _LANE.count)]
    return builder.shuffle_vector(
        lane, ir.Constant(_LANE, None), ir.Constant(ir.VectorType(_I32, vector.count), indexes)
    )


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
    return builder.xor(_multiply(builder, value, by, 0x00), _multiply(builder, value, by, 0x11))


def _multiply(builder: Any, value: Any, by: Any, halves: int) -> Any:
    """Products without carries of a half of each lane, the low ones (0x00) or the high ones (0x11)."""
    suffix = {1: "", 2: ".256", 4: ".512"}[value.type.count // 2]
    signature = ir.FunctionType(value.type, [value.type, value.type, _I8])
    multiply = builder.module.declare_intrinsic(f"llvm.x86.pclmulqdq{suffix}", (), signature)
    return builder.call(multiply, [value, by, _I8(halves)])


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
        crc = emit_crc32c_word(builder, _CRC32C, crc, word)
    return crc
