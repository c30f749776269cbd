"""`logstore recover`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

import click

from logstore.disk.directory import partition_name
from logstore.disk.names import absolute_path, parent
from logstore.errors import DataDirectoryError
from logstore.rows.schema import iso_text

from .paths import partition_directory
from .progress import Progress
from .rows import PARTITION, PATH, TOPIC, JsonField, Row, RowType, VerbAnswer, members, one_row
from .verbs import FINDINGS, Verb, code_of_problems, dry_run_option, now_option, path_argument, yes_option

if TYPE_CHECKING:
    from logstore.folds.producer_state import ProducerEntry
    from logstore.log.load.removals import RecoveryPlan
    from logstore.log.segment.log_segment import LogSegment
    from logstore.log.state import LogState


def _assignments(_: click.Context, __: click.Parameter, texts: Sequence[str]) -> dict[str, str]:
    """Return the configurations that NAME=VALUE, each, give a topic."""
    for text in texts:
        if "=" not in text:
            raise click.UsageError(f"--config {text}: expected NAME=VALUE")
    return dict(text.split("=", 1) for text in texts)


REMOVALS = JsonField(
    "removals",
    "array",
    "bytes of logs, as objects: `file`, `start` and `end` (bytes), `firstOffset` and `endOffset` (of the readable "
    "batches in them, or null), `batchCount`, `recordCount`, `size` (of these batches), `reason`",
)
PLAN = RowType(
    "plan",
    "What a recovery would do.",
    (
        PATH,
        JsonField("wasClean", "boolean", "whether the last broker ended in order"),
        JsonField("removedBatches", "integer", "readable batches that would go"),
        JsonField("removedRecords", "integer", "their records"),
        JsonField("removedBytes", "integer", "their size"),
        REMOVALS,
        JsonField("repairs", "array", "objects: `file`, `action`, `reason`"),
        JsonField("verdict", "string", "what that comes to"),
    ),
)
RECOVERED = RowType(
    "recovered",
    "A partition as a recovery left it.",
    (
        TOPIC,
        PARTITION,
        PATH,
        JsonField("topicId", "string?", "of partition.metadata"),
        JsonField("logStartOffset", "integer", "where the log starts"),
        JsonField("logEndOffset", "integer", "behind its last batch"),
        JsonField("lastStableOffset", "integer", "read_committed consumers get what is below"),
        JsonField("highWatermark", "integer", "the end of the log, as nothing is replicated"),
        JsonField("recoveryPoint", "integer", "first offset that is not known to be on the disk"),
        JsonField(
            "segments",
            "array",
            "objects: `baseOffset`, `size`, `nextOffset` (null if its index leads nowhere), `indexEntryCount`, "
            "`timeIndexEntryCount`, `abortedTransactions` (how many)",
        ),
        JsonField("leaderEpochs", "array", "objects: `epoch`, `startOffset`"),
        JsonField(
            "producers",
            "array",
            "objects: `producerId`, `producerEpoch`, `lastSequence`, `lastTimestamp`, `coordinatorEpoch`, "
            "`currentTxnFirstOffset`",
        ),
        JsonField("repairs", "array", "objects: `file`, `action`, `reason`"),
        REMOVALS,
    ),
)


@click.command(
    "recover",
    cls=Verb,
    prints=[PLAN, RECOVERED],
    error_code=FINDINGS,
    example="logstore recover /var/lib/kafka/data/orders-0 --dry-run",
)
@path_argument("directory", partition_directory)
@click.option(
    "--clean/--unclean",
    "was_clean",
    default=None,
    help="Whether the last broker ended in order  [default: whether it left .kafka_cleanshutdown]",
)
@click.option(
    "--recovery-point", type=int, help="First offset not known to be on the disk  [default: the checkpoint's]"
)
@click.option("--log-start", type=int, help="Offset at which the log starts  [default: the checkpoint's]")
@now_option
@click.option(
    "--config",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_assignments,
    help="A configuration of the topic, in place of what the metadata has; may be repeated.",
)
@yes_option
@dry_run_option
def command(
    directory: str,
    was_clean: bool | None,
    recovery_point: int | None,
    log_start: int | None,
    now: int,
    config: dict[str, str],
    yes: bool,
    dry_run: bool,
) -> VerbAnswer:
    """Repair a partition in place, as a broker does that starts, and print what it holds.

    The directory must not be in use. What is not told by options is taken from the data directory around it: the
    topic's configuration in its metadata, its marker of a clean shutdown and its checkpoints. These stay as they are,
    but the marker goes with bytes of the log: groups may have read them, and go back after a start without it.
    A broker removes batches that can be read too, those behind damage for one: that needs --yes, and `logstore
    salvage` keeps them. The dry run is the recovery itself, up to the first change.
    """
    from logstore.audit.partition import open_partition
    from logstore.disk.lock import data_directory_lock, require_not_held
    from logstore.disk.seam import SEAM
    from logstore.log.load.loader import LoadSettings
    from logstore.log.load.recover import plan_recovery, recover_partition
    from logstore.store.checkpoints import take_clean_shutdown

    from .topic_config import topic_config

    path = absolute_path(directory)
    around, (log_config, problems) = open_partition(path).surroundings, topic_config(path, config)
    settings = LoadSettings(
        was_clean=around.was_closed if was_clean is None else was_clean,
        recovery_point=(around.recovery_point or 0) if recovery_point is None else recovery_point,
        log_start_offset=(around.log_start_offset or 0) if log_start is None else log_start,
        now_ms=now,
        config=log_config,
        accepts_loss=yes,
        was_cleaned=around.cleaner_offset is not None,
    )
    if dry_run:
        require_not_held(parent(path))
        with Progress("recover"), _advised(path):
            plan = plan_recovery(path, settings)
        row = one_row(PLAN, _planned(plan, was_clean=settings.was_clean))
        code = max(code_of_problems(problems), FINDINGS if plan.readable else 0)
        return VerbAnswer([row], code, notes=problems)
    with data_directory_lock(parent(path)), Progress("recover"), _advised(path):
        # the next opening then begins a leader epoch, by which groups know what is gone
        unmark = partial(take_clean_shutdown, SEAM, parent(path))
        recovered = _recovered(*recover_partition(path, settings, before_cut=unmark))
    return VerbAnswer([one_row(RECOVERED, recovered)], code_of_problems(problems), notes=problems)


def _advised(path: str) -> AbstractContextManager[None]:
    """Return what adds a way on to an error of the recovery."""
    from logstore.audit.partition import open_partition
    from logstore.model import TopicPartition
    from logstore.store.partitions import naming

    return naming(TopicPartition(*open_partition(path).key))


def _planned(plan: RecoveryPlan, *, was_clean: bool) -> Row:
    return {
        "path": plan.path,
        "wasClean": was_clean,
        "removedBatches": sum(one.batch_count for one in plan.removals),
        "removedRecords": sum(one.record_count for one in plan.removals),
        "removedBytes": sum(one.size for one in plan.removals),
        "removals": [members(one) for one in plan.removals],
        "repairs": [members(one) for one in plan.repairs],
        "verdict": _verdict(plan, was_clean=was_clean),
    }


def _verdict(plan: RecoveryPlan, *, was_clean: bool) -> str:
    """Say in a sentence what the recovery would change, and how much of the log that is judged by."""
    if plan.readable:
        return "batches that can be read would be removed: copy them with `logstore salvage` first, or pass --yes"
    if plan.removals or plan.repairs:
        return "no batch that can be read would be removed"
    read = "; closed in order, so only its end was read: `logstore verify` reads all" if was_clean else ""
    return f"nothing would be changed{read}"


def _recovered(state: LogState, done: RecoveryPlan) -> Row:
    name = partition_name(done.path)
    return {
        "topic": name.topic,
        "partition": name.partition,
        "path": done.path,
        "topicId": state.topic_id,
        "logStartOffset": state.log_start_offset,
        "logEndOffset": state.log_end_offset,
        "lastStableOffset": state.last_stable_offset,
        "highWatermark": state.high_watermark,
        "recoveryPoint": state.recovery_point,
        "segments": [_segment(segment) for segment in state.segments],
        "leaderEpochs": [{"epoch": epoch, "startOffset": offset} for epoch, offset in state.epochs.entries],
        "producers": [_producer(each) for each in sorted(state.producers.state, key=lambda each: each.producer_id)],
        "repairs": [members(repair) for repair in done.repairs],
        "removals": [members(removal) for removal in done.removals],
    }


def _segment(segment: LogSegment) -> Row:
    try:
        next_offset: int | None = segment.next_offset()
    except (ValueError, DataDirectoryError):
        next_offset = None  # an index that a clean start does not check leads nowhere
    return {
        "baseOffset": segment.base_offset,
        "size": segment.size,
        "nextOffset": next_offset,
        "indexEntryCount": segment.offset_index.entry_count,
        "timeIndexEntryCount": segment.time_index.entry_count,
        "abortedTransactions": segment.transaction_index.entry_count,
    }


def _producer(producer: ProducerEntry) -> Row:
    last = producer.batches[-1].last_sequence if producer.batches else None
    members_of_json = members(producer) | {"lastTimestamp": iso_text(producer.last_timestamp), "lastSequence": last}
    del members_of_json["batches"]
    return members_of_json
