"""The Markdown of a run: what was measured, against whom, and how near to the limit."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.results import Measurement, Ratio

HEAD = "| operation | median | minimum | speed | to the peers | of the floor | hash |\n|---|---|---|---|---|---|---|"
DIGEST_SIZE = 8  # hexadecimal digits that are shown; all are in the JSON file
TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def time_text(seconds: float) -> str:
    """
    >>> time_text(2), time_text(0.0123), time_text(4.5e-6), time_text(3e-10)
    ('2.00 s', '12.3 ms', '4.50 µs', '0.300 ns')
    """
    size, unit = next((each for each in TIMES if seconds >= each[0]), TIMES[-1])
    return f"{_three_digits(seconds / size)} {unit}"


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def speed_text(measurement: Measurement) -> str:
    """Bytes and units a second."""
    parts = []
    if measurement.size:
        parts.append(f"{_three_digits(measurement.size / measurement.median_s / 1e9)} GB/s")
    if measurement.rate is not None and measurement.unit != "bytes":
        rate, letter = (measurement.rate / 1e6, "M ") if measurement.rate >= 1e6 else (measurement.rate, "")
        parts.append(f"{_three_digits(rate)} {letter}{measurement.unit}/s")
    return ", ".join(parts)


def ratio_text(name: str, ratio: Ratio) -> str:
    """
    >>> ratio_text("Kafka", Ratio(5.21, 4.8, 6, 3))
    '**5.2×** Kafka (4.8 to 6.0)'
    """
    digits = 2 if ratio.lowest < 1 else 1
    return f"**{ratio.median:.{digits}f}×** {name} ({ratio.lowest:.{digits}f} to {ratio.highest:.{digits}f})"


def floor_text(measurement: Measurement) -> str:
    """The share of the floor: 100 % when nothing is lost; or why there is none."""
    if measurement.floor is None:
        return measurement.floorless
    name, share = measurement.floor
    return f"{_three_digits(100 * share)} % of {name}"


def row(measurement: Measurement) -> str:
    """A line of the table."""
    peers = "<br>".join(ratio_text(name, ratio) for name, ratio in measurement.peers.items())
    cells = [
        measurement.title,
        time_text(measurement.median_s),
        time_text(min(measurement.times_s)),
        speed_text(measurement),
        peers,
        floor_text(measurement),
        measurement.digest[:DIGEST_SIZE],
    ]
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def result_table(measurements: Sequence[Measurement]) -> str:
    """Markdown: a row for each benchmark."""
    return "\n".join([HEAD, *map(row, measurements)])


def absent_list(measurements: Sequence[Measurement]) -> str:
    """Markdown: the peers that did not run and why, each once."""
    reasons: dict[tuple[str, str], int] = {}
    for measurement in measurements:
        for absent in measurement.absent.items():
            reasons[absent] = reasons.get(absent, 0) + 1
    return "\n".join(f"- {name}: {reason} ({count} benchmarks)" for (name, reason), count in reasons.items())
