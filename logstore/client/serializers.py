"""Conversion of a program's values to bytes and back, by functions of one argument such as `str.encode`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import LogstoreError, SerializationError, UsageError
from ..layout.record import bytes_of
from ..model import TopicPartition
from .arguments import require_function

Serializer = Callable[[Any], bytes | None]
Deserializer = Callable[[bytes], Any]


def require_functions(**given: object) -> None:
    """Raise UsageError for a serializer or deserializer that is neither None nor a function."""
    for name, function in given.items():
        if function is not None:
            require_function(name, function)


def serialized(serializer: Serializer | None, name: str, topic: str, value: Any) -> bytes | None:
    """Return key or value as bytes; without a serializer it must be bytes-like already.

    None stays None, and the serializer is not asked: null is the delete marker of a compacted topic, and no value.
    Raises SerializationError if it is not bytes, or the serializer failed.
    """
    if value is None or (type(value) is bytes and serializer is None):
        return value
    message = f"Can't convert {name} of class {type(value).__name__} for topic {topic}"
    advice = f"encode it, or give the producer a {name}_serializer"
    if serializer is not None:
        try:
            value = serializer(value)
        except LogstoreError:
            raise
        except Exception as error:
            raise SerializationError(
                message, found=repr(error), advice=f"give what the {name}_serializer takes"
            ) from error
        if value is None:
            return None
        advice = f"let the {name}_serializer return bytes"
    try:
        return bytes_of(value)
    except UsageError as error:
        found = f"{type(value).__name__}{'' if serializer is None else f' from the {name}_serializer'}"
        raise SerializationError(message, expected="bytes or None", found=found, advice=advice) from error


def deserialized(
    deserializer: Deserializer | None, name: str, topic_partition: TopicPartition, offset: int, data: bytes | None
) -> Any:
    """Return key or value as the program wants it; null stays None (`CompletedFetch.parseRecord`).

    Raises SerializationError if the deserializer failed.
    """
    if deserializer is None or data is None:
        return data
    try:
        return deserializer(data)
    except Exception as error:
        raise SerializationError(
            f"Error deserializing {name.upper()} for partition {topic_partition} at offset {offset}. If needed, please "
            "seek past the record to continue consumption.",
            offset=offset,
            partitions=(topic_partition,),
            found=repr(error),
        ) from error
