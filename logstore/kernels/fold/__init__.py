"""Advances index entries, producer state and open transactions by the rows of a batch table."""
