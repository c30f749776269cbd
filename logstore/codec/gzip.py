"""gzip as `java.util.zip.GZIPInputStream` of JDK 17 reads it.

Members may follow one another. Up to 18 bytes behind the last one are ignored; so are more, unless they start like the
header of a member. Name, comment and extra field are skipped.
"""

from __future__ import annotations

import zlib

from isal.igzip_lib import DECOMP_DEFLATE, IgzipDecompressor, IsalError
from isal.isal_zlib import crc32

from logstore.codec.outcome import over_cap
from logstore.errors import DecompressionError

# deflate, no flags; readers ignore the bytes behind: mtime, extra flags, operating system
PLAIN_HEADER = b"\x1f\x8b\x08\x00"
HEADER_SIZE = 10
TRAILER_SIZE = 8
FLAG_HEADER_CRC, FLAG_EXTRA, FLAG_NAME, FLAG_COMMENT = 2, 4, 8, 16

CHUNK_SIZE = 16384
BUFFER_SIZE = 8192
# `java.util.zip.GZIPOutputStream` since JDK 16: no time, no extra flags, unknown operating system
JAVA_HEADER = PLAIN_HEADER + b"\x00\x00\x00\x00\x00\xff"
# bounds one call of `inflate`, which may return fewer bytes than a record's size claims
READ_SIZE_MAX = 1 << 16


def decode_one(payload: memoryview, size_max: int, magic: int = 2) -> bytes | None:
    """Decompress a payload that is one plain member, as Kafka writes it.

    Returns None for any other payload (more members, damage, more than `size_max` (>= 0) bytes), which is then read by
    the model of the Java stream.
    """
    if payload[:4] != PLAIN_HEADER or len(payload) < HEADER_SIZE + TRAILER_SIZE:
        return None
    claimed_size = int.from_bytes(payload[-4:], "little")
    if claimed_size > size_max:
        return None
    member = IgzipDecompressor(DECOMP_DEFLATE)
    try:
        data = member.decompress(payload[HEADER_SIZE:], claimed_size + 1)  # a byte more, to find the end of the member
    except IsalError:  # type: ignore[misc]  # its stubs call the class an instance
        return None
    if not member.eof or len(data) != claimed_size:
        return None
    trailer = member.unused_data
    if len(trailer) != TRAILER_SIZE or int.from_bytes(trailer[:4], "little") != crc32(data):
        return None
    return data


def require_size(payload: memoryview, size_max: int) -> None:
    """Raise DecompressionError for a plain member of more than `size_max` bytes, for which the model takes minutes."""
    member = IgzipDecompressor(DECOMP_DEFLATE)
    try:
        data = member.decompress(payload[HEADER_SIZE:], size_max + 1)
    except IsalError:  # type: ignore[misc]  # as above; the model then raises Java's error
        return
    if payload[:4] == PLAIN_HEADER and len(data) > size_max:
        raise over_cap(size_max)


def compress(payload: memoryview, level: int) -> bytes:
    """Return one member, as Kafka's `GzipOutputStream` writes it; level -1 is zlib's 6."""
    deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    trailer = zlib.crc32(payload).to_bytes(4, "little") + (len(payload) & 0xFFFFFFFF).to_bytes(4, "little")
    return b"".join((JAVA_HEADER, deflate.compress(payload), deflate.flush(), trailer))


def _zip_error(message: str) -> DecompressionError:
    return DecompressionError(message, java_class="java.util.zip.ZipException")


def _end_of_file(message: str | None = None) -> DecompressionError:
    return DecompressionError(message, java_class="java.io.EOFException")


