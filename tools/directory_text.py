"""What `logstore promote` and `logstore import` print of a data directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
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


def as_json(found: Inspection) -> dict[str, Any]:
    """The directory as JSON's objects."""
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
        "steps": list(found.steps),
        "strays": list(found.stray_directories),
    }


def broker_config(found: Inspection) -> str:
    """A `server.properties` for a broker on this machine over the directory."""
    assert found.properties is not None
    node_id = found.properties.node_id
    quorum = "controller.quorum.bootstrap.servers=localhost:9093"
    if found.kraft_version == 0:
        quorum = f"controller.quorum.voters={node_id}@localhost:9093"
    return _BROKER_CONFIG.format(node_id=node_id, path=found.path, quorum=quorum)


def print_directory(found: Inspection, form: str, *, with_broker_config: bool) -> None:
    """What it is and what has to be done, as text or JSON."""
    if form == "json":
        config = {"brokerConfig": broker_config(found)} if with_broker_config else {}
        click.echo(json.dumps({**as_json(found), **config}))
        return
    for name, value in as_json(found).items():
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {one}" for key, one in value.items())
        if isinstance(value, list):
            click.echo(f"{name}: {len(value)}")
            for one in value:
                click.echo(f"  {one}")
        else:
            click.echo(f"{name}: {value}")
    if with_broker_config:
        click.echo(f"\nA broker starts here with\n\n{broker_config(found)}", nl=False)
