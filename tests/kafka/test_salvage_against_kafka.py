"""What salvage saves is opened by the real UnifiedLog after an unclean shutdown, which changes no byte of it.

It is whatever the real UnifiedLog keeps of a log, and more: what is readable behind damage.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from logstore.log.load.loader import LoadSettings
from logstore_tools.salvage.salvage import salvage
from tests.kafka.judge import Asked
from tests.naive.batch import scan
from tests.recovery.cases import damaged_cases
from tests.recovery.comparison import files
from tests.support.encoder import SOME_TIME
from tests.support.golden import Golden
from tests.support.judges import judged_config
from tests.support.odd_logs import FOREIGN, LOADED, PASSED_OVER, REFUSED, batch, lay_out

pytestmark = pytest.mark.kafka

CASE_COUNT = 40
OLD_WRAPPERS = "legacy"  # broken ones keep a real broker from starting, too


def test_kafka_changes_nothing_in_what_was_saved(asked: Callable[..., Asked], golden: Golden, tmp_path: Path) -> None:
    cases = [case for case in damaged_cases("salvage", golden, CASE_COUNT) if case.golden != OLD_WRAPPERS]
    rescued = tmp_path / "rescued"
    rescuable, saved = [], []
    for case in cases:
        source = case.lay_out(golden(case.golden), tmp_path / "damaged")
        if any(source.glob("*.log.swap")):
            continue  # refused
        rescuable.append(case)
        destination = rescued / case.directory
        destination.parent.mkdir(parents=True)
        settings = LoadSettings(False, 0, case.log_start, case.now, judged_config(case.config))
        log = salvage(str(source), str(destination), settings).log
        saved.append((log.log_start_offset, log.log_end_offset, log.last_stable_offset, files(destination)))
        shutil.rmtree(source.parent)
    assert len(rescuable) > CASE_COUNT // 2
    for case, (start, end, stable, written) in zip(rescuable, saved, strict=True):
        question = replace(case, clean=False, recovery_point=0, log_start=0).question()
        where = str(rescued / case.directory)
        answer = asked("LogCheck").ask({**question, "directory": where})
        state = answer.get("state", {})
        found = (state.get("logStartOffset"), state.get("logEndOffset"), state.get("lastStableOffset"))
        assert (found, answer.get("files")) == ((start, end, stable), written), (case, answer)


ODD_LOGS = LOADED | {name: log for name, (log, _) in REFUSED.items()}
OF_PRODUCERS = "WARN Epoch of producer 7 at offset"  # of the batches, which are kept, and not of the files


@pytest.mark.parametrize("name", ODD_LOGS)
def test_what_kafka_keeps_is_saved(asked: Callable[..., Asked], tmp_path: Path, name: str) -> None:
    log_check = asked("LogCheck", "--warnings")
    source, theirs = (lay_out(ODD_LOGS[name], tmp_path / place / "t-0") for place in ("source", "theirs"))
    loaded = log_check.ask(_opened(theirs))
    kept = Counter[bytes]() if "error" in loaded else _batches(theirs)
    if name in LOADED:
        assert kept == _batches(source)
    (tmp_path / "saved").mkdir()
    saved = tmp_path / "saved" / "t-0"
    salvage(str(source), str(saved), LoadSettings(False, 0, 0, SOME_TIME, judged_config({})))
    assert not kept - _batches(saved)
    before = files(saved)
    answer = log_check.ask(_opened(saved))
    warnings = [warning for warning in answer.get("warnings", ()) if not warning.startswith(OF_PRODUCERS)]
    assert (answer.get("error"), warnings, answer.get("files")) == (None, [], before)


@pytest.mark.parametrize("name", [*FOREIGN, *PASSED_OVER])
def test_kafka_does_not_load_a_log_beside_a_foreign_name(
    asked: Callable[..., Asked], tmp_path: Path, name: str
) -> None:
    directory = lay_out({0: batch(0)}, tmp_path / "t-0")
    (directory / name).write_bytes(b"foreign")
    answer = asked("LogCheck", "--warnings").ask(_opened(directory))
    assert ("For input string" in answer.get("error", "")) == (name in FOREIGN), answer


def _opened(directory: Path) -> dict[str, object]:
    """The question for what UnifiedLog makes of a directory without an earlier shutdown."""
    question = {"directory": str(directory), "clean": False, "logStart": 0, "recoveryPoint": 0}
    return {**question, "now": SOME_TIME, "config": {}}


def _batches(directory: Path) -> Counter[bytes]:
    logs = [path.read_bytes() for path in sorted(directory.glob("*.log"))]
    return Counter(log[row.position : row.position + row.size] for log in logs for row in scan(log, 0, len(log)).rows)
