"""Ahead-of-time compilation of all kernels into one object file. Only it and `byte_pointer` import numba."""

from __future__ import annotations

import importlib
import pkgutil
import platform
import types as python_types
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import njit, types
from numba.core import compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from .byte_pointer import BYTE_POINTER
from .kernel import DEVICE_FUNCTIONS, INLINED, KERNELS, Kernel
from .native import symbol

_NUMBA_TYPES = {"i64": types.int64, "u8*": BYTE_POINTER, "i64*": types.CPointer(types.int64)}


def compile_kernels() -> bytes:
    """All kernels of this package as one relocatable object file for the host processor."""
    package = importlib.import_module(__package__ or "")
    for module in pkgutil.iter_modules(package.__path__):
        if module.name not in ("compiler", "byte_pointer"):
            importlib.import_module(f"{package.__name__}.{module.name}")
    with global_compiler_lock:
        return _compile_all()


def _compile_all() -> bytes:
    cache: dict[Callable[..., Any], Any] = {}
    library = cpu_target.target_context.codegen().create_library("logstore")
    library.enable_object_caching()
    for kernel in KERNELS.values():
        _add(library, kernel, cache)
    library.finalize()
    return bytes(library._get_compiled_object())


def _add(library: Any, kernel: Kernel, cache: dict[Callable[..., Any], Any]) -> None:
    flags = compiler.Flags()
    flags.no_cpython_wrapper = True
    flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    flags.nrt = False
    arguments = tuple(_NUMBA_TYPES[t] for t in kernel.argument_types)
    result = compiler.compile_extra(
        cpu_target.typing_context,
        cpu_target.target_context,
        _with_compiled_globals(kernel.function, cache),
        arguments,
        types.int64,
        flags,
        {},
    )
    library.add_ir_module(_c_wrapper(kernel, result.fndesc.llvm_func_name))
    library.add_linking_library(result.library)


def _with_compiled_globals(function: Callable[..., Any], cache: dict[Callable[..., Any], Any]) -> Any:
    """A copy of `function` whose helpers are numba's: device functions jitted, intrinsics swapped in."""
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        helper = names.get(name)
        if isinstance(helper, python_types.FunctionType) and helper in DEVICE_FUNCTIONS:
            if helper not in cache:
                cache[helper] = _compiled_helper(helper, cache)
            names[name] = cache[helper]
    return python_types.FunctionType(function.__code__, names, function.__name__, function.__defaults__)


def _compiled_helper(helper: Callable[..., Any], cache: dict[Callable[..., Any], Any]) -> Any:
    form = DEVICE_FUNCTIONS[helper]
    if form in _INTRINSICS:
        return _INTRINSICS[form]
    options = {"forceinline": form == INLINED, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(nogil=True, error_model="numpy", **options)(_with_compiled_globals(helper, cache))


def _c_wrapper(kernel: Kernel, target: str) -> ir.Module:
    """`i64 logstore_<name>(arguments)` around numba's calling convention (pointers to result and exception first)."""
    i8, i32, i64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)
    element = {"i64": i64, "u8*": i8.as_pointer(), "i64*": i64.as_pointer()}
    arguments = [element[t] for t in kernel.argument_types]
    module = ir.Module(kernel.name)
    excinfo = ir.LiteralStructType([i8.as_pointer(), i32, i8.as_pointer(), i8.as_pointer(), i32]).as_pointer()
    inner = ir.Function(module, ir.FunctionType(i32, [i64.as_pointer(), excinfo.as_pointer(), *arguments]), target)
    outer = ir.Function(module, ir.FunctionType(i64, arguments), symbol(kernel.name))
    builder = ir.IRBuilder(outer.append_basic_block())
    result, error = builder.alloca(i64), builder.alloca(excinfo)
    builder.store(ir.Constant(i64, 0), result)
    builder.call(inner, [result, error, *outer.args])
    builder.ret(builder.load(result))
    return module


@intrinsic
def _load64(typingctx: Any, data: Any, position: Any) -> Any:
    """Unaligned little-endian load of 8 bytes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.int64(BYTE_POINTER, types.int64), codegen


@intrinsic
def _store64(typingctx: Any, data: Any, position: Any, value: Any) -> Any:
    """Unaligned little-endian store of 8 bytes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(64).as_pointer())
        builder.store(arguments[2], pointer, align=1)
        return arguments[2]

    return types.int64(BYTE_POINTER, types.int64, types.int64), codegen


@intrinsic
def _wrap32(typingctx: Any, value: Any) -> Any:
    """The low 32 bits, sign-extended."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sext(builder.trunc(arguments[0], ir.IntType(32)), ir.IntType(64))

    return types.int64(types.int64), codegen


@intrinsic
def _add64(typingctx: Any, left: Any, right: Any) -> Any:
    """A sum that may overflow."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.add(*arguments)

    return types.int64(types.int64, types.int64), codegen


def _has_crc32c() -> bool:
    features = llvm.get_host_cpu_features()
    if platform.machine() in ("x86_64", "AMD64"):
        return bool(features.get("sse4.2"))
    return platform.machine() in ("arm64", "aarch64") and bool(features.get("crc", platform.system() == "Darwin"))


@intrinsic
def _crc32c_word(typingctx: Any, crc: Any, word: Any) -> Any:
    """CRC-32C of 8 more bytes by the processor's own instruction; only reached where `has_crc32c` is 1."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        i32, i64 = ir.IntType(32), ir.IntType(64)
        crc, word = arguments
        if not _has_crc32c():
            return ir.Constant(i64, 0)
        if platform.machine() in ("x86_64", "AMD64"):
            name, narrow, wide = "llvm.x86.sse42.crc32.64.64", crc, i64
        else:
            name, narrow, wide = "llvm.aarch64.crc32cx", builder.trunc(crc, i32), i32
        instruction = builder.module.declare_intrinsic(name, (), ir.FunctionType(wide, [wide, i64]))
        result = builder.call(instruction, [narrow, word])
        return result if wide is i64 else builder.zext(result, i64)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _has_crc32c_constant(typingctx: Any) -> Any:
    """1 where the processor computes CRC-32C itself, decided when the kernels are compiled for it."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(ir.IntType(64), int(_has_crc32c()))

    return types.int64(), codegen


_INTRINSICS = {
    "load64": _load64,
    "wrap32": _wrap32,
    "add64": _add64,
    "store64": _store64,
    "has_crc32c": _has_crc32c_constant,
    "crc32c_word": _crc32c_word,
}
