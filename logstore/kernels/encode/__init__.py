"""Encodes columns of records as v2 batches: first measures, then writes."""