class GzipInput:
    """Model of `GZIPInputStream` with a buffer of 8 KiB over the payload."""

    def __init__(self, payload: memoryview) -> None:
        self.payload = payload
        self.buffer_end = 0
        self.ended = False
        self.member_ended = False
        self.crc = 0
        self.member_size = 0
        self._start_member(self._read_header(0))
        self.buffer_end = self.cursor

    def read(self, size: int) -> bytes | None:
        while not self.ended:
            data = self._inflate(min(size, READ_SIZE_MAX))
            if data is not None:
                self.crc = zlib.crc32(data, self.crc)
                self.member_size += len(data)
                return data
            self.member_ended = True
            self.ended = not self._read_trailer()
        return None

    def available(self) -> int:
        return 0 if self.member_ended or self.inflater.eof else 1

    def _start_member(self, position: int) -> None:
        self.cursor = position
        self.inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        self.crc = 0
        self.member_size = 0

    def _inflate(self, size: int) -> bytes | None:
        """Return at least one byte, None at the end of the member; `cursor` is the first byte not yet inflated."""
        while True:
            if self.inflater.eof:
                return None
            try:
                data = self.inflater.decompress(self.payload[self.cursor : self.buffer_end], size)
            except zlib.error as error:
                _, _, reason = str(error).partition("data: ")
                raise _zip_error(reason or "Invalid ZLIB data format") from None
            left = self.inflater.unused_data if self.inflater.eof else self.inflater.unconsumed_tail
            self.cursor = self.buffer_end - len(left)
            if data:
                return data
            if not self.inflater.eof and self.cursor == self.buffer_end:
                self.buffer_end = min(self.cursor + BUFFER_SIZE, len(self.payload))
                if self.buffer_end == self.cursor:
                    raise _end_of_file("Unexpected end of ZLIB input stream")

    def _read_trailer(self) -> bool:
        """Check CRC and size, and open the next member; return whether there is one."""
        buffered_size = self.buffer_end - self.cursor
        trailer = bytes(self.payload[self.cursor : self.cursor + TRAILER_SIZE])
        if len(trailer) >= 4 and int.from_bytes(trailer[:4], "little") != self.crc:
            raise _zip_error("Corrupt GZIP trailer")
        if len(trailer) < TRAILER_SIZE:
            raise _end_of_file()
        if int.from_bytes(trailer[4:], "little") != self.member_size & 0xFFFFFFFF:
            raise _zip_error("Corrupt GZIP trailer")
        self.cursor += TRAILER_SIZE
        self.buffer_end = max(self.buffer_end, self.cursor)
        # Java looks for another member only if more bytes are there than a trailer, a header and a trailer
        if self.buffer_end == len(self.payload) and buffered_size <= TRAILER_SIZE + HEADER_SIZE + TRAILER_SIZE:
            return False
        try:
            header_end = self._read_header(self.cursor)
        except DecompressionError:  # Java takes a broken header behind a member for the end, too
            return False
        self._start_member(header_end)
        self.buffer_end = max(self.buffer_end, header_end)
        return True

    def _read_header(self, start: int) -> int:
        """Return the position behind the member header at `start`."""
        if self._uint16(start) != 0x8B1F:
            raise _zip_error("Not in GZIP format")
        if self._byte(start + 2) != 8:
            raise _zip_error("Unsupported compression method")
        flags = self._byte(start + 3)
        position = start + HEADER_SIZE
        self._byte(position - 1)
        if flags & FLAG_EXTRA:
            position += 2 + self._uint16(position)
            self._byte(position - 1)
        for flag in FLAG_NAME, FLAG_COMMENT:
            if flags & flag:
                while self._byte(position) != 0:
                    position += 1
                position += 1
        if flags & FLAG_HEADER_CRC:
            if self._uint16(position) != zlib.crc32(self.payload[start:position]) & 0xFFFF:
                raise _zip_error("Corrupt GZIP header")
            position += 2
        return position

    def _byte(self, position: int) -> int:
        if position >= len(self.payload):
            raise _end_of_file()
        return self.payload[position]

    def _uint16(self, position: int) -> int:
        return self._byte(position) | self._byte(position + 1) << 8
