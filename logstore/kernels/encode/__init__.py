"""Columns of records to the bytes of v2 batches: first measured, then written."""
