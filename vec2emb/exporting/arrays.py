"""`.npz`: rows and words as plain numpy arrays, which any numpy opens without pickle.

    weight       float32 or float16 [V, D]
    vocab        uint8 [n], vocab.txt byte for byte: each token in UTF-8, followed by LF
    padding_idx, unk_idx   int64 [], where the table has such rows

An array of strings would cut NULs off the ends of tokens and give each as much room as the longest needs; bytes do
neither: `tokens = z["vocab"].tobytes().decode().split("\\n")[:-1]`. Nothing is compressed, and the same table gives the
same bytes.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from ..io.progress import Progress
from .part import Part

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first that a zip archive knows
_ALIGN = 64


def write_npz(part: Part, file: BinaryIO, show: Progress | None) -> None:
    """Write the archive; at most a piece of the table is in memory."""
    size = sum(len(part.blob(start, stop)) for start, stop in part.pieces())
    kind, width = ("<f4", 4) if part.dtype == "float32" else ("<f2", 2)

    def rows() -> Iterator[bytes]:
        done = 0
        for start, stop in part.pieces():
            block = part.stored(start, stop)
            yield block
            done += len(block)
            if show is not None:
                show(done, part.rows * part.dim * width)

    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, "weight", kind, (part.rows, part.dim), rows())
        _add(archive, "vocab", "|u1", (size,), (part.blob(start, stop) for start, stop in part.pieces()))
        for name, id in (("padding_idx", part.padding_idx), ("unk_idx", part.unk_idx)):
            if id is not None:
                _add(archive, name, "<i8", (), [id.to_bytes(8, "little")])


def _add(archive: zipfile.ZipFile, name: str, kind: str, shape: tuple[int, ...], pieces: Iterable[bytes]) -> None:
    """One array, in the format of `numpy.save`."""
    member = zipfile.ZipInfo(f"{name}.npy", _EPOCH)
    member.create_system = 3  # whatever system this is
    member.external_attr = 0o644 << 16
    with archive.open(member, "w", force_zip64=True) as stream:
        stream.write(_head(kind, shape))
        for piece in pieces:
            stream.write(piece)


def _head(kind: str, shape: tuple[int, ...]) -> bytes:
    """The head of an array in version 1.0 of the format, filled up so that the values begin at a multiple of 64."""
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape!r}, }}"
    magic = b"\x93NUMPY\x01\x00"
    length = len(text) + 1
    length += -(len(magic) + 2 + length) % _ALIGN
    return magic + length.to_bytes(2, "little") + text.ljust(length - 1).encode() + b"\n"
