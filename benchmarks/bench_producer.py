"""`send` calls of an idempotent producer and `send_columns`, beside confluent-kafka with a real local broker; and
batches built of records before they are sent, beside Kafka's builder and those of the Python clients.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import logstore
from benchmarks.peers.kafka import LocalBroker, WarmKafka
from benchmarks.peers.python_clients import BUILDERS, built, confluent_sends
from benchmarks.support.data import BATCH_SIZE, columns_of, scaled, values
from benchmarks.support.floors import appending, compressing, copying
from benchmarks.support.logs import last_values, written
from benchmarks.support.measure import Measured, Side
from logstore.columns.batch_table import ByteArray, scan
from logstore.columns.record_building import build_batch, build_batches
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.model import Codec

VALUE = b"v" * 100
KEY = b"customer-0042"
HEADERS = [("trace", b"7f3a"), ("source", b"billing")]
RECORD_SIZE = 107  # of a record of such a value, on average
CALL_COUNT = scaled(200, 50_000)
COLUMN_COUNT = scaled(200, 200_000)
BATCH_RECORD_COUNT, KAFKA_BATCH_COUNT = 150, 1000
TIME_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("key", "headers"),
    [(None, None), (KEY, None), (KEY, HEADERS)],
    ids=["value", "key", "key and headers"],
)
def test_send(
    measured: Measured,
    broker: LocalBroker,
    tmp_path: Path,
    key: bytes | None,
    headers: list[tuple[str, bytes]] | None,
    request: pytest.FixtureRequest,
) -> None:
    where = (lambda: broker.bootstrap), (lambda: broker.topic("sends"))
    theirs = confluent_sends(*where, VALUE, CALL_COUNT, key, headers)
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("sends", partitions=1)
        producer = store.producer()

        def send_all() -> int:
            for _ in range(CALL_COUNT):
                producer.send("sends", VALUE, key, headers)
            producer.flush()
            return CALL_COUNT

        measured(
            send_all,
            title=f"{CALL_COUNT:,} `send` calls and a flush, {request.node.callspec.id}",
            size=CALL_COUNT * len(VALUE),
            count=CALL_COUNT,
            peers={"confluent-kafka": broker.asked(lambda: theirs() * CALL_COUNT)},
            floor=appending(tmp_path / "floor", CALL_COUNT * RECORD_SIZE),
            written_size=CALL_COUNT * len(VALUE),
            hashed=lambda count: (count, last_values(store.log("sends", 0), CALL_COUNT)),
        )
        end = store.log("sends", 0).log_end_offset
    assert end > 0
    assert end % CALL_COUNT == 0


def test_send_columns(measured: Measured, broker: LocalBroker, tmp_path: Path) -> None:
    theirs = confluent_sends(lambda: broker.bootstrap, lambda: broker.topic("columns"), VALUE, COLUMN_COUNT)
    column = np.full((COLUMN_COUNT, len(VALUE)), ord("v"), np.uint8)
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("columns", partitions=1)
        producer = store.producer()

        def send() -> int:
            return sum(one.record_count for one in producer.send_columns("columns", column))

        sent = measured(
            send,
            title=f"`send_columns` of {COLUMN_COUNT:,} records",
            size=column.nbytes,
            count=COLUMN_COUNT,
            peers={"confluent-kafka": broker.asked(lambda: theirs() * COLUMN_COUNT)},
            floor=appending(tmp_path / "floor", COLUMN_COUNT * RECORD_SIZE),
            written_size=column.nbytes,
            hashed=lambda sent: (sent, *written(store.log("columns", 0), COLUMN_COUNT)),
        )
        assert sent == COLUMN_COUNT
        log = store.log("columns", 0)
        assert log.log_end_offset % COLUMN_COUNT == 0
        last = next(log.records(log.log_end_offset - 1).chunks()).to_records()[-1]
        assert (last.offset, last.value) == (log.log_end_offset - 1, column[-1].tobytes())


@pytest.mark.parametrize("value_size", [8, 100])
@pytest.mark.parametrize("has_keys", [False, True], ids=["values", "keys"])
def test_build_batches(measured: Measured, value_size: int, has_keys: bool) -> None:
    columns = columns_of(value_size, has_keys=has_keys, count=COLUMN_COUNT)
    size = COLUMN_COUNT * value_size
    made = measured(
        lambda: build_batches(columns, batch_size=BATCH_SIZE),
        title=f"encode {COLUMN_COUNT:,} records of {value_size} bytes{' with keys' if has_keys else ''}",
        size=size,
        count=COLUMN_COUNT,
        floor=copying(size),
        hashed=lambda made: made.data,
    )
    found = scan(made.data, check_crc=True)
    assert np.array_equal(found.matrix, made.table.matrix)
    assert found.record_count.sum() == COLUMN_COUNT


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.kafka_name)
def test_build_batch(measured: Measured, kafka: WarmKafka, codec: Codec) -> None:
    columns = RecordColumns(
        BATCH_RECORD_COUNT,
        None,
        BytesColumn.of_values(values(BATCH_RECORD_COUNT)),
        np.full(BATCH_RECORD_COUNT, TIME_MS, np.int64),
    )  # what the peer builds: a codec takes its time by what is in the values
    order = {"op": "encode", "valueSize": 100, "compression": codec.kafka_name, "records": BATCH_RECORD_COUNT}
    calls = {"call_count": KAFKA_BATCH_COUNT, "expected_count": BATCH_RECORD_COUNT * KAFKA_BATCH_COUNT}
    data = measured(
        lambda: build_batch(columns, codec=codec),
        title=f"encode a batch of {BATCH_RECORD_COUNT} records, {codec.kafka_name}",
        count=BATCH_RECORD_COUNT,
        size=BATCH_RECORD_COUNT * 100,
        peers={"Kafka": lambda: kafka.seconds(**order, **calls, count=KAFKA_BATCH_COUNT)},
        floor=compressing(codec, b"".join(values(BATCH_RECORD_COUNT))),
    )
    assert scan(data, check_crc=True).is_valid.tolist() == [1]


def test_build_batch_of_values(measured: Measured) -> None:
    """Build from a list of values, as a program that sends one after the other has them."""
    batch = values(BATCH_RECORD_COUNT)
    peers: dict[str, Side] = {name: built(name, batch, TIME_MS) for name in BUILDERS}

    def build() -> ByteArray:
        times = np.full(BATCH_RECORD_COUNT, TIME_MS, np.int64)
        return build_batch(RecordColumns(BATCH_RECORD_COUNT, None, BytesColumn.of_values(batch), times))

    title = f"encode a batch of {BATCH_RECORD_COUNT} Python values"
    size = BATCH_RECORD_COUNT * 100
    data = measured(build, title=title, count=BATCH_RECORD_COUNT, size=size, peers=peers, floor=copying(size))
    assert scan(data, check_crc=True).record_count.tolist() == [BATCH_RECORD_COUNT]
