"""The live oracle as a fixture; see `skip_without_judge` for where it cannot run."""

from __future__ import annotations

import pytest

from tests.support.judges import skip_without_judge
from tests.support.oracle import Oracle, OracleUnavailableError


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """The real Kafka's jars, ready to be asked."""
    try:
        return Oracle()
    except OracleUnavailableError as unavailable:
        skip_without_judge(f"no live oracle: {unavailable}")
