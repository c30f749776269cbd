"""The versions of Kafka that are known here, each as one value; what differs between them is asked of it.

Files of every older version are read by the newest one's rules, which only add. A version is named where Kafka's own
answer depends on it: what a tool prints of a file, what a log refuses, and what a new directory is given.

>>> V4_3.features["metadata.version"], V4_4.level_name(33), kafka_version("4.4") is NEWEST
((7, 30), '4.4-IV2', True)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import UsageError

METADATA_VERSION = "metadata.version"
TRANSACTION_VERSION = "transaction.version"
SHARE_VERSION = "share.version"
RAFT_VERSION = "kraft.version"

#: the names of the levels of `metadata.version`, from 7 on (`MetadataVersion`)
_LEVEL_NAMES = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0"),
    *("4.4-IV0", "4.4-IV1", "4.4-IV2"),
)
_LOWEST_LEVEL = 7


class KafkaVersion(NamedTuple):
    """What one version of Kafka knows and does.

    Attributes:
        name: as users name it, `4.4`.
        release: whose answers were recorded, and what its tools say to `--version`.
        features: each feature to its lowest and highest level.
        bounds_messages: a message may have 10,000 tagged fields and arrays of 1,000,000 elements, and no more of either
            than bytes remain.
        names_transaction_states: the dump tool prints the names of transactions' states.
        transaction_index_version_size: bytes of the version of a `.txnindex` entry that are looked at, of two.
        cleans_to_high_watermark: a batch of which nothing is left stays, empty, where it ends at the high watermark,
            else where it ends its round of the cleaner.
        trims_all_indexes: a close cuts odd bytes off the indexes of all segments, else of the active one.
        older_words: patterns of the newest version's messages, with the words of this version in their place.
    """

    name: str
    release: str
    features: Mapping[str, tuple[int, int]]
    bounds_messages: bool
    names_transaction_states: bool
    transaction_index_version_size: int
    cleans_to_high_watermark: bool
    trims_all_indexes: bool
    older_words: tuple[tuple[re.Pattern[str], str], ...] = ()

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def number(self) -> tuple[int, ...]:
        """The name as numbers, which compare."""
        return tuple(map(int, self.name.split(".")))

    @property
    def highest_level(self) -> int:
        """The highest level of `metadata.version`."""
        return self.features[METADATA_VERSION][1]

    def knows(self, since: str | None) -> bool:
        """Return whether this version has what came with the version named `since`; None was always there."""
        return since is None or tuple(map(int, since.split("."))) <= self.number

    def level_name(self, level: int) -> str:
        """Return the name of a level of `metadata.version`, or the number of an unknown one."""
        place = level - _LOWEST_LEVEL
        return _LEVEL_NAMES[place] if 0 <= place < len(_LEVEL_NAMES) else str(level)

    def words(self, message: str) -> str:
        """Return a message in the words of this version."""
        for pattern, words in self.older_words:
            message = pattern.sub(words, message)
        return message

    def __str__(self) -> str:
        return self.name


_FEATURES_4_3 = {
    "eligible.leader.replicas.version": (0, 1),
    "group.version": (0, 1),
    RAFT_VERSION: (0, 1),
    METADATA_VERSION: (_LOWEST_LEVEL, 30),
    SHARE_VERSION: (0, 1),
    "streams.version": (0, 1),
    TRANSACTION_VERSION: (0, 2),
}

V4_3 = KafkaVersion(
    name="4.3",
    release="4.3.1",
    features=_FEATURES_4_3,
    bounds_messages=False,
    names_transaction_states=False,
    transaction_index_version_size=1,
    cleans_to_high_watermark=False,
    trims_all_indexes=True,
    older_words=(
        (
            re.compile(r"Invalid record size: -\d+ is negative\."),
            "Incorrect declared batch size, premature EOF reached",
        ),
        (re.compile(r"(?<=in append to) (?=partition [^\s,]+ which exceeds)"), ""),
        (re.compile(r"(?<=for new epoch of producer )(-?\d+) (?=at offset)"), r"\1"),
    ),
)
V4_4 = KafkaVersion(
    name="4.4",
    release="4.4.0",
    features={**_FEATURES_4_3, METADATA_VERSION: (_LOWEST_LEVEL, 33), SHARE_VERSION: (0, 2)},
    bounds_messages=True,
    names_transaction_states=True,
    transaction_index_version_size=2,
    cleans_to_high_watermark=True,
    trims_all_indexes=False,
)
VERSIONS = (V4_3, V4_4)
NEWEST = VERSIONS[-1]
#: what a new store is given: there is no way down from newer levels, and the installed broker may be an older one
OF_NEW_STORES = V4_3


def version_of_levels(features: Mapping[str, int]) -> KafkaVersion | None:
    """Return the oldest version that knows all these levels of features; None if no version does."""
    for version in VERSIONS:
        known = version.features
        if all(known.get(name, (0, 0))[0] <= level <= known.get(name, (0, 0))[1] for name, level in features.items()):
            return version
    return None


def kafka_version(name: Any) -> KafkaVersion:
    """Return the version of a name such as `4.4`; raises UsageError for another one."""
    for version in VERSIONS:
        if str(name) in (version.name, version.release):
            return version
    known = " or ".join(version.name for version in VERSIONS)
    raise UsageError("Unknown version of Kafka", expected=known, found=repr(str(name)))
