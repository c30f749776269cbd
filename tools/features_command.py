"""`logstore features`: show the levels of features of a data directory, and raise them, as `kafka-features` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from logstore import clock
from logstore.config.kafka_version import (
    METADATA_VERSION,
    NEWEST,
    VERSIONS,
    default_levels,
    level_name,
    level_of_release,
)
from logstore.disk.lock import require_not_held
from logstore.disk.names import absolute_path
from logstore.errors import RecoveryLossError, UsageError

from .paths import data_directory, require_accessible
from .rows import JsonField, Row, RowType, TypedRows, VerbAnswer
from .verbs import FINDINGS, Verb, dry_run_option, path_argument

if TYPE_CHECKING:
    from .takeover.inspection import Inspection

FEATURE = RowType(
    "feature",
    "A feature of the cluster and its level.",
    (
        JsonField("feature", "string", "its name", "feature"),
        JsonField("level", "integer", "the finalized level; 0 is off", "level"),
        JsonField("release", "string?", "the name of the level of metadata.version", "release"),
        JsonField("supportedMinVersion", "integer", "the lowest level that is known here", "lowest"),
        JsonField("supportedMaxVersion", "integer", "the highest level that is known here", "highest"),
    ),
)
RAISED = RowType(
    "raised",
    "A feature whose level was to be raised.",
    (
        JsonField("feature", "string", "its name", "feature"),
        JsonField("previousLevel", "integer", "the level before", "from"),
        JsonField("level", "integer", "the level that was asked for", "to"),
        JsonField("done", "boolean", "whether it was raised; false in a dry run, and where it had the level", "done"),
    ),
)
_DOWN = ("downgrade", "disable")


@click.command(
    "features",
    cls=Verb,
    prints=[FEATURE, RAISED],
    error_code=FINDINGS,
    example="logstore features /var/lib/kafka/data upgrade --release-version 4.4 --dry-run",
)
@path_argument("directory", data_directory)
@click.argument("action", type=click.Choice(["describe", "upgrade", *_DOWN]), default="describe")
@click.option("--release-version", "release", metavar="R", help="Raise all to those of a release, 4.4 or 4.4-IV2.")
@click.option("--metadata", metavar="R", help="Raise metadata.version alone, to that of a release.")
@click.option("--feature", "features", metavar="F=N", multiple=True, help="Raise a feature to a level; more than once.")
@dry_run_option
def command(
    directory: str,
    action: str,
    release: str | None,
    metadata: str | None,
    features: Sequence[str],
    dry_run: bool,
) -> VerbAnswer:
    """Show the levels of features, or raise them with `upgrade`. There is no way down.

    A level says what brokers may write here. A Kafka that does not know the level does not start on the directory any
    more: raise it when you will not go back to that Kafka. `downgrade` and `disable` are refused. To upgrade, no broker
    and no store may have the directory open.
    """
    wanted = _wanted(release, metadata, features)
    if action in _DOWN:
        raise UsageError(
            f"{action} is refused: there is no way down from a level of a feature",
            advice="go on with a Kafka that knows it, or restore a copy from before it was raised",
        )
    if action == "describe":
        if wanted or dry_run:
            raise UsageError("describe raises no level", advice="say upgrade after the directory")
        return VerbAnswer([TypedRows(FEATURE, _described(_present(directory)))])
    if not wanted:
        raise UsageError("You must specify at least one feature to upgrade", advice="--release-version 4.4, for one")
    return _upgrade(directory, wanted, dry_run=dry_run)


def _upgrade(directory: str, wanted: Mapping[str, int], *, dry_run: bool) -> VerbAnswer:
    from logstore import open as open_store
    from logstore.store.metadata.features import raised_levels
    from logstore.store.opening.formatting import require_formattable

    from .takeover.inspection import inspect

    require_accessible(directory, writes=not dry_run)
    require_not_held(directory)
    found, present = inspect(directory), _present(directory)
    require_formattable(absolute_path(directory))
    node_id = None if found.properties is None else found.properties.node_id
    raised = raised_levels(present, wanted, 1 if node_id is None else node_id)
    if raised:
        try:
            if dry_run:
                _require_no_loss(found)
            else:
                with open_store(directory) as store:
                    raised = store.update_features(wanted)
        except RecoveryLossError as error:  # which no option of this verb accepts
            error.advice = (
                "copy them with `logstore salvage`; then `logstore import --yes` removes them, as a broker does"
            )
            raise
    rows = [
        {
            "feature": name,
            "previousLevel": present.get(name, 0),
            "level": level,
            "done": name in raised and not dry_run,
        }
        for name, level in wanted.items()
    ]
    gone = [version for version in VERSIONS if version.knows_levels(present)]
    gone = [version for version in gone if not version.knows_levels({**present, **raised})]
    names = "older versions of Kafka" if not gone else f"Kafka {gone[-1]} and older"
    would = "would not start" if dry_run else "do not start"
    note = f"there is no way down: {names} {would} on this directory any more"
    return VerbAnswer([TypedRows(RAISED, rows)], notes=[note] if raised else [])


def _require_no_loss(found: Inspection) -> None:
    """Raise RecoveryLossError, as an opening would, if it would remove readable batches."""
    from logstore.log.load.removals import require_accepted

    from .takeover.planning import plan_opening

    require_accepted({plan.path: plan.removals for plan in plan_opening(found, clock.now_ms()).values()})


def _wanted(release: str | None, metadata: str | None, features: Sequence[str]) -> dict[str, int]:
    """Return the levels that the options ask for (`FeatureCommand.handleUpgradeOrDowngrade`)."""
    if release is not None:
        if metadata is not None or features:
            raise UsageError("Can not specify `release-version` with other feature flags.")
        return default_levels(level_of_release(release))
    wanted = {} if metadata is None else {METADATA_VERSION: level_of_release(metadata)}
    for text in features:
        name, equals, level = text.partition("=")
        if not equals:
            raise UsageError(f"Can't parse feature=level string {text}: equals sign not found.")
        if not level.isdecimal() or int(level) > 0x7FFF:
            raise UsageError(f"Can't parse feature=level string {text}: unable to parse {level} as a short.")
        if name in wanted:
            raise UsageError(f"Feature {name} was specified more than once.")
        wanted[name] = int(level)
    return wanted


def _present(directory: str) -> dict[str, int]:
    from logstore.store.opening.registration import present_levels

    return present_levels(directory)


def _described(levels: Mapping[str, int]) -> list[Row]:
    return [
        {
            "feature": name,
            "level": levels.get(name, 0),
            "release": level_name(levels[name]) if name == METADATA_VERSION and name in levels else None,
            "supportedMinVersion": lowest,
            "supportedMaxVersion": highest,
        }
        for name in sorted(levels.keys() | NEWEST.features.keys())
        for lowest, highest in [NEWEST.features.get(name, (0, 0))]
    ]
