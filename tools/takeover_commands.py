"""`logstore import` and `logstore promote`: take a data directory over from a broker, and give it back."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

import click

from logstore import clock
from logstore.disk.lock import require_not_held
from logstore.errors import DataDirectoryError, UsageError

from .paths import data_directory, require_accessible
from .progress import Progress
from .rows import PATH, JsonField, Row, RowType, VerbAnswer, members, one_row
from .server_properties import (
    require_nameable,
    require_new_file,
    require_startable,
    server_properties,
    warnings,
)
from .verbs import FINDINGS, Verb, dry_run_option, path_argument, yes_option

if TYPE_CHECKING:
    from logstore.log.load.removals import RecoveryPlan, Removal
    from logstore.model import TopicPartition

    from .takeover.inspection import Inspection

    Plans = dict[TopicPartition, RecoveryPlan]

_DIRECTORY = (
    PATH,
    JsonField("clusterId", "string?", "of meta.properties"),
    JsonField("nodeId", "integer?", "of meta.properties"),
    JsonField("directoryId", "string?", "of meta.properties"),
    JsonField("features", "object", "finalized levels by name"),
    JsonField("topics", "object", "numbers of partitions by name"),
    JsonField("nextProducerId", "integer", "the first that no producer has got"),
    JsonField("wasClean", "boolean", "whether it was closed in order"),
    JsonField("steps", "array", "what has to be done, in words; of a dry run also what would be removed"),
    JsonField("strays", "array", "paths of partitions that the metadata does not know"),
    JsonField("done", "array?", "what was done, in words; null of a dry run"),
    JsonField(
        "warnings",
        "array",
        "what a broker does with other directories, what retention deletes, and what the configuration lacks",
    ),
    JsonField("verdict", "string", "what that comes to"),
)
IMPORTED = RowType("imported", "The directory of a broker.", _DIRECTORY)
PROMOTED = RowType(
    "promoted",
    "A directory that a broker starts with.",
    (
        *_DIRECTORY,
        JsonField("brokerConfig", "string?", "content of server.properties; null of a dry run"),
        JsonField("startCommand", "string?", "starts the broker; null of a dry run"),
    ),
)


@click.command(
    "import",
    cls=Verb,
    prints=[IMPORTED],
    error_code=FINDINGS,
    example="logstore import /var/lib/kafka/data --dry-run",
)
@path_argument("directory", data_directory)
@yes_option
@dry_run_option
def import_(directory: str, yes: bool, dry_run: bool) -> VerbAnswer:
    """Take over the data directory of a single-node broker that is stopped: see whether that can be, and recover it.

    Nothing is converted: the directory stays one that the broker can have again. `logstore.open` does the same by
    itself; this tells before what there is, and whether it can. Recovery removes batches that can be read too, those
    behind damage for one: that needs --yes, and `logstore salvage` keeps them. The dry run reads all that the opening
    reads.
    """
    from .takeover.inspection import inspect
    from .takeover.planning import lost_ends, plan_opening

    require_accessible(directory, writes=not dry_run)
    require_not_held(directory)
    found = inspect(directory)
    if found.properties is None:
        raise UsageError(
            "There is no meta.properties, so this is no broker's directory",
            path=directory,
            advice="`logstore promote` makes one of partitions that lie in a directory",
        )
    with Progress("import"):
        plans = plan_opening(found, clock.now_ms())
    done, lost = None, lost_ends(found, plans)
    if not dry_run:
        _require_consent(plans, yes=yes)
        with Progress("import"):
            done = _recover(found, plans, accept_loss=yes)
        found, plans = inspect(directory), {}
    return VerbAnswer([one_row(IMPORTED, _directory(found, plans, done, lost))], _exit_code(plans))


@click.command(
    "promote",
    cls=Verb,
    prints=[PROMOTED],
    error_code=FINDINGS,
    example="logstore promote /var/lib/kafka/data --dry-run",
)
@path_argument("directory", data_directory)
@click.option("--out", metavar="FILE", help="Write the configuration to a new file.")
@yes_option
@dry_run_option
def promote(directory: str, out: str | None, yes: bool, dry_run: bool) -> VerbAnswer:
    """Make a data directory one that an unmodified Kafka starts with, and print the configuration to start it.

    A directory that a store has closed is that already, and nothing is changed. One that was not closed in order is
    recovered: that removes batches that can be read too, those behind damage for one, which needs --yes. Partitions
    that lie in a directory without meta.properties get a metadata log of their own.
    """
    from logstore.disk.atomic import write_output
    from logstore.disk.seam import SEAM

    from .takeover.adoption import adopt
    from .takeover.inspection import inspect
    from .takeover.planning import lost_ends, plan_opening

    require_accessible(directory, writes=not dry_run)
    require_not_held(directory)
    found = inspect(directory)
    require_nameable(found.path)
    require_startable(found)
    if out is not None:
        require_new_file(out)
    with Progress("promote"):
        plans = plan_opening(found, clock.now_ms())
    done, config, lost = None, None, lost_ends(found, plans)
    if not dry_run:
        _require_consent(plans, yes=yes)
        if found.properties is None:
            adopt(directory, seam=SEAM, now_ms=clock.now_ms)
        with Progress("promote"):
            done = _recover(found, plans, accept_loss=yes) if found.steps or _removals(plans) else []
        found, plans = inspect(directory), {}
        config = server_properties(found)
        if out is not None:
            write_output(SEAM, out, config.encode())
    row = _directory(found, plans, done, lost) | {"brokerConfig": None, "startCommand": None}
    row["warnings"] += warnings(found)
    if config is None:
        return VerbAnswer([one_row(PROMOTED, row)], _exit_code(plans))
    start = f"kafka-server-start.sh {quote(out or 'server.properties')}"
    where = "in server.properties" if out is None else f"which is in {out}"
    # people get them below the row, to be copied
    below = ["", "A broker starts here with", "", *config.split("\n"), f"{where}, by", "", start]
    whole = one_row(PROMOTED, row | {"brokerConfig": config, "startCommand": start})
    return VerbAnswer([whole], _exit_code(plans), [one_row(PROMOTED, row), *below])


def _directory(found: Inspection, plans: Plans, done: list[str] | None, lost: list[str]) -> Row:
    """Return the members of _DIRECTORY, by what recovery would do, and did; None of a dry run; `lost` before it."""
    nobody = dict.fromkeys(("clusterId", "nodeId", "directoryId"))
    row = members(found) | (nobody if found.properties is None else members(found.properties))
    return row | {
        "steps": [*found.steps, *_removal_texts(plans)],
        "strays": list(found.stray_directories),
        "done": done,
        "warnings": [*found.obstacles, *lost, *found.warnings],
        "verdict": _verdict(found, plans, is_done=done is not None),
    }


def _verdict(found: Inspection, plans: Plans, *, is_done: bool) -> str:
    """Say in a sentence who can open the directory, and what an opening would change."""
    who = (
        "a store can open it, a broker does not start on it" if found.obstacles else "a store and a broker can open it"
    )
    steps = len(found.steps) + len(_removal_texts(plans))
    if _exit_code(plans):
        return "batches that can be read would be removed: copy them with `logstore salvage` first, or pass --yes"
    if is_done:
        return who
    return f"{who}, by the {steps} steps above" if steps else f"{who} as it is"


def _require_consent(plans: Plans, *, yes: bool) -> None:
    """Raise RecoveryLossError if a recovery without --yes would remove readable batches."""
    from logstore.log.load.removals import require_accepted

    require_accepted({} if yes else _removals(plans))


def _exit_code(plans: Plans) -> int:
    return FINDINGS if any(plan.readable for plan in plans.values()) else 0


def _removals(plans: Plans) -> dict[str, tuple[Removal, ...]]:
    return {plan.path: plan.removals for plan in plans.values() if plan.removals}


def _removal_texts(plans: Plans) -> list[str]:
    from logstore.log.load.removals import readable_text

    texts = []
    for path, removals in _removals(plans).items():
        readable = [one for one in removals if one.batch_count]
        others = [one for one in removals if not one.batch_count]
        if readable:
            texts.append(f"remove {readable_text(readable)}, in {path}: {readable[0].reason}")
        if others:  # torn, or left out by the cleaner
            texts.append(f"remove {sum(one.end - one.start for one in others):,} bytes, in {path}: {others[0].reason}")
    return texts


def _recover(found: Inspection, plans: Plans, *, accept_loss: bool) -> list[str]:
    """Open and close the directory; return the steps that this took, and what was removed from each log.

    Raises:
        RecoveryLossError: readable batches would go now, which the plans did not have; that is not accepted.
        DataDirectoryError: something else was removed than planned.
    """
    from logstore import open as open_store

    with open_store(found.path, accept_loss=accept_loss) as store:
        for key, plan in plans.items():
            if plan.removals and key.topic in store.topics:
                store.log(*key)  # after an orderly close it is not opened before
        removed = {path: tuple(removals) for path, removals in store.removals.items() if removals}
    planned = _removals(plans)
    # a directory without owner had its metadata log opened before, when it was adopted
    for path in sorted(removed.keys() | planned.keys()) if found.properties is not None else sorted(removed):
        if removed.get(path) != planned.get(path):
            raise DataDirectoryError(
                "The recovery did not remove what was planned",
                path=path,
                expected=planned.get(path, "nothing removed"),
                found=removed.get(path, "nothing removed"),
                advice="another process changes the directory: stop it, and look at it with `logstore verify`",
            )
    return [*found.steps, *_removal_texts(plans)]
