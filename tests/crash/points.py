"""Crash points: a directory that a crash may have left, and how to look whether all that was promised is in it.

A *world* is one random piece of work on a `LossyDisk`. It is done once; what a crash before each of its system calls
may have left is a point, and so is what a second crash leaves while the first is recovered from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from logstore.disk.seam import Seam
from tests.crash.lossy_disk import Left, LossyDisk, Survivor, write_survivor

DRAWS = 4  # of what is lost, for each call and each outcome that is drawn


class Point(NamedTuple):
    """What a crash may have left.

    Attributes:
        name: of the directory.
        when: the crash was.
        is_kept: nothing was lost.
        reopen: open the directory through a seam as after the crash.
        look: open the directory as after the crash, or after another one meanwhile, and assert that all is well in
            it; the second argument is `is_kept` of the last crash.
    """

    survivor: Survivor
    name: str
    when: str
    is_kept: bool
    reopen: Callable[[Path, Seam], object]
    look: Callable[[Path, bool], object]

    @classmethod
    def of(
        cls,
        left: Left,
        name: str,
        *,
        reopen: Callable[[Path, Seam], object],
        look: Callable[[Path, bool], object],
    ) -> Point:
        """Return the point of what a disk had left."""
        return cls(left.survivor, name, left.when, left.outcome == "kept", reopen, look)

    def check(self, place: Path) -> None:
        """Write the directory below `place`, and look; what is wrong says when it was."""
        try:
            self.look(write_survivor(self.survivor, place / self.name), self.is_kept)
        except Exception as error:
            error.add_note(self.when)
            raise

    def again(self, place: Path, seed: str) -> Iterator[Point]:
        """Recover below `place` on a lossy disk, and yield what a crash meanwhile may have left."""
        directory = write_survivor(self.survivor, place / self.name)
        disk = LossyDisk(directory, seed, draws=DRAWS)
        self.reopen(directory, disk)
        for left in disk.left:
            is_kept = self.is_kept and left.outcome == "kept"
            yield self._replace(survivor=left.survivor, when=f"{self.when}, then {left.when}", is_kept=is_kept)
