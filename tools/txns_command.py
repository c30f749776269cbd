"""`logstore txns`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from logstore.disk.names import child
from logstore.errors import DataDirectoryError

from . import HELP_SETTINGS
from .paths import Note, partition_directory, place_of
from .rows import PLACE, PLACE_OF_DIRECTORY, Row, RowField, RowType, members, print_row, print_rows
from .tables import print_lines
from .timestamps import duration, iso_text
from .verbs import FINDINGS, Verb, note_directory, now_option, path_argument, paths_argument

if TYPE_CHECKING:
    from logstore.audit.facts.states import CoordinatorEntry
    from logstore.audit.open_transactions import Explanation, OpenTransaction, Transactions


def _state(row: Row) -> str | None:
    return None if row["coordinator"] is None else str(row["coordinator"]["state"])


TRANSACTION = RowType(
    "transaction",
    "An open transaction in a partition.",
    (
        *PLACE,
        RowField("transactionalId", "string?", "of its producer", "transactional id"),
        RowField("producerId", "integer", "of its producer", "producer id", is_minor=True),
        RowField("producerEpoch", "integer", "of its producer", "epoch", is_minor=True),
        RowField("firstOffset", "integer", "of its first record", "first offset"),
        RowField("lastOffset", "integer", "of its last record", "last offset", is_minor=True),
        RowField("recordCount", "integer", "how many records", "records", is_minor=True),
        RowField("ageMs", "integer", "how old it is, never negative", "age", lambda row: duration(row["ageMs"])),
        RowField(
            "ageClock",
            "string",
            "what tells its age: `coordinator`, `producer` (the timestamp of its first record), or `broker` or `file`: "
            "it is at least so old",
            "by clock of",
            is_minor=True,
        ),
        RowField(
            "coordinator",
            "object?",
            "what `__transaction_state` says: `partition` and `offset` of the record, `state`, `producerEpoch`, "
            "`transactionTimeoutMs`, `transactionStartTime`, `partitions`",
            "coordinator",
            _state,
            is_minor=True,
        ),
        RowField(
            "judgedAt",
            "time",
            "as of when it was judged: what was due later is not late",
            "judged as of",
            is_minor=True,
        ),
        RowField("verdict", "string", "what becomes of it", "verdict"),
    ),
)
EXPLANATION = RowType(
    "explanation",
    "Why read_committed consumers of a partition get no further.",
    (
        *PLACE_OF_DIRECTORY,
        RowField("lastStableOffset", "integer", "they get what is below"),
        RowField("logEndOffset", "integer", "behind the last record"),
        RowField("openCount", "integer", "how many transactions are open"),
        RowField("why", "string", "the reason"),
        RowField("missing", "string?", "the marker that they wait for"),
        RowField("advice", "string?", "what to do"),
        RowField("blocking", "object?", "the transaction that they wait for, as a row of type transaction"),
    ),
)


@click.group("txns", context_settings=HELP_SETTINGS)
def command() -> None:
    """Transactions of a data directory, with no broker: which are open, which hang, and why readers wait."""


_paths = paths_argument(place_of)


@command.command("list", cls=Verb, prints=[TRANSACTION], example="logstore txns list /var/lib/kafka/data")
@_paths
@now_option
def list_(paths: list[tuple[str, str | None]], now: int, form: str) -> int:
    """List the open transactions of data directories or partitions, and what becomes of each."""
    _print_open(_read_open(paths, now), form)
    return 0


@command.command(cls=Verb, prints=[TRANSACTION], example="logstore txns hanging /var/lib/kafka/data")
@_paths
@now_option
def hanging(paths: list[tuple[str, str | None]], now: int, form: str) -> int:
    """List those that no coordinator is going to end. The exit code is 1 if there are any."""
    from logstore.audit.open_transactions import Verdict

    bad = (Verdict.HANGING, Verdict.MARKER_MISSING)
    found = [one for one in _read_open(paths, now) if one.verdict in bad]
    _print_open(found, form)
    return FINDINGS if found else 0


def _one_partition(word: str, note: Note) -> tuple[str, str | None]:
    return place_of(partition_directory(word, note), is_one=True)


@command.command(cls=Verb, prints=[EXPLANATION], example="logstore txns explain /var/lib/kafka/data/orders-0")
@path_argument("path", _one_partition)
@now_option
def explain(path: tuple[str, str], now: int, form: str) -> int:
    """Say why read_committed consumers of a partition get no further.

    The exit code is 1 if they wait for a transaction.
    """
    from logstore.audit.open_transactions import Explanation

    transactions = _read(*path, now)
    (history,) = transactions.histories.values()
    explanation = Explanation(history, transactions.open)
    if form == "table":
        _print_explanation(explanation)
    else:
        print_row(EXPLANATION, _explanation(explanation), form)
    return 0 if explanation.blocking is None else FINDINGS


def _read(root: str, only: str | None, now: int) -> Transactions:
    """Return the transactions of a data directory, or of one of its partitions; note what could not be read."""
    from logstore.audit.directory_audit import read_transactions

    transactions, findings = read_transactions(root, now, only)
    if only is not None and not transactions.histories:
        raise DataDirectoryError("The partition cannot be looked at", path=child(root, only))
    note_directory(root, findings)
    return transactions


def _read_open(paths: list[tuple[str, str | None]], now: int) -> list[OpenTransaction]:
    return [one for root, only in paths for one in _read(root, only, now).open]


def _print_open(found: list[OpenTransaction], form: str) -> None:
    if found or form != "table":
        print_rows(TRANSACTION, map(_transaction, found), form)
    else:
        print_lines("none")


def _transaction(one: OpenTransaction) -> Row:
    return members(one.where, one.transaction, one) | {
        "ageMs": one.age_ms,
        "ageClock": one.age.clock.value,
        "coordinator": _coordinator(one),
        "verdict": one.verdict.value,
        "judgedAt": one.judged_ms,
    }


def _coordinator(one: OpenTransaction) -> Row | None:
    entry = one.coordinator
    return entry and {
        "partition": f"__transaction_state-{entry.partition}",
        "offset": entry.offset,
        "state": entry.metadata.state.name,
        "producerEpoch": entry.metadata.producer_epoch,
        "transactionTimeoutMs": entry.metadata.transaction_timeout_ms,
        "transactionStartTime": iso_text(entry.metadata.start_timestamp_ms),
        "partitions": [f"{topic}-{number}" for topic, number in entry.metadata.partitions],
    }


def _explanation(explanation: Explanation) -> Row:
    history, blocking = explanation.history, explanation.blocking
    return members(history.partition.files) | {
        "lastStableOffset": history.last_stable_offset,
        "logEndOffset": history.log_end_offset,
        "openCount": len(explanation.open),
        "why": explanation.why,
        "missing": explanation.missing,
        "advice": explanation.advice,
        "blocking": blocking and next(TRANSACTION.plain([_transaction(blocking)])),
    }


def _print_explanation(explanation: Explanation) -> None:
    """Print the transaction that readers wait for, field by field."""
    one, history = explanation.blocking, explanation.history
    print_lines(
        f"{history.partition.name}: read_committed consumers get what is below offset {history.last_stable_offset}, "
        f"read_uncommitted ones what is below {history.log_end_offset}."
    )
    if one is None:
        print_lines(f"{explanation.why}.")
        return
    transaction = one.transaction
    print_lines(f"At offset {transaction.first_offset} a transaction begins that is still open: {explanation.why}.", "")
    rows = [
        ("transactional id", one.transactional_id or "not known"),
        ("producer id", transaction.producer_id),
        ("producer epoch", transaction.producer_epoch),
        ("offsets", f"{transaction.first_offset} to {transaction.last_offset}, {transaction.record_count} records"),
        ("age", one.age.text(duration(one.age_ms))),
        *_coordinator_lines(one.coordinator),
        ("judged", _judged(one)),
        ("missing", explanation.missing),
        ("what to do", explanation.advice),
    ]
    for name, value in rows:
        print_lines(f"  {name:<17} {value}")
    if len(explanation.open) > 1:
        count = len(explanation.open) - 1
        print_lines("", f"Behind it {count} more transactions are open, see `logstore txns list`.")


def _judged(one: OpenTransaction) -> str:
    """Return as of when the verdict is, and by which clock."""
    from logstore.audit.open_transactions import Verdict

    by_coordinator = (Verdict.ONGOING, Verdict.TIMED_OUT, Verdict.ENDING, Verdict.LATE)
    clock = "its coordinator's clock" if one.verdict in by_coordinator else "the times of files and of brokers"
    moment = "now"
    if one.judged_ms < one.moment.now_ms:
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
