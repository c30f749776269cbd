"""Directory of one partition: every change that recovery and the running log make to its files, one method each.

A change is durable when its method returns, except names that were made, removed or renamed, which wait for `sync`, and
writes through a descriptor. During recovery each change is recorded with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...disk.atomic import CHECKPOINT_TEMPORARY_SUFFIX, replace_file, truncate_file
from ...disk.checkpoint_writing import leader_epoch_checkpoint_bytes
from ...disk.seam import Seam, Writable
from ...errors import DataDirectoryError
from ...layout import leader_epoch_checkpoint
from ...view.folder import PartitionFolder

# Whoever loads the directory next deletes such a leftover, a real broker too.
TEMPORARY_SUFFIX = ".tmp.deleted"


class Repair(NamedTuple):
    """One recorded change: the file's name, the action and its reason."""

    file: str
    action: str
    reason: str


class WritableFolder(PartitionFolder):
    """The files of one partition that no other process writes.

    Attributes:
        seam: for writes through descriptors.
        repairs: recorded changes in order, without files that were rewritten with the same content.
        is_recovering: changes are recorded as repairs.
    """

    def __init__(self, path: str, seam: Seam) -> None:
        super().__init__(path)
        self.seam = seam
        self.repairs: list[Repair] = []
        self.is_recovering = True
        self._names = self._synced_names = object()  # another one for each change of a name
        self._sync_failure: DataDirectoryError | None = None
        self._known_names: dict[str, bool] | None = None  # name to "is a plain file"

    def remember_names(self) -> None:
        """Cache the list of files: nobody else makes or removes any. Raises as `names`."""
        self._known_names = super()._listed()

    def forget_names(self) -> None:
        """Drop the cached list of files."""
        self._known_names = None

    def exists(self, name: str) -> bool:
        """Return whether there is such a file."""
        if self._known_names is not None:
            return name in self._known_names
        return super().exists(name)

    def create(self, name: str, reason: str) -> int:
        """Create the file, replacing one that is there; return a descriptor for writing."""
        self._remember(name, "made", reason)
        self._note_names(made=name)
        try:
            return self.seam.create(self.file(name))
        finally:
            self._names = object()

    def open_end(self, name: str, reason: str) -> int:
        """Return a descriptor for writing behind the end of the file, which is created if missing."""
        if not self.exists(name):
            return self.create(name, reason)
        self._remember(name, "extended", reason)
        return self.seam.open_at(self.file(name), self.size(name))

    def set_modified_ms(self, name: str, modified_ms: int) -> None:
        """Set the file's modification time, ms since 1970."""
        self.seam.set_modified_ms(self.file(name), modified_ms)

    def replace(self, name: str, data: Writable, reason: str, *, temporary_suffix: str = TEMPORARY_SUFFIX) -> None:
        """Replace the file's content atomically; equal content is only synced.

        During recovery the name is not synced either: after a crash recovery runs again, whatever names are there then.
        """
        if not self.exists(name):
            action = "made"
        elif self.is_recovering and self.size(name) == len(data) and self.read(name) == data:
            self.sync_file(name)
            return
        else:
            action = "rewritten"
        self._remember(name, action, reason)
        if action == "made" and not len(data):  # an empty file cannot be torn, so it needs no temporary one
            self._make_empty(name)
            return
        syncs_name = not self.is_recovering
        replace_file(self.seam, self.file(name), data, temporary_suffix=temporary_suffix, syncs_name=syncs_name)
        self._note_names(made=name, removed=name + temporary_suffix)  # a crash may have left the temporary file
        if not syncs_name:
            self._names = object()

    def replace_unsynced(self, name: str, data: Writable, reason: str) -> int:
        """Replace the file's content atomically; return its descriptor, which the caller syncs and closes."""
        self._remember(name, "rewritten" if self.exists(name) else "made", reason)
        temporary = name + TEMPORARY_SUFFIX
        descriptor = self.seam.create(self.file(temporary))
        try:
            self.seam.write(descriptor, data)
            self.seam.rename(self.file(temporary), self.file(name))
        except BaseException:
            self.seam.close(descriptor)
            raise
        finally:
            self._names = object()
        self._note_names(made=name, removed=temporary)
        return descriptor

    def _make_empty(self, name: str) -> None:
        descriptor = self.seam.create(self.file(name))
        self._names = object()
        self.seam.close(descriptor)
        self._note_names(made=name)
        if not self.is_recovering:
            self.sync()

    def write_epochs(self, epochs: Sequence[tuple[int, int]], reason: str) -> None:
        """Replace `leader-epoch-checkpoint` by these (epoch, start offset) entries; see `replace`."""
        name = leader_epoch_checkpoint.FILE_NAME
        self.replace(name, leader_epoch_checkpoint_bytes(epochs), reason, temporary_suffix=CHECKPOINT_TEMPORARY_SUFFIX)

    def truncate(self, name: str, size: int, reason: str) -> None:
        """Cut the file to `size` bytes."""
        self._remember(name, "truncated", reason)
        truncate_file(self.seam, self.file(name), size)

    def sync_file(self, name: str) -> None:
        """Sync the file's content."""
        descriptor = self.seam.open(self.file(name))
        try:
            self.seam.sync(descriptor)
        finally:
            self.seam.close(descriptor)

    def delete(self, name: str, reason: str) -> None:
        """Remove the file if it is there."""
        if not self.exists(name):
            return
        self._remember(name, "deleted", reason)
        try:
            self.seam.unlink(self.file(name))
        finally:  # after the change, or a sync of another thread could count it too early
            self._names = object()
        self._note_names(removed=name)

    def rename(self, name: str, new_name: str, reason: str) -> None:
        """Rename the file, replacing one that has the new name."""
        self._remember(name, f"renamed to {new_name}", reason)
        try:
            self.seam.rename(self.file(name), self.file(new_name))
        finally:
            self._names = object()
        self._note_names(made=new_name, removed=name)

    def sync(self) -> None:
        """Sync new, removed and changed names, from any thread; a failed sync is not tried again."""
        if self._sync_failure is not None:
            raise self._sync_failure
        names = self._names  # before the sync: a change made meanwhile must wait for the next one
        if names is not self._synced_names:
            try:
                self.seam.sync_directory(self.path)
            except DataDirectoryError as error:
                self._sync_failure = error
                raise
            self._synced_names = names  # behind the sync: until its end others must sync too

    def _listed(self) -> dict[str, bool]:
        return super()._listed() if self._known_names is None else self._known_names

    def _note_names(self, *, made: str | None = None, removed: str | None = None) -> None:
        if self._known_names is not None:
            if removed is not None:
                self._known_names.pop(removed, None)
            if made is not None:
                self._known_names[made] = True

    def _remember(self, name: str, action: str, reason: str) -> None:
        if self.is_recovering:
            self.repairs.append(Repair(name, action, reason))
