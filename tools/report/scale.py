"""Axes: where ticks stand and what they say, in offsets and in time."""

from __future__ import annotations

from collections.abc import Sequence

from ..timestamps import duration
from .markup import text

TICK_COUNT_MAX = 5
_MAP_WIDTH_MIN, _TRACK_WIDTH_MIN = 660, 440  # pixels, where the window has the 701 that style.css tells narrow ones by
_FENCED_COUNT_MIN, _SQUEEZED = 8, 10  # times that have outliers at all; how much wider these make an axis that is cut
_SECOND, _MINUTE, _HOUR, _DAY = 1000, 60_000, 3_600_000, 86_400_000
_TIME_STEPS = (
    *(count * unit for unit in (1, 10, 100) for count in (1, 2, 5)),
    *(count * _SECOND for count in (1, 2, 5, 10, 15, 30)),
    *(count * _MINUTE for count in (1, 2, 5, 10, 15, 30)),
    *(count * _HOUR for count in (1, 2, 3, 6, 12)),
    *(count * _DAY for count in (1, 2, 7, 14, 30, 90, 180, 365)),
)


def percent(part: int, whole: int) -> str:
    """`part` of `whole` as CSS and SVG have it, within 0 and 100.

    >>> percent(1, 3), percent(5, 0), percent(9, 9)
    ('33.333%', '0%', '100%')
    """
    share = 100 * min(max(part, 0), whole) / whole if whole > 0 else 0
    return f"{share:.3f}".rstrip("0").rstrip(".") + "%"


def time_span(times: Sequence[int]) -> tuple[int, int]:
    """First and last of some times; without outliers if they would leave less than a tenth of an axis to the others.

    Outliers are far outside of the middle half: three times as far as that is wide (Tukey's outer fences).

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
    """Ticks between offsets `start` and `end`, and words at both."""
    step = _decimal_step(end - start)
    inner = range(start // step * step + step, end, step)
    ticks = [(offset - start, f"{offset:,}") for offset in inner]
    return _axis(end - start, ticks, f"offset {start:,}", f"{end:,}", _MAP_WIDTH_MIN)


def time_axis(span_ms: int) -> str:
    """Ticks of a time that lasts `span_ms`, by how much later they are than its start."""
    step = next((step for step in _TIME_STEPS if span_ms / step <= TICK_COUNT_MAX), None)
    step = step or _decimal_step(span_ms // _DAY) * _DAY
    ticks = [(ms, later_text(ms)) for ms in range(step, span_ms, step)]
    return _axis(span_ms, ticks, "0", later_text(span_ms), _TRACK_WIDTH_MIN)


def later_text(milliseconds: int) -> str:
    """How much later something is.

    >>> later_text(1500), later_text(20_000), later_text(450), later_text(5_400_000)
    ('+1.5 s', '+20 s', '+450 ms', '+1 h 30 min')
    """
    if _SECOND <= milliseconds < _MINUTE and milliseconds % _SECOND:
        return f"+{milliseconds / _SECOND:.1f} s"
    return f"+{duration(milliseconds)}"


def _decimal_step(span: int) -> int:
    """1, 2 or 5 times a power of ten, so that there are not too many ticks."""
    step = 1
    while True:
        for factor in (1, 2, 5):
            if span <= TICK_COUNT_MAX * step * factor:
                return step * factor
        step *= 10


def _axis(span: int, ticks: Sequence[tuple[int, str]], first: str, last: str, width_min: int) -> str:
    """A line of its own below a picture; of ticks that come too close to what is beside them there are no words.

    Args:
        ticks: distance from the start, and words.
        width_min: pixels, of the axis in the narrowest window that shows these words at all.
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
    """Pixels that they take at most, with a gap."""
    return len(words) * 7 + 14
