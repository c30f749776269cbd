"""Modules of the extra `bench`, which may not be installed."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

from benchmarks.measured import PeerAbsentError


def module(name: str) -> Any:
    """The module.

    Raises:
        PeerAbsentError: it is not installed; what of it is missing, and how to get it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # what it uses of Python is not ours to mend
            return importlib.import_module(name)
    except ImportError as error:
        raise PeerAbsentError(f"{error}; `make bench` installs it (the extra `bench`)") from error
