"""`.kafka_cleanshutdown`, in a data directory: it was closed in order (`CleanShutdownFileHandler`).

JSON on one line without a newline: `{"version":0,"brokerEpoch":17}`. Whether the file *exists* decides that
logs need no recovery; what is in it does not matter for that. A broker deletes it before it loads any log.
The broker epoch is that of the run that ended (KIP-966).
"""

from __future__ import annotations

CURRENT_VERSION = 0
FILE_NAME = ".kafka_cleanshutdown"
