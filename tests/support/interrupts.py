"""An interrupt at a chosen line of the product."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

FOLDERS = ("/logstore/view/", "/logstore/log/", "/logstore/folds/", "/logstore/disk/")


def interrupted_at(line_count: int, call: Callable[[], object]) -> bool:
    """Raise a KeyboardInterrupt before the call runs this line of the product, the first being 0; whether it did."""
    seen = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal seen
        if not any(folder in frame.f_code.co_filename for folder in FOLDERS):
            return None
        code = linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
        if event == "line" and not code.startswith(("try:", "with ")):  # no signal comes there
            seen += 1
            if seen > line_count:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False
