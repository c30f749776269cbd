"""Which partitions, offsets and times are read, and calls that are refused before anything is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from logstore.errors import DataDirectoryError, UnknownTopicOrPartitionError, UsageError
from spark_dumps import planning
from spark_dumps.options import parse_options
from spark_dumps.tables import MODULES
from tests.spark.planned import Planned
from tests.spark.segment_files import write_partition
from tests.support.encoder import SOME_TIME
from tests.support.golden import Golden
from tests.support.sampling import sampled

if TYPE_CHECKING:
    from tests.spark.conftest import Load

COUNT = 600


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`orders` of two partitions, `payments` and an internal topic; a record n of each has time SOME_TIME + n."""
    root = tmp_path_factory.mktemp("data")
    for name in ("orders-0", "orders-1", "payments-0", "__internal-0"):
        write_partition(root, name)
    return root


def partitions_of(path: Path | str, **options: object) -> set[str]:
    return {f"{row['topic']}-{row['partition']}" for row in Planned(path, **options).rows()}


def test_topics_and_partitions_are_chosen_as_for_the_kafka_source(data: Path) -> None:
    assert partitions_of(data) == {"orders-0", "orders-1", "payments-0", "__internal-0"}
    assert partitions_of(data, subscribe="payments, __internal") == {"payments-0", "__internal-0"}
    assert partitions_of(data, subscribePattern="^o|rnal") == {"orders-0", "orders-1", "__internal-0"}
    assert partitions_of(data, assign='{"orders": [1], "payments": [0]}') == {"orders-1", "payments-0"}


def test_by_default_topics_of_brokers_are_left_out_and_no_other_that_begins_with_underscores(tmp_path: Path) -> None:
    users = {"__debezium-heartbeat.x-0", "__CruiseControlMetrics-0", "_schemas-0"}
    kafkas = {f"__{name}-0" for name in ("consumer_offsets", "transaction_state", "share_group_state")}
    unasked = kafkas | {"__cluster_metadata-0", "__remote_log_metadata-0"}
    for name in users | unasked:
        write_partition(tmp_path, name)
    assert partitions_of(tmp_path) == users
    assert partitions_of(tmp_path, subscribePattern="^_") == {*users, "__remote_log_metadata-0"}


def test_paths_are_directories_partitions_lists_and_patterns(data: Path) -> None:
    assert partitions_of(f"{data}/orders-1") == {"orders-1"}
    assert partitions_of(f"{data}/__internal-0") == {"__internal-0"}
    assert partitions_of(f"{data}/orders-1, {data}/payments-0") == {"orders-1", "payments-0"}
    assert partitions_of(f"{data}/orders-*") == {"orders-0", "orders-1"}
    listed = json.dumps([f"{data}/orders-0", f"{data}/orders-1"])
    assert partitions_of("ignored", paths=listed) == {"orders-0", "orders-1"}


def test_a_data_directory_may_be_called_like_a_partition(tmp_path: Path) -> None:
    write_partition(tmp_path / "kafka-1")
    assert partitions_of(tmp_path / "kafka-1") == {"orders-0"}


@pytest.mark.parametrize(
    ("starting", "ending", "expected"),
    [
        ("earliest", "latest", (0, 600)),
        ({"0": -2}, {"0": -1}, (0, 600)),
        ({"0": 0}, {"0": 600}, (0, 600)),
        ({"0": 5}, {"0": 6}, (5, 6)),
        ({"0": 199}, {"0": 201}, (199, 201)),
        ({"0": 200}, {"0": 400}, (200, 400)),
        ({"0": 333}, {"0": 334}, (333, 334)),
        ({"0": 599}, {"0": 600}, (599, 600)),
        ({"0": 600}, {"0": 600}, (0, 0)),
        ({"0": 50}, {"0": 50}, (0, 0)),
    ],
)
def test_offsets(starting: object, ending: object, expected: tuple[int, int], data: Path) -> None:
    options = {
        "startingOffsets": starting if isinstance(starting, str) else json.dumps({"orders": starting}),
        "endingOffsets": ending if isinstance(ending, str) else json.dumps({"orders": ending}),
    }
    planned = Planned(data, assign='{"orders": [0]}', **options)
    assert planned.offsets() == list(range(*expected))


