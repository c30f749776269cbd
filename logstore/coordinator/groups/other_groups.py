"""Groups of the protocols that this coordinator does not speak: who may commit offsets for them.

Consumer groups of KIP-848 and streams groups let a member commit, and nobody in particular while they have no members
(`ConsumerGroup.validateOffsetCommit`, `StreamsGroup.validateOffsetCommit`). Share groups have no offsets to commit
(`ShareGroup.validateOffsetCommit`). Their members speak to a broker: here a member is one of the log, for as long as a
broker that has loaded the log waits to hear from it.

A consumer of this process that joins such a group, other than a share group, makes it a classic one
(`GroupMetadataManager.maybeDeleteEmptyConsumerGroup`): members of a broker that is not running are no hindrance.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import GroupIdNotFoundError, UnknownMemberIdError
from ...topics.frames import CoordinatorKey, read_type, write_key
from .membership import NO_GENERATION, ConsumerGroupMetadata

SESSION_TIMEOUT_MS = 45_000  # `group.consumer.session.timeout.ms` and `group.streams.session.timeout.ms`
_SHARE = "ShareGroup"
_TABLE = "consumer_offsets"
_PROTOCOLS = ("ConsumerGroup", _SHARE, "StreamsGroup")
#: names of key messages
_GROUP_KEYS = {f"{protocol}MetadataKey": protocol for protocol in _PROTOCOLS}
_MEMBER_KEYS = frozenset(f"{protocol}MemberMetadataKey" for protocol in _PROTOCOLS)
#: by protocol the types of tombstones without which a broker refuses that of the group: for each member, for the group
_TOMBSTONE_TYPES = {"ConsumerGroup": ((8, 7, 5), 6), "StreamsGroup": ((22, 21, 19), 20)}


@dataclass(slots=True)
class OtherGroups:
    """The groups by id. Not thread-safe.

    Attributes:
        protocols: of the groups.
        members: the members of each group with the time of their replay in ticks.
        keys: the keys of all records of each group, with the member that the record is about.
    """

    protocols: dict[str, str] = field(default_factory=dict)
    members: dict[str, dict[str, int]] = field(default_factory=dict)
    keys: dict[str, dict[bytes, str | None]] = field(default_factory=dict)

    def replay(self, key: CoordinatorKey, key_bytes: bytes, *, is_tombstone: bool, ticks_ms: int) -> None:
        """Take a record of a group."""
        name, fields = key.message.name, key.fields
        keys = self.keys.setdefault(fields["groupId"], {})
        keys.pop(key_bytes, None)
        if not is_tombstone:
            keys[key_bytes] = fields.get("memberId")
        if name in _GROUP_KEYS:
            if is_tombstone:
                self.protocols.pop(fields["groupId"], None)
            else:
                self.protocols[fields["groupId"]] = _GROUP_KEYS[name]
        elif name in _MEMBER_KEYS:
            members = self.members.setdefault(fields["groupId"], {})
            if is_tombstone:
                members.pop(fields["memberId"], None)
            else:
                members[fields["memberId"]] = ticks_ms

    def has_members(self, group_id: str, *, ticks_ms: int) -> bool:
        """Return whether a broker would still wait to hear from a member."""
        heard_ms = max(self.members.get(group_id, {}).values(), default=None)
        return heard_ms is not None and ticks_ms - heard_ms < SESSION_TIMEOUT_MS

    def tombstones(self, group_id: str) -> list[bytes]:
        """Return the keys of tombstones that end a group, in the order that a broker accepts; none for another group.

        Raises GroupIdNotFoundError for a share group, which has a state elsewhere.
        """
        protocol = self.protocols.get(group_id)
        if protocol is None:
            return []
        if protocol == _SHARE:
            raise _not_classic(group_id)
        of_member, of_group = _TOMBSTONE_TYPES[protocol]
        keys = {write_key(_TABLE, of_group, {"groupId": group_id}), *self.keys[group_id]}
        for member_id in set(self.keys[group_id].values()) - {None}:
            keys |= {write_key(_TABLE, of_one, {"groupId": group_id, "memberId": member_id}) for of_one in of_member}
        return sorted(keys, key=read_type, reverse=True)  # assignments, members, the group

    def require_classic(self, group_id: str) -> None:
        """Raise GroupIdNotFoundError for one of these groups."""
        if group_id in self.protocols:
            raise _not_classic(group_id)

    def check_commit(self, member: ConsumerGroupMetadata, *, is_transactional: bool, ticks_ms: int) -> None:
        """Refuse a commit for one of these groups.

        Raises GroupIdNotFoundError for a share group, UnknownMemberIdError if the committer says that it is a member,
        or says nothing and the group has members.
        """
        if self.protocols[member.group_id] == _SHARE:
            raise GroupIdNotFoundError(f"Group {member.group_id} is not a consumer group.")
        is_nobody = member == ConsumerGroupMetadata(member.group_id)
        has_members = self.has_members(member.group_id, ticks_ms=ticks_ms)
        if not (is_nobody and is_transactional) and (has_members or member.generation_id > NO_GENERATION):
            raise UnknownMemberIdError


def _not_classic(group_id: str) -> GroupIdNotFoundError:
    return GroupIdNotFoundError(f"Group {group_id} is not a classic group.")
