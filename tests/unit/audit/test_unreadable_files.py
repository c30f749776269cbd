"""What the system refuses to read is told as that, and nothing else is concluded from it."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from logstore.audit.directory_audit import audit_directory
from logstore_tools.check_commands import audit, verify
from logstore_tools.commands import logstore as command_line
from logstore_tools.takeover_commands import import_, promote
from logstore_tools.verbs import UNREADABLE
from tests.support.audit_faults import FAULTS
from tests.support.golden import WRITTEN, Golden
from tests.support.sampling import IS_LONG

SAMPLE = ("transactions",)
FEW = 6 if IS_LONG else 1  # of each kind of file


def kinds_of_paths(root: Path) -> dict[str, list[Path]]:
    """Paths of partitions with something in them, and of their files, by suffix or name."""
    found = defaultdict(list)
    for path in sorted(root.rglob("*")):
        if path.is_dir() and any(log.stat().st_size for log in path.glob("*.log")):
            found["directory"].append(path)
        elif path.is_file() and (path.parent == root or any(log.stat().st_size for log in path.parent.glob("*.log"))):
            found[path.suffix or path.name].append(path)
    return found


@contextmanager
def refused(path: Path) -> Iterator[list[str]]:
    """Let the system refuse a path, and all below it; yield what it was asked for."""
    paths = []

    def refusing(ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(other: Any, *rest: Any, **others: Any) -> Any:
            if isinstance(other, str | os.PathLike) and Path(other).is_relative_to(path):
                paths.append(str(other))
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(other))
            return ask(other, *rest, **others)

        return asked

    with pytest.MonkeyPatch.context() as patched:
        for name in ("open", "scandir"):
            patched.setattr(os, name, refusing(getattr(os, name)))
        yield paths


@pytest.mark.parametrize(
    "name", [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.long) for name in WRITTEN]
)
def test_only_the_refusal_is_found(golden: Golden, name: str) -> None:
    root = golden(name)
    before = audit_directory(str(root), 0).findings
    for paths in kinds_of_paths(root).values():
        for path in paths[:FEW]:
            with refused(path) as asked:
                found = audit_directory(str(root), 0).findings
            new = [each for each in found if each not in before]
            assert {each.rule for each in new} <= {"log-unreadable"}, (path, [str(each) for each in new])
            assert all("Permission denied" in each.found for each in new), path
            assert bool(new) is bool(asked), path


@pytest.mark.parametrize("verb", [verify, audit], ids=lambda verb: str(verb.name))
@pytest.mark.parametrize("name", ["{}/{}.log", "{}", "{}/leader-epoch-checkpoint"])
def test_commands_say_that_they_could_not_look(golden: Golden, verb: click.Command, name: str) -> None:
    root = golden("transactions")
    partition = next(path.name for path in sorted(root.glob("*-0")) if not path.name.startswith("__"))
    refused_path = root / name.format(partition, f"{0:020d}")
    with refused(refused_path):
        result = CliRunner().invoke(verb, [str(root)])
    assert result.exit_code == UNREADABLE
    assert str(refused_path) in result.output
    assert "Permission denied" in result.output


@pytest.mark.parametrize("verb", [import_, promote], ids=lambda verb: str(verb.name))
def test_a_directory_is_taken_over_only_if_all_of_it_can_be_read(
    golden: Golden, tmp_path: Path, verb: click.Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Path(shutil.copytree(golden("transactions"), tmp_path / "data"))
    closed = next(root.glob("*/*.log"))
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed)
    result = CliRunner().invoke(verb, [str(root), "--dry-run"])
    assert result.exit_code == UNREADABLE
    assert f"{closed}; found Permission denied" in result.output


def test_open_transactions_of_a_log_that_is_not_read_to_its_end_are_judged(golden: Golden, tmp_path: Path) -> None:
    root = shutil.copytree(golden("transactions"), tmp_path / "data")
    plant, *_ = FAULTS["log-size"]
    plant(root)
    assert "log-size" in {finding.rule for finding in audit_directory(str(root), 0).findings}
    assert CliRunner().invoke(verify, [str(root)]).exit_code == UNREADABLE


VERBS = ("audit", "verify", "segments", "topics", "groups", "producers", "txns list", "report -o {page}")


@pytest.mark.skipif(os.geteuid() != 0, reason="gives up the rights of root, for which there must be some")
def test_a_directory_that_may_be_listed_alone_keeps_nothing_from_being_told(golden: Golden) -> None:
    """Such a directory has the right to read, but not to search: names are there, and nothing can be asked of them."""
    with tempfile.TemporaryDirectory() as place:  # pytest's are for their owner alone
        data = shutil.copytree(golden("demo"), Path(place) / "data")
        (data / ".kafka_cleanshutdown").unlink()
        pages = Path(place) / "pages"
        pages.mkdir()
        Path(place).chmod(0o755)
        pages.chmod(0o777)
        (data / "orders-0").chmod(0o744)
        answers = {}
        for uid in (0, 65534):  # root first, who may read what is imported
            os.seteuid(uid)
            try:
                for verb in VERBS:
                    words = verb.format(page=pages / f"{uid}.html").split()
                    answers[verb] = CliRunner().invoke(command_line, [*words, str(data)])
            finally:
                os.seteuid(0)
    for verb, done in answers.items():
        assert isinstance(done.exception, SystemExit), (verb, done.exception)
        assert done.exit_code == UNREADABLE, verb
        assert verb.startswith("report") or {"Permission denied" in done.output, "payments" in done.output} == {True}
    found = [line.split() for line in answers["audit"].stdout.splitlines() if line.startswith(("error", "warning"))]
    assert {rule for _, rule, *_ in found} == {"log-unreadable", "transaction-timeout"}  # that of payments-0
