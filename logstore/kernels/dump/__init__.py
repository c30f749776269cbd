"""The text of `kafka-dump-log`, line by line."""