NOT_THERE = [
    ({"subscribe": "ordres"}, "ordres.*did you mean orders"),
    ({"subscribe": "orders,paymnets"}, "paymnets.*did you mean payments"),
    ({"subscribePattern": "^ordr"}, r"\^ordr"),
    ({"assign": '{"ordres": [0]}'}, "ordres-0"),
    ({"assign": '{"orders": [0, 7]}'}, "orders-7"),
]


@pytest.mark.parametrize("table", [*MODULES])
@pytest.mark.parametrize(("options", "words"), NOT_THERE)
def test_what_is_chosen_and_not_there_is_named(options: dict[str, str], words: str, table: str, data: Path) -> None:
    wanted = (UsageError, "alone") if table in ("group_offsets", "transaction_state") else (LookupError, words)
    with pytest.raises(wanted[0], match=wanted[1]):
        Planned(data, table=table, **options)


def test_a_topic_that_a_broker_set_aside_is_not_there(tmp_path: Path) -> None:
    write_partition(tmp_path)
    write_partition(tmp_path, "payments-0.0123456789abcdef0123456789abcdef-delete")
    with pytest.raises(UnknownTopicOrPartitionError, match="payments"):
        Planned(tmp_path, subscribe="payments")
    with pytest.raises(UsageError, match="set aside"):
        Planned(tmp_path / "payments-0.0123456789abcdef0123456789abcdef-delete")


def test_a_table_of_one_topic_needs_a_directory_that_may_have_it(data: Path) -> None:
    assert Planned(data, table="group_offsets").rows() == []  # a broker makes the topic for the first group
    with pytest.raises(UsageError, match="__consumer_offsets alone, and no path"):
        Planned(data / "orders-0", table="group_offsets")


@pytest.mark.parametrize("table", ["records", "batches"])
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"startingOffsets": "latest"}, "startingOffsets cannot be latest in a batch"),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, "startingOffsets of orders-0 cannot be latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets cannot be earliest in a batch"),
        ({"endingOffsets": '{"orders": {"0": -2}}'}, "endingOffsets of orders-0 cannot be earliest"),
        (
            {"startingOffsets": '{"orders": {"0": 50}}', "endingOffsets": '{"orders": {"0": 20}}'},
            "start of orders-0 is above its end.*at most offset 20.*offset 50",
        ),
        ({"startingOffsets": '{"orders": {"0": 601}}'}, "does not hold offset 601"),
        ({"startingTimestamp": SOME_TIME + 9, "endingTimestamp": SOME_TIME + 8}, "above the ending timestamp"),
        (
            {"startingTimestamp": SOME_TIME + 50, "endingOffsets": '{"orders": {"0": 20}}'},
            "start of orders-0 is above its end",
        ),
        ({"startingOffsets": '{"orders": {"0": 1, "7": 1}}'}, "the bound names orders-7"),
        ({"endingOffsets": '{"orders": {"0": 1}, "ordres": {"0": 1}}'}, "the bound names ordres-0"),
        ({"startingOffsetsByTimestamp": f'{{"orders": {{"0": {SOME_TIME}, "3": 1}}}}'}, "the bound names orders-3"),
    ],
)
def test_bounds_with_nothing_between_them_are_refused(
    options: dict[str, object], words: str, table: str, data: Path
) -> None:
    with pytest.raises(UsageError, match=words):
        Planned(data, table=table, assign='{"orders": [0]}', **options)


