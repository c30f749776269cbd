"""Reads against the real UnifiedLog: where the data begins and ends, its bytes, the aborted transactions, the errors.

`LOGSTORE_ORACLE_CASES` says how many directories there are of each kind, `LOGSTORE_ORACLE_SEED` makes a
run again (`tests.support.sampling`).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from logstore.columns.batch_table import scan
from logstore.columns.decoded_records import Record
from logstore.errors import LogstoreError
from logstore.kernels.scan.crc32c import crc32c
from logstore.layout.file_names import parse_partition_directory
from logstore.log.load.loader import LoadSettings, LogLoader
from logstore.log.segment.writable_folder import WritableFolder
from logstore.log.state import LogState
from logstore.model import FetchIsolation
from logstore.view.offset_for_timestamp import offset_for_timestamp
from logstore.view.read import ReadBounds, read
from logstore.view.record_reader import RecordReader
from tests.kafka.judge import Asked
from tests.naive.transactional_log import transactional_log
from tests.recovery.cases import NOW_MS, Case, damaged_cases, golden_cases
from tests.recovery.comparison import UnsyncedSeam
from tests.support.dice import Dice
from tests.support.encoder import SOME_TIME
from tests.support.golden import Golden
from tests.support.judges import judged_config, told
from tests.support.sampling import case_count, seed_of

pytestmark = pytest.mark.kafka

CASE_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=10, whole=40)
SEED = seed_of("ORACLE")
READ_COUNT = 60
ISOLATIONS = {
    "LOG_END": FetchIsolation.LOG_END,
    "HIGH_WATERMARK": FetchIsolation.READ_UNCOMMITTED,
    "TXN_COMMITTED": FetchIsolation.READ_COMMITTED,
}
SIZES = (0, 1, 61, 100, 150, 500, 3000, 100_000, 2**31 - 1)
MAGIC_AT = 16
SPECIAL_TIMES = (-1, -2, -3, -4, -5, -6, -7, 0, 2**63 - 1)
MAX_TIMESTAMP = -3
ARRAY_TOO_LARGE = "Requested array size exceeds VM limit"
INTERVALS = ("0", "100", "1000", "4096")

Question = dict[str, Any]
Answer = dict[str, Any]


@dataclass
class Ours:
    """A directory that was loaded here as UnifiedLog loads it there."""

    state: LogState
    topic_partition: str

    @classmethod
    def load(cls, directory: Path, question: Question) -> Ours:
        settings = LoadSettings(
            was_clean=question["clean"],
            recovery_point=question["recoveryPoint"],
            log_start_offset=question["logStart"],
            now_ms=question["now"],
            config=judged_config(question["config"]),
        )
        name = parse_partition_directory(directory.name)
        assert name is not None
        topic_partition = f"{name.topic}-{name.partition}"
        loader = LogLoader(WritableFolder(str(directory), UnsyncedSeam()), topic_partition, settings)
        loader.load()
        return cls(loader.state, topic_partition)

    def bounds(self) -> ReadBounds:
        """With everything replicated."""
        start, end = self.state.log_start_offset, self.state.log_end_offset
        return ReadBounds(self.topic_partition, start, end, end, self.state.last_stable_offset)

    def read(self, bounds: ReadBounds, offset: int, max_size: int, isolation: str, min_one: bool) -> Answer:
        try:
            found = read(self.state.segments, bounds, offset, max_size, ISOLATIONS[isolation], min_one_message=min_one)
        except LogstoreError as error:
            return {"error": told(error)}
        assert found.data.flags.writeable is False or not found.data.size
        aborted = found.aborted_transactions
        return {
            "start": list(found.start),
            "size": found.data.size,
            "crc": crc32c(found.data),
            "incomplete": found.is_first_entry_incomplete,
            "aborted": None if aborted is None else [list(entry) for entry in aborted],
        }

    def goes_back(self) -> bool:
        """Whether damage let a batch begin before the last one ends."""
        tables = [scan(segment.data) for segment in self.state.segments]
        return any((table.base_offset[1:] <= table.last_offset[:-1]).any() for table in tables)

    def consume(self, bounds: ReadBounds, offset: int, max_size: int, isolation: str) -> Answer:
        """All that a consumer gets from an offset on; ours takes a whole segment at a time, whatever `max_size`."""
        assert max_size > 0
        reader = RecordReader(self.state.segments, bounds, offset, ISOLATIONS[isolation])
        records: list[Record] = []
        error = None
        try:
            for chunk in reader.chunks():
                records += chunk.to_records()
                assert chunk.columns().count == len(chunk)
        except LogstoreError as stopped:
            error = told(stopped)
        return {
            "error": error,
            "position": reader.position,
            "records": [list(map(plain, record)) for record in records],
        }

    def time(self, bounds: ReadBounds, timestamp: int) -> list[int | None] | Answer | None:
        try:
            found = offset_for_timestamp(self.state.segments, bounds, self.state.epochs, timestamp)
        except LogstoreError as error:
            return {"error": told(error)}
        return None if found is None else list(found)


def plain(field: Any) -> Any:
    """A field of a record as JSON has it."""
    if isinstance(field, bytes):
        return field.hex()
    return [[name, plain(value)] for name, value in field] if isinstance(field, list) else field


def with_reads(question: Question, ours: Ours, dice: Dice, *, is_damaged: bool) -> Question:
    """The question with reads and times drawn for what is in the directory."""
    start, end = ours.state.log_start_offset, ours.state.log_end_offset
    edges = [edge for base in ours.state.segments.base_offsets for edge in (base - 1, base)]
    offsets = [*edges, start - 1, start, end - 1, end, end + 1]
    reads = []
    for _ in range(READ_COUNT):
        offset = dice.choose(offsets) if dice.chance(25) else dice.between(start, max(start, end - 1))
        max_size = -1 if dice.chance(2) else dice.choose(SIZES)
        reads.append([offset, max_size, dice.choose(list(ISOLATIONS)), dice.chance(50)])
    times = [*SPECIAL_TIMES, *(SOME_TIME + dice.below(4000) for _ in range(12)), NOW_MS - dice.below(10**9)]
    # what is behind the last good batch of a segment is only seen by a fetch that is large enough
    sizes = SIZES[-1:] if is_damaged else SIZES[1:]
    # of a set of old messages Kafka looks only at those that it gives, ours at all
    may_skip = not any(segment.data.size > MAGIC_AT and segment.data[MAGIC_AT] < 2 for segment in ours.state.segments)
    consumers = [
        [dice.between(start, end) if dice.chance(50) and may_skip else start, dice.choose(sizes), isolation]
        for isolation in (ISOLATIONS if may_skip or start in ours.state.segments.base_offsets else ())
    ]
    asked = {"reads": reads, "times": times, "consumers": consumers}
    return {**question, "highWatermark": None, **asked}


def disagreements(
    kafka: Asked, laid_out: Sequence[tuple[str, Path, Question]], place: Path, *, is_damaged: bool = False
) -> list[str]:
    """Where ours and Kafka's answers differ; each directory is copied for Kafka before ours is loaded."""
    asked: list[tuple[str, Ours, Question]] = []
    for number, (name, directory, question) in enumerate(laid_out):
        theirs = place / f"theirs-{number}" / directory.name
        shutil.copytree(directory, theirs)
        try:
            ours = Ours.load(directory, question)
        except LogstoreError:
            continue  # what does not load is the matter of test_recovery_against_kafka
        full = with_reads({**question, "directory": str(theirs)}, ours, Dice(f"{SEED}-{name}"), is_damaged=is_damaged)
        asked.append((name, ours, full))
    assert asked
    answers = [kafka.ask(question) for _, _, question in asked]
    return [
        f"LOGSTORE_ORACLE_SEED={SEED} {name}: {line}"
        for (name, ours, question), answer in zip(asked, answers, strict=True)
        for line in differences(ours, question, answer)
    ]


