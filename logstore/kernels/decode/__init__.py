"""Decodes the records of v2 batches into the columns of record tables."""
