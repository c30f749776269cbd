"""The fields of batch headers as people and queries see them: names in place of bits, null for what is not there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from ..columns.batch_table import FIELD_NAMES, BatchTable, BoolArray
from ..columns.decoded_records import timestamp_types
from ..layout.batch import CODEC_MASK, CONTROL_FLAG, DELETE_HORIZON_FLAG, MAGIC_V2, NO_TIMESTAMP, TRANSACTIONAL_FLAG
from ..model import Codec, TimestampType

_CODEC_NAMES = [Codec(number).kafka_name if number in set(Codec) else None for number in range(CODEC_MASK + 1)]
_TIMESTAMP_TYPES: list[str | None] = [kind.kafka_name for kind in TimestampType]
_FLAGS = {"is_transactional": TRANSACTIONAL_FLAG, "is_control": CONTROL_FLAG}


class FieldColumn(NamedTuple):
    """A field of each batch.

    Attributes:
        values: int64[count] or bool[count].
        is_null: bool[count]; None where no value is null.
        texts: what `values` are numbers of; None where they are the values.
    """

    values: npt.NDArray[Any]
    is_null: BoolArray | None = None
    texts: list[str | None] | None = None

    def to_list(self) -> list[Any]:
        """Return the values as Python's, None for null."""
        values: list[Any] = self.values.tolist()
        if self.texts is not None:
            return [self.texts[number] for number in values]
        if self.is_null is None:
            return values
        return [None if is_null else value for value, is_null in zip(values, self.is_null.tolist(), strict=True)]


def field_column(table: BatchTable, name: str) -> FieldColumn:
    """Return a field of `rows.batches.BatchRow`, but not the place of the batches: topic, partition and segment."""
    attributes = table.attributes
    is_v2 = table.magic >= MAGIC_V2
    if name == "last_offset":
        return FieldColumn(table.last_offset)
    if name == "is_valid":
        return FieldColumn(table.is_valid == 1)
    if name == "codec":
        return FieldColumn(attributes & CODEC_MASK, texts=_CODEC_NAMES)
    if name == "timestamp_type":
        return FieldColumn(timestamp_types(table) - TimestampType.NO_TIMESTAMP_TYPE, texts=_TIMESTAMP_TYPES)
    if name in _FLAGS:
        return FieldColumn(is_v2 & (attributes & _FLAGS[name] != 0))
    if name in ("base_timestamp", "max_timestamp", "delete_horizon"):
        times = table.column(FIELD_NAMES["max_timestamp" if name == "max_timestamp" else "base_timestamp"])
        has_horizon = is_v2 & (attributes & DELETE_HORIZON_FLAG != 0)
        is_there = {"base_timestamp": is_v2 & ~has_horizon, "max_timestamp": table.magic > 0}
        return FieldColumn(times, ~is_there.get(name, has_horizon) | (times == NO_TIMESTAMP))
    return FieldColumn(table.column(FIELD_NAMES[name]))
