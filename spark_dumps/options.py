"""The options of the data source, parsed and checked before anything is read.

Names and forms are those of Spark's Kafka source where it has the option. An unknown name is refused: with a mistyped
bound a query would read everything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import pyarrow as pa

from logstore.disk import objects
from logstore.errors import LogstoreError, UsageError
from logstore.layout.file_names import METADATA_TOPIC, directory_name
from logstore.topics import INTERNAL_TOPICS

from .locations import readable_path, split_paths, without_properties
from .network_options import IGNORE_OPTION, network_options, pass_over

STORAGE = "storage."  # begins the names of obstore's options
EARLIEST, LATEST = -2, -1  # as in the Kafka source's JSON
TOPIC_ID = "topicId"  # beside the partitions of a topic, whose names are numbers
KAFKAS_TOPICS = INTERNAL_TOPICS | {METADATA_TOPIC}  # only Kafka itself writes to them
_UNASKED_TOPICS = KAFKAS_TOPICS | {"__remote_log_metadata"}  # the last is of brokers too, but any consumer may read it

READ_COMMITTED = "read_committed"
READ_UNCOMMITTED = "read_uncommitted"


class Mode(Enum):
    """The effect of a damaged segment on a read (`Options.damage_rows`)."""

    FAILFAST = "FAILFAST"
    PERMISSIVE = "PERMISSIVE"
    DROPMALFORMED = "DROPMALFORMED"


@dataclass(frozen=True, slots=True)
class Bound:
    """The start or the end of a read.

    Attributes:
        number: an offset, `EARLIEST` or `LATEST`; for all partitions, or by (topic, partition).
        is_time: `number` is ms since 1970, and means the offset of the first record at or after it.
        topic_ids: by topic, that of which an offset is meant, as the progress of a query has it.
    """

    number: int | Mapping[tuple[str, int], int]
    is_time: bool = False
    topic_ids: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """The partitions that are read: by default all except those of Kafka's own topics, else as one of the fields says.

    A user's topic may begin with `__` too, as that of Debezium's heartbeats does.

    Attributes:
        pattern: regular expression to be found in the name of the topic; never matches internal topics (`Topic`).
        is_everything: internal topics included.
    """

    topics: frozenset[str] | None = None
    pattern: str | None = None
    is_everything: bool = False
    partitions: frozenset[tuple[str, int]] | None = None

    def accepts(self, topic: str, partition: int) -> bool:
        if self.topics is not None:
            return topic in self.topics
        if self.partitions is not None:
            return (topic, partition) in self.partitions
        if self.is_everything:
            return True
        if self.pattern is not None:
            return topic not in KAFKAS_TOPICS and re.search(self.pattern, topic) is not None
        return topic not in _UNASKED_TOPICS


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a read, checked; `source` describes them."""

    paths: tuple[str, ...]
    table: str
    choice: TopicChoice
    starting: Bound
    ending: Bound
    starting_without_match: str
    isolation_level: str
    mode: Mode
    corrupt_column: str
    include_headers: bool
    fail_on_data_loss: bool
    producer_ids: frozenset[int] | None
    partition_count_min: int | None
    trigger_record_count_max: int | None
    now_ms: int | None
    storage: tuple[tuple[str, str], ...] = ()

    @property
    def reads_everything(self) -> bool:
        """Whether no bound leaves anything out."""
        return (self.starting, self.ending) == (Bound(EARLIEST), Bound(LATEST))

    def open_stores(self) -> None:
        """Let this process read URLs as the options say."""
        objects.configure(dict(self.storage))

    def shows_damage(self, columns: Collection[str]) -> bool:
        """Return whether rows of these columns tell of damage."""
        return self.mode is Mode.PERMISSIVE and self.corrupt_column in columns

    def damage_rows(
        self, error: LogstoreError, topic: str, partition: int, schema: pa.Schema
    ) -> Iterator[pa.RecordBatch]:
        """Handle damage as the mode says: FAILFAST raises it, the other modes skip it.

        PERMISSIVE yields a row with topic, partition, offset and error, all else null, if `schema` has the column.
        """
        if self.mode is Mode.FAILFAST:
            raise error
        if self.shows_damage(schema.names):
            known = {"topic": topic, "partition": partition, "offset": error.offset, self.corrupt_column: str(error)}
            yield pa.RecordBatch.from_pylist([{name: known.get(name) for name in schema.names}], schema=schema)


