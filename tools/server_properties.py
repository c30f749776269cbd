"""The configuration that starts a broker on a data directory, and warnings about things that it does not configure."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from logstore.errors import DataDirectoryError, UsageError
from logstore.layout.java_properties import escaped_value

from .paths import is_in_directory

if TYPE_CHECKING:
    from .takeover.inspection import Inspection

_PLAINTEXT = 0  # the code of the security protocol
#: the settings of a single node where Kafka's defaults are for three
_TEXT = """\
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


def server_properties(found: Inspection) -> str:
    """Return a `server.properties` for a broker of this machine on the directory."""
    assert found.properties is not None
    node_id = found.properties.node_id
    quorum = "controller.quorum.bootstrap.servers=localhost:9093"
    if found.kraft_version == 0:
        quorum = f"controller.quorum.voters={node_id}@localhost:9093"
    return _TEXT.format(node_id=node_id, path=escaped_value(found.path), quorum=quorum)


def require_nameable(path: str) -> None:
    """Raise UsageError for a data directory that `log.dirs`, a comma-separated list of trimmed names, cannot name."""
    if "," in path or path != path.strip():
        raise UsageError(
            "log.dirs of a broker cannot name this directory: it ends a name at a comma, and drops blanks around it",
            path=path,
            advice="rename the directory, or promote it by the path of a symbolic link without them",
        )


def require_startable(found: Inspection) -> None:
    """Raise DataDirectoryError for a directory in it beside which no broker starts."""
    if found.obstacles:
        raise DataDirectoryError(
            "No broker starts on this directory",
            path=found.path,
            found="; ".join(found.obstacles),
            advice="nothing was changed: move away what does not belong there",
        )


def require_new_file(path: str) -> None:
    """Raise UsageError if something exists at `path`, or if its directory does not."""
    exists = os.path.lexists(path)
    if exists or not is_in_directory(path):
        raise UsageError(
            "The configuration is written to a new file only",
            path=path,
            expected="nothing there, in a directory that exists",
            found="a file" if exists else "no directory for it",
            advice="name another one with --out",
        )


def warnings(found: Inspection) -> list[str]:
    """Return a sentence for each thing in the directory that the configuration does not provide for."""
    image = found.image
    texts = []
    if image.acls:
        texts.append(f"{len(image.acls)} ACLs are not enforced: set authorizer.class.name and super.users")
    if image.credentials:
        texts.append(f"{len(image.credentials)} SCRAM credentials are not asked for: set a SASL listener")
    if image.tokens:
        texts.append(f"{len(image.tokens)} delegation tokens are not valid: set delegation.token.secret.key")
    if found.tiered_topics:
        texts.append(
            f"older records of {', '.join(found.tiered_topics)} are remote: set remote.log.storage.system.enable and "
            "the storage manager as they were, without which no broker starts"
        )
    node_id = None if found.properties is None else found.properties.node_id
    listeners = image.brokers[node_id].listeners if node_id is not None and node_id in image.brokers else ()
    if len(listeners) > 1 or any(protocol != _PLAINTEXT for _, protocol in listeners):
        names = ", ".join(name for name, _ in listeners)
        texts.append(f"the broker had the listeners {names}: this has PLAINTEXT on localhost alone")
    if found.properties is not None and found.kraft_version == 0:
        texts.append(
            "kraft.version is 0, so that controller.quorum.voters names the voters; a broker raises it by "
            "`kafka-features.sh upgrade --feature kraft.version=1`"
        )
    return texts
