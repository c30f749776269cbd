"""`.kafka_cleanshutdown`, in a data directory: the broker closed all logs (`CleanShutdownFileHandler`).

JSON on one line without a newline: `{"version":0,"brokerEpoch":17}`. If the file exists, whatever its content, logs
need no recovery. A broker deletes it before it loads any log. The broker epoch belongs to the run that ended (KIP-966).
"""

from __future__ import annotations

CURRENT_VERSION = 0
FILE_NAME = ".kafka_cleanshutdown"
