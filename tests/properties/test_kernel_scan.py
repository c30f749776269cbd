"""The scan and the check of checksums against slow twins, on good and on damaged files."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.kernels.scan import batches as scan
from tests.naive import batch
from tests.properties.kernel_inputs import damaged, segments
from tests.support.kernel_forms import run_both
from tests.support.sampling import examples

STOPS = {
    scan.MORE: batch.MORE,
    scan.END: batch.END,
    scan.LENGTH_TOO_SMALL: batch.LENGTH_TOO_SMALL,
    scan.HEADER_BEYOND_FILE: batch.HEADER_BEYOND_FILE,
}
CAPACITY = 40  # rows; more than any segment here has, unless it is made of the smallest entries
UNTOUCHED = -77

files = segments | damaged(segments) | st.binary(max_size=100)


def scanned(data: bytes, position: int, window_end: int, end: int, capacity: int) -> tuple[batch.Scan, np.ndarray]:
    """What both forms of the kernel find, as the twin says it, and the matrix."""
    matrix = np.full((scan.COLUMN_COUNT, capacity), UNTOUCHED, np.int64)
    result = np.full(scan.RESULT_COUNT, UNTOUCHED, np.int64)
    array = np.frombuffer(data, np.uint8)
    status = run_both(scan.scan_batches, array, array.size, position, window_end, end, matrix, capacity, result)
    row_count, next_position, bad_length = result.tolist()
    assert (matrix[:, row_count:] == UNTOUCHED).all()
    assert (bad_length != UNTOUCHED) == (status == scan.LENGTH_TOO_SMALL)
    rows = [batch.Row(*values) for values in matrix[:, :row_count].T.tolist()]
    return batch.Scan(rows, STOPS[status], next_position, None if bad_length == UNTOUCHED else bad_length), matrix


@given(files)
def test_a_scan_finds_what_the_twin_finds(data: bytes) -> None:
    found, _ = scanned(data, 0, len(data) + 1, len(data), CAPACITY)
    assert found == batch.scan_part(data, 0, len(data) + 1, len(data), CAPACITY)


@given(files, st.data())
def test_a_scan_keeps_to_any_window_end_and_capacity(data: bytes, draw: st.DataObject) -> None:
    places = st.integers(0, len(data)) | st.sampled_from([0, len(data)])
    position, end = draw.draw(places), draw.draw(places | st.just(-5))
    window_end = draw.draw(places | st.just(2**40))
    capacity = draw.draw(st.integers(1, 3))
    found, _ = scanned(data, position, window_end, end, capacity)
    assert found == batch.scan_part(data, position, window_end, end, capacity)


@settings(max_examples=examples(50))
@given(files, st.integers(1, 2), st.integers(1, 300))
def test_a_scan_in_pieces_finds_the_same_batches(data: bytes, capacity: int, window_size: int) -> None:
    rows, position, stop = [], 0, batch.MORE
    while stop == batch.MORE:
        piece, _ = scanned(data, position, position + window_size, len(data), capacity)
        assert piece.rows or piece.stop != batch.MORE
        rows += piece.rows
        position, stop = piece.position, piece.stop
    whole = batch.scan(data, 0, len(data))
    assert (rows, stop, position) == (whole.rows, whole.stop, whole.position)


@settings(max_examples=examples(60))
@given(files, st.data())
def test_checksums_are_judged_as_the_twin_judges_them(data: bytes, draw: st.DataObject) -> None:
    found, matrix = scanned(data, 0, len(data) + 1, len(data), CAPACITY)
    count = len(found.rows)
    row_end = draw.draw(st.just(count) | st.integers(0, count))
    row = draw.draw(st.just(0) | st.integers(0, row_end))
    wrong_count = run_both(scan.check_batches, np.frombuffer(data, np.uint8), matrix, CAPACITY, row, row_end)
    expected = [
        batch.checked(data, found) if row <= index < row_end else found for index, found in enumerate(found.rows)
    ]
    assert [batch.Row(*values) for values in matrix[:, :count].T.tolist()] == expected
    assert wrong_count == sum(found.is_valid == 0 for found in expected)
