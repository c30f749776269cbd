"""`make demo`: a dump of a directory that a real Kafka 4.3.1 broker wrote, and what to try next. Writes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOGSTORE = Path(sys.executable).with_name("logstore")
DEMO = Path(__file__).parents[1] / "golden" / "demo"
LINES_SHOWN = 15


def show(*argv: str) -> None:
    """Run `logstore dump` in the golden directory and show how its output begins."""
    print(f"$ logstore dump {' '.join(argv)}")
    done = subprocess.run([LOGSTORE, "dump", *argv], cwd=DEMO, stdout=subprocess.PIPE, check=True, text=True)
    lines = done.stdout.splitlines()
    print("\n".join(lines[:LINES_SHOWN]))
    if len(lines) > LINES_SHOWN:
        print(f"… and {len(lines) - LINES_SHOWN} more lines")
    print()


def main() -> None:
    """Three dumps and where to go from them."""
    print(f"A real broker wrote {DEMO.relative_to(Path.cwd())}: two topics of interleaved transactions.\n", flush=True)
    show("--files", "orders-0/00000000000000000000.log", "--print-data-log")
    show("--files", "orders-0/00000000000000000000.txnindex")
    show("--files", "orders-0/00000000000000000038.snapshot")
    print("Try next, in that directory or one of yours:")
    print("  .venv/bin/logstore dump tests/golden/demo --print-data-log | less")
    print("  .venv/bin/logstore dump tests/golden/demo/payments-0 --print-data-log --format json")
    print("  .venv/bin/logstore dump 'tests/golden/demo/__transaction_state-*' --transaction-log-decoder")
    print("  .venv/bin/logstore dump --help")


if __name__ == "__main__":
    main()
