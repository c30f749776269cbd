"""`logstore txns`."""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import TYPE_CHECKING

import click

from logstore.audit.durations import duration
from logstore.disk.names import child
from logstore.rows.schema import iso_text
from logstore.rows.transactions import ExplanationRow, OpenTransactionRow

from . import HELP_SETTINGS
from .paths import Note, partition_directory, place_of
from .progress import Progress, log_size
from .rows import PARTITION_COLUMN, Column, Row, RowType, TypedRows, VerbAnswer, by_directory, one_row
from .tables import count_of
from .verbs import FINDINGS, Verb, code_of_problems, now_option, path_argument, paths_argument

if TYPE_CHECKING:
    from logstore.audit.facts.states import CoordinatorEntry
    from logstore.audit.finding import Finding
    from logstore.audit.open_transactions import Explanation, OpenTransaction, Transactions
    from logstore.errors import LogstoreError


def _state(row: Row) -> str | None:
    return None if row["coordinator"] is None else str(row["coordinator"]["state"])


TRANSACTION = RowType.of(
    OpenTransactionRow,
    "transaction",
    {
        "partition": PARTITION_COLUMN,
        "transactional_id": "transactional id",
        "producer_id": Column("producer id", is_minor=True),
        "producer_epoch": Column("epoch", is_minor=True),
        "first_offset": "first offset",
        "last_offset": Column("last offset", is_minor=True),
        "record_count": Column("records", is_minor=True),
        "age_ms": Column("age", lambda row: duration(row["ageMs"])),
        "age_clock": Column("by clock of", is_minor=True),
        "coordinator": Column("coordinator", _state, is_minor=True),
        "judged_at": Column("judged as of", is_minor=True),
        "verdict": "verdict",
    },
)
EXPLANATION = RowType.of(ExplanationRow, "explanation", {})


@click.group("txns", context_settings=HELP_SETTINGS)
def command() -> None:
    """Transactions of a data directory, with no broker: which are open, which hang, and why readers wait."""


_paths = paths_argument(place_of)


@command.command("list", cls=Verb, prints=[TRANSACTION], example="logstore txns list /var/lib/kafka/data")
@_paths
@now_option
def list_(paths: list[tuple[str, str | None]], now: int) -> VerbAnswer:
    """List open transactions, and what becomes of each.

    Read: `__transaction_state`, and other logs from the newest snapshot on, or from the first record of an open
    transaction; all of a log if nobody is going to end one. Damage elsewhere is not seen; see `logstore verify`.

    Name all data directories of a broker that has several: its coordinators may be in another one.
    """
    return _answer(*_read_open(paths, now))


@command.command(cls=Verb, prints=[TRANSACTION], example="logstore txns hanging /var/lib/kafka/data")
@_paths
@now_option
def hanging(paths: list[tuple[str, str | None]], now: int) -> VerbAnswer:
    """List those that no coordinator is going to end. The exit code is 1 if there are any."""
    from logstore.audit.open_transactions import Verdict

    bad = (Verdict.HANGING, Verdict.MARKER_MISSING)
    transactions, problems = _read_open(paths, now)
    found = [one for one in transactions if one.verdict in bad]
    return _answer(found, problems, FINDINGS if found else 0)


def _one_partition(word: str, note: Note) -> tuple[str, str | None]:
    return place_of(partition_directory(word, note), is_one=True)


@command.command(cls=Verb, prints=[EXPLANATION], example="logstore txns explain /var/lib/kafka/data/orders-0")
@path_argument("path", _one_partition)
@now_option
def explain(path: tuple[str, str], now: int) -> VerbAnswer:
    """Say why read_committed consumers of a partition get no further.

    The exit code is 1 if they wait for a transaction.
    """
    from logstore.audit.answers import explanation_row
    from logstore.audit.open_transactions import Explanation

    transactions, problems = _read(*path, now)
    (history,) = transactions.histories.values()
    explanation = Explanation(history, transactions.open)
    code = max(code_of_problems(problems), 0 if explanation.blocking is None else FINDINGS)
    row = one_row(EXPLANATION, explanation_row(explanation))
    return VerbAnswer([row], code, _explanation_lines(explanation), problems)


