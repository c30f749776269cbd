"""Reads a client's configuration by its definitions, under Kafka's dotted names or Python's with underscores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from ..log.config_definition import CONFIG_EXCEPTION, Definition, invalid, value_of


def read_config(
    definitions: Mapping[str, Definition], values: Mapping[str, Any], client: str
) -> tuple[dict[str, Any], frozenset[str]]:
    """Every definition's value, and the names that were given.

    None stands for a name that is not given. Raises UsageError for an unknown name, one that is given twice, and a
    value that does not do.
    """
    given: dict[str, Any] = {}
    for name, value in values.items():
        dotted = name.replace("_", ".")
        if dotted not in definitions:
            raise UsageError(
                f"Unknown {client} config name: {name}",
                java_class=CONFIG_EXCEPTION,
                advice=f"known are {', '.join(sorted(definitions))}",
            )
        if dotted in given:
            raise UsageError(f"{dotted} is given twice", java_class=CONFIG_EXCEPTION)
        if value is not None:
            given[dotted] = ",".join(value) if isinstance(value, list | tuple) else value
    config = {
        name: value_of(name, definition, given[name]) if name in given else definition.default
        for name, definition in definitions.items()
    }
    return config, frozenset(given)


def non_empty(name: str, value: str) -> None:
    """The check of `ConfigDef.NonEmptyString`."""
    if not value:
        raise invalid(name, value, "String must be non-empty")
