"""What a topic may be configured to, beside the check of a broker (`LogConfig.validate`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.config.topic import KAFKA_VERSION
from logstore.errors import InvalidConfigurationError
from logstore.store.metadata.topic_configs import require_valid_config
from tests.support.judges import judged
from tests.support.oracle import Oracle

pytestmark = [pytest.mark.kafka, pytest.mark.by_release]

DEFAULTS = {"retention.ms": "604800000", "max.compaction.lag.ms": "100000"}
LEADER, FOLLOWER = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
VALUES = {
    "cleanup.policy": [
        "",
        "compact",
        "compact,delete",
        "delete,delete",
        "compact,",
        " compact",
        "\u00a0compact",
        "foo",
        "COMPACT",
    ],
    "compression.gzip.level": ["-1", "0", "9", "10", "x"],
    "compression.type": ["zstd", "GZIP", "none", ""],
    "compression.zstd.level": ["-131072", "-131073", "23"],
    "errors.deadletterqueue.group.enable": ["true", "TRUE", "maybe"],
    "file.delete.delay.ms": ["0", "-1"],
    "flush.messages": ["0", "1"],
    "flush.ms": ["-1", "0"],
    FOLLOWER: ["x", "0:1,1:2", "*", "*,*", "0:1,*", "", "0:1,,1:1", "0:1:2", "x,x", " 0:1 , 1:1 "],
    "index.interval.bytes": ["-1", "0"],
    "internal.segment.bytes": ["100"],
    LEADER: ["x", "0:1", "*", "-1:1", "1:b,x"],
    "local.retention.bytes": ["-3", "-2", "9999999999"],
    "local.retention.ms": ["-3", "9999999999"],
    "max.decompressed.message.bytes": ["0", "1", "-1", "2147483639", "2147483640", "2147483648", "x"],
    "max.message.bytes": ["-1", "0"],
    "message.format.version": ["2.0"],
    "message.timestamp.before.max.ms": ["-1"],
    "message.timestamp.type": ["CreateTime", "logappendtime"],
    "min.cleanable.dirty.ratio": ["1.5", "0", "1", "x", "nan", "NaN", ".5f", "0.5_0", "\u0661", "1\u2003"],
    "min.compaction.lag.ms": ["100000", "100001"],
    "min.insync.replicas": ["0", "2"],
    "preallocate": ["TRUE", " true", "yes"],
    "remote.copy.lag.bytes": ["-2", "-1", "0", "9223372036854775808"],
    "remote.copy.lag.ms": ["-2", "-1", "0", "604800000", "604800001", "x"],
    "remote.log.copy.disable": ["true", "maybe"],
    "remote.log.delete.on.disable": ["true"],
    "remote.storage.enable": ["true", "false", "TRUE", "x"],
    "retention.bytes": ["-5", "0"],
    "retention.ms": [" 5 ", "+5", "-2", "1e3", "5_0", "5\u00a0", "\x00\x1c5"],
    "segment.bytes": ["2147483648", "1048576", "1048575"],
    "segment.index.bytes": ["1", "4"],
    "segment.jitter.ms": ["9999999999999"],
    "segment.ms": ["0"],
    "unclean.leader.election.enable": ["maybe"],
    "no.such.config": ["1"],
}
BOTH: list[tuple[dict[str, str], dict[str, str]]] = [
    ({"remote.copy.lag.ms": "6", "local.retention.ms": "5"}, {}),
    ({"remote.copy.lag.ms": "6", "retention.ms": "5"}, {}),
    ({"remote.copy.lag.bytes": "6", "local.retention.bytes": "5"}, {}),
    ({"remote.copy.lag.bytes": "6", "retention.bytes": "5"}, {}),
    ({"remote.copy.lag.ms": "-1", "local.retention.ms": "5", "retention.ms": "9"}, {}),
    ({"remote.storage.enable": "true", "remote.copy.lag.ms": "6", "local.retention.ms": "5"}, {}),
    ({"remote.storage.enable": "true", "remote.copy.lag.bytes": "6", "local.retention.bytes": "5"}, {}),
    ({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}, {}),
    ({"remote.storage.enable": "true", "cleanup.policy": "compact"}, {}),
    ({"remote.storage.enable": "false"}, {"remote.storage.enable": "true"}),
    ({}, {"remote.storage.enable": "true"}),
    ({"remote.log.delete.on.disable": "true"}, {"remote.storage.enable": "true"}),
    ({"remote.storage.enable": "true", "retention.ms": "5"}, {"remote.storage.enable": "true"}),
]
CASES: list[tuple[dict[str, str], dict[str, str]]] = [
    ({name: value}, {}) for name, values in VALUES.items() for value in values
] + BOTH


def _refusal(values: dict[str, str], present: dict[str, str]) -> str | None:
    try:
        require_valid_config("t", values, defaults={**DEFAULTS, KAFKA_VERSION: judged().name}, present=present)
    except InvalidConfigurationError as error:
        return error.message
    return None


def test_configurations_of_topics_are_refused_as_a_broker_does(oracle: Oracle, tmp_path: Path) -> None:
    questions = [{"values": values, "present": present, "defaults": DEFAULTS} for values, present in CASES]
    answers = oracle.answers("TopicConfigs", questions=questions, cwd=tmp_path)
    ours = [_refusal(values, present) for values, present in CASES]
    assert list(zip(CASES, ours, strict=True)) == list(zip(CASES, answers, strict=True))
