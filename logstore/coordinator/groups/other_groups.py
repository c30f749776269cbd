"""Groups of the protocols that this coordinator does not speak: who may commit offsets for them.

Consumer groups of KIP-848 and streams groups let a member commit, and nobody in particular while they have no members
(`ConsumerGroup.validateOffsetCommit`, `StreamsGroup.validateOffsetCommit`). Share groups have no offsets to commit
(`ShareGroup.validateOffsetCommit`). Their members speak to a broker: here a member is one of the log, for as long as a
broker that has loaded the log waits to hear from it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import GroupIdNotFoundError, UnknownMemberIdError
from ...topics.frames import CoordinatorKey
from .membership import NO_GENERATION, ConsumerGroupMetadata

SESSION_TIMEOUT_MS = 45_000  # `group.consumer.session.timeout.ms` and `group.streams.session.timeout.ms`
_SHARE = "ShareGroup"
_PROTOCOLS = ("ConsumerGroup", _SHARE, "StreamsGroup")
#: names of key messages
_GROUP_KEYS = {f"{protocol}MetadataKey": protocol for protocol in _PROTOCOLS}
_MEMBER_KEYS = frozenset(f"{protocol}MemberMetadataKey" for protocol in _PROTOCOLS)


@dataclass(slots=True)
class OtherGroups:
    """The groups by protocol, and the members of each with the time of their replay in ticks. Not thread-safe."""

    protocols: dict[str, str] = field(default_factory=dict)
    members: dict[str, dict[str, int]] = field(default_factory=dict)

    def replay(self, key: CoordinatorKey, *, is_tombstone: bool, ticks_ms: int) -> None:
        """Take a record of a group or a member; any other changes nothing."""
        name, fields = key.message.name, key.fields
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

    def check_commit(self, member: ConsumerGroupMetadata, *, is_transactional: bool, ticks_ms: int) -> None:
        """Refuse a commit for one of these groups.

        Raises:
            GroupIdNotFoundError: it is a share group.
            UnknownMemberIdError: the committer says that it is a member; or says nothing, and the group has members.
        """
        if self.protocols[member.group_id] == _SHARE:
            raise GroupIdNotFoundError(f"Group {member.group_id} is not a consumer group.")
        is_nobody = member == ConsumerGroupMetadata(member.group_id)
        heard_ms = max(self.members.get(member.group_id, {}).values(), default=None)
        has_members = heard_ms is not None and ticks_ms - heard_ms < SESSION_TIMEOUT_MS
        if not (is_nobody and is_transactional) and (has_members or member.generation_id > NO_GENERATION):
            raise UnknownMemberIdError
