"""The metadata log beside its snapshots and `quorum-state`, all of one controller (KIP-595, KIP-630, KIP-853).

A broker reads `quorum-state` and the bootstrap records before the log (`BootstrapDirectory`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import NamedTuple

import numpy as np

from ...columns.batch_fields import NO_EPOCH
from ...config.kafka_version import METADATA_VERSION
from ...disk.directory import DataDirectoryFiles
from ...disk.loaded import LoadedFile
from ...disk.side_files import read_quorum_state
from ...errors import DataDirectoryError, LogstoreError
from ...folds.transaction_marker import control_record_type
from ...kernels.scan import batches as fields
from ...layout import quorum_state
from ...layout.batch import CONTROL_FLAG, NO_PRODUCER_ID, NO_SEQUENCE
from ...layout.file_names import BOOTSTRAP_SNAPSHOT_NAME, METADATA_TOPIC, DirectoryKind
from ...layout.quorum_state import QuorumState
from ...messages.schema import Value
from ...model import ControlRecordType
from ...replay.internal_topic import ControlBatch, ReplayedRecord, replayed_rows
from ...replay.metadata_image import MetadataImage
from ...topics.cluster_metadata import decode_value
from ...topics.control_records import read_kraft_record
from ...topics.frames import is_newer_record
from ...view.walk import Damage, Run, walk
from ..evidence import AuditedBatches, Evidence, Follower
from ..finding import Broken, Rule, Silence, Where, unreadable
from ..partition import Partition, unless_gone
from .batches import DAMAGED, ERROR, UNSETTLED, WARNING, damage, log_tail
from .internal_records import internal_record
from .records import bad_records, has_readable_header

metadata_snapshot = Rule(
    "metadata-snapshot",
    ERROR,
    "A snapshot of the metadata log is not whole.",
    "no broker starts on it, or it knows nothing of what it held: put it back from another controller; or move it "
    "away, if the log begins at an older snapshot or before it",
    (DAMAGED, UNSETTLED),
)
startup_file = Rule(
    "startup-file",
    ERROR,
    "`quorum-state` or `bootstrap.checkpoint` does not parse, or the metadata log begins behind its snapshots.",
    "a broker does not start on it: put it back from a copy; or delete `quorum-state`, if this node is the only voter",
)
election_state = Rule(
    "quorum-state",
    WARNING,
    "`quorum-state` is missing, or tells of other elections than the metadata log.",
    "a broker goes on from the epochs of its log, and makes it anew; do not take the file of another node or time: one "
    "of several voters may vote twice",
)

HEADER, FOOTER = ControlRecordType.SNAPSHOT_HEADER, ControlRecordType.SNAPSHOT_FOOTER
NOBODY = NO_OFFSET = -1


class ControllerLog(Follower):
    """Reads control records, and remembers where each leader's epoch begins."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence, self._partition = evidence, evidence.partition
        self._elections: dict[int, _Election] = {}  # by epoch
        self._begins: list[tuple[int, int]] = []  # offsets, and the epochs that begin there
        self._first_offset = NO_OFFSET

    def step(self, batches: AuditedBatches) -> Iterator[Broken]:
        if self._first_offset == NO_OFFSET:
            self._first_offset = int(batches.base[0])
        for row in np.flatnonzero(batches.epochs > batches.epoch_before).tolist():
            self._begins.append((int(batches.base[row]), int(batches.epochs[row])))
        is_control = batches.is_v2 & (batches.table.attributes & CONTROL_FLAG != 0)
        for row in np.flatnonzero(is_control & (batches.table.record_count > 0)).tolist():
            try:
                records = _control_records(batches.run, batches.run.first_row + row)
            except LogstoreError as error:
                is_newer = self._evidence.cluster.image.newer_kafka is not None  # it may be of a type to come
                broken = internal_record.by(error, batches.where(row), "a control record of KRaft")
                yield broken._replace(silence=Silence.NEWER_KAFKA) if is_newer else broken
                continue
            for election in (value for kind, value in records if kind is ControlRecordType.LEADER_CHANGE):
                voters = tuple(voter["voterId"] for voter in election["voters"])
                self._elections[int(batches.epochs[row])] = _Election(election["leaderId"], voters)

    def finish(self) -> Iterator[Broken]:
        for (offset, epoch), path in self._partition.files.kraft_snapshots.items():
            if (expected := self._expected_of_name(offset, epoch)) is not None:
                where, found = self._partition.where(path), f"offset {offset} and epoch {epoch}"
                is_to_come = offset > self._evidence.log_end_offset and not self._partition.surroundings.was_closed
                silence = DAMAGED if self._evidence.has_damage else UNSETTLED if is_to_come else None
                yield metadata_snapshot.at(where, expected, found, silence)
            yield from _check_snapshot(self._partition, path, epoch)
        yield from self._compare_election()

    def _expected_of_name(self, offset: int, epoch: int) -> str | None:
        """Return what the log says of the end of a snapshot and of the epoch before it; None if that is its name."""
        end = self._evidence.log_end_offset
        if offset > end:
            return f"an offset up to {end}, where the log ends"
        if 0 <= self._first_offset < offset <= end:
            known = max((one for begin, one in self._begins if begin < offset), default=NO_EPOCH)
            return None if known == epoch else f"epoch {known}, as the record before offset {offset} has"
        return "epoch 0, before the first record" if epoch and not offset else None

    def _compare_election(self) -> Iterator[Broken]:
        path, last = self._partition.files.files.get(quorum_state.FILE_NAME), self._evidence.leader_epoch
        is_closed, where = self._partition.surroundings.was_closed, self._partition.where(path)
        if path is None:
            if is_closed and last > 0:
                yield election_state.at(where, quorum_state.FILE_NAME, "none")
            return
        try:
            state = unless_gone(read_quorum_state, path)
        except LogstoreError as error:
            yield startup_file.by(error, where, "the state of an election")
            return
        if state is not None and is_closed and (expected := self._expected_of_election(state, last)) is not None:
            found = f"leader {state.leader_id} of epoch {state.leader_epoch}, and a vote for {state.voted_id}"
            yield election_state.at(where, expected, found)

    def _expected_of_election(self, state: QuorumState, last: int) -> str | None:
        """Return what the log says of elections, whose winner writes its epoch before anything else; None if `state`.

        Where there are several voters, a later election may be that of another one, whose records were not fetched.
        """
        election = self._elections.get(last)
        if state.leader_epoch < last:
            return f"epoch {last} or above, as the log has"
        if election is None:
            return None
        if state.leader_epoch == last and state.leader_id not in (election.leader_id, NOBODY):
            return f"leader {election.leader_id} of epoch {last}, as the log has"
        if len(election.voters) > 1:
            return None
        if state.leader_epoch > last and state.leader_id != NOBODY:
            return f"epoch {last}, as the log has of its only voter"
        is_odd = state.voted_id not in (*election.voters, NOBODY)
        return f"no vote, or one for {election.leader_id}, the only voter" if is_odd else None


