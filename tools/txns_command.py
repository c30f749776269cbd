"""`logstore txns`."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from .audit_options import FINDINGS, exit_code_of, form_option, now_option, time_or_clock, told_errors

if TYPE_CHECKING:
    from logstore.audit.directory_audit import Transactions


@click.group("txns")
def command() -> None:
    """Transactions of a data directory, with no broker: which are open, which hang, and why readers wait."""


@command.command("list")
@click.argument("path", type=click.Path())
@now_option
@form_option
def list_(path: str, now: int | None, form: str) -> None:
    """List the open transactions of PATH, a data directory or one of its partitions, and what becomes of each."""
    transactions, code = _read(path, now)
    _print(transactions, form, only_hanging=False)
    sys.exit(code)


@command.command()
@click.argument("path", type=click.Path())
@now_option
@form_option
def hanging(path: str, now: int | None, form: str) -> None:
    """List those that no coordinator is going to end. The exit code is 1 if there are any."""
    transactions, code = _read(path, now)
    found_count = _print(transactions, form, only_hanging=True)
    sys.exit(max(code, FINDINGS if found_count else 0))


@command.command()
@click.argument("path", type=click.Path())
@now_option
@form_option
def explain(path: str, now: int | None, form: str) -> None:
    """Say why read_committed consumers of PATH, the directory of a partition, get no further.

    The exit code is 1 if they wait for a transaction.
    """
    from logstore.audit.explanation import explain as explain_partition
    from logstore.audit.explanation import explanation_json

    from .txns_text import print_explanation

    transactions, code = _read(path, now)
    if len(transactions.histories) != 1:
        raise click.UsageError(f"{path} is not the directory of one partition")
    (history,) = transactions.histories.values()
    explanation = explain_partition(history, list(transactions.open))
    if form == "json":
        click.echo(json.dumps(explanation_json(explanation)))
    else:
        print_explanation(explanation)
    sys.exit(max(code, 0 if explanation.blocking is None else FINDINGS))


def _read(path: str, now: int | None) -> tuple[Transactions, int]:
    """Return the transactions, and the exit code of what could not be looked at."""
    from logstore.audit.directory_audit import read_transactions
    from logstore.errors import DataDirectoryError

    from .paths import partition_in

    with told_errors():
        root, only = partition_in(path)
        transactions, findings = read_transactions(root, time_or_clock(now), only)
        if only is not None and not transactions.histories:
            raise DataDirectoryError("The partition cannot be looked at", path=path)
        return transactions, exit_code_of(root, findings)


def _print(transactions: Transactions, form: str, *, only_hanging: bool) -> int:
    """Returns how many were printed."""
    from logstore.audit.explanation import transaction_json
    from logstore.audit.open_transactions import Verdict

    from .txns_text import print_transactions

    bad = (Verdict.HANGING, Verdict.MARKER_MISSING)
    found = [one for one in transactions.open if not only_hanging or one.verdict in bad]
    if form == "json":
        click.echo(json.dumps([transaction_json(one) for one in found]))
    else:
        print_transactions(found)
    return len(found)
