"""The picture of a soak: everything that was sampled, as a share of what the first sample had."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from benchmarks.support.pictures import BOTTOM, COLORS, HEIGHT, LEFT, RIGHT, STYLE, TOP, WIDTH

SHARE_MAX = 2.0
_LINES = ("memory", "files", "threads", "objects", "send and poll", "handed out", "transaction")


def drawn(samples: Sequence[dict[str, float]], minutes: float) -> str:
    """Draw lines over time; `minutes` is the time of the last sample."""
    title = "A store in use, each measure against the first sample"

    def x_of(part: float) -> float:
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def y_of(share: float) -> float:
        return HEIGHT - BOTTOM - min(share, SHARE_MAX) / SHARE_MAX * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{title}" font-family="system-ui, sans-serif" font-size="12">',
        STYLE,
        f"<title>{title}</title>",
        f'<text x="{LEFT}" y="24" font-size="15" font-weight="600">{title}</text>',
    ]
    for share in (0.0, 0.5, 1.0, 1.5, 2.0):
        parts.append(f'<path d="M{LEFT} {y_of(share):.1f}H{WIDTH - RIGHT}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y_of(share) + 4:.1f}" text-anchor="end">{share:g}</text>')
    for quarter in range(5):
        x = x_of(quarter / 4)
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{minutes * quarter / 4:g}</text>'
        )
    parts.append(f'<text x="{x_of(0.5):.0f}" y="{HEIGHT - 12}" text-anchor="middle">minutes</text>')
    for number, name in enumerate(_LINES):
        color, label_y = COLORS[number % len(COLORS)], TOP + 20 + 36 * number
        first = samples[0].get(name) or 1.0
        known = [(index + 1, sample[name]) for index, sample in enumerate(samples) if name in sample]
        path = "L".join(f"{x_of(index / len(samples)):.1f} {y_of(value / first):.1f}" for index, value in known)
        dash = ' stroke-dasharray="5 3"' if number >= len(COLORS) else ""
        parts.append(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')
        parts.append(f'<circle cx="{WIDTH - RIGHT + 14}" cy="{label_y}" r="4" fill="{color}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 23}" y="{label_y + 4}">{escape(name)}</text>')
        parts.append(f'<text x="{WIDTH - RIGHT + 23}" y="{label_y + 18}">{_text(name, first)} at first</text>')
    return "\n".join([*parts, "</svg>", ""])


def _text(name: str, value: float) -> str:
    """
    >>> _text("memory", 50 << 20), _text("files", 30), _text("send and poll", 0.000123)
    ('50 MiB', '30', '123 µs')
    """
    if name == "memory":
        return f"{value / (1 << 20):.0f} MiB"
    return f"{value:,.0f}" if value >= 1 else f"{value * 1e6:,.0f} µs"
