"""Segment of a directory that another process writes, up to where its batches are known to be whole.

The `.log` is opened when the segment is first listed, and stays readable under any name. It is read, never mapped: a
broker that recovers, or follows another leader, cuts files in place, and touching a mapping behind the new end kills
the process (SIGBUS). A segment that is followed, because it is or was the last one, is indexed here; for any other the
index files are used, if they belong to the same `.log`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..columns.batch_table import BatchTable, ByteArray
from ..disk.file_range import FileIdentity, FileRange, UnheldFile, file_identity
from ..disk.files import read_if_present
from ..disk.mapped import segment_size
from ..disk.names import is_url
from ..disk.system_errors import is_missing
from ..errors import DataDirectoryError
from ..folds import segment_indexes
from ..folds.aborted_transactions import AbortedTransactions
from ..folds.segment_indexes import SegmentIndexes
from ..kernels.scan import batches as fields
from ..layout.batch import HEADER_SIZE
from ..layout.file_names import LOG_SUFFIX, OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX
from ..layout.offset_index import ENTRY_SIZE as OFFSET_ENTRY_SIZE
from ..layout.offset_index import OffsetIndex, parse_offset_index
from ..layout.time_index import ENTRY_SIZE as TIME_ENTRY_SIZE
from ..layout.time_index import TimeIndex, parse_time_index
from ..layout.transaction_index import parse_transaction_index
from .batch_search import last_offset_in
from .folder import PartitionFolder
from .segment import Segment

_INDEX_SIZE_MAX = 2**31  # bytes; no limit, as nothing is written
_TAIL_SIZE = 64  # bytes of the last batch, which identify it


class DirectoryChangedError(Exception):
    """A file was renamed, replaced or removed since the directory was listed; list it again."""


@contextmanager
def changed_if_missing() -> Iterator[None]:
    """Raise DirectoryChangedError if the block finds that a listed file is missing."""
    try:
        yield
    except DataDirectoryError as error:
        if is_missing(error):
            raise DirectoryChangedError from error
        raise


class LiveSegment(Segment):
    """One segment of another process's log.

    Attributes:
        identity: of the `.log`.
    """

    def __init__(
        self, directory: PartitionFolder, base_offset: int, names: Mapping[str, str], *, holds_file: bool = True
    ) -> None:
        """Open the `.log`, and read the `.txnindex` that belongs to it.

        Args:
            names: of the files, by suffix; see `follower.segment_names`.
            holds_file: keep the `.log` open, so that it can be read under another name or after its removal.

        Raises:
            DirectoryChangedError: a file changed meanwhile.
            DataDirectoryError: a file cannot be read.
        """
        self._names = dict(names)
        self._tail: bytes = b""
        before = self._identities(directory)
        with changed_if_missing():
            file = (FileRange if holds_file else UnheldFile)(directory.file(self._names[LOG_SUFFIX]))
            segment_size(file.path)  # refuses what is no segment's file
            super().__init__(directory, base_offset, "", file.size, file=file)
            self._transaction_index = self._read_transaction_index()
        self.identity = file.identity
        # the same files as before the opening: else the index may belong to another `.log`
        if before != self._identities(directory):
            raise DirectoryChangedError

    def _identities(self, directory: PartitionFolder) -> list[FileIdentity | None]:
        return [file_identity(directory.file(self._names[kind])) for kind in sorted(self._names)]

    def file_name(self, kind: str) -> str:
        """Return the name of one of the segment's files, as it was listed."""
        return self._names.get(kind) or super().file_name(kind)

    def _content(self, kind: str) -> bytes:
        # not by `has`: only a file that was listed was checked to belong to this `.log`
        return self.directory.read(self.file_name(kind)) if kind in self._names else b""

    def _read_offset_index(self) -> OffsetIndex:
        # a file that a writer has open ends with preallocated zeros
        content = without_zero_tail(self._content_beside_log(OFFSET_INDEX_SUFFIX), OFFSET_ENTRY_SIZE)
        index = parse_offset_index(content, base_offset=self.base_offset, path=self.path(OFFSET_INDEX_SUFFIX))
        # three entries are enough: a cleaner replaces the whole file; one in a store, where each look is a request
        slots = {index.entry_count // 2}
        if not is_url(self.directory.path):
            slots |= {0, index.entry_count - 1}
        is_ours = all(self._is_of_log(index, slot) for slot in slots)
        return index if is_ours else parse_offset_index(b"", base_offset=self.base_offset, path="")

    def _read_time_index(self) -> TimeIndex:
        content = without_zero_tail(self._content_beside_log(TIME_INDEX_SUFFIX), TIME_ENTRY_SIZE)
        return parse_time_index(content, base_offset=self.base_offset, path=self.path(TIME_INDEX_SUFFIX))

    def rename(self, names: Mapping[str, str]) -> None:
        """Note the new names of the same files."""
        self._names = dict(names)

    def follow(self, offset: int) -> None:
        """Start to read the segment's batches; the `.txnindex` is trusted for what was aborted below `offset`.

        Raises CorruptIndexError if the file is of an unknown version.
        """
        self.aborted = AbortedTransactions.resume(self.transaction_index)
        self.aborted.truncate_to(offset)
        self._transaction_index = parse_transaction_index(b"", path=self.path(TRANSACTION_INDEX_SUFFIX))
        self.indexes = SegmentIndexes(self.base_offset, index_size_max=_INDEX_SIZE_MAX)
        self.size = 0

    def add(self, data: ByteArray, table: BatchTable, row_end: int) -> None:
        """Add the first rows of a table of what lies behind the known batches of a followed segment.

        Args:
            data: uint8, what the table was scanned from.

        Raises:
            OffsetOverflowError, InvalidOffsetError: offsets that no segment can have.
        """
        assert self.indexes is not None
        end = int(table.position[row_end - 1] + table.size[row_end - 1])
        table.matrix[fields.POSITION, :row_end] += self.size
        segment_indexes.step(self.indexes, table, 0, row_end)
        self._tail = data[max(end - _TAIL_SIZE, 0) : end].tobytes()
        self.size += end

    def is_still_in(self, file: FileRange) -> bool:
        """Return whether the file still has the last known batch: the log may have been cut since."""
        size = len(self._tail)
        return file.size >= self.size and file.read(self.size - size, size).tobytes() == self._tail

    def _is_of_log(self, index: OffsetIndex, slot: int) -> bool:
        """Return whether an index entry leads to the batch it names."""
        if not 0 <= slot < index.entry_count:
            return True
        position = int(index.positions[slot])
        if not 0 <= position < self.size:
            return False
        header = self.read(position, min(HEADER_SIZE, self.size - position))
        return last_offset_in(header) == int(index.offsets[slot])

    def _content_beside_log(self, kind: str) -> bytes:
        """Read an index while the `.log` still has its name; else return nothing, and searches scan."""
        content = read_if_present(self.path(kind)) or b""
        # a cleaner renames the old `.log` before any new index gets its name
        return content if file_identity(self.path(LOG_SUFFIX)) == self.identity else b""


def without_zero_tail(content: bytes, entry_size: int) -> bytes:
    """Return the entries of an index up to the last nonzero one; preallocated zeros follow it.

    >>> without_zero_tail(bytes([0, 1, 0, 0, 0, 0, 0]), 2)
    b'\\x00\\x01'
    """
    size = len(content.rstrip(b"\0"))
    return content[: (size + entry_size - 1) // entry_size * entry_size]
