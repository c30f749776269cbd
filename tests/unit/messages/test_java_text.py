"""Text of bytes and doubles, as the JVM writes it: tables recorded from Java 17."""

from __future__ import annotations

import struct

import pytest

from logstore.layout.utf8 import java_utf8
from logstore.messages.json_form import java_double
from tests.naive import java_text
from tests.support.kernel_dump import printed_text

#: bytes in hex, `new String(bytes, UTF_8)`
DECODED = [
    ("ff", "\ufffd"),
    ("c0", "\ufffd"),
    ("c1bf", "\ufffd\ufffd"),
    ("c2", "\ufffd"),
    ("c3a9", "\xe9"),
    ("e0", "\ufffd"),
    ("e08080", "\ufffd\ufffd\ufffd"),
    ("e0a080", "\u0800"),
    ("e0a0", "\ufffd"),
    ("ed", "\ufffd"),
    ("eda0", "\ufffd"),
    ("eda080", "\ufffd"),
    ("edbfbf", "\ufffd"),
    ("eda041", "\ufffdA"),
    ("ed9fbf", "\ud7ff"),
    ("eda0bdedb880", "\ufffd\ufffd"),
    ("f0", "\ufffd"),
    ("f08080", "\ufffd\ufffd\ufffd"),
    ("f0808080", "\ufffd\ufffd\ufffd\ufffd"),
    ("f09f", "\ufffd"),
    ("f09f98", "\ufffd"),
    ("f09f9880", "\U0001f600"),
    ("f09f9841", "\ufffdA"),
    ("f0909041", "\ufffdA"),
    ("f4908080", "\ufffd\ufffd\ufffd\ufffd"),
    ("f48fbfbf", "\U0010ffff"),
    ("f5808080", "\ufffd\ufffd\ufffd\ufffd"),
    ("f8888080", "\ufffd\ufffd\ufffd\ufffd"),
    ("80", "\ufffd"),
    ("bfbf", "\ufffd\ufffd"),
    ("e28241", "\ufffdA"),
    ("f09f41", "\ufffdA"),
    ("e282", "\ufffd"),
    ("c241", "\ufffdA"),
    ("efbfbd", "\ufffd"),
    ("efbbbf", "\ufeff"),
    ("f5e1f5fff4e0e0", "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd"),
    ("f5eda09ff4e1e0ef", "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd"),
    ("f49f80e0bf9f80e1", "\ufffd\ufffd\ufffd\u0fdf\ufffd\ufffd"),
    ("edc2e0ef", "\ufffd\ufffd\ufffd\ufffd"),
    ("ef9fed41f5e18041", "\ufffd\ufffdA\ufffd\ufffdA"),
    ("a0ffa0ed", "\ufffd\ufffd\ufffd\ufffd"),
    ("f4e0c0e0", "\ufffd\ufffd\ufffd\ufffd"),
    ("f5a0e1a0efbfe041", "\ufffd\ufffd\ufffd\ufffd\ufffdA"),
    ("e0efbfc2", "\ufffd\ufffd\ufffd"),
    ("fff580f0bfc0f4a0", "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd"),
    ("bf4180edf480c280", "\ufffdA\ufffd\ufffd\ufffd\x80"),
    ("c28041f5ef41", "\x80A\ufffd\ufffdA"),
    ("a0ffff41e0", "\ufffd\ufffd\ufffdA\ufffd"),
    ("f0c2c280edefa0", "\ufffd\ufffd\x80\ufffd\ufffd"),
    ("c080bfc041c2", "\ufffd\ufffd\ufffd\ufffdA\ufffd"),
    ("9fa0f080", "\ufffd\ufffd\ufffd\ufffd"),
    ("41e0f4e0", "A\ufffd\ufffd\ufffd"),
    ("efe1a0e0e1", "\ufffd\ufffd\ufffd\ufffd"),
    ("f0f49fc2ef", "\ufffd\ufffd\ufffd\ufffd\ufffd"),
    ("80c2c2a041bff5", "\ufffd\ufffd\xa0A\ufffd\ufffd"),
    ("bfff41a09fc2f5ed", "\ufffd\ufffdA\ufffd\ufffd\ufffd\ufffd\ufffd"),
    ("80419fa0e0bf41f4", "\ufffdA\ufffd\ufffd\ufffdA\ufffd"),
    ("c0f5bfc2808080a0", "\ufffd\ufffd\ufffd\x80\ufffd\ufffd\ufffd"),
    ("efa041edc0c0ede0", "\ufffdA\ufffd\ufffd\ufffd\ufffd\ufffd"),
]

