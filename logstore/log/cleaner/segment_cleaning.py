"""Cleaning a group of segments into one that replaces them (`Cleaner.cleanSegments`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import LogCleaningAbortedError, OffsetOverflowError
from ...layout.file_names import LOG_SUFFIX
from ..load.split import split_overflowed_segment
from ..maintain.swap import delete_snapshots, replace_segments
from ..segment.log_segment import LogSegment
from ..state import LogState
from .aborting import reading, require_going_on, require_unchanged
from .cleaned_files import CleanedFiles
from .decisions import Round, retention
from .scanning import require_record_sizes, tables
from .table_cleaning import TableCleaning
from .transactions import CleanedTransactions, aborted_transactions


class SegmentCleaning:
    """The groups of one round, in order."""

    def __init__(self, state: LogState, round_: Round, legacy_delete_horizon_ms: int, checked: set[int]) -> None:
        """Prepare a round's cleaning of segments.

        Args:
            legacy_delete_horizon_ms: tombstones of magic 0 and 1 stay in files modified after it.
            checked: base offsets of segments whose checksums were verified.
        """
        self._state = state
        self._round = round_
        self._legacy_delete_horizon_ms = legacy_delete_horizon_ms
        self._checked = checked
        self._transactions = CleanedTransactions()

    def clean_group(self, group: Sequence[LogSegment]) -> None:
        """Clean closed segments, ascending, into one.

        Raises:
            LogCleaningAbortedError: the log lost segments meanwhile, or one had to be split: its offsets were too high.
            DataDirectoryError: nothing was replaced; a KafkaStorageError if a part was.
            LogstoreError: a batch cannot be read or built; nothing was replaced.
        """
        with reading(self._state, group):
            cleaned = self._write(group)
        self._replace(cleaned, group)

    def _write(self, group: Sequence[LogSegment]) -> CleanedFiles:
        state, current = self._state, group[0]
        cleaned = CleanedFiles(state.directory, group[0].base_offset, state.config)
        try:
            for number, current in enumerate(group):
                following = group[number + 1] if number + 1 < len(group) else None
                end_offset = current.next_offset() if following is None else following.base_offset
                self._clean_segment(current, end_offset, cleaned)
            cleaned.finish(group[-1].modified_ms)
        except OffsetOverflowError as error:
            cleaned.discard()
            self._split(current)
            raise LogCleaningAbortedError(
                f"Caught segment overflow error during cleaning: {error.message}",
                path=current.path(LOG_SUFFIX),
                found="offsets that one segment cannot hold; it is split now",
                advice="clean the log again",
            ) from error
        except BaseException:
            cleaned.discard()
            raise
        return cleaned

    def _clean_segment(self, segment: LogSegment, end_offset: int, cleaned: CleanedFiles) -> None:
        transactions = self._transactions
        with self._state.lock:
            require_unchanged(self._state, [segment])
            transactions.add_aborted(aborted_transactions(self._state, segment.base_offset, end_offset))
        keeps_legacy_tombstones = segment.modified_ms > self._legacy_delete_horizon_ms
        for data, table in tables(segment, is_checked=segment.base_offset in self._checked):
            require_going_on(self._state)
            is_discardable = transactions.discardable(data, table)
            retained = retention(self._round, table, is_discardable, keeps_legacy_tombstones=keeps_legacy_tombstones)
            is_read = ~retained.is_discarded
            require_record_sizes(data, table, np.flatnonzero(is_read), self._state.rules.record_size_max)
            cleaned.add(TableCleaning(self._round, data, table, retained).pieces())
            cleaned.add_aborted(transactions.take_needed())

    def _replace(self, cleaned: CleanedFiles, group: Sequence[LogSegment]) -> None:
        state = self._state
        with state.lock:
            # checked under the lock that the swap holds too: retention cannot come between
            try:
                require_unchanged(state, group)
            except LogCleaningAbortedError:
                cleaned.discard()
                raise
            with state.failure.poisoned_by("Error while replacing segments of"):
                replace_segments(state, cleaned.base_offset, group, self._round.now_ms)

    def _split(self, segment: LogSegment) -> None:
        state = self._state
        with state.lock:
            require_unchanged(state, [segment])
            with state.failure.poisoned_by("Error while splitting a segment of"):
                if not split_overflowed_segment(state.segments, segment, state.config):
                    delete_snapshots(state, [segment], self._round.now_ms)
