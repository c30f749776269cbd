"""Bytes of a `.log` to the rows of a batch table, and the checksum that they are checked by."""
