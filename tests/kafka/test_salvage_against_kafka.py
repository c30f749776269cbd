"""What salvage saves is opened by the real UnifiedLog after an unclean shutdown, which changes no byte of it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from logstore.log.config import parse_config
from logstore.log.load.loader import LoadSettings
from logstore.log.salvage.salvage import salvage
from tests.kafka.judge import Asked
from tests.recovery.cases import damaged_cases
from tests.recovery.comparison import files
from tests.support.golden import Golden

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
        settings = LoadSettings(False, 0, case.log_start, case.now, parse_config(case.config))
        log = salvage(str(source), str(destination), settings)
        saved.append((log.log_start_offset, log.log_end_offset, log.last_stable_offset, files(destination)))
        shutil.rmtree(source.parent)
    assert len(rescuable) > CASE_COUNT // 2
    for case, (start, end, stable, written) in zip(rescuable, saved, strict=True):
        question = replace(case, clean=False, recovery_point=0).question()
        where = str(rescued / case.directory)
        answer = json.loads(asked("LogCheck").answer(json.dumps({**question, "directory": where}) + "\n"))
        state = answer.get("state", {})
        found = (state.get("logStartOffset"), state.get("logEndOffset"), state.get("lastStableOffset"))
        assert (found, answer.get("files")) == ((start, end, stable), written), (case, answer)
