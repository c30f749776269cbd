"""What runs of a source, and which of its lines run together."""

from __future__ import annotations

import ast
from typing import Any


def program(source: str) -> str:
    """Return what runs of a source, without the parts whose change nobody notices.

    Those are annotations, their imports and decorators, whether an argument must be named, and `strict` of `zip`, which
    is an assertion.

    >>> program("def f(a: int | None) -> int: return a") == program("def f(a: int & None) -> str: return a")
    True
    >>> program("def f(a, *, b): zip(a, b, strict=True)") == program("def f(a, /, b): zip(a, b, strict=False)")
    True
    """
    return ast.dump(_Plain().visit(ast.parse(source)))


class _Plain(ast.NodeTransformer):
    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> Any:
        names = {name.id for name in ast.walk(node.test) if isinstance(name, ast.Name)}
        return None if "TYPE_CHECKING" in names else self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> Any:
        node.args = [*node.posonlyargs, *node.args, *node.kwonlyargs]
        node.defaults += [value for value in node.kw_defaults if value is not None]
        node.posonlyargs, node.kwonlyargs, node.kw_defaults = [], [], []
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Name) and node.func.id == "zip":
            node.keywords = []
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> Any:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.returns, node.decorator_list = None, []
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.decorator_list = []
        return self.generic_visit(node)


def lines_that_run(source: str, line: int) -> range:
    """Return the lines of the statement around a line: of a compound one its head, of a function all of it.

    >>> lines_that_run("def f(a=1):\\n    if (a or\\n            b):\\n        return 1\\n", 3)
    range(2, 4)
    """
    found = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            body = getattr(node, "body", None)
            end = (node.end_lineno or line) + 1
            if body and line < body[0].lineno:
                end = end if isinstance(node, ast.FunctionDef) else body[0].lineno
            elif body:
                continue
            if len(range(node.lineno, end)) < len(found) or line not in found or len(found) == 1:
                found = range(node.lineno, end)
    return found
