"""The two pictures of the README: a report by day and by night, in Chromium.

python -m tests.stories.make_report_pictures /var/lib/kafka/data      makes them again

Their directory is told here: three producers, and a transaction that no coordinator knows, behind which consumers wait.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.stories.browser import NAMES
from tests.support.audit_story import COMPLETE_ABORT, COMPLETE_COMMIT, ONGOING, PREPARE_ABORT, PREPARE_COMMIT, Story

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
PLACES = {"orders-0": ("orders", 0), "payments-0": ("payments", 0)}
HOUR_MS = 3_600_000


def told() -> Story:
    """Transactions of three producers one after the other, and one that hangs in `orders-0`."""
    story = Story()
    for name in ("orders", "payments"):
        story.make_topic(name)
    for number in range(12):
        name, producer = ("billing-1", "shipping-1", "refunds-1")[number % 3], (4000 + number % 3, 0)
        if number == 9:
            story.data("orders-0", (4711, 0), 0, 2)  # hangs
        story.state(name, producer, ONGOING, list(PLACES.values()))
        for place in PLACES:
            story.data(place, producer, number // 3 * 2, 2)
        is_commit = number % 5 != 3
        story.state(name, producer, PREPARE_COMMIT if is_commit else PREPARE_ABORT, list(PLACES.values()))
        for place in PLACES:
            story.marker(place, producer, commit=is_commit)
        story.state(name, producer, COMPLETE_COMMIT if is_commit else COMPLETE_ABORT, [])
    return story


def picture(chromium: str, page: Path, found: Path, *, is_dark: bool) -> None:
    """Write what a window of 1000 by 760 pixels shows of `page` into `found`."""
    words = ["--headless", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,760", f"--screenshot={found}"]
    words += ["--no-sandbox"] if os.geteuid() == 0 else []
    words += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if is_dark else []
    subprocess.run([chromium, *words, page.as_uri()], check=True, capture_output=True)


def main() -> None:
    """Write both pictures; `sys.argv[1]` is the directory that the report names, which must not be there yet."""
    chromium = next(path for path in map(shutil.which, NAMES) if path)
    directory = Path(sys.argv[1])
    story = told()
    story.write(directory)
    (directory / "meta.properties").write_text("version=1\ncluster.id=4L6g3nShT-eMCtK--X86sw\nnode.id=1\n")
    for path in directory.rglob("*"):
        os.utime(path, (story.now_ms / 1000 + 7200,) * 2)
    with tempfile.TemporaryDirectory() as place:
        page = Path(place, "report.html")
        command = [Path(sys.executable).with_name("logstore"), "report", directory, "-o", page]
        subprocess.run([*command, "--now", str(story.now_ms + 3 * HOUR_MS)], check=False)
        picture(chromium, page, PICTURES / "report.png", is_dark=False)
        picture(chromium, page, PICTURES / "report-dark.png", is_dark=True)
    shutil.rmtree(directory)


if __name__ == "__main__":
    main()
