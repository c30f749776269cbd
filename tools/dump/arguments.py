"""Command line arguments as Kafka's tools parse them (JOpt Simple 5), so that the same words mean the same.

Options may not be abbreviated; `--name=value`, `--name value`, `-name value` all work; `--` ends the options; a
repeated option is an error only when its single value is asked for; words that are no options are kept apart.
"""

from __future__ import annotations

from logstore.errors import UsageError

_JOPT = "joptsimple."


class Arguments:
    """What was found on a command line.

    Attributes:
        values: option name → values given; an option without one counts as present with [].
        words: everything that is not an option.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[str]] = {}
        self.words: list[str] = []

    def has(self, name: str) -> bool:
        """Whether the option was given at all."""
        return name in self.values

    def text(self, name: str, default: str | None = None) -> str | None:
        """The option's only value; UsageError when it was given several."""
        values = self.values.get(name, [])
        if len(values) > 1:
            raise UsageError(
                f"Found multiple arguments for option {name}, but you asked for only one",
                java_class=_JOPT + "MultipleArgumentsForOptionException",
            )
        return values[0] if values else default

    def int32(self, name: str, default: int) -> int:
        """The option's only value as Java's int; UsageError when it is none."""
        text = self.text(name)
        if text is None:
            return default
        from logstore.layout.java_integer import parse_int

        number = parse_int(text)
        if number is None:
            raise UsageError(
                f"Cannot parse argument '{text}' of option {name}",
                java_class=_JOPT + "OptionArgumentConversionException",
            )
        return number


def parse_arguments(argv: list[str], options: dict[str, str]) -> Arguments:
    """Sort `argv` into options and words.

    Args:
        argv: the words after the command.
        options: option name → "none", "required" or "optional": whether it takes a value.

    Raises:
        UsageError: an unknown option, or no value where one is required, with JOpt's class and message.
    """
    found = Arguments()
    rest = list(argv)
    while rest:
        token = rest.pop(0)
        if token == "--":
            found.words += rest
            break
        if not _is_option(token):
            found.words.append(token)
            continue
        name, equals, value = token.removeprefix("--" if token.startswith("--") else "-").partition("=")
        if name not in options:
            raise _unrecognized(name if token.startswith("--") else token[1])
        _take(found, name, value if equals else None, rest, options[name])
    return found


def _take(found: Arguments, name: str, value: str | None, rest: list[str], arity: str) -> None:
    values = found.values.setdefault(name, [])
    if arity == "none":
        return
    if value is not None:
        values.append(value)
    elif arity == "required":
        if not rest:
            raise UsageError(
                f"Option {name} requires an argument", java_class=_JOPT + "OptionMissingRequiredArgumentException"
            )
        values.append(rest.pop(0))
    elif rest and not _is_option(rest[0]):
        values.append(rest.pop(0))


def _is_option(token: str) -> bool:
    return token.startswith("-") and token != "-"


def _unrecognized(name: str) -> UsageError:
    if len(name) == 1 and ord(name) > 0xFFFF:
        name = "?"  # Java takes the first half of the character alone
    return UsageError(f"{name} is not a recognized option", java_class=_JOPT + "UnrecognizedOptionException")