def parse_options(given: Mapping[str, str], *, is_stream: bool | None = False) -> Options:
    """Parse the options of a read.

    Args:
        given: as Spark passes them; names in any case.
        is_stream: starts at the latest offsets, also by default, and has no end; None: Spark does not tell yet.

    Raises:
        UsageError: an unknown name, a wrong value, two options that exclude each other, or bounds of a batch that
            leave nothing between them.
    """
    reader = OptionReader(given, _NAMES.split())
    endings = sorted(name for name in given if name.lower().startswith("ending"))
    if is_stream and endings:
        raise UsageError(f"a stream takes no {endings[0]}", advice="read without readStream, or use AvailableNow")
    table = reader.values.get("table", "records")
    if table not in RANGE_TABLES:
        _refuse_ranges(given, table)
    starting = reader.bound("starting", LATEST if is_stream else EARLIEST)
    ending = reader.bound("ending", LATEST)
    if is_stream is False:
        _require_room(starting, ending)
    return Options(
        paths=reader.paths(),
        table=table,
        choice=reader.choice(),
        starting=starting,
        ending=ending,
        starting_without_match=reader.word("startingOffsetsByTimestampStrategy", "error", {"error", "latest"}),
        isolation_level=reader.isolation_level(),
        mode=Mode(reader.word("mode", Mode.FAILFAST.value, {mode.value for mode in Mode}, str.upper)),
        corrupt_column=reader.values.get("columnnameofcorruptrecord", "_corrupt_record"),
        include_headers=reader.boolean("includeHeaders", default=False),
        fail_on_data_loss=reader.boolean("failOnDataLoss", default=True),
        producer_ids=reader.numbers("producerIds"),
        partition_count_min=reader.positive("minPartitions"),
        now_ms=reader.positive("now"),
        storage=reader.storage,
        trigger_record_count_max=reader.positive("maxRecordsPerTrigger") or reader.positive("maxOffsetsPerTrigger"),
    )


_NAMES = (
    "path paths table subscribe subscribePattern assign startingOffsets endingOffsets startingTimestamp "
    "endingTimestamp startingOffsetsByTimestamp endingOffsetsByTimestamp startingOffsetsByTimestampStrategy "
    "isolation_level kafka.isolation.level mode columnNameOfCorruptRecord includeHeaders failOnDataLoss producerIds "
    f"minPartitions maxRecordsPerTrigger maxOffsetsPerTrigger now {IGNORE_OPTION}"
)
RANGE_TABLES = ("records", "batches")  # the tables that take bounds and producers


def _refuse_ranges(given: Mapping[str, str], table: str) -> None:
    """Raise UsageError for an option that the table would not heed: its rows would not be what the user asked for."""
    for name in sorted(given):
        if name.lower().startswith(("starting", "ending", "producerids")):
            raise UsageError(
                f"table {table} takes no {name}",
                expected="it with table " + " or ".join(RANGE_TABLES),
                advice="leave it out, and filter the rows with where",
            )


def _require_room(starting: Bound, ending: Bound) -> None:
    """Raise UsageError for bounds between which no batch can have a record (`KafkaSourceProvider`)."""
    for bound, side, refused, word in (
        (starting, "starting", LATEST, "latest"),
        (ending, "ending", EARLIEST, "earliest"),
    ):
        if bound.is_time:
            continue
        numbers = {None: bound.number} if isinstance(bound.number, int) else bound.number
        for key in [key for key, number in numbers.items() if number == refused]:
            of_partition = f" of {directory_name(*key)}" if key is not None else ""
            raise UsageError(
                f"{side}Offsets{of_partition} cannot be {word} in a batch: there would be nothing to read",
                found=word,
                advice="read without it, or follow the directory with readStream",
            )
    first, last = starting.number, ending.number
    if starting.is_time and ending.is_time and isinstance(first, int) and isinstance(last, int) and first > last:
        raise UsageError(
            "the starting timestamp is above the ending timestamp", expected=f"at most {last}", found=first
        )


def _is_of_storage(name: str) -> bool:
    return name.lower().startswith(STORAGE)


