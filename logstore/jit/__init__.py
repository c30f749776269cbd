"""How a kernel becomes machine code: declared here, built once into a shared library, loaded by ctypes.

`kernel` declares kernels, `structs` the structs that they share with Python. `build` lets numba compile all kernels of
`logstore.kernels` into one ordinary shared library for a level of processor (`cpu`), `library` finds and loads it.
Only a build imports numba. Only public interfaces are used: `numba.cfunc(...).inspect_llvm()`, llvmlite's binding layer
and ctypes.
"""
