"""Which files are damaged how, where the damaged copies are laid out, and what is asked about them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.damage import KINDS, damaged
from tests.golden.archive import GOLDEN
from tests.golden.matrix import decoder_of
from tests.support.dice import Dice

ANSWERS = GOLDEN / "damaged.dump.jsonl.xz"
DIRECTORIES = (
    "demo",
    "records",
    "transactions",
    "compacted",
    "groups",
    "cluster",
    "legacy",
    "control",
    "schemas",
    "streams",
    "random",
)
LARGEST_BYTES = 16_000


@dataclass(frozen=True)
class Case:
    """Damage of one `kind`, by a `seed`, to `file` of the golden directory `directory`."""

    number: int
    directory: str
    file: str
    kind: str
    seed: str

    def lay_out(self, source: Path, place: Path) -> None:
        """Puts the damaged file, and whole copies of the files it is dumped with, below `place`."""
        original = source / self.file
        partition = place / self.name
        partition.mkdir()
        for suffix in (".log", ".index", ".timeindex"):
            sibling = original.with_name(original.name.split(".")[0] + suffix)
            if sibling.exists() and sibling.stat().st_size <= 4 * LARGEST_BYTES:
                shutil.copyfile(sibling, partition / sibling.name)
        content = damaged(original.read_bytes(), original.suffix, self.kind, self.seed)
        (partition / original.name).write_bytes(content)

    @property
    def name(self) -> str:
        return f"{self.number:04}-{self.kind}"

    def argv(self) -> list[str]:
        """What is asked about the damaged file; one call only, because the real tool trims and creates indexes."""
        path = Path(self.file)
        file, stem = f"{self.name}/{path.name}", f"{self.name}/{path.name.split('.')[0]}"
        turn = self.number % 5
        if path.suffix in (".log", ".checkpoint"):
            with_indexes = ["--files", f"{file},{stem}.index,{stem}.timeindex"]
            limited = ["--files", file, "--deep-iteration", "--max-bytes", str(100 + 7 * self.number)]
            decoded = [decoder_of(path) or "--print-data-log", "--files", file]
            return [with_indexes, limited, decoded, decoded, decoded][turn]
        if path.suffix in (".index", ".timeindex"):
            options: list[list[str]] = [[], [], ["--verify-index-only"], ["--index-sanity-check"], []]
            return ["--files", file, *options[turn]]
        return ["--files", file]


def cases(seed: str, golden: Callable[[str], Path], count: int) -> list[Case]:
    """`count` cases: every suffix in turn, and within it the kinds in turn, on files chosen by chance."""
    dice = Dice(seed)
    files = _files_by_suffix(golden)
    suffixes = [".log", ".log", ".log", ".index", ".timeindex", ".log", ".snapshot", ".txnindex", ".checkpoint"]
    chosen = []
    for number in range(count):
        suffix = suffixes[number % len(suffixes)]
        kinds = list(KINDS[suffix])
        kind = kinds[(number // len(suffixes) + dice.below(3)) % len(kinds)]
        directory, file = dice.choose(files[suffix])
        chosen.append(Case(number, directory, file, kind, f"{seed}-{number}"))
    return chosen


def lay_out_all(chosen: Iterable[Case], golden: Callable[[str], Path], place: Path) -> list[list[str]]:
    """Lays out the cases below `place`; the calls to be made there."""
    argvs = []
    for case in chosen:
        case.lay_out(golden(case.directory), place)
        argvs.append(case.argv())
    return argvs


def _files_by_suffix(golden: Callable[[str], Path]) -> dict[str, list[tuple[str, str]]]:
    files: dict[str, list[tuple[str, str]]] = {suffix: [] for suffix in KINDS}
    for name in DIRECTORIES:
        for path in sorted(golden(name).rglob("*")):
            if path.suffix in files and path.is_file() and 0 < path.stat().st_size <= LARGEST_BYTES:
                files[path.suffix].append((name, str(path.relative_to(golden(name)))))
    return files
