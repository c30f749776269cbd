"""Kafka's UUIDs: 16 bytes, written as 22 characters of URL-safe base64 without padding (`Uuid`).

>>> parse_uuid("dqEnd-x7SkKckvU0_kJgLQ").hex()
'76a12777ec7b4a429c92f534fe42602d'
>>> format_uuid(parse_uuid("dqEnd-x7SkKckvU0_kJgLQ"))
'dqEnd-x7SkKckvU0_kJgLQ'
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from os import urandom  # `secrets` takes 5 ms to import

from ..errors import CheckpointFormatError

SIZE = 16
ZERO_UUID = bytes(SIZE)
_LONGEST_TEXT = 24
_TEXT_SIZE = 22
_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_DIGITS = frozenset(_ALPHABET)
_PADDING = ord("=")


def parse_uuid(text: str) -> bytes:
    """Return the 16 bytes of a UUID's text, perhaps with padding; raise CheckpointFormatError with Kafka's message."""
    if len(text) > _LONGEST_TEXT:
        raise _error(f"Input string with prefix `{text[:_LONGEST_TEXT]}` is too long to be decoded as a base64 UUID")
    data = _decoded(text)
    if len(data) != SIZE:
        raise _error(
            f"Input string `{text}` decoded as {len(data)} bytes, which is not equal to the expected "
            f"{SIZE} bytes of a base64-encoded UUID"
        )
    return data


def format_uuid(data: bytes) -> str:
    """Return the 22 characters of 16 bytes."""
    return urlsafe_b64encode(data).decode("ascii").rstrip("=")


def random_uuid() -> str:
    """Return a random UUID of version 4 whose text does not begin with a dash (`Uuid.randomUuid`)."""
    while True:
        data = bytearray(urandom(SIZE))
        data[6] = data[6] & 0x0F | 0x40
        data[8] = data[8] & 0x3F | 0x80
        text = format_uuid(bytes(data))
        if not text.startswith("-"):
            return text


def _decoded(text: str) -> bytes:
    """Decode `text` as `Base64.getUrlDecoder().decode` does, which ignores surplus bits of the last digit."""
    characters = text.encode("iso-8859-1", "replace")
    if len(characters) == _TEXT_SIZE and not characters.translate(None, _ALPHABET):
        return urlsafe_b64decode(characters + b"==")
    if len(characters) == 1:
        raise _error("Input byte[] should at least have 2 bytes for base64 bytes")
    digit_count = len(characters.rstrip(b"="))
    padding_count = len(characters) - digit_count
    for index, character in enumerate(characters[:digit_count]):
        if character not in _DIGITS and character != _PADDING:
            signed = character - 256 if character > 127 else character
            raise _error(f"Illegal base64 character {signed:x}")
        if character == _PADDING:
            digit_count, padding_count = index, len(characters) - index
            break
    if digit_count % 4 == 1:
        raise _error("Last unit does not have enough valid bits")
    if padding_count:
        _check_padding(characters, digit_count)
    return urlsafe_b64decode(characters[:digit_count] + b"=" * (-digit_count % 4))


def _check_padding(characters: bytes, digit_count: int) -> None:
    """Raise unless the digits are followed by exactly the padding that they need."""
    missing_count = -digit_count % 4
    if missing_count == 0 or (missing_count == 2 and characters[digit_count : digit_count + 2] != b"=="):
        raise _error("Input byte array has wrong 4-byte ending unit")
    if len(characters) > digit_count + missing_count:
        raise _error(f"Input byte array has incorrect ending byte at {digit_count + missing_count}")


def _error(text: str) -> CheckpointFormatError:
    return CheckpointFormatError(text, java_class="java.lang.IllegalArgumentException")
