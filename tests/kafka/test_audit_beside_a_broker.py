"""Every rule, asked again and again of a directory that a real broker is writing, rolling and cleaning meanwhile."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from logstore.audit.directory_audit import AuditedDirectory, audit_directory
from tests.kafka.broker import Broker
from tests.kafka.make_golden import RECIPES
from tests.kafka.oracle import Oracle

pytestmark = pytest.mark.kafka


def audits_while_it_runs(oracle: Oracle, name: str, place: Path) -> Iterator[AuditedDirectory]:
    """Audits of the golden directory `name` as it comes to be; the last one when its broker has ended."""
    recipe = RECIPES[name]
    directory = place / name
    broker = Broker(oracle, directory, recipe.settings, list(recipe.features))
    arguments = [argument.format(directory=directory) for argument in recipe.arguments]
    with broker.running(signal.SIGTERM) as bootstrap, ThreadPoolExecutor(1) as pool:
        work = pool.submit(oracle.run, recipe.main_class, bootstrap, *arguments, cwd=place)
        while not work.done():
            yield audit_directory(str(directory), time.time_ns() // 1_000_000)
            time.sleep(0.2)
        work.result()
    yield audit_directory(str(directory), time.time_ns() // 1_000_000)


def test_nothing_is_found_beside_a_running_broker(oracle: Oracle, tmp_path: Path) -> None:
    audits = list(audits_while_it_runs(oracle, "compacted", tmp_path))
    assert len(audits) > 5
    assert [finding for audited in audits for finding in audited.findings] == []
    assert audits[-1].transactions.is_closed
    assert not audits[0].transactions.is_closed
