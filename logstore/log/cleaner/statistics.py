"""What a round of cleaning did (`CleanerStats`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class CleaningStatistics:
    """Counts of one round.

    Attributes:
        map_entry_count: keys of the dirty part; `map_utilization` of the map's room for them.
        written_size: bytes of what the segments were cleaned into.
        read_record_count, kept_record_count: records that were looked at, and of them those that stayed.
        keyless_record_count: records without a key, which a compacted topic should not have; they did not stay.
    """

    map_entry_count: int = 0
    map_utilization: float = 0.0
    written_size: int = 0
    read_record_count: int = 0
    kept_record_count: int = 0
    keyless_record_count: int = 0
