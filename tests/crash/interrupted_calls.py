"""The calls that are interrupted, each with what is done before it, and what after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.crash.interrupted_log import COMPACTED, LogWorld
from tests.crash.interrupted_world import World

Action = Callable[[Any], object]


def nothing(world: World) -> None:
    """For calls that need nothing before."""


@dataclass(frozen=True)
class Interrupted:
    """A call.

    Attributes:
        make: its world, in an empty directory.
        call: what is interrupted, and done three times more then.
        before: done before each call, not interrupted.
        others: done after each call.
        warm_count: calls that are made before.
    """

    make: Callable[[Path], World]
    call: Action
    before: Action = nothing
    others: tuple[Action, ...] = ()
    warm_count: int = 3


def _append(count: int) -> Action:
    return lambda world: world.append(count)


def _abort(world: LogWorld) -> None:
    world.append_marker(is_commit=False)


_COMPACTED = partial(LogWorld, config=COMPACTED)
_ROLLED = LogWorld.append_and_roll
_USED = (_append(2), LogWorld.read)

LOG_CALLS: dict[str, Interrupted] = {
    **{f"log append of {count}": Interrupted(LogWorld, _append(count), others=_USED) for count in (1, 10, 1000)},
    "log append of 1 cold": Interrupted(LogWorld, _append(1), before=LogWorld.roll, others=_USED),
    "log append of columns": Interrupted(LogWorld, LogWorld.append_columns, others=_USED),
    "log append of a batch": Interrupted(LogWorld, LogWorld.append_batch, others=_USED),
    "log append idempotent": Interrupted(LogWorld, LogWorld.append_idempotent, others=_USED),
    "log append verified": Interrupted(LogWorld, LogWorld.append_verified, before=LogWorld.append_marker, others=_USED),
    "log marker commit": Interrupted(LogWorld, LogWorld.append_marker, before=LogWorld.append_verified, others=_USED),
    "log marker abort": Interrupted(LogWorld, _abort, before=LogWorld.append_verified, others=_USED),
    "log roll": Interrupted(LogWorld, LogWorld.roll, before=_append(1), others=_USED),
    "log flush": Interrupted(LogWorld, LogWorld.flush, before=_append(1), others=_USED),
    "log flush of closed segments": Interrupted(LogWorld, LogWorld.flush, before=_ROLLED, others=_USED),
    "log retention": Interrupted(LogWorld, LogWorld.delete_old_segments, before=_ROLLED, others=_USED),
    "log delete records": Interrupted(LogWorld, LogWorld.delete_records, before=_ROLLED, others=_USED),
    "log clean": Interrupted(_COMPACTED, LogWorld.clean, before=_ROLLED, others=_USED, warm_count=1),
    "log remove deleted files": Interrupted(
        _COMPACTED, LogWorld.remove_deleted_files, before=lambda world: (_ROLLED(world), world.clean()), others=_USED
    ),
    "log read": Interrupted(LogWorld, LogWorld.read, before=_append(2), others=_USED),
    "log close": Interrupted(LogWorld, LogWorld.close_log, before=_append(1), others=_USED, warm_count=0),
    "log open": Interrupted(LogWorld, LogWorld.open, before=LogWorld.close_log, others=_USED, warm_count=1),
}

CALLS: dict[str, Interrupted] = LOG_CALLS
