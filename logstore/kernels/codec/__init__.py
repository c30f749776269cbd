"""Decompression of LZ4 and snappy as Kafka writes them, and of many streams in a call."""
