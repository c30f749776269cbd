"""Batches built of Python records, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from logstore.columns.batch_fields import BatchFieldArguments
from logstore.columns.batch_table import ByteArray
from logstore.columns.record_building import build_batch
from logstore.columns.record_columns import PythonRecord, RecordColumns


def build_batch_from_records(records: Sequence[PythonRecord], **fields: Unpack[BatchFieldArguments]) -> ByteArray:
    """Build one batch of (key, value, timestamp in ms, headers) each."""
    return build_batch(RecordColumns.from_records(records), **fields)
