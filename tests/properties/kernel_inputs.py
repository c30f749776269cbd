"""What the kernels are tried on: segments as Kafka may have left them, and what damage makes of them."""

from __future__ import annotations

import struct
from dataclasses import replace

from hypothesis import strategies as st

from tests.naive import append, legacy
from tests.support.encoder import CONTROL, Batch, Rec, compressed, record_bytes, varint

INT_EDGES = [0, 1, -1, 5, 2**31 - 1, 2**31 - 2, -(2**31)]
LONG_EDGES = [*INT_EDGES, 2**31, 2**40, 2**63 - 1, 2**63 - 2, -(2**63)]
SHORT_EDGES = [0, 1, -1, 7, 32767, -32768]
BYTE_EDGES = [0, 1, 2, 3, 0x3F, 0x7F, 0x80, 0x81, 0xC3, 0xED, 0xFE, 0xFF]
MAGIC_AT, CRC_AT, COUNT_AT = 16, 17, 57

ints = st.sampled_from(INT_EDGES) | st.integers(-(2**31), 2**31 - 1)
longs = st.sampled_from(LONG_EDGES) | st.integers(-(2**63), 2**63 - 1)
shorts = st.sampled_from(SHORT_EDGES) | st.integers(-(2**15), 2**15 - 1)

# Characters and pieces of them, at the limits of each lead byte.
UTF8_PARTS = """
    41 7f 80 bf c0 c1 e0 ed f0 f4 f5 f8 ff c3a9 dfbf c080 c341 e0a080 e0a0 e08080 e4b896 e4b8 e4b841 ed9fbf ed9f
    eda080 edbfbf eda0 eda041 ee8080 efbfbd f0908080 f09f9880 f09f98 f09f f09f9841 f09041 f0808080 f48fbfbf f48f
    f4908080 f7bfbfbf 0a 706c61696e2074657874
"""
utf8_parts = st.sampled_from([bytes.fromhex(part) for part in UTF8_PARTS.split()])
texts = st.lists(utf8_parts | st.binary(max_size=3), max_size=8).map(b"".join)
fields = st.none() | st.just(b"") | st.binary(max_size=20) | texts | st.integers(20, 150).map(lambda n: b"long" * n)
headers = st.lists(st.tuples(st.binary(max_size=9) | texts, fields), max_size=3)
deltas = st.integers(0, 9) | st.integers(-3, 200) | ints

records = st.builds(
    Rec,
    key=fields,
    value=fields,
    headers=st.just([]) | headers,
    offset_delta=deltas,
    timestamp_delta=st.integers(-3, 200) | longs,
    attributes=st.sampled_from([0, 0, 1, 255]),
)
marker_keys = st.builds(struct.pack, st.just(">hh"), st.sampled_from([0, 0, 0, 1]), st.sampled_from([0, 1, 0, 1, 2]))
marker_values = st.builds(struct.pack, st.just(">hi"), st.sampled_from([0, 0, 0, 1]), ints)
markers = st.builds(Rec, key=marker_keys | fields, value=marker_values | fields, offset_delta=deltas)

TOPICS = st.builds(
    append.Topic,
    batch_size_max=st.sampled_from([100, 200, 10_000]),
    needs_keys=st.sampled_from([False, False, True]),
    is_log_append_time=st.booleans(),
    before_max_ms=st.sampled_from([50, 2**62]),
    after_max_ms=st.sampled_from([50, 2**62]),
    segment_size_max=st.sampled_from([300, 2**20]),
    age_max_ms=st.sampled_from([40, 2**40]),
    created_ms=st.sampled_from([0, 990]),
)


@st.composite
def consecutive(draw: st.DrawFn, of: st.SearchStrategy[Rec], size_max: int) -> list[Rec]:
    """Records, most of which follow each other."""
    drawn = draw(st.lists(of, max_size=size_max))
    if draw(st.integers(0, 3)):
        return [replace(record, offset_delta=index) for index, record in enumerate(drawn)]
    return drawn


@st.composite
def batch_values(draw: st.DrawFn, *, codec: int | None = 0) -> Batch:
    """A v2 batch with any attribute bits; codec None: one of the five, by chance."""
    chosen = draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4])) if codec is None else codec
    flags = draw(st.integers(0, 15)) << 3 | draw(st.sampled_from([0, 0, 0, 0x80, 0x7F80, -0x8000]))
    kind = markers if flags & CONTROL else records
    return Batch(
        base_offset=draw(st.integers(0, 100) | longs),
        records=draw(consecutive(kind, 6)),
        last_offset_delta=draw(ints),
        codec=chosen,
        flags=flags,
        base_timestamp=draw(longs),
        max_timestamp=draw(longs),
        producer_id=draw(longs),
        producer_epoch=draw(shorts),
        base_sequence=draw(ints),
        leader_epoch=draw(ints),
    )


