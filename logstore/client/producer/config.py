"""Configuration of a producer: Kafka's names, defaults and rules (`ProducerConfig`, `KafkaProducer`).

Names may have underscores, as in Python's clients; `client.config` says which belong to a network.

Records go into a log of this process, one batch at a time: no request is in flight, no answer is lost, no other
producer writes in between. These names are accepted and checked as by Kafka, and do nothing more:

| `acks` | a future is done when its record is in the log, in any case; below "all" there is no idempotence |
| `max.in.flight.requests.per.connection` | above 5 it is refused with idempotence |
| `request.timeout.ms` | plus `linger.ms` it is the minimum of `delivery.timeout.ms` |

`retries`, `retry.backoff.ms`, `retry.backoff.max.ms` and `delivery.timeout.ms` apply to passing errors, such as a
coordinator that loads; a full disk is none. No record may be larger than `max.request.size` and `buffer.memory`, but
only records that `send` keeps waiting take memory from it, and only their batches obey `batch.size`. `client.id` names
the background thread.

>>> config = parse_producer_config({"transactional_id": "billing-1", "linger.ms": 0})
>>> config["enable.idempotence"], config["acks"], config["linger.ms"], config["client.id"]
(True, '-1', 0, 'producer-billing-1')
>>> parse_producer_config({"transactional.id": "billing-1", "acks": 1})
Traceback (most recent call last):
logstore.errors.UsageError: Cannot set a transactional.id without also enabling idempotence.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...columns.batch_table import Int64Array
from ...columns.record_columns import BytesColumn, RecordColumns
from ...config.client import non_empty, read_config
from ...config.definition import (
    CONFIG_EXCEPTION,
    Definition,
    as_boolean,
    as_int,
    as_long,
    as_string,
    between,
    level_of,
    one_of,
)
from ...errors import RecordTooLargeError, UsageError
from ...layout.batch import HEADER_SIZE
from ...layout.record import NO_HEADERS, RECORD_OVERHEAD_SIZE, varint
from ...model import Codec

ProducerConfig = dict[str, Any]

SIZES_OF_SIZES = 10  # bytes of the sizes of key and value, five each at most

_INT_MAX = 2**31 - 1
_IN_FLIGHT_MAX = 5
_DEFINITIONS = {
    "acks": Definition(as_string, "all", one_of("all", "-1", "0", "1")),
    "batch.size": Definition(as_int, 16_384, between(0)),
    "buffer.memory": Definition(as_long, 33_554_432, between(0)),
    "client.id": Definition(as_string, ""),
    "compression.gzip.level": level_of(Codec.GZIP),
    "compression.lz4.level": level_of(Codec.LZ4),
    "compression.type": Definition(as_string, "none", one_of("none", "gzip", "snappy", "lz4", "zstd")),
    "compression.zstd.level": level_of(Codec.ZSTD),
    "delivery.timeout.ms": Definition(as_int, 120_000, between(0)),
    "enable.idempotence": Definition(as_boolean, True),
    "linger.ms": Definition(as_long, 5, between(0)),
    "max.block.ms": Definition(as_long, 60_000, between(0)),
    "max.in.flight.requests.per.connection": Definition(as_int, 5, between(1)),
    "max.request.size": Definition(as_int, 1_048_576, between(0)),
    "partitioner.ignore.keys": Definition(as_boolean, False),
    "request.timeout.ms": Definition(as_int, 30_000, between(0)),
    "retries": Definition(as_int, _INT_MAX, between(0, _INT_MAX)),
    "retry.backoff.max.ms": Definition(as_long, 1000, between(0)),
    "retry.backoff.ms": Definition(as_long, 100, between(0)),
    "transaction.timeout.ms": Definition(as_int, 60_000),
    "transactional.id": Definition(as_string, None, non_empty),
}


def parse_producer_config(
    values: Mapping[str, Any], *, client_number: int = 1, ignores_network: bool = False
) -> ProducerConfig:
    """Return every configuration's value: the given ones, Kafka's defaults, and what follows from them.

    `client_number` names a producer without `client.id` and `transactional.id`. A value of None counts as not given.
    `acks` is returned as a number in text. Raises UsageError as `read_config`, and in Kafka's words for values that
    exclude each other.
    """
    config, given = read_config(_DEFINITIONS, values, "producer", ignores_network=ignores_network)
    config["acks"] = "-1" if config["acks"] == "all" else config["acks"]
    config["enable.idempotence"] = _is_idempotent(config, is_explicit="enable.idempotence" in given)
    if config["transactional.id"] is not None and not config["enable.idempotence"]:
        raise _exclusive("Cannot set a transactional.id without also enabling idempotence.")
    if "client.id" not in given:
        config["client.id"] = f"producer-{config['transactional.id'] or client_number}"
    config["delivery.timeout.ms"] = _delivery_timeout_ms(config, is_explicit="delivery.timeout.ms" in given)
    return config


def _is_idempotent(config: ProducerConfig, *, is_explicit: bool) -> bool:
    """Return whether the producer is idempotent, as `postProcessAndValidateIdempotenceConfigs` decides it."""
    if not config["enable.idempotence"]:
        return False
    if config["retries"] == 0 and is_explicit:
        raise _exclusive("Must set retries to non-zero when using the idempotent producer.")
    if config["acks"] != "-1" and is_explicit:
        raise _exclusive(
            "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence."
        )
    in_flight_count = config["max.in.flight.requests.per.connection"]
    if in_flight_count > _IN_FLIGHT_MAX:
        raise _exclusive(
            "To use the idempotent producer, max.in.flight.requests.per.connection must be set to at most "
            f"{_IN_FLIGHT_MAX}. Current value is {in_flight_count}."
        )
    has_retries: bool = config["retries"] != 0
    return has_retries and config["acks"] == "-1"


def _delivery_timeout_ms(config: ProducerConfig, *, is_explicit: bool) -> int:
    least: int = min(min(config["linger.ms"], _INT_MAX) + config["request.timeout.ms"], _INT_MAX)
    timeout_ms: int = config["delivery.timeout.ms"]
    if timeout_ms < least and is_explicit:
        raise _exclusive("delivery.timeout.ms should be equal to or larger than linger.ms + request.timeout.ms")
    return max(timeout_ms, least)


def _exclusive(message: str) -> UsageError:
    return UsageError(message, java_class=CONFIG_EXCEPTION)


def record_size_max(config: ProducerConfig) -> int:
    """Return the largest size of a record together with a batch header."""
    size_max: int = min(config["max.request.size"], config["buffer.memory"])
    return size_max


def require_record_size(config: ProducerConfig, key_size: int, value_size: int, headers_size: int) -> None:
    """Raise RecordTooLargeError for a record that is too large (`KafkaProducer.ensureValidRecordSize`).

    Sizes are in bytes, -1 for null; that of the headers includes their count.
    """
    size = HEADER_SIZE + RECORD_OVERHEAD_SIZE + headers_size
    size += sum(len(varint(part)) + max(part, 0) for part in (key_size, value_size))
    text = ""
    if size > config["max.request.size"]:
        text = f"{config['max.request.size']}, which is the value of the max.request.size configuration."
    elif size > config["buffer.memory"]:
        text = "the total memory buffer you have configured with the buffer.memory configuration."
    if text:
        raise RecordTooLargeError(f"The message is {size} bytes when serialized which is larger than {text}")


def require_column_sizes(config: ProducerConfig, columns: RecordColumns) -> None:
    """Raise as `require_record_size` does; check single rows only if the sum of the columns' maxima is too large."""
    if not len(columns):
        return
    parts = (columns.keys, columns.values, columns.headers)
    limit = record_size_max(config) - HEADER_SIZE - RECORD_OVERHEAD_SIZE - SIZES_OF_SIZES - len(NO_HEADERS)
    if sum(map(_largest, parts)) <= limit:
        return
    keys, values, headers = (_sizes(part, len(columns)) for part in parts)
    for row in np.flatnonzero(keys + values + headers > limit - len(parts)).tolist():
        require_record_size(config, int(keys[row]), int(values[row]), max(int(headers[row]), len(NO_HEADERS)))


def _largest(column: BytesColumn | None) -> int:
    if column is None:
        return 0
    return column.width if column.width >= 0 else max(int((column.ends - column.starts).max()), 0)


def _sizes(column: BytesColumn | None, count: int) -> Int64Array:
    return np.full(count, -1, np.int64) if column is None else column.sizes
