"""Properties are not timed: a machine may be slow, and a first call may compile."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("logstore", deadline=None)
settings.load_profile("logstore")
