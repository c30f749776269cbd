"""Lines filled from a template, and what JSON makes of a field."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """`kind` as in `kernels.dump.fill`, and by row a number, or position and size."""

    kind: int
    values: Sequence[int] | Sequence[tuple[int, int]]


LITERAL, NUMBER, TEXT, FIELD, QUOTED = range(5)
NUMBER_ROOM = 20


def filled(data: bytes, pool: bytes, parts: Sequence[Part], row_count: int, capacity: int) -> list[bytes]:
    """The lines up to one that has no room, or a part that is not there; each part wants the most it may take."""
    lines: list[bytes] = []
    left = capacity
    for row in range(row_count):
        line = b""
        for kind, values in parts:
            value = values[row]
            if isinstance(value, int):
                part, room = str(value).encode(), NUMBER_ROOM
            else:
                (position, size), source = value, data if kind in (FIELD, QUOTED) else pool
                if size < 0 or (size > 0 and not 0 <= position <= len(source) - size):
                    return lines
                part, room = source[position : position + size] if size else b"", size
                if kind == QUOTED:
                    part, room = part.replace(b"\\", b"\\\\").replace(b'"', b'\\"'), 2 * size
            if room > left - len(line):
                return lines
            line += part
        lines.append(line)
        left -= len(line)
    return lines


def form(field: bytes | None) -> int:
    """0: a JSON string has the field as it is, but for quotes and backslashes; 1: null; 2: anything else."""
    if field is None:
        return 1
    try:
        text = field.decode()
    except UnicodeDecodeError:
        return 2
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return 0 if json.dumps(text, ensure_ascii=False) == f'"{quoted}"' else 2
