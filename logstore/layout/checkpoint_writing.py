"""Checkpoints and other small files as bytes, as Kafka writes them; `layout` has the parsers.

>>> leader_epoch_checkpoint_bytes([(0, 0), (2, 18)])
b'0\\n2\\n0 0\\n2 18\\n'
>>> offset_checkpoint_bytes({("orders", 0): 42})
b'0\\n1\\norders 0 42\\n'
>>> clean_shutdown_bytes(17)
b'{"version":0,"brokerEpoch":17}'
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from ..model import TopicPartition
from . import clean_shutdown, leader_epoch_checkpoint, meta_properties, offset_checkpoint, partition_metadata
from .java_properties import escaped_value
from .kafka_uuid import ZERO_UUID, format_uuid
from .meta_properties import MetaProperties
from .quorum_state import QuorumState

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def leader_epoch_checkpoint_bytes(epochs: Sequence[tuple[int, int]]) -> bytes:
    """Return a `leader-epoch-checkpoint` with these (epoch, start offset) entries."""
    lines = [str(leader_epoch_checkpoint.VERSION), str(len(epochs))]
    lines += [f"{epoch} {start_offset}" for epoch, start_offset in epochs]
    return "".join(f"{line}\n" for line in lines).encode()


def offset_checkpoint_bytes(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Return an offset checkpoint, from (topic, partition) to offset."""
    lines = [str(offset_checkpoint.VERSION), str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    return "".join(f"{line}\n" for line in lines).encode()


def clean_shutdown_bytes(broker_epoch: int) -> bytes:
    """Return a `.kafka_cleanshutdown`."""
    content = {"version": clean_shutdown.CURRENT_VERSION, "brokerEpoch": broker_epoch}
    return json.dumps(content, separators=(",", ":")).encode()


def partition_metadata_bytes(topic_id: str) -> bytes:
    """Return a `partition.metadata` of the topic with this id."""
    return f"version: {partition_metadata.CURRENT_VERSION}\ntopic_id: {topic_id}".encode()


def meta_properties_bytes(properties: MetaProperties, now_ms: int) -> bytes:
    """Return a `meta.properties` of version 1, as `Properties.store` writes it at that time.

    >>> meta_properties_bytes(MetaProperties(1, "ab", 1, None), 0).splitlines()
    [b'#', b'#Thu Jan 01 00:00:00 UTC 1970', b'cluster.id=ab', b'version=1', b'node.id=1']
    """
    time = datetime.fromtimestamp(now_ms // 1000, UTC)
    date = f"{_DAYS[time.weekday()]} {_MONTHS[time.month - 1]} {time:%d %H:%M:%S} UTC {time.year}"
    values = {
        meta_properties.CLUSTER_ID_KEY: properties.cluster_id,
        meta_properties.VERSION_KEY: properties.version,
        meta_properties.DIRECTORY_ID_KEY: properties.directory_id,
        meta_properties.NODE_ID_KEY: properties.node_id,
    }
    lines = ["#", f"#{date}"]
    lines += [f"{key}={escaped_value(str(value))}" for key, value in values.items() if value is not None]
    return "".join(f"{line}\n" for line in lines).encode()


def quorum_state_bytes(state: QuorumState) -> bytes:
    """Return a `quorum-state` of the state's `data_version`."""
    content: dict[str, object] = {
        "leaderId": state.leader_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": state.voted_id,
    }
    if state.data_version == 0:
        voters = [{"voterId": voter_id} for voter_id in state.voter_ids]
        content = {"clusterId": "", **content, "appliedOffset": 0, "currentVoters": voters}
    else:
        content["votedDirectoryId"] = state.voted_directory_id or format_uuid(ZERO_UUID)
    return json.dumps({**content, "data_version": state.data_version}, separators=(",", ":")).encode()
