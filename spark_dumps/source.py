"""The data source `kafka_segments`: its tables and options, and the class that Spark calls.

    spark.read.format("kafka_segments").option("subscribe", "orders").load("/var/lib/kafka/data")

| table | one row for |
|---|---|
| `records` | each record that a consumer gets, in the columns of Spark's Kafka source; `records` has more columns |
| `batches` | each record batch: its header, and whether its checksum is right |
| `transactions` | each transaction, decided or open, in each of its partitions |
| `producers` | each producer of a partition that a broker would know now, as `logstore producers` lists them |
| `aborted` | each entry of a `.txnindex` |
| `index_entries` | each entry of an `.index` or `.timeindex` |
| `group_offsets` | each committed offset of a consumer group, and each pending one of an open transaction |
| `transaction_state` | each transactional id that the coordinator knows |
| `topics` | each partition: path, size, bounds |
| `findings` | each finding of `logstore audit` |

Paths: a data directory, the directory of one partition, several of them comma separated, or glob patterns with `*`,
`?`, `[…]` and `{a,b}`; relative ones begin where the driver runs. A directory that is neither is an error. Executors
have to see what the driver listed: a task that misses a file, finds a shorter one, or finds another `meta.properties`
fails the query, and names its host and the path.

| option | means |
|---|---|
| `table` | `records` (default), or another of the tables above |
| `subscribe`, `subscribePattern`, `assign` | as for the Kafka source; default: all but topics of brokers |
| `startingOffsets`, `endingOffsets` | `earliest`, `latest`, or `{"topic": {"0": 23}}`; -2 is earliest, -1 latest |
| `startingTimestamp`, `endingTimestamp` | ms; `…OffsetsByTimestamp` takes `{"topic": {"0": ms}}` |
| `startingOffsetsByTimestampStrategy` | `error` (default) or `latest`, if no record is as young |
| `producerIds` | `7,9`: only `records` and `batches` of these producers; -1: of no idempotent producer |
| `isolation_level` | `read_uncommitted` (default) or `read_committed`; `kafka.isolation.level` means the same |
| `includeHeaders` | `true` adds the column `headers` |
| `failOnDataLoss` | `false`: if an offset is gone, read from the nearest one |
| `minPartitions` | least number of tasks, of at most about 512 MiB each; default: tasks of about 128 MiB |
| `mode` | at damage, `FAILFAST` (default) raises, `PERMISSIVE` and `DROPMALFORMED` go on behind it |
| `maxRecordsPerTrigger`, `maxOffsetsPerTrigger` | about the most offsets in a batch of a stream; Spark 4.2 and newer |
| `storage.…` | obstore's options for URLs of object stores, such as `storage.aws_region`; default: the environment |
| `ignore_network_config` | `true`: options about brokers (`kafka.bootstrap.servers` …) are ignored, not refused |
| `now` | reference time for ages in table `findings`, epoch ms; default: the clock |
| `columnNameOfCorruptRecord` | `_corrupt_record`; the column for errors with mode `PERMISSIVE` |

Topics of brokers are `__consumer_offsets`, `__transaction_state`, `__share_group_state`, `__cluster_metadata` and
`__remote_log_metadata`. A pattern may match the last of them, as those of Kafka's consumers do, and none of the others.
A topic or partition that was asked for and is missing is an error that names it, and so is a pattern that nothing
matches. Bounds name the partitions that are read, and no others. A batch cannot start at the latest offsets, end at the
earliest, or start above its end. Bounds and `producerIds` are for tables `records` and `batches`.

A partition that cannot be listed, such as a link that leads out of the data directory, counts as damage: mode
`PERMISSIVE` has a row for it, and where no row tells of it, a warning names its path. Table `findings` has a finding in
every mode.

A given schema (`.schema("offset long, value binary")`) prunes columns: other columns are not read, and errors of mode
`PERMISSIVE` are shown only if it names their column. Options skip
segments and seek in them; filters of a query do not: Spark applies them to the rows that the options select
(`docs/decisions/spark.md` says why).

`spark.readStream.format("kafka_segments")` follows table `records`, by default from `latest`; it takes no ending.
Triggers, AvailableNow and checkpoints work as for other sources. A checkpoint knows the ids of topics: a partition that
is gone, or is of a new topic of the name, fails the query, as Spark's Kafka source does; with `failOnDataLoss` as
`false` it is left out with a warning, or read from its start; a log that was cut is read from its new end. A pattern
that matches nothing may match later. There is no `writeStream`.

Writing:

    frame.write.format("kafka_segments").mode("append").option("topic", "orders").save("data")

appends all rows of the job to a store in one transaction: readers with read_committed see all rows or none, and none of
a job that failed. Columns are those of Spark's Kafka sink: `value`, and optionally `key`, `topic`, `partition`,
`headers`; and besides `timestamp`. Other columns are ignored. Rows without a `partition` get the one that the Java
producer chooses. Rows of one task keep their order within a partition.

| option | means |
|---|---|
| `path` | one data directory, of a store or of a broker that is not running; made if `partitions` is given |
| `topic` | the topic of all rows; column `topic` is ignored |
| `partitions` | create missing topics, with so many partitions; default: a missing topic is an error |
| `stagingPath` | a directory that driver and executors share; default: the parent of `path` |
| `transactionalId` | a job fences unfinished older jobs with the same id; default: a new id |
| `kafka.compression.type`, `kafka.partitioner.ignore.keys` | as of Kafka's producer |
| `ignore_network_config` | as for reading |
| `kafka.transaction.timeout.ms` | time for the driver to append all rows; default: long enough at 10 MB/s |
| `kafka.max.block.ms` | time that the driver waits for the lock of the directory; default: 60000 |

Only one process can open a data directory, so tasks stage their rows in files beside it, which needs room for them.
When all tasks are done, the driver opens the store, appends the rows and closes it. See `docs/decisions/spark.md`.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

from logstore.errors import UsageError

from .options import parse_options
from .pyspark_parts import prepare_worker
from .tables import TableReader, schema_of


class KafkaSegments(DataSource):
    """Tables over Kafka's data directories; see the module.

    Modules that only streams or writes need are imported late, because every Spark worker imports this module.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._given = dict(options)
        prepare_worker()

    @classmethod
    def name(cls) -> str:
        return "kafka_segments"

    def schema(self) -> StructType:
        """Return the columns of the table without a given schema."""
        return schema_of(parse_options(self._given, is_stream=None))

    def reader(self, schema: StructType) -> DataSourceReader:
        return TableReader(parse_options(self._given), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from .stream import make_stream

        return make_stream(parse_options(self._given, is_stream=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from .sink import make_sink

        return make_sink(self._given, schema, is_overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802 - Spark's name
        """Raise UsageError: a batch that Spark repeats after a failure would be written twice."""
        raise UsageError(
            "kafka_segments has no writeStream: a batch that Spark repeats after a failure would be written twice",
            advice='write each batch by foreachBatch, as frame.write.format("kafka_segments"), or use a broker',
        )
