"""Objects of a store (S3, Google, Azure, HTTP), looked at and read as files are, by URL.

`stat`, `scan` and `exists` answer as those of `os` do, and failures are OSErrors, so what reads a directory by
`disk.paths` reads a bucket too. A listing is remembered: sizes and ETags of what it named cost no further request, and
a read asks for the ETag it saw, so that an object which was replaced meanwhile is an error and never a mixture.

obstore does the requests and tries again what may pass (503, timeouts, lost connections). Its threads do not survive
`os.fork`: a store belongs to the process that opened it, and a child of a process that has read objects is refused.
"""

from __future__ import annotations

import errno
import os
import re
import stat as modes
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import DataDirectoryError, UsageError
from .names import child, file_name, java_file, parent

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

PIECE_SIZE = 4 * 1024 * 1024  # bytes of one request; a larger read is several, side by side
AHEAD_SIZE_MAX = 16 * 1024 * 1024
THREAD_COUNT = 8  # requests of a process at once
RETRIES: dict[str, Any] = {"max_retries": 8, "retry_timeout": timedelta(seconds=120)}
TRY_COUNT = 4  # of a request whose body ended early
_SCHEMES = ("s3", "s3a", "gs", "abfss", "http", "https")
_ROOT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://[^/]*")
_NS = 1_000_000_000
_ADVICE = {
    "hdfs": "copy it with `hdfs dfs -get`, or mount it and name the path",
    "file": "name the path itself",
}


class ObjectStatus(NamedTuple):
    """What `os.stat` would say: of an object, or of the prefix of some, which is a directory here.

    Attributes:
        st_ino: the ETag, which another content does not have; empty for a directory.
        st_mtime_ns: for a directory that of its newest object, if that is known.
    """

    st_mode: int
    st_size: int
    st_mtime_ns: int
    st_ino: str
    st_dev: str

    @property
    def st_mtime(self) -> float:
        """Modification time, s."""
        return self.st_mtime_ns / _NS


class ObjectEntry(NamedTuple):
    """One entry of a listing, as an `os.DirEntry`."""

    name: str
    path: str
    status: ObjectStatus

    def is_symlink(self) -> bool:
        """Return False: a store has no links."""
        return False

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the entry is a prefix of objects."""
        return modes.S_ISDIR(self.status.st_mode)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Return whether the entry is an object."""
        return not self.is_dir()

    def stat(self, *, follow_symlinks: bool = True) -> ObjectStatus:
        """Return the status that the listing gave."""
        return self.status


Entries = Callable[[str], list[ObjectEntry]]

_listed: dict[str, dict[str, ObjectEntry]] = {}  # directory → its entries by name, of the last listing
_options: dict[str, str] = {}
_process: list[int] = []  # the one that has used obstore


def configure(options: Mapping[str, str]) -> None:
    """Set obstore's options of stores that are opened from now on, such as `aws_endpoint`, beside the environment's."""
    if options != _options:
        _options.clear()
        _options.update(options)
        _store.cache_clear()


def _obstore() -> Any:
    if not _process:
        _process.append(os.getpid())
    elif _process[0] != os.getpid():
        raise UsageError(
            "This process was forked from one that has read from an object store, whose threads are gone here",
            advice="start processes by `spawn` or `forkserver`, or fork before the first URL is read",
        )
    try:
        import obstore
    except ImportError as error:
        raise UsageError("Reading URLs needs obstore", advice="pip install 'logstore-kafka[objects]'") from error
    return obstore


def _root_of(url: str) -> tuple[str, str]:
    """Return the scheme of a URL, and the URL of its bucket, container or host."""
    found = _ROOT.match(url)
    scheme = "" if found is None else found[1].lower()
    if found is None or scheme not in _SCHEMES:
        expected = "a path, or " + " ".join(f"{name}://" for name in _SCHEMES)
        raise UsageError(
            f"{scheme}:// is not read",
            path=url,
            expected=expected,
            advice=_ADVICE.get(scheme, "copy it to one of them"),
        )
    return scheme, found[0]


@cache
def _store(scheme: str, root: str) -> ObjectStore:
    _obstore()
    from obstore.store import HTTPStore, from_url

    names = ("aws_endpoint", "aws_endpoint_url", "endpoint", "endpoint_url")
    endpoints = [root, *(value for name in names if (value := _options.get(name) or os.environ.get(name.upper())))]
    given: dict[str, Any] = {
        "client_options": {"allow_http": any(endpoint.startswith("http://") for endpoint in endpoints)},
        "retry_config": RETRIES,
    }
    if scheme in ("http", "https"):
        return HTTPStore.from_url(root, **given)
    config: Any = dict(_options)
    store: ObjectStore = from_url(root, config=config, **given)
    return store


