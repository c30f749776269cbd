"""Checks of all partitions of a data directory, and of the checkpoints around them.

    result = verify_directory("data")
    result.findings                                 empty if nothing is wrong

Nothing is written, and a broker may be running.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ..disk.directory import DataDirectoryFiles, PartitionFiles, list_data_directory
from ..topics import transaction_state
from ..view.walk import Advance
from .checks.directory import files_of_directory
from .cluster import Cluster
from .finding import Broken, Finding, Note, Report
from .partition import Partition, partitions_of
from .processes import follow
from .stable_reading import read_until_stable
from .verify import Asked, PartitionFacts

Follow = Callable[[Sequence[Partition], Cluster], Sequence[PartitionFacts]]


@dataclass(frozen=True, slots=True)
class VerifiedDirectory:
    """The partitions of a data directory, all findings, and where rules were not asked."""

    partitions: tuple[PartitionFacts, ...]
    findings: tuple[Finding, ...]
    notes: frozenset[Note]

    @property
    def unasked(self) -> dict[tuple[str, str], int]:
        """Rules that were not asked, each with the reason and the number of partitions."""
        return Counter((note.rule, note.reason) for note in self.notes)


class Looks:
    """The facts of all partitions of the data directory at `path`, which may be looked at several times.

    A second look reads those again that something was found in, and the coordinators, which say what became of
    transactions; of the others the facts stand.

    Args:
        follow: returns the facts of partitions, perhaps from other machines; one that is gone may be left out.
        listed: partitions, by path, which the first look does not list again.
    """

    def __init__(self, path: str, follow: Follow, listed: Mapping[str, PartitionFiles] | None = None) -> None:
        self._path, self._follow, self._listed = path, follow, listed
        self._facts: dict[str, PartitionFacts] = {}  # by path
        self._suspects: Collection[tuple[str | None, int | None]] = ()

    def look(self) -> tuple[DataDirectoryFiles, list[PartitionFacts], Cluster]:
        """Return the listing of now, the facts by topic and partition, and the cluster as it is now."""
        cluster, directory = Cluster(self._path), list_data_directory(self._path, self._listed)
        partitions, self._listed = partitions_of(directory), None
        for group in in_reading_order([one for one in partitions if self._is_read(one)]):
            self._facts |= {one.partition.files.path: one for one in self._follow(group, cluster)}
        facts = (self._facts.get(one.files.path) for one in partitions)
        return directory, [one for one in facts if one is not None], cluster

    def suspect(self, keys: Collection[tuple[str | None, int | None]]) -> None:
        """Read these partitions again in the next look, by topic and number."""
        self._suspects = keys

    def _is_read(self, partition: Partition) -> bool:
        return partition.files.path not in self._facts or partition.key in self._suspects or _is_coordinator(partition)


def in_reading_order(partitions: Sequence[Partition]) -> Iterator[list[Partition]]:
    """Yield coordinators behind all others: by then they know of what was written to other partitions."""
    for is_coordinator in (False, True):
        if group := [one for one in partitions if _is_coordinator(one) is is_coordinator]:
            yield group


def _is_coordinator(partition: Partition) -> bool:
    return partition.files.topic == transaction_state.TOPIC


def places_of(findings: Iterable[Finding]) -> set[tuple[str | None, int | None]]:
    """Return topic and number of the partitions that findings are about."""
    return {(one.where.topic, one.where.partition) for one in findings}


def verify_directory(path: str, *, decodes: bool = True, advance: Advance = lambda size: None) -> VerifiedDirectory:
    """Verify all partitions of the data directory at `path`, and its checkpoints.

    Look again if something is wrong while it changes; see `stable_reading`.

    Args:
        decodes, advance: as of `verify_partition`.

    Raises:
        DataDirectoryError: `path` is missing, unreadable, or no directory.
    """
    looks = Looks(path, partial(follow, asked=Asked.FILES, decodes=decodes, advance=advance))

    def read() -> VerifiedDirectory:
        directory, partitions, cluster = looks.look()
        findings, notes = found_in(directory, partitions, cluster)
        looks.suspect(places_of(findings))
        return VerifiedDirectory(tuple(partitions), findings, notes)

    found, findings = read_until_stable(path, read, lambda one: one.findings)
    return replace(found, findings=findings)


def found_in(
    directory: DataDirectoryFiles,
    partitions: Sequence[PartitionFacts],
    cluster: Cluster,
    crossing: Iterable[Broken] = (),
) -> tuple[tuple[Finding, ...], frozenset[Note]]:
    """Return what is wrong around partitions, in each, and across them, and what was not asked there."""
    report = Report()
    report.take(files_of_directory(directory, [one.evidence for one in partitions], cluster))
    report.findings += (finding for one in partitions for finding in one.findings)
    report.take(crossing)
    notes = report.notes.union(*(one.evidence.report.notes for one in partitions))
    return tuple(report.findings), frozenset(notes)