#: bits in hex, `Double.toString`
PRINTED = [
    ("0000000000000000", "0.0"),
    ("0000000000000001", "4.9E-324"),
    ("0000000000000003", "1.5E-323"),
    ("00000000000007e8", "1.0E-320"),
    ("0010000000000000", "2.2250738585072014E-308"),
    ("369ff868bf4d956a", "1.4E-45"),
    ("3ee4f8b588e368f1", "1.0E-5"),
    ("3ee9cb8320b15070", "1.23E-5"),
    ("3f1cd5f99c38b04b", "1.1E-4"),
    ("3f506243162a38e4", "9.9999E-4"),
    ("3f50624dd2f1a9fc", "0.001"),
    ("3f60624dd2f1a9fc", "0.002"),
    ("3fb999999999999a", "0.1"),
    ("3fd5555555555555", "0.3333333333333333"),
    ("3fe0000000000000", "0.5"),
    ("3fe5555555555555", "0.6666666666666666"),
    ("3ff0000000000000", "1.0"),
    ("3ff0147ae147ae14", "1.005"),
    ("400921fb54442d18", "3.141592653589793"),
    ("4011666666666666", "4.35"),
    ("4040aaaaaaaaaaab", "33.333333333333336"),
    ("40fe240c9fbe76c9", "123456.789"),
    ("4130000000000000", "1048576.0"),
    ("416312cfe0000000", "9999999.0"),
    ("416312d000000000", "1.0E7"),
    ("41678c29dccccccd", "1.23456789E7"),
    ("4199000002000000", "1.048576005E8"),
    ("421950e38fb25c9f", "2.718281828459045E10"),
    ("430c6bf526340002", "1.0000000000000002E15"),
    ("4340000000000000", "9.007199254740992E15"),
    ("4350000000000001", "1.8014398509481988E16"),
    ("43b52d0033334383", "1.5258760686518607E18"),
    ("43c5555555555555", "3.0744573456182584E18"),
    ("43e0000000000000", "9.223372036854776E18"),
    ("444b1ae4d6e2ef50", "1.0E21"),
    ("44716190d2c1859e", "5.13E21"),
    ("447c0514e1fa9808", "8.27E21"),
    ("447c7e83209e90b2", "8.41E21"),
    ("447f5718987664b4", "9.25E21"),
    ("4480f0cf064dd592", "1.0E22"),
    ("44b52d02c7e14af6", "1.0E23"),
    ("44c52d02c7e14af6", "2.0E23"),
    ("47efffffe0000000", "3.4028234663852886E38"),
    ("7e37e43c8800759c", "1.0E300"),
    ("7fefffffffffffff", "1.7976931348623157E308"),
    ("7ff0000000000000", "Infinity"),
    ("7ff8000000000000", "NaN"),
    ("8000000000000000", "-0.0"),
    ("bff8000000000000", "-1.5"),
    ("fff0000000000000", "-Infinity"),
]


@pytest.mark.parametrize(("data", "text"), DECODED)
def test_broken_utf8_decodes_as_in_java_alone_and_among_sound_text(data: str, text: str) -> None:
    content, around = bytes.fromhex(data), "é😀"
    assert java_utf8(content) == java_text.java_utf8(content).decode() == printed_text(content).decode() == text
    assert java_utf8(around.encode() + content + b"." + around.encode()) == f"{around}{text}.{around}"


@pytest.mark.parametrize(("bits", "text"), PRINTED)
def test_doubles_print_as_in_java(bits: str, text: str) -> None:
    assert java_double(struct.unpack(">d", bytes.fromhex(bits))[0]) == text
