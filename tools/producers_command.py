"""`logstore producers`."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from .audit_options import errors_as_usage, form_option

if TYPE_CHECKING:
    from logstore.audit.coordinator_log import CoordinatorLog
    from logstore.audit.partition import Partition

_COLUMNS = (
    *("partition", "producer id", "epoch", "transactional id", "last sequence", "last offset", "last written"),
    *("coordinator epoch", "open since offset"),
)


@click.command("producers")
@click.argument("path", type=click.Path(exists=True, file_okay=False))
@form_option
def command(path: str, form: str) -> None:
    """List the producers of PATH, a data directory or one of its partitions, as the logs themselves tell them."""
    from .tables import print_table
    from .timestamps import utc_text

    with errors_as_usage():
        rows = list(_producers(path))
    if form == "json":
        click.echo(json.dumps(rows))
        return
    for row in rows:
        row["lastTimestamp"] = utc_text(row["lastTimestamp"])
    print_table(_COLUMNS, [tuple(row.values()) for row in rows])


def _producers(path: str) -> Iterator[dict[str, Any]]:
    from logstore.audit.coordinator_log import read_coordinator_log
    from logstore.audit.partition import open_partitions

    from .audit_paths import data_directory_of

    root, only = data_directory_of(path)
    partitions = open_partitions(root)
    log, findings = read_coordinator_log(partitions, None)
    for finding in findings:
        sys.stderr.write(f"logstore: {finding}\n")
    for partition in partitions:
        if only in (None, partition.name):
            yield from _partition_producers(partition, log)


def _partition_producers(partition: Partition, log: CoordinatorLog) -> Iterator[dict[str, Any]]:
    from logstore.audit.log_pass import run_checks
    from logstore.audit.partition import Report
    from logstore.audit.producer_checks import ProducerChecks

    checks = ProducerChecks(partition, Report(partition.files.topic, partition.files.partition))
    run_checks(partition, [checks])
    for producer in sorted(checks.state, key=lambda one: one.producer_id):
        last = producer.batches[-1] if producer.batches else None
        yield {
            "partition": partition.name,
            "producerId": producer.producer_id,
            "producerEpoch": producer.producer_epoch,
            "transactionalId": log.owners.get(producer.producer_id),
            "lastSequence": None if last is None else last.last_sequence,
            "lastOffset": None if last is None else last.last_offset,
            "lastTimestamp": producer.last_timestamp,
            "coordinatorEpoch": producer.coordinator_epoch,
            "currentTxnFirstOffset": producer.current_txn_first_offset,
        }
