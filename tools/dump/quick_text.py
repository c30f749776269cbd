"""Small plain logs as text by the kernels alone: without numpy, whose import takes longer than all the rest.

What is not plain (compressed batches, old message sets, gaps, damage, options beyond the depth) is nobody's here: then
the answer is None, before anything is printed, and the dump for everything starts from the beginning.
"""

from __future__ import annotations

import ctypes
import os
import stat

from logstore.disk.files import read_file
from logstore.disk.names import file_name
from logstore.errors import LogstoreError
from logstore.jit.kernel import INTERPRETED
from logstore.kernels import decode, dump_text, scan
from logstore.kernels.dump_lines import LITERALS
from logstore.kernels.text import SLACK_SIZE

from .log_header import log_header
from .options import DumpOptions

SIZE_MAX = 1024 * 1024  # bytes of all files: their text is held in memory until all of it is known to be plain
OPTIONS = {"files", "print-data-log", "deep-iteration", "skip-record-metadata"}
ROW_CAPACITY, RECORD_CAPACITY, GAP_CAPACITY = 1024, 2048, 16
OUT_CAPACITY = 1024 * 1024


def quick_text(paths: list[str], options: DumpOptions) -> list[bytes] | None:
    """The text of the files at `paths`, in pieces; None: let the other dump do it."""
    if INTERPRETED or not options.arguments.values.keys() <= OPTIONS or not _are_small(paths):
        return None
    pieces: list[bytes] = []
    printer = _Printer(options.depth_flags, pieces)
    try:
        for path in paths:
            pieces.append(f"Dumping {path}\n{log_header(path)}\n".encode("utf-8", "replace"))
            if not printer.print_log(read_file(path)):
                return None
    except LogstoreError:
        return None
    return pieces


def _are_small(paths: list[str]) -> bool:
    size = 0
    for path in paths:
        try:
            status = os.stat(path)
        except OSError:
            return False
        size += status.st_size
        if not file_name(path).endswith(".log") or not stat.S_ISREG(status.st_mode) or size > SIZE_MAX:
            return False
    return True


class _Printer:
    """The buffers of the kernels, and what they print of logs."""

    def __init__(self, flags: int, pieces: list[bytes]) -> None:
        self._pieces = pieces
        self._columns = (ctypes.c_int64 * (scan.COLUMN_COUNT * ROW_CAPACITY))()
        self._result = (ctypes.c_int64 * scan.RESULT_COUNT)()
        self._records = (ctypes.c_int64 * (decode.COLUMN_COUNT * RECORD_CAPACITY))()
        self._gaps = (ctypes.c_int64 * (2 * GAP_CAPACITY))()
        self._out = (ctypes.c_char * (OUT_CAPACITY + SLACK_SIZE))()
        self._state = (ctypes.c_int64 * dump_text.STATE_COUNT)()
        self._state[dump_text.FLAGS] = flags
        self._state[dump_text.RECORD_CAPACITY] = RECORD_CAPACITY
        self._state[dump_text.OUT_CAPACITY] = OUT_CAPACITY
        self._state[dump_text.GAP_CAPACITY] = GAP_CAPACITY

    def print_log(self, content: bytes) -> bool:
        """Print the batches of a log; False: it is not plain."""
        data, size = _address_of_bytes(content), len(content)
        columns, result = ctypes.addressof(self._columns), ctypes.addressof(self._result)
        self._state[dump_text.PREVIOUS_OFFSET] = -1
        position, status = 0, scan.MORE
        while status == scan.MORE:
            status = scan.scan_batches(data, size, position, size, size, columns, ROW_CAPACITY, result)
            position, count = self._result[scan.NEXT_POSITION], self._result[scan.ROW_COUNT]
            if not self._are_plain(count):
                return False
            scan.check_batches(data, columns, ROW_CAPACITY, 0, count)
            if not self._print_rows(data, count):
                return False
        return status == scan.END and position == size

    def _are_plain(self, count: int) -> bool:
        start = scan.MAGIC * ROW_CAPACITY
        return min(self._columns[start : start + count], default=2) >= 2

    def _print_rows(self, data: int, count: int) -> bool:
        state = self._state
        arguments = (
            data,
            ctypes.addressof(self._columns),
            ROW_CAPACITY,
            count,
            ctypes.addressof(self._records),
            _address_of_bytes(LITERALS),
            ctypes.addressof(self._out),
            ctypes.addressof(self._gaps),
            ctypes.addressof(state),
        )
        state[dump_text.ROW] = state[dump_text.IS_LINE_PRINTED] = 0
        status = dump_text.OUT_FULL
        while status == dump_text.OUT_FULL:
            state[dump_text.OUT_SIZE] = 0
            status = dump_text.dump_batches(*arguments)
            if state[dump_text.OUT_SIZE] == 0 and status == dump_text.OUT_FULL:
                return False  # a record larger than the buffer
            self._pieces.append(ctypes.string_at(self._out, state[dump_text.OUT_SIZE]))
        return status == dump_text.DONE and state[dump_text.GAP_COUNT] == 0


def _address_of_bytes(content: bytes) -> int:
    return ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value or 0
