"""Partition directories to be recovered: golden ones as they are, and damaged copies, made again from a seed."""

from __future__ import annotations

import re
import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from logstore.log.load.loader import LoadSettings
from tests.conformance.damage import KINDS, batch_positions, damaged
from tests.golden.archive import GOLDEN, NAMES
from tests.support.dice import Dice
from tests.support.judges import judged_config

GOLDEN_ANSWERS = GOLDEN / "golden.logcheck.jsonl.xz"
DAMAGED_ANSWERS = GOLDEN / "damaged.logcheck.jsonl.xz"

NOW_MS = 1_700_000_100_000  # before or just behind the golden records, so no producer is forgotten
LATER_MS = 4_000_000_000_000  # all are
LARGEST_BYTES = 60_000
SMALLEST_BYTES = 100
PARTITION_NAME = re.compile(r".+-[0-9]+(\.[0-9a-f]{32}-future)?")
SEGMENT_FILE = re.compile(r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex)")
CONFIGS: tuple[dict[str, str], ...] = (
    {},
    {"segment.index.bytes": "65536", "index.interval.bytes": "0"},
    {"segment.index.bytes": "65536", "index.interval.bytes": "100"},
    {"segment.index.bytes": "65536", "index.interval.bytes": "1"},
    {"segment.index.bytes": "65536"},
    {"segment.index.bytes": "65536"},
)


@dataclass(frozen=True)
class Case:
    """One directory and how it is opened. `damages` are (operation, file or kind, seed), done in order."""

    number: int
    golden: str
    partition: str
    damages: tuple[tuple[str, str, str], ...] = ()
    clean: bool = False
    log_start: int = 0
    recovery_point: int = 0
    now: int = NOW_MS
    config: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, row: dict[str, Any]) -> Case:
        return cls(**{**row, "damages": tuple(tuple(damage) for damage in row["damages"])})

    def settings(self) -> LoadSettings:
        """How the directory is opened."""
        return LoadSettings(self.clean, self.recovery_point, self.log_start, self.now, judged_config(self.config))

    def row(self) -> dict[str, Any]:
        """The case as JSON can hold it."""
        return asdict(self)

    @property
    def directory(self) -> str:
        """Where the case is laid out, below some place; the golden name is not always a partition's."""
        name = Path(self.partition).name
        return f"{self.number:05}/{name if PARTITION_NAME.fullmatch(name) else 'hand-made-0'}"

    def lay_out(self, source: Path, place: Path) -> Path:
        """Puts a fresh copy, damaged, below `place`."""
        directory = place / self.directory
        directory.mkdir(parents=True)
        for path in sorted((source / self.partition).iterdir()):
            if path.is_file():
                shutil.copyfile(path, directory / path.name)
        for operation, target, seed in self.damages:
            OPERATIONS[operation](directory, target, Dice(seed))
        return directory

    def question(self) -> dict[str, Any]:
        """What LogCheck is asked."""
        return {
            "directory": self.directory,
            "clean": self.clean,
            "logStart": self.log_start,
            "recoveryPoint": self.recovery_point,
            "now": self.now,
            "config": self.config,
        }


def damage_file(directory: Path, target: str, dice: Dice) -> None:
    """Damage of the kind before the colon, to the file behind it."""
    kind, name = target.split(":")
    path = directory / name
    if path.exists():
        content = path.read_bytes()
        kind = kind if len(content) >= SMALLEST_BYTES else "append-noise"  # what is torn already has no batch to change
        path.write_bytes(damaged(content, path.suffix, kind, dice.take(4).hex()))


def remove_file(directory: Path, target: str, dice: Dice) -> None:
    (directory / target).unlink(missing_ok=True)


def tear_tail(directory: Path, target: str, dice: Dice) -> None:
    """The log ends in the middle of its last kilobyte."""
    path = directory / target
    if path.exists():
        content = path.read_bytes()
        path.write_bytes(content[: len(content) - min(dice.between(1, 1000), len(content))])


def leave_over(directory: Path, target: str, dice: Dice) -> None:
    """Copies of a segment's files with a suffix, some of them missing, as an interrupted cleaning leaves them.

    The offset index is never missing: of a `.log.swap` without one Kafka makes one of zeros, and goes by that.
    """
    suffix, base = target.split(":")
    for path in sorted(directory.glob(f"{base}.*")):
        if path.suffix in KINDS and (dice.below(5) or path.suffix in (".log", ".index")):
            shutil.copyfile(path, directory / f"{path.name}{suffix}")


def swap_over(directory: Path, target: str, dice: Dice) -> None:
    """A segment's files become `.swap` files, as at the end of a cleaning."""
    for path in sorted(directory.glob(f"{target}.*")):
        if SEGMENT_FILE.fullmatch(path.name) and (dice.below(8) or path.suffix == ".index"):
            path.rename(f"{path}.swap")


def add_snapshot(directory: Path, target: str, dice: Dice) -> None:
    """One of the snapshots again under another offset, or an empty file."""
    snapshots = sorted(directory.glob("*.snapshot"))
    content = dice.choose(snapshots).read_bytes() if snapshots and dice.below(4) else b""
    (directory / f"{int(target):020}.snapshot").write_bytes(content)


def write_epochs(directory: Path, target: str, dice: Dice) -> None:
    (directory / "leader-epoch-checkpoint").write_text(target)


def zero_index(directory: Path, target: str, dice: Dice) -> None:
    """An index that was preallocated and not trimmed: zeros behind its entries."""
    path = directory / target
    if path.exists():
        path.write_bytes(path.read_bytes() + bytes(dice.choose((1, 8, 12, 240, 4096))))


