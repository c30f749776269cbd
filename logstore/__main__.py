"""`python -m logstore`: the command line, where its script is not on the path."""

from __future__ import annotations

from logstore_tools.main import main

main()
