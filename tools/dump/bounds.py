"""Bounds of offsets and times on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from logstore.errors import UsageError
from logstore.layout.java_integer import parse_long

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_MILLISECONDS_RANGE = re.compile(r"[+-]?[0-9]*:[+-]?[0-9]*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CLOCK = re.compile(r".+?[T ]\d\d(?P<minute>:?\d\d)?(?P<second>:?\d\d)?(?P<fraction>[.,]\d+)?(Z|[+-].*)?")


def offset_bounds(text: str | None) -> tuple[int, int]:
    """Return the first and the last offset of `--offset`; below 0 they are counted from the end of the log.

    >>> offset_bounds("5:9"), offset_bounds("-5:") == (-5, INT64_MAX)
    ((5, 9), True)
    """
    return _bounds("offset", text, ":", lambda bound: (whole_number("offset", bound),) * 2)


def time_bounds(text: str | None) -> tuple[int, int]:
    """Return the first and the last millisecond of `--time`.

    >>> first, last = time_bounds("2023-11-14")
    >>> last - first == 24 * 3600 * 1000 - 1
    True
    """
    return _bounds("time", text, ":" if _MILLISECONDS_RANGE.fullmatch(text or "") else "/", _times_ms)


def _bounds(option: str, text: str | None, separator: str, parse: Callable[[str], tuple[int, int]]) -> tuple[int, int]:
    """Return the bounds of `A:B`, `A:` or `:B`; `A` alone means exactly A; raise UsageError for wrong ones.

    `parse` returns the first and the last number that a bound means.
    """
    if text is None:
        return INT64_MIN, INT64_MAX
    first_text, found, last_text = text.partition(separator)
    if not first_text and not last_text:
        raise UsageError(
            f"--{option} needs a bound", expected=f"A{separator}B, A{separator} or {separator}B", found=text
        )
    first = parse(first_text)[0] if first_text else INT64_MIN
    last = parse(first_text if not found else last_text)[1] if last_text or not found else INT64_MAX
    if first > last and (option == "time" or (first < 0) == (last < 0)):  # else the end of the log decides
        raise UsageError(f"--{option} is an empty range", expected="the smaller bound first", found=text)
    return first, last


def whole_number(option: str, text: str) -> int:
    number = parse_long(text) if _WHOLE_NUMBER.fullmatch(text) else None  # Java takes digits of any script
    if number is None:
        raise UsageError(f"--{option} takes whole numbers of 64 bits", expected="a whole number", found=text)
    return number


def _times_ms(text: str) -> tuple[int, int]:
    """Return the first and the last millisecond of a time: of the day, hour, minute or second that it names."""
    if _WHOLE_NUMBER.fullmatch(text):
        return (whole_number("time", text),) * 2
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            "--time takes milliseconds or ISO 8601",
            expected="1700000000000:1700000060000 or 2023-11-14T22:13:20Z/2023-11-14T22:14:20Z",
            found=text,
        ) from error
    first = ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
    return first, first + _span_ms(text) - 1


def _span_ms(text: str) -> int:
    """Return how many milliseconds an ISO 8601 time stands for."""
    clock = _CLOCK.fullmatch(text)
    if clock is None:
        return 24 * 3_600_000
    if clock["minute"] is None:
        return 3_600_000
    return 1 if clock["fraction"] else 1000 if clock["second"] else 60_000
