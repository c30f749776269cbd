"""Text as Java prints it: decimals digit by digit, broken UTF-8 by a grammar of what a JVM replaces."""

from __future__ import annotations

import re

REPLACEMENT = "\ufffd".encode()

# The well-formed table of the Unicode standard (3-7), and what one replacement character stands for in JDK 17.
_CHARACTER = re.compile(
    rb"""
    (?P<good> [\x00-\x7f]
            | [\xc2-\xdf][\x80-\xbf]
            | \xe0[\xa0-\xbf][\x80-\xbf]
            | [\xe1-\xec\xee\xef][\x80-\xbf]{2}
            | \xed[\x80-\x9f][\x80-\xbf]
            | \xf0[\x90-\xbf][\x80-\xbf]{2}
            | [\xf1-\xf3][\x80-\xbf]{3}
            | \xf4[\x80-\x8f][\x80-\xbf]{2} )
    |       \xed[\xa0-\xbf][\x80-\xbf]          # a surrogate, which Python replaces byte by byte
    |       \xe0[\xa0-\xbf]
    |       [\xe1-\xef][\x80-\xbf]
    |       \xf0[\x90-\xbf][\x80-\xbf]?
    |       [\xf1-\xf3][\x80-\xbf]{1,2}
    |       \xf4[\x80-\x8f][\x80-\xbf]?
    |       [\x80-\xff]
    """,
    re.VERBOSE | re.DOTALL,
)


def java_utf8(data: bytes) -> bytes:
    """UTF-8 of `new String(data, UTF_8)`.

    >>> java_utf8(b"a\\xed\\xa0\\x80b\\xff").decode()
    'a\\ufffdb\ufffd'
    """
    return b"".join(match["good"] or REPLACEMENT for match in _CHARACTER.finditer(data))


def decimal(number: int) -> bytes:
    """Digits by repeated division.

    >>> decimal(-120), decimal(0)
    (b'-120', b'0')
    """
    rest, digits = abs(number), []
    while True:
        rest, digit = divmod(rest, 10)
        digits.append(b"0123456789"[digit])
        if rest == 0:
            break
    return b"-" * (number < 0) + bytes(reversed(digits))