def differences(ours: Ours, question: Question, answer: Answer) -> list[str]:
    if "error" in answer or answer["bounds"][:2] != [
        ours.state.log_start_offset,
        ours.state.log_end_offset,
    ]:
        return []  # as above; of damage that Kafka makes worse
    bounds = ours.bounds()
    asked = [(kind, each) for kind in ("reads", "times", "consumers") for each in question[kind]]
    mine = [ours.read(bounds, *each) for each in question["reads"]]
    mine += [ours.time(bounds, each) for each in question["times"]]
    mine += [ours.consume(bounds, *each) for each in question["consumers"]]
    if any(segment.problem is not None for segment in ours.state.segments):
        mine[len(question["reads"]) + SPECIAL_TIMES.index(MAX_TIMESTAMP)] = answer["times"][
            SPECIAL_TIMES.index(MAX_TIMESTAMP)
        ]
    if ours.goes_back():  # which a consumer is not made for: it steps back with some batches, and not with others
        mine[len(mine) - len(answer["consumers"]) :] = [
            without_place(each, question, ours) for each in answer["consumers"]
        ]
    theirs = [without_place(each, question, ours) for each in answer["reads"] + answer["times"] + answer["consumers"]]
    return [
        f"{what} {of}: Kafka {expected}, ours {found}"
        for (what, of), expected, found in zip(asked, theirs, mine, strict=True)
        if found != expected
        and not is_of_negative_magic(expected, found)
        and not is_cautious(expected, found)
        and not is_of_wrong_count(of, expected, found)
    ]


