"""Options of Spark's Kafka source and sink that concern brokers, which a source of files does not have.

They are refused in one line, or ignored with a warning if the job asks for that (`ignore_network_config`), so that a
job that was written for a broker runs with another format and a path. An option that decides what is read or written is
never among them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable

from logstore.errors import UsageError

IGNORE_OPTION = "ignore_network_config"
_OF_NETWORK = re.compile(
    # Spark's own
    r"kafkaconsumer\.|fetchoffset\.|groupidprefix$|kafka\.("
    # of every client
    r"bootstrap\.|client\.|connections\.|default\.api\.timeout|enable\.metrics|metadata\.|metrics?\.|receive\.|"
    r"reconnect\.|request\.|retries$|retry\.|sasl\.|security\.|send\.|socket\.|ssl\.|auto\.include\.jmx|"
    # of consumers
    r"allow\.auto\.create|check\.crcs|fetch\.|group\.|heartbeat\.|max\.partition\.fetch|max\.poll\.|session\.|"
    # of producers
    r"acks$|batch\.size|buffer\.memory|delivery\.timeout|enable\.idempotence|linger\.|max\.in\.flight|max\.request\.)"
)
_LOGGER = logging.getLogger("logstore")


def network_options(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names of options, in any case, that concern brokers and are not `known`, which are lower-case."""
    return sorted(name for name in names if name.lower() not in known and _OF_NETWORK.match(name.lower()))


def pass_over(names: list[str], *, is_ignored: bool) -> None:
    """Log a warning that options of a network are ignored; raise UsageError unless the job says `is_ignored`."""
    if not names:
        return
    if not is_ignored:
        raise UsageError(
            f"kafka_segments has no option {', '.join(map(repr, names))}: it opens files, and has no network",
            advice=f"leave them out, or set {IGNORE_OPTION} to true to have them ignored",
        )
    _LOGGER.warning("kafka_segments opens files, has no network, and ignores %s", ", ".join(names))
