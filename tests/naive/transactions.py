"""A slow, obvious partition that only knows transactions, and what must hold for all of them together.

Imports nothing of logstore. A transaction is named by a tag; data waits in `undecided` for a marker of its producer id.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

Tag = tuple[int, int]


class RefusedError(Exception):
    """The partition does not take the batch or marker."""


@dataclass(frozen=True)
class Partition:
    """Per producer id its epoch and undecided tags, sorted; and for every decided tag whether it was committed."""

    producers: tuple[tuple[int, int, tuple[Tag, ...]], ...] = ()
    decided: frozenset[tuple[Tag, bool]] = frozenset()

    def append(self, producer_id: int, epoch: int, tag: Tag) -> Partition:
        """One batch of the transaction `tag`."""
        known_epoch, undecided = self._producer(producer_id)
        if epoch < known_epoch:
            raise RefusedError(f"{epoch} is older than {known_epoch}")
        return self._with(producer_id, epoch, tuple(sorted({*undecided, tag})))

    def mark(self, producer_id: int, epoch: int, is_commit: bool, version: int) -> Partition:
        """A marker decides what is undecided of its producer."""
        known_epoch, undecided = self._producer(producer_id)
        is_repeated = epoch == known_epoch and (not undecided or epoch == 32767)
        if epoch < known_epoch or (version >= 2 and epoch == known_epoch and not is_repeated):
            raise RefusedError(f"marker {epoch} after {known_epoch}")
        decided = self.decided | {(tag, is_commit) for tag in undecided}
        return replace(self._with(producer_id, epoch, ()), decided=decided)

    def undecided(self) -> set[Tag]:
        return {tag for _, _, tags in self.producers for tag in tags}

    def tags(self) -> set[Tag]:
        return self.undecided() | {tag for tag, _ in self.decided}

    def _producer(self, producer_id: int) -> tuple[int, tuple[Tag, ...]]:
        return next(((epoch, tags) for one, epoch, tags in self.producers if one == producer_id), (-1, ()))

    def _with(self, producer_id: int, epoch: int, tags: tuple[Tag, ...]) -> Partition:
        others = [row for row in self.producers if row[0] != producer_id]
        return replace(self, producers=tuple(sorted([*others, (producer_id, epoch, tags)])))


def broken_rules(partitions: tuple[Partition, ...], acknowledged: frozenset[tuple[Tag, bool]]) -> list[str]:
    """What is wrong at any moment: a tag decided twice, or otherwise than its producer was told."""
    decided = {row for one in partitions for row in one.decided}
    wrong = [f"{tag} both ways" for tag, is_commit in decided if (tag, not is_commit) in decided]
    wrong += [f"{tag} is not {is_commit}" for tag, is_commit in acknowledged if (tag, not is_commit) in decided]
    return wrong


def broken_rules_at_rest(
    partitions: tuple[Partition, ...], acknowledged: frozenset[tuple[Tag, bool]], ongoing: Tag | None
) -> list[str]:
    """What is wrong besides when nothing is under way: a tag that is half decided, or undecided though it is over."""
    wrong = broken_rules(partitions, acknowledged)
    for tag in {tag for one in partitions for tag in one.tags()}:
        is_open = [tag in one.undecided() for one in partitions if tag in one.tags()]
        if any(is_open) and not all(is_open):
            wrong.append(f"{tag} is half decided")
        if any(is_open) and tag != ongoing:
            wrong.append(f"{tag} is undecided but over")
    return wrong
