"""What `logstore dump --help` says: Kafka's own table, to the byte, then what is beyond it."""

from __future__ import annotations

from pathlib import Path

_ABOUT = (
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly "
    "corrupt log segment."
)

_OWN_OPTIONS = """
Beyond kafka-dump-log:
  logstore dump [options] PATH...
                        without --files: files, directories (a partition or a
                        data directory) and quoted globs, in order
  --format FORMAT       text; json: an object a line, keys and values as UTF-8
                        or base64, headers as a list; arrow: a stream of record
                        batches; parquet: a file
  --follow              logs only: print what is added to them, and logs that
                        are new, until interrupted
  --offset A:B          records at offsets A to B; A:, :B and A alone work too
  --time A:B            records with timestamps from A to B in milliseconds, or
                        A/B in ISO 8601 (UTC unless it says otherwise)
  --producer-id N       batches of this producer
  --transactional-id ID batches of the producer ids that it has or had; read
                        from __transaction_state in the data directory
  --isolation-level L   what a consumer gets with read_committed or
                        read_uncommitted: no control batches, and with the
                        first neither aborted ones nor those behind the last
                        stable offset
  --key TEXT            records with exactly this key
A batch is printed when one of its records passes; without a deep dump and a
key its header decides. Entries of indexes and snapshots are not filtered.
Several files are dumped side by side, their text comes in the given order.
"""


def kafka_option_table() -> str:
    """The options as the real tool lists them."""
    return Path(__file__).with_name("kafka_help.txt").read_text(encoding="utf-8")


def help_text(*, with_own_options: bool) -> str:
    """The whole help; without arguments at all exactly what the real tool prints."""
    text = f"{_ABOUT}\n{kafka_option_table()}"
    return text + _OWN_OPTIONS if with_own_options else text
