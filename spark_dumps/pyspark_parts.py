"""What PySpark does not promise: the one place that relies on it, and what holds where it is not so."""

from __future__ import annotations

import gc
import os
import sys

import pyarrow as pa
from pyspark.sql.types import StructType

_SET_IN_WORKERS = "SPARK_REUSE_WORKER"  # by Spark, for the processes that its Python daemon keeps for the next task
_ARROW_TYPES = {
    "binary": pa.binary(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "smallint": pa.int16(),
    "string": pa.string(),
    "timestamp": pa.timestamp("us", "UTC"),
    "array<struct<key:string,value:binary>>": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
    "array<struct<topic:string,partition:int>>": pa.list_(
        pa.struct([("topic", pa.string()), ("partition", pa.int32())])
    ),
}


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the schema that a worker expects of batches with these columns, which it compares with theirs."""
    try:
        from pyspark.sql.pandas.types import to_arrow_schema
    except ImportError:
        return pa.schema([(field.name, _ARROW_TYPES[field.dataType.simpleString()]) for field in schema])
    return to_arrow_schema(schema, timezone="UTC")


class _Frozen:
    """What was imported when the collector was told the last time."""

    module_count = 0


def freeze_imports() -> None:
    """Tell the garbage collector in a worker, when there are new modules, that all of them stay; elsewhere nothing.

    Spark's daemon has a worker collect all garbage after each task, and the next task waits for it. Walking through
    everything that PySpark, PyArrow and this package have imported takes as long as reading some tens of MiB. Some
    of it is imported by the first task only: decoders, and the compiler where the kernels are not compiled yet.
    """
    # asking the collector what it was told walks through all of that as well
    if _SET_IN_WORKERS in os.environ and len(sys.modules) != _Frozen.module_count:
        _Frozen.module_count = len(sys.modules)
        gc.freeze()
