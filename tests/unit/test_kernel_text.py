"""Decimals at every edge, and what a JVM makes of broken UTF-8."""

from __future__ import annotations

import numpy as np
import pytest

from logstore.kernels.dump_text import POOL
from logstore.kernels.text import DECIMAL_SIZE_MAX, SLACK_SIZE, literal, text_of_decimal, text_of_utf8
from logstore.layout.utf8 import java_utf8
from tests.naive import java_text
from tests.unit.kernel_forms import run_both

POWERS = [10**k for k in range(19)]
EDGES = sorted(
    {sign * (power + step) for power in POWERS for step in (-1, 0, 1) for sign in (1, -1)}
    | {sign * digit * power for power in POWERS for digit in (2, 9) for sign in (1, -1) if digit * power < 2**63}
    | {2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 2**31, -(2**31), 2**31 - 1, 1001001001001001001, 999999999999999}
)

# hex of the bytes, and of `new String(bytes, UTF_8).getBytes(UTF_8)` in OpenJDK 17
JAVA = {
    "a surrogate is one": ("eda080", "efbfbd"),
    "so are its first two bytes": ("eda0", "efbfbd"),
    "and before something else": ("eda041", "efbfbd41"),
    "a surrogate pair is two": ("eda081edb080", "efbfbdefbfbd"),
    "two of three bytes": ("e4b8", "efbfbd"),
    "two of three bytes, then another": ("e4b841", "efbfbd41"),
    "three of four bytes": ("f09f98", "efbfbd"),
    "two of four bytes, then another": ("f09f41", "efbfbd41"),
    "too long for ASCII": ("c080", "efbfbdefbfbd"),
    "too long for two bytes": ("e08080", "efbfbdefbfbdefbfbd"),
    "too long for three bytes": ("f0808080", "efbfbdefbfbdefbfbdefbfbd"),
    "beyond the last code point": ("f4908080", "efbfbdefbfbdefbfbdefbfbd"),
    "a lead byte that there is not": ("f88080", "efbfbdefbfbdefbfbd"),
    "a lone continuation": ("80", "efbfbd"),
    "well-formed ones stay": ("00417fc280dfbfe0a080ed9fbfee8080efbfbff0908080f48fbfbf",) * 2,
}


def decimal(value: int) -> bytes:
    out = np.zeros(DECIMAL_SIZE_MAX + SLACK_SIZE, np.uint8)
    return out[: run_both(text_of_decimal, value, POOL, out)].tobytes()


def utf8(data: bytes) -> bytes:
    out = np.zeros(3 * len(data) + SLACK_SIZE, np.uint8)
    size = run_both(text_of_utf8, np.frombuffer(data, np.uint8), 0, len(data), POOL, out)
    return out[:size].tobytes()


def test_decimals_at_every_edge() -> None:
    for value in EDGES:
        assert decimal(value) == java_text.decimal(value) == str(value).encode()


def test_no_decimal_is_longer_than_is_said() -> None:
    assert max(len(decimal(value)) for value in EDGES) == DECIMAL_SIZE_MAX


@pytest.mark.parametrize(("given", "printed"), JAVA.values(), ids=JAVA)
def test_broken_utf8_is_what_a_jvm_makes_of_it(given: str, printed: str) -> None:
    data, expected = bytes.fromhex(given), bytes.fromhex(printed)
    assert utf8(data) == expected
    assert java_utf8(data).encode() == expected
    assert java_text.java_utf8(data) == expected


def test_every_lead_byte_before_bytes_at_every_limit() -> None:
    seconds = [b"", *(bytes([byte]) for byte in (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0))]
    rests = [b"", b"\x80", b"\xbf", b"A", b"\x80\x80", b"\xbfA", b"\xbf\xc2", b"\x80\x80\x80"]
    pieces = [bytes([lead]) + second + rest for lead in range(128, 256) for second in seconds for rest in rests]
    data = b"A".join(pieces)
    assert utf8(data) == java_text.java_utf8(data) == java_utf8(data).encode()
    for piece in pieces:
        assert text_at_the_end(piece) == java_text.java_utf8(piece)


def text_at_the_end(data: bytes) -> bytes:
    """By the compiled form alone, with what would go on right behind."""
    out = np.zeros(3 * len(data) + SLACK_SIZE, np.uint8)
    array = np.frombuffer(data + b"\x80\x80\x80", np.uint8)
    return out[: text_of_utf8(array, 0, len(data), POOL, out)].tobytes()


def test_ascii_of_every_length_is_copied_and_nothing_else() -> None:
    text = b"0123456789abcdefghijklmnopqrstuvwxyz"
    for size in range(len(text)):
        out = np.full(size + SLACK_SIZE, 0x2A, np.uint8)
        assert run_both(text_of_utf8, np.frombuffer(text, np.uint8), 0, size, POOL, out) == size
        assert out.tobytes() == text[:size] + b"*" * SLACK_SIZE


def test_a_bad_byte_at_any_place_of_a_word_is_found() -> None:
    for size in range(1, 20):
        for place in range(size):
            data = b"x" * place + b"\xff" + b"x" * (size - place - 1)
            assert utf8(data) == data.replace(b"\xff", "\ufffd".encode())


def test_a_literal_remembers_where_it_is_and_how_long() -> None:
    number = literal("the text of a literal")
    assert number % 128 == len("the text of a literal")
