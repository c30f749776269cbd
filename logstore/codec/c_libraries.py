"""Functions of C libraries that kernels may call, where there are any: many streams then take one call of Python's.

ISA-L lies inside of an extension of `isal`, which exports it, and libzstd inside of one of `zstandard`. Without them
the Python libraries do the same, stream by stream.
"""

from __future__ import annotations

import ctypes
import threading
import zlib
from functools import cache
from importlib.machinery import PathFinder
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from logstore.codec.outcome import ByteArray
from logstore.kernels import gzip_streams as slots

_ZSTD_VERSION_MIN = 10506  # Kafka's; older ones take some damaged frames for right
_PROBE = b"a stream that says whether the state is as it should be, " * 40


class Inflate(NamedTuple):
    """What `inflate_gzip_streams` takes: int64[FUNCTION_COUNT], and a state, which one thread may use at a time."""

    functions: npt.NDArray[np.int64]
    state: ByteArray


class Zstd(NamedTuple):
    """What `decode_zstd_streams` takes: the address of a function, and a context for one thread at a time."""

    function: int
    context: _ZstdContext


class _ZstdContext:
    """A `ZSTD_DCtx`, freed with this."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.address = int(library.ZSTD_createDCtx() or 0)
        self._free = library.ZSTD_freeDCtx

    def __del__(self) -> None:
        self._free(self.address)


class _OfThread(threading.local):
    """What is kept from call to call: to make it takes as long as some streams."""

    inflate: Inflate | None = None
    zstd: Zstd | None = None


_of_thread = _OfThread()


def inflate_functions() -> Inflate | None:
    """This thread's; None where the functions cannot be had."""
    library = _isa_l()
    if library is None:
        return None
    if _of_thread.inflate is None:
        _of_thread.inflate = _new_inflate(library)
    return _of_thread.inflate


def zstd_function() -> Zstd | None:
    """This thread's; None where there is no libzstd."""
    library = _libzstd()
    if library is None:
        return None
    if _of_thread.zstd is None:
        _of_thread.zstd = Zstd(_address(library.ZSTD_decompressDCtx), _ZstdContext(library))
    return _of_thread.zstd if _of_thread.zstd.context.address else None


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


@cache
def _isa_l() -> ctypes.CDLL | None:
    """The library, if its functions are there and its state begins as this one thinks."""
    from isal import igzip_lib

    try:
        library = ctypes.CDLL(igzip_lib.__file__)
        library.isal_inflate_init.argtypes = (ctypes.c_void_p,)
        inflate = _new_inflate(library)
    except (OSError, AttributeError):
        return None
    return library if _inflates(inflate) else None


def _new_inflate(library: ctypes.CDLL) -> Inflate:
    functions = np.zeros(slots.FUNCTION_COUNT, np.int64)
    functions[slots.INFLATE] = _address(library.isal_inflate_stateless)
    functions[slots.CRC32] = _address(library.crc32_gzip_refl)
    state = np.zeros(slots.STATE_SIZE, np.uint8)
    library.isal_inflate_init(state.ctypes.data)
    return Inflate(functions, state)


def _inflates(inflate: Inflate) -> bool:
    deflate = zlib.compressobj(wbits=31)
    stream = np.frombuffer(deflate.compress(_PROBE) + deflate.flush(), np.uint8)
    out = np.zeros(2 * len(_PROBE), np.uint8)
    starts, ends, out_ends = np.zeros(1, np.int64), np.array([stream.size]), np.zeros(1, np.int64)
    streams = (stream, starts, ends, 1, out, out.size, out.size, out_ends)
    count = slots.inflate_gzip_streams(inflate.functions, inflate.state, *streams)
    tail = inflate.state[slots.STATE_SIZE // 2 :]
    return count == 1 and out[: out_ends[0]].tobytes() == _PROBE and not tail.any()


@cache
def _libzstd() -> ctypes.CDLL | None:
    """The library, if it is as strict as Kafka's. Neither extension nor package are imported for it."""
    package = PathFinder.find_spec("zstandard")
    extension = PathFinder.find_spec("_cffi", package.submodule_search_locations) if package else None
    if extension is None or extension.origin is None:
        return None
    try:
        library = ctypes.CDLL(extension.origin)
        library.ZSTD_createDCtx.restype = ctypes.c_void_p
        library.ZSTD_freeDCtx.argtypes = (ctypes.c_void_p,)
        _address(library.ZSTD_decompressDCtx)
        return library if library.ZSTD_versionNumber() >= _ZSTD_VERSION_MIN else None
    except (OSError, AttributeError):
        return None
