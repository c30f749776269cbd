"""The groups of a partition of `__consumer_offsets`: replayed from its records, changed by requests.

The owner of a table writes: it logs records, then replays them here with the offsets that they got in the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...errors import GroupIdNotFoundError, IllegalGenerationError, UnknownMemberIdError
from ...topics.consumer_offsets import CommittedOffset, GroupMetadata, OffsetKey, decode_key, decode_value
from ...topics.frames import CoordinatorKey
from .membership import ConsumerGroupMetadata, GroupMembership
from .offsets import GroupOffsets
from .other_groups import OtherGroups
from .records import group_from_record


@dataclass(slots=True)
class GroupTable:
    """The groups by id. Not thread-safe: one lock guards a table and its log.

    Attributes:
        offsets: committed and undecided ones.
        groups: those with members or a record; a group that only commits has neither.
        other_groups: those of a protocol that this coordinator does not speak.
    """

    offsets: GroupOffsets = field(default_factory=GroupOffsets)
    groups: dict[str, GroupMembership] = field(default_factory=dict)
    other_groups: OtherGroups = field(default_factory=OtherGroups)

    def group(self, group_id: str) -> GroupMembership:
        """Return a group; an unknown one is empty."""
        return self.groups.get(group_id) or GroupMembership(group_id)

    def group_ids(self) -> set[str]:
        """Return the ids of all groups that have offsets, members or a record."""
        return {*self.offsets.groups(), *self.groups, *self.other_groups.protocols}

    def require_known(self, group_id: str) -> None:
        """Raise GroupIdNotFoundError for a group without offsets, members and record."""
        if group_id not in self.groups.keys() | self.other_groups.protocols and not self.offsets.has_any(group_id):
            raise GroupIdNotFoundError(f"Group {group_id} not found.")

    def check_commit(self, member: ConsumerGroupMetadata, *, is_transactional: bool, ticks_ms: int) -> None:
        """Refuse a commit from outside the group's generation (`OffsetMetadataManager.validateOffsetCommit`).

        A member that commits is alive; not in a transaction, as its producer may outlive it. Raises as
        `GroupMembership.check_commit` and `OtherGroups.check_commit`, and IllegalGenerationError for an unknown group.
        """
        group = self.groups.get(member.group_id)
        if member.group_id in self.other_groups.protocols:
            self.other_groups.check_commit(member, is_transactional=is_transactional, ticks_ms=ticks_ms)
        elif group is not None:
            group.check_commit(member, is_transactional=is_transactional)
            if not is_transactional:
                group.keep_alive(member.member_id, ticks_ms=ticks_ms)
        elif member.generation_id >= 0:
            raise UnknownMemberIdError if self.offsets.has_any(member.group_id) else IllegalGenerationError

    def expired(self, group_id: str, *, retention_ms: int, now_ms: int) -> tuple[list[OffsetKey], bool]:
        """Return keys of tombstones for a group's expired offsets, and whether the group has nothing left then."""
        group = self.group(group_id)
        expired = self.offsets.expired(
            group_id,
            base_timestamp_ms=group.expiry_base(),
            is_subscribed=group.is_subscribed,
            retention_ms=retention_ms,
            now_ms=now_ms,
        )
        left = set(self.offsets.partitions(group_id)) - {(key.topic, key.partition) for key in expired}
        return expired, not left and not group.members and not self.offsets.has_undecided(group_id)

    def replay(self, key_bytes: bytes, value_bytes: bytes | None, offset: int, producer_id: int, ticks_ms: int) -> None:
        """Apply the next record of the log; raises SchemaError."""
        key = decode_key(key_bytes)
        value = decode_value(key, value_bytes)
        if isinstance(key, OffsetKey):
            assert value is None or isinstance(value, CommittedOffset)
            self.offsets.replay(key, value, record_offset=offset, producer_id=producer_id)
        elif isinstance(key, CoordinatorKey):
            self.other_groups.replay(key, key_bytes, is_tombstone=value is None, ticks_ms=ticks_ms)
        elif isinstance(value, GroupMetadata):
            self.groups[key.group_id] = group_from_record(key, value, ticks_ms=ticks_ms)
        else:
            self.groups.pop(key.group_id, None)
