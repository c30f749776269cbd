"""The root of all errors, and the way a producer recovers from one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from os import PathLike
from typing import ClassVar, NamedTuple

from .advice import ADVICE


class Recovery(Enum):
    """What the user of a producer does after an error, as the Java client classifies it (KIP-1050).

    Without a transaction, ABORT means that the record is not in the log: send it again, or go on. With CLOSE, the
    error's advice may say what to do first, such as to open the store again.
    """

    RETRY = "call again"
    ABORT = "abort the transaction, then begin again"
    CLOSE = "close this producer and open another"
    MEND = "correct the call: it changed nothing"


class RecordError(NamedTuple):
    """Why one record of a refused batch was refused (`ProduceResponse.RecordError`); `batch_index` counts from 0."""

    batch_index: int
    message: str

    def __str__(self) -> str:
        return f"RecordError(batchIndex={self.batch_index}, message='{self.message}')"


class LogstoreError(Exception):
    """Root of all errors that logstore raises on purpose.

    Args:
        message: what is wrong, in Kafka's words where it has them.
        path: the file or directory.
        position: byte position in `path`.
        offset: Kafka offset of the batch or record.
        partitions: topics and numbers of those that a consumer cannot go on in.
        expected, found: the two sides of the check that failed.
        advice: what to do now; without it `advice` says what is usual, and the text of the error nothing.
        java_class: full name of the exception that ends Kafka's tool, if it is another than the class attribute.
    """

    kafka_name: str | None = None
    kafka_code: int | None = None
    java_class: str | None = None
    #: None for an error that no producer raises
    recovery: ClassVar[Recovery | None] = None

    def __init_subclass__(cls) -> None:
        cls.__module__ = "logstore.errors"  # so that tracebacks show where to import it from
        if cls.kafka_code is not None and cls.java_class is None:
            cls.java_class = f"org.apache.kafka.common.errors.{cls.__name__.removesuffix('Error')}Exception"

    def __init__(
        self,
        message: str | None,
        *,
        path: str | PathLike[str] | None = None,
        position: int | None = None,
        offset: int | None = None,
        partitions: tuple[tuple[str, int], ...] = (),
        expected: object = None,
        found: object = None,
        advice: str | None = None,
        java_class: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.position = position
        self.offset = offset
        self.partitions = partitions
        self.expected = expected
        self.found = found
        self.given_advice = advice
        if java_class is not None:
            self.java_class = java_class

    @property
    def advice(self) -> str | None:
        """What to do: given with this error, else what is usual for its kind."""
        usual = None if self.recovery is None else self.recovery.value
        return self.given_advice or ADVICE.get(type(self).__name__, usual)

    @advice.setter
    def advice(self, advice: str | None) -> None:
        """Give advice that fits this error."""
        self.given_advice = advice

    def __str__(self) -> str:
        parts = [self.message or type(self).__name__]
        where = []
        if self.path is not None:
            where.append(str(self.path))
        if self.position is not None:
            where.append(f"byte {self.position}")
        if self.offset is not None:
            where.append(f"offset {self.offset}")
        if where:
            parts.append("at " + ", ".join(where))
        sides = {"expected": self.expected, "found": self.found}
        if told := [f"{side} {value}" for side, value in sides.items() if value is not None]:
            parts.append(", ".join(told))
        if self.given_advice is not None:
            parts.append(self.given_advice)
        return "; ".join(parts)


@contextmanager
def naming_path(path: str | PathLike[str]) -> Iterator[None]:
    """Add the file or directory to an error of the block that names none."""
    try:
        yield
    except LogstoreError as error:
        error.path = error.path or path
        raise
