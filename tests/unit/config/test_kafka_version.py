"""What differs between the versions of Kafka that are known, beside what `tests/kafka` asks of them."""

from __future__ import annotations

import pytest

from logstore.config.kafka_version import (
    NEWEST,
    V4_3,
    V4_4,
    VERSIONS,
    default_levels,
    kafka_version,
    level_name,
    level_of_release,
    version_of_levels,
)
from logstore.config.topic import parse_config
from logstore.errors import UsageError
from logstore.topics import family
from logstore.topics.cluster_metadata import encode_value
from logstore.topics.frames import write_value
from logstore_tools.dump.decoders import parsers


def test_versions_ascend_and_have_names() -> None:
    assert [version.number for version in VERSIONS] == sorted(version.number for version in VERSIONS)
    assert [kafka_version(version.name) for version in VERSIONS] == list(VERSIONS)
    assert kafka_version("4.4.0") is V4_4
    with pytest.raises(UsageError, match=r"expected 4\.3 or 4\.4.*found '4\.5'"):
        kafka_version("4.5")


def test_levels_belong_to_the_oldest_version_that_knows_them() -> None:
    assert version_of_levels({"metadata.version": 30, "share.version": 1}) is V4_3
    assert version_of_levels({"metadata.version": 30, "share.version": 2}) is V4_4
    assert version_of_levels({"metadata.version": 34}) is None
    assert [level_name(version.highest_level) for version in VERSIONS] == ["4.3-IV0", "4.4-IV2"]
    assert level_name(34) == "34"


def test_an_older_version_speaks_in_its_own_words() -> None:
    corrected = [
        "Invalid record size: -1 is negative.",
        "Message batch size is 9 bytes in append to partition t-0 which exceeds the maximum configured size of 1.",
        "Invalid sequence number for new epoch of producer 7 at offset 3 in partition t-0: 1 (request epoch)",
    ]
    assert [V4_4.words(one) for one in corrected] == corrected
    assert [V4_3.words(one) for one in corrected] == [
        "Incorrect declared batch size, premature EOF reached",
        "Message batch size is 9 bytes in append topartition t-0 which exceeds the maximum configured size of 1.",
        "Invalid sequence number for new epoch of producer 7at offset 3 in partition t-0: 1 (request epoch)",
    ]


def test_words_that_did_not_change_stay() -> None:
    same = (
        "Message batch size is 9 bytes in append to partition t-0, which exceeds the maximum configured segment size."
    )
    assert V4_3.words(same) == same


def test_only_4_4_knows_what_came_with_it() -> None:
    assert "UnregisterControllerRecord" not in family("cluster_metadata", V4_3)
    value = encode_value("UnregisterControllerRecord", {"controllerId": 3})
    assert parsers(V4_4)["cluster-metadata"](5, None, value) == (
        None,
        '{"type":"UNREGISTER_CONTROLLER_RECORD","version":0,"data":{"controllerId":3}}',
    )
    assert "Unknown metadata id 29" in str(parsers(V4_3)["cluster-metadata"](5, None, value)[1])
    assert parse_config({"logstore.kafka.version": "4.4", "max.decompressed.message.bytes": 5})
    with pytest.raises(UsageError, match=r"Unknown topic config name: max\.decompressed\.message\.bytes"):
        parse_config({"max.decompressed.message.bytes": 5})


def test_tags_of_4_4_are_skipped_by_4_3() -> None:
    value = write_value("consumer_offsets", 17, 0, {"epoch": 1, "metadataHash": 2, "failedDescriptionTopologyEpoch": 7})
    key = bytes.fromhex("0011 0001 67")
    assert str(parsers(V4_4)["offsets"](5, key, value)[1]).endswith('"failedDescriptionTopologyEpoch":7}}')
    assert "Topology" not in str(parsers(V4_3)["offsets"](5, key, value)[1])


def test_releases_have_levels() -> None:
    assert [level_of_release(name) for name in ("3.3-IV3", "3.7", "4.3", "4.4-IV1", "4.4")] == [7, 19, 30, 32, 33]
    assert default_levels(33)["share.version"] == NEWEST.features["share.version"][1] == 2
    for name in ("4.5", "4", "IV2", ""):
        with pytest.raises(UsageError, match=r"Unknown metadata.version .*4\.4-IV2"):
            level_of_release(name)
