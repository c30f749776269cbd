"""Which member of a group reads which partition: the range and the round-robin assignor of the Java client.

>>> members = {"m1": Subscription(("t",)), "m2": Subscription(("t",))}
>>> assign_range({"t": 3}, members)
{'m1': [('t', 0), ('t', 1)], 'm2': [('t', 2)]}
>>> assign_round_robin({"t": 3}, members)
{'m1': [('t', 0), ('t', 2)], 'm2': [('t', 1)]}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import cycle

from .transaction import Partition


@dataclass(frozen=True, slots=True)
class Subscription:
    """What a member wants to read, and what it read in its last `generation` (-1: none)."""

    topics: tuple[str, ...]
    group_instance_id: str | None = None
    owned: tuple[Partition, ...] = ()
    generation: int = -1


Assignment = dict[str, list[Partition]]
#: (partition count of each topic that exists, subscription of each member) to each member's partitions
Assignor = Callable[[Mapping[str, int], Mapping[str, Subscription]], Assignment]


def assign_range(partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
    """Every topic in ranges: its first readers get one more where it does not come out even (`RangeAssignor`)."""
    assignment: Assignment = {member_id: [] for member_id in members}
    for topic in sorted(partition_counts, key=java_order):
        readers = [member_id for member_id in member_order(members) if topic in members[member_id].topics]
        first = 0
        for index, member_id in enumerate(readers):
            size = (partition_counts[topic] + len(readers) - 1 - index) // len(readers)
            assignment[member_id] += [(topic, partition) for partition in range(first, first + size)]
            first += size
    return assignment


def assign_round_robin(partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
    """All partitions in turn, past members that do not read the topic (`RoundRobinAssignor`)."""
    assignment: Assignment = {member_id: [] for member_id in members}
    turns = cycle(member_order(members))
    topics = {topic for member in members.values() for topic in member.topics} & partition_counts.keys()
    for topic in sorted(topics, key=java_order):
        for partition in range(partition_counts[topic]):
            reader = next(member_id for member_id in turns if topic in members[member_id].topics)
            assignment[reader].append((topic, partition))
    return assignment


def member_order(members: Mapping[str, Subscription]) -> list[str]:
    """Static members by their instance id, then the others by their member id (`MemberInfo.compareTo`)."""

    def order(member_id: str) -> tuple[bool, bytes]:
        instance_id = members[member_id].group_instance_id
        return instance_id is None, java_order(member_id if instance_id is None else instance_id)

    return sorted(members, key=order)


def java_order(text: str) -> bytes:
    """The order of Java's strings is that of their UTF-16 units."""
    return text.encode("utf-16-be", "surrogatepass")