def test_a_table_that_does_not_heed_bounds_refuses_them(data: Path) -> None:
    for name in ("startingOffsets", "endingTimestamp", "producerIds"):
        with pytest.raises(UsageError, match=f"table transactions takes no {name}"):
            Planned(data, table="transactions", **{name: "7"})


@pytest.mark.parametrize("table", [*MODULES])
def test_a_directory_that_is_no_brokers_is_refused(table: str, data: Path, tmp_path: Path) -> None:
    (tmp_path / "around" / "data").mkdir(parents=True)
    (tmp_path / "around" / "data" / "meta.properties").write_text("version=1\n")
    for path, words in ((tmp_path / "around", f"did you mean {tmp_path}/around/data"), (tmp_path / "empty", "")):
        path.mkdir(exist_ok=True)
        with pytest.raises(UsageError, match=f"not a Kafka data directory.*{words}"):
            Planned(path, table=table)


def test_options_of_a_network_are_refused_or_ignored_with_a_warning(
    data: Path, caplog: pytest.LogCaptureFixture
) -> None:
    of_kafka_source = {
        "kafka.bootstrap.servers": "localhost:9092",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.jaas.config": "x",
        "kafka.ssl.truststore.location": "y",
        "kafka.group.id": "g",
        "kafka.max.poll.records": "7",
        "groupIdPrefix": "p",
        "kafkaConsumer.pollTimeoutMs": "1",
        "fetchOffset.numRetries": "3",
        "kafka.isolation.level": "read_committed",
    }
    with pytest.raises(UsageError, match=r"no option 'fetchOffset\.numRetries', .*set ignore_network_config to true"):
        Planned(data, subscribe="orders", **of_kafka_source)
    planned = Planned(data, subscribe="orders", ignore_network_config="true", **of_kafka_source)
    assert len(planned.offsets()) == 2 * COUNT
    assert "kafka.bootstrap.servers" in caplog.text
    assert "kafka.isolation.level" not in caplog.text
    with pytest.raises(UsageError, match=r"kafka\.isolation\.level cannot be that"):
        parse_options({"path": "/d", "ignore_network_config": "true", "kafka.isolation.level": "serializable"})
    with pytest.raises(UsageError, match=r"no option 'kafka\.isolaton\.level'"):
        parse_options({"path": "/d", "ignore_network_config": "true", "kafka.isolaton.level": "read_committed"})


def test_few_offsets_read_few_bytes(data: Path) -> None:
    planned = Planned(
        data, assign='{"orders": [0]}', startingOffsets='{"orders":{"0":300}}', endingOffsets='{"orders":{"0":306}}'
    )
    whole = Planned(data, assign='{"orders": [0]}')
    assert sum(one.end - one.start for task in planned.tasks for one in task.slices) * 15 < sum(
        one.end - one.start for task in whole.tasks for one in task.slices
    )


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(0, 600, (0, 600)), (7, 8, (7, 8)), (195, 205, (195, 205)), (400, 10_000, (400, 600)), (595, 599, (595, 599))],
)
def test_times(start: int, end: int, expected: tuple[int, int], data: Path) -> None:
    by_all = {"startingTimestamp": SOME_TIME + start, "endingTimestamp": SOME_TIME + end}
    assert Planned(data, subscribe="payments", **by_all).offsets() == list(range(*expected))
    by_partition = {
        "startingOffsetsByTimestamp": json.dumps({"payments": {"0": SOME_TIME + start}}),
        "endingOffsetsByTimestamp": json.dumps({"payments": {"0": SOME_TIME + end}}),
    }
    assert Planned(data, subscribe="payments", **by_partition).offsets() == list(range(*expected))


def test_a_starting_time_that_no_record_reaches(data: Path) -> None:
    with pytest.raises(UsageError, match="no record as young"):
        Planned(data, startingTimestamp=SOME_TIME + COUNT)
    late = {"startingTimestamp": SOME_TIME + COUNT, "startingOffsetsByTimestampStrategy": "latest"}
    assert Planned(data, **late).offsets() == []


