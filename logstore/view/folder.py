"""Directory of one partition, for reading."""

from __future__ import annotations

import os

from ..config.kafka_version import NEWEST, KafkaVersion
from ..disk import paths
from ..disk.files import read_file
from ..disk.names import child
from ..disk.system_errors import nio_error
from ..errors import DataDirectoryError


class PartitionFolder:
    """The files of one partition, by name; another process may write them.

    Attributes:
        path: absolute.
        kafka: by whose rules the files are read.
    """

    def __init__(self, path: str, kafka: KafkaVersion = NEWEST) -> None:
        """Keep the path; nothing is read yet."""
        self.path = path
        self.kafka = kafka

    def file(self, name: str) -> str:
        """Return the path of the file."""
        return child(self.path, name)

    def exists(self, name: str) -> bool:
        """Return whether there is such a file."""
        return paths.exists(self.file(name))

    def names(self) -> list[str]:
        """Return the names of all plain files, sorted."""
        return sorted(name for name, is_file in self._listed().items() if is_file)

    def read(self, name: str) -> bytes:
        """Return the content; raises DataDirectoryError."""
        return read_file(self.file(name))

    def size(self, name: str) -> int:
        """Return the size of the file in bytes; raises DataDirectoryError."""
        try:
            return paths.stat(self.file(name)).st_size
        except OSError as error:
            raise nio_error(error, self.file(name)) from error

    def modified_ms(self, name: str) -> int:
        """Return the modification time in ms, 0 without the file (`File.lastModified`); raises DataDirectoryError."""
        try:
            return paths.stat(self.file(name)).st_mtime_ns // 1_000_000
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise nio_error(error, self.file(name)) from error

    def _listed(self) -> dict[str, bool]:
        """Return a dict from name to "is a plain file"."""
        names = {}
        try:
            for entry in paths.scan(self.path):
                if entry.is_symlink():
                    raise DataDirectoryError(
                        "A symbolic link among the files of a partition is not followed",
                        path=entry.path,
                        found=os.readlink(entry.path),
                        advice="put the file itself in place of the link",
                    )
                names[entry.name] = entry.is_file(follow_symlinks=False)
        except OSError as error:
            if isinstance(error, DataDirectoryError):
                raise
            raise nio_error(error, self.path) from error
        return names