class _Election(NamedTuple):
    """The winner of an election, and those who took part."""

    leader_id: int
    voters: tuple[int, ...]


def _control_records(run: Run, row: int) -> list[tuple[ControlRecordType, Value]]:
    """Return the control records of a batch: the type and the fields of each; raises LogstoreError."""
    found = []
    for record in ControlBatch(run.data, run.table, row).records():
        kind = control_record_type(record.key)
        found.append((kind, read_kraft_record(kind, record.value or b"")[1]))
    return found


def _check_snapshot(partition: Partition, path: str, epoch: int) -> Iterator[Broken]:
    """Check a snapshot of the metadata log: batches of one controller, numbered from 0 (`RecordsSnapshotWriter`).

    The first one has the header, the last one the footer.
    """
    try:
        snapshot = unless_gone(LoadedFile, path)
    except DataDirectoryError as error:
        yield unreadable(error, partition.where(path))
        return
    if snapshot is None:
        return
    kinds, next_offset, has_damage = list[ControlRecordType](), 0, False  # NO_OFFSET behind damage
    with snapshot:
        for piece in walk(snapshot, 0):
            if isinstance(piece, Damage):
                has_damage, next_offset = True, NO_OFFSET
                broken = damage(partition, path, piece)
                yield broken if broken.rule is not log_tail else broken._replace(rule=metadata_snapshot)
                continue
            for row, expected, found in _bad_snapshot_batches(piece, next_offset, epoch):
                where = partition.where(path, int(piece.table.position[row]), int(piece.table.base_offset[row]))
                yield metadata_snapshot.at(where, expected, found)
            next_offset = int(piece.table.last_offset[piece.row_end - 1]) + 1
            kinds += yield from _kinds(partition, path, piece)
    if not (has_damage or (kinds[:1] == [HEADER] and kinds[-1:] == [FOOTER])):
        yield metadata_snapshot.at(partition.where(path), "a header, records and a footer", "not all of them")


