"""The one writer of bundles. It streams: rows go to their place as they come, in whatever order; the header, which
needs their number, is written last. Nothing but the special rows and the position table is held in memory.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .._kernel import cast_rows
from .._kernel.codes import Cast
from ..errors import InputError, UsageError
from ..io.digest import file_digest
from ..io.filesystem import size_and_sha256, sync, write_file, writing
from ..io.urls import is_url
from ..io.writeback import WriteBack, in_background
from ..safetensors_files.header import TensorInfo, encode_header
from ..safetensors_files.rows import RowFile
from ..safetensors_files.sharding import FileRecord, listing_sha256, rows_each
from ..version import __version__
from .publication import CONFIG, MODEL, SCRATCH, VOCAB, WAITING, Publication, Target
from .reader import DTYPES, HEADER_BYTES, largest

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .manifest import Manifest

_FLOAT32_MAX = 3.4028234663852886e38


def check_folder(target: Target, shard_size: int | None) -> None:
    """Refuse shards beside other files.

    Raises:
        UsageError: the target is no folder.
    """
    if shard_size is not None and is_url(target.location):
        raise UsageError(
            "shards-at-a-url", "shards are not uploaded", expected="a folder of this machine", found=target.label,
            hint="write them here, then copy the folder",
        )  # fmt: skip
    if shard_size is not None and not target.is_folder:
        raise UsageError(
            "shards-in-a-folder", "shards need a folder of their own", expected="-o FOLDER", found=target.label
        )


def narrowed(rows: bytes | memoryview, dtype: str) -> bytes | bytearray:
    """float32 rows in a stored type."""
    if dtype == "float32":
        return bytes(rows)
    out = bytearray(len(rows) // 2)
    cast_rows(rows, out, Cast.FLOAT16 if dtype == "float16" else Cast.BFLOAT16)
    return out


class BundleWriter:
    """Writes one bundle into an open publication.

    Args:
        stored: rows come in the stored type already; otherwise as float32, and `finish` casts them.
        shard_size: cut the table into shards of at most so many bytes each; None for one file.
        threads: how many hash what is not hashed yet in the end; one a core by default.

    Attributes:
        rows: where the rows go: their place in the tensors' file, or a scratch file if they are to be cast.

    Raises:
        UsageError: shards that are none, or have no folder.
    """

    def __init__(
        self,
        publication: Publication,
        dim: int,
        dtype: str,
        *,
        stored: bool = False,
        shard_size: int | None = None,
        threads: int | None = None,
    ) -> None:
        self._publication = publication
        self._dim = dim
        self._dtype = dtype
        self._shard_size = shard_size
        self._threads = threads
        self._vocabulary = 0, ""  # its bytes and their sha256
        label = publication.target.label
        with writing(label), contextlib.ExitStack() as self._open:
            self._table = self._create_table(label)
            self._open.callback(self._table.close)
            cast = not stored and dtype != "float32"
            self.rows = RowFile(self._create(SCRATCH), 0, dim, label) if cast else self._table
            self._open = self._open.pop_all()  # from here on they stay open

    def _create_table(self, label: str) -> RowFile:
        """Where rows of the stored type go."""
        item = DTYPES[self._dtype][1]
        if self._shard_size is None:
            model = self._create(MODEL)
            return RowFile(model, HEADER_BYTES, self._dim, label, item, WriteBack(model), hashed=True)
        from ..safetensors_files.shard_writer import ShardedRows

        check_folder(self._publication.target, self._shard_size)
        each = rows_each(self._shard_size, HEADER_BYTES, item * self._dim)
        return ShardedRows(self._publication.path, each, HEADER_BYTES, self._dim, label, item)

    def __enter__(self) -> BundleWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files; what is written stays unpublished."""
        self._open.close()

    def staging_rows(self) -> RowFile:
        """A file for float32 rows whose place in the table is not known yet."""
        label = self._publication.target.label
        with writing(label):
            return RowFile(self._create(WAITING), 0, self._dim, label)

    def write_vocabulary(self, pieces: Iterable[bytes]) -> None:
        """Write vocab.txt, whose pieces are given in order; before `finish`."""
        with writing(self._publication.target.label):
            # Synced together with the tensors: by itself it would wait for them.
            self._vocabulary = write_file(self._publication.path(VOCAB), iter(pieces), flush=False)

    def finish(self, manifest: Manifest, positions: NDArray[np.float32] | None = None) -> Manifest:
        """Write all that is neither rows nor vocabulary, and sync everything; the bundle can be published then.

        Args:
            manifest: what vec2emb.json is to say; `files`, `shard_size` and `self_sha256` are filled in here.
            positions: the position table, if the manifest has one.

        Returns:
            The manifest that was written.

        Raises:
            InputError: a position does not fit the type.
        """
        from .manifest import canonical

        publication, (size, digest) = self._publication, self._vocabulary
        position_bytes = self._encoded(positions)
        with writing(publication.target.label):
            metadata = {"format": "pt", "vec2emb": canonical({**manifest.header(), "vocab_sha256": digest})}
            if self.rows is not self._table:
                self._cast(manifest.rows)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(publication.path(WAITING))
            finish = self._finish_model if self._shard_size is None else self._finish_shards
            files = finish(manifest, metadata, position_bytes)
            files[publication.target.file_name(VOCAB)] = FileRecord(size, file_digest(publication.path(VOCAB)))
            written = manifest._replace(files=files, shard_size=self._shard_size, vec2emb_version=__version__).signed()
            write_file(publication.path(CONFIG), [written.encode()])
        return written

    def table_sha256(self, manifest: Manifest) -> str:
        """The plain SHA-256 of model.safetensors, once it is finished; of shards that of their list."""
        names = manifest.shards or [MODEL]
        sums = {name: size_and_sha256(self._publication.path(name))[1] for name in names}
        return listing_sha256(sums) if manifest.shards else sums[MODEL]

    def _finish_model(
        self, manifest: Manifest, metadata: dict[str, str], position_bytes: bytes | bytearray
    ) -> dict[str, FileRecord]:
        """Header and positions of the one file; what vec2emb.json says of it."""
        table, entries = self._table, self._entries(manifest, len(position_bytes))
        header = encode_header(entries, metadata, align=HEADER_BYTES)
        if len(header) != HEADER_BYTES:
            raise AssertionError(f"a header of {len(header)} bytes")
        table.put(0, header)
        for key in manifest.position_keys:
            table.put(HEADER_BYTES + entries[key].start, position_bytes)
        end = HEADER_BYTES + max(entry.stop for entry in entries.values())
        os.ftruncate(table.descriptor, end)
        name = self._publication.target.file_name(MODEL)
        with in_background(self._sync):
            return {name: FileRecord(end, table.digest(end, self._threads))}

    def _finish_shards(
        self, manifest: Manifest, metadata: dict[str, str], position_bytes: bytes | bytearray
    ) -> dict[str, FileRecord]:
        """The same of shards."""
        from ..safetensors_files.shard_writer import ShardedRows

        if not isinstance(self._table, ShardedRows):
            raise AssertionError("no shards")
        positions = dict.fromkeys(manifest.position_keys, position_bytes)
        sizes = self._table.finish(manifest.rows, manifest.key, DTYPES[self._dtype][0], metadata, positions)
        with in_background(self._sync):
            return self._table.records(sizes, self._threads)

    def _entries(self, manifest: Manifest, position_bytes: int) -> dict[str, TensorInfo]:
        """Words first, so that their place does not depend on what follows."""
        name, width, _ = DTYPES[self._dtype]
        end = manifest.rows * self._dim * width
        entries = {manifest.key: TensorInfo(name, (manifest.rows, self._dim), 0, end)}
        for key in manifest.position_keys:
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
        self._open.callback(os.close, descriptor)
        return descriptor

    def _cast(self, count: int) -> None:
        at = 0
        for block in self.rows.blocks(0, count):
            self._table.write(at, narrowed(block, self._dtype))
            at += len(block) // (4 * self._dim)
        os.unlink(self._publication.path(SCRATCH))

    def _sync(self) -> None:
        self._table.sync()
        sync(self._publication.path(VOCAB))
