"""The versions of Kafka that are known here, each as one value; what differs between them is asked of it.

Files of every older version are read by the newest one's rules, which only add. A version is named where Kafka's own
answer depends on it: what a tool prints of a file, what a log refuses, and what a new directory is given.

>>> V4_3.features["metadata.version"], level_name(33), kafka_version("4.4") is NEWEST
((7, 30), '4.4-IV2', True)
>>> default_levels(level_of_release("4.0"))
{'metadata.version': 25, 'group.version': 1, 'kraft.version': 1, 'transaction.version': 2}
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import UsageError

ELR_VERSION = "eligible.leader.replicas.version"
METADATA_VERSION = "metadata.version"
RAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"

#: the names of the levels of `metadata.version`, from 7 on (`MetadataVersion`)
_LEVEL_NAMES = (
    *("3.3-IV3", "3.4-IV0", "3.5-IV0", "3.5-IV1", "3.5-IV2", "3.6-IV0", "3.6-IV1", "3.6-IV2"),
    *("3.7-IV0", "3.7-IV1", "3.7-IV2", "3.7-IV3", "3.7-IV4", "3.8-IV0", "3.9-IV0"),
    *("4.0-IV0", "4.0-IV1", "4.0-IV2", "4.0-IV3", "4.1-IV0", "4.1-IV1", "4.2-IV0", "4.2-IV1", "4.3-IV0"),
    *("4.4-IV0", "4.4-IV1", "4.4-IV2"),
)
_LOWEST_LEVEL = 7
#: feature to the levels of `metadata.version` from which on a new cluster has its level 1, 2, … (`Feature`)
_DEFAULT_FROM = {
    ELR_VERSION: (26,),
    "group.version": (22,),
    RAFT_VERSION: (21,),
    "share.version": (28, 31),
    "streams.version": (29,),
    TRANSACTION_VERSION: (24, 24),
}


class KafkaVersion(NamedTuple):
    """What one version of Kafka knows and does.

    Attributes:
        name: as users name it, `4.4`.
        release: whose answers were recorded, and what its tools say to `--version`.
        highest_level: of `metadata.version`.
        bounds_messages: a message may have 10,000 tagged fields and arrays of 1,000,000 elements, and no more of either
            than bytes remain.
        bounds_records: a compressed batch with a record of a negative length, or of one above
            `max.decompressed.message.bytes`, is refused.
        names_transaction_states: the dump tool prints the names of transactions' states.
        transaction_index_version_size: bytes of the version of a `.txnindex` entry that are looked at, of two.
        cleans_to_high_watermark: a batch of which nothing is left stays, empty, where it ends at the high watermark,
            else where it ends its round of the cleaner.
        commits_topic_ids: the offsets of a transaction of version 2 have topic ids, which clients send (KIP-1319).
        trims_all_indexes: a close cuts odd bytes off the indexes of all segments, else of the active one.
        older_words: patterns of the newest version's messages, with the words of this version in their place.
    """

    name: str
    release: str
    highest_level: int
    bounds_messages: bool
    bounds_records: bool
    names_transaction_states: bool
    transaction_index_version_size: int
    cleans_to_high_watermark: bool
    commits_topic_ids: bool
    trims_all_indexes: bool
    older_words: tuple[tuple[re.Pattern[str], str], ...] = ()

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def number(self) -> tuple[int, ...]:
        """The name as numbers, which compare."""
        return tuple(map(int, self.name.split(".")))

    @property
    def features(self) -> dict[str, tuple[int, int]]:
        """Each feature to its lowest and highest level."""
        highest = default_levels(self.highest_level)
        return {name: (0, highest.get(name, 0)) for name in _DEFAULT_FROM} | {
            METADATA_VERSION: (_LOWEST_LEVEL, self.highest_level)
        }

    def knows_levels(self, features: Mapping[str, int]) -> bool:
        """Return whether this version knows all these levels of features."""
        bounds = ((self.features.get(name, (0, 0)), level) for name, level in features.items())
        return all(lowest <= level <= highest for (lowest, highest), level in bounds)

    def knows(self, since: str | None) -> bool:
        """Return whether this version has what came with the version named `since`; None was always there."""
        return since is None or tuple(map(int, since.split("."))) <= self.number

    def words(self, message: str) -> str:
        """Return a message in the words of this version."""
        for pattern, words in self.older_words:
            message = pattern.sub(words, message)
        return message

    def __str__(self) -> str:
        return self.name


V4_3 = KafkaVersion(
    name="4.3",
    release="4.3.1",
    highest_level=30,
    bounds_messages=False,
    bounds_records=False,
    names_transaction_states=False,
    transaction_index_version_size=1,
    cleans_to_high_watermark=False,
    commits_topic_ids=False,
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
    highest_level=33,
    bounds_messages=True,
    bounds_records=True,
    names_transaction_states=True,
    transaction_index_version_size=2,
    cleans_to_high_watermark=True,
    commits_topic_ids=True,
    trims_all_indexes=False,
)
VERSIONS = (V4_3, V4_4)
NEWEST = VERSIONS[-1]
#: what a new store is given: there is no way down from newer levels, and the installed broker may be an older one
OF_NEW_STORES = V4_3


def version_of_levels(features: Mapping[str, int]) -> KafkaVersion | None:
    """Return the oldest version that knows all these levels of features; None if no version does."""
    return next((version for version in VERSIONS if version.knows_levels(features)), None)


def unknown_levels(features: Mapping[str, int]) -> list[str]:
    """Return the levels of features that only a newer Kafka knows, in words.

    >>> unknown_levels({"metadata.version": 34, "share.version": 3, "group.version": 1})
    ['level 34', 'share.version of level 3']
    """
    known = NEWEST.features
    newer = {name: level for name, level in features.items() if level > known.get(name, (0, 0))[1]}
    return [
        f"level {level}" if name == METADATA_VERSION else f"{name} of level {level}" for name, level in newer.items()
    ]


def default_levels(level: int) -> dict[str, int]:
    """Return the levels above 0 of a new cluster with this level of `metadata.version`, which comes first."""
    levels = {name: sum(level >= lowest for lowest in lowest_of) for name, lowest_of in _DEFAULT_FROM.items()}
    return {METADATA_VERSION: level} | {name: of_feature for name, of_feature in levels.items() if of_feature}


def level_name(level: int) -> str:
    """Return the name of a level of `metadata.version`, such as `4.4-IV2`, or the number of an unknown level."""
    place = level - _LOWEST_LEVEL
    return _LEVEL_NAMES[place] if 0 <= place < len(_LEVEL_NAMES) else str(level)


def level_of_release(release: str) -> int:
    """Return the level of `metadata.version` of a name such as `4.4-IV2`, or of a release such as `4.4`, its highest.

    Raises UsageError if no level has that name (`MetadataVersion.fromVersionString`).
    """
    of_release = [name for name in _LEVEL_NAMES if release in (name, name.partition("-")[0])]
    if not of_release:
        raise UsageError(
            f"Unknown metadata.version '{release}'. Supported metadata.version are: {', '.join(_LEVEL_NAMES)}",
            java_class="java.lang.IllegalArgumentException",
        )
    return _LOWEST_LEVEL + _LEVEL_NAMES.index(of_release[-1])


def kafka_version(name: Any) -> KafkaVersion:
    """Return the version of a name such as `4.4`; raises UsageError for another one."""
    for version in VERSIONS:
        if str(name) in (version.name, version.release):
            return version
    known = " or ".join(version.name for version in VERSIONS)
    raise UsageError("Unknown version of Kafka", expected=known, found=repr(str(name)))
