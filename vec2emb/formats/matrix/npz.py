"""A NumPy archive (`.npz`) that holds vectors and their words.

    vectors    one array [V, D] of real numbers, of any name; of several, `--member NAME` says which
    words      one array [V] of strings (str, or bytes in UTF-8 or the encoding that is given),
               or one array [n] of uint8: the lines of vocab.txt, each word in UTF-8 and ended by LF
    padding_idx, unk_idx    whole numbers [], optional: rows of the two tokens

Arrays of Python objects are pickles, and refused. Vectors that are stored are read at their place, once their checksum
is known to be right; compressed ones are decompressed block by block as they are needed. So memory stays small either
way, and no header's promise sizes an allocation.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import IO, TYPE_CHECKING, NamedTuple

from ...errors import FormatError, InputError, SourceError, shown
from ...io.archives.zip_directory import read_directory
from ...io.filesystem import identity
from ...words.vocabulary_file import MAX_LINE
from .arrays import FileArray, Lines
from .memory import check_table
from .source import MatrixSource, changed, width_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PIECE = 1 << 20
_LOCAL_HEADER = 30
_MAX_HEAD = 64 << 10  # bytes in front of the values; NumPy itself takes 10,000, but reads them all before it says so
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # NumPy's; the others are unpacked as a whole, however large
_OTHERS = {zipfile.ZIP_BZIP2: "bzip2", zipfile.ZIP_LZMA: "LZMA"}
_LENGTHS = {1: 2, 2: 4}  # by the version of the array format: bytes that hold the length of the head
_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)
# NumPy has Python's own parser read the head of an array, so that any of these may come of one.
_UNPARSED = (
    SyntaxError, tokenize.TokenError, TypeError, MemoryError, OverflowError, IndexError, KeyError, AttributeError,
)  # fmt: skip


class _Array(NamedTuple):
    """An array of the archive: where its member is, and what the head of that says."""

    name: str
    info: zipfile.ZipInfo
    shape: tuple[int, ...]
    dtype: np.dtype[np.generic]
    by_columns: bool
    head: int  # bytes of the member in front of the values

    def __str__(self) -> str:
        return f"{self.name} {self.dtype}{list(self.shape)}"


class NpzSource(MatrixSource):
    """Vectors and words of an archive."""

    def __init__(self, path: str, member: str | None) -> None:
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by `close`
        try:
            self._open(path, member)
        except BaseException:
            self._file.close()
            raise

    def _open(self, path: str, member: str | None) -> None:
        self._descriptor = self._file.fileno()
        self.identity = identity(self._descriptor)
        with _readable(path):
            archive = read_directory(self._file, path)
            _check_members(archive, path)
            arrays = {array.name: array for array in (_look(archive, info) for info in archive.infolist())}
        vectors = _pick(arrays, member, path)
        _refuse_objects([vectors], path)
        rows, dim = vectors.shape
        super().__init__(path, os.path.basename(path), "npz", rows, dim, self.identity[2], "of the array")
        check_table(vectors.shape, vectors.dtype, path)
        self.value_bytes = width_of(vectors.dtype)
        self.member = vectors.name if member is not None else None
        self._archive, self._array = archive, vectors
        self._open_words(arrays, vectors)
        self._open_vectors(vectors)
        self.pad, self.unk = self._token(arrays, "padding_idx"), self._token(arrays, "unk_idx")
        self.facts = {"arrays": [str(array) for array in arrays.values()]}

    # Words.

    def _open_words(self, arrays: dict[str, _Array], vectors: _Array) -> None:
        others = [array for array in arrays.values() if array is not vectors and len(array.shape) == 1]
        strings = [array for array in others if array.dtype.kind in "US" and array.shape[0] == self.rows]
        lines = [array for array in others if array.dtype.str == "|u1"]
        _refuse_objects([array for array in others if array.shape[0] == self.rows], self.label)
        if len(strings) > 1 or (not strings and len(lines) != 1):
            raise FormatError(
                "npz-words", f"there is not one array of the words of {vectors.name}", path=self.label,
                expected=f"an array of {self.rows} strings, or one of uint8 that is a vocab.txt",
                found=", ".join(map(str, others)) or "no array of one dimension",
            )  # fmt: skip
        self._words = strings[0] if strings else lines[0]
        if not 0 < self._words.dtype.itemsize <= MAX_LINE:
            raise FormatError(
                "npz-words", f"the strings of {self._words.name} have a length that no word has", path=self.label,
                expected=f"1 to {MAX_LINE} bytes each", found=str(self._words.dtype.itemsize),
            )  # fmt: skip
        self.is_text = self._words.dtype.kind != "S"
        self.word_bytes = self._words.dtype.itemsize if strings else 16
        self._lines = None if strings else Lines(self._pieces(self._words), self.label)
        self._strings = self._opened(self._words) if strings else None
        self._given = 0

    def words(self, count: int) -> list[bytes]:
        if self._lines is None:
            return self._take_strings(count)
        taken = self._lines.take(count)
        self._given += len(taken)
        fewer = len(taken) < count
        if fewer or (self._given == self.rows and self._lines.take(1)):
            raise FormatError(
                "npz-words",
                f"there are {'fewer' if fewer else 'more'} words than rows",
                path=self.label,
                expected=f"{self.rows} lines in {self._words.name}, each ended by LF",
            )
        return taken

    def _take_strings(self, count: int) -> list[bytes]:
        stream, dtype = self._strings, self._words.dtype
        assert stream is not None
        with _readable(self.label):
            data = _exactly(stream, count * dtype.itemsize, self.label)
            strings = _strings(data, dtype)
        return [word if isinstance(word, bytes) else word.encode("utf-8", "surrogatepass") for word in strings]

    def _token(self, arrays: dict[str, _Array], name: str) -> str | None:
        """The word of a row that the archive names, where its words can be looked up at their place."""
        import numpy as np

        array = arrays.get(name)
        if array is None or array.shape or array.dtype.kind not in "iu":
            return None
        with _readable(self.label), self._opened(array) as stream:
            row = int(np.frombuffer(_exactly(stream, array.dtype.itemsize, self.label), array.dtype)[0])
        if not 0 <= row < self.rows:
            raise FormatError(
                "npz-words", f"{name} is no row", path=self.label, expected=f"0 .. {self.rows - 1}", found=str(row)
            )
        words = Lines(self._pieces(self._words), self.label) if self._lines is not None else None
        if words is None:
            with _readable(self.label), self._opened(self._words) as stream:
                width = self._words.dtype.itemsize
                _skip(stream, row * width, self.label)
                word = _strings(_exactly(stream, width, self.label), self._words.dtype)[0]
            return str(word) if self.is_text else None
        words.skip(row)
        taken = words.take(1)
        return taken[0].decode("utf-8", "replace") if taken else None

    # Vectors.

    def _open_vectors(self, vectors: _Array) -> None:
        stored = vectors.info.compress_type == zipfile.ZIP_STORED
        self.in_order = not stored
        if stored:
            offset = self._data_start(vectors.info) + vectors.head
            self._rows = FileArray(
                self._descriptor, offset, self.rows, self.dim, vectors.dtype, self.label, vectors.by_columns
            )
            return
        if vectors.by_columns:
            raise FormatError(
                "npz-columns", f"{vectors.name} is compressed column by column, which cannot be read row by row",
                path=self.label, hint="save numpy.ascontiguousarray(vectors), or with numpy.savez",
            )  # fmt: skip
        self._stream = self._opened(vectors)

    def block(self, first: int, count: int, wanted: Sequence[int], words: Sequence[bytes]) -> NDArray[np.generic]:
        import numpy as np

        if not self.in_order:
            self.verify()
            return self._rows.block(first, count, wanted)
        with _readable(self.label):
            data = _exactly(self._stream, count * self.dim * self._array.dtype.itemsize, self.label)
            if first + count == self.rows:
                self._stream.read(1)  # the end, where the checksum is compared
        return np.frombuffer(data, self._array.dtype).reshape(count, self.dim)

    def _verify(self) -> None:
        """Compare stored vectors with their checksum."""
        with _readable(self.label), self._archive.open(self._array.info) as stream:
            while stream.read(_PIECE):
                pass

    def _data_start(self, info: zipfile.ZipInfo) -> int:
        """The first byte of a member, behind its own header."""
        with _readable(self.label):
            header = os.pread(self._descriptor, _LOCAL_HEADER, info.header_offset)
        if len(header) < _LOCAL_HEADER:
            raise changed(self.label)
        return (
            info.header_offset + _LOCAL_HEADER
            + int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        )  # fmt: skip

    # Members.

    def _opened(self, array: _Array) -> IO[bytes]:
        """The values of an array, to be read in order."""
        with _readable(self.label):
            stream = self._archive.open(array.info)
            _skip(stream, array.head, self.label)
        return stream

    def _pieces(self, array: _Array) -> Iterator[bytes]:
        with self._opened(array) as stream:
            while True:
                with _readable(self.label):
                    piece = stream.read(_PIECE)
                if not piece:
                    return
                yield piece

    def check_unchanged(self) -> None:
        if identity(self._descriptor) != self.identity:
            raise changed(self.label)

    def close(self) -> None:
        self._archive.close()
        self._file.close()


def _pick(arrays: dict[str, _Array], member: str | None, path: str) -> _Array:
    """The array of the vectors."""
    tables = [array for array in arrays.values() if len(array.shape) == 2]
    if member is not None:
        named = arrays.get(member.removesuffix(".npy"))
        tables = [named] if named is not None and len(named.shape) == 2 else []
    if len(tables) == 1:
        return tables[0]
    raise FormatError(
        "npz-vectors", "there is not one array of vectors" if member is None else "there is no such array of vectors",
        path=path, expected="one array [V, D]", found=", ".join(map(str, tables or arrays.values())) or "no array",
        hint="--member NAME says which" if len(tables) > 1 else None,
    )  # fmt: skip


def _check_members(archive: zipfile.ZipFile, path: str) -> None:
    """Refuse members that hide each other, and those that cannot be unpacked a little at a time."""
    for name, count in Counter(archive.namelist()).items():
        if count > 1:
            raise FormatError("member-twice", f"the archive has {count} members named {shown(name)}", path=path)
    for info in archive.infolist():
        if info.compress_type not in _METHODS:
            raise FormatError(
                "npz-compression", f"{shown(info.filename)} is not packed as NumPy packs", path=path,
                expected="stored or deflated", found=_OTHERS.get(info.compress_type, f"method {info.compress_type}"),
                hint="save it with numpy.savez or numpy.savez_compressed",
            )  # fmt: skip


def _look(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Array:
    """What the head of a member says; raises ValueError for what is no array or does not fit its member."""
    import numpy as np
    from numpy.lib import format as npy

    with archive.open(info) as stream:
        major, minor = npy.read_magic(stream)
        if major not in _LENGTHS or minor:
            raise ValueError(f"{info.filename} has version {major}.{minor} of the array format")
        length = stream.read(_LENGTHS[major])
        size = int.from_bytes(length, "little")
        if size > _MAX_HEAD:
            raise ValueError(f"{info.filename} has a head of {size} bytes")
        text = io.BytesIO(length + stream.read(size))
    read = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    try:
        shape, by_columns, dtype = read(text)
    except _UNPARSED as error:
        raise ValueError(f"{info.filename} has a head that is none ({type(error).__name__})") from error
    head = npy.MAGIC_LEN + len(length) + size
    size = dtype.itemsize
    for extent in shape:
        size *= int(extent)
    if min(shape, default=0) < 0 or (not dtype.hasobject and head + size != info.file_size):
        raise ValueError(f"{info.filename} says {dtype}{list(shape)}, which is not what it holds")
    return _Array(info.filename.removesuffix(".npy"), info, shape, np.dtype(dtype), by_columns and len(shape) > 1, head)


def _strings(data: bytes, dtype: np.dtype[np.generic]) -> list[str | bytes]:
    """Text or bytes; raises ValueError for numbers that are no characters, of which NumPy makes anything."""
    import numpy as np

    if dtype.kind == "U" and np.any(np.frombuffer(data, f"{dtype.byteorder}u4") > sys.maxunicode):
        raise ValueError("a string holds what is no character")
    strings: list[str | bytes] = np.frombuffer(data, dtype).tolist()
    return strings


def _refuse_objects(arrays: Sequence[_Array], path: str) -> None:
    for array in arrays:
        if array.dtype.hasobject:
            raise FormatError(
                "npz-objects", f"{array.name} is an array of Python objects, which is a pickle that can run any code",
                path=path, hint="save words as numpy.array(words, dtype=str)",
            )  # fmt: skip


@contextlib.contextmanager
def _readable(path: str) -> Iterator[None]:
    """Say of an archive that cannot be read that it is at fault."""
    try:
        yield
    except InputError:
        raise
    except _BROKEN as error:
        raise SourceError("npz-damaged", f"the archive cannot be read ({shown(str(error), 120)})", path=path) from error


def _exactly(stream: IO[bytes], size: int, path: str) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise SourceError(
            "npz-damaged", "an array ends early", path=path, expected=f"{size} bytes", found=str(len(data))
        )
    return data


def _skip(stream: IO[bytes], size: int, path: str) -> None:
    while size:
        size -= len(_exactly(stream, min(size, _PIECE), path))
