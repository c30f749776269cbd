"""How a step of the producer state ended. Of those that refuse a batch the words are in `folds.producer_refusal`.

DETAIL, SECOND_DETAIL and THIRD_DETAIL are slots of `producer_slots`.
"""

from __future__ import annotations

OK = 0
NO_ROOM = 1  # a buffer is full: enlarge it and go on at STOP_ROW
MARKER_TO_READ = 2  # a control batch of unusual form: fill the MARKER slots and go on at STOP_ROW
DUPLICATE = 3  # DETAIL … THIRD_DETAIL: first offset, last offset, timestamp of the first append
SMALLER_EPOCH = 4  # DETAIL: epoch known
NOT_VERIFIED = 5
OLD_EPOCH = 6  # DETAIL: epoch known, SECOND_DETAIL: transaction version
FIRST_SEQUENCE_NOT_ZERO = 7
SEQUENCE_ABOVE_LOWEST = 8  # DETAIL: that of the verification state
NEW_EPOCH_SEQUENCE = 9  # DETAIL: epoch known
SEQUENCE_GAP = 10  # DETAIL: last sequence known
OLD_COORDINATOR_EPOCH = 11  # DETAIL: epoch known, SECOND_DETAIL: the marker's
NOT_TRANSACTIONAL = 12
NO_TRANSACTION_VERSION = 13
NOT_STARTED = 14  # a completed transaction that is not among the open ones; DETAIL: its number
