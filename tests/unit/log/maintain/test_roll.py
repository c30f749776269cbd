"""When a segment is full by time: sooner in a log that has to be cleaned."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.encoder import SOME_TIME
from tests.support.logs import open_partition_log

COMPACT = {"cleanup.policy": "compact"}


@pytest.mark.parametrize(
    ("config", "limit_ms"),
    [
        ({**COMPACT, "segment.ms": "100", "max.compaction.lag.ms": "50"}, 50),
        ({**COMPACT, "segment.ms": "50", "max.compaction.lag.ms": "100"}, 50),
        ({**COMPACT, "segment.ms": "100"}, 100),
        ({"cleanup.policy": "compact,delete", "segment.ms": "100", "max.compaction.lag.ms": "50"}, 50),
        ({"segment.ms": "100", "max.compaction.lag.ms": "50"}, 100),
    ],
    ids=str,
)
def test_a_compacted_log_rolls_before_its_cleaning_is_late(
    config: dict[str, str], limit_ms: int, tmp_path: Path
) -> None:
    log = open_partition_log(tmp_path / "t-0", config)
    for waited_ms in (0, limit_ms, limit_ms + 1):
        log.append_records([b"v"], [b"k"], [SOME_TIME + waited_ms])
    assert log.state.segments.base_offsets == [0, 2]
    log.close()