def _bad_snapshot_batches(run: Run, next_offset: int, epoch: int) -> Iterator[tuple[int, str, str]]:
    """Yield rows of batches that no controller writes into a snapshot: what was expected there, and what is there."""
    table, rows = run.table, np.arange(run.first_row, run.row_end)
    span, epochs = table.column(fields.LAST_OFFSET_DELTA)[rows] + 1, table.column(fields.PARTITION_LEADER_EPOCH)
    next_offset = int(table.base_offset[rows[0]]) if next_offset == NO_OFFSET else next_offset
    expected = np.concatenate([[next_offset], table.last_offset[rows[:-1]] + 1])
    is_wrong = (table.base_offset[rows] != expected) | (span != table.record_count[rows])
    is_wrong |= (epochs[rows] != epoch) | (table.producer_id[rows] != NO_PRODUCER_ID)
    is_wrong |= (table.producer_epoch[rows] != NO_EPOCH) | (table.column(fields.BASE_SEQUENCE)[rows] != NO_SEQUENCE)
    is_wrong |= table.attributes[rows] & ~CONTROL_FLAG != 0
    for index in np.flatnonzero(is_wrong).tolist():
        row = int(rows[index])
        found = f"{table.record_count[row]} records at offsets {table.base_offset[row]} to {table.last_offset[row]}"
        found += f" of epoch {epochs[row]}, attributes {table.attributes[row]:#x}"
        yield row, f"records from offset {expected[index]} on of epoch {epoch}, without a producer", found
    readable = rows[has_readable_header(table)[rows]]
    for bad in bad_records(run.data, table, readable):
        yield bad.row, bad.expected, bad.found


def _kinds(partition: Partition, path: str, run: Run) -> Generator[Broken, None, list[ControlRecordType]]:
    """Return the types of control records; yield records that do not parse."""
    kinds = list[ControlRecordType]()
    for item in replayed_rows(*run):
        try:
            if isinstance(item, ControlBatch):
                kinds += [kind for kind, _ in _control_records(run, item.row)]
            elif isinstance(item, ReplayedRecord) and not is_newer_record("cluster_metadata", item.value or b""):
                decode_value(item.value or b"", offset=item.offset)
        except LogstoreError as error:
            yield internal_record.by(error, partition.where(path), "a metadata record")
    return kinds


def startup_files(directory: DataDirectoryFiles) -> Iterator[Broken]:
    """Yield what is wrong with bootstrap records, and with the start of the metadata log."""
    logs = [one for one in directory.partitions if one.topic == METADATA_TOPIC and one.kind is DirectoryKind.LIVE]
    for start, log in [(one.segments[0].base_offset, one) for one in logs if one.segments]:
        reached = max((offset for offset, _ in log.kraft_snapshots), default=0)
        if reached < start:
            expected = f"a snapshot of offset {start} or later, where the log begins"
            yield startup_file.at(Where(log.path, *log.key, offset=start), expected, reached or "none")
    # Kafka 4.4 formats a directory with the records in a snapshot of the empty log
    snapshots = [log.kraft_snapshots[0, 0] for log in logs if (0, 0) in log.kraft_snapshots and not log.segments]
    for path in [*filter(None, (directory.files.get(BOOTSTRAP_SNAPSHOT_NAME),)), *snapshots]:
        try:
            yield from _of_bootstrap(path, is_snapshot=path in snapshots)
        except LogstoreError as error:
            yield startup_file.by(error, Where(path), "metadata records")


def _of_bootstrap(path: str, *, is_snapshot: bool) -> Iterator[Broken]:
    """Yield what is wrong with bootstrap records; a snapshot need not have any, and its damage is told elsewhere."""
    image, count = MetadataImage(), 0
    with LoadedFile(path) as log:
        for piece in walk(log, 0):
            if isinstance(piece, Damage):
                if not is_snapshot:
                    yield startup_file.at(Where(path, position=piece.start), piece.expected, piece.found)
                return
            for item in replayed_rows(*piece):
                if isinstance(item, LogstoreError):
                    raise item
                if isinstance(item, ReplayedRecord):
                    image.replay(item.value, item.offset, item.timestamp)
                    count += 1
    if METADATA_VERSION not in image.features and not (is_snapshot and not count):
        yield startup_file.at(Where(path), f"a record with the level of {METADATA_VERSION}", "none")
