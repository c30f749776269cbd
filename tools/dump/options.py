"""The command line of `logstore dump`: Kafka's options, parsed as Kafka's tool parses them, and options beyond them.

Kafka's tools use JOpt Simple 5. Options may not be abbreviated; `--name=value`, `--name value` and `-name value` are
the same; `--` ends the options; a repeated option is an error only when its single value is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from logstore.config.kafka_version import NEWEST, KafkaVersion, kafka_version
from logstore.disk.names import normal_path
from logstore.errors import LogstoreError, UsageError

if TYPE_CHECKING:
    from .decoders import MessageParser
    from .filters import RecordFilter

MAX_BYTES_DEFAULT = 2**31 - 1
MAX_MESSAGE_SIZE_DEFAULT = 5 * 1024 * 1024
STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"
FORMATS = ("text", "json", "arrow", "parquet")

# whether an option takes a value
NONE, OPTIONAL, REQUIRED = "none", "optional", "required"
KAFKA_OPTIONS = {
    "files": REQUIRED,
    "print-data-log": NONE,
    "deep-iteration": NONE,
    "skip-record-metadata": NONE,
    "max-message-size": REQUIRED,
    "max-bytes": REQUIRED,
    "value-decoder-class": OPTIONAL,
    "key-decoder-class": OPTIONAL,
    "offsets-decoder": NONE,
    "transaction-log-decoder": NONE,
    "cluster-metadata-decoder": NONE,
    "remote-log-metadata-decoder": NONE,
    "share-group-state-decoder": NONE,
    "index-sanity-check": NONE,
    "verify-index-only": NONE,
    "help": NONE,
    "version": NONE,
}
RECORD_OPTIONS = ("records", "key", "time")  # show records alone
FILTER_OPTIONS = ("offset", "time", "producer-id", "key", "transactional-id", "isolation-level")
OWN_OPTIONS = {"follow": NONE, "records": NONE, **dict.fromkeys(("format", "kafka-version", *FILTER_OPTIONS), REQUIRED)}

# decoders of whole records; the first that is given wins
_PARSERS = {
    "offsets-decoder": "offsets",
    "transaction-log-decoder": "transaction",
    "cluster-metadata-decoder": "cluster-metadata",
    "remote-log-metadata-decoder": "remote-log-metadata",
    "share-group-state-decoder": "share-group-state",
}
_DECODER_CLASSES = ("value-decoder-class", "key-decoder-class")
_JOPT = "joptsimple."


class DumpOptions:
    """A parsed command line. A wrong value raises when it is first asked for, as in Kafka's tool."""

    def __init__(self, argv: list[str], kinds: dict[str, str] = KAFKA_OPTIONS | OWN_OPTIONS) -> None:
        """Parse `argv`, the words after `dump`; raise UsageError with JOpt's class and message."""
        self.values: dict[str, list[str]] = {}  # of each option; [] for one without
        self.words: list[str] = []
        rest = list(argv)
        while rest:
            token = rest.pop(0)
            if token == "--":
                self.words += rest
                break
            if not _is_option(token):
                self.words.append(token)
                continue
            name, equals, value = token.removeprefix("--" if token.startswith("--") else "-").partition("=")
            if name not in kinds:
                if not token.startswith("--"):
                    name = token[1] if token[1] <= "\uffff" else "?"  # Java takes half of a surrogate pair
                raise _wrong(f"{name} is not a recognized option", "UnrecognizedOptionException")
            self._take(name, value if equals else None, rest, kinds[name])

    def _take(self, name: str, value: str | None, rest: list[str], kind: str) -> None:
        values = self.values.setdefault(name, [])
        if kind == NONE:
            return
        if value is not None:
            values.append(value)
        elif kind == REQUIRED:
            if not rest:
                raise _wrong(f"Option {name} requires an argument", "OptionMissingRequiredArgumentException")
            values.append(rest.pop(0))
        elif rest and not _is_option(rest[0]):
            values.append(rest.pop(0))

    def has(self, *names: str) -> bool:
        return any(name in self.values for name in names)

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return the only value of an option; raise UsageError for several."""
        values = self.values.get(name, [])
        if len(values) > 1:
            raise _wrong(
                f"Found multiple arguments for option {name}, but you asked for only one",
                "MultipleArgumentsForOptionException",
            )
        return values[0] if values else default

    def _int32(self, name: str, default: int) -> int:
        text = self.text(name)
        if text is None:
            return default
        from logstore.layout.java_integer import parse_int

        number = parse_int(text)
        if number is None:
            raise _wrong(f"Cannot parse argument '{text}' of option {name}", "OptionArgumentConversionException")
        return number

    @cached_property
    def files(self) -> list[str]:
        """`--files`, split as Java's `split(",")`, which drops empty parts at the end."""
        parts = (self.text("files") or "").split(",")
        while len(parts) > 1 and parts[-1] == "":
            parts.pop()
        return parts if parts != [""] or self.text("files") == "" else []

    @cached_property
    def named(self) -> frozenset[str]:
        """The normal paths of what is named; other files were found in a directory or by a glob."""
        return frozenset(map(normal_path, (*self.files, *self.words)))

    @cached_property
    def prints_contents(self) -> bool:
        """Whether keys and values are printed."""
        return self.is_record_table or self.has("print-data-log", *_PARSERS, *_DECODER_CLASSES)

    @cached_property
    def is_deep(self) -> bool:
        """Whether records are printed."""
        return self.prints_contents or not self.shows_batches or self.has("deep-iteration")

    @cached_property
    def shows_batches(self) -> bool:
        """Whether batches are printed; a filter on records shows records alone."""
        return not self.has(*RECORD_OPTIONS)

    @cached_property
    def is_record_table(self) -> bool:
        """Whether the rows are those of `logstore.dump(path, records=True)`."""
        return self.has("records") and self.format != "text"

    @cached_property
    def prints_by_kernel(self) -> bool:
        """Whether plain batches are printed one after another as text, which a kernel does."""
        return self.format == "text" and self.shows_batches and self.filter is None and not self.needs_python

    @cached_property
    def skips_metadata(self) -> bool:
        """Whether only keys and values of records are printed."""
        return self.has("skip-record-metadata")

    @cached_property
    def max_message_size(self) -> int:
        """Size in bytes of the slice in which an entry of an offset index is checked."""
        return self._int32("max-message-size", MAX_MESSAGE_SIZE_DEFAULT)

    @cached_property
    def max_bytes(self) -> int:
        """Number of bytes to read of a log file."""
        return self._int32("max-bytes", MAX_BYTES_DEFAULT)

    def end_of(self, size: int, path: str) -> int:
        """Return where to stop reading a log file of `size` bytes (`FileRecords.slice`)."""
        if self.max_bytes < 0:
            raise LogstoreError(
                f"Invalid size: {self.max_bytes} in read from FileRecords(size={size}, file={path}, start=0, "
                f"end={MAX_BYTES_DEFAULT})",
                java_class="java.lang.IllegalArgumentException",
            )
        return min(size, self.max_bytes)

    @cached_property
    def kafka_version(self) -> KafkaVersion:
        """The version whose tool answers; UsageError for one that is not known."""
        name = self.text("kafka-version")
        return NEWEST if name is None else kafka_version(name)

    @cached_property
    def parser(self) -> MessageParser | None:
        """Decoder of whole records, for internal topics."""
        given = [name for option, name in _PARSERS.items() if self.has(option)]
        if not given:
            return None
        from dataclasses import replace  # here, because a dump without decoders starts sooner without it

        from .decoders import ValueParser, parsers

        parse = parsers(self.kafka_version)[given[0]]
        return replace(parse, note=self.newer.add) if isinstance(parse, ValueParser) else parse

    @cached_property
    def newer(self) -> set[str]:
        """Levels of `metadata.version` in what was dumped that only a newer Kafka knows, in words."""
        return set()

    @cached_property
    def value_decoder(self) -> Callable[[bytes], str]:
        return self._decoder("value-decoder-class")

    @cached_property
    def key_decoder(self) -> Callable[[bytes], str]:
        return self._decoder("key-decoder-class")

    def _decoder(self, option: str) -> Callable[[bytes], str]:
        name = self.text(option, STRING_DECODER)
        if name is None or name == STRING_DECODER:
            from logstore.layout.utf8 import java_utf8

            return java_utf8  # without the imports of the other decoders
        from .decoders import decoder

        return decoder(name)

    def record_texts(self, offset: int, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
        """Return the texts that the decoders make of a record's key and value; None prints nothing."""
        if self.parser is not None:
            return self.parser(offset, key, value)
        key_text = None if key is None else self.key_decoder(key)
        return key_text, None if value is None else self.value_decoder(value)

    @cached_property
    def needs_python(self) -> bool:
        """Whether keys and values are printed otherwise than as UTF-8."""
        return self.parser is not None or any(
            self.text(name, STRING_DECODER) != STRING_DECODER for name in _DECODER_CLASSES
        )

    def check_log_options(self) -> None:
        """Find the decoders and `max_bytes`, as the tool does before each log file."""
        if self.needs_python and self.parser is None:
            _ = self.value_decoder, self.key_decoder
        _ = self.max_bytes

    @cached_property
    def filter(self) -> RecordFilter | None:
        """The filter of the records to print; None prints all."""
        if not self.has(*FILTER_OPTIONS):
            return None
        from .filters import RecordFilter

        return RecordFilter.of_texts(*map(self.text, FILTER_OPTIONS), follows=self.has("follow"))

    @cached_property
    def format(self) -> str:
        """One of FORMATS; UsageError for another word, or without a library that the format needs."""
        name = self.text("format", "text") or ""
        name = "json" if name == "jsonl" else name  # its name in the other commands
        if name not in FORMATS:
            raise UsageError("Unknown format", expected=f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}", found=repr(name))
        if name in ("arrow", "parquet"):
            from importlib.util import find_spec

            if find_spec("pyarrow") is None:
                raise UsageError(f"--format {name} needs pyarrow", advice="pip install 'logstore-kafka[arrow]'")
        return name

    def check_own(self) -> None:
        """Raise UsageError for a wrong value of an option beyond Kafka's, before anything is printed."""
        if self.format == "parquet" and self.has("follow"):
            raise UsageError("--follow has no end, which a Parquet file needs", advice="--format arrow")
        if self.is_record_table and self.skips_metadata:
            raise UsageError("--records shows the metadata of records", advice="leave out --skip-record-metadata")
        _ = self.filter, self.kafka_version


def _is_option(token: str) -> bool:
    return token.startswith("-") and token != "-"


def _wrong(message: str, java_class: str) -> UsageError:
    return UsageError(message, java_class=_JOPT + java_class)
