"""When are two dumps the same? stdout and exit code to the byte, stderr up to what the JVM leaves to chance.

A damaged compressed stream is told in our words, and the records before the damage are shown; Kafka's tool shows none
of the batch.

Left to chance are the identity hash in the text of an undecoded byte array (`[B@1b2c3d`), the order of the
error blocks (Java's HashMap order of absolute paths), and the stack trace below the first line of an uncaught
exception.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

UNCAUGHT = 'Exception in thread "main" '
DAMAGED_STREAM = re.compile(UNCAUGHT + r"\S+KafkaException: The \w+ stream does not decompress beyond its byte \d+: ")
OUT_OF_MEMORY = UNCAUGHT + "java.lang.OutOfMemoryError"
BLOCK_TITLES = (
    "Mismatches in :",
    "Found timestamp mismatch in :",
    "Found out of order timestamp in :",
    "The following indexed offsets are not found in :",
    "Non-consecutive offsets in ",
)
BLOCK_LINES = ("  ", "Indexed offset: ")
SHOWN_CHARACTERS = 400
_IDENTITY_HASH = re.compile(r"\[B@[0-9a-f]+")
_LOG_LINE = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (WARN|INFO|ERROR) ")


def comparable_stdout(stdout: str) -> str:
    """`stdout` with the identity hashes of byte arrays masked."""
    return _IDENTITY_HASH.sub("[B@…", stdout)


def comparable_stderr(stderr: str) -> list[str]:
    """The lines of `stderr` in an order that does not depend on hashes; stack traces cut to their first line.

    >>> comparable_stderr("Mismatches in :b\\n  x\\nMismatches in :a\\n  y\\n")
    ['Mismatches in :a', '  y', 'Mismatches in :b', '  x']
    >>> comparable_stderr('Exception in thread "main" a.B: why\\n\\tat a.B.c(B.java:1)\\n')
    ['Exception in thread "main" a.B: why']
    """
    lines = []
    for line in stderr.split("\n"):
        if not line or _LOG_LINE.match(line):
            continue
        lines.append(line)
        if line.startswith(UNCAUGHT):
            break
    if lines and lines[-1].startswith(OUT_OF_MEMORY):
        return [*lines[:-1], UNCAUGHT]
    return list(itertools.chain.from_iterable(_blocks_sorted(lines)))


def differences(argv: list[str], expected: tuple[int, str, str], found: tuple[int, str, str]) -> list[str]:
    """What differs between two answers `(rc, stdout, stderr)`, as lines to read; empty when the same.

    Where Kafka ran out of memory (a matter of its heap, not of the file) any uncaught exception is right.
    """
    report = []
    if expected[0] != found[0]:
        report.append(f"exit code: expected {expected[0]}, found {found[0]}")
    expected_out, found_out = comparable_stdout(expected[1]), comparable_stdout(found[1])
    expected_err, found_err = comparable_stderr(expected[2]), comparable_stderr(found[2])
    if expected_err[-1:] == [UNCAUGHT] and found_err[-1:] and found_err[-1].startswith(UNCAUGHT):
        found_err[-1] = UNCAUGHT
    expected_last, found_last = "".join(expected_err[-1:]), "".join(found_err[-1:])
    if DAMAGED_STREAM.match(found_last) and expected_last.startswith(UNCAUGHT):
        expected_err[-1] = found_last
        if found_out.startswith(expected_out + "| "):
            found_out = expected_out
    report += _diff("stdout", expected_out.split("\n"), found_out.split("\n"))
    report += _diff("stderr", expected_err, found_err)
    return [" ".join(["dump", *argv]), *report] if report else []


def _blocks_sorted(lines: list[str]) -> Iterator[list[str]]:
    blocks: list[tuple[str, list[str]]] = []
    for line in lines:
        title = next((title for title in BLOCK_TITLES if line.startswith(title)), "")
        if not title and blocks and blocks[-1][0] and line.startswith(BLOCK_LINES):
            blocks[-1][1].append(line)
        else:
            blocks.append((title, [line]))
    for title, run in itertools.groupby(blocks, key=lambda block: block[0]):
        bodies = [body for _, body in run]
        yield from sorted(bodies) if title else bodies


def _diff(name: str, expected: list[str], found: list[str]) -> list[str]:
    """The first line that differs and its surroundings; whole texts may have a million characters."""
    if expected == found:
        return []
    pairs = enumerate(itertools.zip_longest(expected, found))
    at = next(number for number, (wanted, got) in pairs if wanted != got)
    report = [f"{name}: line {at + 1} differs ({len(expected)} lines expected, {len(found)} found)"]
    report += [f"  {line[:SHOWN_CHARACTERS]}" for line in expected[max(at - 2, 0) : at]]
    column = _first_difference(expected[at] if at < len(expected) else "", found[at] if at < len(found) else "")
    start = max(column - SHOWN_CHARACTERS // 2, 0)
    for sign, lines in (("- ", expected), ("+ ", found)):
        report += [sign + repr(line[start : start + SHOWN_CHARACTERS])[1:-1] for line in lines[at : at + 1]]
    return report


def _first_difference(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
