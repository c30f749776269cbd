"""Decodes UTF-8 as Java does: `new String(bytes, UTF_8)`, which never fails.

Both Java and Python's "replace" put one U+FFFD in place of each maximal malformed part. They differ for a surrogate in
three bytes (ED A0..BF 80..BF), or its first two bytes alone: Python sees one malformed part per byte, Java one in all.

>>> java_utf8(b"caf\\xc3\\xa9 \\xff")
'café \\ufffd'
>>> java_utf8(b"\\xed\\xa0\\x80!"), b"\\xed\\xa0\\x80!".decode(errors="replace")
('\\ufffd!', '\\ufffd\\ufffd\\ufffd!')
"""

from __future__ import annotations

import codecs

_JAVA_REPLACE = "logstore-java-replace"


def java_utf8(data: bytes) -> str:
    """Decode UTF-8 as the JVM does (`java.lang.String`); malformed parts become U+FFFD."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode(errors=_JAVA_REPLACE)


def is_unicode(text: str) -> bool:
    """Return whether text can be encoded: without half a surrogate pair, for which Java writes a question mark."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _java_replace(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, start = error.object, error.start
    if data[start] == 0xED and 0xA0 <= int.from_bytes(data[start + 1 : start + 2]) <= 0xBF:
        is_whole = 0x80 <= int.from_bytes(data[start + 2 : start + 3]) <= 0xBF
        return "\ufffd", start + (3 if is_whole else 2)
    return "\ufffd", error.end


codecs.register_error(_JAVA_REPLACE, _java_replace)