def _call(work: Callable[..., T], url: str) -> T:
    """Call `work` with the store and the key of a URL; raise OSError with the store's reason."""
    obstore, (scheme, root) = _obstore(), _root_of(url)
    try:
        return work(_store(scheme, root), url[len(root) + 1 :])
    except (obstore.exceptions.BaseError, FileNotFoundError, ValueError) as error:
        raise _os_error(error, url) from error


def _os_error(error: Exception, url: str) -> OSError:
    text = str(error).partition("\n\nDebug source:")[0].strip()
    told = [found.strip() for found in re.findall(r"<(?:Code|Message)>([^<]*)</", text)]
    reason = ": ".join(dict.fromkeys(told)) or re.sub(r"\s+", " ", text)
    tries = re.search(r"after \d+ retries", text)
    reason = f"{reason}, {tries[0]}" if tries and told else reason
    kind = type(error).__name__
    if isinstance(error, FileNotFoundError):
        number = errno.ENOENT
    elif kind in ("PermissionDeniedError", "UnauthenticatedError"):
        number = errno.EACCES
    else:
        number = errno.EIO
    return OSError(number, reason, url)


def _status(meta: Mapping[str, Any], url: str) -> ObjectStatus:
    modified_ns = int(meta["last_modified"].timestamp() * 1000) * (_NS // 1000)
    return ObjectStatus(modes.S_IFREG, meta["size"], modified_ns, meta["e_tag"] or "", url)


def stat(url: str) -> ObjectStatus:
    """Return the status of an object or of a prefix of some, by the last listing of its directory if there is one."""
    entry = _listed.get(parent(url), {}).get(file_name(url))
    if entry is not None:
        return entry.status
    if parent(url) in _listed and parent(url) != url:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    if parent(url) != url:
        try:
            return _status(_call(_obstore().head, url), url)
        except FileNotFoundError:
            pass
    return _directory_status(url, scan(url))


def _directory_status(url: str, entries: list[ObjectEntry]) -> ObjectStatus:
    newest_ns = max((entry.status.st_mtime_ns for entry in entries), default=0)
    return ObjectStatus(modes.S_IFDIR, 0, newest_ns, "", url)


def scan(url: str) -> list[ObjectEntry]:
    """List the objects and prefixes right below a URL, by name; raise FileNotFoundError if there are none."""
    found = _call(lambda store, key: _obstore().list_with_delimiter(store, key or None), url)
    base = _root_of(url)[1]
    files = [child(base, meta["path"]) for meta in found["objects"]]
    entries = [
        ObjectEntry(file_name(path), path, _status(meta, path))
        for path, meta in zip(files, found["objects"], strict=True)
    ]
    for prefix in found["common_prefixes"]:
        path = child(base, prefix)
        entries.append(ObjectEntry(file_name(path), path, _directory_status(path, [])))
    return _remember(url, entries)


def _remember(url: str, entries: list[ObjectEntry]) -> list[ObjectEntry]:
    if not entries:
        _listed.pop(url, None)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    _listed[url] = {entry.name: entry for entry in entries}
    return sorted(entries)


def scan_tree(url: str) -> Entries:
    """List all objects below a URL at once, and return a function that lists directories of it as `scan` does."""
    url, base = java_file(url), _root_of(url)[1]
    found = _call(lambda store, key: _obstore().list(store, key or None, chunk_size=1000).collect(), url)
    directories: dict[str, dict[str, ObjectEntry]] = {url: {}}
    for meta in found:
        path = child(base, meta["path"])
        entry = ObjectEntry(file_name(path), path, _status(meta, path))
        directories.setdefault(parent(path), {})[entry.name] = entry
    for path in list(directories):
        while path != url:
            above, status = parent(path), _directory_status(path, [*directories[path].values()])
            directories.setdefault(above, {})[file_name(path)] = ObjectEntry(file_name(path), path, status)
            path = above
    for path, entries in directories.items():
        _remember(path, [*entries.values()])

    def listed(path: str) -> list[ObjectEntry]:
        entries = directories.get(java_file(path))
        return scan(path) if entries is None else sorted(entries.values())

    return listed


def _fetch(url: str, etag: str, start: int, end: int) -> memoryview:
    """Return bytes of an object, by one request; try again if its body ends early.

    Raises:
        DataDirectoryError: the object has another ETag.
        OSError: the store's reason.
    """
    obstore = _obstore()
    options = {"range": (start, end), **({"if_match": etag} if etag else {})}

    def get(store: ObjectStore, key: str) -> memoryview:
        result = obstore.get(store, key, options=options)
        found = result.meta["e_tag"] or ""
        if found != etag:  # a server that does not look at If-Match
            raise _replaced(url, etag, found)
        return memoryview(result.bytes())

    for attempt in range(TRY_COUNT):
        try:
            data = _call(get, url)
        except OSError as error:
            if type(error.__cause__).__name__ == "PreconditionError":
                forget(url)
                raise _replaced(url, etag, stat(url).st_ino) from error
            if isinstance(error, FileNotFoundError):
                forget(url)
            raise
        if len(data) == end - start:
            return data
        reason = f"{len(data)} of {end - start} bytes came, in {attempt + 1} tries"
    raise OSError(errno.EIO, reason, url)


def _replaced(url: str, etag: str, found: str) -> DataDirectoryError:
    forget(url)
    return DataDirectoryError(
        "The object was replaced while it was read",
        path=url,
        expected=f"ETag {etag}",
        found=f"ETag {found}",
        advice="read it again; who writes to a prefix that is read should write under new names",
    )


def forget(url: str) -> None:
    """Forget the listing of the directory that the object is in."""
    _listed.pop(parent(url), None)


@cache
def _pool(_process_id: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREAD_COUNT, "objects")


class ObjectFile:
    """An object that is read by ranges; all bytes are of one ETag.

    Attributes:
        size: bytes.
        etag: of the object when it was listed, or opened.
    """

    def __init__(self, url: str) -> None:
        """Look at the object; raises OSError."""
        status = stat(url)
        if modes.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), url)
        self._url, self.size, self.etag = url, status.st_size, status.st_ino

    def read(self, position: int, size: int) -> memoryview:
        """Return bytes from `position`, fewer at the end; several requests side by side if they are many."""
        end = min(position + size, self.size)
        starts = range(position, end, PIECE_SIZE)
        if len(starts) < 2:
            return self.fetch(position, end) if position < end else memoryview(b"")
        ends = [min(start + PIECE_SIZE, end) for start in starts]
        return memoryview(b"".join(_pool(os.getpid()).map(self.fetch, starts, ends)))

    def fetch(self, start: int, end: int) -> memoryview:
        """Return bytes by one request."""
        return _fetch(self._url, self.etag, start, end)

    def read_ahead(self) -> ReadAhead:
        """Return a reader from front to back."""
        return ReadAhead(self)


