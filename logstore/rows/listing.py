"""Rows that a public function returns: to iterate over, and for Arrow, pandas and notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, SupportsIndex, TypeVar, overload

from ..errors import LogstoreError, UsageError
from .schema import Kind, RowField, fields_of, iso_text

if TYPE_CHECKING:
    import pyarrow as pa

R = TypeVar("R", bound=NamedTuple)
SHOWN_ROW_COUNT = 100  # in a notebook


class Rows(Generic[R]):
    """Rows of one type; iterating yields NamedTuples, whose times are milliseconds since 1970.

    Those of `logstore.dump` are read anew each time they are iterated over; all others are in memory, with a length and
    slices. Rows are equal to rows, or to a list, with the same rows in the same order. What takes a stream of
    Arrow, such as polars, DuckDB and `pyarrow.table`, takes rows.

    Attributes:
        row_type: the NamedTuple.
        problems: what could not be read, or is elsewhere; the rows say nothing of it.
    """

    def __init__(self, row_type: type[R], rows: Iterable[R], problems: Iterable[Any] = ()) -> None:
        self.row_type = row_type
        self.problems = tuple(problems)
        self._rows = rows

    def __iter__(self) -> Iterator[R]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._in_memory())

    @overload
    def __getitem__(self, index: SupportsIndex) -> R: ...
    @overload
    def __getitem__(self, index: slice) -> Rows[R]: ...
    def __getitem__(self, index: Any) -> R | Rows[R]:
        rows = self._in_memory()[index]
        return Rows(self.row_type, rows, self.problems) if isinstance(index, slice) else rows

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Rows | list | tuple) else NotImplemented

    __hash__: ClassVar[None]  # type: ignore[assignment]  # as a list's

    def _in_memory(self) -> Sequence[R]:
        if isinstance(self._rows, Sequence):
            return self._rows
        raise TypeError(
            "These rows are read while they are iterated over, and have no length: list(rows) has all of them, "
            "itertools.islice(rows, 10) the first"
        )

    def __repr__(self) -> str:
        count = f"{len(self._rows):,}" if isinstance(self._rows, Sequence) else "rows"
        problems = f", {len(self.problems)} problems" if self.problems else ""
        return f"<{count} of {self.row_type.__name__}{problems}>"

    def to_arrow(self) -> pa.Table:
        """Return all rows as a `pyarrow.Table` with the columns of the row type; times are `timestamp[ms, UTC]`.

        Raises:
            UsageError: pyarrow is not installed.
        """
        try:
            from .arrow import table_of
        except ImportError as error:
            raise UsageError("Arrow needs pyarrow", advice="pip install 'logstore-kafka[arrow]'") from error
        return table_of(self.row_type, self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return `to_arrow` as a stream of Arrow's PyCapsule interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return all rows as a `pandas.DataFrame`, by way of Arrow.

        Whole numbers that may be null are `Int32` and `Int64`, with nulls or without: floats would round offsets.

        Raises:
            UsageError: pandas or pyarrow is not installed.
        """
        table = self.to_arrow()
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError as error:
            raise UsageError("A DataFrame needs pandas", advice="pip install pandas") from error
        whole = {"int32": pandas.Int32Dtype(), "int64": pandas.Int64Dtype()}
        frame = table.to_pandas()
        for field in table.schema:
            if field.nullable and (dtype := whole.get(str(field.type))):
                frame[field.name] = table.column(field.name).to_pandas(types_mapper=lambda _, dtype=dtype: dtype)
        return frame

    def _repr_html_(self) -> str:
        """Return a table for a notebook: the first rows, and what could not be read."""
        fields = fields_of(self.row_type)
        head = "".join(f"<th>{html.escape(field.name)}</th>" for field in fields)
        body, is_more, problems = [], False, [*self.problems]
        try:
            for number, row in enumerate(self):
                if is_more := number == SHOWN_ROW_COUNT:
                    break
                cells = (_cell(field, getattr(row, field.name)) for field in fields)
                body.append("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>")
        except LogstoreError as error:  # damage, after all rows of a dump
            problems.append(error)
        notes = [f"<p>only the first {SHOWN_ROW_COUNT} rows are shown</p>"] if is_more else []
        notes += [f"<p>not read: {html.escape(str(problem))}</p>" for problem in problems]
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>{''.join(notes)}"


def _cell(field: RowField, value: Any) -> str:
    if field.kind is Kind.TIME:
        value = iso_text(value)
    return "" if value is None else str(value)
