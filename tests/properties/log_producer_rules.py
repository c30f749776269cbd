"""What producers and their coordinator do to a log, and what they are refused: rules of a state machine.

A rule does several things of a kind: with one each, runs would be through before there is much in the log.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from logstore.errors import InvalidProducerEpochError, InvalidTxnStateError, OutOfOrderSequenceError
from tests.naive.partition import REMEMBERED_COUNT, Producer
from tests.properties.log_beside_model import LogBesideModel

NUMBERS = (1, 2, 17)
COUNTS = st.lists(st.sampled_from([1, 1, 2, 5]), min_size=1, max_size=7)
WAYS = st.sampled_from(["records", "records", "columns", "columns, each record alone"])
VERSIONS = st.sampled_from([1, 2])


class ProducersBesideModel(LogBesideModel):
    """Each rule does the same to both, or is refused and changes neither."""

    @rule(counts=COUNTS, way=WAYS)
    def append_plain(self, counts: Sequence[int], way: str) -> None:
        for count in counts:
            self.append(self.batch(count), way)

    @rule(counts=COUNTS, number=st.sampled_from(NUMBERS), bump=st.sampled_from([0, 0, 0, 1]), way=WAYS)
    def append_in_sequence(self, counts: Sequence[int], number: int, bump: int, way: str) -> None:
        producer_id, producer = self.producer(number)
        is_open = producer.open_since is not None
        self._append_in_sequence(counts, producer_id, producer, 0 if is_open else bump, way, is_transactional=is_open)

    @rule(
        counts=COUNTS,
        number=st.sampled_from(NUMBERS),
        way=WAYS,
        is_ended=st.booleans(),
        is_commit=st.booleans(),
        version=VERSIONS,
    )
    def append_to_a_transaction(
        self, counts: Sequence[int], number: int, way: str, is_ended: bool, is_commit: bool, version: int
    ) -> None:
        self._append_in_sequence(counts, *self.producer(number), 0, way, is_transactional=True)
        if is_ended:
            producer_id, producer = self.producer(number)
            self.append_marker(producer_id, producer.epoch, is_commit=is_commit, version=version)

    def _append_in_sequence(
        self,
        counts: Sequence[int],
        producer_id: int,
        producer: Producer,
        bump: int,
        way: str,
        *,
        is_transactional: bool,
    ) -> None:
        epoch = max(producer.epoch, 0) + bump
        sequence = producer.next_sequence if epoch == producer.epoch else 0
        for count in counts:
            self.append(self.batch(count, producer_id, epoch, sequence, is_transactional), way)
            sequence += count

    @rule(pick=st.integers(0, 2), is_commit=st.booleans(), version=VERSIONS)
    def end_a_transaction(self, pick: int, is_commit: bool, version: int) -> None:
        """By version 1 a marker has the transaction's epoch, by version 2 a later one."""
        actors = [(each, known) for each, known in map(self.producer, NUMBERS) if known.open_since is not None]
        if not actors:
            return
        producer_id, producer = actors[pick % len(actors)]
        old_epoch = producer.epoch - (version == 1)
        if old_epoch >= 0:
            with pytest.raises(InvalidProducerEpochError):
                self.ask_for_marker(producer_id, old_epoch, is_commit=is_commit, version=version)
        self.append_marker(producer_id, producer.epoch, is_commit=is_commit, version=version)

    @rule(way=st.sampled_from(["records", "columns"]))
    def repeat_batches(self, way: str) -> None:
        """The last is known always, those before it if they came since the producers were read from the disk."""
        for batches in (self.producer(number)[1].batches for number in NUMBERS):
            for first in reversed(batches[-REMEMBERED_COUNT:]):
                if first is batches[-1] or first.base_offset >= self.remembered_from:
                    info = self.ask(first, way)
                    assert (info.first_offset, info.last_offset) == (first.base_offset, first.end_offset - 1)
                    assert info.is_duplicate
            for first in batches[-REMEMBERED_COUNT - 2 : -REMEMBERED_COUNT]:
                with pytest.raises(OutOfOrderSequenceError):
                    self.ask(first, way)

    @rule(gap=st.sampled_from([1, 5]), way=WAYS)
    def break_rules(self, gap: int, way: str) -> None:
        """Leave gaps, write as zombies, and outside of open transactions."""
        for producer_id, producer in map(self.producer, NUMBERS):
            is_open = producer.open_since is not None
            if producer.epoch >= 0:
                with pytest.raises(OutOfOrderSequenceError):
                    self.ask(self.batch(1, producer_id, producer.epoch, producer.next_sequence + gap, is_open), way)
            if producer.epoch > 0:
                with pytest.raises(InvalidProducerEpochError):
                    self.ask(self.batch(1, producer_id, producer.epoch - 1, 0), way)
            if is_open:
                with pytest.raises(InvalidTxnStateError):
                    self.ask(self.batch(1, producer_id, producer.epoch, producer.next_sequence), way)
