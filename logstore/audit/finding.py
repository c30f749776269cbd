"""What an audit says: a rule that a directory breaks, where, and what to do about it.

>>> rule = Rule("log-crc", Severity.ERROR, "A batch is not what its checksum says.", "salvage the directory")
>>> finding = rule.finding(Where("d/orders-0/0.log", "orders", 0, position=61, offset=5), expected="1", found="2")
>>> str(finding)
'error log-crc d/orders-0/0.log byte 61 offset 5: expected 1, found 2; salvage the directory'
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple


class Severity(Enum):
    """ERROR: records are lost, unreadable or given out wrongly. WARNING: a broker repairs it, or it slows it down."""

    ERROR = "error"
    WARNING = "warning"


class Where(NamedTuple):
    """The place of a finding; None for what does not apply.

    Attributes:
        path: file or directory.
        position: byte in the file.
        offset: Kafka offset.
    """

    path: str | None = None
    topic: str | None = None
    partition: int | None = None
    position: int | None = None
    offset: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    rule: str
    severity: Severity
    where: Where
    expected: str
    found: str
    advice: str

    def __str__(self) -> str:
        where = self.where
        place = where.path or f"{where.topic}-{where.partition}"
        position = "" if where.position is None else f" byte {where.position}"
        offset = "" if where.offset is None else f" offset {where.offset}"
        return (
            f"{self.severity.value} {self.rule} {place}{position}{offset}: "
            f"expected {self.expected}, found {self.found}; {self.advice}"
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """A promise that a directory keeps, and what to do where it does not.

    Attributes:
        name: as in findings; words with dashes, the thing first.
        about: what is broken, one sentence.
        advice: what to do.
    """

    name: str
    severity: Severity
    about: str
    advice: str

    def finding(self, where: Where, *, expected: object, found: object) -> Finding:
        """That the rule is broken at `where`."""
        return Finding(self.name, self.severity, where, str(expected), str(found), self.advice)


def as_json(finding: Finding) -> dict[str, Any]:
    """`finding` in plain values; of the place only what applies."""
    where = {name: value for name, value in finding.where._asdict().items() if value is not None}
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "where": where,
        "expected": finding.expected,
        "found": finding.found,
        "advice": finding.advice,
    }
