"""Decompression of LZ4 and snappy as Kafka writes them, many streams per call."""
