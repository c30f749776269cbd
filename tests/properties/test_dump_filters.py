"""A filtered dump is the whole dump without what does not pass: batches, records, text and objects."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conformance.dumping import answer, ms_of
from tests.naive.legacy import Message, message_set, wrapped
from tests.support.dice import Dice
from tests.support.encoder import DELETE_HORIZON, LOG_APPEND_TIME, SOME_TIME, Batch, Rec, random_segment
from tests.support.sampling import examples

LOG = "00000000000000000000.log"
OPTIONS = (
    [],
    ["--deep-iteration"],
    ["--print-data-log"],
    ["--print-data-log", "--skip-record-metadata"],
    ["--key-decoder-class", "org.apache.kafka.tools.api.DefaultDecoder"],
)
KEYS = (b"", b"text", "Grüße 世界 😀".encode(), b'{"a": [1, "\\""]}', b"nowhere")
FOREVER = 2**63

Item = dict[str, Any]


@pytest.fixture(scope="module", autouse=True)
def in_a_directory_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("filters"))
        yield


def dump(options: list[str]) -> tuple[int, str]:
    rc, stdout, stderr = answer(["--files", LOG, *options])
    assert rc == 0, stderr
    return rc, stdout


def items(options: list[str]) -> list[Item]:
    """Batches and records, with timestamps of records in ms."""
    found = map(json.loads, dump([*options, "--format", "json"])[1].split("\n")[:-1])
    return [
        item | {"timestamp": ms_of(item["timestamp"])} if item["type"] == "record" and "timestamp" in item else item
        for item in found
    ]


def groups(options: list[str]) -> list[list[Item]]:
    """Batches with their records."""
    found: list[list[Item]] = []
    for item in items(options):
        if item["type"] == "record":
            found[-1].append(item)
        else:
            found.append([item])
    return found


def text_lines(options: list[str]) -> list[str]:
    """Lines of batches and records; a record has no line end in it where contents are not printed."""
    return dump(options)[1].split("\n")[2:-1]


class Naive:
    """Bounds as a human reads them."""

    def __init__(self, offsets: tuple[int, int], times: tuple[int, int], producer_id: int | None, key: bytes | None):
        self.offsets, self.times, self.producer_id, self.key = offsets, times, producer_id, key

    def argv(self) -> list[str]:
        options = []
        for option, (first, last) in (("offset", self.offsets), ("time", self.times)):
            if (first, last) != (-FOREVER, FOREVER):
                a, b = "" if first == -FOREVER else str(first), "" if last == FOREVER else str(last)
                options.append(f"--{option}={a}" if first == last else f"--{option}={a}:{b}")
        options += [] if self.producer_id is None else [f"--producer-id={self.producer_id}"]
        return options + ([] if self.key is None else ["--key", self.key.decode()])

    @property
    def is_of_records(self) -> bool:
        """Whether it asks for records, which are shown alone."""
        return self.times != (-FOREVER, FOREVER) or self.key is not None

    def passes(self, record: Item) -> bool:
        key = base64.b64decode(record["keyBase64"]) if "keyBase64" in record else record.get("key")
        key = key.encode() if isinstance(key, str) else key
        return (
            self.offsets[0] <= record["offset"] <= self.offsets[1]
            and self.times[0] <= record["timestamp"] <= self.times[1]
            and self.key in (None, key)
        )

    def may_be_in(self, batch: Item) -> bool:
        if batch["magic"] < 2:
            return self.producer_id in (None, -1)
        in_range = batch["baseOffset"] <= self.offsets[1] and batch["lastOffset"] >= self.offsets[0]
        return in_range and self.producer_id in (None, batch["producerId"])

    def kept(self, batches: list[list[Item]]) -> list[list[Item]]:
        """Batches with records that pass, and those records."""
        found = []
        for batch, *records in batches:
            passing = [record for record in records if self.passes(record)]
            if passing and self.may_be_in(batch):
                found.append([batch, *passing])
        return found


def range_strategy(values: st.SearchStrategy[int]) -> st.SearchStrategy[tuple[int, int]]:
    pairs = st.tuples(values, values).map(lambda pair: (min(pair), max(pair)))
    ends = st.tuples(pairs, st.sampled_from(["both", "first", "last", "none"]))
    cut = {
        "first": lambda p: (p[0], FOREVER),
        "last": lambda p: (-FOREVER, p[1]),
        "none": lambda p: (-FOREVER, FOREVER),
    }
    return ends.map(lambda end: cut.get(end[1], lambda p: p)(end[0]))


OFFSETS = range_strategy(
    st.one_of(
        st.integers(0, 60),  # one below 0 counts from the end
        st.integers(2**31, 2**31 + 60),
    )
)
TIMES = range_strategy(st.one_of(st.integers(SOME_TIME - 6, SOME_TIME + 6), st.sampled_from([-1, 0, 5, 2**62])))
PRODUCER_IDS = st.sampled_from([None, None, None, -1, 0, 7, 2**62])
FILTERS = st.builds(Naive, OFFSETS, TIMES, PRODUCER_IDS, st.sampled_from([None, None, *KEYS])).filter(Naive.argv)


def old_segment(dice: Dice) -> bytes:
    """Entries of magic 0 or 1, plain and in wrappers."""
    content, offset = b"", dice.choose((0, 5))
    magic = dice.below(2)
    for _ in range(dice.between(1, 5)):
        messages = []
        for _ in range(dice.between(1, 4)):
            timestamp = SOME_TIME + dice.between(-5, 5) if magic else -1
            messages.append(Message(offset, timestamp, dice.choose((None, *KEYS)), b"value"))
            offset += dice.between(1, 2)
        appended = SOME_TIME if magic and dice.chance(30) else None
        whole = wrapped(magic, messages, log_append_time=appended) if dice.chance(50) else message_set(magic, messages)
        content += whole
    return content


def segment(seed: int, kind: str) -> bytes:
    dice = Dice(f"filters {seed}")
    return old_segment(dice) if kind == "old" else random_segment(f"filters {seed}")


@settings(deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 400), st.sampled_from(["new", "new", "old"]), FILTERS, st.sampled_from(OPTIONS))
def test_a_filter_leaves_what_passes(seed: int, kind: str, naive: Naive, options: list[str]) -> None:
    Path(LOG).write_bytes(segment(seed, kind))
    is_deep = bool(options)
    kept = naive.kept(groups(["--print-data-log"]))
    if naive.is_of_records:
        records, alone = [record for _, *records in kept for record in records], items([*naive.argv(), *options])
        assert len(alone) == len(records)
        assert {item["type"] for item in alone} <= {"record"}
        if "--skip-record-metadata" not in options:
            assert [item["offset"] for item in alone] == [record["offset"] for record in records]
        if options == ["--print-data-log"]:
            assert alone == records
        return
    found = groups([*naive.argv(), *options])
    if is_deep:
        assert [batch for batch, *_ in found] == [batch for batch, *_ in kept]
    if is_deep and "--skip-record-metadata" not in options:
        offsets = [[record["offset"] for record in records] for _, *records in kept]
        assert [[record["offset"] for record in records] for _, *records in found] == offsets
    if options == ["--print-data-log"]:
        assert found == kept


@settings(deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 400), st.sampled_from(["new", "new", "old"]), FILTERS)
def test_text_and_objects_leave_the_same(seed: int, kind: str, naive: Naive) -> None:
    Path(LOG).write_bytes(segment(seed, kind))
    for options in ([], ["--deep-iteration"]):
        found = items([*naive.argv(), *options])
        # a header key may hold a line end
        lines = [line for line in text_lines([*naive.argv(), *options]) if " magic: " in line or "| offset: " in line]
        assert len(lines) == len(found)
        for line, item in zip(lines, found, strict=True):
            if item["type"] == "record":
                assert line.startswith(f"| offset: {item['offset']} {item['timestampType']}: {item['timestamp']} ")
            else:
                assert f" position: {item['position']} " in line
    whole = text_lines(["--deep-iteration"])
    assert [line for line in text_lines([*naive.argv(), "--deep-iteration"]) if line not in whole] == []


@settings(deadline=None, max_examples=examples(100))
@given(st.integers(0, 400), st.sampled_from(["new", "old"]), FILTERS)
def test_headers_alone_keep_every_batch_that_may_hold_a_record_that_passes(seed: int, kind: str, naive: Naive) -> None:
    naive = Naive(naive.offsets, (-FOREVER, FOREVER), naive.producer_id, None)
    Path(LOG).write_bytes(honest_segment(Dice(str(seed))) if kind == "new" else segment(seed, kind))
    kept = [batch["position"] for batch, *_ in naive.kept(groups(["--print-data-log"]))]
    found = [batch["position"] for batch, *_ in groups(naive.argv())]
    assert set(kept) <= set(found)
    if kind == "old":
        assert found == kept


def honest_segment(dice: Dice) -> bytes:
    content, offset = b"", 0
    for _ in range(dice.between(1, 6)):
        deltas = sorted(dice.between(0, 9) for _ in range(dice.between(1, 4)))
        base = SOME_TIME + dice.between(-5, 5)
        flags = dice.choose((0, 0, LOG_APPEND_TIME, DELETE_HORIZON))
        if flags == DELETE_HORIZON:  # the first timestamp gave way to the horizon
            records = [Rec(timestamp_delta=delta - 1000, offset_delta=i) for i, delta in enumerate(deltas)]
            batch = Batch(offset, records, len(deltas) - 1, 0, flags, base + 1000, base + deltas[-1], producer_id=7)
        else:
            records = [Rec(timestamp_delta=delta - deltas[0], offset_delta=i) for i, delta in enumerate(deltas)]
            batch = Batch(offset, records, len(deltas) - 1, dice.below(5), flags, base, base + deltas[-1] - deltas[0])
        content += batch.to_bytes()
        offset += len(deltas)
    return content
