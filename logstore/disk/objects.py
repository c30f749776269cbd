"""Objects of a store (S3, Google, Azure, HTTP), looked at and read as files are, by URL.

`stat`, `scan` and `exists` answer as those of `os` do, and failures are OSErrors, so what reads a directory by
`disk.paths` reads a bucket too. A listing is remembered: sizes and ETags of what it named cost no further request, and
a read asks for the ETag it saw, so that an object which was replaced meanwhile is an error and never a mixture.

obstore does the requests and tries again what may pass (503, timeouts, lost connections). It looks at no signal
meanwhile, so other threads wait for it. Its threads do not survive `os.fork`: a store belongs to the process that
opened it, and a child of a process that has read objects is refused.
"""

from __future__ import annotations

import errno
import os
import re
import stat as modes
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from ..errors import UsageError
from ..threads import begun
from .names import child, file_name, java_file, parent

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")

RETRIES: dict[str, Any] = {"max_retries": 8, "retry_timeout": timedelta(seconds=120)}
TRY_COUNT = 4  # of a request whose body ended early, which obstore does not always try again
CUT = "body error"  # in the text of its error
_WEB = ("http", "https")
SCHEMES = ("s3", "s3a", "gs", "abfss", *_WEB)
_ROOT = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://[^/]*")
_NS = 1_000_000_000
OTHER_NAMES = {  # of stores that are read, and what to do
    "s3n": "write s3:// instead",
    "gcs": "write gs:// instead",
    **dict.fromkeys(("abfs", "az", "azure", "wasb", "wasbs"), "write abfss://container@account.dfs.core.windows.net/…"),
}
_ADVICE = {
    "hdfs": "copy it with `hdfs dfs -get`, or mount it and name the path",
    "file": "name the path itself",
    **OTHER_NAMES,
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
        forget_all()


def obstore() -> Any:
    """Return the module; raise UsageError if it is not there, or its threads are not."""
    if not _process:
        _process.append(os.getpid())
    elif _process[0] != os.getpid():
        raise UsageError(
            "This process was forked from one that has read from an object store, whose threads are gone here",
            advice="start processes by `spawn` or `forkserver`, or fork before the first URL is read",
        )
    try:
        return import_module("obstore")
    except ImportError as error:
        raise UsageError("Reading URLs needs obstore", advice="pip install 'logstore-kafka[objects]'") from error


def root_of(url: str) -> tuple[str, str]:
    """Return the scheme of a URL, and the URL of its bucket, container or host; raise UsageError if it is not read."""
    found = _ROOT.match(url)
    scheme = "" if found is None else found[1].lower()
    if found is None or scheme not in SCHEMES:
        expected = "a path, or " + " ".join(f"{name}://" for name in SCHEMES)
        raise UsageError(
            f"{scheme}:// is not read",
            path=url,
            expected=expected,
            advice=_ADVICE.get(scheme, "copy it to one of them"),
        )
    if scheme in _WEB and "?" in url:
        raise UsageError(
            "A query in a URL, such as the signature of a presigned one, is not sent",
            path=url,
            advice="download it, or name the store's own URL (s3://, gs://, abfss://) and give its credentials",
        )
    return scheme, found[0]


@cache
def _store(scheme: str, root: str) -> ObjectStore:
    obstore()
    from obstore.store import HTTPStore, from_url

    names = ("aws_endpoint", "aws_endpoint_url", "aws_endpoint_url_s3", "endpoint", "endpoint_url")
    endpoints = [root, *(value for name in names if (value := _options.get(name) or os.environ.get(name.upper())))]
    given: dict[str, Any] = {
        "client_options": {"allow_http": any(endpoint.startswith("http://") for endpoint in endpoints)},
        "retry_config": RETRIES,
    }
    if scheme in _WEB:
        return HTTPStore.from_url(root, **given)
    config: Any = dict(_options)
    store: ObjectStore = from_url(root, config=config, **given)
    return store


def call(work: Callable[..., T], url: str) -> T:
    """Call `work` with the store and the key of a URL, again if a body ends early; raise OSError with the reason."""
    exceptions, (scheme, root) = obstore().exceptions, root_of(url)
    for attempt in range(1, TRY_COUNT + 1):
        try:
            return work(_store(scheme, root), url[len(root) + 1 :])
        except (exceptions.BaseError, FileNotFoundError, ValueError) as error:
            is_cut = CUT in str(error)
            if attempt == TRY_COUNT or not is_cut:
                raise _os_error(error, url, f"in {attempt} tries" if is_cut else "") from error
    raise AssertionError


def _interruptible(work: Callable[..., T], url: str) -> T:
    """Return what `call` returns; an interrupt (Ctrl-C) need not wait for the store."""
    return begun(partial(call, work), url).result()


def _os_error(error: Exception, url: str, tries: str) -> OSError:
    text = str(error).partition("\n\nDebug source:")[0].strip()
    told = [found.strip() for found in re.findall(r"<(?:Code|Message)>([^<]*)</", text)]
    reason = ": ".join(dict.fromkeys(told)) or re.sub(r"\s+", " ", text)
    retries = re.search(r"after \d+ retries", text)
    tries = retries[0] if retries and told else tries
    reason = f"{reason}, {tries}" if tries else reason
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
    url = java_file(url)  # `s3://bucket/` is its root, not an object without a name
    entry = _listed.get(parent(url), {}).get(file_name(url))
    if entry is not None:
        return entry.status
    if parent(url) in _listed and parent(url) != url:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    if parent(url) != url:
        try:
            return _status(_interruptible(obstore().head, url), url)
        except FileNotFoundError:
            pass
    return _directory_status(url, scan(url))


def _directory_status(url: str, entries: list[ObjectEntry]) -> ObjectStatus:
    newest_ns = max((entry.status.st_mtime_ns for entry in entries), default=0)
    return ObjectStatus(modes.S_IFDIR, 0, newest_ns, "", url)


def scan(url: str) -> list[ObjectEntry]:
    """List the objects and prefixes right below a URL, by name; raise FileNotFoundError if there are none."""
    url = java_file(url)
    found = _interruptible(lambda store, key: obstore().list_with_delimiter(store, key or None), url)
    base, directories = root_of(url)[1], found["common_prefixes"]
    markers = {url[len(base) + 1 :], *directories}  # empty objects, by which consoles make a folder
    entries = [_entry(child(base, meta["path"]), meta) for meta in found["objects"] if meta["path"] not in markers]
    for prefix in directories:
        path = child(base, prefix)
        entries.append(ObjectEntry(file_name(path), path, _directory_status(path, [])))
    return _remember(url, entries)


def _entry(path: str, meta: Mapping[str, Any]) -> ObjectEntry:
    return ObjectEntry(file_name(path), path, _status(meta, path))


def _remember(url: str, entries: list[ObjectEntry]) -> list[ObjectEntry]:
    if not entries:
        _listed.pop(url, None)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), url)
    _listed[url] = {entry.name: entry for entry in entries}
    return sorted(entries)


def scan_tree(url: str) -> Entries:
    """List all objects below a URL at once, and return a function that lists directories of it as `scan` does."""
    url, base = java_file(url), root_of(url)[1]
    found = _interruptible(lambda store, key: obstore().list(store, key or None, chunk_size=1000).collect(), url)
    directories: dict[str, dict[str, ObjectEntry]] = {url: {}}
    for meta in found:
        path = child(base, meta["path"])
        if path != url:  # else the marker of a folder
            directories.setdefault(parent(path), {})[file_name(path)] = _entry(path, meta)
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


def forget(url: str) -> None:
    """Forget the listing of the directory that the object is in."""
    _listed.pop(parent(url), None)


def forget_all() -> None:
    """Forget all listings and stores: what is asked next is asked of the stores, with the environment as it is now."""
    _listed.clear()
    _store.cache_clear()
