"""Writes the lines of `kafka-dump-log`."""
