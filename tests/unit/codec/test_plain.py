"""No codec: the payload is the stream, and importing the package loads no codec library."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from logstore.codec import decompress
from logstore.model import Codec


def test_an_uncompressed_stream_is_a_view_of_the_payload() -> None:
    file = np.arange(100, dtype=np.uint8)
    outcome = decompress(Codec.NONE, file[10:90].data, 2, 10)
    assert outcome.error is None
    assert np.shares_memory(outcome.data, file)
    assert outcome.data.tolist() == list(range(10, 90))


def test_a_read_only_file_is_decompressed_in_place() -> None:
    import cramjam

    file = np.frombuffer(bytes(cramjam.zstd.compress(b"\x04ab")), np.uint8)
    assert not file.flags.writeable
    assert decompress(Codec.ZSTD, file.data, 2, 10).data.tobytes() == b"\x04ab"


def test_codec_libraries_are_loaded_when_they_are_needed() -> None:
    code = "import sys, logstore.codec; print([name for name in ('cramjam', 'isal', 'xxhash') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"
