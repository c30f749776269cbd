"""Hot loops: plain functions over buffers and ints, which numba compiles ahead of time and nothing imports at run time.

A kernel takes buffers and ints, fills out-buffers and returns an int64 (a status, a count or a checksum). It never
raises and does no I/O. See `native.kernel` for the two ways a kernel runs, `native.build` for how numba turns all
kernels into one shared library, `native.library` for how that library is found, checked and loaded.
"""
