"""Which cases the random tests try.

The small size in the suite is the same each time, so that a commit does not pass today and fail tomorrow. A long run
(`LOGSTORE_ORACLE_CASES`, `LOGSTORE_CRASH_CASES`) draws a new seed each time, and tells it when something is wrong.
"""

from __future__ import annotations

import os
import secrets

IN_THE_SUITE = "logstore"


def seed_of(kind: str) -> str:
    """`LOGSTORE_<kind>_SEED` if it is there, which makes a run again; else as the module says.

    >>> seed_of("NOTHING")
    'logstore'
    """
    given = os.environ.get(f"LOGSTORE_{kind}_SEED")
    is_long = f"LOGSTORE_{kind}_CASES" in os.environ
    return given or (secrets.token_hex(4) if is_long else IN_THE_SUITE)
