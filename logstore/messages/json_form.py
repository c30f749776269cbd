"""The JSON text of a message: what Kafka's generated `*JsonConverter.write` builds, printed by Jackson.

Fields stand in the schema's order; those that the version does not have are left out, and so are tagged
fields that hold their default. bytes are base64, uuids are text, numbers print as Java prints them.

>>> from logstore.messages.reader import read
>>> from logstore.topics import family
>>> message = family("transaction_state")["TransactionLogKey"]
>>> text(message, 0, read(message, 0, b"\\x00\\x04a\\"\\x1b\\xff"))
'{"transactionalId":"a\\\\"\\\\u001B\ufffd"}'
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from functools import cache
from typing import Any

from .schema import Field, Message, StructSpec, Value

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

_Write = Callable[[Any], str]


class JsonText(str):
    """JSON text that a bytes field shows instead of base64: the bytes are a message of their own."""

    __slots__ = ()


def text(message: Message, version: int, value: Value) -> JsonText:
    """Return the JSON text of `value`, a `message` of `version`."""
    return JsonText(_root_writer(message, message.versions.nearest(version))(value))


@cache
def _root_writer(message: Message, version: int) -> Callable[[Value], str]:
    return _struct_writer(message.root, version)


def _struct_writer(struct: StructSpec, version: int) -> Callable[[Value], str]:
    present = [
        (field.name, f'"{field.name}":', field.tag is not None, field.default, _field_writer(field, version))
        for field in struct.fields
        if version in field.versions
    ]

    def write(value: Value) -> str:
        items = [
            head + write_field(value[name])
            for name, head, may_miss, default, write_field in present
            if not may_miss or value[name] != default
        ]
        return "{" + ",".join(items) + "}"

    return write


def _field_writer(field: Field, version: int) -> _Write:
    write = _WRITERS[field.kind] if field.struct is None else _struct_writer(field.struct, version)
    if field.is_array:
        write = _array_writer(write)
    return _nullable_writer(write) if field.is_nullable else write


def _array_writer(write: _Write) -> _Write:
    return lambda items: "[" + ",".join([write(item) for item in items]) + "]"


def _nullable_writer(write: _Write) -> _Write:
    return lambda value: "null" if value is None else write(value)


def string_text(value: str) -> str:
    """Quote a string as Jackson does: only quotes, backslashes and control characters are escaped."""
    if _ESCAPED.search(value):
        value = _ESCAPED.sub(lambda match: _ESCAPES[match[0]], value)
    return f'"{value}"'


def java_double(value: float) -> str:
    """Return `Double.toString(value)` of JDK 19 and newer: the fewest digits that tell the double apart.

    JDK 17 and 18, on which Kafka 4 runs too, print more digits for some doubles (JDK-4511638).

    >>> [java_double(value) for value in (0.0, -1.5, 1e7, 0.001, 0.00012, 8.27e21, 5e-324)]
    ['0.0', '-1.5', '1.0E7', '0.001', '1.2E-4', '8.27E21', '4.9E-324']
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 0.001 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:.1e}".partition("e")  # Java has two digits where one would do
    _, digits, power = Decimal(repr(value)).normalize().as_tuple()
    if len(digits) > 1:
        sign = "-" if value < 0 else ""
        mantissa, exponent = f"{sign}{digits[0]}.{''.join(map(str, digits[1:]))}", f"{int(power) + len(digits) - 1}"
    return f"{mantissa}E{int(exponent)}"


def _bool_text(value: bool) -> str:
    return "true" if value else "false"


def _float_text(value: float) -> str:
    # JSON has no NaN and no Infinity: Jackson quotes them
    return java_double(value) if math.isfinite(value) else f'"{java_double(value)}"'


def _uuid_text(value: str) -> str:
    return f'"{value}"'


def _bytes_text(value: bytes | JsonText) -> str:
    return value if isinstance(value, JsonText) else f'"{b64encode(value).decode()}"'


_WRITERS: dict[str, _Write] = {
    "int8": str,
    "int16": str,
    "int32": str,
    "int64": str,
    "uint16": str,
    "bool": _bool_text,
    "float64": _float_text,
    "uuid": _uuid_text,
    "string": string_text,
    "bytes": _bytes_text,
}
