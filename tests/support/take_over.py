"""A broker's answers to `TakeOver.java`, and its loud lines, while a directory changes hands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from logstore_tools.commands import logstore as command_line
from tests.support.broker import Broker
from tests.support.judges import skip_without_judge
from tests.support.oracle import Oracle, OracleUnavailableError

#: what a broker says when it starts over a directory that is not empty, and registers before its controller leads
USUAL_WARNINGS = (
    "Performing controller activation",
    "Attempting to close NetworkClient",
    "apiKey=CONTROLLER_REGISTRATION",
)
#: of a broker that starts: it takes the partitions it had, its controller fences it, and it gets them again; a group
#: coordinator that loads one meanwhile says that it stopped, and loads it in the next epoch
OVERTAKEN = re.compile(r"Failed to load metadata from (\S+) with epoch \d+ .* is not online or is no longer the leader")


def judge(release: str) -> Oracle:
    """The Kafka of a release; skip the test without it."""
    try:
        return Oracle(release)
    except OracleUnavailableError as unavailable:
        skip_without_judge(f"no Kafka {release}: {unavailable}")


def run(*words: str) -> None:
    """Run the command line, which has to end well."""
    result = CliRunner().invoke(command_line, list(words))
    assert result.exit_code == 0, result.output


def ask(oracle: Oracle, address: str, cwd: Path, *what: str) -> list[Any]:
    """Let `TakeOver` do all of `what` with the broker at `address`; the answers to "state" and "finish"."""
    return [json.loads(line) for line in oracle.lines("TakeOver", address, *what, cwd=cwd)]


def warnings(broker: Broker) -> list[str]:
    """The warnings and errors of a broker, without the usual ones."""
    lines = broker.log.read_text().splitlines()
    loud = [number for number, line in enumerate(lines) if " WARN " in line or " ERROR " in line or " FATAL " in line]
    told = [number for number in loud if not any(usual in lines[number] for usual in USUAL_WARNINGS)]
    return [lines[number] for number in told if not _was_loaded_again(lines[number], lines[number:])]


def _was_loaded_again(line: str, following: list[str]) -> bool:
    """Whether a group coordinator was overtaken while it loaded a partition, and then loaded all of it."""
    overtaken = OVERTAKEN.search(line)
    if overtaken is None:
        return False
    return any(f"Finished loading of metadata from {overtaken[1]} with epoch" in later for later in following)
