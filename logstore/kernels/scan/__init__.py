"""Converts the bytes of a `.log` to the rows of a batch table, and computes their checksums."""
