"""Assignors of the Java client, which divide partitions among the members of a group: range, round-robin and sticky.

>>> members = {"m1": Subscription(("t",)), "m2": Subscription(("t",))}
>>> [list(map(str, partitions)) for partitions in assign_range({"t": 3}, members).values()]
[['t-0', 't-1'], ['t-2']]
>>> [list(map(str, partitions)) for partitions in assign_round_robin({"t": 3}, members).values()]
[['t-0', 't-2'], ['t-1']]
>>> owner = Subscription(("t",), owned=tuple(TopicPartition("t", number) for number in range(3)), generation=3)
>>> assignment = assign_sticky({"t": 3}, {"m1": owner, "m2": Subscription(("t",))})
>>> [list(map(str, partitions)) for partitions in assignment.values()]
[['t-0', 't-1'], ['t-2']]
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from ...coordinator.groups.membership import Assignment, Assignor, Subscription
from ...model import TopicPartition


def assign_range(partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
    """Assign each topic in ranges; if they cannot be equal, the first readers get one more (`RangeAssignor`)."""
    assignment: Assignment = {member_id: [] for member_id in members}
    for topic in sorted(partition_counts, key=java_order):
        readers = [member_id for member_id in member_order(members) if topic in members[member_id].topics]
        first = 0
        for index, member_id in enumerate(readers):
            size = (partition_counts[topic] + len(readers) - 1 - index) // len(readers)
            assignment[member_id] += [TopicPartition(topic, number) for number in range(first, first + size)]
            first += size
    return assignment


def assign_round_robin(partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
    """Assign all partitions in turn, skipping members that do not read the topic (`RoundRobinAssignor`)."""
    assignment: Assignment = {member_id: [] for member_id in members}
    turns = cycle(member_order(members))
    topics = {topic for member in members.values() for topic in member.topics} & partition_counts.keys()
    for topic in sorted(topics, key=java_order):
        for partition in range(partition_counts[topic]):
            reader = next(member_id for member_id in turns if topic in members[member_id].topics)
            assignment[reader].append(TopicPartition(topic, partition))
    return assignment


def assign_sticky(partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
    """Assign as evenly as subscriptions allow; each member keeps as many of its partitions as it can.

    Gives the guarantees of `CooperativeStickyAssignor` and is not a copy of it: no member has two partitions fewer than
    another one from which it could take one. Of several members that claim a partition, the one with the highest
    generation owned it.
    """
    order = member_order(members)
    readers = {
        topic: [member_id for member_id in order if topic in members[member_id].topics]
        for topic in sorted(partition_counts, key=java_order)
    }
    partitions = [
        TopicPartition(topic, number)
        for topic in readers
        if readers[topic]
        for number in range(partition_counts[topic])
    ]
    assignment = {member_id: list[TopicPartition]() for member_id in order}
    owners = _owners(partition_counts, members)
    for partition in partitions:
        if partition in owners:
            assignment[owners[partition]].append(partition)
    # partitions with few readers go first; the others can then balance what that made uneven
    free = [partition for partition in partitions if partition not in owners]
    for partition in sorted(free, key=lambda one: len(readers[one[0]])):
        least = min(readers[partition[0]], key=lambda member_id: len(assignment[member_id]))
        assignment[least].append(partition)
    while _moved_one(assignment, readers):
        # each move lessens the sum of squares of the counts, so that the loop ends
        pass
    return {member_id: sorted(assignment[member_id], key=_order) for member_id in members}


def assign_cooperative(partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
    """Assign as `assign_sticky`, but give a partition that another member still reads to nobody this time.

    Its reader sees that it lost the partition, gives it back and joins again; that rebalance assigns it (KIP-429,
    `CooperativeStickyAssignor.adjustAssignment`).
    """
    holders = {partition: member_id for member_id, member in members.items() for partition in member.held}
    return {
        member_id: [partition for partition in partitions if holders.get(partition, member_id) == member_id]
        for member_id, partitions in assign_sticky(partition_counts, members).items()
    }


def _owners(partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[TopicPartition, str]:
    """Return the last owner of each partition, if it still reads the topic; two claims of one generation cancel out."""
    claims: dict[TopicPartition, list[tuple[int, str]]] = {}
    for member_id, member in members.items():
        for topic, number in set(member.owned):
            if topic in member.topics and 0 <= number < partition_counts.get(topic, 0):
                claims.setdefault(TopicPartition(topic, number), []).append((member.generation, member_id))
    owners = {}
    for partition, claimed in claims.items():
        last = max(generation for generation, _ in claimed)
        claimants = [member_id for generation, member_id in claimed if generation == last]
        if len(claimants) == 1:
            owners[partition] = claimants[0]
    return owners


def _moved_one(assignment: Assignment, readers: Mapping[str, list[str]]) -> bool:
    """Move partitions along a chain of members whose first has two more than its last; return False if there is none.

    A chain, because the emptiest member may read no topic of the fullest one, but share one with a member between.
    """
    least = min(map(len, assignment.values()), default=0)
    for start in sorted(assignment, key=lambda member_id: -len(assignment[member_id])):
        if len(assignment[start]) < least + 2:
            return False
        chain = _chain(assignment, readers, start)
        for giver, taker, partition in chain:
            assignment[giver].remove(partition)
            assignment[taker].append(partition)
        if chain:
            return True
    return False


def _chain(
    assignment: Assignment, readers: Mapping[str, list[str]], start: str
) -> list[tuple[str, str, TopicPartition]]:
    """Search breadth-first for the shortest chain of moves from `start` to a member with two partitions fewer."""
    ways: dict[str, list[tuple[str, str, TopicPartition]]] = {start: []}
    queue = [start]
    for giver in queue:
        # any partition of a topic does: readers read all of it
        last_of_topic = {partition[0]: partition for partition in assignment[giver]}
        for topic, partition in last_of_topic.items():
            for taker in sorted(readers[topic], key=lambda member_id: len(assignment[member_id])):
                if taker in ways:
                    continue
                ways[taker] = [*ways[giver], (giver, taker, partition)]
                queue.append(taker)
                if len(assignment[taker]) <= len(assignment[start]) - 2:
                    return ways[taker]
    return []


def _order(partition: TopicPartition) -> tuple[bytes, int]:
    return java_order(partition[0]), partition[1]


def member_order(members: Mapping[str, Subscription]) -> list[str]:
    """Sort static members by instance id, then the others by member id (`MemberInfo.compareTo`)."""

    def order(member_id: str) -> tuple[bool, bytes]:
        instance_id = members[member_id].group_instance_id
        return instance_id is None, java_order(member_id if instance_id is None else instance_id)

    return sorted(members, key=order)


def java_order(text: str) -> bytes:
    """Return a sort key with the order of Java's strings: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


#: by the assignors' names in the Java client
ASSIGNORS: dict[str, Assignor] = {
    "range": assign_range,
    "roundrobin": assign_round_robin,
    "sticky": assign_sticky,
    "cooperative-sticky": assign_cooperative,
}
