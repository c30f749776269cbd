"""Replay of `__cluster_metadata-0`: the newest snapshot, then the log behind it (KIP-630).

    metadata = MetadataState()
    metadata.read_snapshots(files), metadata.read_log(log)

KRaft's control records are read beside the image: `kraft.version`, the voters.
"""

from __future__ import annotations

from collections.abc import Callable

from ..config.kafka_version import RAFT_VERSION
from ..disk.directory import PartitionFiles, list_partition_directory
from ..disk.loaded import LoadedFile, open_log
from ..disk.system_errors import is_missing
from ..errors import CorruptRecordError, DataDirectoryError, OffsetOutOfRangeError
from ..folds.transaction_marker import control_record_type
from ..layout.batch import CONTROL_FLAG
from ..messages.schema import Value
from ..model import ControlRecordType
from ..topics.control_records import read_kraft_record
from ..view.log_view import LogView
from ..view.partition_reader import PartitionReader
from ..view.walk import Damage, Run, walk
from .internal_topic import ReplayedRecord, replayed, replayed_file
from .metadata_image import MetadataImage

NO_OFFSET, OFFSET_MAX = -1, 2**63 - 1
Replay = Callable[[bytes | None, int, int], None]  # value, offset and timestamp of a record


class MetadataState:
    """The image, and the state of KRaft.

    Attributes:
        next_offset: behind the last record read.
        leader_epoch: of the last batch.
        kraft_version: 0 if the voters are configured, 1 if they are in the log.
        voters: fields of the last VotersRecord.
        voters_offset: its offset; -1 without one, and in a snapshot of an empty log.
        bootstrap: metadata records in a snapshot of an empty log, as Kafka 4.4 formats a directory. They are not state
            before a controller has written them to the log.
    """

    def __init__(self, records: Replay | None = None) -> None:
        """Begin with nothing; `records` gets what an image would get."""
        self.image = MetadataImage()
        self._replay = self.image.replay if records is None else records
        self.next_offset = 0
        self.leader_epoch = 0
        self.kraft_version = 0
        self.voters: list[Value] = []
        self.voters_offset = NO_OFFSET
        self.bootstrap: list[bytes] = []

    @property
    def levels(self) -> dict[str, int]:
        """The finalized levels above 0 by feature, that of `kraft.version` too."""
        return {**self.image.features, RAFT_VERSION: self.kraft_version} if self.kraft_version else self.image.features

    def read_snapshots(self, files: PartitionFiles) -> None:
        """Load the newest snapshot of the directory, if there is one; not if it is damaged and the log has the rest."""
        (self.next_offset, self.leader_epoch), path = _snapshot_to_read(files)
        if path is None:
            return
        # offsets in a snapshot number its own records: what they say holds just before its end offset
        offset = self.next_offset - 1
        with open_log(path) as snapshot:
            snapshot.load(0, snapshot.size)
            for item in replayed_file(snapshot.data, path):
                if not isinstance(item, ReplayedRecord):
                    for record in item.records():
                        self._take_control(record, offset)
                elif self.next_offset > 0:
                    self._replay(item.value, offset, 0)
                elif item.value is not None:
                    self.bootstrap.append(item.value)

    def read_log(self, log: LogView) -> None:
        """Read the log from `next_offset` on.

        Raises:
            LogstoreError: a batch cannot be read or a record makes no sense; OffsetOutOfRangeError if the log begins
                behind `next_offset`.
        """
        start, end = log.bounds.log_start_offset, log.bounds.log_end_offset
        if self.next_offset < start:
            raise OffsetOutOfRangeError(
                "The metadata log begins behind the records that are known",
                offset=self.next_offset,
                expected=f"a log, or a snapshot, that has offset {self.next_offset}",
                found=f"a log from offset {start} on",
            )
        for item in replayed(log, self.next_offset):
            if isinstance(item, ReplayedRecord):
                self._replay(item.value, item.offset, item.timestamp)
                self.next_offset = item.offset + 1
            else:
                for record in item.records():
                    self._take_control(record, record.offset)
                    self.next_offset = record.offset + 1
        if self.next_offset < end:
            raise CorruptRecordError(
                "A metadata log ends before its end offset",
                offset=self.next_offset,
                expected=f"records up to offset {end}",
                found="none",
            )
        self.leader_epoch = max(self.leader_epoch, log.epochs.latest_epoch or 0)

    def _take_control(self, record: ReplayedRecord, offset: int) -> None:
        kind = control_record_type(record.key)
        if kind is ControlRecordType.KRAFT_VERSION:
            _, fields = read_kraft_record(kind, record.value or b"")
            self.kraft_version = fields["kRaftVersion"]
        elif kind is ControlRecordType.KRAFT_VOTERS:
            _, fields = read_kraft_record(kind, record.value or b"")
            self.voters, self.voters_offset = fields["voters"], offset


