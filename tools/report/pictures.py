"""Pictures of a partition as inline SVG: what is at every offset, and transactions in time.

Widths are percentages of the page's, so that letters keep their size. Pictures do not grow with the log: a column that
stands for many offsets shows the most important of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from logstore.audit.durations import duration
from logstore.audit.facts.offsets import Label, ReadableOffsets
from logstore.audit.facts.transactions import PartitionTransaction

from ..tables import count_of
from .markup import Markup, swatches, text, time_text
from .scale import offset_axis, percent, time_axis, time_span

COLUMN_COUNT = 1000  # of an offset map
MINI_COLUMN_COUNT = 120  # of an offset map in a table
ROW_COUNT_MAX = 30  # producers in a timeline
BAR_COUNT_MAX = 1500  # transactions in a timeline
LABELS = [label.value for label in Label]
ALARMS = ("lost", "damaged", "open")  # drawn however few there are, an earlier one over a later one


class Placed(NamedTuple):
    """The part of a transaction in one partition, for a timeline."""

    partition: str
    transaction: PartitionTransaction


def legend(view: ReadableOffsets) -> str:
    """Return the colours in the map of `view`."""
    shown = (one.labels[one.ends > view.start] for one in view.ranges.blocks())
    numbers = {number for labels in shown for number in np.unique(labels).tolist()}
    return f'<p class="legend">{swatches(LABELS[number] for number in sorted(numbers))}</p>' if numbers else ""


def offset_map(view: ReadableOffsets) -> str:
    """Draw a bar from the log's start to its end, coloured by content, with a line at the last stable offset."""
    span = view.end - view.start
    if span <= 0:
        return '<p class="note">No record is to be read.</p>'
    runs = columns(view, COLUMN_COUNT)
    bars = "".join(
        f'<rect x="{percent(first, COLUMN_COUNT)}" y="18" width="{percent(end - first, COLUMN_COUNT)}" height="28" '
        f'class="{label}"><title>{label}{shown}</title></rect>'
        for (first, end, label), shown in zip(runs, _shown_offsets(view, runs), strict=True)
    )
    x = percent(view.stable_end - view.start, span)
    anchor = "end" if view.stable_end - view.start > span // 2 else "start"
    return (
        f'<svg class="map" height="50" role="img" aria-label="What is at every offset">{bars}'
        f'<line class="stable" x1="{x}" y1="14" x2="{x}" y2="50"/>'
        f'<text x="{x}" y="11" text-anchor="{anchor}">last stable {view.stable_end:,}</text></svg>'
        f"{offset_axis(view.start, view.end)}"
    )


def mini_map(view: ReadableOffsets) -> Markup:
    """Draw the offset map without words, for a row of a table."""
    bars = "".join(
        f'<rect x="{first}" width="{end - first}" height="10" class="{label}"/>'
        for first, end, label in columns(view, MINI_COLUMN_COUNT)
    )
    return Markup(
        f'<svg class="mini" viewBox="0 0 {MINI_COLUMN_COUNT} 10" preserveAspectRatio="none" aria-hidden="true">'
        f"{bars}</svg>"
    )


def timeline(placed: Sequence[Placed], names: dict[int, str], until_ms: int, count: int) -> str:
    """Draw a row for each producer with a bar for each transaction, from its first record to its marker.

    An open transaction lasts to the end of the axis.

    Args:
        names: transactional ids by producer id.
        until_ms: end of the axis, if no transaction ends later.
        count: of all transactions, of which `placed` may be the last.
    """
    timed = [one for one in placed if one.transaction.first_timestamp >= 0]
    if not timed:
        return '<p class="note">Its transactions tell no time.</p>' if count else ""
    shown = sorted(timed, key=lambda one: _order(one.transaction))[-BAR_COUNT_MAX:]
    producers = list(dict.fromkeys(one.transaction.producer_id for one in reversed(shown)))[:ROW_COUNT_MAX]
    shown = [one for one in shown if one.transaction.producer_id in producers]
    times = [time for one in shown for time in (one.transaction.first_timestamp, one.transaction.end_timestamp)]
    start, end = time_span(times)
    end = max(end, start + 1, until_ms if end == max(times) else 0)
    bars: dict[int, list[str]] = {producer_id: [] for producer_id in producers}
    for one in shown:
        bars[one.transaction.producer_id].append(_bar(one, start, end))
    rows = "".join(
        f'<div class="who" title="{name}"><bdi>{name}</bdi></div>'
        f'<svg class="track" height="14" role="img" aria-label="Transactions of {name}">{"".join(bars[producer_id])}'
        "</svg>"
        for producer_id in producers
        for name in [text(names.get(producer_id, f"producer {producer_id}"))]
    )
    note = ""
    if len(shown) < count:
        note = f"Shown are {len(shown):,} of {count:,} transactions, of {count_of(len(producers), 'producer')}: "
        note = f'<p class="note">{note}open ones first, then the last.</p>'
    about = f'<p class="note">From {time_text(start)} on, for {duration(end - start)}.{_cut(shown, start, end)}</p>'
    return f'{about}<div class="timeline">{rows}<div class="who"></div>{time_axis(end - start)}</div>{note}'


def _cut(shown: Sequence[Placed], start: int, end: int) -> str:
    """Return a sentence about transactions outside of the axis."""
    early = [one.transaction.first_timestamp for one in shown if one.transaction.first_timestamp < start]
    late = [one.transaction.end_timestamp for one in shown if one.transaction.end_timestamp > end]
    parts = [f"{count_of(len(early), 'transaction')} began before, from {time_text(min(early))} on"] if early else []
    parts += [f"{count_of(len(late), 'transaction')} ended later, up to {time_text(max(late))}"] if late else []
    return f" <b>The axis is cut</b>: {'; '.join(parts)}. They are drawn at its ends." if parts else ""


