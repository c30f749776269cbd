"""Metadata log of a single node, written as by its controller: KRaft's log, its snapshots and `quorum-state`.

A node that is the only voter becomes leader without an election, when it first has something to write: the next epoch
is written to `quorum-state`, then a LeaderChange to the log, and an open metadata transaction is aborted. A store that
changes no metadata leaves these files as they are, unless the directory has crashed.

A snapshot has what is left of all records (KIP-630), and the log in front of it goes. It is written when the log has
twice the size of the last snapshot, so an opening never reads much more than what there is.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence

from ...columns.batch_table import ByteArray
from ...config.topic import parse_config
from ...disk.atomic import replace_file
from ...disk.directory import list_partition_directory
from ...disk.files import file_size
from ...disk.names import child
from ...disk.seam import Seam
from ...errors import IllegalTransitionError, LogstoreError, RecoveryLossError
from ...folds.producer_update import AppendOrigin
from ...layout import quorum_state
from ...layout.checkpoint_writing import quorum_state_bytes
from ...layout.file_names import KRAFT_SNAPSHOT_SUFFIX, METADATA_TOPIC
from ...layout.partition_metadata import METADATA_TOPIC_ID
from ...layout.quorum_state import QuorumState
from ...log.load.loader import LoadSettings
from ...log.load.opening import PlannedLog
from ...log.load.removals import Removal, readable_text
from ...log.state import LogHost
from ...messages.schema import Value
from ...model import TopicPartition
from ...replay.metadata_image import MetadataImage
from ...replay.metadata_records import MetadataRecords
from ...replay.metadata_state import NO_OFFSET, MetadataState, metadata_damage, read_metadata, snapshot_damage
from ...topics.cluster_metadata import encode_value
from .batches import control_batch, data_batch, dynamic_quorum, leader_change, snapshot_bytes
from .suitability import quorum_of, require_suitable
from .topics import NodeDirectory

DIRECTORY_NAME = f"{METADATA_TOPIC}-0"
KEY = TopicPartition(METADATA_TOPIC, 0)
# bytes of records between two snapshots, at least; a broker's `metadata.log.max.record.bytes.between.snapshots` has
# 20 MiB, seconds of reading at each start
_SNAPSHOT_SIZE_MIN = 1 << 16
_PART_SUFFIX = ".part"
_BLOCK_SIZE = 1000  # producer ids; those that are left when the process ends are never used
_LONG_MAX = 2**63 - 1
_LOGGER = logging.getLogger("logstore")
_CONFIG = {"max.message.bytes": 8 * 1024 * 1024, "retention.ms": -1, "retention.bytes": -1}  # `KafkaRaftLog`


def load_settings(now_ms: int, *, accepts_loss: bool) -> LoadSettings:
    """Return the settings for loading a metadata log: as a broker does, it is read whole whenever it is opened."""
    return LoadSettings(False, 0, 0, now_ms, parse_config(_CONFIG), accepts_loss)


def require_kept_levels(state: MetadataState, removals: Sequence[Removal], directory: str) -> None:
    """Raise RecoveryLossError if a recovery of a metadata log would remove the first levels, with all behind them.

    Nothing opens what would be left, so that this loss cannot be accepted. `state` is that before the recovery.
    """
    readable = [removal for removal in removals if removal.batch_count]
    damage = metadata_damage(directory) if readable and not state.image.features else None
    if damage is not None:
        raise RecoveryLossError(
            f"Recovery of {DIRECTORY_NAME} would remove {readable_text(readable)}, and leave no metadata",
            path=damage.path,
            position=damage.position,
            offset=damage.offset,
            expected=damage.expected,
            found=damage.found,
            advice=damage.advice,
        )


class MetadataLog:
    """The log, open for writing, and its image. Not thread-safe.

    Attributes:
        log: the partition; what a snapshot covers is deleted.
        change_count: incremented by every complete change of `image`.
        producer_ids: the rest of the block that this process took last.
        removals: what the recovery removed from the log.
        takes_snapshots: as the log grows; not while the next opening needs records that a snapshot does not have.
    """

    def __init__(
        self,
        root: str,
        node: NodeDirectory,
        seam: Seam,
        now_ms: Callable[[], int],
        *,
        has_partitions: bool,
        accepts_loss: bool = True,
    ) -> None:
        """Recover and read the log in the data directory `root`, which must be for this node alone.

        Else raise DataDirectoryError, see `suitability`. If the log could be read, nothing was changed.
        """
        self.path = child(root, DIRECTORY_NAME)
        self._node_id, self._seam, self._now_ms = node.node_id, seam, now_ms
        self._epoch: int | None = None
        self.change_count, self.takes_snapshots = 0, True
        self.producer_ids = iter(range(0))
        settings = load_settings(now_ms(), accepts_loss=accepts_loss)
        if not os.path.isdir(self.path):  # a plan makes it, and no broker starts beside a second one
            require_suitable(MetadataState(), self.path, node, has_partitions=has_partitions)
        elif (damage := snapshot_damage(self.path)) is not None:
            raise damage  # no broker starts on it, or only without what was behind the damage
        planned = PlannedLog(self.path, settings, seam=seam, topic_id=METADATA_TOPIC_ID)
        known = self._planned()
        if known is not None:
            require_kept_levels(known, planned.removals, self.path)
            require_suitable(known, self.path, node, has_partitions=has_partitions)
        self.log, self.removals = planned.open(LogHost(now_ms)), planned.removals
        if known is not None and known.next_offset == self.log.log_end_offset:
            self._state = known
        else:
            try:
                self._state = self._read()
                require_suitable(self._state, self.path, node, has_partitions=has_partitions)
            except BaseException:
                self.close()
                raise
        self._is_whole = True
        self._quorum = quorum_of(self.path, self._state.kraft_version)
        snapshots = list_partition_directory(self.path).kraft_snapshots.values()
        self._expect_snapshot(max(map(file_size, snapshots), default=0))

    @property
    def image(self) -> MetadataImage:
        """The state after all records."""
        return self._state.image

    @property
    def levels(self) -> Mapping[str, int]:
        """The finalized levels of features."""
        return self._state.levels

    @property
    def bootstrap(self) -> Sequence[bytes]:
        """The records with which an empty log begins, if a snapshot has them; see `MetadataState`."""
        return self._state.bootstrap

    @property
    def next_offset(self) -> int:
        """The offset of the next record; needs a leader."""
        return self.log.log_end_offset

    def append(self, values: Sequence[bytes]) -> None:
        """Write records as one batch, all or none, durably; before it a snapshot of the log, if that is due.

        Not behind it: a snapshot does not have the record that removes a topic, by which the next opening would find
        directories that a crash kept from being set aside.
        """
        self.lead()
        if self.takes_snapshots and self.log.size > self._snapshot_at_size:
            try:
                self._take_snapshot()
            except LogstoreError as error:  # a log that takes no more says so itself
                _LOGGER.warning("No snapshot of the metadata log was written, which is tried again later: %s", error)
                self._expect_snapshot(self.log.size)
        self._append_values(values)

    def take_producer_id_block(self) -> None:
        """Append the record of the next block of producer ids, which then belongs to this process."""
        first = self.image.next_producer_id
        self._append_block(first)
        self.producer_ids = iter(range(first, first + _BLOCK_SIZE))

    def skip_producer_ids(self, highest: int) -> None:
        """Move the next block above `highest`, up to which ids are in use; raises KafkaStorageError."""
        block = highest // _BLOCK_SIZE * _BLOCK_SIZE
        if block + _BLOCK_SIZE > self.image.next_producer_id:
            self._append_block(block)

    def _append_block(self, first: int) -> None:
        """Log the record of a block of producer ids (`ProducerIdControlManager`)."""
        if first > _LONG_MAX - _BLOCK_SIZE:
            raise IllegalTransitionError(
                "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit",
                java_class="org.apache.kafka.common.errors.UnknownServerException",
            )
        broker_epoch = self.image.brokers[self._node_id].broker_epoch
        fields = {"brokerId": self._node_id, "brokerEpoch": broker_epoch, "nextProducerId": first + _BLOCK_SIZE}
        self.append([encode_value("ProducerIdsRecord", fields)])

    def make_quorum_dynamic(self, voter: Value) -> None:
        """Raise `kraft.version` to 1, with the only voter in the log (`LeaderState`, KIP-853)."""
        epoch = self.lead()
        self._is_whole = False
        self._append(control_batch(dynamic_quorum(voter), self.next_offset, epoch, self._now_ms()), epoch)
        self.reload_if_cut_off()

    def lead(self) -> int:
        """Become leader of the next epoch, if not done yet; return the epoch."""
        if self._epoch is None:
            self._epoch = self._begin_epoch()
        # the records of this node would become part of the open transaction, and be dropped with it
        if self.image.transaction_start_offset is not None:
            self._append_values([encode_value("AbortTransactionRecord", {"reason": "Controller failover"})])
        return self._epoch

    def reload_if_cut_off(self) -> None:
        """After a change that was cut off, sync the log and read it again; raises LogstoreError if that fails."""
        if not self._is_whole:
            self.log.flush()
            self._state = self._read()
            self.change_count += 1
            self._is_whole = True

    def close(self) -> None:
        """Close the log in order."""
        self.log.close()

    def _begin_epoch(self) -> int:
        epoch = max(self._quorum.leader_epoch, self._state.leader_epoch) + 1
        is_dynamic = self._state.kraft_version > 0
        voter_ids = () if is_dynamic else (self._node_id,)
        self._quorum = QuorumState(int(is_dynamic), self._node_id, epoch, -1, None, voter_ids)
        path = child(self.path, quorum_state.FILE_NAME)
        replace_file(self._seam, path, quorum_state_bytes(self._quorum))
        control = [leader_change(self._node_id)]
        if is_dynamic and self._state.voters_offset == NO_OFFSET:
            (voter,) = self._state.voters
            control += dynamic_quorum(voter)
        self._append(control_batch(control, self.next_offset, epoch, self._now_ms()), epoch)
        return epoch

    def _append_values(self, values: Sequence[bytes]) -> None:
        assert self._epoch is not None
        # until the image has all records: after an exception the next change reads the log again
        self._is_whole = False
        self._append(data_batch(values, self.next_offset, self._epoch, self._now_ms()), self._epoch)
        for offset, value in enumerate(values, self.next_offset - len(values)):
            self.image.replay(value, offset)
        self.change_count += 1
        self._is_whole = True

    def _take_snapshot(self) -> None:
        """Write a snapshot of the log's end, and delete what is in front of it (`KafkaRaftLog.deleteBeforeSnapshot`).

        Each step is durable before the next: a crash leaves the old snapshot and the whole log, or the new snapshot.
        """
        assert self._epoch is not None
        self.log.remove_deleted_files(self._now_ms())
        files, records = list_partition_directory(self.path), MetadataRecords()
        state = MetadataState(records.replay)
        state.read_snapshots(files)
        state.read_log(self.log.view())
        if records.has_open_transaction:
            return
        control = dynamic_quorum(state.voters[0]) if state.kraft_version > 0 else []
        now_ms, end_offset = self._now_ms(), self.log.log_end_offset
        content = snapshot_bytes(control, list(records.values()), now_ms, now_ms, self._epoch)
        name = f"{end_offset:020d}-{self._epoch:010d}{KRAFT_SNAPSHOT_SUFFIX}"
        replace_file(self._seam, child(self.path, name), content, temporary_suffix=_PART_SUFFIX)
        self.log.roll()
        self.log.increment_log_start_offset(end_offset)
        self.log.delete_old_segments(now_ms)
        for path in files.kraft_snapshots.values():
            self._seam.unlink(path)
        self.image.removed_topic_ids.clear()  # the log goes back as far as the snapshot
        self.image.removed_configs.clear()
        self._expect_snapshot(len(content))

    def _expect_snapshot(self, last_size: int) -> None:
        """Set the size of the log at which the next snapshot is written, given that of the last one."""
        self._snapshot_at_size = max(_SNAPSHOT_SIZE_MIN, 2 * last_size)

    def _append(self, batch: ByteArray, epoch: int) -> None:
        self.log.append_as_leader(batch, leader_epoch=epoch, origin=AppendOrigin.RAFT_LEADER)
        self.log.flush()

    def _read(self) -> MetadataState:
        """Read the newest snapshot, and the log behind it (`KafkaRaftLog.truncateToLatestSnapshot`)."""
        state = MetadataState()
        state.read_snapshots(list_partition_directory(self.path))
        if state.next_offset > self.log.log_end_offset:
            self.log.truncate_fully_and_start_at(state.next_offset)
        state.read_log(self.log.view())
        return state

    def _planned(self) -> MetadataState | None:
        """Read the log before its recovery; None if only that makes it readable."""
        try:
            return read_metadata(self.path)
        except LogstoreError:
            return None
