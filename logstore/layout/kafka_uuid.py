"""Kafka's uuids: 16 bytes, written as 22 characters of URL-safe base64 without padding (`Uuid`).

>>> parse_uuid("dqEnd-x7SkKckvU0_kJgLQ").hex()
'76a12777ec7b4a429c92f534fe42602d'
>>> format_uuid(parse_uuid("dqEnd-x7SkKckvU0_kJgLQ"))
'dqEnd-x7SkKckvU0_kJgLQ'
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode

from ..errors import CheckpointFormatError

SIZE = 16
ZERO_UUID = bytes(SIZE)
_LONGEST_TEXT = 24
_BASE64 = re.compile("[A-Za-z0-9_-]*")


def parse_uuid(text: str) -> bytes:
    """The 16 bytes that `text` stands for; padding may be there or not.

    Raises:
        CheckpointFormatError: with java_class IllegalArgumentException; Kafka's text for a wrong length.
    """
    if len(text) > _LONGEST_TEXT:
        raise _error(
            f"Input string with prefix `{text[:_LONGEST_TEXT]}` is too long to be decoded as a base64 UUID"
        )
    digits = text.rstrip("=") if len(text) % 4 == 0 and not text.endswith("===") else text
    valid = _BASE64.match(digits)
    if valid is None or valid.end() < len(digits):
        raise _error(f"Illegal base64 character {ord(digits[valid.end() if valid else 0]):x}")
    if len(digits) % 4 == 1:
        raise _error("Last unit does not have enough valid bits")
    data = urlsafe_b64decode(digits + "=" * (-len(digits) % 4))
    if len(data) != SIZE:
        raise _error(
            f"Input string `{text}` decoded as {len(data)} bytes, which is not equal to the expected "
            f"{SIZE} bytes of a base64-encoded UUID"
        )
    return data


def format_uuid(data: bytes) -> str:
    """The 22 characters for 16 bytes."""
    return urlsafe_b64encode(data).decode("ascii").rstrip("=")


def _error(text: str) -> CheckpointFormatError:
    return CheckpointFormatError(text, java_class="java.lang.IllegalArgumentException")
