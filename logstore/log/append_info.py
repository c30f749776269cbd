"""What an append came to (`LogAppendInfo`)."""

from __future__ import annotations

from typing import NamedTuple


class AppendInfo(NamedTuple):
    """The answer to one append.

    Attributes:
        first_offset, last_offset: of the log, or of the first append if this one repeats it; -1 if nothing was given.
        max_timestamp: largest of the records, in ms; -1 none.
        log_append_time: when a LogAppendTime topic took it, in ms, else -1; of a repetition the largest timestamp of
            the first append, whatever the topic.
        log_start_offset: of the log.
        record_count: offsets that were used; 0 if nothing was written.
        is_duplicate: the batch is one of its producer's last five; nothing was written.
    """

    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int
    log_start_offset: int
    record_count: int
    is_duplicate: bool
