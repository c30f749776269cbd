"""Pictures of a partition as inline SVG: what is at every offset, and transactions in time.

Widths are percentages of the page's, so that letters keep their size. Pictures do not grow with the log: a column that
stands for many offsets shows the most important of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from logstore.audit.durations import duration

from ..tables import count_of
from .markup import Markup, swatches, text, time_text
from .scale import offset_axis, percent, time_axis, time_span

if TYPE_CHECKING:
    from logstore.audit.facts.offsets import ReadableOffsets
    from logstore.audit.facts.transactions import PartitionTransaction

COLUMN_COUNT = 1000  # of an offset map
MINI_COLUMN_COUNT = 120  # of an offset map in a table
ROW_COUNT_MAX = 30  # producers in a timeline
BAR_COUNT_MAX = 1500  # transactions in a timeline
LABELS = ("committed", "aborted", "open", "control", "compacted", "retention", "damaged", "lost")
ALARMS = ("lost", "damaged", "open")  # drawn however few there are, an earlier one over a later one


class Placed(NamedTuple):
    """The part of a transaction in one partition, for a timeline."""

    partition: str
    transaction: PartitionTransaction


def legend(view: ReadableOffsets) -> str:
    """Return the colours in the map of `view`."""
    labels = {one.label.value for one in view.ranges if one.end > view.start}
    return f'<p class="legend">{swatches(label for label in LABELS if label in labels)}</p>' if labels else ""


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


def timeline(placed: Sequence[Placed], names: dict[int, str], until_ms: int = -1) -> str:
    """Draw a row for each producer with a bar for each transaction, from its first record to its marker.

    An open transaction lasts to the end of the axis.

    Args:
        names: transactional ids by producer id.
        until_ms: end of the axis, if no transaction ends later.
    """
    timed = [one for one in placed if one.transaction.first_timestamp >= 0]
    if not timed:
        return '<p class="note">Its transactions tell no time.</p>' if placed else ""
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
    if len(shown) < len(placed):
        note = f"Shown are {len(shown):,} of {len(placed):,} transactions, of {count_of(len(producers), 'producer')}: "
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


def columns(view: ReadableOffsets, column_count: int) -> list[tuple[int, int, str]]:
    """Return runs of columns with the same label: first column, end column, label.

    A column has the label of most of its offsets, or an alarm if one of them has it.
    """
    span = view.end - view.start
    if span <= 0:
        return []
    shares: list[dict[str, int]] = [{} for _ in range(column_count)]
    for one in view.ranges:
        low, high = max(one.start, view.start) - view.start, min(one.end, view.end) - view.start
        if low >= high:
            continue
        for column in range(low * column_count // span, (high * column_count - 1) // span + 1):
            share = min(high * column_count, (column + 1) * span) - max(low * column_count, column * span)
            shares[column][one.label.value] = shares[column].get(one.label.value, 0) + share
    found: list[tuple[int, int, str]] = []
    for column, share_of in enumerate(shares):
        alarm = next((label for label in ALARMS if label in share_of), None)
        label = alarm or max(share_of, key=lambda name: share_of[name], default="retention")
        if found and found[-1][2] == label:
            found[-1] = (found[-1][0], column + 1, label)
        else:
            found.append((column, column + 1, label))
    return found


def _shown_offsets(view: ReadableOffsets, runs: Sequence[tuple[int, int, str]]) -> list[str]:
    """Return which offsets each run of columns stands for: those of the first and last range of its label.

    They are exact, and without separators: people give them to `--start-offset`.
    """
    column_count, span = runs[-1][1], view.end - view.start
    run_of = [number for number, (first, end, _) in enumerate(runs) for _ in range(first, end)]
    found: list[list[tuple[int, int]]] = [[] for _ in runs]  # the first and the last range
    counts = [0] * len(runs)
    for one in view.ranges:
        low, high = max(one.start, view.start), min(one.end, view.end)
        if low >= high:
            continue
        first, last = ((low - view.start) * column_count // span, ((high - view.start) * column_count - 1) // span)
        for number in range(run_of[first], run_of[last] + 1):
            if runs[number][2] == one.label.value:
                found[number] = [*found[number][:1], (low, high - 1)]
                counts[number] += 1
    texts = []
    for count, ranges in zip(counts, found, strict=True):
        each = [f"{start} to {end}" for start, end in ranges]
        several = f": {count} ranges, the first of offsets {each[0]}, the last of {each[-1]}" if count > 1 else ""
        texts.append(several or f": offsets {each[0]}" if each else "")
    return texts


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
