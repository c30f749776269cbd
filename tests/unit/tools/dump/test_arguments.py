"""Command lines mean what they mean to Kafka's tool (JOpt Simple): every answer here is one that it gave.

`tests/kafka/test_arguments_against_kafka.py` asks it again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.errors import UsageError
from logstore_tools.dump.options import DumpOptions
from tests.conformance.dumping import answer
from tests.support.argument_answers import ANSWERS, lay_out


@pytest.mark.parametrize("rule", list(ANSWERS))
def test_the_answer_is_kafkas(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert [(argv, answer(argv)) for argv, _ in ANSWERS[rule]] == ANSWERS[rule]


NO_FILES = [["-h"], ["-help"], ["-help=5"], ["--help=x"]]


@pytest.mark.parametrize("argv", [*NO_FILES, ["x", "--help"], ["--files", "x", "--help"]])
def test_help_is_asked_for_in_many_ways(argv: list[str]) -> None:
    assert answer(argv) == answer(["--help"])
    assert answer(argv)[0] == 1


def test_options_are_sorted_from_words() -> None:
    options = {"flag": "none", "value": "required", "maybe": "optional"}
    found = DumpOptions(["a", "--maybe", "b", "--flag", "c", "--maybe", "--value=d", "--", "--flag", "-"], options)
    assert found.values == {"maybe": ["b"], "flag": [], "value": ["d"]}
    assert found.words == ["a", "c", "--flag", "-"]
    assert (found.has("flag"), found.has("other")) == (True, False)
    assert (found.text("maybe"), found.text("other"), found.text("other", "default")) == ("b", None, "default")
    with pytest.raises(UsageError, match="other is not a recognized option"):
        DumpOptions(["--other"], options)