class OptionReader:
    """Parses values of options.

    Attributes:
        values: the given texts, by lower-case name.
        storage: names and values of options that begin with `STORAGE`, without it.
    """

    def __init__(self, given: Mapping[str, str], known: Sequence[str]) -> None:
        """Raises UsageError for a name that is not in `known`, in any case."""
        given = without_properties(given)
        small = {name.lower() for name in known}
        pairs = [(name.lower().removeprefix(STORAGE), value) for name, value in given.items() if _is_of_storage(name)]
        self.storage = tuple(sorted(pairs))
        given = {name: value for name, value in given.items() if not _is_of_storage(name)}
        of_network = network_options(given, small)
        unknown = sorted(name for name in given if name.lower() not in small and name not in of_network)
        if unknown:
            raise UsageError(
                f"kafka_segments has no option {unknown[0]!r}", expected="one of " + ", ".join(known), found=unknown
            )
        self.values = {name.lower(): value for name, value in given.items() if name not in of_network}
        pass_over(of_network, is_ignored=self.boolean(IGNORE_OPTION, default=False))

    def paths(self) -> tuple[str, ...]:
        """Return the absolute paths of `path` (comma separated), or of a list given to `load`."""
        if "paths" in self.values:
            paths = _json("paths", self.values["paths"], list)
        else:
            paths = [path for path in split_paths(self.values.get("path", "")) if path.strip()]
        if not paths:
            advice = "give a data directory to load(), or .option('path', …)"
            if not self.values:  # Spark keeps a table's location and options, and plans its scan without them
                advice += "; of a table in the catalog Spark tells a source in Python nothing: CREATE TEMPORARY VIEW"
            raise UsageError("the path is missing", advice=advice)
        return tuple(readable_path(str(path).strip()) for path in paths)

    def choice(self) -> TopicChoice:
        """Return the choice by `subscribe`, `subscribePattern` or `assign`, of which at most one may be given."""
        given = [name for name in ("subscribe", "subscribePattern", "assign") if name.lower() in self.values]
        if len(given) > 1:
            raise UsageError(f"{given[0]} and {given[1]} exclude each other")
        if not given:
            return TopicChoice()
        text = self.values[given[0].lower()]
        if given == ["subscribe"]:
            choice = TopicChoice(topics=frozenset(name.strip() for name in text.split(",") if name.strip()))
        elif given == ["assign"]:
            choice = TopicChoice(partitions=frozenset(_assignment(text)))
        else:
            choice = TopicChoice(pattern=_pattern(text))
        if not (choice.topics or choice.pattern or choice.partitions):
            raise UsageError(f"{given[0]} is empty", found=text, advice="leave it out to read all topics")
        return choice

    def bound(self, side: str, default: int) -> Bound:
        """Return the first given of timestamp, offsets by timestamp and offsets, as in the Kafka source."""
        if f"{side}timestamp" in self.values:
            name = f"{side}Timestamp"
            return Bound(_whole_number(name, self.values[name.lower()], 0), is_time=True)
        if f"{side}offsetsbytimestamp" in self.values:
            name = f"{side}OffsetsByTimestamp"
            return Bound(parse_partition_numbers(name, self.values[name.lower()], 0), is_time=True)
        name = f"{side}Offsets"
        text = self.values.get(name.lower(), "").strip()
        places = {"": default, "earliest": EARLIEST, "latest": LATEST}
        if text.lower() in places:
            return Bound(places[text.lower()])
        numbers = parse_partition_numbers(name, text, EARLIEST)
        return Bound(numbers, topic_ids=ids_in(json.loads(text)))

    def isolation_level(self) -> str:
        """Return the isolation level, by `isolation_level` or by the name that Spark's Kafka source uses."""
        levels = {READ_COMMITTED, READ_UNCOMMITTED}
        default = self.word("kafka.isolation.level", READ_UNCOMMITTED, levels)
        return self.word("isolation_level", default, levels)

    def word(self, name: str, default: str, allowed: set[str], fold: Callable[[str], str] = str.lower) -> str:
        """Return a value that must be one of the `allowed` words."""
        value = fold(self.values.get(name.lower(), default).strip())
        if value not in allowed:
            raise UsageError(f"{name} cannot be that", expected=" or ".join(sorted(allowed)), found=value)
        return value

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return a value that must be `true` or `false`."""
        return self.word(name, str(default).lower(), {"true", "false"}) == "true"

    def positive(self, name: str) -> int | None:
        """Return a whole number of at least 1; None if the option is not given."""
        text = self.values.get(name.lower())
        return None if text is None else _whole_number(name, text, 1)

    def numbers(self, name: str) -> frozenset[int] | None:
        """Return comma-separated whole numbers of at least -1; None if the option is not given."""
        text = self.values.get(name.lower())
        return None if text is None else frozenset(_whole_number(name, one, -1) for one in text.split(","))


def parse_partition_numbers(name: str, text: str, least: int) -> dict[tuple[str, int], int]:
    """Parse `{"topic": {"0": 23}}`, perhaps with a `topicId`; return numbers by (topic, partition).

    Raises UsageError for another form, or a number below `least`.
    """
    numbers = {}
    for topic, by_partition in _json(name, text, dict).items():
        if not isinstance(by_partition, dict):
            raise UsageError(f"{name} cannot be that", expected='{"topic": {"0": 23}}', found=text)
        for partition, number in by_partition.items():
            if partition == TOPIC_ID:
                continue
            key = topic, _whole_number(f"a partition in {name}", partition, 0)
            numbers[key] = _whole_number(name, str(number), least)
    return numbers


def ids_in(offsets: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the topic ids by topic."""
    return {topic: found[TOPIC_ID] for topic, found in offsets.items() if TOPIC_ID in found}


def _assignment(text: str) -> list[tuple[str, int]]:
    chosen = []
    for topic, partitions in _json("assign", text, dict).items():
        if not isinstance(partitions, list):
            raise UsageError("assign cannot be that", expected='{"topic": [0, 1]}', found=text)
        chosen += [(topic, _whole_number("a partition in assign", str(partition), 0)) for partition in partitions]
    return chosen


def _json(name: str, text: str, kind: type) -> Any:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise UsageError(f"{name} is no JSON: {error}", found=text) from error
    if not isinstance(value, kind):
        raise UsageError(f"{name} cannot be that", expected=f"a JSON {kind.__name__}", found=text)
    return value


def _whole_number(name: str, text: str, least: int) -> int:
    if not re.fullmatch(r"-?\d{1,19}", text.strip()) or not least <= int(text) < 2**63:
        unit = " of milliseconds since 1970" if re.fullmatch(r"\w*Timestamp|now", name) else ""
        raise UsageError(f"{name} cannot be that", expected=f"a whole number from {least}{unit}", found=text)
    return int(text)


def _pattern(text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise UsageError(f"subscribePattern is no pattern: {error}", found=text) from error
    return text
