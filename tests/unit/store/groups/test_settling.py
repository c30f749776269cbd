"""What one thread has logged is replayed once, also if another one looks at the partition in the middle of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import logstore
from tests.support.stores import FEW_PARTITIONS


def test_a_call_that_ended_while_another_waited_for_it_is_not_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with logstore.open(tmp_path, config=FEW_PARTITIONS) as store:
        store.create_topic("orders", 1)
        with store.consumer("orders", group_id="g") as consumer:
            consumer.poll(0)
        partition = store.groups._partition(0)
        replays: list[int] = []

        class EndsTheOtherCall:
            def __enter__(self) -> None:
                partition._is_settled = True

            def __exit__(self, *_: Any) -> None:
                pass

        with monkeypatch.context() as patched:
            patched.setattr(partition, "_replay_log", lambda *_, **__: replays.append(1))
            patched.setattr(partition, "lock", EndsTheOtherCall())
            partition._is_settled = False
            partition.settle(lambda: 0)
        assert not replays
        with monkeypatch.context() as patched:
            patched.setattr(partition, "_replay_log", lambda *_, **__: replays.append(1))
            partition._is_settled = False
            partition.settle(lambda: 0)
        assert replays == [1]
