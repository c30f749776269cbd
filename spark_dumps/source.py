"""The data source `kafka_segments`: what Spark calls, and the words that users write.

    spark.read.format("kafka_segments").option("subscribe", "orders").load("/var/lib/kafka/data")

| table | one row for |
|---|---|
| `records` | each record a consumer would get, as Spark's Kafka source gives it; more columns in `records` |
| `batches` | each record batch: its header, and whether its checksum is right |
| `transactions` | the part of each transaction, decided or open, that is in a partition |
| `producers` | each producer that a partition knows at its end |
| `aborted` | each entry of a `.txnindex` |
| `index_entries` | each entry of an `.index` or `.timeindex` |
| `group_offsets` | each offset that a consumer group has committed, or is about to in an open transaction |
| `transaction_state` | each transactional id that the coordinator knows |
| `topics` | each partition: where it is, how large, which offsets it holds |
| `findings` | each thing that `logstore audit` finds wrong |

Paths: a data directory, the directory of one partition, several of them comma separated, or glob patterns.

| option | means |
|---|---|
| `table` | `records` (default), or another of the tables above |
| `subscribe`, `subscribePattern`, `assign` | as for the Kafka source; without: all but internal topics |
| `startingOffsets`, `endingOffsets` | `earliest`, `latest`, or `{"topic": {"0": 23}}`; -2 is earliest, -1 latest |
| `startingTimestamp`, `endingTimestamp` | ms; `…OffsetsByTimestamp` takes `{"topic": {"0": ms}}` |
| `startingOffsetsByTimestampStrategy` | `error` (default) or `latest`, where no record is that young |
| `producerIds` | `7,9`: only what these producers wrote, of `records` and `batches`; -1 for none |
| `isolation_level` | `read_uncommitted` (default) or `read_committed`; `kafka.isolation.level` means the same |
| `includeHeaders` | `true` adds the column `headers` |
| `failOnDataLoss` | `false` reads what is there, where an offset is not |
| `minPartitions` | the least number of tasks, of at most about 512 MiB then; without, of 128 MiB |
| `mode` | `FAILFAST` (default), `PERMISSIVE`, `DROPMALFORMED`: what a damaged segment does |
| `maxRecordsPerTrigger`, `maxOffsetsPerTrigger` | how far a batch of a stream goes at most, about |
| `now` | ms: the time that ages are counted to in table `findings`, else by the clock |
| `columnNameOfCorruptRecord` | `_corrupt_record`; in a given schema it takes what is wrong, with mode `PERMISSIVE` |

A schema that is given (`.schema("offset long, value binary")`) prunes columns: what is not named is not read. Filters
of a query are applied by Spark to what the options let through; it is the options that skip segments and seek in them
(docs/decisions/spark.md tells why).

`spark.readStream.format("kafka_segments")` follows table `records` while it is written, from `latest` where
`startingOffsets` does not say otherwise; it takes no ending. Triggers, AvailableNow and checkpoints are as always.

Writing:

    frame.write.format("kafka_segments").mode("append").option("topic", "orders").save("data")

produces all rows of the job into a store in one transaction: readers with read_committed see all of them or none, and a
job that fails leaves nothing to see. Columns are those of Spark's Kafka sink: `value`, and where they are there `key`,
`topic`, `partition`, `headers`, and `timestamp`, which that one does not take; others are passed over. Rows without a
`partition` are placed as the Java producer places them. Rows of one task keep their order within a partition.

| option | means |
|---|---|
| `path` | one data directory, of a store or a broker that is not running; made if `partitions` is given |
| `topic` | of all rows, whatever their column `topic` says |
| `partitions` | makes topics that are not there, with so many partitions; without, they are an error |
| `stagingPath` | a directory that driver and executors share; by default the one that `path` is in |
| `transactionalId` | a job shuts out older ones with the same id that have not ended; by default each has its own |
| `kafka.compression.type`, `kafka.partitioner.ignore.keys` | as of Kafka's producer |
| `kafka.transaction.timeout.ms` | within it the driver has to append all rows; by default long enough for 10 MB/s |
| `kafka.max.block.ms` | how long the driver waits for another process to let go of the directory: 60000 |

Tasks put their rows beside the data directory first, for only one process can have it open: there has to be room for
them. The driver opens the store when all tasks are done, and closes it again. `docs/decisions/spark.md` tells more.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, DataSourceWriter
from pyspark.sql.types import StructType

from .options import parse_options
from .pyspark_parts import freeze_imports
from .tables import TableReader, schema_of


class KafkaSegments(DataSource):
    """Tables over Kafka's data directories; see the module.

    What only streams and writes need is imported by them: each of Spark's workers imports this module once.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._given = dict(options)
        freeze_imports()

    @classmethod
    def name(cls) -> str:
        """What `format` is called with."""
        return "kafka_segments"

    def schema(self) -> StructType:
        """The columns of the table, where none are given."""
        return schema_of(parse_options(self._given))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Of the given columns."""
        return TableReader(parse_options(self._given), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Of the given columns, for `readStream`."""
        from .stream import RecordsStream

        return RecordsStream(parse_options(self._given, is_stream=True), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Of rows with these columns."""
        from .sink import make_sink

        return make_sink(self._given, schema, is_overwrite=overwrite)
