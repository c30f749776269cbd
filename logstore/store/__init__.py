"""A data directory as one object: its topics and partitions, its lock, its metadata log, and what runs beside."""
