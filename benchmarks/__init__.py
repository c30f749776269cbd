"""Benchmarks: tiny inside the test suite, at their real size by `make bench`."""
