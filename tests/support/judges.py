"""What a test does where its judge, the real Kafka or Spark, cannot run."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def skip_without_judge(reason: str) -> NoReturn:
    """Skip the test, or fail it where `LOGSTORE_REQUIRE_ORACLE=1` says that the judges have to be there, as in CI."""
    if os.environ.get("LOGSTORE_REQUIRE_ORACLE") == "1":
        pytest.fail(f"LOGSTORE_REQUIRE_ORACLE=1, but {reason}", pytrace=False)
    pytest.skip(reason)
