"""`logstore txns`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from logstore.errors import DataDirectoryError

from .audit_options import (
    FINDINGS,
    exit_code_of,
    form_option,
    now_option,
    print_object,
    print_rows,
    time_or_clock,
    told_errors,
)
from .paths import partition_in
from .timestamps import duration

if TYPE_CHECKING:
    from logstore.audit.open_transactions import Explanation, OpenTransaction, Transactions

_COLUMNS = (
    *("partition", "transactional id", "producer id", "epoch", "first offset", "last offset", "records", "age"),
    *("coordinator", "verdict"),
)


@click.group("txns")
def command() -> None:
    """Transactions of a data directory, with no broker: which are open, which hang, and why readers wait."""


@command.command("list")
@click.argument("path", type=click.Path())
@now_option
@form_option
def list_(path: str, now: int | None, form: str) -> None:
    """List the open transactions of PATH, a data directory or one of its partitions, and what becomes of each."""
    _list(path, now, form, only_hanging=False)


@command.command()
@click.argument("path", type=click.Path())
@now_option
@form_option
def hanging(path: str, now: int | None, form: str) -> None:
    """List those that no coordinator is going to end. The exit code is 1 if there are any."""
    _list(path, now, form, only_hanging=True)


@command.command()
@click.argument("path", type=click.Path())
@now_option
@form_option
def explain(path: str, now: int | None, form: str) -> None:
    """Say why read_committed consumers of PATH, the directory of a partition, get no further.

    The exit code is 1 if they wait for a transaction.
    """
    from logstore.audit.open_transactions import Explanation, explanation_json

    transactions, code = _read(path, now)
    if len(transactions.histories) != 1:
        raise click.UsageError(f"{path} is not the directory of one partition")
    (history,) = transactions.histories.values()
    explanation = Explanation(history, transactions.open)
    if form != "table":
        print_object(explanation_json(explanation), form)
    else:
        _print_explanation(explanation)
    sys.exit(max(code, 0 if explanation.blocking is None else FINDINGS))


def _read(path: str, now: int | None) -> tuple[Transactions, int]:
    """Return the transactions, and the exit code of what could not be looked at."""
    from logstore.audit.directory_audit import read_transactions

    with told_errors():
        root, only = partition_in(path)
        transactions, findings = read_transactions(root, time_or_clock(now), only)
        if only is not None and not transactions.histories:
            raise DataDirectoryError("The partition cannot be looked at", path=path)
        return transactions, exit_code_of(root, findings)


def _list(path: str, now: int | None, form: str, *, only_hanging: bool) -> NoReturn:
    """Print the open transactions, or those that hang, and exit: with FINDINGS if hanging ones were asked for."""
    from logstore.audit.open_transactions import Verdict, transaction_json

    transactions, code = _read(path, now)
    bad = (Verdict.HANGING, Verdict.MARKER_MISSING)
    found = [one for one in transactions.open if not only_hanging or one.verdict in bad]
    if found or form != "table":
        print_rows([transaction_json(one) for one in found], form, _COLUMNS, map(_row, found))
    else:
        click.echo("none")
    sys.exit(max(code, FINDINGS if only_hanging and found else 0))


def _print_explanation(explanation: Explanation) -> None:
    """Print what holds readers back, field by field."""
    one, history = explanation.blocking, explanation.history
    click.echo(
        f"{history.partition.name}: read_committed consumers get what is below offset {history.last_stable_offset}, "
        f"read_uncommitted ones what is below {history.log_end_offset}."
    )
    if one is None:
        click.echo(f"{explanation.why}.")
        return
    transaction, entry = one.transaction, one.coordinator
    click.echo(f"At offset {transaction.first_offset} a transaction begins that is still open: {explanation.why}.\n")
    rows = [
        ("transactional id", one.transactional_id or "not known"),
        ("producer id", transaction.producer_id),
        ("producer epoch", transaction.producer_epoch),
        ("offsets", f"{transaction.first_offset} to {transaction.last_offset}, {transaction.record_count} records"),
        ("age", duration(one.age_ms)),
        ("coordinator says", "nothing" if entry is None else entry.metadata.state.name),
        ("missing", explanation.missing),
        ("what to do", explanation.advice),
    ]
    if entry is not None:
        metadata = entry.metadata
        places = ", ".join(f"{topic}-{number}" for topic, number in metadata.partitions)
        rows[6:6] = [
            ("", f"epoch {metadata.producer_epoch}, timeout {duration(metadata.transaction_timeout_ms)}"),
            ("", f"partitions: {places or 'none'}"),
            ("", f"at offset {entry.offset} of __transaction_state-{entry.partition}"),
        ]
    for name, value in rows:
        click.echo(f"  {name:<17} {value}")
    if len(explanation.open) > 1:
        click.echo(f"\nBehind it {len(explanation.open) - 1} more transactions are open, see `logstore txns list`.")


def _row(one: OpenTransaction) -> tuple[Any, ...]:
    transaction = one.transaction
    producer = (one.transactional_id, transaction.producer_id, transaction.producer_epoch)
    offsets = (transaction.first_offset, transaction.last_offset, transaction.record_count)
    state = None if one.coordinator is None else one.coordinator.metadata.state.name
    return one.name, *producer, *offsets, duration(one.age_ms), state, one.verdict.value
