"""`quorum-state`, in `__cluster_metadata-0`: election state of a KRaft voter (`FileQuorumStateStore`, KIP-595).

JSON on one line without a newline. `data_version` 0, of a static quorum:

    {"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,
     "currentVoters":[{"voterId":1}],"data_version":0}

and 1, of a quorum whose voters are in the log: no clusterId, appliedOffset and currentVoters, but `votedDirectoryId`, a
UUID's 22 characters, all zeros for none. Ids are -1 for none. Other fields and further lines are ignored.

>>> parse_quorum_state(bytes.fromhex(
...     "7b226c65616465724964223a312c226c656164657245706f6368223a322c22766f7465644964223a2d312c"
...     "22766f7465644469726563746f72794964223a2241414141414141414141414141414141414141414141222c"
...     "22646174615f76657273696f6e223a317d"), path="/d/quorum-state")
QuorumState(data_version=1, leader_id=1, leader_epoch=2, voted_id=-1, voted_directory_id=None, voter_ids=())
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..errors import CheckpointFormatError
from .checkpoint import text_lines
from .kafka_uuid import ZERO_UUID, format_uuid, parse_uuid

FILE_NAME = "quorum-state"
LOWEST_VERSION = 0
HIGHEST_VERSION = 1
_FIELDS = {
    0: ("clusterId", "leaderId", "leaderEpoch", "votedId", "appliedOffset", "currentVoters"),
    1: ("leaderId", "leaderEpoch", "votedId", "votedDirectoryId"),
}


class QuorumState(NamedTuple):
    """Content of the file; `voted_directory_id` is a UUID's 22 characters or None; version 1 has no `voter_ids`."""

    data_version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: str | None
    voter_ids: tuple[int, ...]


def parse_quorum_state(data: bytes, *, path: str) -> QuorumState:
    """Parse the whole file; raise CheckpointFormatError for no JSON object, another version, or a wrong field."""
    node = _json_object(data, path)
    if "data_version" not in node:
        raise _read_error(json.dumps(node), path)
    data_version = _int(node["data_version"])
    if data_version not in _FIELDS:
        raise CheckpointFormatError(
            f"data_version ({data_version}) is not within the min ({LOWEST_VERSION}) and max ({HIGHEST_VERSION}) "
            "supported version",
            path=path,
            java_class="java.lang.IllegalStateException",
        )
    for field in _FIELDS[data_version]:
        if field not in node:
            raise _field_error(f": unable to locate field '{field}', which is mandatory in version {data_version}")
    return QuorumState(
        data_version=data_version,
        leader_id=_int(node["leaderId"]),
        leader_epoch=_int(node["leaderEpoch"]),
        voted_id=_int(node["votedId"]),
        voted_directory_id=_directory_id(node.get("votedDirectoryId")),
        voter_ids=_voter_ids(node.get("currentVoters")),
    )


def _json_object(data: bytes, path: str) -> dict[str, Any]:
    try:
        lines = text_lines(data, path=path)
        node, _ = json.JSONDecoder().raw_decode(lines[0].lstrip() if lines else "null")
    except (ValueError, RecursionError) as error:
        raise _read_error(str(error), path) from error
    if not isinstance(node, dict):
        raise _read_error(json.dumps(node), path)
    return node


def _int(value: object) -> int:
    # a Python bool is an int, a JSON boolean is not
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 31) <= value < 1 << 31:
        raise _field_error(f": expected an integer, but got {json.dumps(value)}")
    return value


def _directory_id(value: object) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise _field_error(f" expected a JSON string type, but got {json.dumps(value)}")
    directory_id = parse_uuid(value)
    return None if directory_id == ZERO_UUID else format_uuid(directory_id)


def _voter_ids(value: object) -> tuple[int, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise _field_error(f" expected a JSON array, but got {json.dumps(value)}")
    for voter in value:
        if not isinstance(voter, dict) or "voterId" not in voter:
            raise CheckpointFormatError(
                "Voter: unable to locate field 'voterId', which is mandatory in version 0",
                java_class="java.lang.RuntimeException",
            )
    return tuple(_int(voter["voterId"]) for voter in value)


def _field_error(text: str) -> CheckpointFormatError:
    return CheckpointFormatError(f"QuorumStateData{text}", java_class="java.lang.RuntimeException")


def _read_error(cause: str, path: str) -> CheckpointFormatError:
    return CheckpointFormatError(
        f"Error while reading the Quorum status from the file {path}",
        expected="a JSON object with data_version",
        found=cause,
        java_class="java.io.UncheckedIOException",
    )
