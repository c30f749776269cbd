"""`append_records` in machine code, for logs whose common records go the quick way, see `kernels.append_steps`."""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from .. import clock
from ..kernels import machine_function, native
from ..kernels.append_call_slots import ATTRIBUTES, NAMES, SLOTS
from ..kernels.kernel import BoundKernel
from ..kernels.machine_function import Place, new_place
from .append_info import AppendInfo

if TYPE_CHECKING:
    from .log_appends import LogAppends

_METHOD = "append_records"
_OFFSET_MAX = (1 << 63) - 1
_SAME_FOR_ALL: dict[str, object] = {
    "system_clock": clock.now_ms,
    "info_type": AppendInfo,
    "none": None,
    "false": False,
    "true": True,
    "int": int,
    **{f"{name}_name": sys.intern(name) for name in ATTRIBUTES},
    **{name: sys.intern(name) for name in NAMES},
}


class NativeAppend:
    """A function in the place of a log's method, to which it leaves everything until it is opened.

    To be used with the log's lock held.
    """

    def __init__(self, log: LogAppends, finish: Callable[[], AppendInfo]) -> None:
        """`finish` ends what is prepared and not all written, with the lock held."""
        self._log = log
        self._is_open = False
        method = getattr(log, _METHOD)
        objects: dict[str, object] = {
            **_SAME_FOR_ALL,
            "call_python": method,
            "finish": finish,
            "acquire": log.lock.acquire,
            "release": log.lock.release,
            "log": vars(log),
        }
        self._place = new_place(Place, SLOTS)
        self._place.objects = tuple(objects.values())
        for name, thing in objects.items():
            self._set(name, id(thing))
        for name in ("prepare_append", "commit_append"):
            self._set(name, native.function_address("append_records", name))
        text = _text(method.__func__)
        vars(log)[_METHOD] = machine_function.new_function("append_steps", "append", self._place, text)

    def open(self, prepare: BoundKernel) -> None:
        """Let common records go by these arguments, as long as the log's `change_count` stays as it is."""
        if self._is_open:
            return
        log = self._log
        segment = vars(log.active)
        self._kept = (log.change_count, segment, prepare)
        self._set("arguments", ctypes.addressof(prepare.block))
        self._set("segment", id(segment))
        self._set("flush_offset", min(log.recovery_point + log.flush_message_count, _OFFSET_MAX))
        self._set("known_change_count", id(log.change_count))
        self._is_open = True

    def close(self) -> None:
        """Leave everything to the method again."""
        self._set("known_change_count", 0)
        self._is_open = False

    def _set(self, slot: str, number: int) -> None:
        self._place.block[SLOTS.index(slot)] = number


def is_usable(log: LogAppends) -> bool:
    """Whether this log may have the function: its method is the common one, and nothing is in the place of it."""
    from .log_appends import LogAppends

    is_common = getattr(type(log), _METHOD) is getattr(LogAppends, _METHOD)
    return _has_functions() and is_common and _METHOD not in vars(log)


@cache
def _has_functions() -> bool:
    return machine_function.is_usable()


@cache
def _text(method: Callable[..., AppendInfo]) -> str:
    """What `help` and `inspect.signature` show, for they do not see the method."""
    parameters = list(inspect.signature(method).parameters.values())[1:]
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return f"{_METHOD}{inspect.Signature(plain)}\n--\n\n{inspect.getdoc(method)}"
