"""Tables and audits read URLs on executors, as they read the local copy."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from logstore.disk import objects
from logstore.errors import DataDirectoryError
from spark_dumps.options import parse_options
from spark_dumps.tables import MODULES, find_table
from tests.spark.conftest import Load
from tests.support.golden import AFTER_GOLDEN_MS, Golden
from tests.support.object_store import SECRET, USER, ObjectStore, store_or_skip

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = [*MODULES]


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with store_or_skip() as server:
        yield server


@pytest.fixture
def storage(store: ObjectStore) -> Iterator[dict[str, str]]:
    """Options that say where the store is, as no environment variable of the executors does."""
    yield {
        "storage.aws_endpoint": store.endpoint,
        "storage.aws_access_key_id": USER,
        "storage.aws_secret_access_key": SECRET,
        "storage.aws_region": "eu-central-1",
    }
    objects.configure({})


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_a_url_has_the_rows_of_the_copy(
    table: str, store: ObjectStore, storage: dict[str, str], golden: Golden, load: Load
) -> None:
    local = str(golden("demo"))
    url = store.put_all(golden("demo"), "demo")
    options = {"table": table, "isolation_level": "read_committed"}
    expected = [str(row) for row in load(local, **options).collect()]
    found = [str(row).replace(url, local) for row in load(url, **options, **storage).collect()]
    assert sorted(found) == sorted(expected)


def test_bounds_of_a_url_are_the_bounds_of_the_copy(
    store: ObjectStore, storage: dict[str, str], golden: Golden, load: Load
) -> None:
    url = store.put_all(golden("demo"), "demo")
    options = {"subscribe": "orders", "startingOffsets": '{"orders": {"0": 9}}', "minPartitions": "3"}
    expected, found = (load(place, **options, **more) for place, more in ((golden("demo"), {}), (url, storage)))
    assert sorted(map(str, found.collect())) == sorted(map(str, expected.collect()))
    globbed = load(f"{url}/ord*-0", **storage)
    assert globbed.count() == load(url, subscribe="orders", **storage).count() > 0


def test_an_audit_on_executors_finds_in_a_url_what_it_finds_in_the_copy(
    store: ObjectStore, storage: dict[str, str], golden: Golden, load: Load, tmp_path: Path
) -> None:
    place = shutil.copytree(golden("killed"), tmp_path / "killed", copy_function=shutil.copyfile)  # of this moment too
    url = store.put_all(place, "killed")
    expected, found = (
        load(path, table="findings", now=AFTER_GOLDEN_MS, **more) for path, more in ((place, {}), (url, storage))
    )
    rows = sorted(str(row).replace(url, str(place)) for row in found.collect())
    assert rows == sorted(map(str, expected.collect()))


@pytest.mark.slow
def test_a_stream_over_a_url_reads_what_is_added(
    spark: SparkSession, store: ObjectStore, storage: dict[str, str], golden: Golden, tmp_path: Path
) -> None:
    directory = golden("demo") / "orders-0"
    url, logs = store.put_all(golden("demo"), "streamed"), sorted(directory.glob("*.log"))
    for path in directory.iterdir():
        if path.name >= logs[-1].name and path.suffix != ".metadata":
            store.remove(f"streamed/orders-0/{path.name}")
    reader = spark.readStream.format("kafka_segments").option("startingOffsets", "earliest")
    for name, value in {**storage, "subscribe": "orders"}.items():
        reader = reader.option(name, value)
    counts = []
    for _ in range(2):
        (
            reader.load(url)
            .writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(tmp_path / "rows"))
            .awaitTermination()
        )
        counts.append(spark.read.parquet(str(tmp_path / "rows")).count())
        store.put_all(golden("demo"), "streamed")
    assert counts[0] < counts[1]
    batch = spark.read.format("kafka_segments").option("subscribe", "orders").load(str(golden("demo")))
    assert counts[1] == batch.count()


def test_a_segment_that_was_replaced_after_planning_is_an_error_with_both_etags(
    store: ObjectStore, storage: dict[str, str], golden: Golden
) -> None:
    url = store.put_all(golden("demo"), "planned")
    options = parse_options({"path": url, "subscribe": "orders", **storage})
    options.open_stores()
    table = find_table("records")
    (task,) = table.plan(options)
    key = "orders-0/00000000000000000000.log"
    content = (golden("demo") / key).read_bytes()
    before = objects.stat(f"{url}/{key}").st_ino
    store.put(f"planned/{key}", content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DataDirectoryError, match="The object was replaced since it was listed") as caught:
        list(table.read(task, options, pa.schema([("offset", pa.int64())])))
    assert caught.value.expected == f"ETag {before}"
    assert str(caught.value.found).startswith("ETag ")
    assert caught.value.found != caught.value.expected