def move_last_offset(directory: Path, target: str, dice: Dice) -> None:
    """The last batch gets another offset, which no checksum covers."""
    name, offset = target.split(":")
    path = directory / name
    content = bytearray(path.read_bytes())
    struct.pack_into(">q", content, batch_positions(content)[-1], int(offset))
    path.write_bytes(content)


OPERATIONS: dict[str, Callable[[Path, str, Dice], None]] = {
    "damage": damage_file,
    "remove": remove_file,
    "tear": tear_tail,
    "leave-over": leave_over,
    "swap": swap_over,
    "snapshot": add_snapshot,
    "epochs": write_epochs,
    "zeros": zero_index,
    "offset": move_last_offset,
}
EPOCHS = (
    "",
    "0\n0\n",
    "0\n1\n0 0\n",
    "0\n3\n0 0\n1 5\n2 1000000\n",
    "0\n2\n5 3\n4 9\n",
    "0\n2\n0 7\n3 7\n",
    "1\n0\n",
    "x",
)


def golden_cases(golden: Callable[[str], Path]) -> list[Case]:
    """Every golden partition directory, closed cleanly or not, with the checkpoints of its parent and without."""
    cases: list[Case] = []
    for name in NAMES:
        for partition in partitions(golden(name)):
            log_start = checkpoint(golden(name) / "log-start-offset-checkpoint", partition)
            recovery_point = checkpoint(golden(name) / "recovery-point-offset-checkpoint", partition)
            small = {"segment.index.bytes": "65536"}
            cases.append(Case(len(cases), name, partition, (), True, log_start, recovery_point))
            cases.append(Case(len(cases), name, partition, (), False, log_start, recovery_point))
            cases.append(Case(len(cases), name, partition, (), False, log_start, 0, LATER_MS, small))
    return cases


def damaged_cases(seed: str, golden: Callable[[str], Path], count: int) -> list[Case]:
    """`count` cases of one to three damages, to partitions chosen by chance, those of several segments most often."""
    dice = Dice(seed)
    places = [
        (name, partition, sorted(path.name for path in (golden(name) / partition).iterdir() if path.is_file()))
        for name in NAMES
        if name not in ("streams", "schemas", "edges")
        for partition in partitions(golden(name))
        if PARTITION_NAME.fullmatch(Path(partition).name)
        and sum(path.stat().st_size for path in (golden(name) / partition).iterdir()) <= LARGEST_BYTES
    ]
    rolled = [place for place in places if sum(file.endswith(".log") for file in place[2]) > 1]
    chosen = []
    for number in range(count):
        name, partition, files = dice.choose(rolled if dice.below(3) else places)
        bases = sorted(file.split(".")[0] for file in files if SEGMENT_FILE.fullmatch(file) and file.endswith(".log"))
        damages = tuple(damage(files, bases, f"{seed}-{number}-{turn}") for turn in range(dice.between(1, 3)))
        offsets = [int(base) for base in bases]
        recovery_point = dice.choose((0, 0, *offsets, dice.below(offsets[-1] + 40)))
        log_start = dice.choose((0, 0, 0, 0, *offsets, dice.below(offsets[-1] + 40)))
        now = LATER_MS if dice.below(8) == 0 else NOW_MS
        config = dice.choose(CONFIGS)
        chosen.append(
            Case(number, name, partition, damages, dice.below(3) == 0, log_start, recovery_point, now, config)
        )
    return chosen


def damage(files: Sequence[str], bases: Sequence[str], seed: str) -> tuple[str, str, str]:
    """One damage to a partition with these files."""
    dice = Dice(seed)
    named = [file for file in files if SEGMENT_FILE.fullmatch(file) or file.endswith(".snapshot")]
    suffixed = {suffix: [file for file in named if file.endswith(suffix)] for suffix in KINDS}
    indexes = suffixed[".index"] + suffixed[".timeindex"]
    turn = dice.below(14 if indexes else 4)
    if turn < 4:
        return "damage", f"{dice.choose(list(KINDS['.log']))}:{dice.choose(suffixed['.log'])}", seed
    if turn < 6:
        return "tear", dice.choose(suffixed[".log"]), seed
    if turn < 8:
        suffix = dice.choose(
            [suffix for suffix in (".index", ".timeindex", ".txnindex", ".snapshot") if suffixed[suffix]]
        )
        return "damage", f"{dice.choose(list(KINDS[suffix]))}:{dice.choose(suffixed[suffix])}", seed
    if turn < 10:
        return "remove", dice.choose(files), seed
    if turn == 10:
        return "leave-over", f"{dice.choose(('.cleaned', '.swap', '.deleted'))}:{dice.choose(bases)}", seed
    if turn == 11:
        return "swap", dice.choose(bases), seed
    if turn == 12:
        if dice.below(2):
            return "epochs", dice.choose(EPOCHS), seed
        return "snapshot", str(dice.below(int(bases[-1]) + 60)), seed
    return "zeros", dice.choose(indexes), seed


def partitions(directory: Path) -> list[str]:
    """All directories below that hold a `.log` with an offset for a name, but those being deleted."""
    found = {path.parent for path in directory.rglob("*.log") if SEGMENT_FILE.fullmatch(path.name)}
    names = sorted(str(path.relative_to(directory)) for path in found)
    return [name for name in names if not name.endswith("-delete")]


def checkpoint(path: Path, partition: str) -> int:
    """The offset that the checkpoint gives the partition; 0 without one."""
    if path.exists():
        topic, _, number = partition.rpartition("-")
        for line in path.read_text().splitlines()[2:]:
            if line.split()[:2] == [topic, number]:
                return int(line.split()[2])
    return 0
