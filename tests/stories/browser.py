"""Pages in a headless Chromium: what it says on its console, and what a page measures of itself at many widths."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any, NamedTuple

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
MEASURES = Path(__file__).with_name("report_measures.js")
_POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
_COLLECT = """<script>addEventListener("message", (sent) => {
  const line = document.createElement("pre"); line.textContent = JSON.stringify(sent.data); document.body.append(line);
});</script>"""


class Loaded(NamedTuple):
    """A page when it has loaded: its markup, and the lines of the console."""

    markup: str
    console: list[str]


class Browser:
    """A headless Chromium, started anew for each page.

    Args:
        place: a directory for its profile and for pages made here.
    """

    def __init__(self, path: str, place: Path) -> None:
        self._path = path
        self._place = place

    def load(self, page: Path, *, is_dark: bool = False) -> Loaded:
        """Open `page`, and wait until all in it has loaded."""
        words = ["--headless", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--dump-dom"]
        words += [f"--user-data-dir={self._place / 'profile'}", "--window-size=1400,1000"]
        words += ["--no-sandbox"] if os.geteuid() == 0 else []
        words += ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"] if is_dark else []
        done = subprocess.run([self._path, *words, page.as_uri()], capture_output=True, timeout=120, check=True)
        console = [line for line in done.stderr.decode(errors="replace").splitlines() if "CONSOLE" in line]
        return Loaded(done.stdout.decode(), console)

    def measure(self, page: Path, widths: list[int], *, is_dark: bool = False) -> list[dict[str, Any]]:
        """What a copy of `page` says of itself, by `report_measures.js`, in a frame of each of `widths`.

        A window is never narrower than 500 pixels, a frame is.
        """
        assert _POLICY.search(page.read_text())
        script = f"<script>{MEASURES.read_text()}</script></body>"
        copy = _POLICY.sub("", page.read_text()).replace("</body>", script)
        frames = "".join(f'<iframe width="{width}" height="900" srcdoc="{escape(copy)}"></iframe>' for width in widths)
        outer = self._place / "frames.html"
        outer.write_text(f'<!DOCTYPE html><meta charset="utf-8">{_COLLECT}<body>{frames}')
        loaded = self.load(outer, is_dark=is_dark)
        assert loaded.console == []
        outside = re.sub(r"<iframe.*?</iframe>", "", loaded.markup, flags=re.DOTALL)
        found = [json.loads(unescape(line)) for line in re.findall(r"<pre>(.*?)</pre>", outside, re.DOTALL)]
        assert sorted(one["width"] for one in found) == sorted(widths)
        return sorted(found, key=lambda one: widths.index(one["width"]))

    def ask(self, page: Path, script: str) -> Any:
        """What `script`, the body of a function, returns in a copy of `page` after the page's own."""
        answer = f"document.title = JSON.stringify((() => {{ {script} }})())"
        copy = self._place / "asked.html"
        copy.write_text(_POLICY.sub("", page.read_text()).replace("</body>", f"<script>{answer}</script></body>"))
        loaded = self.load(copy)
        assert loaded.console == []
        (found,) = re.findall("<title>(.*?)</title>", loaded.markup.partition("<style>")[0], re.DOTALL)
        return json.loads(unescape(found))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """The Chromium of this machine."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(
            "no Chromium to look at reports with: `apt-get install chromium`, or put one of its names on the PATH"
        )
    return Browser(path, tmp_path_factory.mktemp("browser"))
