"""Records, decoded: a batch may have the right checksum of content that no consumer can read."""

from __future__ import annotations

import numpy as np

from ...layout.file_names import METADATA_TOPIC
from ...topics import consumer_offsets, transaction_state
from ..evidence import AuditedBatches, Follower
from ..finding import Ask, Breach
from .record_checks import bad_records, has_data, has_readable_header

_INTERNAL_TOPICS = (METADATA_TOPIC, consumer_offsets.TOPIC, transaction_state.TOPIC)  # of `internal-record`


class DecodedRecords(Follower):
    """Decodes all batches whose headers are right, once, but for markers of transactions, which `log-marker` judges.

    What does not decode at all in an internal topic is told by `internal-record`, by the replay of its state.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def step(self, batches: AuditedBatches) -> None:
        run, is_internal = batches.run, batches.partition.files.topic in _INTERNAL_TOPICS
        is_metadata = batches.partition.files.topic == METADATA_TOPIC
        rows = np.flatnonzero((has_readable_header if is_metadata else has_data)(batches.table)) + run.first_row
        for bad in bad_records(run.data, run.table, rows):
            if is_internal and bad.is_unreadable:
                continue
            where = batches.where(bad.row - run.first_row)
            self._ask(Breach("log-records", (where, bad.expected, bad.found)))
