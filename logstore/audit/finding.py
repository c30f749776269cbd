"""What an audit says: a rule that a directory breaks, where, and what to do about it.

A rule is a function over facts, which yields the places where they break it:

>>> @rule(Severity.ERROR, "double it")
... def even(number: int):
...     "A number is odd."
...     if number % 2:
...         yield Where("numbers"), "an even one", number
>>> str(even.ask(3)[0])
'error even numbers: expected an even one, found 3; double it'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, get_type_hints


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

    @property
    def place(self) -> str:
        """Where it is, in words."""
        where = self.where
        position = "" if where.position is None else f" byte {where.position}"
        offset = "" if where.offset is None else f" offset {where.offset}"
        return f"{where.path or f'{where.topic}-{where.partition}'}{position}{offset}"

    def __str__(self) -> str:
        told = f"expected {self.expected}, found {self.found}; {self.advice}"
        return f"{self.severity.value} {self.rule} {self.place}: {told}"


Broken = tuple[Where, object, object]  # where a rule is broken, what was expected there, and what was found


@dataclass(frozen=True, slots=True)
class Rule:
    """A promise that a directory keeps, and what to do where it does not.

    Attributes:
        name: as in findings; words with dashes, the thing first. Once published it stays.
        about: what is broken, one sentence.
        advice: what to do.
        needs: types of the facts that it is asked of; none if only `Breach` breaks it.
        check: yields where facts break it.
    """

    name: str
    severity: Severity
    about: str
    advice: str
    needs: tuple[type, ...] = ()
    check: Callable[[Any], Iterator[Broken]] = lambda facts: iter(())

    @property
    def more(self) -> list[str]:
        """What else is to be said of it, a paragraph each: the rest of the docstring of its function."""
        return [" ".join(paragraph.split()) for paragraph in (self.check.__doc__ or "").split("\n\n")[1:]]

    def ask(self, facts: object) -> list[Finding]:
        """Return a finding for each place where `facts` break the rule."""
        return [self.finding(*broken) for broken in self.check(facts)]

    def finding(self, where: Where, expected: object, found: object) -> Finding:
        """Return the finding of one place."""
        return Finding(self.name, self.severity, where, str(expected), str(found), self.advice)


def rule(severity: Severity, advice: str) -> Callable[[Callable[[Any], Iterator[Broken]]], Rule]:
    """Make a rule of a function over facts, whose type it is asked of; its docstring begins with what is broken."""

    def decorate(check: Callable[[Any], Iterator[Broken]]) -> Rule:
        needs = next(iter(get_type_hints(check).values()))
        about = (check.__doc__ or "").partition("\n")[0]
        return Rule(check.__name__.replace("_", "-"), severity, about, advice, (needs,), check)

    return decorate
