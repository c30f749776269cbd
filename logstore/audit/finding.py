"""Findings of an audit: the rule that is broken, where, and what to do about it.

A check yields each place where something breaks a rule. Many rules are a function that does so:

>>> @rule(Severity.ERROR, "double it", unless=(Silence.GROWING,))
... def even(number: int):
...     "A number is odd."
...     if number % 2:
...         yield Where("numbers"), "an even one", number
>>> report = Report()
>>> report.take(even(3))
>>> str(report.findings[0])
'error even numbers: expected an even one, found 3; double it'

A circumstance that may explain the place is told with it, and the rule is not asked there:

>>> report.take([even.at(Where("numbers"), "an even one", 5, Silence.GROWING)])
>>> [(note.rule, note.reason) for note in report.notes]
[('even', 'the log grew while it was read')]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

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


class Silence(Enum):
    """A circumstance in which what breaks a rule may be no fault; the value is the reason that an audit tells."""

    GROWING = "the log grew while it was read"
    OPEN = "a broker has the file open, or makes it anew on its next start"
    DAMAGED = "damage hides what belongs there"
    ALONE = "no data directory is around it"
    CHECKPOINT_LOST = "cleaner-offset-checkpoint is missing or unreadable"
    POLICY_UNKNOWN = "the cleanup policy is not known"
    COMPACTED = "the topic is, or was, compacted"
    COPIED = "a copy holds segments beside the one that the cleaner merged them into"
    START_UNKNOWN = "the log start may have been raised, and its checkpoint not be written yet"
    BEFORE_START = "what was written before the log start is not known"
    EXPIRED = "the producer may have expired"
    FOLLOWED = "a follower may have written it, which appends many batches at once"
    UNSETTLED = "files of the last minute need not fit together"
    NOT_LOADED = "a broker that starts again may be stopped before it has loaded the log"
    CLOSED = "no broker runs, so that nothing can be late"
    BEHIND = "the replica may be behind its leader"
    METADATA_MISSING = "the cluster's metadata is not here, or not whole"
    NOT_ON_RECORD = "not all decisions, or not all markers, are on record"
    MADE_AGAIN = "some decisions are about a topic of the same name that was deleted"
    COORDINATOR_MISSING = "the coordinator's records are not here"
    NEWER_KAFKA = "a newer Kafka wrote the directory"


#: the cleaner may have been there, as far as is known
CLEANED = (Silence.ALONE, Silence.CHECKPOINT_LOST, Silence.POLICY_UNKNOWN, Silence.COMPACTED)


class Broken(NamedTuple):
    """A place where a rule is broken; a `silence` says why the rule is not asked there."""

    rule: Rule
    where: Where
    expected: object
    found: object
    silence: Silence | None = None


class Note(NamedTuple):
    """A rule that was not asked in a partition, and the reason; topic and partition are None for what is in none."""

    rule: str
    reason: str
    topic: str | None
    partition: int | None


class Report:
    """What broke rules: findings, and notes of where they were not asked."""

    def __init__(self) -> None:
        self.findings: list[Finding] = []
        self.notes: set[Note] = set()

    def take(self, broken: Iterable[Broken] | None) -> None:
        """Make a finding of each place, or a note if the rule is not asked there."""
        for rule, where, expected, found, silence in broken or ():
            if silence is None:
                self.findings.append(Finding(rule.name, rule.severity, where, str(expected), str(found), rule.advice))
            else:
                self.note(rule, silence, where)

    def note(self, rule: Rule, silence: Silence, where: Where) -> None:
        """Note that a rule is not asked, which the rule must say of itself."""
        assert silence in rule.unless, f"{rule.name} does not name {silence.name}"
        self.notes.add(Note(rule.name, silence.value, where.topic, where.partition))


def findings_of(broken: Iterable[Broken]) -> list[Finding]:
    """Return the findings among what broke rules."""
    report = Report()
    report.take(broken)
    return report.findings


#: of a rule's function, see `Broken`
Place = tuple[Where, object, object] | tuple[Where, object, object, Silence | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that directories keep, and what to do where one does not.

    Attributes:
        name: as in findings; words with dashes, the thing first. Once published it stays.
        about: what is broken, one sentence.
        advice: what to do.
        unless: the circumstances in which it is not asked.
        more: what else there is to say.
        check: yields the places where it is broken; a rule of a larger check has none.
    """

    name: str
    severity: Severity
    about: str
    advice: str
    unless: tuple[Silence, ...] = ()
    more: str = ""
    check: Callable[[Any], Iterator[Place]] | None = None

    @property
    def unless_text(self) -> str:
        """The circumstances in words."""
        return "; ".join(silence.value for silence in self.unless)

    def __call__(self, checked: Any) -> Iterator[Broken]:
        """Yield the places where it is broken."""
        assert self.check is not None
        return (Broken(self, *place) for place in self.check(checked))

    def at(self, where: Where, expected: object, found: object, silence: Silence | None = None) -> Broken:
        """Return a place where it is broken."""
        return Broken(self, where, expected, found, silence)

    def not_asked(self, where: Where, silence: Silence) -> Broken:
        """Return a place where nobody can say whether it is broken."""
        return Broken(self, where, None, None, silence)

    def by(self, error: LogstoreError, where: Where, expected: object) -> Broken:
        """Return where an error of reading breaks it; the error may know the place better than `where`.

        A file that the system refuses to read breaks no rule of Kafka: it breaks `log-unreadable`.
        """
        return unreadable(error, where) if is_refused(error) else self._by(error, where, expected)

    def _by(self, error: LogstoreError, where: Where, expected: object) -> Broken:
        path = where.path if error.path is None else _as_given(str(error.path), where.path)
        cause = error.__cause__
        reason = cause.strerror if isinstance(cause, OSError) else error.message  # Kafka's message may be a path alone
        found = reason or error.message or error.found or type(error).__name__
        place = where._replace(path=path, position=error.position, offset=error.offset)
        return self.at(place, expected if error.expected is None else error.expected, found)


def rule(
    severity: Severity, advice: str, *, unless: tuple[Silence, ...] = ()
) -> Callable[[Callable[[Any], Iterator[Place]]], Rule]:
    """Make a rule of a function over columns; the first line of its docstring says what is broken."""

    def decorate(check: Callable[[Any], Iterator[Place]]) -> Rule:
        about, _, more = (check.__doc__ or "").partition("\n")
        return Rule(check.__name__.replace("_", "-"), severity, about, advice, unless, " ".join(more.split()), check)

    return decorate


log_unreadable = Rule(
    "log-unreadable",
    Severity.ERROR,
    "The system refuses to read a file or a directory.",
    "look at the permissions and the disk; see the system's log",
)

log_size = Rule(
    "log-size",
    Severity.ERROR,
    "A segment is larger than a broker opens.",
    "`logstore salvage` copies its batches into segments that a broker opens",
)


def unreadable(error: LogstoreError, where: Where) -> Broken:
    """Return the place of a file or directory that cannot be read; the system may know its path."""
    path = getattr(error.__cause__, "filename", None) or where.path
    rule = log_size if is_too_large(error) else log_unreadable
    return rule._by(error, where._replace(path=path), "what can be read")


def _as_given(path: str, given: str | None) -> str:
    """Return the absolute `path` as a user names it, if it is `given` or lies below it."""
    root = None if given is None else normal_path(given)
    if given is None or root is None or not f"{path}/".startswith(f"{root}/"):
        return path
    return given if path == root else child(given, path[len(root) :].lstrip("/"))
