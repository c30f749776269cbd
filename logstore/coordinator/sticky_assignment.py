"""The sticky assignor: as even as subscriptions allow, and every member keeps what it can.

It promises what `CooperativeStickyAssignor` promises and is not its copy. No member that could take a partition from
another one has two fewer than that one. Of all who claim a partition, the one with the highest generation owned it.

>>> from .assignment import Subscription
>>> a = Subscription(("t",), owned=(("t", 0), ("t", 1), ("t", 2)), generation=3)
>>> assign_sticky({"t": 3}, {"a": a, "b": Subscription(("t",))})
{'a': [('t', 0), ('t', 1)], 'b': [('t', 2)]}
"""

from __future__ import annotations

from collections.abc import Mapping

from .assignment import Assignment, Subscription, java_order, member_order
from .transaction import Partition


def assign_sticky(partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> Assignment:
    """Partitions stay where they were as far as that is even; the others go to whoever has least."""
    order = member_order(members)
    readers = {
        topic: [member_id for member_id in order if topic in members[member_id].topics]
        for topic in sorted(partition_counts, key=java_order)
    }
    partitions = [
        (topic, partition) for topic in readers if readers[topic] for partition in range(partition_counts[topic])
    ]
    assignment = {member_id: list[Partition]() for member_id in order}
    owners = _owners(partition_counts, members)
    for partition in partitions:
        if partition in owners:
            assignment[owners[partition]].append(partition)
    # those that few can read first, so that the others can make up for them
    free = [partition for partition in partitions if partition not in owners]
    for partition in sorted(free, key=lambda one: len(readers[one[0]])):
        least = min(readers[partition[0]], key=lambda member_id: len(assignment[member_id]))
        assignment[least].append(partition)
    while _moved_one(assignment, readers):
        pass
    return {member_id: sorted(assignment[member_id], key=_order) for member_id in members}


def _owners(partition_counts: Mapping[str, int], members: Mapping[str, Subscription]) -> dict[Partition, str]:
    """Who owned a partition last and may still read it; of two in one generation, nobody did."""
    claims: dict[Partition, list[tuple[int, str]]] = {}
    for member_id, member in members.items():
        for topic, number in set(member.owned):
            if topic in member.topics and 0 <= number < partition_counts.get(topic, 0):
                claims.setdefault((topic, number), []).append((member.generation, member_id))
    owners = {}
    for partition, claimed in claims.items():
        last = max(generation for generation, _ in claimed)
        claimants = [member_id for generation, member_id in claimed if generation == last]
        if len(claimants) == 1:
            owners[partition] = claimants[0]
    return owners


def _moved_one(assignment: Assignment, readers: Mapping[str, list[str]]) -> bool:
    """Move a partition along a chain of members from one that has two more than the last; False when all is even.

    Along a chain, because the fullest member's partitions may be nothing for the emptiest one, but for one between.
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


def _chain(assignment: Assignment, readers: Mapping[str, list[str]], start: str) -> list[tuple[str, str, Partition]]:
    """The shortest chain of moves from `start` to a member with at least two partitions fewer."""
    ways: dict[str, list[tuple[str, str, Partition]]] = {start: []}
    queue = [start]
    for giver in queue:
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


def _order(partition: Partition) -> tuple[bytes, int]:
    return java_order(partition[0]), partition[1]