def _read(
    root: str, only: str | None, now: int, beside: Collection[str] = ()
) -> tuple[Transactions, list[LogstoreError | Finding]]:
    """Return the transactions of a data directory, or of `only` a partition of it, and what could not be read.

    Other data directories, perhaps of the same broker, lie `beside`.
    """
    from logstore.audit.directory_audit import read_transactions
    from logstore.audit.listings import not_looked_at, unlisted

    size = partial(log_size, root if only is None else child(root, only), is_partition=only is not None)
    with Progress("txns", size, has_rate=False) as progress:
        transactions, findings = read_transactions(root, now, only, progress.advance, beside)
    if only is not None and not transactions.histories:
        raise not_looked_at(child(root, only))
    return transactions, [*findings, *unlisted(root)]


def _read_open(
    paths: list[tuple[str, str | None]], now: int
) -> tuple[list[OpenTransaction], list[LogstoreError | Finding]]:
    roots = {root for root, _ in paths}
    read = [_read(root, only, now, roots - {root}) for root, only in paths]
    problems = dict.fromkeys(problem for _, problems in read for problem in problems)
    return [one for found, _ in read for one in found.open], list(problems)


def _answer(found: list[OpenTransaction], problems: list[LogstoreError | Finding], code: int = 0) -> VerbAnswer:
    from logstore.audit.answers import open_transaction_row

    rows = TypedRows(TRANSACTION, list(map(open_transaction_row, found)))
    lines = by_directory(rows) if found else ["none"]
    return VerbAnswer([rows], max(code_of_problems(problems), code), lines, problems)


def _explanation_lines(explanation: Explanation) -> list[str]:
    """Return the transaction that readers wait for, field by field."""
    one, history = explanation.blocking, explanation.history
    above = (
        f"{history.partition.name}: read_committed consumers get what is below offset {history.last_stable_offset}, "
        f"read_uncommitted ones what is below {history.log_end_offset}."
    )
    if one is None:
        return [above, f"{explanation.why}."]
    transaction = one.transaction
    fields = [
        ("transactional id", one.transactional_id or "not known"),
        ("producer id", transaction.producer_id),
        ("producer epoch", transaction.producer_epoch),
        (
            "offsets",
            f"{transaction.first_offset} to {transaction.last_offset}, {count_of(transaction.record_count, 'record')}",
        ),
        ("age", one.age.text(duration(one.age_ms))),
        *_coordinator_lines(one.coordinator),
        ("judged", _judged(one)),
        ("missing", explanation.missing),
        ("what to do", explanation.advice),
    ]
    begins = f"At offset {transaction.first_offset} a transaction begins that is still open: {explanation.why}."
    lines = [above, begins, "", *(f"  {name:<17} {value}" for name, value in fields)]
    if len(explanation.open) > 1:
        count = count_of(len(explanation.open) - 1, "transaction")
        lines += ["", f"Open behind it: {count}, see `logstore txns list`."]
    return lines


def _judged(one: OpenTransaction) -> str:
    """Return as of when the verdict is, and by which clock."""
    from logstore.audit.open_transactions import Verdict

    by_coordinator = (Verdict.ONGOING, Verdict.TIMED_OUT, Verdict.ENDING, Verdict.LATE)
    clock = "its coordinator's clock" if one.verdict in by_coordinator else "the times of files and of brokers"
    moment = "now"
    if one.judged_ms <= 0:
        moment = "a moment that no file tells: nothing is late then"
    elif one.judged_ms < one.moment.now_ms:
        moment = f"{iso_text(one.judged_ms)}, a minute before the newest file was written"
    return f"by {clock}, as of {moment}"


def _coordinator_lines(entry: CoordinatorEntry | None) -> list[tuple[str, str]]:
    if entry is None:
        return [("coordinator says", "nothing")]
    metadata = entry.metadata
    places = ", ".join(f"{topic}-{number}" for topic, number in metadata.partitions)
    return [
        ("coordinator says", metadata.state.name),
        ("", f"epoch {metadata.producer_epoch}, timeout {duration(metadata.transaction_timeout_ms)}"),
        ("", f"partitions: {places or 'none'}"),
        ("", f"at offset {entry.offset} of __transaction_state-{entry.partition}"),
    ]
