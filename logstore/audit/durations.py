"""Spans of time for people."""

from __future__ import annotations


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
