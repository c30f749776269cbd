"""Findings of an audit: the rule that is broken, where, and what to do about it.

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

from ..config.kafka_version import NEWEST
from ..disk.mapped import is_too_large
from ..disk.names import child, normal_path
from ..disk.system_errors import is_refused
from ..errors import LogstoreError


class Severity(Enum):
    """ERROR: records are lost, unreadable or wrong for consumers. WARNING: a broker repairs it, or works slower."""

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

    @property
    def name(self) -> str:
        """The path, with the partition if it is not in its directory; without a path the partition.

        >>> Where("data/recovery-point-offset-checkpoint", "orders", 0).name
        'data/recovery-point-offset-checkpoint, orders-0'
        >>> Where("data/orders-0/x.log", "orders", 0).name
        'data/orders-0/x.log'
        """
        partition = f"{self.topic}-{self.partition}"
        if self.path is None:
            return partition
        is_within = any(part.startswith(partition) for part in self.path.split("/"))
        return self.path if self.topic is None or is_within else f"{self.path}, {partition}"


@dataclass(frozen=True, slots=True)
class Finding:
    """One place where a directory breaks a rule."""

    rule: str
    severity: Severity
    where: Where
    expected: str
    found: str
    advice: str

    @property
    def place(self) -> str:
        """The place in words."""
        where = self.where
        position = "" if where.position is None else f" byte {where.position}"
        offset = "" if where.offset is None else f" offset {where.offset}"
        return f"{where.name}{position}{offset}"

    def __str__(self) -> str:
        told = f"expected {self.expected}, found {self.found}; {self.advice}"
        return f"{self.severity.value} {self.rule} {self.place}: {told}"


Broken = tuple[Where, object, object]  # where a rule is broken, what was expected there, and what was found


Ask = Callable[[object], None]  # asks all rules of some facts


class Breach(NamedTuple):
    """A rule that is broken where facts are read, such as by a file that does not parse: its name, and where."""

    rule: str
    broken: Broken

    @classmethod
    def of(cls, rule: str, where: Where, error: LogstoreError, expected: object) -> Breach:
        """Make a breach of an error of reading, which may know the place better than `where`.

        A file that the system refuses to read breaks no rule of Kafka: it is a breach of `log-unreadable`.
        """
        if is_refused(error):
            return cls.unreadable(where, error)
        return cls._of(rule, where, error, expected)

    @classmethod
    def unreadable(cls, where: Where, error: LogstoreError) -> Breach:
        """Make a breach of a file or directory that cannot be read; the system may know its path."""
        path = getattr(error.__cause__, "filename", None) or where.path
        rule = "log-size" if is_too_large(error) else "log-unreadable"
        return cls._of(rule, where._replace(path=path), error, "what can be read")

    @classmethod
    def _of(cls, rule: str, where: Where, error: LogstoreError, expected: object) -> Breach:
        path = where.path if error.path is None else _as_given(str(error.path), where.path)
        cause = error.__cause__
        reason = cause.strerror if isinstance(cause, OSError) else error.message  # Kafka's message may be a path alone
        found = reason or error.message or error.found or type(error).__name__
        place = where._replace(path=path, position=error.position, offset=error.offset)
        return cls(rule, (place, expected if error.expected is None else error.expected, found))


def _as_given(path: str, given: str | None) -> str:
    """Return the absolute `path` as a user names it, if it is `given` or lies below it."""
    root = None if given is None else normal_path(given)
    if given is None or root is None or not f"{path}/".startswith(f"{root}/"):
        return path
    return given if path == root else child(given, path[len(root) :].lstrip("/"))


def newer_kafka(where: Where, found: str) -> Breach:
    """Make the breach of what only a Kafka newer than any known here can have written."""
    return Breach("newer-kafka", (where, f"what Kafka {NEWEST} or an older one writes", found))


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that directories keep, and what to do where one does not.

    Attributes:
        name: as in findings; words with dashes, the thing first. Once published it stays.
        about: what is broken, one sentence.
        advice: what to do.
        needs: types of the facts that it is asked of; none for a rule that only a `Breach` names.
        check: yields the places where facts break it.
    """

    name: str
    severity: Severity
    about: str
    advice: str
    needs: tuple[type, ...] = ()
    check: Callable[[Any], Iterator[Broken]] = lambda facts: iter(())

    @property
    def more(self) -> list[str]:
        """The paragraphs behind the first line of its function's docstring."""
        return [" ".join(paragraph.split()) for paragraph in (self.check.__doc__ or "").split("\n\n")[1:]]

    def ask(self, facts: object) -> list[Finding]:
        """Return a finding for each place where `facts` break the rule."""
        return [self.finding(*broken) for broken in self.check(facts)]

    def finding(self, where: Where, expected: object, found: object) -> Finding:
        """Return the finding of one place."""
        return Finding(self.name, self.severity, where, str(expected), str(found), self.advice)


def rule(severity: Severity, advice: str) -> Callable[[Callable[[Any], Iterator[Broken]]], Rule]:
    """Make a rule of a function over facts; the first line of its docstring says what is broken."""

    def decorate(check: Callable[[Any], Iterator[Broken]]) -> Rule:
        needs = next(iter(get_type_hints(check).values()))
        about = (check.__doc__ or "").partition("\n")[0]
        return Rule(check.__name__.replace("_", "-"), severity, about, advice, (needs,), check)

    return decorate
