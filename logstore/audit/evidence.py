"""What a pass over a partition hands to its followers, and evidence: what can be known, as YES, NO or UNKNOWN.

No rule is asked where it is UNKNOWN.

    evidence = Evidence(partition, cluster)         the first follower of a pass, see `log_pass`
    evidence.is_cleaned_beyond, evidence.cleaned_up_to, evidence.is_whole, evidence.has_damage

The cleaner writes its checkpoint after it has put its output in place, and a follower fetches what its leader's cleaner
left. So the log is cleaned up to the checkpoint, and beyond it only a topic that was never compacted is known not to be
(`LogCleaner.cleanFilthiestLog`, `LogCleanerManager.doneCleaning`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..cached_property import cached_property
from ..columns.batch_table import BatchTable, BoolArray, Int64Array
from ..disk import paths
from ..disk.directory import SegmentFiles
from ..disk.names import child
from ..kernels.scan import batches as fields
from ..layout.batch import CODEC_MASK, CONTROL_FLAG, MAGIC_V2, NO_PRODUCER_ID, TRANSACTIONAL_FLAG
from ..layout.file_names import METADATA_TOPIC
from ..layout.offset_checkpoint import CLEANER_OFFSET_FILE_NAME as _CLEANER
from ..layout.offset_checkpoint import LOG_START_OFFSET_FILE_NAME as _LOG_START
from ..view.walk import OFFSET_SPAN, Damage, Run
from .cluster import MINUTE_MS, Cluster, Known
from .finding import Broken, Place, Report, Rule, Silence, Where
from .partition import Partition, directory_around


class Follower:
    """A part of the pass, called for each segment: `begin`, `step` and `skip` in the order of the bytes, `end`.

    A check is a follower that returns what breaks its rules, so far as it knows by then.
    """

    def start(self) -> Iterable[Broken] | None:
        """Take the partition, before its first segment."""

    def begin(self, segment: SegmentFiles) -> Iterable[Broken] | None:
        """Take the next segment."""

    def step(self, batches: AuditedBatches) -> Iterable[Broken] | None:
        """Take good batches of it."""

    def skip(self, piece: Damage) -> Iterable[Broken] | None:
        """Take bytes of it that are no good batch."""

    def end(self) -> Iterable[Broken] | None:
        """Take the end of the segment."""

    def finish(self) -> Iterable[Broken] | None:
        """Take the end of the log."""


class Evidence(Follower):
    """The first follower of the pass over a partition: where the pass stands, and what can be known.

    Attributes:
        report: what broke rules so far.
        segment_count, batch_count, size: segments, good batches and bytes so far; 0 if one could not be read.
        segment: the current one.
        end_offset: behind the last batch so far, and not below the base offset of the segment.
        batch_end_offset: behind the last batch so far, None before the first.
        leader_epoch, producer_id: highest of the batches so far, -1 for none.
        is_after_damage: the last bytes were no batch; their offsets are not known.
        is_end_known: the last bytes cannot have been a whole batch that is damaged now.
        has_damage: the damage so far may have been batches of any kind.
        hole_end: behind the last missing offsets, 0 without any; damage does not count.
        segment_has_damage: the same of the current segment, with its tail.
        segment_size: bytes of the current segment when it was opened.
        is_tail: the pass began behind the start of the log.
        is_growing: a writer has appended since, so that what was cut off may have been whole a moment later.
        is_unused: the damage that is told now is zeros up to the end of a file that a broker preallocated and has open.
        snapshot_ids: the producers in each snapshot that can be read, by its offset; see `checks.producers`.
    """

    def __init__(self, partition: Partition, cluster: Cluster | None = None) -> None:
        self.partition = partition
        self.cluster = Cluster(directory_around(partition.files.path)) if cluster is None else cluster
        self.report = Report()
        self.segment_count = self.batch_count = self.size = 0
        self.has_damage = self.segment_has_damage = self.is_growing = self.is_tail = self.is_unused = False
        self.segment_size = 0
        self.end_offset = 0
        self.batch_end_offset: int | None = None
        self.leader_epoch = self.producer_id = -1
        self.is_after_damage = False
        self.is_end_known = True
        self.segment: SegmentFiles | None = None
        self.hole_end = 0
        self._is_first = True
        self.snapshot_ids: dict[int, Int64Array] = {}

    def begin(self, segment: SegmentFiles) -> None:
        """Take the next segment; the cleaner may have taken the end of the one before."""
        self.segment = segment
        self.segment_count, self.size = self.segment_count + 1, self.size + self.segment_size
        self.segment_has_damage = False
        if segment.base_offset > self.end_offset and not (self._is_first or self.is_after_damage):
            self.hole_end = segment.base_offset
        self.end_offset = max(self.end_offset, segment.base_offset)
        self._is_first = False

    def begin_inside(self, offset: int) -> None:
        """Take it that the pass begins at the batch with this offset, within the segment."""
        self.end_offset = self.batch_end_offset = offset

    def step(self, batches: AuditedBatches) -> None:
        """Count the batches, and look for the last hole, before one or in one."""
        self.batch_count += len(batches.table)
        ends = [*batches.base[batches.is_hole][-1:].tolist(), *(batches.last[batches.is_thin][-1:] + 1).tolist()]
        self.hole_end = max(self.hole_end, *ends, 0)
        self.end_offset = self.batch_end_offset = int(batches.last[-1]) + 1
        self.leader_epoch = max(self.leader_epoch, int(batches.epochs.max()))
        self.producer_id = max(self.producer_id, int(batches.table.producer_id.max()))
        self.is_after_damage, self.is_end_known = False, True
        if not batches.is_ascending:
            self.has_damage = self.segment_has_damage = True

    def skip(self, piece: Damage) -> None:
        """Note damage, which explains the offsets that are missing next."""
        self.is_after_damage = self.segment_has_damage = True
        self.has_damage = self.has_damage or self.may_hide_batches(piece)
        self.is_end_known = not piece.may_hide_batches

    def give_up(self) -> None:
        """Note that the rest of the log cannot be read."""
        self.segment_count = self.batch_count = self.size = 0
        self.is_after_damage = self.has_damage = self.segment_has_damage = True
        self.is_end_known = False

    def may_hide_batches(self, piece: Damage) -> bool:
        """Return whether the bytes may have been whole batches: only the end of a log that was not closed is torn."""
        return piece.may_hide_batches or self.segment is None or not self.partition.is_active(self.segment)

    @property
    def log_end_offset(self) -> int:
        """The end of the log as far as the pass has come; exclusive."""
        if self.batch_end_offset is not None:
            return self.end_offset
        return max(self.end_offset, self.partition.first_offset)

    @property
    def oldest_offset(self) -> int:
        """Where the log starts; older segments than those in the directory may be in remote storage (KIP-405).

        The checkpoint has each tiered log, and of others only those that start behind the base offset of their first
        segment (`LogManager.checkpointLogStartOffsetsInDir`).
        """
        start = self.partition.surroundings.log_start_offset
        is_before = start is not None and start < self.partition.base_offset
        tiering = self.cluster.tiering(self.partition.files.topic)
        is_tiered = tiering is Known.YES or (tiering is Known.UNKNOWN and is_before)
        return start or 0 if is_tiered else self.partition.first_offset

    @property
    def cleaner_offset(self) -> int:
        """The log is cleaned below this offset, by the cleaner's checkpoint."""
        return self.partition.surroundings.cleaner_offset or 0

    @cached_property
    def is_cleaned_beyond(self) -> Known:
        """Whether the cleaner has been beyond its checkpoint.

        Without a metadata log, a checkpoint that leaves the partition out means never, unless a crash may have come
        between the cleaner's output and its checkpoint.
        """
        surroundings = self.partition.surroundings
        if self.partition.files.topic == METADATA_TOPIC:
            return Known.NO  # its segments go as a whole, below a snapshot (KIP-630)
        if not surroundings.is_known or surroundings.cleaner_offset is not None:
            return Known.UNKNOWN
        is_left_out = _CLEANER in surroundings.checkpoints and not self._may_have_crashed
        is_left_out = is_left_out and not self.cluster.has_metadata
        is_never = self._policy is Known.NO or (self._policy is Known.UNKNOWN and is_left_out)
        return Known.NO if is_never else Known.UNKNOWN

    def may_be_cleaned(self, segment: SegmentFiles) -> bool:
        """Return whether a cleaner may have taken batches of the segment beyond its checkpoint.

        It leaves out the last segment, which no other broker may have had either.
        """
        partition = self.partition
        is_last = segment is partition.last_segment and partition.surroundings.was_closed
        return self.is_cleaned_beyond is not Known.NO and not (is_last and self.cluster.is_alone is Known.YES)

    @property
    def _may_have_crashed(self) -> bool:
        """Whether files have come or gone in the partition since a minute before the cleaner's checkpoint was written.

        It is written for other partitions too, while what the cleaner made of this one is already in place.
        """
        path = self.partition.files.path
        checkpoint = child(directory_around(path), _CLEANER)
        if self.partition.surroundings.was_closed:
            return False
        try:
            return paths.stat(path).st_mtime + MINUTE_MS / 1000 > paths.stat(checkpoint).st_mtime
        except OSError:
            return True  # of a running broker, or refused

    @property
    def cleaned_up_to(self) -> int:
        """Below this offset batches and records may be missing that the cleaner took, as far as the pass has come."""
        return max(self.cleaner_offset, self.hole_end if self.is_cleaned_beyond is not Known.NO else 0)

    def is_lost(self, ends: Int64Array) -> BoolArray:
        """Return which gaps the cleaner cannot have made, by the end of each; exclusive."""
        return (ends > self.cleaner_offset) & (self.is_cleaned_beyond is Known.NO)

    @property
    def is_whole(self) -> bool:
        """Whether the partition has every batch that was ever written to it, after the pass."""
        has_holes = self.hole_end > 0 or self.cleaned_up_to > 0
        return not (self.is_tail or self.partition.first_offset or has_holes or self.has_damage)

    @property
    def is_start_known(self) -> bool:
        """Whether the log start is known: `log-start-offset-checkpoint` follows within a minute, or on a clean stop."""
        surroundings = self.partition.surroundings
        return surroundings.was_closed and surroundings.is_known and _LOG_START in surroundings.checkpoints

    def may_have_begun_at(self, offset: int) -> bool:
        """Return whether the log start may have been raised to `offset`, within a segment, and be forgotten since.

        A crash may lose a start that `DeleteRecords` raised. A broker that was stopped in order in its first life had
        none, and of a topic that is only compacted nobody may raise it. In the metadata log a snapshot does (KIP-630),
        which a broker that stopped has left.
        """
        files, surroundings = self.partition.files, self.partition.surroundings
        if files.topic == METADATA_TOPIC:
            return not surroundings.has_marker or any(offset == end for end, _ in files.kraft_snapshots)
        is_kept = self.cluster.is_never_deleted_from(files.topic) or self.is_of_first_life
        return not (self.is_start_known and is_kept)

    @property
    def is_of_first_life(self) -> bool:
        """Whether the only broker that ever was here lived once, and was stopped in order: no crash lost anything."""
        return self.partition.surroundings.was_closed and self.cluster.has_one_life

    def has_expired(self, producer_id: int, after: int, until: int) -> bool:
        """Return whether a snapshot between two offsets lacks the producer (`removeExpiredProducers`)."""
        return any(after < offset <= until and producer_id not in ids for offset, ids in self.snapshot_ids.items())

    @property
    def cleaned(self) -> Silence:
        """The reason why the cleaner may have been here, one of CLEANED."""
        surroundings = self.partition.surroundings
        if not surroundings.is_known:
            return Silence.ALONE
        if _CLEANER not in surroundings.checkpoints:
            return Silence.CHECKPOINT_LOST
        is_unknown = surroundings.cleaner_offset is None and self._policy is Known.UNKNOWN
        return Silence.POLICY_UNKNOWN if is_unknown else Silence.COMPACTED

    @property
    def unknown_end(self) -> Silence | None:
        """The reason why not all batches of the current segment are known; None if they are."""
        if self.segment_has_damage:
            return Silence.DAMAGED
        return Silence.GROWING if self.is_growing else None

    def note(self, rule: Rule, silence: Silence, is_silenced: BoolArray | bool = True) -> None:
        """Note that a rule is not asked of something in the partition, if that is so; an array may say of what."""
        if np.any(is_silenced):
            self.report.note(rule, silence, self.partition.where())

    @property
    def _policy(self) -> Known:
        return self.cluster.compaction(self.partition.files.topic)


