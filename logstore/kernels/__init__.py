"""Hot loops: plain functions over buffers and ints, compiled ahead of time by numba, run without importing it.

A kernel takes buffers, structs and ints, fills out-buffers and returns an int64 (a status, a count or a checksum). It
never raises and does no I/O but to write what an append made. `jit` tells how it runs.
"""
