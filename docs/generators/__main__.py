"""Writes all that is generated anew."""

from __future__ import annotations

from . import pages

if __name__ == "__main__":
    for path, make in pages().items():
        path.write_text(make())
        print(f"{path.parent.name}/{path.name}")
