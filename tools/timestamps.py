"""Times and spans of time for people."""

from __future__ import annotations

from datetime import datetime, timedelta

_EPOCH = datetime(1970, 1, 1)


def iso_text(timestamp_ms: int | None) -> str | None:
    """Return the time in UTC to the millisecond, None for no time, or the number itself beyond the years 1 to 9999.

    >>> iso_text(1700000000020), iso_text(-1), iso_text(2**62)
    ('2023-11-14T22:13:20.020Z', None, '4611686018427387904')
    """
    if timestamp_ms is None or timestamp_ms == -1:
        return None
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds") + "Z"


def duration(milliseconds: int) -> str:
    """Return a span of time in words.

    >>> duration(450), duration(90_000), duration(93_784_000)
    ('450 ms', '1 min 30 s', '1 d 2 h')
    """
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    rest, parts = milliseconds // 1000, []
    for name, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])
