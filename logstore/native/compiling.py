"""Compiles declared kernels by numba's public interface into one LLVM module. Only a build imports it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from numba import cfunc, from_dtype, types

from .byte_type import BYTE_POINTER
from .kernel import ArgumentType, Kernel
from .library import SYMBOL_PREFIX

# symbols that may stay undefined: LLVM itself generates calls of them, and every C library has them
UNDEFINED = {"memcpy", "memmove", "memset"}
_TYPES = {"i64": types.int64, "u8*": BYTE_POINTER, "i64*": types.CPointer(types.int64)}
_OPTIMIZATION_LEVEL = 3


def compile_kernels(kernels: Iterable[Kernel], machine: Any) -> bytes:
    """Compile kernels into an object file with a C function for each.

    Args:
        machine: target machine of llvmlite.

    Raises:
        RuntimeError: symbols other than UNDEFINED stay undefined, because a kernel can raise or allocates.
    """
    library, exported = llvm.parse_assembly(""), set()
    for kernel in kernels:
        module, name = _compiled(kernel)
        symbol = module.get_function(name).name = f"{SYMBOL_PREFIX}{kernel.name}"
        exported.add(symbol)
        library.link_in(module)
    library.triple, library.data_layout = machine.triple, str(machine.target_data)
    for each in [*library.functions, *library.global_variables]:
        if not each.is_declaration and each.name not in exported:
            each.linkage = "internal"
    # removes numba's code that raises, which no kernel reaches and which calls functions of Python
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(_OPTIMIZATION_LEVEL))
    builder.getModulePassManager().run(library, builder)
    undefined = {each.name for each in library.functions if each.is_declaration and not each.name.startswith("llvm.")}
    if not undefined <= UNDEFINED:
        raise RuntimeError(f"kernels may not call {', '.join(sorted(undefined - UNDEFINED))}: they raise or allocate")
    content: bytes = machine.emit_object(library)
    return content


def _compiled(kernel: Kernel) -> tuple[Any, str]:
    """Compile a kernel into an LLVM module; returns that and the name of its C function."""
    signature = types.int64(*map(_numba_type, kernel.argument_types))
    compiled = cfunc(signature, nopython=True, error_model="numpy")(kernel.function)
    return llvm.parse_assembly(compiled.inspect_llvm()), compiled.native_name


def _numba_type(kind: ArgumentType) -> Any:
    if isinstance(kind, str):
        return _TYPES[kind]
    return from_dtype(np.dtype([(name, np.int64) for name in kind.kinds], align=True))
