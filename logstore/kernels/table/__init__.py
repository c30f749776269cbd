"""Kernels over record tables: hashes and lookup of keys, headers, Arrow's byte strings."""
