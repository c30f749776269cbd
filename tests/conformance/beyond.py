"""Where `logstore dump` differs from Kafka's tool on purpose: which calls, and why. All others must be the same.

Only calls count that the real tool understands: `--format`, the filters and the like are unknown options to it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Difference:
    """What is different, for which argument vectors."""

    reason: str
    concerns: Callable[[list[str]], bool]


def _asks_for_help(argv: list[str]) -> bool:
    return "--help" in argv and "--" not in argv


def _is_words_only(argv: list[str]) -> bool:
    is_option = [word.startswith("-") and word != "-" for word in argv]
    return bool(argv) and (not any(is_option) or argv[0] == "--")


HELP = Difference(
    "--help goes on, below Kafka's own text, with the options that are ours",
    _asks_for_help,
)
PATHS = Difference(
    "without --files, words that are no options are files, directories and globs; Kafka's tool ignores them and says "
    "that --files is missing",
    _is_words_only,
)
DIFFERENCES = (HELP, PATHS)


def difference(argv: list[str]) -> Difference | None:
    """The deliberate difference that concerns this call of the matrix, None where the answer must be Kafka's.

    >>> difference(["--help"]) is HELP, difference(["--", "--help"]) is PATHS, difference(["files", "x.log"]) is PATHS
    (True, True, True)
    >>> difference([]), difference(["--print-data-log"]), difference(["--files", "x.log", "stray", "words"])
    (None, None, None)
    """
    return next((each for each in DIFFERENCES if each.concerns(argv)), None)
