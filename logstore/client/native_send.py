"""`Producer.send` in machine code, for producers whose plain records need nothing seen to, see `kernels.send_steps`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import cache

from ..kernels import machine_function
from ..kernels.machine_function import Place, new_place
from ..kernels.send_slots import NAMES, PRODUCER_SLOTS
from .producer_states import ProducerState
from .producer_transactions import ProducerTransactions
from .quick_batches import NativeQuickBatches
from .record_future import RecordFuture


@cache
def is_usable() -> bool:
    """Whether there can be such a function in this Python."""
    return machine_function.is_usable() and min(_future_places().values()) > 0


def native_send(
    send: Callable[..., RecordFuture],
    batches: NativeQuickBatches,
    transactions: ProducerTransactions | None,
    *,
    batch_size: int,
    has_clock: bool,
) -> Callable[..., RecordFuture]:
    """The function; whatever is not for it goes to `send`, a method of `Producer`.

    Args:
        batches: those that plain records go into.
        transactions: in one of which the records have to be; None: there are none.
        batch_size: bytes that a batch has room for.
        has_clock: the time of a record is the system's; else `send` is asked where none is given.
    """
    objects: dict[str, object] = {
        "quick": batches.by_topic,
        "future_type": RecordFuture,
        "call_python": send,
        "in_transaction": ProducerState.IN_TRANSACTION,
        "state_name": sys.intern("state"),
        "minus_one": -1,
        "none": None,
        "bytes": bytes,
        "str": str,
        "int": int,
        **{name: sys.intern(name) for name in NAMES},
    }
    if transactions is not None:
        objects["transactions"] = transactions
    numbers = {"transactions": 0, "batch_size": batch_size, "has_clock": int(has_clock), **_future_places()}
    place = new_place(Place, PRODUCER_SLOTS)
    place.objects = tuple(objects.values())
    for number, name in enumerate(PRODUCER_SLOTS):
        place.block[number] = id(objects[name]) if name in objects else numbers[name]
    made: Callable[..., RecordFuture] = machine_function.new_function("send_steps", "send", place, _text(send))
    return made


@cache
def _future_places() -> dict[str, int]:
    names = {"batch_place": "_batch", "index_place": "_index", "key_place": "_key_size", "value_place": "_value_size"}
    return {place: machine_function.place_of_slot(RecordFuture, name) for place, name in names.items()}


def _text(send: Callable[..., RecordFuture]) -> str:
    """What `help` and `inspect.signature` show, for they do not see the method."""
    parameters = inspect.signature(send).parameters.values()
    plain = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    return f"send{inspect.Signature(plain)}\n--\n\n{inspect.getdoc(send)}"
