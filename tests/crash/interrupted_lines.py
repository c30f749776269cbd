"""KeyboardInterrupt at the k-th line of some packages that a call runs, as Ctrl-C may raise it.

No signal is delivered on a `try:` line, nor between the end of a `with` block and its `__exit__`: those are left out.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import logstore

_PRODUCT = Path(logstore.__file__).parent


def interrupted(call: Callable[[], object], line: int, packages: tuple[str, ...]) -> str | None:
    """Call, and interrupt it before the `line`-th line, from 0 on; where that was, None if it has not so many.

    Lines of `packages` of the product count, such as `store`.

    No traceback is kept: its frames may hold locks.
    """
    tracer = _Tracer(line, packages)
    previous = sys.gettrace()
    sys.settrace(tracer.call)
    try:
        call()
    except KeyboardInterrupt as error:
        error.__traceback__ = None
    finally:
        sys.settrace(previous)
    return tracer.place


class _Tracer:
    def __init__(self, line: int, packages: tuple[str, ...]) -> None:
        self._packages = tuple(f"{_PRODUCT / package}/" for package in packages)
        self.place: str | None = None
        self._left = line
        self._entered: Counter[tuple[FrameType, int]] = Counter()

    def call(self, frame: FrameType, event: str, argument: object) -> Any:
        path = frame.f_code.co_filename
        return self.line if path.startswith(self._packages) and self.place is None else None

    def line(self, frame: FrameType, event: str, argument: object) -> Any:
        if event != "line" or self.place is not None:
            return self.line
        tries, withs = _special_lines(frame.f_code.co_filename)
        number = frame.f_lineno
        if number in tries:
            return self.line
        if number in withs:
            self._entered[frame, number] += 1
            if self._entered[frame, number] % 2 == 0:
                return self.line
        if self._left == 0:
            self._entered.clear()
            self.place = f"{Path(frame.f_code.co_filename).name}:{number}"
            raise KeyboardInterrupt
        self._left -= 1
        return self.line


@cache
def _special_lines(path: str) -> tuple[frozenset[int], frozenset[int]]:
    """The `try:` lines of a file, and those of `with`."""
    nodes = list(ast.walk(ast.parse(Path(path).read_text())))
    tries = frozenset(node.lineno for node in nodes if isinstance(node, ast.Try))
    withs = frozenset(
        number
        for node in nodes
        if isinstance(node, ast.With)
        for number in (node.lineno, *(item.context_expr.lineno for item in node.items))
    )
    return tries, withs
