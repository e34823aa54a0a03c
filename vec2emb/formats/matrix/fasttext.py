"""fastText models (`.bin`), read without fastText.

    file       = [magic version] settings dictionary [quantised] matrix matrix
    magic      = BA 16 4F 2F, version = 11 or 12; models of 2016 have neither
    settings   = dim ws epoch minCount neg wordNgrams loss model bucket minn maxn lrUpdateRate   12 x int32, t float64
    dictionary = size nwords nlabels   3 x int32, ntokens int64, [pruned int64, -1], entry{size}
    entry      = word NUL count type   int64, int8; type 0 is a word
    quantised  = one byte, which the models of 2016 lack; the second one stands in front of the second matrix
    matrix     = rows columns   2 x int64, float32{rows x columns}; the first has the words, then the buckets

All is little-endian. A word's vector is the mean of its row and its subwords', which `subwords` computes as fastText
does. The matrix is mapped, since subwords stand anywhere in it; all else is read in order.

https://github.com/facebookresearch/fastText, `FastText::saveModel` and what it calls
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ...errors import FormatError, InputError, SourceError, shown
from ...io.filesystem import identity
from .recognition import FASTTEXT_MAGIC
from .source import MatrixSource, changed
from .subwords import Subwords, groups, mean_rows, subword_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOKEN_LIMIT = 4 << 10  # bytes; a longer word is no word, and its subwords would be hundreds of thousands
LONGEST = 255  # characters; no model cuts longer subwords
_PIECE = 1 << 20
_MAPPED = 256 << 20  # bytes of the matrix that may be looked at before they are given back
_ENTRY = re.compile(rb"([^\0]*)\0.{8}(.)", re.DOTALL)
_MODELS = {1: "cbow", 2: "skipgram", 3: "supervised"}
_LINE_END = b"</s>"  # fastText's token for the end of a line, which has no subwords


class _Settings(NamedTuple):
    """What stands in front of the dictionary's entries."""

    version: int  # 0 for the models of 2016
    dim: int
    model: int
    bucket: int
    minn: int
    maxn: int
    nwords: int
    entries: int  # the byte where the entries begin


