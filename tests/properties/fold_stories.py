"""What producers and their coordinator may do to one partition, as batches in the order of their offsets."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from logstore.columns.batch_table import BatchTable, scan
from logstore.folds import open_transactions, producer_buffers
from logstore.kernels.fold.producers import apply_updates, fold_producers
from logstore.native.kernel import Kernel
from tests.support.encoder import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Batch, Rec
from tests.support.kernel_forms import run_both_on

INT_MAX = 2**31 - 1
CROWDED = [1000 * i for i in range(12)]  # eight of them share a bucket of sixteen
PRODUCER_IDS = [0, 1, 2, 16, 17, 33, 2**32, 2**40 + 5, 2**63 - 1, -5, *CROWDED]


@dataclass
class Actor:
    """What the story knows of a producer."""

    epoch: int = 0
    next_sequence: int = 0
    coordinator_epoch: int = 0


def marker(base_offset: int, *, is_abort: bool, coordinator_epoch: int, **fields: int) -> Batch:
    key = struct.pack(">hh", 0, 0 if is_abort else 1)
    record = Rec(key=key, value=struct.pack(">hi", 0, coordinator_epoch))
    flags = TRANSACTIONAL | CONTROL | fields.pop("flags", 0)
    return Batch(base_offset, [record], flags=flags, **fields)


@st.composite
def stories(draw: st.DrawFn, *, size_max: int = 50, is_honest: bool = False) -> list[Batch]:
    """Batches of some producers, interleaved; honest ones never go back and end what they began."""
    producer_ids = draw(
        st.lists(st.sampled_from(PRODUCER_IDS), min_size=1, max_size=draw(st.sampled_from([3, 9, 22])), unique=True)
    )
    transactional = {pid for pid in producer_ids if draw(st.booleans())}
    start = st.sampled_from([0, 0, 0, INT_MAX - 1, INT_MAX, 7])
    first_epoch = st.sampled_from([0, 0, 0, 32766, 32767])
    actors = {pid: Actor(draw(first_epoch), draw(start)) for pid in producer_ids}
    offset, batches = draw(st.sampled_from([0, 0, 5, 2**40])), []
    for _ in range(draw(st.integers(1, size_max))):
        pid = draw(st.sampled_from(producer_ids))
        batch = draw(_batch(pid, actors[pid], pid in transactional, offset, is_honest))
        batches.append(batch)
        offset += batch.last_offset_delta + 1 + draw(st.sampled_from([0, 0, 0, 3]))
    return batches


@st.composite
def _batch(draw: st.DrawFn, pid: int, actor: Actor, transactional: bool, offset: int, is_honest: bool) -> Batch:
    kinds = ["data"] * 6 + ["plain"] + (["marker"] * 3 if transactional else [])
    kind = draw(st.sampled_from(kinds if is_honest else [*kinds, "bump", "empty control"]))
    time = 1000 * draw(st.integers(0, 50))
    if kind == "plain":
        return Batch(offset, [Rec()], max_timestamp=time)
    if kind == "marker":
        return draw(_marker(pid, actor, offset, time, is_honest))
    if kind == "bump":
        actor.epoch, actor.next_sequence = min(actor.epoch + 1, 32767), 0
    if kind == "empty control":
        return Batch(offset, [], flags=TRANSACTIONAL | CONTROL, producer_id=pid, producer_epoch=actor.epoch)
    return draw(_data(pid, actor, transactional, offset, time, is_honest))


@st.composite
def _data(
    draw: st.DrawFn, pid: int, actor: Actor, transactional: bool, offset: int, time: int, is_honest: bool
) -> Batch:
    count = draw(st.integers(1, 4))
    sequence, epoch = actor.next_sequence, actor.epoch
    if not is_honest and draw(st.integers(0, 5)) == 0:
        sequence = draw(st.sampled_from([0, max(sequence - 2, 0), (sequence + 5) % 2**31, INT_MAX]))
        epoch = max(epoch - draw(st.integers(0, 1)), 0)
    else:
        actor.next_sequence = (sequence + count) % 2**31
    is_stray = not is_honest and draw(st.integers(0, 20)) == 0
    flags = TRANSACTIONAL if transactional != is_stray else 0
    return Batch(
        offset,
        [Rec(offset_delta=i) for i in range(count)],
        last_offset_delta=count - 1,
        flags=flags,
        max_timestamp=time,
        producer_id=pid,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


@st.composite
def _marker(draw: st.DrawFn, pid: int, actor: Actor, offset: int, time: int, is_honest: bool) -> Batch:
    actor.coordinator_epoch += draw(st.sampled_from([0, 0, 1]))
    if draw(st.booleans()):
        actor.epoch, actor.next_sequence = min(actor.epoch + 1, 32767), 0
    coordinator_step_back = 0 if is_honest else draw(st.sampled_from([0, 0, 0, 1]))
    epoch_step_back = 0 if is_honest else draw(st.sampled_from([0, 0, 0, 1]))
    odd_length = draw(st.integers(0, 5)) == 0
    batch = marker(
        offset,
        is_abort=draw(st.booleans()),
        coordinator_epoch=actor.coordinator_epoch - coordinator_step_back,
        base_timestamp=time,
        max_timestamp=time + 7,
        producer_id=pid,
        producer_epoch=max(actor.epoch - epoch_step_back, 0),
        flags=draw(st.sampled_from([0, 0, LOG_APPEND_TIME])),
    )
    if odd_length:
        record = replace(batch.records[0], timestamp_delta=draw(st.sampled_from([3, 1000])), headers=[(b"h", None)])
        batch = replace(batch, records=[record], codec=draw(st.sampled_from([0, 1])))
    return batch


def scanned(batches: list[Batch]) -> tuple[np.ndarray, BatchTable]:
    data = np.frombuffer(b"".join(batch.to_bytes() for batch in batches), np.uint8)
    table = scan(data)
    assert len(table) == len(batches)
    return data, table


def _run_both(kernel: Kernel, *arguments: Any) -> int:
    *before, struct = arguments
    return run_both_on(kernel, struct, *before)


@contextmanager
def both_forms() -> Iterator[None]:
    """The folds run their kernels compiled and interpreted, and compare; and have room for nothing at first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(producer_buffers, "_ROOM_MIN", 1)
        patch.setattr(producer_buffers, "_ROOM_KEPT", 3)
        patch.setattr(open_transactions, "_ROOM_MIN", 1)
        patch.setattr(producer_buffers, "fold_producers", partial(_run_both, fold_producers))
        patch.setattr(producer_buffers, "apply_updates", partial(_run_both, apply_updates))
        yield
