"""Axes of offsets and of time: places and words of ticks."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import accumulate, repeat

from logstore.audit.durations import duration

from .markup import text

TICK_COUNT_MAX = 5
_MAP_WIDTH_MIN, _TRACK_WIDTH_MIN = 660, 440  # pixels in a window of 701, the smallest that style.css calls wide
_FENCED_COUNT_MIN = 8  # fewer times have no outliers
_SQUEEZED = 10  # an axis is cut if outliers would make it so many times as long
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_TIME_STEPS = (
    *(count * unit for unit in (1, 10, 100) for count in (1, 2, 5)),
    *(count * _SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * _HOUR for count in (1, 2, 3, 6, 12)),
    *(count * _DAY for count in (1, 2, 7, 14, 30, 90, 180, 365)),
)


def percent(part: int, whole: int) -> str:
    """Return `part` of `whole` as a percentage of CSS and SVG, within 0 and 100.

    >>> percent(1, 3), percent(5, 0), percent(9, 9)
    ('33.333%', '0%', '100%')
    """
    share = 100 * min(max(part, 0), whole) / whole if whole > 0 else 0
    return f"{share:.3f}".rstrip("0").rstrip(".") + "%"


def time_span(times: Sequence[int]) -> tuple[int, int]:
    """Return the first and the last time, without outliers if they would leave a tenth of the axis to the others.

    An outlier is farther from the middle half than three times the width of that half (Tukey's outer fences).

    >>> time_span([*range(10), 5000]), time_span([0, 1, 2**63]), time_span([*range(100), 300])
    ((0, 9), (0, 9223372036854775808), (0, 300))
    """
    ordered = sorted(times)
    low, high = ordered[0], ordered[-1]
    first_quarter, last_quarter = ordered[len(ordered) // 4], ordered[len(ordered) * 3 // 4]
    reach = 3 * (last_quarter - first_quarter)
    near = [time for time in ordered if first_quarter - reach <= time <= last_quarter + reach]
    is_squeezed = len(ordered) >= _FENCED_COUNT_MIN and (near[-1] - near[0]) * _SQUEEZED < high - low
    return (near[0], near[-1]) if is_squeezed else (low, high)


def offset_axis(start: int, end: int) -> str:
    """Draw an axis of offsets from `start` to `end`."""
    step = _decimal_step(end - start)
    inner = range(start // step * step + step, end, step)
    ticks = [(offset - start, f"{offset:,}") for offset in inner]
    return _axis(end - start, ticks, f"offset {start:,}", f"{end:,}", _MAP_WIDTH_MIN)


def time_axis(span_ms: int) -> str:
    """Draw an axis of time that lasts `span_ms`; ticks tell the time since its start."""
    step = next((step for step in _TIME_STEPS if span_ms / step <= TICK_COUNT_MAX), None)
    step = step or _decimal_step(span_ms // _DAY) * _DAY
    ticks = [(ms, later_text(ms)) for ms in range(step, span_ms, step)]
    return _axis(span_ms, ticks, "0", later_text(span_ms), _TRACK_WIDTH_MIN)


def later_text(milliseconds: int) -> str:
    """Return a span of time as the words of a tick.

    >>> later_text(1500), later_text(20_000), later_text(450), later_text(5_400_000)
    ('+1.5 s', '+20 s', '+450 ms', '+1 h 30 min')
    """
    if _SECOND <= milliseconds < _MINUTE and milliseconds % _SECOND:
        return f"+{milliseconds / _SECOND:.1f} s"
    return f"+{duration(milliseconds)}"


def _decimal_step(span: int) -> int:
    """Return 1, 2 or 5 times a power of ten, the smallest that gives few enough ticks."""
    powers = accumulate(repeat(10), operator.mul, initial=1)
    return next(step for power in powers for step in (power, 2 * power, 5 * power) if span <= TICK_COUNT_MAX * step)


def _axis(span: int, ticks: Sequence[tuple[int, str]], first: str, last: str, width_min: int) -> str:
    """Draw an axis with ticks: distances from the start, and words, unless they are too close to others.

    `width_min` are the pixels of the axis in the narrowest window that shows words of ticks.
    """
    parts = []
    free, limit = _width(first), width_min - _width(last)
    for distance, words in ticks:
        x, middle, half = percent(distance, span), width_min * distance // span, _width(words) // 2
        parts.append(f'<line x1="{x}" x2="{x}" y1="0" y2="5"/>')
        if middle - half >= free and middle + half <= limit:
            parts.append(f'<text class="minor" x="{x}" y="17" text-anchor="middle">{text(words)}</text>')
            free = middle + half
    return (
        '<svg class="axis" height="22" aria-hidden="true"><line x1="0" x2="100%" y1="0" y2="0"/>'
        f'<line x1="0" x2="0" y1="0" y2="5"/><line x1="100%" x2="100%" y1="0" y2="5"/>{"".join(parts)}'
        f'<text x="0" y="17">{text(first)}</text><text x="100%" y="17" text-anchor="end">{text(last)}</text></svg>'
    )


def _width(words: str) -> int:
    """Return the most pixels that the words take, with a gap."""
    return len(words) * 7 + 14