@st.composite
def batch_bytes(draw: st.DrawFn, *, codec: int | None = 0) -> bytes:
    """A batch as it stands in a file, sometimes of a magic that does not exist yet, sometimes with a wrong checksum."""
    content = bytearray(draw(batch_values(codec=codec)).to_bytes())
    content[MAGIC_AT] = draw(st.sampled_from([2, 2, 2, 2, 3, 127]))
    content[CRC_AT] ^= draw(st.sampled_from([0, 0, 0, 1]))
    return bytes(content)


@st.composite
def legacy_bytes(draw: st.DrawFn) -> bytes:
    """An entry of magic 0 or 1, or of a negative one that is read like them."""
    attributes = draw(st.sampled_from([0, 0, 8, 255, 1, 3]))
    content = bytearray(
        legacy.message(
            draw(st.integers(0, 1)), draw(fields), draw(fields), timestamp=draw(longs), attributes=attributes
        )
    )
    if draw(st.integers(0, 5)) == 0:
        content[4] = draw(st.sampled_from([0x80, 0xFF]))
    return legacy.entry(draw(longs), bytes(content))


@st.composite
def stub_bytes(draw: st.DrawFn) -> bytes:
    """A v2 batch that is shorter than its header, and says so."""
    content = bytearray(draw(batch_bytes())[: draw(st.integers(26, 61))])
    content[8:12] = struct.pack(">i", len(content) - 12)
    return bytes(content)


v2_segments = st.lists(batch_bytes(), max_size=4).map(b"".join)
any_entries = batch_bytes(codec=None) | batch_bytes() | legacy_bytes() | stub_bytes()
segments = st.lists(any_entries, max_size=5).map(b"".join)


@st.composite
def damaged(draw: st.DrawFn, of: st.SearchStrategy[bytes]) -> bytes:
    """The same with bytes changed, numbers put at their limits, parts cut out or put in."""
    content = bytearray(draw(of))
    for _ in range(draw(st.integers(1, 3))):
        position = draw(st.integers(0, max(len(content) - 1, 0)) | st.integers(0, min(len(content), 70)))
        kind = draw(st.integers(0, 5))
        if kind <= 1:
            content[position : position + 1] = bytes([draw(st.sampled_from(BYTE_EDGES) | st.integers(0, 255))])
        elif kind == 2:
            at = draw(st.sampled_from([8, 8, COUNT_AT, position]))
            content[at : at + 4] = struct.pack(">i", draw(st.sampled_from([13, 14, 15, 48, 49, 50]) | ints))
        elif kind == 3:
            long_varints = [b"\xff" * 4 + b"\x0f", b"\xff" * 5, b"\x80" * 9 + b"\x01", b"\xff" * 11, varint(2**31 - 1)]
            content[position:position] = draw(st.sampled_from(long_varints) | st.binary(max_size=5))
        elif kind == 4:
            del content[position : position + draw(st.integers(1, 12))]
        else:
            del content[position:]
    return bytes(content)


numbers = st.sampled_from([0, 0, 1, 2, -1, -2, 60, 2**31 - 1, -(2**31), 2**33]).map(varint)
odd_numbers = numbers | st.sampled_from(
    [b"\x80", b"\xff" * 4 + b"\x0f", b"\xff" * 5, b"\x80\x80\x00", b"\xff" * 9 + b"\x01"]
)


@st.composite
def odd_record_bytes(draw: st.DrawFn) -> bytes:
    """Fields in the order of a record's, of which any may lie about its size."""
    short = st.binary(max_size=2)
    parts = [draw(short.filter(len) | short), draw(odd_numbers), draw(odd_numbers)]
    for _ in range(2):
        field = draw(short)
        parts += [draw(st.just(varint(len(field))) | odd_numbers), field]
    header_count = draw(st.integers(0, 2))
    parts.append(draw(st.just(varint(header_count)) | odd_numbers))
    for _ in range(2 * header_count):
        field = draw(short)
        parts += [draw(st.just(varint(len(field))) | odd_numbers), field]
    body = b"".join(parts)
    lie = draw(st.sampled_from([0, 0, 0, 1, -1]))
    return draw(st.just(varint(len(body) + lie)) | odd_numbers) + body


@st.composite
def record_streams(draw: st.DrawFn) -> tuple[bytes, int]:
    """Records one after the other, good or damaged, and how many are said to be there."""
    of = draw(consecutive(records | markers, 6))
    whole = st.just(b"".join(map(record_bytes, of)))
    odd = st.tuples(whole, odd_record_bytes(), st.sampled_from([b"", b"\x0a\x00\x00\x00\x01\x01\x00"])).map(b"".join)
    data = draw(whole | damaged(whole) | odd | odd)
    if draw(st.booleans()):
        return data, len(of) + 1
    lies = st.sampled_from([-1, 0, 1, 2, 1000, 2**31 - 1])
    return data, draw(st.just(len(of)) | lies)


def compressed_segment(codec: int, stream: bytes) -> bytes:
    """A batch of one record around a stream that is given."""
    return Batch(0, [Rec()], codec=codec, stream=compressed(codec, stream)).to_bytes()
