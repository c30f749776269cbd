"""Loops of the product in which an interrupt would skip the end of a `with` or `finally` block.

    python tests/house/gaps.py FOLDER …

prints their places. Python 3.13 compiles a loop whose last step is a condition, as `while queue:` and a final `if` are,
to a jump that belongs to no block of the function (python/cpython#130279), and looks for signals there: an exception of
a handler, such as KeyboardInterrupt, leaves a lock locked. `if not …: continue` and `break` jump inside of the block. A
comprehension with `if` is such a loop too. Python 3.12 compiles the same, but looks for signals behind the jump. What
only closes a file or a mapping may stay: it is closed all the same.
"""

from __future__ import annotations

import ast
import dis
import sys
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

# what a `with` block needs to end in time: locks, and work in threads
IN_TIME = ("alone(", "lock", "mutex", "closing(each_done", "_renaming", "_keeping_bytes", "ThreadPoolExecutor")


def gaps(source: str) -> list[int]:
    """Lines of the jumps that lead out of all blocks of a module, inside `with` blocks that have to end in time."""
    blocks = [
        range(node.lineno, (node.end_lineno or 0) + 1)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.With) and any(word in ast.unparse(one) for one in node.items for word in IN_TIME)
    ]
    jumps = _jumps_out(compile(source, "", "exec", dont_inherit=True)) if blocks else ()
    return sorted({line for line in jumps if any(line in block for block in blocks)})


def _jumps_out(code: CodeType) -> Iterator[int]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _jumps_out(constant)
    if not code.co_exceptiontable:
        return
    bytecode = dis.Bytecode(code)
    instructions = list(bytecode)
    names = {instruction.offset: instruction.opname for instruction in instructions}
    line = code.co_firstlineno

    def handled(offset: int) -> bool:
        targets = (entry.target for entry in bytecode.exception_entries if entry.start <= offset < entry.end)
        return any(names[target] != "CALL_INTRINSIC_1" for target in targets)  # that is a generator's own

    for instruction in instructions:
        if instruction.positions is not None:
            line = instruction.positions.lineno or line
        if instruction.opname == "JUMP_BACKWARD" and handled(instruction.argval) > handled(instruction.offset):
            yield line


if __name__ == "__main__":
    for path in [path for folder in sys.argv[1:] for path in sorted(Path(folder).rglob("*.py"))]:
        for line in gaps(path.read_text()):
            print(f"{path}:{line}: an interrupt here skips the end of a block")
