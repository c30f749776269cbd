"""What all text of one log file shares: the file, where text goes, and the buffers that kernels work on."""

from __future__ import annotations

import numpy as np

from logstore.disk.mapped import MappedFile
from logstore.kernels import decode
from logstore.kernels import dump_text as kernel
from logstore.kernels.primitives import add64

from .findings import Findings
from .options import DumpOptions
from .output import Output

RECORD_CAPACITY = 2048
GAP_CAPACITY = 4096


class LogBuffers:
    """One log file on its way to text.

    Attributes:
        records: int64, shape (decode.COLUMN_COUNT, RECORD_CAPACITY): the chunk of records being printed.
        gaps: int64, shape (2, GAP_CAPACITY): offsets that do not follow each other, not yet handed on.
        state: int64[kernel.STATE_COUNT]: where the kernels are.
    """

    def __init__(self, file: MappedFile, options: DumpOptions, out: Output, findings: Findings) -> None:
        self.file = file
        self.options = options
        self.out = out
        self.findings = findings
        self.records = np.empty((decode.COLUMN_COUNT, RECORD_CAPACITY), np.int64)
        self.gaps = np.empty((2, GAP_CAPACITY), np.int64)
        self.state = np.zeros(kernel.STATE_COUNT, np.int64)
        self.state[kernel.FLAGS] = options.depth_flags | (kernel.PYTHON_RECORDS if options.needs_python else 0)
        self.state[kernel.RECORD_CAPACITY] = RECORD_CAPACITY
        self.state[kernel.OUT_CAPACITY] = out.capacity
        self.state[kernel.GAP_CAPACITY] = GAP_CAPACITY
        self.state[kernel.PREVIOUS_OFFSET] = -1

    def note_offset(self, offset: int) -> None:
        """Compare a record that no kernel printed with the one before."""
        state = self.state
        previous = int(state[kernel.PREVIOUS_OFFSET])
        if offset != add64(previous, 1):
            if state[kernel.GAP_COUNT] == GAP_CAPACITY:
                self.flush_gaps()
            count = int(state[kernel.GAP_COUNT])
            self.gaps[:, count] = previous, offset
            state[kernel.GAP_COUNT] = count + 1
        state[kernel.PREVIOUS_OFFSET] = offset

    def flush_gaps(self) -> None:
        """Hand the offsets that do not follow each other to the findings."""
        count = int(self.state[kernel.GAP_COUNT])
        if count:
            previous, following = self.gaps[:, :count]
            self.findings.non_consecutive(self.file.path, previous, following)
            self.state[kernel.GAP_COUNT] = 0
