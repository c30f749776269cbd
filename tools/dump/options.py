"""The options of `logstore dump`: Kafka's, read as late as Kafka's tool reads them, and those beyond it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from logstore.errors import LogstoreError, UsageError

from .arguments import Arguments, parse_arguments

if TYPE_CHECKING:
    from .filters import RecordFilter

MAX_BYTES_DEFAULT = 2**31 - 1
MAX_MESSAGE_SIZE_DEFAULT = 5 * 1024 * 1024
STRING_DECODER = "org.apache.kafka.tools.api.StringDecoder"

KAFKA_OPTIONS = {
    "files": "required",
    "print-data-log": "none",
    "deep-iteration": "none",
    "skip-record-metadata": "none",
    "max-message-size": "required",
    "max-bytes": "required",
    "value-decoder-class": "optional",
    "key-decoder-class": "optional",
    "offsets-decoder": "none",
    "transaction-log-decoder": "none",
    "cluster-metadata-decoder": "none",
    "remote-log-metadata-decoder": "none",
    "share-group-state-decoder": "none",
    "index-sanity-check": "none",
    "verify-index-only": "none",
    "help": "none",
    "version": "none",
}
OWN_OPTIONS = {
    "format": "required",
    "offset": "required",
    "time": "required",
    "producer-id": "required",
    "key": "required",
}

# The first that is present wins.
_PARSERS = {
    "offsets-decoder": "offsets",
    "transaction-log-decoder": "transaction",
    "cluster-metadata-decoder": "cluster-metadata",
    "remote-log-metadata-decoder": "remote-log-metadata",
    "share-group-state-decoder": "share-group-state",
}


class DumpOptions:
    """A parsed command line; a wrong value is raised when it is first asked for, as in Kafka's tool."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        self.print_contents = any(
            arguments.has(name) for name in ("print-data-log", *_PARSERS, "value-decoder-class", "key-decoder-class")
        )
        self.is_deep = self.print_contents or arguments.has("deep-iteration")
        self.skip_record_metadata = arguments.has("skip-record-metadata")
        self.index_sanity_only = arguments.has("index-sanity-check")
        self.verify_only = arguments.has("verify-index-only")

    @classmethod
    def parse(cls, argv: list[str]) -> DumpOptions:
        """Options of the words after `dump`; UsageError as JOpt words it."""
        return cls(parse_arguments(argv, KAFKA_OPTIONS | OWN_OPTIONS))

    @property
    def kernel_flags(self) -> int:
        """What to print, as the kernels of `dump_text` want to know."""
        from logstore.kernels import dump_state

        flags = dump_state.DEEP if self.is_deep else 0
        flags |= dump_state.CONTENTS if self.print_contents else 0
        flags |= dump_state.PYTHON_RECORDS if self.needs_python else 0
        return flags | (dump_state.SKIP_METADATA if self.skip_record_metadata else 0)

    @cached_property
    def files(self) -> list[str]:
        """`--files`, split at commas as Java splits: empty parts at the end vanish."""
        parts = (self.arguments.text("files") or "").split(",")
        while len(parts) > 1 and parts[-1] == "":
            parts.pop()
        return parts if parts != [""] or self.arguments.text("files") == "" else []

    @cached_property
    def max_message_size(self) -> int:
        """Bytes of the slice that an offset index entry is checked in."""
        return self.arguments.int32("max-message-size", MAX_MESSAGE_SIZE_DEFAULT)

    @cached_property
    def max_bytes(self) -> int:
        """Bytes of a log file to read."""
        return self.arguments.int32("max-bytes", MAX_BYTES_DEFAULT)

    @cached_property
    def parser(self) -> Callable[[int, bytes | None, bytes | None], tuple[str | None, str | None]] | None:
        """Decoder of whole records, for internal topics."""
        for option, name in _PARSERS.items():
            if self.arguments.has(option):
                from .decoders import message_parser

                return message_parser(name)
        return None

    @cached_property
    def value_decoder(self) -> Callable[[bytes], str]:
        """Text of a value."""
        return self._decoder("value-decoder-class")

    @cached_property
    def key_decoder(self) -> Callable[[bytes], str]:
        """Text of a key."""
        return self._decoder("key-decoder-class")

    def _decoder(self, option: str) -> Callable[[bytes], str]:
        name = self.arguments.text(option, STRING_DECODER)
        if name is None or name == STRING_DECODER:
            from logstore.layout.utf8 import java_utf8

            return java_utf8  # what `decoders` has for it, and without all that the other decoders need
        from .decoders import decoder

        return decoder(name)

    def check_decoders(self) -> None:
        """Find the decoders, as the tool does before each log file."""
        if self.needs_python and self.parser is None:
            _ = self.value_decoder, self.key_decoder

    @property
    def needs_python(self) -> bool:
        """Whether the text of records is more than UTF-8."""
        names = ("value-decoder-class", "key-decoder-class")
        return self.parser is not None or any(
            self.arguments.text(name, STRING_DECODER) != STRING_DECODER for name in names
        )

    @cached_property
    def filter(self) -> RecordFilter | None:
        """Which records to print; None for all."""
        if not any(self.arguments.has(name) for name in ("offset", "time", "producer-id", "key")):
            return None
        from .filters import RecordFilter

        return RecordFilter.from_arguments(self.arguments)

    def check_own(self) -> None:
        """Raise what is wrong with the options that Kafka's tool does not have, before anything is printed."""
        _ = self.is_json, self.filter

    @cached_property
    def is_json(self) -> bool:
        """Whether to print one JSON object a line; UsageError for an unknown format."""
        name = self.arguments.text("format", "text")
        if name not in ("text", "json"):
            raise UsageError("Unknown format", expected="text or json", found=repr(name))
        return name == "json"

    def end_of(self, size: int, path: str) -> int:
        """Where to stop reading a log file of `size` bytes (`FileRecords.slice`)."""
        if self.max_bytes < 0:
            raise LogstoreError(
                f"Invalid size: {self.max_bytes} in read from FileRecords(size={size}, file={path}, start=0, "
                f"end={MAX_BYTES_DEFAULT})",
                java_class="java.lang.IllegalArgumentException",
            )
        return min(size, self.max_bytes)