def test_offsets_that_are_not_there(data: Path) -> None:
    options = {"subscribe": "payments", "startingOffsets": '{"payments": {"0": 601}}'}
    with pytest.raises(UsageError, match="does not hold offset 601"):
        Planned(data, **options)
    assert Planned(data, failOnDataLoss="false", **options).offsets() == []
    with pytest.raises(UsageError, match="names no orders-1"):
        Planned(data, subscribe="orders", startingOffsets='{"orders": {"0": 1}}')
    with pytest.raises(UsageError, match=r"names no orders-1; .*; 0 is before all times"):
        Planned(data, subscribe="orders", startingOffsetsByTimestamp='{"orders": {"0": 1}}')
    planned = Planned(data, subscribe="orders", startingOffsetsByTimestamp='{"orders": {"0": 0, "1": 0}}')
    assert planned.offsets() == Planned(data, subscribe="orders").offsets()


def test_offsets_of_a_querys_progress_name_their_topic(tmp_path: Path) -> None:
    path, topic_id = write_partition(tmp_path, "payments-0")[0].parent, "dqEnd-x7SkKckvU0_kJgLQ"
    progress = json.dumps({"payments": {"0": 599, "topicId": topic_id}})
    options = {"subscribe": "payments", "startingOffsets": progress}
    assert Planned(tmp_path, **options).offsets() == [599]  # the directory does not say which topic it is of
    (path / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    assert Planned(tmp_path, **options).offsets() == [599]
    (path / "partition.metadata").write_text("version: 0\ntopic_id: Zzsa1rsoQAqDc5QNzy3jmA")
    with pytest.raises(UsageError, match=f"payments-0 is of another topic of the name; expected topic id {topic_id}"):
        Planned(tmp_path, **options)


def test_tasks_are_as_many_as_asked_for_and_cut_segments(data: Path) -> None:
    assert len(Planned(data).tasks) == 1
    planned = Planned(data, minPartitions=30)
    assert 30 <= len(planned.tasks) <= 45
    rows = [(row["topic"], row["partition"], row["offset"]) for row in planned.rows()]
    assert rows == [(row["topic"], row["partition"], row["offset"]) for row in Planned(data).rows()]
    sizes = [sum(one.end - one.start for one in task.slices) for task in planned.tasks]
    assert max(sizes) < 2 * sum(sizes) / 30


def test_tasks_are_larger_where_somebody_says_how_many_are_enough(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    total = sum(one.end - one.start for task in Planned(data).tasks for one in task.slices)
    monkeypatch.setattr(planning, "FILE_COST", 0)
    monkeypatch.setattr(planning, "TASK_SIZE_MAX", total // 20)
    monkeypatch.setattr(planning, "ASKED_SIZE_MAX", total // 5)
    counts = {wanted: len(Planned(data, minPartitions=wanted).tasks) for wanted in (1, 2, 10)}
    assert 5 <= counts[1] == counts[2] < 10 <= counts[10] < len(Planned(data).tasks)


def test_producers_are_chosen_by_their_ids(golden: Golden) -> None:
    path = golden("transactions")
    everything = Planned(path, "producer_id long, offset long").rows()
    ids = {row["producer_id"] for row in everything}
    assert {-1, 0, 1} < ids
    for chosen in ({1}, {-1}, {0, 7}, {10**15}):
        found = Planned(path, "producer_id long, offset long", producerIds=",".join(map(str, chosen))).rows()
        assert found == [row for row in everything if row["producer_id"] in chosen]
    batches = Planned(path, "producer_id long", table="batches", producerIds="9").rows()
    assert {row["producer_id"] for row in batches} == {9}


def test_the_schema_prunes_columns(data: Path) -> None:
    (batch, *_) = Planned(data, "value binary, offset long").batches()
    assert batch.schema.names == ["value", "offset"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "path is missing"),
        ({"path": " , "}, "path is missing"),
        ({"path": "/d", "isolationLevel": "read_committed"}, "no option 'isolationLevel'"),
        ({"path": "/d", "kafka.bootstrap.servers": "localhost:9092"}, r"no option 'kafka\.bootstrap\.servers'"),
        ({"path": "/d", "isolation_level": "serializable"}, "isolation_level"),
        ({"path": "/d", "subscribe": "a", "assign": "{}"}, "exclude each other"),
        ({"path": "/d", "subscribe": " , "}, "subscribe is empty"),
        ({"path": "/d", "subscribePattern": ""}, "subscribePattern is empty"),
        ({"path": "/d", "assign": "{}"}, "assign is empty"),
        ({"path": "/d", "subscribePattern": "("}, "no pattern"),
        ({"path": "/d", "startingOffsets": "newest"}, "no JSON"),
        ({"path": "/d", "startingOffsets": "[]"}, "startingOffsets"),
        ({"path": "/d", "startingOffsets": '{"t": 1}'}, "startingOffsets"),
        ({"path": "/d", "startingOffsets": '{"t": {"0": -3}}'}, "from -2"),
        ({"path": "/d", "startingOffsets": '{"t": {"x": 3}}'}, "a partition in startingOffsets"),
        ({"path": "/d", "startingOffsets": '{"t": {"0": 1.5}}'}, "startingOffsets"),
        (
            {"path": "/d", "endingTimestamp": "yesterday"},
            "endingTimestamp cannot be that; .* of milliseconds since 1970",
        ),
        ({"path": "/d", "minPartitions": "0"}, "minPartitions"),
        ({"path": "/d", "producerIds": "7;9"}, "producerIds"),
        ({"path": "/d", "includeHeaders": "yes"}, "includeHeaders"),
    ],
)
def test_a_wrong_option_is_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_options(options)


@pytest.mark.parametrize("url", ["hdfs:/data", "hdfs://name/data", "dbfs:/data", "FTP://host/d"])
def test_a_url_says_what_to_do_instead(url: str) -> None:
    for options in ({"path": f"/d,{url}"}, {"paths": json.dumps([url])}):
        with pytest.raises(UsageError) as refused:
            parse_options(options)
        assert "have mounted" in str(refused.value)
        assert (refused.value.found, refused.value.expected) == (url, "a path, or file:/…")
        assert "mount the storage, or copy the directory" in str(refused.value.advice)


@pytest.mark.parametrize("url", ["s3://bucket/data", "s3a://bucket/data", "gs://bucket/d*", "https://host/d"])
def test_a_url_of_an_object_store_is_kept(url: str) -> None:
    options = parse_options({"path": url, "Storage.AWS_Region": "eu-central-1"})
    assert (options.paths, options.storage) == ((url,), (("aws_region", "eu-central-1"),))


def test_another_name_of_an_object_store_is_refused_with_the_one_to_write() -> None:
    with pytest.raises(UsageError, match="write abfss://container@account"):
        parse_options({"path": "wasbs://c@a.blob.core.windows.net/data"})


def test_a_url_of_a_file_is_its_path(data: Path) -> None:
    for url in (f"file:{data}", f"file://{data}", f"FILE://{data}/"):
        assert parse_options({"path": url}).paths == (str(data),)
        assert partitions_of(url) == {"orders-0", "orders-1", "payments-0", "__internal-0"}


def test_spark_hands_urls_over(data: Path, load: Load) -> None:
    assert load(f"file://{data}", subscribe="payments").count() == COUNT
    with pytest.raises(Exception, match=r"have mounted.*hdfs://name/data.*mount the storage"):
        load("hdfs://name/data").count()


def test_isolation_goes_by_the_consumers_name_too() -> None:
    levels = [
        parse_options({"path": "/d", name: "READ_COMMITTED"}).isolation_level
        for name in ("isolation_level", "kafka.isolation.level", "KAFKA.ISOLATION.LEVEL")
    ]
    assert levels == ["read_committed"] * 3


def test_wrong_tables_columns_and_paths_are_refused(data: Path) -> None:
    with pytest.raises(UsageError, match="no such table"):
        Planned(data, table="offsets")
    with pytest.raises(UsageError, match="no column 'payload'"):
        Planned(data, "payload binary")
    with pytest.raises(UsageError, match="another type"):
        Planned(data, "offset int")
    with pytest.raises(DataDirectoryError, match="no such directory"):
        Planned("/no/such/directory")


@pytest.mark.parametrize("has_indexes", [True, False])
@pytest.mark.parametrize("damage_position", sampled([None, 5000], [5000], pytest.mark.slow))
def test_a_segment_is_cut_anywhere_and_read_once(
    has_indexes: bool, damage_position: int | None, tmp_path: Path
) -> None:
    (path,) = write_partition(tmp_path, "orders-0", [60])
    if not has_indexes:
        path.with_suffix(".index").unlink()
    if damage_position is not None:
        content = bytearray(path.read_bytes())
        content[damage_position : damage_position + 1500] = b"\xff" * 1500
        path.write_bytes(content)
    expected = Planned(tmp_path, mode="PERMISSIVE").rows()
    assert (sum(row["_corrupt_record"] is not None for row in expected) > 0) == (damage_position is not None)
    for count in (2, 7, 60, 173):
        planned = Planned(tmp_path, mode="PERMISSIVE", minPartitions=count)
        assert len(planned.tasks) >= count
        assert sorted(planned.rows(), key=str) == sorted(
            expected, key=str
        )  # a window's damage comes before its records
        for table in ("batches", "records"):
            whole, cut = (Planned(tmp_path, table=table, mode="DROPMALFORMED", minPartitions=n) for n in (1, count))
            assert whole.rows() == cut.rows()


def test_a_pattern_may_have_braces(tmp_path: Path) -> None:
    for name in ("broker-1/orders-0", "broker-2/orders-1", "broker-3/orders-2", "{a,b}/orders-3"):
        write_partition(tmp_path, name, [1])
    pairs = [
        ("{broker-1,broker-2}", [0, 1]),
        ("broker-{1,{2,3}}", [0, 1, 2]),
        ("broker-{1,9}", [0]),
        ("broker-[12]", [0, 1]),
        ("{a,b}", [3]),
    ]
    for pattern, expected in pairs:
        rows = Planned(tmp_path / pattern, table="topics").rows()
        assert [row["partition"] for row in rows] == expected
    both = Planned(f"{tmp_path}/broker-{{1,2}},file://{tmp_path}/broker-3", table="topics")
    assert len(both.rows()) == 3
    with pytest.raises(DataDirectoryError, match="there is no such directory"):
        Planned(tmp_path / "broker-{7,8}")


def test_a_path_may_be_a_file_url_or_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_partition(tmp_path / "data", "orders-0", [1])
    monkeypatch.chdir(tmp_path)
    path = f"{tmp_path}/data"
    for text in ("data", "./data/", f"file:{path}", f"file://{path}", f"file://localhost{path}", f"FILE:{path}"):
        assert Planned(text).offsets() == list(range(10))
    with pytest.raises(UsageError, match="names no host"):
        Planned("file://data/x")


def test_properties_of_a_table_are_no_options(tmp_path: Path) -> None:
    write_partition(tmp_path, "orders-0", [1])
    properties = {"provider": "kafka_segments", "owner": "x", "location": f"file:{tmp_path}", "option.table": "topics"}
    assert parse_options(properties).table == "topics"
    assert parse_options({**properties, "table": "batches"}).table == "batches"
    with pytest.raises(UsageError, match="no option 'owner'"):
        parse_options({"owner": "x", "path": str(tmp_path)})
