"""The JSON form of a message: what Kafka's generated `*JsonConverter.write` builds, and Jackson's text of it.

A tree is made of dict, list, str, int, bool, float, bytes (printed as base64) and None. Fields that the version does
not have are left out, and so are tagged fields that hold their default.

>>> from logstore.topics.schema import family
>>> from logstore.topics.reader import read
>>> message = family("transaction_state")["TransactionLogKey"]
>>> text(tree(message, 0, read(message, 0, b"\\x00\\x04a\\"\\x1b\\xff")))
'{"transactionalId":"a\\\\"\\\\u001B\ufffd"}'
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from logstore.topics.java_double import java_double
from logstore.topics.schema import Message, Struct, Value

_NO_DEFAULT = object()

_ESCAPED = re.compile('["\\\\\x00-\x1f]')
_ESCAPES = {chr(code): f"\\u{code:04X}" for code in range(0x20)} | {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}

_Convert = Callable[[Any], Any]


def tree(message: Message, version: int, value: Value) -> Value:
    """The JSON tree of `value` as a `message` of `version`, in the schema's order."""
    return _root_converter(message, message.versions.nearest(version))(value)


@cache
def _root_converter(message: Message, version: int) -> Callable[[Value], Value]:
    return _struct_converter(message.root, version)


def _struct_converter(struct: Struct, version: int) -> Callable[[Value], Value]:
    present = [
        (
            field.name,
            _NO_DEFAULT if field.tag is None else field.default,
            None if field.struct is None else _struct_value_converter(field.struct, field.is_array, version),
        )
        for field in struct.fields
        if version in field.versions
    ]

    def convert(value: Value) -> Value:
        node: Value = {}
        for name, left_out, convert_value in present:
            item = value[name]
            if left_out is _NO_DEFAULT or item != left_out:
                node[name] = item if convert_value is None or item is None else convert_value(item)
        return node

    return convert


def _struct_value_converter(struct: Struct, is_array: bool, version: int) -> _Convert:
    convert = _struct_converter(struct, version)
    return (lambda items: [convert(item) for item in items]) if is_array else convert


def text(node: Any) -> str:
    """`JsonNode.toString()` of a tree."""
    if isinstance(node, str):
        return _string(node)
    if isinstance(node, dict):
        return "{" + ",".join([f'"{name}":{text(item)}' for name, item in node.items()]) + "}"
    if isinstance(node, list):
        return "[" + ",".join(map(text, node)) + "]"
    if node is None:
        return "null"
    if isinstance(node, bool):
        return "true" if node else "false"
    if isinstance(node, bytes):
        return f'"{base64.b64encode(node).decode()}"'
    return _float(node) if isinstance(node, float) else str(node)


def _string(value: str) -> str:
    return '"' + (_ESCAPED.sub(_escape, value) if _ESCAPED.search(value) else value) + '"'


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES[match[0]]


def _float(value: float) -> str:
    return java_double(value) if math.isfinite(value) else f'"{java_double(value)}"'
