"""State of internal topics, replayed from their records: metadata, group offsets, transactions."""
