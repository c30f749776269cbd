"""A plan beside what the recovery then does, and beside the sizes of what the real UnifiedLog left."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from logstore.errors import LogstoreError
from logstore.log.load.recover import plan_recovery, recover_partition
from tests.naive.batch import V2_HEADER
from tests.naive.checksum import crc32c
from tests.recovery.cases import Case
from tests.recovery.comparison import Answer, files, is_better
from tests.support.seams import UnsyncedSeam

HEADER_SIZE, CRC_END = 61, 21


def plan_problem(case: Case, directory: Path, expected: Answer | None = None) -> str:
    """Where the plan of the case laid out in `directory` is not what happens; empty if nowhere.

    Args:
        expected: what the real log left.
    """
    before, readable = files(directory), readable_batches(directory)
    try:
        plan = plan_recovery(str(directory), case.settings())
    except LogstoreError as error:
        return "" if files(directory) == before else f"a plan that failed changed files: {error}"
    if files(directory) != before:
        return "the plan changed files"
    _, done = recover_partition(str(directory), case.settings(), UnsyncedSeam())
    if done != plan:
        return f"planned {plan.removals}\ndone {done.removals}"
    gone = readable - readable_batches(directory)
    counted = sum(one.batch_count for one in plan.removals), sum(one.size for one in plan.removals)
    lost = gone.total(), sum(len(batch) * count for batch, count in gone.items())
    # a swap leaves out what a cleaning left out, which only its keys tell; old messages are not looked for
    has_left_overs = any(".swap" in name or ".cleaned" in name for name in before)
    if case.golden != "legacy" and counted != lost and not has_left_overs:
        return f"counted {counted}, lost {lost}: {plan.removals}"
    if expected is not None and "files" in expected and not is_better(expected, {}):
        cuts = {one.file: one.start for one in plan.removals}
        if log_sizes(expected["files"], {}) != log_sizes(before, cuts) and not has_left_overs:
            return f"Kafka left {log_sizes(expected['files'], {})}, planned {plan.removals}"
    return ""


def log_sizes(described: dict[str, str], cuts: dict[str, int]) -> dict[str, int]:
    """The sizes of the logs, cut at these bytes; without those of which nothing is left, be they gone or empty."""
    sizes = {name: int(file.split(":")[0]) for name, file in described.items() if name.endswith(".log")}
    return {name: left for name, size in sizes.items() if (left := cuts.get(name, size))}


def readable_batches(directory: Path) -> Counter[bytes]:
    """All whole batches of a partition's segments with a right checksum, around any damage, byte by byte."""
    found: Counter[bytes] = Counter()
    for path in directory.glob("*.log"):
        data, position = path.read_bytes(), 0
        while position + HEADER_SIZE <= len(data):
            offset, length, _, magic, crc, *_ = V2_HEADER.unpack_from(data, position)
            end = position + 12 + length
            is_possible = magic == 2 and length >= HEADER_SIZE - 12 and end <= len(data)
            if is_possible and offset >= 0 and crc32c(data[position + CRC_END : end]) == crc:
                found[data[position:end]] += 1
                position = end
            else:
                position += 1
    return found
