"""Golden directories that are written in Python, field by field, because no Kafka would write such files."""

from __future__ import annotations

from pathlib import Path

from tests.naive.edges import edge_segments
from tests.naive.streams import STREAMS
from tests.support.encoder import Batch, Rec, random_segment, record_bytes

SEGMENT = "00000000000000000000.log"
CODEC_NAMES = {1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}
RANDOM_SEGMENTS = 150


def write_streams(directory: Path) -> None:
    """One log for each stream: a batch in that stream between two plain ones."""
    records = [Rec(b"key", b"value number %d, " % i * 4, [(b"h", b"1")], offset_delta=i) for i in range(3)]
    data = b"".join(map(record_bytes, records))
    plain = Batch(0, records[:1]), Batch(4, records[:1])
    for codec, streams_of in STREAMS.items():
        for name, stream in streams_of(data).items():
            odd = Batch(1, records, last_offset_delta=2, codec=codec, stream=stream)
            content = b"".join(batch.to_bytes() for batch in (plain[0], odd, plain[1]))
            _write(directory / f"{CODEC_NAMES[codec]}-{name}" / SEGMENT, content)


def write_edges(directory: Path) -> None:
    """One log for each thing that can be at its limit or beyond."""
    for name, content in edge_segments().items():
        _write(directory / name / SEGMENT, content)


def write_random_segments(directory: Path) -> None:
    """Segments of random valid batches, all codecs, odd values in every field."""
    for number in range(RANDOM_SEGMENTS):
        _write(directory / f"{number:03}" / SEGMENT, random_segment(f"kept/{number}"))


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
