"""Maintenance of a running log: roll, flush, retention, and swaps of segments."""
