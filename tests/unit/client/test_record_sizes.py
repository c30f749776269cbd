"""How large a record may be for a producer: the same, in the same words, for one record and for columns of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from logstore.client.store import Store
from logstore.errors import AbortRequiredError, RecordTooLargeError
from logstore.layout.record import Headers
from tests.support.stores import LONG_MS, begun, patient_producer

TOPICS = {"one": 1}

LIMIT = 300
HEADERS: Headers = [("h", bytes(40)), ("i", None)]
# value sizes at which a record with this key and these headers is just within the limit, at it and beyond
ROWS = [
    (key, headers, LIMIT - 84 - len(key or b"") - header_size + more)
    for key in (None, b"", bytes(5), bytes(100))
    for headers, header_size in (((), 0), (HEADERS, 47))
    for more in range(-4, 4)
]


def refusal(send: Callable[..., object], *arguments: Any, **keywords: Any) -> str | None:
    try:
        send("one", *arguments, **keywords)
    except RecordTooLargeError as error:
        return str(error)
    return None


@pytest.mark.parametrize("limit", ["max_request_size", "buffer_memory"])
def test_a_row_is_refused_as_a_record_is(store: Store, limit: str) -> None:
    found = []
    with patient_producer(store, batch_size=0, **{limit: LIMIT}) as sending:
        for key, headers, value_size in ROWS:
            value = bytes(value_size)
            one = refusal(sending.send, value, key, headers)
            sending.flush()
            many = refusal(sending.send_columns, [b"", value, None], [b"k", key, b"k"], headers=[(), headers, ()])
            assert many == one, (key, headers, value_size)
            found.append(one is not None)
    assert 16 < sum(found) < len(found) - 16


def test_rows_of_one_width_are_refused_by_their_width(store: Store) -> None:
    with patient_producer(store, max_request_size=LIMIT) as sending:
        sending.send_columns("one", np.full(3, b"v" * 200, "S200"))
        text = refusal(sending.send_columns, np.full(3, b"v" * 250, "S250"))
    assert text.startswith("The message is 336 bytes when serialized which is larger than 300, which is the value")
    assert store.log("one", 0).log_end_offset == 3


def test_nothing_is_written_and_the_transaction_does_not_count(store: Store) -> None:
    sending = begun(store, max_request_size=LIMIT, linger_ms=LONG_MS)
    with pytest.raises(RecordTooLargeError):
        sending.send_columns("one", [b"small", bytes(LIMIT)])
    assert store.log("one", 0).log_end_offset == 0
    with pytest.raises(AbortRequiredError):
        sending.commit_transaction()
    sending.close()