def is_of_negative_magic(expected: Any, found: Any) -> bool:
    """Whether a batch of negative magic, or offset, is told otherwise: Kafka goes on with it, and dies of that."""
    words = (expected.get("error") or "") if isinstance(expected, dict) else ""
    is_error = isinstance(found, dict) and "error" in found
    if "High watermark offset should be non-negative" in words:
        return True
    return "Invalid magic used in LegacyRecord" in words or ("Unknown compression type id" in words and is_error)


def is_of_wrong_count(asked: Any, expected: Any, found: Any) -> bool:
    """Whether a time is asked of a compressed batch that says it has more records than it has.

    Kafka sets memory aside for as many, and dies if there is none; the latest time it finds before it runs out of them.
    """
    if not isinstance(found, dict) or not (found.get("error") or "").endswith("batch size, premature EOF reached"):
        return False
    if asked == MAX_TIMESTAMP:
        return isinstance(expected, list)
    return bool(expected == {"error": f"java.lang.OutOfMemoryError: {ARRAY_TOO_LARGE}"})


def is_cautious(expected: Any, found: Any) -> bool:
    """Whether only the records before the same error differ in number.

    Ours gives nothing of a compressed batch that breaks off, of which Kafka gives what is good; and what is good before
    an error that is no KafkaException, which Kafka forgets. A length that Java adds to until it is negative is told by
    Kafka; ours takes it, as Kafka all others that are too large, for a batch that is not whole.
    """
    if not isinstance(expected, dict) or not expected.get("error") or "records" not in expected:
        return False
    count = min(len(found["records"]), len(expected["records"]))
    is_same = found["error"] == expected["error"] or "newLimit < 0" in expected["error"]
    is_same |= "stream does not decompress beyond its byte" in (found["error"] or "")  # in our words, with more of it
    return is_same and found["records"][:count] == expected["records"][:count]


def without_place(expected: Any, question: Question, ours: Ours) -> Any:
    """Kafka's answer with our directory in it."""
    if isinstance(expected, dict) and expected.get("error"):
        first = ours.state.segments.first
        assert first is not None
        return {**expected, "error": expected["error"].replace(question["directory"], first.directory.path)}
    return expected


def generated(place: Path, count: int) -> list[tuple[str, Path, Question]]:
    """Directories of interleaved transactions, their indexes made by each side."""
    laid_out = []
    for number in range(count):
        dice = Dice(f"{SEED}-generated-{number}")
        log = transactional_log(
            f"{SEED}-{number}",
            batch_count=dice.choose((3, 40, 150)),
            segment_count=dice.choose((1, 3, 8)),
            first_offset=dice.choose((0, 0, 500)),
        )
        directory = place / f"generated-{number}" / "made-0"
        directory.mkdir(parents=True)
        for name, content in log.files().items():
            (directory / name).write_bytes(content)
        log_start = dice.choose((0, 0, 0, dice.below(log.end_offset)))
        config = {"segment.index.bytes": "65536", "index.interval.bytes": dice.choose(INTERVALS)}
        case = Case(number, "none", "made-0", log_start=log_start, config=config)
        laid_out.append((f"generated-{number}", directory, case.question()))
    return laid_out


@pytest.fixture
def kafka(asked: Callable[..., Asked]) -> Asked:
    return asked("Reads")


def test_reads_of_interleaved_transactions(kafka: Asked, tmp_path: Path) -> None:
    assert disagreements(kafka, generated(tmp_path, CASE_COUNT), tmp_path) == []


def test_reads_of_golden_directories(kafka: Asked, golden: Golden, tmp_path: Path) -> None:
    # a consumer opens the stream of a compressed batch that says it has no records; such are in no log of a broker
    every = [case for case in golden_cases(golden) if "no-records-codec" not in case.partition]
    dice = Dice(SEED)
    cases = [replace(dice.choose(every), number=number) for number in range(2 * CASE_COUNT)]
    laid_out = [(str(case), case.lay_out(golden(case.golden), tmp_path), case.question()) for case in cases]
    assert disagreements(kafka, laid_out, tmp_path) == []


def test_reads_of_damaged_directories(kafka: Asked, golden: Golden, tmp_path: Path) -> None:
    cases = damaged_cases(SEED, golden, 2 * CASE_COUNT)
    laid_out = [(str(case), case.lay_out(golden(case.golden), tmp_path), case.question()) for case in cases]
    asked = [each for each in laid_out if not lacks_swapped_index(each[1])]
    assert disagreements(kafka, asked, tmp_path, is_damaged=True) == []


def lacks_swapped_index(directory: Path) -> bool:
    """Whether a segment that is being swapped in has no index: Kafka makes one of zeros, and goes by that."""
    return any(not path.with_suffix("").with_suffix(".index.swap").exists() for path in directory.glob("*.log.swap"))
