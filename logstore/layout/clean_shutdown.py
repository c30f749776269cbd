"""`.kafka_cleanshutdown`, in a data directory: it was closed in order (`CleanShutdownFileHandler`).

JSON on one line without a newline: `{"version":0,"brokerEpoch":17}`. Whether the file *exists* decides that
logs need no recovery; what is in it does not matter for that. A broker deletes it before it loads any log.
The broker epoch is that of the run that ended (KIP-966); where the content cannot be read it is unknown.

>>> parse_clean_shutdown(bytes.fromhex("7b2276657273696f6e223a302c2262726f6b657245706f6368223a31377d"))
17
>>> parse_clean_shutdown(b"") is None
True
"""

from __future__ import annotations

import json

CURRENT_VERSION = 0
FILE_NAME = ".kafka_cleanshutdown"


def parse_clean_shutdown(data: bytes) -> int | None:
    """The broker epoch, or None where the content does not tell; raises nothing, as Kafka does."""
    try:
        content, _ = json.JSONDecoder().raw_decode(data.decode("utf-8", "replace").lstrip())
    except (ValueError, RecursionError):
        return None
    epoch = content.get("brokerEpoch") if isinstance(content, dict) else None
    return epoch if isinstance(epoch, int) and not isinstance(epoch, bool) else None
