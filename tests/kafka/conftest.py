"""The live oracle as a fixture: tests that ask for it are skipped, with the reason, where it cannot run."""

from __future__ import annotations

import pytest

from tests.kafka.oracle import Oracle, OracleUnavailableError


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """The real Kafka's jars, ready to be asked."""
    try:
        return Oracle()
    except OracleUnavailableError as unavailable:
        pytest.skip(f"no live oracle: {unavailable}")
