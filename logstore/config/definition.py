"""Definitions of configurations as data: how text is parsed, and which values are valid (`ConfigDef`).

>>> value_of("retries", Definition(as_int, 5, between(0)), " 7 ")
7
>>> value_of("retries", Definition(as_int, 5, between(0)), "-7")
Traceback (most recent call last):
logstore.errors.UsageError: Invalid value -7 for configuration retries: Value must be at least 0
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from ..errors import UsageError
from ..layout.java_integer import parse_int, parse_long
from ..layout.utf8 import is_unicode
from ..model import LEVELS, Codec

CONFIG_EXCEPTION = "org.apache.kafka.common.config.ConfigException"

_SPACES = "".join(map(chr, range(0x21)))  # what Java's `String.trim` removes; a no-break space stays
_DOUBLE = re.compile(r"[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)", re.ASCII)


class Definition(NamedTuple):
    """One configuration: its parser, its default, and the check of a given value.

    Spaces around text are ignored, but a refusal quotes the text with them (`ConfigDef.parseType`). A Kafka older than
    `since` does not know it.
    """

    parse: Callable[[str, str], Any]
    default: Any
    check: Callable[[str, Any], None] = lambda name, value: None
    since: str | None = None


def nearest(name: str, names: Iterable[str]) -> str:
    """Return advice for an unknown name: the ones that it begins, or those that are close to it, or where all stand.

    >>> nearest("retention", ["flush.ms", "retention.ms"]), nearest("a", ["flush.ms"])
    ('did you mean retention.ms?', 'see the page of the configurations')
    """
    names = sorted(names)
    close = [known for known in names if known.startswith(f"{name}.")] or get_close_matches(name, names)
    return f"did you mean {' or '.join(close)}?" if close else "see the page of the configurations"


def value_of(name: str, definition: Definition, given: Any) -> Any:
    """Parse and check a given value, text or a Python value; raise UsageError in Kafka's words."""
    value = definition.parse(name, text_of(given))
    definition.check(name, value)
    return value


def text_of(value: Any) -> str:
    """Return a value as text, as records of configurations have it.

    >>> text_of(True), text_of(["compact", "delete"]), text_of(5)
    ('true', 'compact,delete', '5')
    """
    if isinstance(value, bool):
        return str(value).lower()
    # the exact types: a `KafkaVersion` is a tuple too, and has a text of its own
    return ",".join(map(str, value)) if type(value) in (list, tuple) else str(value)


def values_of(definitions: Mapping[str, Definition], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given value or the default of each definition; raises as `value_of`."""
    return {
        name: value_of(name, definition, given[name]) if name in given else definition.default
        for name, definition in definitions.items()
    }


def as_int(name: str, text: str) -> int:
    """Parse type INT."""
    return _number(name, text, parse_int(text.strip(_SPACES)), "INT")


def as_long(name: str, text: str) -> int:
    """Parse type LONG."""
    return _number(name, text, parse_long(text.strip(_SPACES)), "LONG")


def _number(name: str, text: str, value: int | None, kind: str) -> int:
    if value is None:
        raise invalid(name, text, f"Not a number of type {kind}")
    return value


def as_double(name: str, text: str) -> float:
    """Parse type DOUBLE; Java's hexadecimal form is refused."""
    trimmed = text.strip(_SPACES)
    if not _DOUBLE.fullmatch(trimmed):
        raise invalid(name, text, "Not a number of type DOUBLE")
    return float(trimmed.rstrip("fFdD"))


def as_boolean(name: str, text: str) -> bool:
    """Parse type BOOLEAN."""
    lower = text.strip(_SPACES).lower()
    if lower not in ("true", "false"):
        raise invalid(name, text, "Expected value to be either true or false")
    return lower == "true"


def as_string(name: str, text: str) -> str:
    """Parse type STRING."""
    if not is_unicode(text):  # it would be refused when a record of a coordinator is written, for the whole group
        raise invalid(name, ascii(text), "Not a Unicode text")
    return text.strip(_SPACES)


def as_list(name: str, text: str) -> list[str]:
    """Parse type LIST; an item that stands twice counts once."""
    return list(dict.fromkeys(list_items(text)))


def list_items(text: str) -> list[str]:
    """Return the items of a list as text, without the spaces around them."""
    trimmed = text.strip(_SPACES)
    return re.split(r"\s*,\s*", trimmed, flags=re.ASCII) if trimmed else []


def invalid(name: str, value: object, problem: str) -> UsageError:
    """Return Kafka's `ConfigException` for a name, a value and what is wrong with it."""
    return UsageError(f"Invalid value {value} for configuration {name}: {problem}", java_class=CONFIG_EXCEPTION)


def between(least: float | None, most: float | None = None) -> Callable[[str, Any], None]:
    """Return the check of `ConfigDef.Range`."""

    def check(name: str, value: float) -> None:
        if least is not None and value < least:
            raise invalid(name, value, f"Value must be at least {least}")
        if most is not None and value > most:
            raise invalid(name, value, f"Value must be no more than {most}")

    return check


def level_of(codec: Codec) -> Definition:
    """Return the definition of `compression.<codec>.level`; gzip's default is outside of its range."""
    least, most, default = LEVELS[codec]

    def check(name: str, value: int) -> None:
        if value != default and not least <= value <= most:
            raise invalid(name, value, f"Value must be between {least} and {most} or equal to {default}")

    return Definition(as_int, default, between(least, most) if least <= default <= most else check)


def one_of(*choices: str) -> Callable[[str, Any], None]:
    """Return the check of `ConfigDef.ValidString`."""

    def check(name: str, value: str) -> None:
        if value not in choices:
            raise invalid(name, value, f"String must be one of: {', '.join(choices)}")

    return check


def all_of(*choices: str) -> Callable[[str, Any], None]:
    """Return the check of `ConfigDef.ValidList`."""
    check_one = one_of(*choices)

    def check(name: str, values: list[str]) -> None:
        for value in values:
            if not value:
                raise UsageError(f"Configuration '{name}' values must not be empty.", java_class=CONFIG_EXCEPTION)
            check_one(name, value)

    return check