class AuditedBatches:
    """Good batches of a segment, one behind the other; columns of a row each.

    Attributes:
        run, table: the batches as rows of a larger table, for kernels; and as a table of their own.
        before: end of the offsets of the batch before, exclusive.
        epoch_before: highest leader epoch before each, -1 for none.
        offset_max: highest offset that the segment can hold: below the next segment, and within reach of indexes.
        is_after_damage: bytes before the first batch are none; their offsets are not known.
        transactions: number of the transaction that each has data of, -1 for none; see `transactions`.
        base, last, span, epochs: first and last offset, number of offsets, leader epoch. The header of a compressed set
            of magic 0 or 1 has only the last offset: it is taken to begin where the batch before ends.
        is_v2, is_producers, is_transactional: of magic 2 or above, of a producer, data of a transaction.
        is_thin, is_hole: fewer records than offsets; offsets missing before it that no damage explains.
        is_ascending: each begins behind the one before; followers that go by offsets need it.
    """

    def __init__(self, evidence: Evidence, segment: SegmentFiles, run: Run) -> None:
        """Take rows of a segment; `evidence` is that of the batch before."""
        self.evidence, self.partition, self.segment, self.run = evidence, evidence.partition, segment, run
        matrix = run.table.matrix[:, run.first_row : run.row_end]
        self.table = table = BatchTable(matrix, matrix.shape[1], run.table.status, run.table.next_position)
        self.offset_max = min(self.partition.end_of(segment), segment.base_offset + OFFSET_SPAN) - 1
        self.is_after_damage = evidence.is_after_damage
        self.transactions = np.full(len(table), -1)
        self.base: Int64Array = table.base_offset
        self.last, self.span = table.last_offset, table.column(fields.LAST_OFFSET_DELTA) + 1
        self.epochs = table.column(fields.PARTITION_LEADER_EPOCH)
        end_before = evidence.batch_end_offset
        if end_before is None:
            end_before = min(segment.base_offset, int(self.base[0]))
        self.before = np.concatenate([[end_before], self.last[:-1] + 1])
        self.epoch_before = np.maximum.accumulate(np.concatenate([[evidence.leader_epoch], self.epochs[:-1]]))
        flags = table.attributes & (CONTROL_FLAG | TRANSACTIONAL_FLAG)
        self.is_v2: BoolArray = table.magic >= MAGIC_V2
        self.is_producers: BoolArray = self.is_v2 & (table.producer_id != NO_PRODUCER_ID)
        self.is_transactional: BoolArray = self.is_producers & (flags == TRANSACTIONAL_FLAG)
        self.is_thin: BoolArray = self.is_v2 & (table.record_count >= 0) & (table.record_count < self.span)
        self.is_hole: BoolArray = self.base > self.before
        self.is_hole[0] &= not self.is_after_damage
        is_set = self.is_hole & ~self.is_v2 & (table.attributes & CODEC_MASK != 0)
        if is_set.any():
            self.base, self.is_hole = np.where(is_set, self.before, self.base), self.is_hole & ~is_set
        self.is_ascending = bool((self.last >= self.base).all() and (self.base[1:] > self.last[:-1]).all())

    def where(self, row: int, offset: int | None = None) -> Where:
        """Return the place of a batch."""
        offset = int(self.base[row]) if offset is None else offset
        return self.partition.where(self.segment.log, int(self.table.position[row]), offset)

    def broken(
        self, is_wrong: BoolArray, expected: str, expected_values: Int64Array, found_values: Int64Array
    ) -> Iterator[Place]:
        """Yield wrong rows: the place, the expected value within a text, and the value found."""
        for row in np.flatnonzero(is_wrong).tolist():
            yield self.where(row), expected.format(int(expected_values[row])), int(found_values[row])
