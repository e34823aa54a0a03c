"""What bytes may be compressed with: gzip, bzip2, xz and Zstandard, told by the first bytes and never by a name.

    compressed = member (member | NUL)*        member = gzip member | bzip2 or xz stream | Zstandard frame

Members follow each other, and zeros may pad the end. Anything else behind a member, a member that is cut and a checksum
that is missed are errors. Compressed bytes are taken in chunks of one size and given out in pieces of bounded size:
so a bomb stays within memory, and what a corrupt member yields before its error depends on nothing but its bytes.
"""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

import re
from collections.abc import Callable
from types import ModuleType
from typing import NamedTuple, Protocol

from ..errors import MissingPackageError, SourceError

Read = Callable[[memoryview], int]  # fills a buffer from its start; returns how many bytes, 0 at the end

HEAD = 10  # bytes that tell what something is compressed with

_CHUNK = 128 << 10  # of compressed bytes, taken at a time
_PIECE = 256 << 10  # of decompressed bytes
_MAX_WINDOW = 128 << 20  # how far back compressed data may refer, which is the memory that reading them takes
_XZ_MEMORY = _MAX_WINDOW + (16 << 20)  # the same, with what the library needs for itself


class Decoder(Protocol):
    """A decompressor of one member, as `bz2.BZ2Decompressor` is one."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class Codec(NamedTuple):
    """A way to compress.

    Attributes:
        name: what messages and records call it.
        start: what a member begins with, a pattern.
        new: makes the decoder of one member.
        errors: what a decoder raises at corrupt data.
        advice: what would make reading faster, or None.
    """

    name: str
    start: bytes
    new: Callable[[], Decoder]
    errors: tuple[type[Exception], ...]
    advice: str | None = None


def codec_of(head: bytes) -> Codec | None:
    """What the first `HEAD` bytes of something say it is compressed with; None for nothing that is known.

    Raises:
        MissingPackageError: it is compressed with Zstandard, and no package can read that.
    """
    match = _ANY.match(head)
    return None if match is None or match.lastindex is None else _KNOWN[match.lastindex - 1]()


class Decompressed:
    """The bytes that a row of members decompresses to.

    Args:
        read: gives the compressed bytes.
        label: the source's name, for errors.
    """

    def __init__(self, read: Read, codec: Codec, label: str) -> None:
        self._read_below = read
        self._codec = codec
        self._label = label
        self._decoder: Decoder | None = codec.new()
        self._input = memoryview(bytearray(_CHUNK))
        self._taken = 0  # compressed bytes
        self._waiting = b""  # compressed bytes that are taken but not yet used
        self._output = memoryview(b"")  # decompressed bytes that are not yet given out
        self._failure: SourceError | None = None  # after which there is no going on

    def readinto(self, view: memoryview) -> int:
        """Fill `view` from its start with some bytes; how many, 0 at the end.

        Raises:
            SourceError: the data are cut, corrupt, or need too much memory.
        """
        while not self._output and self._decoder is not None:
            if self._failure is not None:
                raise self._failure
            try:
                self._advance(self._decoder)
            except SourceError as error:
                self._failure = error
                raise
        piece = self._output[: len(view)]
        self._output = self._output[len(piece) :]
        view[: len(piece)] = piece
        return len(piece)

    def _advance(self, decoder: Decoder) -> None:
        if decoder.eof:
            self._next_member(decoder.unused_data)
            return
        data = self._next_input(decoder)
        try:
            self._output = memoryview(decoder.decompress(data, _PIECE))
        except self._codec.errors as error:
            raise self._error_of(error) from error

    def _next_input(self, decoder: Decoder) -> bytes:
        if self._waiting or not decoder.needs_input:
            data, self._waiting = self._waiting, b""
            return data
        data = self._take()
        if not data:
            raise SourceError(
                "compressed-data-cut",
                f"the {self._codec.name} data end in the middle",
                path=self._label,
                offset=self._taken,
                hint="the download or copy is not complete: get the file again",
            )
        return data

    def _take(self) -> bytes:
        """A whole chunk, however little the layer below gives at a time; less only at its end."""
        size = 0
        while size < _CHUNK and (count := self._read_below(self._input[size:])):
            size += count
        self._taken += size
        return bytes(self._input[:size])

    def _next_member(self, rest: bytes) -> None:
        """Another member may follow, or zeros that pad the end."""
        rest = rest.lstrip(b"\0")
        while len(rest) < HEAD and (more := self._take()):
            rest = (rest + more).lstrip(b"\0")
        if not rest:
            self._decoder = None
        elif re.match(self._codec.start, rest):
            self._decoder, self._waiting = self._codec.new(), rest
        else:
            raise self._corrupt(f"{len(rest)} or more bytes follow their end")

    def _error_of(self, error: Exception) -> SourceError:
        if isinstance(error, _WindowError) or "Memory usage limit" in str(error):  # as lzma says it
            return SourceError(
                "window-too-large",
                f"the {self._codec.name} data need too much memory to be read",
                path=self._label,
                expected=f"a window of at most {_MAX_WINDOW >> 20} MiB",
                found=str(error) if isinstance(error, _WindowError) else "a larger one",
                hint="decompress it first, or compress it with usual settings",
            )
        return self._corrupt(str(error))

    def _corrupt(self, reason: str) -> SourceError:
        return SourceError(
            "compressed-data-corrupt",
            f"the {self._codec.name} data are corrupt ({reason})",
            path=self._label,
            hint="get the file again and compare its checksum with the published one",
        )


class _WindowError(Exception):
    """The data refer further back than we want to remember."""


# The codecs. Each imports what it needs when something is compressed so.

_GZIP = rb"\x1f\x8b"
_BZIP2 = rb"BZh[1-9](?:1AY&SY|\x17\x72\x45\x38\x50\x90)"  # a block, or the end of an empty stream
_XZ = rb"\xfd7zXZ\0"
_ZSTD = rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"  # a frame, or one to be skipped
_NEVER = rb"(?!)"


def _gzip() -> Codec:
    return _deflated("gzip", _GZIP, 31)


def raw_deflate() -> Codec:
    """One bare deflate stream, as zip archives hold."""
    return _deflated("deflate", _NEVER, -15)


def bzip2() -> Codec:
    """bzip2."""
    import bz2

    return Codec("bzip2", _BZIP2, bz2.BZ2Decompressor, (OSError, ValueError, EOFError))


def xz() -> Codec:
    """xz; its dictionary may not exceed the memory limit."""
    import lzma

    new = lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)  # noqa: E731
    return Codec("xz", _XZ, new, (lzma.LZMAError, ValueError, EOFError))


def zip_lzma(size: int, has_end_mark: bool) -> Codec:
    """LZMA as zip archives hold it; `size` is that of the decompressed data."""
    import lzma

    return Codec("lzma", _NEVER, lambda: _ZipLzma(size, has_end_mark), (lzma.LZMAError, ValueError, EOFError))


def zstd() -> Codec:
    """Zstandard.

    Raises:
        MissingPackageError: no package can read it.
    """
    new_object, error = _zstd_library()
    return Codec("zstd", _ZSTD, lambda: _ZstdFrame(new_object), (error, _WindowError, ValueError))


# One pattern for all: each takes its time to compile, in every run, and most files are not compressed.
_ANY = re.compile(b"|".join(b"(%b)" % start for start in (_GZIP, _BZIP2, _XZ, _ZSTD)))
_KNOWN: tuple[Callable[[], Codec], ...] = (_gzip, bzip2, xz, zstd)  # in the same order


def _deflated(name: str, start: bytes, wbits: int) -> Codec:
    module: ModuleType
    advice: str | None = None
    try:
        from isal import isal_zlib as module
    except ImportError:
        import zlib as module

        advice = f"{name} would be read about twice as fast with: pip install 'vec2emb[fast]'"
    return Codec(name, start, lambda: _ZlibDecoder(module, wbits), (module.error, ValueError), advice)


def _zstd_library() -> "tuple[Callable[[], _Frame], type[Exception]]":
    """What makes a decompressor of one frame, and what it raises."""
    try:
        import zstandard
    except ImportError:
        pass
    else:
        context = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW)
        return context.decompressobj, zstandard.ZstdError
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # from Python 3.14 on
    except ImportError:
        raise MissingPackageError.of("zstandard", "fast", "reading Zstandard (.zst)") from None
    options = {zstd.DecompressionParameter.window_log_max: _MAX_WINDOW.bit_length() - 1}
    return lambda: zstd.ZstdDecompressor(options=options), zstd.ZstdError


class _ZlibDecoder:
    """zlib's decompressor object, in the manner of bz2's."""

    def __init__(self, module: ModuleType, wbits: int) -> None:
        self._object = module.decompressobj(wbits=wbits)

    @property
    def eof(self) -> bool:
        return bool(self._object.eof)

    @property
    def needs_input(self) -> bool:
        return not self._object.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        data: bytes = self._object.unused_data
        return data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        tail = self._object.unconsumed_tail
        output: bytes = self._object.decompress(tail + data if tail else data, max(max_length, 0))
        return output


class _ZipLzma:
    """LZMA behind a zip archive's own header: two bytes of version, two of size, then five of properties.

    With the size in front, the properties and data are what `lzma` calls FORMAT_ALONE, which knows a memory limit.
    """

    def __init__(self, size: int, has_end_mark: bool) -> None:
        import lzma

        self._object = lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=_XZ_MEMORY)
        self._size = b"\xff" * 8 if has_end_mark else size.to_bytes(8, "little")
        self._head: bytes | None = b""

    @property
    def eof(self) -> bool:
        return self._object.eof

    @property
    def needs_input(self) -> bool:
        return self._object.needs_input

    @property
    def unused_data(self) -> bytes:
        return self._object.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        if self._head is not None:
            head = self._head + data
            if len(head) < 9:
                self._head = head
                return b""
            if head[2:4] != b"\5\0":
                raise ValueError("its header is not known")
            data, self._head = head[4:9] + self._size + head[9:], None
        return self._object.decompress(data, max_length)


class _Frame(Protocol):
    """A decompressor of one frame, as all libraries have one."""

    @property
    def eof(self) -> bool: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class _ZstdFrame:
    """One frame, given to the library block by block (RFC 8878, section 3).

        frame = header block+ [checksum]      block = 3 bytes (last, type, size), then its content

    The libraries put no bound on what they give out for what they are given, or do not tell a cut frame from a whole
    one. A block, though, never decompresses to more than 128 KiB, and the last one says that it is the last.
    """

    _BLOCK = 128 << 10

    def __init__(self, new_object: Callable[[], _Frame]) -> None:
        self.eof = False
        self._new_object = new_object
        self._object: _Frame | None = None
        self._input = b""
        self._at = 0  # byte of the input at which the next part starts
        self._to_skip: int | None = None  # bytes of a frame that is to be skipped
        self._checksum = False  # whether one ends the frame
        self._last = False  # whether the last block is done

    @property
    def needs_input(self) -> bool:
        return not self.eof and self._part_size() is None

    @property
    def unused_data(self) -> bytes:
        return self._input[self._at :] if self.eof else b""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        """The next block; `max_length` need not be looked at, as its size is bounded."""
        if data:
            self._input, self._at = self._input[self._at :] + data, 0
        while not self.eof and (size := self._part_size()) is not None:
            part = self._input[self._at : self._at + size]
            self._at += size
            if output := self._decompress_part(part):
                return output
        return b""

    def _part_size(self) -> int | None:
        """Size of the next part: header, block or checksum; None until all of it is there."""
        have = len(self._input) - self._at
        if self._to_skip:
            return min(self._to_skip, have) or None
        if self._object is None:
            size = self._header_size(have)
        elif self._last:
            size = 4
        elif have < 3:
            return None
        else:
            block = int.from_bytes(self._input[self._at : self._at + 3], "little")
            kind, length = block >> 1 & 3, block >> 3
            # Kind 1 is one byte, many times. A larger block is none: the library says so, once it sees that.
            size = 3 + (1 if kind == 1 else min(length, self._BLOCK))
        return size if have >= size else None

    def _header_size(self, have: int) -> int:
        if have < 5 or self._input[self._at + 1 : self._at + 4] == b"\x2a\x4d\x18":
            return 8
        flags = self._input[self._at + 4]
        single = flags >> 5 & 1
        return 5 + (1 - single) + (0, 1, 2, 4)[flags & 3] + (single, 2, 4, 8)[flags >> 6]

    def _decompress_part(self, part: bytes) -> bytes:
        if self._to_skip is not None:
            self._to_skip -= len(part)
            self.eof = not self._to_skip
            return b""
        if self._object is None:
            if part[1:4] == b"\x2a\x4d\x18":
                self._to_skip = int.from_bytes(part[4:], "little")
                self.eof = not self._to_skip
                return b""
            self._checksum = bool(part[4] & 4)
            if (window := _window(part)) > _MAX_WINDOW:
                raise _WindowError(f"{window >> 20:,} MiB")
            self._object = self._new_object()
        elif not self._last:
            self._last = bool(part[0] & 1)
            self.eof = self._last and not self._checksum
        else:
            self.eof = True
        output = self._object.decompress(part)
        if self.eof and not self._object.eof:
            raise ValueError("the frame does not end where it says")
        return output


def _window(header: bytes) -> int:
    """Bytes that a Zstandard frame refers back to."""
    flags = header[4]
    if not flags >> 5 & 1:
        base = 1 << 10 + (header[5] >> 3)
        return base + base // 8 * (header[5] & 7)
    size = (1, 2, 4, 8)[flags >> 6]  # of the field that ends the header: a single segment is its own window
    return int.from_bytes(header[-size:], "little") + (256 if size == 2 else 0)
