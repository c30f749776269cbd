"""Configurations of topics that make much happen in little data."""

from __future__ import annotations

from tests.support.dice import Dice

CODECS = ("none", "none", "gzip", "snappy", "lz4", "zstd")
TIERED_SETTINGS = {  # of every other topic of tiered brokers: segments stay here as briefly as can be
    "remote.storage.enable": "true",
    "cleanup.policy": "delete",
    "local.retention.bytes": "1000",
    "retention.bytes": "-1",
}


def topic_settings(dice: Dice) -> dict[str, str]:
    """Small segments, of any cleanup policy."""
    config = {
        "cleanup.policy": dice.choose(("delete", "delete", "compact", "compact", "compact,delete")),
        "internal.segment.bytes": str(dice.choose((300, 1000, 1000, 4000, 100_000))),
        # Kafka writes segments that overlap where a follower's append of many batches finds an index full
        "segment.index.bytes": str(dice.choose((4096, 65_536))),
        "index.interval.bytes": str(dice.choose((1, 100, 300, 4096))),
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": str(dice.choose((0, 1, 500, 86_400_000))),
        "file.delete.delay.ms": str(dice.choose((0, 300, 60_000))),
    }
    rare = {
        "retention.ms": str(dice.choose((300, 2000))),
        "retention.bytes": str(dice.choose((1000, 5000))),
        "segment.ms": str(dice.choose((200, 1000))),
        "message.timestamp.type": "LogAppendTime",
        "compression.type": dice.choose(("gzip", "zstd", "lz4")),
        "flush.messages": "3",
        "max.compaction.lag.ms": "1000",
        "preallocate": "true",
    }
    return config | {name: value for name, value in rare.items() if dice.chance(15)}
