"""Compression levels: the values that `compression.{gzip,lz4,zstd}.level` may have (`CompressionType`)."""

from __future__ import annotations

from typing import NamedTuple

from logstore.errors import UsageError
from logstore.model import Codec


class LevelRange(NamedTuple):
    """The levels of a codec; `default` is allowed although gzip's is not within the range."""

    least: int
    greatest: int
    default: int


LEVELS = {
    Codec.GZIP: LevelRange(1, 9, -1),
    Codec.LZ4: LevelRange(1, 17, 9),
    Codec.ZSTD: LevelRange(-131072, 22, 3),
}


def checked_level(codec: Codec, level: int | None) -> int:
    """Return `level`, or Kafka's default for None; 0 for a codec without levels.

    Raises:
        UsageError: a level that Kafka refuses, with its message.
    """
    levels = LEVELS.get(codec)
    if levels is None:
        if level is None:
            return 0
        raise UsageError(
            f"Compression levels are not defined for this compression type: {codec.kafka_name}",
            found=level,
            java_class="java.lang.UnsupportedOperationException",
        )
    if level is None:
        return levels.default
    if not levels.least <= level <= levels.greatest and level != levels.default:
        raise UsageError(
            f"{codec.kafka_name} doesn't support given compression level: {level}",
            expected=f"{levels.least} to {levels.greatest}, or {levels.default}",
            found=level,
            java_class="java.lang.IllegalArgumentException",
        )
    return level
