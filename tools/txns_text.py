"""Transactions for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .tables import print_table

if TYPE_CHECKING:
    from logstore.audit.explanation import Explanation
    from logstore.audit.open_transactions import OpenTransaction

_COLUMNS = (
    *("partition", "transactional id", "producer id", "epoch", "first offset", "last offset", "records", "age"),
    *("coordinator", "verdict"),
)


def print_transactions(found: Sequence[OpenTransaction]) -> None:
    """One line each."""
    if not found:
        click.echo("none")
        return
    print_table(_COLUMNS, [_row(one) for one in found])


def print_explanation(explanation: Explanation) -> None:
    """What holds readers back, field by field."""
    one = explanation.blocking
    click.echo(
        f"{explanation.partition}: read_committed consumers get what is below offset {explanation.last_stable_offset}, "
        f"read_uncommitted ones what is below {explanation.log_end_offset}."
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
    if explanation.open_count > 1:
        click.echo(f"\nBehind it {explanation.open_count - 1} more transactions are open, see `logstore txns list`.")


def duration(milliseconds: int) -> str:
    """In words.

    >>> duration(450), duration(90_000), duration(93_784_000)
    ('450 ms', '1 min 30 s', '1 d 2 h')
    """
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    rest, parts = milliseconds // 1000, []
    for name, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts[:2])


def _row(one: OpenTransaction) -> tuple[str, str | None, int, int, int, int, int, str, str | None, str]:
    transaction = one.transaction
    return (
        one.name,
        one.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        transaction.first_offset,
        transaction.last_offset,
        transaction.record_count,
        duration(one.age_ms),
        None if one.coordinator is None else one.coordinator.metadata.state.name,
        one.verdict.value,
    )
