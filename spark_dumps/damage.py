"""What a damaged place does to a read: `mode` as in Spark's own sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from logstore.errors import LogstoreError

from .options import Mode


@dataclass(frozen=True, slots=True)
class DamageRule:
    """FAILFAST raises; DROPMALFORMED passes over; PERMISSIVE too, and tells in a row if there is a column for it.

    Attributes:
        corrupt_column: the column of the given schema for what is wrong.
    """

    mode: Mode
    corrupt_column: str

    def rows(self, error: LogstoreError, topic: str, partition: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The row that stands for what is damaged, if there is one: where it is, what it is, all else null."""
        if self.mode is Mode.FAILFAST:
            raise error
        if self.mode is Mode.PERMISSIVE and self.corrupt_column in schema.names:
            known: dict[str, Any] = {"topic": topic, "partition": partition, "offset": error.offset}
            known[self.corrupt_column] = str(error)
            yield pa.RecordBatch.from_pylist([{name: known.get(name) for name in schema.names}], schema=schema)
