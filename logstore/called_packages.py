"""Packages that are called as functions: `logstore.audit(path)` and `logstore.topics(path)`.

An import makes a package an attribute of the one that it is in, whatever stood there under its name. So these two are
function and package at once: Python calls a module whose class has `__call__`. It gains the names that users type; the
functions themselves are in `audit.answers` and `audit.listings`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_FUNCTIONS = {"logstore.audit": "logstore.audit.answers", "logstore.topics": "logstore.audit.listings"}


class CalledPackage(ModuleType):
    """A package that passes calls on to the function of its own name."""

    @property
    def __wrapped__(self) -> Any:
        """The function, whose signature `inspect` shows then."""
        return getattr(import_module(_FUNCTIONS[self.__name__]), self.__name__.rpartition(".")[2])

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        """The function's, which `help` and notebooks show; the package's is in its file."""
        return getattr(self.__wrapped__, "__doc__", None)

    def __repr__(self) -> str:
        return f"<function and package {self.__name__}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__wrapped__(*args, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:  # a pool of processes gets a function pickled
        return import_module, (self.__name__,)


def make_callable(name: str) -> None:
    """Let the package of this name, which is being imported, be called."""
    sys.modules[name].__class__ = CalledPackage
