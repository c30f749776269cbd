"""Ahead-of-time compilation of the kernels of a module into an object file. Only it and what it imports know numba."""

from __future__ import annotations

import importlib
import types as python_types
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import compiler
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target

from .byte_pointer import BYTE_POINTER
from .c_intrinsics import C_INTRINSICS
from .crc_intrinsics import CRC_INTRINSICS
from .intrinsics import INTRINSICS
from .kernel import DEVICE_FUNCTIONS, INLINED, KERNELS, Constants, Kernel
from .native import symbol
from .python_function import add_python_function
from .write_intrinsics import WRITE_INTRINSICS

_NUMBA_TYPES = {"i64": types.int64, "u8*": BYTE_POINTER, "i64*": types.CPointer(types.int64)}
_INTRINSICS = {**INTRINSICS, **WRITE_INTRINSICS, **C_INTRINSICS, **CRC_INTRINSICS}


def compile_module(module: str) -> bytes:
    """All kernels of the module of this package, as a relocatable object file for the host processor."""
    name = importlib.import_module(f"{__package__}.{module}").__name__
    kernels = [kernel for kernel in KERNELS.values() if kernel.function.__module__ == name]
    with global_compiler_lock:
        return _compile(kernels)


def _compile(kernels: list[Kernel]) -> bytes:
    cache: dict[Callable[..., Any], Any] = {}
    library = cpu_target.target_context.codegen().create_library("logstore")
    library.enable_object_caching()
    for kernel in kernels:
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
    """A copy of `function` whose helpers are numba's: device functions jitted, intrinsics and constants swapped in."""
    names = dict(function.__globals__)
    for name in function.__code__.co_names:
        helper = names.get(name)
        if isinstance(helper, python_types.FunctionType) and helper in DEVICE_FUNCTIONS:
            if helper not in cache:
                cache[helper] = _compiled_helper(helper, cache)
            names[name] = cache[helper]
        elif isinstance(helper, Constants):
            names[name] = helper.array
    return python_types.FunctionType(function.__code__, names, function.__name__, function.__defaults__)


def _compiled_helper(helper: Callable[..., Any], cache: dict[Callable[..., Any], Any]) -> Any:
    form = DEVICE_FUNCTIONS[helper]
    if form in _INTRINSICS:
        return _INTRINSICS[form]
    options = {"forceinline": form == INLINED, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return njit(nogil=True, error_model="numpy", **options)(_with_compiled_globals(helper, cache))


def _c_wrapper(kernel: Kernel, target: str) -> ir.Module:
    """The function `i64 logstore_<name>(arguments)`, and the one that Python calls (see `python_function`).

    Around numba's calling convention, which has pointers to result and exception first.
    """
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
    add_python_function(module, outer, kernel.argument_types, symbol(f"python_{kernel.name}"))
    return module
