"""A copy of some bytes, few as a rule, without a call and without a loop, which LLVM would make a call of."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

_I8, _I64 = ir.IntType(8), ir.IntType(64)
_WORD_WIDTH_MAX = 32  # bytes
_HALF_SIZE_MAX = 128  # bytes; for more than twice as many a function of C knows better


def emit_copy(builder: Any, source: Any, target: Any, size: Any) -> None:
    """Copy `size` bytes, an i64, between buffers that do not overlap; no others are read or written."""
    is_small = builder.icmp_signed("<", size, ir.Constant(_I64, 2 * _HALF_SIZE_MAX))
    with builder.if_else(is_small, likely=True) as (small, large):
        with small:
            _copy_halves(builder, source, target, size, _HALF_SIZE_MAX)
        with large:
            copy = builder.module.declare_intrinsic("llvm.memcpy", [source.type, source.type, _I64])
            builder.call(copy, [target, source, size, ir.Constant(ir.IntType(1), 0)])


def _copy_halves(builder: Any, source: Any, target: Any, size: Any, half_size: int) -> None:
    """The first so many bytes and the last, which may be the same; by fewer if there are not so many."""
    with builder.if_else(builder.icmp_signed(">=", size, ir.Constant(_I64, half_size))) as (many, few):
        with many:
            _copy_words(builder, source, target, ir.Constant(_I64, 0), half_size)
            _copy_words(builder, source, target, builder.sub(size, ir.Constant(_I64, half_size)), half_size)
        with few:
            if half_size > 1:
                _copy_halves(builder, source, target, size, half_size // 2)


def _copy_words(builder: Any, source: Any, target: Any, start: Any, size: int) -> None:
    width = min(size, _WORD_WIDTH_MAX)
    word = (ir.VectorType(_I8, width) if width > 1 else _I8).as_pointer()
    places = [builder.add(start, ir.Constant(_I64, at)) for at in range(0, size, width)]
    words = [builder.load(builder.bitcast(builder.gep(source, [place]), word), align=1) for place in places]
    for place, value in zip(places, words, strict=True):
        builder.store(value, builder.bitcast(builder.gep(target, [place]), word), align=1)