class _Drawn(NamedTuple):
    """Ranges that are on a map, in columns: from `lows` up to `highs`, in pixels `firsts` to `lasts`, both included."""

    labels: Any
    lows: Any
    highs: Any
    firsts: Any
    lasts: Any


def _drawn(view: ReadableOffsets, column_count: int) -> Iterator[_Drawn]:
    """Yield the ranges of a view; offsets count from its start."""
    span = view.end - view.start
    kind = np.int64 if span * column_count < 2**62 else object  # offsets of a hostile log
    for block in view.ranges.blocks():
        lows = (np.maximum(block.starts, view.start) - view.start).astype(kind)
        highs = (np.minimum(block.ends, view.end) - view.start).astype(kind)
        is_shown = (lows < highs).astype(np.bool_)
        lows, highs, labels = lows[is_shown], highs[is_shown], block.labels[is_shown]
        firsts, lasts = lows * column_count // span, (highs * column_count - 1) // span
        yield _Drawn(labels, lows, highs, firsts.astype(np.int64), lasts.astype(np.int64))


def columns(view: ReadableOffsets, column_count: int) -> list[tuple[int, int, str]]:
    """Return runs of columns with the same label: first column, end column, label.

    A column has the label of most of its offsets, or an alarm if one of them has it.
    """
    span = view.end - view.start
    if span <= 0:
        return []
    shares = np.zeros((len(LABELS), column_count), object)  # of each column, by label: offsets times columns
    for drawn in _drawn(view, column_count):
        is_inside = drawn.firsts == drawn.lasts
        places = drawn.labels[is_inside] * column_count + drawn.firsts[is_inside]
        inside = np.zeros(shares.size, drawn.lows.dtype)
        np.add.at(inside, places, (drawn.highs - drawn.lows)[is_inside] * column_count)
        shares += inside.reshape(shares.shape)
        for row in np.flatnonzero(~is_inside).tolist():  # one for each line between two columns
            label, low, high, first, last = (int(column[row]) for column in drawn)
            shares[label, first] += (first + 1) * span - low * column_count
            shares[label, first + 1 : last] += span
            shares[label, last] += high * column_count - last * span
    numbers = np.where((shares > 0).any(axis=0), shares.argmax(axis=0), LABELS.index("retention"))
    for alarm in map(LABELS.index, reversed(ALARMS)):
        numbers[shares[alarm] > 0] = alarm
    firsts = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    return [(first, end, LABELS[numbers[first]]) for first, end in pairwise([*firsts, column_count])]


def _shown_offsets(view: ReadableOffsets, runs: Sequence[tuple[int, int, str]]) -> list[str]:
    """Return which offsets each run of columns stands for: those of the first and last range of its label.

    They are exact, and without separators: people give them to `--start-offset`.
    """
    run_of = np.repeat(np.arange(len(runs)), [end - first for first, end, _ in runs])
    labels = np.array([LABELS.index(label) for _, _, label in runs])
    found: list[list[str]] = [[] for _ in runs]  # the first and the last range
    counts = np.zeros(len(runs), np.int64)
    for drawn in _drawn(view, runs[-1][1]):
        firsts, lasts = run_of[drawn.firsts], run_of[drawn.lasts]
        rows = np.repeat(np.arange(firsts.size), lasts - firsts + 1)
        numbers = np.arange(rows.size) - np.searchsorted(rows, rows) + firsts[rows]
        is_told = drawn.labels[rows] == labels[numbers]
        rows, numbers = rows[is_told], numbers[is_told]  # both ascend
        counts += np.bincount(numbers, minlength=len(runs))
        for number in np.unique(numbers).tolist():
            ends = np.searchsorted(numbers, number), np.searchsorted(numbers, number, side="right") - 1
            each = [_offsets(view.start, drawn, int(rows[end])) for end in ends]
            found[number] = [(found[number] or each)[0], each[1]]
    texts = []
    for count, told in zip(counts.tolist(), found, strict=True):
        several = f": {count} ranges, the first of offsets {told[0]}, the last of {told[-1]}" if count > 1 else ""
        texts.append(several or f": offsets {told[0]}" if told else "")
    return texts


def _offsets(start: int, drawn: _Drawn, row: int) -> str:
    return f"{start + int(drawn.lows[row])} to {start + int(drawn.highs[row]) - 1}"


def _order(one: PartitionTransaction) -> tuple[bool, int]:
    """Sort ended transactions by time, then open ones, the oldest last."""
    return one.is_open, -one.first_timestamp if one.is_open else one.end_timestamp


def _bar(placed: Placed, start: int, end: int) -> str:
    one, span = placed.transaction, end - start
    end_ms = one.end_timestamp
    about = (
        f"<title>{one.outcome}: {text(placed.partition)}, offsets {one.first_offset} to {one.last_offset}, "
        f"{count_of(one.record_count, 'record')}, {time_text(one.first_timestamp)} to {time_text(end_ms)}</title>"
    )
    first = min(max(one.first_timestamp, start), end)
    x, width = percent(first - start, span), percent(min(end_ms, end) - first, span)
    wait = ""
    if one.is_open:
        wait = f'<rect x="{x}" y="5" height="4" class="open wait" width="{percent(end - first, span)}"/>'
    return f'{wait}<rect x="{x}" y="2" height="10" class="{one.outcome}" style="width:max(3px,{width})">{about}</rect>'
