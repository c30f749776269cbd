"""How cost grows, as SVG: time against size, both by powers of ten, a line for each way to do it.

Slope 1 is a cost in proportion to the size; a flat line is one that does not grow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from xml.sax.saxutils import escape

from benchmarks.support.report import Measurement, time_text

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 84, 210, 44, 52
COLORS = ("#1b6ca8", "#c8553d", "#4f772d", "#8e5ea2", "#b8860b", "#2a9d8f")
STYLE = """<style>
text { fill: #24292f }
.grid { stroke: #d8dee4 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 }
.grid { stroke: #373e47 }
}
</style>"""

Point = tuple[float, float]
Lines = dict[str, list[Point]]


def growth(measurements: Iterable[Measurement]) -> dict[str, Lines]:
    """Return the points of each line of each picture: (size, seconds), by size."""
    pictures: dict[str, Lines] = {}
    for measurement in measurements:
        if measurement.growth is not None:
            picture, series, size = measurement.growth
            lines = pictures.setdefault(picture, {})
            lines.setdefault(series, []).append((size, measurement.median_s))
            for peer, ratio in measurement.peers.items():
                lines.setdefault(f"{series}, {peer}", []).append((size, measurement.median_s * ratio.median))
    return {name: {series: sorted(points) for series, points in lines.items()} for name, lines in pictures.items()}


def file_name(picture: str) -> str:
    """Return the file name of a picture of growth."""
    return f"growth-{picture.replace(' ', '-')}.svg"


def drawn(title: str, sizes: str, lines: Mapping[str, Sequence[Point]]) -> str:
    """Draw a picture; `sizes` says what the sizes count."""
    points = [point for each in lines.values() for point in each]
    x_axis, y_axis = (_decades([point[axis] for point in points]) for axis in (0, 1))

    def place(point: Point) -> Point:
        x, y = _share(point[0], x_axis), _share(point[1], y_axis)
        return LEFT + x * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - y * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12">',
        STYLE,
        f"<title>{escape(title)}</title>",
        f'<text x="{LEFT}" y="24" font-size="15" font-weight="600">{escape(title)}</text>',
        *_grid(sizes, x_axis, y_axis, place),
    ]
    label_ys = _spread([place(each[-1])[1] for each in lines.values()])
    for number, (series, each) in enumerate(lines.items()):
        parts += _line(series, [place(point) for point in each], each, COLORS[number % len(COLORS)], label_ys[number])
    return "\n".join([*parts, "</svg>", ""])


def _grid(sizes: str, x_axis: range, y_axis: range, place: Callable[[Point], Point]) -> list[str]:
    parts = []
    for power in x_axis:
        x, bottom = place((10.0**power, 10.0 ** y_axis[0]))
        parts.append(f'<path d="M{x:.1f} {TOP}V{bottom:.1f}" class="grid"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{10**power:,}</text>')
    for power in y_axis:
        x, y = place((10.0 ** x_axis[0], 10.0**power))
        parts.append(f'<path d="M{x:.1f} {y:.1f}H{WIDTH - RIGHT}" class="grid"/>')
        parts.append(f'<text x="{x - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{_round_time(power)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    return [*parts, f'<text x="{middle:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{escape(sizes)}</text>']


def _line(series: str, places: list[Point], points: Sequence[Point], color: str, label_y: float) -> list[str]:
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    parts = [f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"/>']
    for (x, y), (size, seconds) in zip(places, points, strict=True):
        note = escape(f"{series}: {time_text(seconds)} at {size:,.0f}")
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"><title>{note}</title></circle>')
    parts.append(f'<circle cx="{WIDTH - RIGHT + 14}" cy="{label_y:.1f}" r="4" fill="{color}"/>')
    parts.append(f'<text x="{WIDTH - RIGHT + 23}" y="{label_y + 4:.1f}">{escape(series)}</text>')
    return parts


def _spread(ys: list[float], distance: float = 15) -> list[float]:
    """Move heights down where labels would cover each other.

    >>> _spread([10, 100, 12])
    [10, 100, 25]
    """
    moved = list(ys)
    order = sorted(range(len(ys)), key=ys.__getitem__)
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + distance)
    return moved


def _decades(values: Sequence[float]) -> range:
    """Return the powers of ten around all of them.

    >>> list(_decades([1, 1000])), list(_decades([0.02])), list(_decades([5, 60]))
    ([0, 1, 2, 3], [-2, -1], [0, 1, 2])
    """
    low = math.floor(math.log10(min(values)) + 1e-9)
    high = math.ceil(math.log10(max(values)) - 1e-9)
    return range(low, max(high, low + 1) + 1)


def _share(value: float, axis: range) -> float:
    return (math.log10(value) - axis[0]) / (axis[-1] - axis[0])


def _round_time(power: int) -> str:
    """
    >>> _round_time(-5), _round_time(0), _round_time(-9)
    ('10 µs', '1 s', '1 ns')
    """
    unit = max(-3, power // 3) if power < 0 else 0
    return f"{10 ** (power - 3 * unit):g} {['s', 'ns', 'µs', 'ms'][unit]}"
