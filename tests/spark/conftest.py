"""One Spark session for all tests here; see `skip_without_judge` for where it cannot run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import spark_dumps
from logstore.errors import UsageError
from tests.spark import standalone
from tests.support.judges import skip_without_judge

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SETTINGS = {**standalone.SETTINGS, "spark.driver.memory": "1g"}
Load = Callable[..., "DataFrame"]


BEFORE_EACH_COMMIT = ("test_session.py", "test_same_rows.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave tests with a session to `make test-slow`, but those of few files: a query takes a second of a processor."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) and item.path.name not in BEFORE_EACH_COMMIT:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session of two threads that knows the data source."""
    place = tmp_path_factory.mktemp("spark")
    try:
        session = spark_dumps.session("local[2]", {**SETTINGS, "spark.sql.warehouse.dir": str(place)})
    except UsageError as unavailable:
        skip_without_judge(f"no Spark: {unavailable}")
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def load(spark: SparkSession) -> Load:
    """`load(path, schema=None, option=value …)` is a table of the data source."""

    def load_table(path: Path | str, schema: str | None = None, **options: Any) -> DataFrame:
        reader = spark.read.format("kafka_segments")
        for name, value in options.items():
            reader = reader.option(name, value)
        return (reader if schema is None else reader.schema(schema)).load(str(path))

    return load_table
