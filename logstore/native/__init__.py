"""Compiles kernels: they are declared, built once into a shared library, and loaded by ctypes.

`kernel` declares kernels, `structs` the structs that they share with Python. `build` compiles all kernels of
`logstore.kernels` by numba into one ordinary shared library for a level of processor (`cpu`); `library` finds and loads
it. Only a build imports numba, and it uses only public interfaces: `numba.cfunc(...).inspect_llvm()`, llvmlite's
binding layer and ctypes.
"""
