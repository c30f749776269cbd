"""Rules of a log for batches that are appended: its configuration as the checks need it (`LogConfig`).

>>> from logstore.config.topic import parse_config
>>> rules = ValidationRules.of(parse_config({"compression.type": "zstd", "cleanup.policy": "compact"}), "t-0")
>>> rules.target_codec(Codec.NONE).kafka_name, rules.level(Codec.ZSTD), rules.is_compacted
('zstd', 3, True)
"""

from __future__ import annotations

from dataclasses import dataclass

from ...config.topic import (
    ARRAY_SIZE_MAX,
    KAFKA_VERSION,
    MAX_DECOMPRESSED_MESSAGE_BYTES,
    LogConfig,
    is_compacted,
    segment_size_max,
)
from ...model import Codec, TimestampType

_CODECS = {"uncompressed": Codec.NONE, **{codec.kafka_name: codec for codec in Codec if codec}}


@dataclass(frozen=True, slots=True)
class ValidationRules:
    """The configuration that decides about an append; made anew when the configuration changes.

    Attributes:
        topic_partition: as Kafka's messages name it, `topic-0`.
        max_message_bytes: size of the largest batch, header included.
        record_size_max: length of the largest record of a compressed batch, which its own size excludes; 0 is any
            length, a negative one too, as Kafka 4.3 reads it.
        segment_size_max: bytes; no append may be larger.
        timestamp_type: CREATE_TIME or LOG_APPEND_TIME.
        timestamp_before_max_ms, timestamp_after_max_ms: how far a CreateTime may be from the broker's clock.
        is_compacted: `cleanup.policy` has compact, so records need keys.
        codec: codec in which batches are stored; None keeps that of the producer.
        levels: (codec, level) of the codecs that have levels.
    """

    topic_partition: str
    max_message_bytes: int
    record_size_max: int
    segment_size_max: int
    timestamp_type: TimestampType
    timestamp_before_max_ms: int
    timestamp_after_max_ms: int
    is_compacted: bool
    codec: Codec | None
    levels: tuple[tuple[Codec, int], ...]

    @classmethod
    def of(cls, config: LogConfig, topic_partition: str) -> ValidationRules:
        """Return the rules for a configuration of `config.parse_config`."""
        is_log_append_time = config["message.timestamp.type"] == TimestampType.LOG_APPEND_TIME.kafka_name
        levels = [
            (codec, config[f"compression.{codec.kafka_name}.level"]) for codec in (Codec.GZIP, Codec.LZ4, Codec.ZSTD)
        ]
        return cls(
            topic_partition=topic_partition,
            max_message_bytes=config["max.message.bytes"],
            record_size_max=config[MAX_DECOMPRESSED_MESSAGE_BYTES] if config[KAFKA_VERSION].bounds_records else 0,
            segment_size_max=segment_size_max(config),
            timestamp_type=TimestampType.LOG_APPEND_TIME if is_log_append_time else TimestampType.CREATE_TIME,
            timestamp_before_max_ms=config["message.timestamp.before.max.ms"],
            timestamp_after_max_ms=config["message.timestamp.after.max.ms"],
            is_compacted=is_compacted(config),
            codec=_CODECS.get(config["compression.type"]),
            levels=tuple(levels),
        )

    def limits_records(self, codec: Codec) -> bool:
        """Return whether records sent in `codec` may be too large, although their batch is not."""
        return codec is not Codec.NONE and 0 < self.record_size_max < ARRAY_SIZE_MAX

    def target_codec(self, source: Codec) -> Codec:
        """Return the codec that a batch sent in `source` is stored in (`BrokerCompressionType.targetCompression`)."""
        return source if self.codec is None else self.codec

    def level(self, codec: Codec) -> int | None:
        """Return the configured level; None for a codec without levels."""
        return dict(self.levels).get(codec)
