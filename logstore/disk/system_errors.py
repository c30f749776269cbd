"""System errors as `DataDirectoryError`, with Java's exception class and message.

Java opens files in two ways, which word the same error differently.

>>> nio_error(FileNotFoundError(2, "No such file or directory"), "a/x.log").message
'a/x.log'
>>> random_access_error(FileNotFoundError(2, "No such file or directory"), "a/x.log").message
'a/x.log (No such file or directory)'
"""

from __future__ import annotations

import errno
import os
import stat

from ..errors import DataDirectoryError
from .names import is_url

# A part of a store's reason, and what to do; the first is where machines of a cloud ask for their credentials, last.
_ADVICE = {
    "://169.254.": "no credentials are in the environment, nor has this machine any: set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY (profiles in ~/.aws are not read), GOOGLE_APPLICATION_CREDENTIALS, or "
    "AZURE_STORAGE_ACCOUNT_KEY",
    "InvalidObjectState": "the object is archived: restore it first, as by `aws s3api restore-object`",
    "": "look at the bucket, the endpoint, the region and the credentials",
}


def nio_error(error: OSError, path: str) -> DataDirectoryError:
    """Convert the error of a file opened through `java.nio.file` (`sun.nio.fs.UnixException`)."""
    if is_url(path):
        return _object_error(error, path)
    if error.errno == errno.ENOENT:
        return DataDirectoryError(path, found=_reason(error), java_class="java.nio.file.NoSuchFileException")
    if error.errno == errno.EACCES:
        return DataDirectoryError(path, found=_reason(error), java_class="java.nio.file.AccessDeniedException")
    message, advice = f"{path}: {_reason(error)}", None
    if error.errno == errno.ELOOP:
        message += " or unable to access attributes of symbolic link"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        advice = "raise the limit of open files (`ulimit -n`), or close files elsewhere in the program"
    return DataDirectoryError(message, advice=advice, java_class="java.nio.file.FileSystemException")


def random_access_error(error: OSError, path: str) -> DataDirectoryError:
    """Convert the error of a file opened with `java.io.RandomAccessFile`, as Kafka opens indexes."""
    if is_url(path):
        return _object_error(error, path)
    return DataDirectoryError(f"{path} ({_reason(error)})", java_class="java.io.FileNotFoundException")


def _object_error(error: OSError, url: str) -> DataDirectoryError:
    if error.errno == errno.ENOENT:
        text, advice = "There is no such object", "look at the name: a directory is the beginning of names of objects"
        return DataDirectoryError(text, path=url, found="nothing", advice=advice)
    text = "The store refuses to read" if error.errno == errno.EACCES else "The store cannot be read"
    advice = next(advice for part, advice in _ADVICE.items() if part in _reason(error))
    return DataDirectoryError(text, path=url, found=_reason(error), advice=advice)


def refuse_fifo(mode: int, path: str) -> None:
    """Raise DataDirectoryError for a FIFO, which reads as an empty file; Java would wait for a writer."""
    if stat.S_ISFIFO(mode):
        advice = "put the file itself in its place"
        raise DataDirectoryError("This is a FIFO", path=path, expected="a file", found="a FIFO", advice=advice)


def io_error(error: OSError, descriptor: int = -1) -> DataDirectoryError:
    """Convert the error of a call on an open file, such as a full disk; names the file where the system does."""
    try:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:  # not Linux, or not open
        path = None
    return DataDirectoryError(_reason(error), path=path, java_class="java.io.IOException")


def is_missing(error: BaseException) -> bool:
    """Return whether a file could not be opened because there is none of that name."""
    return isinstance(error.__cause__, FileNotFoundError)


def is_refused(error: BaseException) -> bool:
    """Return whether the system has refused to open or read what is there, or could not."""
    cause = error.__cause__
    return isinstance(cause, OSError) and not isinstance(cause, FileNotFoundError)


def path_in(error: BaseException) -> str | None:
    """Return the path that an error names, or that the system has refused: `nio_error` has it in its message."""
    path = getattr(error, "path", None) or getattr(error.__cause__, "filename", None)
    return None if path is None else str(path)


def _reason(error: OSError) -> str:
    return error.strerror or os.strerror(error.errno or 0)
