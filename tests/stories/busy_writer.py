"""A process that writes a partition without rest: `python -m tests.stories.busy_writer DIRECTORY ROUNDS`.

Every round appends plain records and a transaction, which is committed or aborted; segments roll after a few, the old
ones are deleted now and then. The value of a record says its offset; of one that is aborted, that it is.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from logstore.config.topic import parse_config
from logstore.folds.producer_update import AppendOrigin
from logstore.log.load.loader import LoadSettings
from logstore.log.partition_log import PartitionLog
from tests.properties.fold_stories import marker
from tests.support import logs
from tests.support.dice import Dice
from tests.support.encoder import SOME_TIME, TRANSACTIONAL, Batch, Rec

CONFIG = {"internal.segment.bytes": 6000, "index.interval.bytes": 300, "retention.bytes": 40_000}
FILE_DELETE_DELAY_MS = 60_000


def open_log(path: str) -> PartitionLog:
    settings = LoadSettings(
        was_clean=True, recovery_point=0, log_start_offset=0, now_ms=SOME_TIME, config=parse_config(CONFIG)
    )
    return logs.open_log(path, settings, now_ms=lambda: SOME_TIME, requires_verification=False)


def append(log: PartitionLog, values: Sequence[bytes], **fields: int) -> None:
    records = [Rec(value=value, offset_delta=delta) for delta, value in enumerate(values)]
    batch = Batch(0, records, last_offset_delta=len(values) - 1, **fields)
    log.append_as_leader(np.frombuffer(batch.to_bytes(), np.uint8))


def numbered(log: PartitionLog, prefix: bytes, count: int) -> list[bytes]:
    return [b"%s%d %s" % (prefix, log.log_end_offset + delta, b"x" * (delta * 7 % 90)) for delta in range(count)]


def end_transaction(log: PartitionLog, producer_id: int, *, is_abort: bool) -> None:
    batch = marker(0, is_abort=is_abort, coordinator_epoch=0, producer_id=producer_id, producer_epoch=0)
    data = np.frombuffer(batch.to_bytes(), np.uint8)
    log.append_as_leader(data, origin=AppendOrigin.COORDINATOR, transaction_version=0)


def write_round(log: PartitionLog, dice: Dice, number: int, sequences: dict[int, int]) -> None:
    producer_id = 1 + number % 3
    is_abort = dice.chance(50)
    for _ in range(dice.between(1, 3)):
        count = dice.between(1, 9)
        append(
            log,
            numbered(log, b"aborted " if is_abort else b"", count),
            flags=TRANSACTIONAL,
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequences.get(producer_id, 0),
            codec=dice.choose((0, 0, 4)),
        )
        sequences[producer_id] = sequences.get(producer_id, 0) + count
        if dice.chance(50):
            append(log, numbered(log, b"", dice.between(1, 5)))
    end_transaction(log, producer_id, is_abort=is_abort)


def main() -> None:
    path, round_count = sys.argv[1], int(sys.argv[2])
    log = open_log(path)
    dice, sequences = Dice("busy"), dict[int, int]()
    for number in range(round_count):
        write_round(log, dice, number, sequences)
        if number % 20 == 19:
            log.delete_old_segments(SOME_TIME)
    log.close()


if __name__ == "__main__":
    main()
