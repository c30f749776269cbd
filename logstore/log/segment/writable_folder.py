"""Directory of one partition: every change that recovery and the running log make to its files, one method each.

A recovery plans its changes: between `plan` and `apply` every method changes a plan, and answers by it
(`planned_changes`). Otherwise a change is durable when its method returns, except names that were made, removed or
renamed, which wait for `sync`, and writes through a descriptor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from ...config.kafka_version import NEWEST, KafkaVersion
from ...disk.atomic import CHECKPOINT_TEMPORARY_SUFFIX, replace_file, truncate_file
from ...disk.mapped import FileInMemory, MappedFile, segment_size
from ...disk.open_files import OPEN_FILES, OpenFiles
from ...disk.seam import Seam, Writable
from ...errors import DataDirectoryError
from ...layout import leader_epoch_checkpoint
from ...layout.checkpoint_writing import leader_epoch_checkpoint_bytes
from ...layout.file_names import LOG_SUFFIX
from ...view.folder import PartitionFolder
from .planned_changes import PlannedChanges, PlannedFile

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
        open_files: the budget of files that stay open.
        planned: the changes that are planned; None outside of a recovery.
        repairs: planned changes in order, without files that get the same content.
    """

    def __init__(self, path: str, seam: Seam, kafka: KafkaVersion = NEWEST, open_files: OpenFiles = OPEN_FILES) -> None:
        super().__init__(path, kafka)
        self.seam, self.open_files = seam, open_files
        self.planned: PlannedChanges | None = None
        self.repairs: list[Repair] = []
        self._names = self._synced_names = object()  # another one for each change of a name
        self._sync_failure: DataDirectoryError | None = None

    def plan(self) -> PlannedChanges:
        """Plan all changes from now on, and return the plan; nobody else makes or removes files. Raises as `names`."""
        if self.planned is None:
            self.planned = PlannedChanges(super()._listed())
        return self.planned

    def apply(self) -> None:
        """Make the planned changes in order, and compare the files with the plan.

        A DataDirectoryError means that a call failed, and the rest was not done, or that the files are others.
        """
        assert self.planned is not None
        planned, self.planned = self.planned, None
        for step in planned.steps:
            step()
        if self.repairs:
            self._require_planned(planned)

    def file(self, name: str) -> str:
        """Return the path of the file; of a planned one, where its bytes are now."""
        planned = self._planned(name)
        return super().file(name if planned is None or planned.source is None else planned.source)

    def exists(self, name: str) -> bool:
        """Return whether there is such a file."""
        if self.planned is not None:
            return name in self.planned.files or name in self.planned.others
        return super().exists(name)

    def read(self, name: str) -> bytes:
        """Return the content; raises DataDirectoryError."""
        planned = self._planned(name)
        if planned is not None and planned.content is not None:
            return bytes(planned.content)
        return super().read(name)[: None if planned is None else planned.size]

    def size(self, name: str) -> int:
        """Return the size of the file in bytes; raises DataDirectoryError."""
        size = self._planned_size(name)
        return super().size(name) if size is None else size

    def log_size(self, name: str) -> int:
        """Return the size of a `.log`; raises DataDirectoryError also if it is larger than a segment may be."""
        size = self._planned_size(name)
        return segment_size(self.file(name)) if size is None else size

    def map(self, name: str, room: int = 0) -> MappedFile | FileInMemory:
        """Map the file, with `room` behind it; it may be longer than `size`. Raises DataDirectoryError."""
        planned = self._planned(name)
        if planned is not None and planned.content is not None:
            return FileInMemory(self.file(name), np.frombuffer(planned.content, np.uint8))
        return MappedFile(self.file(name), room=room)

    def note_replaced(self, name: str) -> None:
        """Note that a recovery puts cleaned segments in the place of the file, if it is a `.log` that is there."""
        if self.planned is not None and name.endswith(LOG_SUFFIX) and self.exists(name):
            self.planned.replaced.add(name)

    def has_new_content(self, name: str) -> bool:
        """Return whether new content is planned for the file."""
        planned = self._planned(name)
        return planned is not None and planned.content is not None

    def create(self, name: str) -> int:
        """Create the file, replacing one that is there; return a descriptor for writing. Never planned."""
        assert self.planned is None
        try:
            return self.seam.create(self.file(name))
        finally:
            self._names = object()

    def open_end(self, name: str) -> int:
        """Return a descriptor for writing behind the end of the file, which is created if missing. Never planned."""
        if not self.exists(name):
            return self.create(name)
        return self.seam.open_at(self.file(name), self.size(name))

    def set_modified_ms(self, name: str, modified_ms: int) -> None:
        """Set the file's modification time, ms since 1970."""
        self.seam.set_modified_ms(self.file(name), modified_ms)

    def replace(self, name: str, data: Writable, reason: str, *, temporary_suffix: str = TEMPORARY_SUFFIX) -> None:
        """Replace the file's content atomically.

        In a recovery equal content is only synced, and the name is not synced: after a crash recovery runs again,
        whatever names are there then.
        """
        is_new = not self.exists(name)
        if self.planned is None and is_new and not len(data):  # an empty file cannot be torn
            self._make_empty(name)
            self.sync()
            return
        if self.planned is None:
            self._replace(name, data, temporary_suffix, syncs_name=True)
            return
        if not is_new and self.size(name) == len(data) and self.read(name) == data:
            self.sync_file(name)
            return
        self.planned.put(name, data, reason)
        self.planned.remove(name + temporary_suffix)  # a crash may have left the temporary file
        if is_new and not len(data):
            self._plan(name, "made", reason, partial(self._make_empty, name))
            return
        action = "made" if is_new else "rewritten"
        self._plan(name, action, reason, partial(self._replace, name, data, temporary_suffix, syncs_name=False))

    def replace_unsynced(self, name: str, data: Writable) -> int:
        """Replace the file's content atomically; return its descriptor, which the caller syncs and closes."""
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
        return descriptor

    def write_epochs(self, epochs: Sequence[tuple[int, int]], reason: str) -> None:
        """Replace `leader-epoch-checkpoint` by these (epoch, start offset) entries; see `replace`."""
        name = leader_epoch_checkpoint.FILE_NAME
        self.replace(name, leader_epoch_checkpoint_bytes(epochs), reason, temporary_suffix=CHECKPOINT_TEMPORARY_SUFFIX)

    def truncate(self, name: str, size: int, reason: str) -> None:
        """Cut the file to `size` bytes."""
        if self.planned is None:
            truncate_file(self.seam, self.file(name), size)
            return
        self.planned.cut(name, size, reason)
        self._plan(name, "truncated", reason, partial(self.truncate, name, size, reason))

    def sync_file(self, name: str) -> None:
        """Sync the file's content."""
        if self.planned is not None:
            self.planned.steps.append(partial(self.sync_file, name))
            return
        descriptor = self.seam.open(self.file(name))
        try:
            self.seam.sync(descriptor)
        finally:
            self.seam.close(descriptor)

    def delete(self, name: str, reason: str) -> None:
        """Remove the file if it is there."""
        if not self.exists(name):
            return
        if self.planned is not None:
            self.planned.remove(name, reason)
            self._plan(name, "deleted", reason, partial(self._unlink, name))
            return
        self._unlink(name)

    def rename(self, name: str, new_name: str, reason: str) -> None:
        """Rename the file, replacing one that has the new name."""
        if self.planned is not None:
            self.planned.rename(name, new_name, reason)
            self._plan(name, f"renamed to {new_name}", reason, partial(self.rename, name, new_name, reason))
            return
        try:
            self.seam.rename(self.file(name), self.file(new_name))
        finally:
            self._names = object()

    def sync(self) -> None:
        """Sync new, removed and changed names, from any thread; a failed sync is not tried again."""
        if self.planned is not None:
            self.planned.steps.append(self.sync)
            return
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

    def _replace(self, name: str, data: Writable, temporary_suffix: str, *, syncs_name: bool) -> None:
        replace_file(self.seam, self.file(name), data, temporary_suffix=temporary_suffix, syncs_name=syncs_name)
        if not syncs_name:
            self._names = object()

    def _make_empty(self, name: str) -> None:
        descriptor = self.seam.create(self.file(name))
        self._names = object()
        self.seam.close(descriptor)

    def _unlink(self, name: str) -> None:
        try:
            self.seam.unlink(self.file(name))
        finally:  # after the change, or a sync of another thread could count it too early
            self._names = object()

    def _listed(self) -> dict[str, bool]:
        if self.planned is None:
            return super()._listed()
        return dict.fromkeys(self.planned.files, True) | dict.fromkeys(self.planned.others, False)

    def _planned(self, name: str) -> PlannedFile | None:
        return None if self.planned is None else self.planned.files.get(name)

    def _planned_size(self, name: str) -> int | None:
        """Return the size of a file that will be changed; None of one that will stay as it is."""
        planned = self._planned(name)
        if planned is None:
            return None
        return planned.size if planned.content is None else len(planned.content)

    def _plan(self, name: str, action: str, reason: str, step: Callable[[], object]) -> None:
        assert self.planned is not None
        self.repairs.append(Repair(name, action, reason))
        self.planned.steps.append(step)

    def _require_planned(self, planned: PlannedChanges) -> None:
        """Raise DataDirectoryError unless the directory has the planned files, and those that changed their sizes."""
        found = self.names()
        different = sorted(set(found) ^ set(planned.files))
        for name, file in planned.files.items():
            size = file.size if file.content is None else len(file.content)
            if not different and size is not None and self.size(name) != size:
                different.append(name)
        if different:
            raise DataDirectoryError(
                "The recovery did not leave the files that it planned",
                path=self.file(different[0]),
                expected="the planned file" if different[0] in planned.files else "no such file",
                found="another one" if different[0] in found else "none",
                advice="another process changes the directory: stop it, then recover again",
            )
