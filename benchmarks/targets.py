"""The ratios that were asked for, each beside what was seen.

`TARGETS` names them with the benchmark that measures each. A target is held to what it says: one that needs more than a
run had (a size, a peer, a part that is not built) is said to be not measured, never guessed from another row.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from benchmarks.results import Measurement

KAFKA, TOOL, BROKER = "Kafka", "kafka-dump-log", "broker"


@dataclass(frozen=True)
class Target:
    """One of them.

    Attributes:
        source: the issue.
        words: what it asks.
        identity: of the benchmark; None: none yet, and `missing` says why.
        peer: whose ratio is asked; None: it is the `figure`, or the rate (`unit` a second).
        least: what is to be reached; `most` instead where less is better.
        floor_peer: the peer that does nothing of what ours does, where the benchmark has no other floor.
        where_peer: what is to be reached is asked only where this peer reaches it.
    """

    source: int
    words: str
    identity: str | None
    peer: str | None = None
    least: float | None = None
    most: float | None = None
    figure: str | None = None
    missing: str = ""
    floor_peer: str | None = None
    where_peer: str | None = None

    def seen(self, measurements: dict[str, Measurement]) -> tuple[float | None, str]:
        """(value, what the table says of it)."""
        if self.identity is None:
            return None, self.missing
        found = measurements.get(self.identity)
        if found is None:
            return None, "not in this run"
        if self.figure is not None:
            value = found.figures.get(self.figure)
            return (None, "not in this run") if value is None else (value, _number(value))
        if self.peer is None:
            return found.rate, f"{_number(found.rate or 0)} {found.unit}/s"
        ratio = found.peers.get(self.peer)
        if ratio is None:
            return None, found.absent.get(self.peer, f"{self.peer} did not run")
        rounds = f"({ratio.lowest:.2f} to {ratio.highest:.2f}, {ratio.round_count} rounds)"
        return ratio.median, f"{ratio.median:.2f}× {rounds}"

    def of_floor(self, measurements: dict[str, Measurement]) -> tuple[float | None, str]:
        """As `seen`, of the floor in the place of ours: more than that cannot be reached on this machine."""
        found = measurements.get(self.identity or "")
        value, _ = self.seen(measurements)
        if found is None or value is None or self.figure is not None:
            return None, ""
        if self.floor_peer is not None:
            ratio = found.peers.get(self.floor_peer)
            share = ratio.lowest if ratio is not None else None
        else:
            share = found.floor[1] if found.floor is not None else None
        if share is None:
            return None, ""
        value /= share
        if self.peer is None:
            return value, f"{_number(value)} {found.unit}/s"
        return value, f"{value:,.0f}×" if value >= 10 else f"{value:.1f}×"

    def applies(self, measurements: dict[str, Measurement]) -> bool:
        """Whether it is asked of this machine; so it is where that cannot be told."""
        found = measurements.get(self.identity or "")
        ratio = found.peers.get(self.where_peer or "") if found is not None else None
        if found is None or ratio is None or found.rate is None:
            return True
        return self.is_reached(found.rate / ratio.median)

    def is_reached(self, value: float) -> bool:
        """Whether what was seen is enough."""
        return value >= self.least if self.least is not None else self.most is not None and value <= self.most

    @property
    def asked(self) -> str:
        """As the table writes it."""
        sign, value = ("≥", self.least) if self.least is not None else ("≤", self.most)
        return f"{sign} {_number(value or 0)}{'×' if self.peer else ''}"


def _number(value: float) -> str:
    """
    >>> _number(1.8), _number(14e9), _number(60e6), _number(250)
    ('1.8', '14 G', '60 M', '250')
    """
    for factor, letter in ((1e9, " G"), (1e6, " M")):
        if value >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"


CODECS = ("gzip", "snappy", "lz4", "zstd")

TARGETS = (
    *(
        Target(3, f"dump of a segment, {words}", f"dump::test_dump_as_a_command[{words}]", TOOL, least)
        for words, least in (("--print-data-log", 40), ("--deep-iteration", 25), ("batch level", 4))
    ),
    Target(
        3,
        "dump: memory of the process, mapped pages included, MiB",
        "dump::test_dump_as_a_command[--print-data-log]",
        figure="memory MiB",
        most=250,
    ),
    *(
        Target(30, f"append, {count} records a call", f"append::test_append[{count}]", KAFKA, least)
        for count, least in ((1, 1.2), (10, 1.2), (100, 2), (1000, 2.5))
    ),
    Target(4, "columns, by the record, to appends of 1000", "append::test_append_columns", KAFKA, 8),
    *(
        Target(
            4, f"recovery of 1 GiB after a crash, {each}", f"recovery::test_recovery_of_a_crashed_log[{each}]", KAFKA, 7
        )
        for each in ("one thread", "two threads")
    ),
    Target(4, "decode with CRC, one thread", "decode::test_decode_file[one thread]", KAFKA, 4),
    Target(4, "decode with CRC, two threads", "decode::test_decode_file[two threads]", KAFKA, 6),
    Target(4, "cleaning 1 GiB of 10 M keys", "cleaning::test_clean_a_log[asked]", KAFKA, 5),
    *(
        Target(30, f"transactions of {count:,} records", f"transactions::test_transaction[{count}]", BROKER, least)
        for count, least in ((1, 15), (10, 12), (1000, 7))
    ),
    Target(5, "consume-transform-produce", "consume_transform_produce::test_chain", BROKER, 5),
    *(
        Target(30, f"`send` calls, {words}", f"send::test_send[{words}]", "confluent-kafka", least)
        for words, least in (("value", 1.2), ("key", 1), ("key and headers", 1))
    ),
    *(
        Target(30, f"records by {words}", f"consume::test_consume[{way}]", "confluent-kafka", 1)
        for words, way in (("`poll`", "polled"), ("iteration", "iterated"))
    ),
    Target(30, "first transaction and poll, cold", "startup::test_first_transaction", "import numpy", 1 / 5),
    Target(5, "`send_columns`", "send_columns::test_send_columns", "confluent-kafka", 20),
    Target(
        5,
        "opening a store of 1,000 partitions (logs open on first use)",
        "store::test_open[1000-clean]",
        BROKER,
        5,
    ),
    Target(5, "opening it and every log", "store::test_open_every_log[1000]", BROKER, 5),
    *(
        Target(
            5,
            f"{words} beside 10,000 open transactions and 100,000 groups, to one beside one of each",
            f"commits::test_commit_beside_many[{what}]",
            "beside one",
            1 / 1.2,
        )
        for what, words in (("transaction", "a transaction with an offset"), ("group", "a commit of an offset"))
    ),
    *(
        target
        for size in (100, 1000)
        for target in (
            Target(
                6,
                f"`sum(length(value))`, values of {size} bytes",
                f"spark_queries::test_sum_of_lengths[{size}]",
                "Spark's Kafka source",
                5,
                floor_peer="ready Arrow batches",
            ),
            Target(
                6,
                "the same, to ready Arrow batches",
                f"spark_queries::test_sum_of_lengths[{size}]",
                "ready Arrow batches",
                1 / 1.5,
            ),
            Target(
                6,
                "the same of 1 % of the offsets, to the full read",
                f"spark_queries::test_sum_of_few[{size}]",
                "full read",
                20,
                floor_peer="one ready record",
            ),
            Target(
                6,
                f"all columns of 1 % of the offsets, to the full read, values of {size} bytes",
                f"spark_queries::test_all_columns_of_few[{size}]",
                "full read",
                20,
            ),
        )
    ),
    Target(6, "two workers, to one", "spark_workers::test_two_workers", "one worker", 1.7),
    Target(6, "verify of 1 GiB, to reading with CRC", "verify::test_verify[16384]", "read with CRC", 1 / 2),
    *(
        Target(7, f"dump of a segment, {words}", f"dump::test_dump_as_a_command[{words}]", TOOL, least)
        for words, least in (("--print-data-log", 50), ("batch level", 6))
    ),
    Target(30, "dump of 10 KB, start to exit", "startup::test_dump_of_a_small_file", TOOL, 4),
    Target(7, "CRC of 256 MiB in memory", "crc::test_crc_of_memory", least=14e9, where_peer="crc32c"),
    Target(7, "the same, to the `crc32c` package", "crc::test_crc_of_memory", "crc32c", 1),
    *(
        Target(30, f"iteration of {codec}, {threads}", f"decode::test_decode_file_of[{codec}-{threads}]", KAFKA, least)
        for threads, least in (("one thread", 1.5), ("two threads", 2))
        for codec in CODECS
    ),
    Target(7, "decoded records to Arrow, values as views", "arrow::test_record_batches[views-100]", least=60e6),
)


def target_table(measurements: Iterable[Measurement], operations: Collection[str], scale: float) -> str:
    """Markdown: a row for each target that these operations answer, and for those that none answers yet.

    Nothing is said to be reached, or not, by a run below the real sizes.
    """
    by_identity = {each.identity: each for each in measurements}
    lines = ["| issue | what | asked | seen | by the floor | reached |", "|---|---|---|---|---|---|"]
    for target in TARGETS:
        if target.identity is not None and target.identity.partition("::")[0] not in operations:
            continue
        value, words = target.seen(by_identity)
        floor_value, floor_words = target.of_floor(by_identity)
        cells = [str(target.source), target.words, target.asked, words, floor_words]
        verdict = _verdict(target, value, floor_value)
        if value is not None and scale < 1:
            verdict = "not at this size"
        elif value is not None and not target.is_reached(value) and not target.applies(by_identity):
            verdict = f"not by {target.where_peer} either"
        cells.append(verdict)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _verdict(target: Target, value: float | None, floor_value: float | None) -> str:
    if value is None:
        return "not measured"
    if target.is_reached(value):
        return "yes"
    return "**no**" if floor_value is None or target.is_reached(floor_value) else "**no**, nor by the floor"
