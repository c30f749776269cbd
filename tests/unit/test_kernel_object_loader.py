"""Object files are loaded as LLVM loads them, and what is not known is left to LLVM."""

from __future__ import annotations

import ctypes
import struct
import sys
from pathlib import Path

import pytest

from logstore.kernels import native
from logstore.kernels.kernel import KERNELS
from logstore.kernels.object_loader import load_object

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != 8, reason="loads ELF on Linux"
)
CHECKSUM = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@pytest.fixture(scope="module")
def content() -> bytes:
    """The object file of CRC-32C."""
    return native.object_file("crc32c").read_bytes()


def _checksum(address: int) -> int:
    text = ctypes.create_string_buffer(b"123456789" * 100)
    return int(CHECKSUM(address)(ctypes.addressof(text), 0, 9))


def test_code_runs_where_it_is_loaded(content: bytes) -> None:
    addresses = load_object(content)
    assert addresses is not None
    assert _checksum(addresses["logstore_crc32c_range"]) == 0xE3069283
    assert _checksum(addresses["logstore_crc32c_range_by_tables"]) == 0xE3069283


def test_llvm_loads_what_this_loader_leaves_to_it(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "load_object", lambda content: None)
    monkeypatch.setattr(native, "_loaded", {})
    assert _checksum(native.function_address("crc32c", "crc32c_range")) == 0xE3069283
    with pytest.raises(RuntimeError, match="has no kernel no_such_kernel"):
        native.function_address("crc32c", "no_such_kernel")


def test_every_module_of_kernels_is_loaded_without_llvm() -> None:
    import logstore.kernels.append_marker
    import logstore.kernels.dump_text  # noqa: F401

    for module in {kernel.module for kernel in KERNELS.values()}:
        addresses = load_object(native.object_file(module).read_bytes())
        assert addresses is not None, module
        names = {kernel.name for kernel in KERNELS.values() if kernel.module == module}
        assert {f"logstore_{name}" for name in names} | {
            f"logstore_python_{name}" for name in names
        } <= addresses.keys()


@pytest.mark.parametrize("machine", ["aarch64", "riscv64"])
def test_another_processor_is_left_to_llvm(content: bytes, machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Name:
        def __init__(self) -> None:
            self.machine = machine

    monkeypatch.setattr("os.uname", Name)
    assert load_object(content) is None


@pytest.mark.parametrize("place", [0, 4, 5, 16, 18, 58])
def test_a_header_of_something_else_is_left_to_llvm(content: bytes, place: int) -> None:
    changed = bytearray(content)
    changed[place] ^= 0xFF
    assert load_object(bytes(changed)) is None


@pytest.mark.parametrize("size", [0, 10, 63, 64, 1000])
def test_a_file_that_is_cut_off_is_left_to_llvm(content: bytes, size: int) -> None:
    assert load_object(content[:size]) is None


def _sections(content: bytes) -> tuple[int, int]:
    return struct.unpack_from("<Q", content, 40)[0], struct.unpack_from("<H", content, 60)[0]


def test_a_relocation_of_another_kind_is_left_to_llvm(content: bytes) -> None:
    changed = bytearray(content)
    first, count = _sections(content)
    for index in range(count):
        _, kind, _, _, start, *_ = struct.unpack_from("<IIQQQQIIQQ", content, first + 64 * index)
        if kind == 4:
            struct.pack_into("<I", changed, start + 8, 9)  # R_X86_64_GOTPCREL
    assert bytes(changed) != content
    assert load_object(bytes(changed)) is None


def test_variables_are_left_to_llvm(content: bytes) -> None:
    changed = bytearray(content)
    first, count = _sections(content)
    for index in range(count):
        flags = struct.unpack_from("<Q", content, first + 64 * index + 8)[0]
        if flags & 2:
            struct.pack_into("<Q", changed, first + 64 * index + 8, flags | 1)
    assert load_object(bytes(changed)) is None


def test_a_function_that_nobody_has_is_left_to_llvm(content: bytes) -> None:
    changed = content.replace(b"PyLong_AsVoidPtr", b"PyLong_AsVoidPtx")
    assert changed != content
    assert load_object(changed) is None


def test_what_is_loaded_cannot_be_written(content: bytes) -> None:
    addresses = load_object(content)
    assert addresses is not None
    address = addresses["logstore_crc32c_range"]
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, _, end = line.split()[0].partition("-")
        if int(start, 16) <= address < int(end, 16):
            assert line.split()[1] == "r-xp"
            return
    pytest.fail("the code lies nowhere")
