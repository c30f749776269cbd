"""Lines filled from a template against a slow twin: with room and without, and parts that lie about where they are."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.kernels.dump.fill import LITERAL, NUMBER, fill_lines, note_forms
from logstore.kernels.dump.lines import LITERALS
from logstore.kernels.dump.text import SLACK_SIZE
from tests.naive.fill import Part, filled, form
from tests.support.kernel_forms import run_both
from tests.support.sampling import examples

UNTOUCHED = -77

buffers = st.binary(max_size=40) | st.text('ab"\\', max_size=40).map(str.encode)
numbers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 999, 1000, 10**6, 10**12, -(10**18)])
within = st.tuples(st.integers(0, 30), st.integers(0, 20))
lies = st.tuples(
    st.sampled_from([-1, 0, 2**31 - 1, 2**63 - 1, -(2**63)]) | st.integers(0, 70),
    st.sampled_from([-1, 0, 1, 2**31, 2**63 - 1, -(2**63)]) | st.integers(0, 70),
)


@st.composite
def templates(draw: st.DrawFn) -> tuple[list[Part], int]:
    row_count = draw(st.integers(1, 5))
    places = draw(st.sampled_from([within, within | lies]))
    parts = []
    for kind in draw(st.lists(st.integers(0, 4), min_size=1, max_size=5)):
        if kind == LITERAL:
            parts.append(Part(kind, [draw(places)] * row_count))
        else:
            rows = st.lists(numbers if kind == NUMBER else places, min_size=row_count, max_size=row_count)
            parts.append(Part(kind, draw(rows)))
    return parts, row_count


def arrays(parts: list[Part]) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    """The slots and the columns of parts."""
    slots: list[tuple[int, int, int]] = []
    columns: list[list[int]] = []
    for kind, values in parts:
        pairs = [value if isinstance(value, tuple) else (value, 0) for value in values]
        slots.append((kind, *pairs[0]) if kind == LITERAL else (kind, len(columns), 0))
        if kind != LITERAL:
            columns += [[pair[field] for pair in pairs] for field in range(1 if kind == NUMBER else 2)]
    return np.array(slots, np.int64), np.array(columns or [[0]], np.int64)


@settings(max_examples=examples(300))
@given(buffers, buffers, templates(), st.integers(0, 120) | st.just(1000))
def test_lines_are_filled_as_the_twin_does(
    data: bytes, pool: bytes, template: tuple[list[Part], int], capacity: int
) -> None:
    parts, row_count = template
    slots, columns = arrays(parts)
    out = np.full(capacity + SLACK_SIZE, 0x55, np.uint8)
    ends = np.full(row_count, UNTOUCHED, np.int64)
    data_array, pool_array = np.frombuffer(data, np.uint8), np.frombuffer(pool, np.uint8)
    count = run_both(
        fill_lines,
        *(data_array, len(data), pool_array, len(pool), slots, len(parts)),
        *(columns, row_count, out, capacity, LITERALS, ends),
    )
    expected = filled(data, pool, parts, row_count, capacity)
    assert count == len(expected)
    assert ends.tolist() == np.cumsum([len(line) for line in expected]).tolist() + [UNTOUCHED] * (row_count - count)
    assert out.tobytes().startswith(b"".join(expected))


@settings(max_examples=examples(300))
@given(st.lists(st.none() | st.binary(max_size=20) | st.text('abc"\\ ~\x7f\x1fé世😀', max_size=20).map(str.encode)))
def test_forms_of_fields_are_noted_as_the_twin_does(fields: list[bytes | None]) -> None:
    sizes = np.array([-1 if field is None else len(field) for field in fields], np.int64)
    positions = np.cumsum(np.maximum(sizes, 0)) - np.maximum(sizes, 0)
    forms = np.full(len(fields), UNTOUCHED, np.int64)
    data = np.frombuffer(b"".join(field or b"" for field in fields), np.uint8)
    has_quotes = run_both(note_forms, data, positions, sizes, len(fields), forms)
    assert forms.tolist() == [form(field) for field in fields]
    assert has_quotes == any(byte in (field or b"") for field in fields for byte in (b'"', b"\\"))
