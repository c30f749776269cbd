"""`logstore producers`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from .audit_options import exit_code_of, form_option, print_objects, told_errors

if TYPE_CHECKING:
    from logstore.audit.coordinator_log import CoordinatorLog
    from logstore.audit.partition import Partition

_COLUMNS = (
    *("partition", "producer id", "epoch", "transactional id", "last sequence", "last offset", "last written"),
    *("coordinator epoch", "open since offset"),
)


@click.command("producers")
@click.argument("path", type=click.Path())
@form_option
def command(path: str, form: str) -> None:
    """List the producers of PATH, a data directory or one of its partitions, as the logs themselves tell them."""
    from logstore.audit.coordinator_log import read_coordinator_log
    from logstore.audit.partition import open_partitions

    from .paths import partition_in

    with told_errors():
        root, only = partition_in(path)
        partitions = open_partitions(root)
        log, findings = read_coordinator_log([one for one in partitions if one.is_live], None)
        looked_at = [partition for partition in partitions if only in (None, partition.name)]
        producers = [producer for partition in looked_at for producer in _producers(partition, log)]
        code = exit_code_of(root, findings)
    print_objects(producers, form, _COLUMNS, _cells)
    sys.exit(code)


def _cells(producer: dict[str, Any]) -> tuple[Any, ...]:
    from .timestamps import utc_text

    return tuple((producer | {"lastTimestamp": utc_text(producer["lastTimestamp"])}).values())


def _producers(partition: Partition, log: CoordinatorLog) -> Iterator[dict[str, Any]]:
    from logstore.audit.evidence import Evidence
    from logstore.audit.log_pass import run_checks
    from logstore.audit.partition import Report
    from logstore.audit.producer_checks import ProducerChecks

    evidence = Evidence(partition)
    checks = ProducerChecks(evidence, Report(*partition.key))
    run_checks(evidence, [checks])
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