class FastTextSource(MatrixSource):
    """The words of a model and their vectors."""

    is_text = False

    def __init__(self, path: str) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise InputError("cannot-open", f"the file cannot be opened ({error.strerror})", path=path) from error
        try:
            self._open(path)
        except BaseException:
            os.close(self._descriptor)
            raise

    def _open(self, path: str) -> None:
        self.identity = identity(self._descriptor)
        size = self.identity[2]
        self._read = _Bytes(self._descriptor, size, path)
        settings = self._settings = _read_settings(self._read)
        rows = settings.nwords
        super().__init__(path, os.path.basename(path), "fasttext", rows, settings.dim, size, "of the model")
        self._map_matrix(self._find_end_of_entries())
        self._subwords = Subwords(settings.minn, settings.maxn, settings.bucket, rows)
        self.has_subwords = self._subwords.any
        self.facts = {
            "model": _MODELS[settings.model],
            "subwords": f"{settings.minn} to {settings.maxn} characters" if self.has_subwords else "none",
            "buckets": settings.bucket,
        }
        self._words = (word for word, _ in _entries(self._read, settings))
        self._lock = threading.Lock()
        self._used = 0

    # The file.

    def _find_end_of_entries(self) -> int:
        return max((end for _, end in _entries(self._read, self._settings)), default=self._settings.entries)

    def _map_matrix(self, at: int) -> None:
        """Find both matrices, see that they end with the file, and map it."""
        import numpy as np

        settings, read = self._settings, self._read
        start, rows, columns, end = self._matrix_at(at, "the vectors")
        least = settings.nwords + (settings.bucket if settings.maxn > 0 else 0)
        if columns != settings.dim or rows < least:
            raise read.damaged(
                "the table of vectors has another size than the settings say",
                expected=f"{least} x {settings.dim}", found=f"{rows} x {columns}",
            )  # fmt: skip
        _, _, _, end = self._matrix_at(end, "the output layer")
        if end != read.size:
            raise SourceError(
                "fasttext-trailing-bytes", "the file goes on after the model", path=self.label, offset=end,
                found=f"{read.size - end} bytes more", hint="is it two files in one?",
            )  # fmt: skip
        self._data = mmap.mmap(self._descriptor, 0, access=mmap.ACCESS_READ)
        table = np.frombuffer(self._data, np.uint8, rows * columns * 4, start)
        self._matrix = table.reshape(rows, columns * 4)

    def _matrix_at(self, at: int, what: str) -> tuple[int, int, int, int]:
        """(first byte of the values, rows, columns, one past the last byte) of a matrix."""
        read = self._read
        if self._settings.version:
            read.need(at, 1, what)
            if read(at, 1) != b"\0":
                raise _quantised(self.label)
            at += 1
        read.need(at, 16, what)
        rows, columns = struct.unpack("<2q", read(at, 16))
        if rows < 0 or columns < 1:
            raise read.damaged(f"the size of {what} cannot be true", found=f"{rows} x {columns}")
        read.need(at + 16, 4 * rows * columns, what)
        return at + 16, rows, columns, at + 16 + 4 * rows * columns

    # The source.

    def words(self, count: int) -> list[bytes]:
        return [next(self._words) for _ in range(count)]

    def block(self, first: int, count: int, wanted: Sequence[int], words: Sequence[bytes]) -> NDArray[np.generic]:
        import numpy as np

        places = np.asarray(wanted, np.int64)
        own = first + places
        block = np.empty((count, self.dim), np.float32)
        if self.has_subwords:
            block[places], _ = self._means(own, words)
        else:
            block[places] = mean_rows(self._matrix, own, np.empty(0, np.int64), np.zeros(len(own), np.int64))
            self._give_back(len(own))
        return block

    def compose(self, words: Sequence[bytes]) -> tuple[NDArray[np.float32], list[int]]:
        import numpy as np

        made, counts = self._means(None, words)
        return made, np.flatnonzero(counts == 0).tolist()

    def _means(
        self, own: NDArray[np.int64] | None, words: Sequence[bytes]
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """For each word the mean of its own row, if it has one, and of its subwords', and how many these are."""
        import numpy as np

        made, counts = np.empty((len(words), self.dim), np.float32), np.empty(len(words), np.int64)
        for start, stop in groups(words, self._subwords):
            rows, counts[start:stop] = self._cut(words[start:stop])
            part = None if own is None else own[start:stop]
            made[start:stop] = mean_rows(self._matrix, part, rows, counts[start:stop])
            self._give_back(stop - start + len(rows))
        return made, counts

    def _cut(self, words: Sequence[bytes]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Subwords of words; the end of a line has none."""
        import numpy as np

        others = [word for word in words if word != _LINE_END]
        rows, counts = subword_rows(others, self._subwords)
        if len(others) == len(words):
            return rows, counts
        all_counts = np.zeros(len(words), np.int64)
        all_counts[[word != _LINE_END for word in words]] = counts
        return rows, all_counts

    def _give_back(self, rows: int) -> None:
        """Let the pages of the matrix go now and then, so that they do not count as memory in use."""
        with self._lock:
            self._used += rows * 4 * self.dim
            if self._used > _MAPPED and hasattr(mmap, "MADV_DONTNEED"):
                self._used = 0
                self._data.madvise(mmap.MADV_DONTNEED)

    def check_unchanged(self) -> None:
        if identity(self._descriptor) != self.identity:
            raise changed(self.label)

    def close(self) -> None:
        os.close(self._descriptor)


class _Bytes:
    """Bytes of a file at their place, never beyond its end."""

    def __init__(self, descriptor: int, size: int, path: str) -> None:
        self._descriptor = descriptor
        self.size = size
        self.path = path

    def __call__(self, at: int, size: int) -> bytes:
        try:
            data = os.pread(self._descriptor, size, at)
        except OSError as error:
            raise SourceError("read-failed", f"reading failed ({error.strerror})", path=self.path, offset=at) from error
        if len(data) < min(size, self.size - at):
            raise changed(self.path)
        return data

    def need(self, at: int, size: int, what: str) -> None:
        """Raise if the file ends before `at + size`."""
        if at + size > self.size:
            raise SourceError(
                "fasttext-cut", f"the file ends inside {what}", path=self.path, offset=at,
                expected=f"{size} bytes", found=str(max(0, self.size - at)), hint="the file is cut off: get it again",
            )  # fmt: skip

    def damaged(
        self, message: str, *, expected: str | None = None, found: str | None = None, record: int | None = None
    ) -> FormatError:
        return FormatError("fasttext-damaged", message, path=self.path, expected=expected, found=found, record=record)


def _read_settings(read: _Bytes) -> _Settings:
    """Settings, and the sizes of the dictionary.

    Raises:
        InputError: they cannot be true, or are those of a model that has no vectors of words.
    """
    at, version = 0, 0
    if read(0, 4) == FASTTEXT_MAGIC:
        read.need(0, 8, "its settings")
        version, at = struct.unpack("<i", read(4, 4))[0], 8
        if version not in (11, 12):
            raise FormatError("fasttext-version", "the model is of a version that is not known", path=read.path,
                              expected="11 or 12", found=str(version))  # fmt: skip
    read.need(at, 56 + (28 if version else 20), "its settings")
    dim, _, _, _, _, _, _, model, bucket, minn, maxn, _ = struct.unpack("<12i", read(at, 48))
    size, nwords, nlabels, _ = struct.unpack("<3iq", read(at + 56, 20))
    at += 76
    if model == 3 or nlabels > 0:
        raise FormatError(
            "fasttext-supervised", "the model is a classifier: its vectors tell labels apart, and are none of words",
            path=read.path, hint="use a model that was trained with skipgram or cbow",
        )  # fmt: skip
    if (
        model not in _MODELS
        or dim < 1
        or bucket < 0
        or nwords < 0
        or size != nwords
        or not (maxn <= 0 or 0 <= minn <= maxn <= LONGEST)
    ):
        raise read.damaged(
            "the settings of the model cannot be true",
            found=f"model {model}, dim {dim}, buckets {bucket}, words {nwords} of {size}, subwords {minn} to {maxn}",
        )  # fmt: skip
    if version:
        read.need(at, 8, "its settings")
        if struct.unpack("<q", read(at, 8))[0] >= 0:  # buckets that were kept, which fastText itself asks of such only
            raise _quantised(read.path)
        at += 8
    read.need(at, 10 * size, "its dictionary")
    return _Settings(version, dim, model, bucket, minn, maxn, nwords, at)


def _quantised(path: str) -> FormatError:
    return FormatError(
        "fasttext-quantised", "the vectors of the model were quantised, which is not undone here", path=path,
        hint="use the .bin that the .ftz was made of",
    )  # fmt: skip


def _entries(read: _Bytes, settings: _Settings) -> Iterator[tuple[bytes, int]]:
    """Each word of the dictionary, and the byte behind its entry."""
    start, count, rest = settings.entries, 0, b""
    while count < settings.nwords:
        piece = read(start + len(rest), _PIECE)
        data = rest + piece
        used = 0
        while count < settings.nwords and (match := _ENTRY.match(data, used)):
            used, count = match.end(), count + 1
            if len(match[1]) > TOKEN_LIMIT:
                raise read.damaged(
                    "a word of the dictionary is too long", record=count, expected=f"at most {TOKEN_LIMIT} bytes",
                    found=f"{len(match[1])}, {shown(match[1], 40)}",
                )  # fmt: skip
            if match[2] != b"\0":
                raise read.damaged("an entry of the dictionary is no word", record=count, found=shown(match[1]))
            yield match[1], start + used
        start, rest = start + used, data[used:]
        if not piece and count < settings.nwords:
            raise SourceError(
                "fasttext-cut", "the file ends inside its dictionary", path=read.path, record=count + 1,
                expected=f"{settings.nwords} words", found=str(count), hint="the file is cut off: get it again",
            )  # fmt: skip
        if not used and len(rest) > TOKEN_LIMIT:
            raise read.damaged("a word of the dictionary has no end", record=count + 1, found=shown(rest[:40]))
