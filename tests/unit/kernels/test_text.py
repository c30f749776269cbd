"""Decimals at every edge, and what a JVM makes of broken UTF-8."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np

from logstore.kernels.dump.text import SLACK_SIZE, literal, put_bytes
from logstore.layout.utf8 import java_utf8
from tests.naive import java_text
from tests.support.kernel_dump import printed, printed_number, printed_text
from tests.support.kernel_forms import Guarded

POWERS = [10**k for k in range(19)]
EDGES = sorted(
    {sign * (power + step) for power in POWERS for step in (-1, 0, 1) for sign in (1, -1)}
    | {sign * digit * power for power in POWERS for digit in (2, 9) for sign in (1, -1) if digit * power < 2**63}
    | {2**63 - 1, 2**63 - 2, -(2**63), -(2**63) + 1, 2**31, -(2**31), 2**31 - 1, 1001001001001001001, 999999999999999}
)


def test_decimals_are_javas_at_every_edge() -> None:
    for value in EDGES:
        assert printed_number(value) == java_text.decimal(value) == str(value).encode()


def test_every_lead_byte_before_bytes_at_every_limit() -> None:
    seconds = [b"", *(bytes([byte]) for byte in (0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0))]
    rests = [b"", b"\x80", b"\xbf", b"A", b"\x80\x80", b"\xbfA", b"\xbf\xc2", b"\x80\x80\x80"]
    pieces = [bytes([lead]) + second + rest for lead in range(128, 256) for second in seconds for rest in rests]
    data = b"A".join(pieces)
    assert printed_text(data) == java_text.java_utf8(data) == java_utf8(data).encode()
    ends = list(accumulate(map(len, pieces)))
    lines = printed(b"".join(pieces), list(pairwise([0, *ends])))
    assert lines == b"".join(b"| payload: " + java_text.java_utf8(piece) + b"\n" for piece in pieces)


def test_ascii_of_every_length_is_copied_and_nothing_else() -> None:
    text = np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyz", np.uint8)
    for size in range(text.size):
        out = np.full(size + SLACK_SIZE, 0x2A, np.uint8)
        assert put_bytes(Guarded(out), 0, Guarded(text[:size]), 0, size) == 0
        assert out.tobytes() == text[:size].tobytes() + b"*" * SLACK_SIZE


def test_a_bad_byte_at_any_place_of_a_word_is_found() -> None:
    for size in range(1, 20):
        for place in range(size):
            data = b"x" * place + b"\xff" + b"x" * (size - place - 1)
            assert printed_text(data) == data.replace(b"\xff", "\ufffd".encode())


def test_a_literal_remembers_where_it_is_and_how_long() -> None:
    number = literal("the text of a literal")
    assert number % 128 == len("the text of a literal")
