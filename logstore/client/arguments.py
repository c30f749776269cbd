"""What programs name partitions and offsets by, checked: an error says what is wrong before anything is done."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral
from operator import index as as_index
from typing import Any

from ..errors import UsageError
from ..model import TopicPartition


def topic_name(given: Any) -> str:
    """A topic's name as it was given; raises UsageError if it is no text."""
    if isinstance(given, str):
        return given if type(given) is str else str.__str__(given)  # whose hash is not the caller's code
    raise UsageError("A topic is given by its name", expected="a str", found=repr(given))


def topic_partition(given: Any) -> TopicPartition:
    """A partition as `TopicPartition`.

    Raises:
        UsageError: it is not a topic's name and a number.
    """
    if isinstance(given, tuple | list) and len(given) == 2:
        topic, number = given
        if isinstance(topic, str) and isinstance(number, Integral):
            return TopicPartition(topic, int(number))
    raise UsageError("A partition is a TopicPartition", expected="a topic's name and a number", found=repr(given))


def topic_partitions(given: Any) -> list[TopicPartition]:
    """Several of them; raises UsageError as well if it is no list at all."""
    if isinstance(given, Iterable):
        return [topic_partition(one) for one in given]
    raise UsageError("Partitions are given as a list", expected="a list", found=repr(given))


def whole_offset(given: Any) -> int:
    """An offset, or a time, as it was given; raises UsageError if it is not a whole number."""
    if isinstance(given, Integral):
        return int(given)
    raise UsageError("Offsets and times are whole numbers", expected="an int", found=repr(given))


def not_negative(name: str, value: Any, maximum: int) -> int:
    """`value` as an int, or refused before it comes into a batch with others (`ProducerRecord`)."""
    try:
        number = as_index(value)
    except TypeError:
        number = -1
    if 0 <= number <= maximum:
        return number
    what = "Partition number" if name == "partition" else name.capitalize()
    raise UsageError(
        f"Invalid {name}: {value}. {what} should always be non-negative or null.",
        expected=f"an int from 0 to {maximum}",
        found=repr(value),
        java_class="java.lang.IllegalArgumentException",
    )
