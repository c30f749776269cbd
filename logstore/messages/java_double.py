"""Doubles as Java prints them: `Double.toString` of JDK 19 and newer, the fewest digits that tell a double apart.

JDK 17 and 18, on which Kafka 4 runs too, print more digits than that for some doubles (JDK-4511638).

>>> [java_double(value) for value in (0.0, -1.5, 1048576.0, 1e7, 0.001, 0.00012)]
['0.0', '-1.5', '1048576.0', '1.0E7', '0.001', '1.2E-4']
>>> [java_double(value) for value in (8.27e21, 5e-324)]
['8.27E21', '4.9E-324']
"""

from __future__ import annotations

import math
from decimal import Decimal


def java_double(value: float) -> str:
    """Return `Double.toString(value)`: without an exponent from 0.001 to below 10 million, else with one."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 0.001 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:.1e}".partition("e")  # Java has two digits where one would do
    _, digits, power = Decimal(repr(value)).normalize().as_tuple()
    if len(digits) > 1:
        sign = "-" if value < 0 else ""
        mantissa, exponent = f"{sign}{digits[0]}.{''.join(map(str, digits[1:]))}", f"{int(power) + len(digits) - 1}"
    return f"{mantissa}E{int(exponent)}"