def read_metadata(directory: str) -> MetadataState:
    """Read the metadata log in a directory, maybe beside its writer, up to damage in its last segment.

    Raises LogstoreError if it cannot be read, or is damaged before its last segment or in its newest snapshot.
    """
    if (damage := snapshot_damage(directory)) is not None:
        raise damage
    state = MetadataState()
    state.read_snapshots(list_partition_directory(directory))
    state.read_log(PartitionReader(directory).view())
    return state


def metadata_damage(directory: str) -> CorruptRecordError | None:
    """Return the first damage in a metadata log of which `read_metadata` says nothing; None without any.

    A batch that is cut off at the end of the log is none: its writer may be about to finish it.
    """
    damage, segments = snapshot_damage(directory), list_partition_directory(directory).segments
    if damage is None and segments:
        return _damage(segments[-1].log, segments[-1].base_offset)
    return damage


def snapshot_damage(directory: str) -> CorruptRecordError | None:
    """Return the first damage in the newest snapshot of a metadata log; None without any.

    A snapshot is whole before it has its name, so that a batch that is cut off is damage too.
    """
    files = list_partition_directory(directory)
    if not files.kraft_snapshots:
        return None
    place, path = max(files.kraft_snapshots.items())
    damage = _damage(path, 0, is_snapshot=True)
    if damage is not None and _snapshot_to_read(files)[0] != place:
        damage.advice = "no broker starts on it: move it away, as the log has what was in it"
    return damage


def _snapshot_to_read(files: PartitionFiles) -> tuple[tuple[int, int], str | None]:
    """Return end offset, epoch and path of the newest snapshot that is whole and that the log goes on from.

    The path is None if the log goes back to its first record, and no snapshot is whole; without any such place return
    the newest one, damaged as it may be.
    """
    start = files.segments[0].base_offset if files.segments else OFFSET_MAX
    for place in sorted({(0, 0), *files.kraft_snapshots}, reverse=True):
        path = files.kraft_snapshots.get(place)
        if place[0] >= start and (path is None or _damage(path, 0, is_snapshot=True) is None):
            return place, path
    return max(files.kraft_snapshots.items(), default=((0, 0), None))


def _damage(path: str, base_offset: int, *, is_snapshot: bool = False) -> CorruptRecordError | None:
    try:
        log = LoadedFile(path)
    except DataDirectoryError as error:
        if is_missing(error):
            return None  # a live writer has put another in its place
        raise
    advice = "`logstore verify` names all damage: put back the file from a copy of the directory"
    what, has_footer = "A snapshot of the metadata log" if is_snapshot else "The metadata log", False
    with log:
        for piece in walk(log, base_offset):
            if isinstance(piece, Damage) and (is_snapshot or piece.may_hide_batches):
                return CorruptRecordError(
                    f"{what} is damaged, and what is behind the damage is not known",
                    path=path,
                    position=piece.start,
                    offset=piece.offset,
                    expected=piece.expected,
                    found=piece.found,
                    advice=advice,
                )
            if isinstance(piece, Run):
                has_footer = bool(piece.table.attributes[piece.row_end - 1] & CONTROL_FLAG)
    if is_snapshot and not has_footer:
        return CorruptRecordError(
            f"{what} is cut off",
            path=path,
            position=log.size,
            expected="a footer",
            found="the end of the file",
            advice=advice,
        )
    return None