class ReadAhead:
    """An object read from front to back: what follows is fetched while the caller works on what came.

    No more is fetched ahead than half of what was read in one go, and 16 MiB, so that a short read stays short.
    """

    def __init__(self, file: ObjectFile) -> None:
        """Keep the object; nothing is fetched yet."""
        self._file = file
        self._start = self._next = 0  # of what was read in one go
        self._ahead: deque[tuple[int, int, Future[memoryview]]] = deque()

    def read_into(self, buffer: memoryview, position: int) -> int:
        """Fill the buffer from `position`; return how many bytes there were."""
        if position != self._next:
            self.close()
            self._start = self._next = position
        end = min(position + len(buffer), self._file.size)
        self._request(end)
        while self._next < end:
            piece_start, piece_end, piece = self._ahead[0]
            data = piece.result()[self._next - piece_start : end - piece_start]
            buffer[self._next - position : self._next - position + len(data)] = data
            self._next += len(data)
            if self._next == piece_end:
                self._ahead.popleft()
        ahead_size = min((end - self._start) // 2, AHEAD_SIZE_MAX)
        self._request(min(end + ahead_size - ahead_size % PIECE_SIZE, self._file.size))
        return max(end - position, 0)

    def _request(self, end: int) -> None:
        """Begin to fetch what is behind the pieces under way, up to `end`."""
        start = self._ahead[-1][1] if self._ahead else self._next
        while start < end:
            piece_end = min(start + PIECE_SIZE, end)
            self._ahead.append((start, piece_end, _pool(os.getpid()).submit(self._file.fetch, start, piece_end)))
            start = piece_end

    def close(self) -> None:
        """Drop what was fetched ahead."""
        for _, _, piece in self._ahead:
            piece.cancel()
        self._ahead.clear()


def forget_all() -> None:
    """Forget all listings and stores: what is asked next is asked of the stores, with the environment as it is now."""
    _listed.clear()
    _store.cache_clear()
