"""`logstore import` and `logstore promote`: from a broker's hands into a store's, and back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from logstore import clock
from logstore.errors import UsageError

from .audit_options import FINDINGS, dry_run_option, form_option, print_object, told_errors, yes_option
from .losses import loss_text, losses_of_directory, require_consent
from .paths import data_directory

if TYPE_CHECKING:
    from logstore.log.salvage.salvage import Piece
    from logstore.store.opening.inspection import Inspection

#: what a single node needs beside Kafka's defaults, which are for three
_BROKER_CONFIG = """\
process.roles=broker,controller
node.id={node_id}
log.dirs={path}
listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
{quorum}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""


@click.command("import")
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@yes_option
@dry_run_option
@form_option
def import_(directory: str, yes: bool, dry_run: bool, form: str) -> None:
    """Take over the data DIRECTORY of a single-node broker that is stopped: see whether that can be, and recover it.

    Nothing is converted: the directory stays one that the broker can have again. `logstore.open` does the same by
    itself; this tells before what there is, and whether it can. Where a partition is damaged, recovery removes all
    batches behind the damage, those that can be read too: that needs --yes, and `logstore salvage` keeps them.
    """
    from logstore import open as open_store
    from logstore.store.opening.inspection import inspect

    with told_errors(FINDINGS):
        found = inspect(data_directory(directory))
        if found.properties is None:
            raise UsageError(
                "There is no meta.properties, so this is no broker's directory",
                path=directory,
                advice="`logstore promote` makes one of partitions that lie in a directory",
            )
        lost = losses_of_directory(directory)
        if not dry_run:
            require_consent({} if yes else lost)
            open_store(directory).close()
            found, lost = inspect(directory), {}
    _print_directory(found, lost, form, with_broker_config=False)


@click.command("promote")
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@yes_option
@dry_run_option
@form_option
def promote(directory: str, yes: bool, dry_run: bool, form: str) -> None:
    """Make the data DIRECTORY one that an unmodified Kafka 4.3.1 starts with, and print the configuration to start it.

    A directory that a store has closed is that already, and nothing is changed. One that was not closed in order is
    recovered: where a partition is damaged, all batches behind the damage are removed, those that can be read too,
    which needs --yes. Partitions that lie in a directory without meta.properties get a metadata log of their own.
    """
    from logstore import open as open_store
    from logstore.disk.seam import SEAM
    from logstore.store.opening.adoption import adopt
    from logstore.store.opening.inspection import inspect

    with told_errors(FINDINGS):
        found = inspect(data_directory(directory))
        lost = losses_of_directory(directory) if found.steps else {}
        if not dry_run:
            require_consent({} if yes else lost)
            if found.properties is None:
                adopt(directory, seam=SEAM, now_ms=clock.now_ms)
            if found.steps:
                open_store(directory).close()
            found, lost = inspect(directory), {}
    _print_directory(found, lost, form, with_broker_config=not dry_run)


def _as_json(found: Inspection, lost: dict[str, list[Piece]]) -> dict[str, Any]:
    """The directory as JSON's objects; of a dry run, what would be removed is one of the steps."""
    properties = found.properties
    return {
        "path": found.path,
        "clusterId": None if properties is None else properties.cluster_id,
        "nodeId": None if properties is None else properties.node_id,
        "directoryId": None if properties is None else properties.directory_id,
        "features": found.features,
        "topics": found.topics,
        "nextProducerId": found.next_producer_id,
        "wasClean": found.was_clean,
        "steps": [*found.steps, *(f"remove {loss_text(pieces)}, in {path}" for path, pieces in lost.items())],
        "strays": list(found.stray_directories),
    }


def _broker_config(found: Inspection) -> str:
    """A `server.properties` for a broker on this machine over the directory."""
    assert found.properties is not None
    node_id = found.properties.node_id
    quorum = "controller.quorum.bootstrap.servers=localhost:9093"
    if found.kraft_version == 0:
        quorum = f"controller.quorum.voters={node_id}@localhost:9093"
    return _BROKER_CONFIG.format(node_id=node_id, path=found.path, quorum=quorum)


def _print_directory(
    found: Inspection, lost: dict[str, list[Piece]], form: str, *, with_broker_config: bool
) -> NoReturn:
    """Print what it is and what has to be done, and exit: with FINDINGS if recovery would remove what can be read."""
    values = _as_json(found, lost)
    if form == "table":
        print_object(values, form)
        if with_broker_config:
            click.echo(f"\nA broker starts here with\n\n{_broker_config(found)}", nl=False)
    else:
        print_object(values | ({"brokerConfig": _broker_config(found)} if with_broker_config else {}), form)
    sys.exit(FINDINGS if lost else 0)
