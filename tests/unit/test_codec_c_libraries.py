"""Functions of C libraries: taken where they are what they should be, and done without where not."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from importlib.machinery import PathFinder
from typing import Any

import numpy as np
import pytest

from logstore.codec import c_libraries as module
from logstore.codec.c_libraries import inflate_functions, zstd_function
from logstore.codec.streams import decompress_streams
from logstore.kernels.gzip_streams import STATE_SIZE
from logstore.model import Codec

ZERO_OFFSET_FRAME = "28b52ffd0058440000106161010234c002010000"  # libzstd 1.5.4 makes something of it


class Library:
    """Another library's functions, some of them changed; one that is None is not there."""

    def __init__(self, library: ctypes.CDLL | None, **changed: Any) -> None:
        self.library, self.changed = library, changed

    def __getattr__(self, name: str) -> Any:
        found = self.changed[name] if name in self.changed else getattr(self.library, name)
        if found is None:
            raise AttributeError(name)
        return found


@pytest.fixture(autouse=True)
def afresh() -> Iterator[None]:
    """Nothing is known of libraries before a test, nor after it."""
    _forget()
    yield
    _forget()


def _forget() -> None:
    module._isa_l.cache_clear()
    module._libzstd.cache_clear()
    module._of_thread.inflate = module._of_thread.zstd = None


def loads(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    """Let every library that is loaded have other functions."""
    real = ctypes.CDLL

    def load(name: str) -> Any:
        return Library(real(name), **changed)

    monkeypatch.setattr(module.ctypes, "CDLL", load)


def found(function: Any) -> Any:
    """What it answers; the test is skipped where this machine has nothing to find."""
    answer = function()
    if answer is None:
        pytest.skip("the library is not there on this machine")
    return answer


@pytest.mark.parametrize("function", [inflate_functions, zstd_function])
def test_each_thread_has_what_only_one_may_use(function: Any) -> None:
    mine = found(function)
    assert function() is mine
    others: list[Any] = []
    thread = threading.Thread(target=lambda: others.append(function()))
    thread.start()
    thread.join()
    assert others[0] is not None
    assert others[0] is not mine
    assert others[0][1] is not mine[1]


@pytest.mark.parametrize("name", ["isal_inflate_stateless", "isal_inflate_init", "crc32_gzip_refl"])
def test_a_function_of_isa_l_that_is_missing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    loads(monkeypatch, **{name: None})
    assert inflate_functions() is None


@pytest.mark.parametrize("name", ["ZSTD_versionNumber", "ZSTD_createDCtx", "ZSTD_freeDCtx", "ZSTD_decompressDCtx"])
def test_a_function_of_libzstd_that_is_missing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    found(zstd_function)
    _forget()
    loads(monkeypatch, **{name: None})
    assert zstd_function() is None


def test_an_inflate_that_does_something_else_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(lambda state: 0)
    loads(monkeypatch, isal_inflate_stateless=nothing)
    assert inflate_functions() is None


def test_a_state_that_takes_more_room_than_there_should_be_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    inflate = found(inflate_functions)
    inflate.state[STATE_SIZE * 3 // 4] = 1
    assert not module._inflates(inflate)
    assert np.count_nonzero(inflate.functions) == 2


def test_a_package_that_is_not_there_or_has_no_such_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    class Finder:
        """Finds these, and nothing else."""

        names: tuple[str, ...] = ()

        @classmethod
        def find_spec(cls, name: str, path: Any = None) -> Any:
            return PathFinder.find_spec("json") if name in cls.names else None

    monkeypatch.setattr(module, "PathFinder", Finder)
    assert zstd_function() is None
    Finder.names = ("zstandard",)
    _forget()
    assert zstd_function() is None


def test_a_damaged_frame_that_older_libraries_took_for_right_is_refused() -> None:
    found(zstd_function)
    frame = np.frombuffer(bytes.fromhex(ZERO_OFFSET_FRAME), np.uint8)
    out = np.empty(9999, np.uint8)
    starts, _ = decompress_streams(Codec.ZSTD, frame, np.zeros(1, np.int64), np.array([frame.size]), out, 9)
    assert starts.size == 0


def test_an_old_libzstd_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    loads(monkeypatch, ZSTD_versionNumber=lambda: 10505)
    assert zstd_function() is None


def test_a_library_that_cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str) -> Any:
        raise OSError(name)

    monkeypatch.setattr(module.ctypes, "CDLL", load)
    assert zstd_function() is None
    assert inflate_functions() is None


def test_a_context_that_there_is_no_memory_for(monkeypatch: pytest.MonkeyPatch) -> None:
    found(zstd_function)
    _forget()
    create = ctypes.CFUNCTYPE(ctypes.c_void_p)(lambda: None)
    loads(monkeypatch, ZSTD_createDCtx=create)
    assert zstd_function() is None
