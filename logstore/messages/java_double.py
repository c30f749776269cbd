"""Doubles as Java prints them: `Double.toString` of Java 17, the oldest that Kafka 4.3 runs on.

Up to Java 18 the digits are not always the fewest that tell a double from its neighbours: whole numbers from
2^54 on keep digits that do not matter (1.52587606865186074E18), and digit generation stops late now and then
(8.270000000000001E21). Later versions have the digits of Python's repr; everyday quotas look the same in all.
Beyond 2^63 the last digit is, very rarely, not the one that Java 17 rounds to.

>>> [java_double(value) for value in (0.0, -1.5, 1048576.0, 1e7, 0.001, 0.00012)]
['0.0', '-1.5', '1048576.0', '1.0E7', '0.001', '1.2E-4']
>>> [java_double(value) for value in (1525876068651860736.0, 8.27e21)]
['1.52587606865186074E18', '8.270000000000001E21']
"""

from __future__ import annotations

import math

_MANTISSA_BITS = 53


def java_double(value: float) -> str:
    """Return `Double.toString(value)`: without an exponent from 0.001 to below 10 million, else with one."""
    if math.isnan(value):
        return "NaN"
    sign = "-" if math.copysign(1, value) < 0 else ""
    if math.isinf(value):
        return sign + "Infinity"
    if value == 0:
        return sign + "0.0"
    digits, point = _digits(abs(value))
    digits = digits.rstrip("0")
    if 0 < point < 8:
        return f"{sign}{digits[:point]:0<{point}}.{digits[point:] or '0'}"
    if -3 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"


def _digits(value: float) -> tuple[str, int]:
    """Return the decimal digits of a positive double, and how many of them stand before the point."""
    numerator, denominator = value.as_integer_ratio()
    exponent = math.frexp(value)[1] - 1
    # a subnormal double has fewer bits than 53
    significant_bits = min(_MANTISSA_BITS, exponent + 1075)
    if denominator == 1 and exponent <= 62:
        return _whole_digits(numerator, exponent - significant_bits - 1)
    return _shortest_digits(value, exponent, significant_bits)


def _whole_digits(value: int, free_bits: int) -> tuple[str, int]:
    """Return the digits of a whole number, rounded to those that its bits above the lowest `free_bits` determine."""
    dropped = len(str(1 << free_bits)) - 1 if free_bits > 0 else 0
    power = 10**dropped
    digits = str((value + power // 2) // power)
    return digits, len(digits) + dropped


def _shortest_digits(value: float, exponent: int, significant_bits: int) -> tuple[str, int]:
    """Generate digits until the rest is within half a unit in the last place, as `FloatingDecimal` does."""
    numerator, denominator = value.as_integer_ratio()
    scale = _estimated_scale(value, exponent)
    rest = numerator * 10 ** max(0, -scale)
    unit = denominator * 10 ** max(0, scale)
    # half a unit in the last place is 2^(exponent - significant_bits); below a power of two it is half of that
    half_exponent = exponent - significant_bits - (numerator & (numerator - 1) == 0)
    half = denominator * 10 ** max(0, -scale) << max(0, half_exponent)
    rest, unit = rest << max(0, -half_exponent), unit << max(0, -half_exponent)
    digits: list[int] = []
    while True:
        digit, rest = divmod(rest, unit)
        rest, half = rest * 10, half * 10
        is_low, is_high = rest < half, rest + half > unit * 10
        if digits or digit or is_high:
            digits.append(digit)
            is_too_short = len(digits) == 1 and not -3 <= scale < 8  # an exponent follows: two digits at least
        else:
            scale -= 1  # the estimate was one too high
            is_too_short = not -3 <= scale < 8
        if (is_low or is_high) and not is_too_short:
            break
    number = int("".join(map(str, digits)))
    # round up if the rest is more than a half; a rest of exactly a half rounds to an even digit
    if is_high and (not is_low or rest * 2 > unit * 10 or (rest * 2 == unit * 10 and number % 2)):
        number += 1
    text = str(number).zfill(len(digits))
    return text, scale + 1 + len(text) - len(digits)


def _estimated_scale(value: float, exponent: int) -> int:
    """Estimate the exponent of ten by the first terms of a logarithm; it may be one too high (`estimateDecExp`)."""
    mantissa = math.frexp(value)[0] * 2
    return math.floor((mantissa - 1.5) * 0.289529654 + 0.176091259 + exponent * 0.301029995663981)
