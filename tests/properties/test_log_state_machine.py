"""The running log beside a model in memory: any order of appends, markers, cuts, deletions, restarts and reads.

`LOGSTORE_STATE_MACHINE_RUNS` is the number of runs.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from logstore.errors import OffsetOutOfRangeError
from logstore.log.maintain.retain import UP_TO_HIGH_WATERMARK
from logstore.model import FetchIsolation
from tests.properties.log_producer_rules import ProducersBesideModel
from tests.support.sampling import case_count

RUN_COUNT = case_count("LOGSTORE_STATE_MACHINE_RUNS", sample=50, whole=300)
DELETE_DELAY_MS = 60_000
PARTS = st.floats(0, 1)


class BoundsBesideModel(ProducersBesideModel):
    """What moves the ends of the log, and who reads between them."""

    @rule(ms=st.sampled_from([1, 7, 50, -3]), rolls=st.booleans(), flushes=st.booleans())
    def let_time_pass(self, ms: int, rolls: bool, flushes: bool) -> None:
        self.now_ms += ms
        if rolls:
            self.log.roll()
        if flushes:
            self.log.flush()
            assert self.log.recovery_point == self.model.end_offset

    @rule(was_clean=st.booleans())
    def restart(self, was_clean: bool) -> None:
        forgets = not was_clean or self.model.start_offset == self.model.end_offset
        if forgets:
            self._abort_what_began_below_the_start()
        if was_clean:
            self.log.close()
        else:
            self.log.state.active.release()
        self.log = self.opened(was_clean=was_clean, recovery_point=self.log.recovery_point)
        self.read_producers_from_disk(forgets=forgets)

    def _abort_what_began_below_the_start(self) -> None:
        """How much of it a restart will know depends on the snapshots that there are."""
        for producer_id, producer in self.model.producers().items():
            if producer.open_since is not None and producer.open_since < self.model.start_offset:
                self.append_marker(producer_id, producer.epoch, is_commit=False, version=1)

    @rule(gap=st.sampled_from([0, 3]), is_meant=st.sampled_from([False, False, False, True]))
    def begin_anew(self, gap: int, is_meant: bool) -> None:
        if is_meant:
            offset = self.model.end_offset + gap
            self.log.truncate_fully_and_start_at(offset)
            self.model.begin_anew(offset)
            self.read_producers_from_disk(forgets=True)

    @rule(
        where=st.sampled_from(["at the high watermark", "behind the last stable offset", "before the end"]),
        count=st.sampled_from([1, 2, 3, 5, 8, 13]),
        is_now=st.booleans(),
        is_late=st.booleans(),
    )
    def delete_records(self, where: str, count: int, is_now: bool, is_late: bool) -> None:
        end = self.model.high_watermark
        asked = {
            "at the high watermark": end,
            "behind the last stable offset": min(self.model.last_stable_offset() + count, end),
            "before the end": end - count,
        }
        offset = max(asked[where], self.model.start_offset)
        assert self.log.delete_records(UP_TO_HIGH_WATERMARK if "high" in where else offset) == offset
        assert self.log.delete_records(max(offset - 1, 0)) == offset
        with pytest.raises(OffsetOutOfRangeError):
            self.log.delete_records(end + 1)
        self.model.start_offset = offset
        if is_now:
            self._delete_segments_below_the_start(is_late=is_late)

    def _delete_segments_below_the_start(self, *, is_late: bool) -> None:
        """All but the last; their files go some time later, which a restart may not wait for."""
        before = self.log.state.segments.base_offsets
        count = sum(next_base <= self.model.start_offset for next_base in before[1:])
        assert [each.base_offset for each in self.log.delete_old_segments(self.now_ms)] == before[:count]
        assert self.log.state.segments.base_offsets == before[count:]
        if is_late:
            self.log.remove_deleted_files(self.now_ms + 2 * DELETE_DELAY_MS)  # the clock may have gone back
            assert [int(path.stem) for path in sorted((self.place / "t-0").glob("*.log*"))] == before[count:]

    @rule(part=PARTS)
    def read(self, part: float) -> None:
        start, end = self.model.start_offset, self.model.end_offset
        offset = start + int(part * (end - start))
        for isolation in FetchIsolation:
            reader = self.log.records(offset, isolation=isolation)
            found = [record for chunk in reader.chunks() for record in chunk.to_records()]
            is_committed = isolation is FetchIsolation.READ_COMMITTED
            expected = self.model.records(offset, self._end(isolation), is_committed=is_committed)
            assert [(record.offset, record.timestamp, record.value) for record in found] == expected
            for outside in (start - 1, end + 1):
                with pytest.raises(OffsetOutOfRangeError):
                    list(self.log.records(outside, isolation=isolation).chunks())

    def _end(self, isolation: FetchIsolation) -> int:
        if isolation is FetchIsolation.READ_COMMITTED:
            return self.model.last_stable_offset()
        return self.model.end_offset if isolation is FetchIsolation.LOG_END else self.model.high_watermark

    @rule(ago_ms=st.integers(-5, 100))
    def look_for_a_time(self, ago_ms: int) -> None:
        found = self.log.offset_for_timestamp(self.now_ms - ago_ms)
        expected = self.model.first_at_or_after(self.now_ms - ago_ms, self.log.state.segments.base_offsets)
        assert (found and (found.timestamp, found.offset)) == expected


BoundsBesideModel.TestCase.settings = settings(
    max_examples=RUN_COUNT, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


class TestLogBesideModel(BoundsBesideModel.TestCase):  # type: ignore[misc,name-defined]
    """The runs."""
