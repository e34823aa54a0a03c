"""The one writer of bundles. It streams: rows go to their place as they come, in whatever order; the header, which
needs their number, is written last. Nothing but the special rows and the position table is held in memory.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ._kernel import cast_rows
from ._kernel.codes import Cast
from .bundle import DTYPES, FORMAT_VERSION, HEADER_BYTES, KEY, canonical, largest, pretty, self_sha256
from .errors import InputError
from .filesystem import sync, write_all, write_file, writing
from .publishing import CONFIG, MODEL, SCRATCH, VOCAB, WAITING, Publication
from .tensorfile import TensorInfo, encode_header
from .version import __version__
from .writeback import WriteBack

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PIECE = 1 << 20  # bytes; larger writes were several times slower
_FLOAT32_MAX = 3.4028234663852886e38


class RowFile:
    """Rows in a file, written and read at their place; float32 unless `item`, bytes a value, says otherwise.

    `label` is the output's name for messages; `write_back` is told of what was written.
    """

    def __init__(
        self, descriptor: int, base: int, dim: int, label: str, item: int = 4, write_back: WriteBack | None = None
    ) -> None:
        self.descriptor = descriptor
        self.dim = dim
        self._label = label
        self._base = base
        self._width = item * dim
        self._write_back = write_back

    def write(self, row: int, rows: bytes | bytearray | memoryview) -> None:
        """Write n rows at row .. row+n-1."""
        with writing(self._label):
            write_all(self.descriptor, rows, self._base + row * self._width)
        if self._write_back is not None:
            self._write_back.wrote(len(rows))

    def read(self, row: int, count: int) -> bytes:
        """`count` rows from `row` on."""
        with writing(self._label):
            return os.pread(self.descriptor, count * self._width, self._base + row * self._width)

    def blocks(self, start: int, stop: int) -> Iterator[bytes]:
        """Rows start .. stop-1, about 1 MiB at a time."""
        step = max(1, PIECE // self._width)
        for row in range(start, stop, step):
            yield self.read(row, min(step, stop - row))


def narrowed(rows: bytes | memoryview, dtype: str) -> bytes | bytearray:
    """float32 rows in a stored type."""
    if dtype == "float32":
        return bytes(rows)
    out = bytearray(len(rows) // 2)
    cast_rows(rows, out, Cast.FLOAT16 if dtype == "float16" else Cast.BFLOAT16)
    return out


class Tensors(NamedTuple):
    """What the tensors of a bundle are called, and the position table, which stands under each of its keys."""

    key: str = KEY
    position_keys: tuple[str, ...] = ()
    positions: NDArray[np.float32] | None = None


class BundleWriter:
    """Writes one bundle into an open publication.

    Args:
        stored: rows come in the stored type already; otherwise as float32, and `finish` casts them.

    Attributes:
        rows: where the rows go: their place in the tensors' file, or a scratch file if they are to be cast.
    """

    def __init__(self, publication: Publication, dim: int, dtype: str, *, stored: bool = False) -> None:
        self._publication = publication
        self._dim = dim
        self._dtype = dtype
        self._open: list[int] = []
        label = publication.target.label
        with writing(label):
            self._model = self._create(MODEL)
            self._write_back = WriteBack(self._model)
            if stored or dtype == "float32":
                width = DTYPES[dtype][1]
                self.rows = RowFile(self._model, HEADER_BYTES, dim, label, width, self._write_back)
            else:
                self.rows = RowFile(self._create(SCRATCH), 0, dim, label)

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files; what is written stays unpublished."""
        self._write_back.close()
        while self._open:
            os.close(self._open.pop())

    def waiting_rows(self) -> RowFile:
        """A file for float32 rows whose place in the table is not known yet."""
        label = self._publication.target.label
        with writing(label):
            return RowFile(self._create(WAITING), 0, self._dim, label)

    def finish(
        self,
        count: int,
        vocabulary: Iterable[bytes],
        facts: dict[str, Any],
        details: dict[str, Any],
        tensors: Tensors | None = None,
    ) -> dict[str, Any]:
        """Write all that is not rows, and sync everything; the bundle can be published then.

        Args:
            count: V, the number of rows.
            vocabulary: pieces of vocab.txt, in order.
            facts: what the tensors' metadata hold beside the shape: padding_idx, unk_idx, train ..
            details: what vec2emb.json holds beside these; where both have a key, the longer form is in `details`.
            tensors: keys, and the position table.

        Returns:
            The content of vec2emb.json.

        Raises:
            InputError: a position does not fit the type.
        """
        publication, tensors = self._publication, tensors or Tensors()
        position_bytes = self._encoded(tensors.positions)
        with writing(publication.target.label):
            # Synced together with the tensors: by itself it would wait for them.
            size, digest = write_file(publication.path(VOCAB), iter(vocabulary), flush=False)
            facts = {"dim": self._dim, "dtype": self._dtype, "format_version": FORMAT_VERSION, "rows": count, **facts}
            entries = self._entries(count, tensors, len(position_bytes))
            metadata = {"format": "pt", "vec2emb": canonical({**facts, "vocab_sha256": digest})}
            header = encode_header(entries, metadata, align=HEADER_BYTES)
            if len(header) != HEADER_BYTES:
                raise AssertionError(f"a header of {len(header)} bytes")
            if self.rows.descriptor != self._model:
                self._cast(count)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(publication.path(WAITING))
            write_all(self._model, header, 0)
            for key in tensors.position_keys:
                write_all(self._model, position_bytes, HEADER_BYTES + entries[key].start)
            end = HEADER_BYTES + max(entry.stop for entry in entries.values())
            os.ftruncate(self._model, end)
            model_digest = self._sync_and_hash()
            files = {
                publication.target.file_name(MODEL): {"bytes": end, "sha256": model_digest},
                publication.target.file_name(VOCAB): {"bytes": size, "sha256": digest},
            }
            config = {"vec2emb_version": __version__, "key": tensors.key, **facts, **details, "files": files}
            config["self_sha256"] = self_sha256(config)
            write_file(publication.path(CONFIG), [pretty(config)])
        return config

    def _entries(self, count: int, tensors: Tensors, position_bytes: int) -> dict[str, TensorInfo]:
        """Words first, so that their place does not depend on what follows."""
        name, width, _ = DTYPES[self._dtype]
        end = count * self._dim * width
        entries = {tensors.key: TensorInfo(name, (count, self._dim), 0, end)}
        for key in tensors.position_keys:
            start, end = end, end + position_bytes
            rows = position_bytes // (self._dim * width)
            entries[key] = TensorInfo(name, (rows, self._dim), start, end)
        return entries

    def _encoded(self, positions: NDArray[np.float32] | None) -> bytes | bytearray:
        """The position table in the stored type."""
        if positions is None:
            return b""
        if not (abs(positions) <= min(largest(self._dtype), _FLOAT32_MAX)).all():
            raise InputError("out-of-range", f"a position has a value that is not finite or does not fit {self._dtype}")
        return narrowed(positions.tobytes(), self._dtype)

    def _create(self, name: str) -> int:
        descriptor = os.open(self._publication.path(name), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        self._open.append(descriptor)
        return descriptor

    def _cast(self, count: int) -> None:
        at = HEADER_BYTES
        for block in self.rows.blocks(0, count):
            out = narrowed(block, self._dtype)
            write_all(self._model, out, at)
            self._write_back.wrote(len(out))
            at += len(out)
        os.unlink(self._publication.path(SCRATCH))

    def _sync_and_hash(self) -> str:
        """Both take a while; neither waits for the other."""
        import hashlib

        failures: list[OSError] = []

        def flush() -> None:
            try:
                self._write_back.finish()
                sync(self._publication.path(VOCAB))
            except OSError as error:
                failures.append(error)

        flushing = threading.Thread(target=flush, name="vec2emb-sync")
        flushing.start()
        try:
            digest = hashlib.sha256()
            at, buffer = 0, bytearray(PIECE)
            while size := os.preadv(self._model, [buffer], at):
                digest.update(memoryview(buffer)[:size])
                at += size
        finally:
            flushing.join()
        if failures:
            raise failures[0]
        return digest.hexdigest()
