"""Changes that no test need notice, each with its reason, by file and change as `tests.mutation.prove` prints it."""

from __future__ import annotations

ACCEPTED: dict[tuple[str, str], str] = {}
