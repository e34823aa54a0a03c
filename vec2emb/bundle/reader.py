"""The bundle on disk: what it consists of, and its one reader. `writer` has the one writer.

A bundle is three files, in a folder or side by side under one stem; in a folder, shards (see `sharding`) may stand in
the place of the first:

    model.safetensors   the table, `weight`: [V, D], or word table and position table under the keys of a key style; the
                        header is padded to 4,096 bytes, its metadata is `format: pt` and `vec2emb`, one canonical JSON
                        string that says nothing of the source
    vocab.txt           UTF-8, each token followed by LF, line i is row i
    vec2emb.json        everything else: how each special token was set, which rows train, the source, the options, size
                        and digest (see `io.digest`) of the other two, and sha256 of itself (less that field)
"""

from __future__ import annotations

import json
import os
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ..errors import BundleError, InputError, OutputError, UsageError, shown
from ..io.urls import is_url, label_of, plain
from ..safetensors_files.header import PIECE, TensorInfo
from ..safetensors_files.sharding import FileRecord, begins_with, is_shard_name
from ..safetensors_files.tables import Stretch, TableFile, TableFiles
from .publication import CONFIG, MODEL, VOCAB, Publication, Target

if TYPE_CHECKING:
    from ..words.vocabulary import Vocabulary
    from .manifest import Manifest

HEADER_BYTES = 4096
KEY = "weight"

DTYPES = {
    # name: (safetensors' name, bytes, smallest float32 magnitude that rounds to infinity)
    "float32": ("F32", 4, None),
    "float16": ("F16", 2, 65520.0),
    "bfloat16": ("BF16", 2, 3.3961775292304957e38),
}


def largest(dtype: str) -> float:
    """The largest float32 magnitude that does not round to infinity in a dtype.

    Raises:
        UsageError: there is no such dtype.
    """
    if dtype not in DTYPES:
        raise UsageError("dtype", "no such type", expected=" or ".join(DTYPES), found=repr(dtype))
    limit = DTYPES[dtype][2]
    return float("inf") if limit is None else _float32_below(limit)


def _float32_below(limit: float) -> float:
    bits = array("I", array("f", [limit]).tobytes())
    return float(array("f", array("I", [bits[0] - 1]).tobytes())[0])


class Bundle:
    """The files of a bundle, opened and compared with each other; of the table itself not a byte is read.

    Attributes:
        manifest: the content of vec2emb.json.
        files: what holds the word table: model.safetensors, which is mapped at once, so that header and rows are of one
            file whatever is replaced later; or the shards, which are mapped when they are needed.
        tensor: type and shape of the word table, all of it.
        location: the URL that it was opened by, or None.
        vocab_sha256: what the tensors' own metadata say of the vocabulary's file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from .manifest_parser import read_manifest  # late: a conversion that replaces nothing reads no bundle

        given = plain(os.fsdecode(path))
        self.location = given if is_url(given) else None
        if self.location is not None:
            from .download import cached

            given = cached(self.location)
        self.target = _locate(given)
        self.label = label_of(self.location or self.target.label)
        self.manifest: Manifest = read_manifest(self.target)
        self.shards = self.manifest.shards if self.target.is_folder else []
        self.key = self.manifest.key
        opened = self._open_shards() if self.shards else [self._open_model()]
        self.vocab_sha256 = self._check_header(opened[0])
        self.files, self._position_file = self._divided(opened)
        self.tensor = self._find_table()
        self._positions = self._find_positions()
        self._check_rows()
        self._check_sizes()

    def release(self) -> None:
        """Give back the memory of the mapped files, as after copying rows; what is used again is mapped again."""
        self.files.release()

    def stretches(self, start: int, stop: int) -> Iterator[Stretch]:
        """Where rows start .. stop-1 of the word table stand, in one file or several."""
        return self.files.stretches(self.key, start, stop)

    def position_stretch(self) -> Stretch | None:
        """Where the position table stands; of one under several keys, the first."""
        if self._positions is None:
            return None
        return self._position_file.stretch(self._positions, 0, self._positions.shape[0])

    @property
    def width(self) -> int:
        """Bytes of a row of the word table."""
        return self.tensor.shape[1] * DTYPES[self.manifest.dtype][1]

    def stored_bytes(self, row: int, count: int) -> bytes:
        """Rows of the table as they are stored."""
        width = self.width
        return b"".join(data[at : at + rows * width] for data, at, rows in self.stretches(row, row + count))

    def pieces(self) -> Iterator[tuple[int, bytes]]:
        """The whole table, about 1 MiB at a time: first row, and rows as they are stored; no other stays in memory."""
        step = max(1, PIECE // self.width)
        for row in range(0, self.tensor.shape[0], step):
            yield row, self.stored_bytes(row, min(step, self.tensor.shape[0] - row))
            self.release()

    def tables(self) -> list[TableFile]:
        """The files of all tables, that of positions included."""
        return [*self.files, *([] if self._position_file is self.files[0] else [self._position_file])]

    def checksums(self) -> list[tuple[str, str]]:
        """Path and recorded digest of every file but vec2emb.json."""
        files = [(file.path, file.recorded.digest) for file in self.tables()]
        return [*files, (self.target.paths[VOCAB], self._recorded(VOCAB).digest)]

    def paths(self) -> list[str]:
        """All files of the bundle."""
        return [*(path for path, _ in self.checksums()), self.target.paths[CONFIG]]

    def check_sum(self) -> None:
        """Compare the tables with their checksums, lest damage be carried into a bundle with new ones.

        Raises:
            BundleError: a file is not the one that was written.
        """
        for file in self.tables():
            expected, actual = file.recorded.digest, file.digest()
            if actual != expected:
                raise BundleError(
                    "bundle-damaged", "the tensors are not those that were written", path=self.label,
                    expected=f"digest {expected}", found=actual, hint="convert again, or copy the bundle again",
                )  # fmt: skip

    def _open_model(self) -> TableFile:
        return TableFile(self.target.paths[MODEL], self._recorded(MODEL), stays_mapped=True)

    def _open_shards(self) -> list[TableFile]:
        """The shards that vec2emb.json lists, each with the row that its own metadata say it begins with."""
        files = []
        for name in self.shards:
            path = os.path.join(self.target.path, name)
            if not os.path.exists(path):
                raise self._damaged(f"{name} is missing", "the file", "none")
            file = TableFile(path, self.manifest.files[name])
            file.first = begins_with(file.header.metadata, self.key) or 0
            files.append(file)
        return files

    def _divided(self, opened: list[TableFile]) -> tuple[TableFiles, TableFile]:
        """The files of words, and that of positions; the shards must follow each other."""
        if not self.shards:
            return TableFiles(opened), opened[0]
        words, others, at = TableFiles(), [], 0
        for file in opened:
            name, tensor = os.path.basename(file.path), file.header.tensors.get(self.key)
            if file.header.metadata.get("vec2emb") != opened[0].header.metadata.get("vec2emb"):
                raise self._damaged(f"{name} is a shard of another table", "the metadata of the first", "others")
            if tensor is None:
                others.append(file)
                continue
            rows = file.first, file.first + (tensor.shape or (0,))[0]
            if rows[0] != at or file.recorded.rows != rows or len(file.header.tensors) > 1:
                raise self._damaged(f"{name} holds other rows", f"rows {file.recorded.rows} from {at} on", str(rows))
            at = rows[1]
            words.append(file)
        if not words or len(others) > 1:
            raise self._damaged("the shards are not those of one table", f"rows of {shown(self.key)}", "other tensors")
        return words, others[0] if others else words[0]

    def _check_header(self, file: TableFile) -> str:
        """Compare the metadata in the tensors' header with the manifest; the vocabulary's hash that they hold."""
        from .manifest import canonical

        text = file.header.metadata.get("vec2emb")
        try:
            facts: Any = json.loads(text) if text is not None else None
        except (ValueError, RecursionError):
            facts = None
        if not isinstance(facts, dict):
            raise BundleError(
                "bundle-metadata", "the tensors were not written by vec2emb", path=file.path,
                expected="metadata named 'vec2emb'", found=str(sorted(file.header.metadata)),
            )  # fmt: skip
        for name, value in self.manifest.header().items():
            if canonical(facts.get(name)) != canonical(value):  # as 0, 0.0 and False are equal
                raise self._damaged(f"{CONFIG} and the tensors disagree about {name}", shown(str(facts.get(name))),
                                    shown(str(value)))  # fmt: skip
        if not isinstance(facts.get("vocab_sha256"), str):
            raise self._damaged("the tensors do not say which vocabulary is theirs", "its sha256", "none")
        return facts["vocab_sha256"]  # type: ignore[no-any-return]

    def _find_table(self) -> TensorInfo:
        manifest, tensor = self.manifest, self._whole()
        if tensor is None or tensor.shape != (manifest.rows, manifest.dim):
            raise self._damaged(
                "the table is not as its metadata say", f"{manifest.rows} x {manifest.dim}",
                str(tensor and tensor.shape),
            )  # fmt: skip
        if DTYPES[manifest.dtype][0] != tensor.dtype:
            raise self._damaged("the table has another type than its metadata say", manifest.dtype, tensor.dtype)
        return tensor

    def _whole(self) -> TensorInfo | None:
        """The word table as if it were in one file; None where its parts do not fit each other."""
        parts = [file.header.tensors.get(self.key) for file in self.files]
        first, last = parts[0], parts[-1]
        if first is None or last is None or len({part and (part.dtype, part.shape[1:]) for part in parts}) > 1:
            return None
        if len(parts) == 1:
            return first
        rows = self.files[-1].first + last.shape[0]
        width = first.stop // max(1, first.shape[0])
        return TensorInfo(first.dtype, (rows, *first.shape[1:]), 0, rows * width)

    def _find_positions(self) -> TensorInfo | None:
        """The position table; where it stands under several keys, the first."""
        recorded = self.manifest.positions
        if recorded is None:
            return None
        rows = recorded.num + recorded.offset
        tensors = [self._position_file.header.tensors.get(key) for key in recorded.keys]
        for tensor in tensors:
            if tensor is None or tensor.shape != (rows, self.tensor.shape[1]) or tensor.dtype != self.tensor.dtype:
                raise self._damaged(
                    "the positions are not as their metadata say", f"{rows} rows", str(tensor and tensor.shape)
                )
        return tensors[0]

    def _recorded(self, name: str) -> FileRecord:
        """Size and digest of a file, found by the end of its name: all files may have been renamed together."""
        files = self.manifest.files
        for key, record in files.items():
            if key.endswith(name.removeprefix("model")):
                return record
        raise self._damaged(
            f"{CONFIG} does not say what {name} should be", "its bytes and digest", shown(str([*files]))
        )

    def _check_sizes(self) -> None:
        sizes = [(file.path, file.recorded.bytes) for file in self.tables()]
        for path, recorded in [*sizes, (self.target.paths[VOCAB], self._recorded(VOCAB).bytes)]:
            try:
                size = os.stat(path).st_size
            except OSError:
                raise self._damaged(f"{os.path.basename(path)} is missing", "the file", "none") from None
            if size != recorded:
                raise self._damaged(f"{os.path.basename(path)} has another size", f"{recorded} bytes", str(size))

    def _check_rows(self) -> None:
        """Refuse records of rows that the table does not have."""
        manifest = self.manifest
        named = manifest.provenance.records()
        if manifest.training.rows is not None:
            named["train_rows"] = manifest.training.rows
        for name, ranges in named.items():
            if ranges.end > manifest.rows:
                raise self._damaged(
                    f"{name} of {CONFIG} has a row that is out of range", f"0 <= row < {manifest.rows}",
                    str(ranges.end - 1),
                )  # fmt: skip

    def _damaged(self, message: str, expected: str, found: str) -> BundleError:
        return BundleError(
            "bundle-damaged", message, path=self.label, expected=expected, found=found,
            hint="the files do not belong together: convert again, or copy the bundle again",
        )  # fmt: skip


def publish_or_keep(publication: Publication, written: Manifest) -> bool:
    """Publish what was written, or with `keep` compare it with what is there; whether that is the same and was kept.

    Raises:
        OutputError: with `keep`, another bundle is there.
    """
    if publication.if_exists == "keep" and not publication.target.is_free():
        compare_with_existing(publication.target, written)
        return True
    publication.publish()
    return False


def compare_with_existing(target: Target, manifest: Manifest) -> None:
    """Raise unless the bundle that stands at a target is the one that was just made.

    Raises:
        OutputError: it is another one.
    """
    from ..io.digest import file_digest

    existing = Bundle(target.location)
    new, old = ({**one.to_dict(), "self_sha256": None} for one in (manifest, existing.manifest))
    differing = sorted(key for key in {**new, **old} if new.get(key) != old.get(key))
    renamed = {existing.target.paths[role]: target.file_name(role) for role in (MODEL, VOCAB)}  # as downloads are
    for path, _ in existing.checksums():
        name = renamed.get(path, os.path.basename(path))
        record = manifest.files.get(name)
        if record is None or file_digest(path) != record.digest:
            differing.append(name)
    if differing:
        raise OutputError(
            "target-differs",
            "the bundle that is there is not the one this conversion gives",
            path=target.label,
            found=f"differences in {', '.join(differing)}",
            hint="--if-exists replace writes it anew",
        )


def _locate(path: str) -> Target:
    if os.path.isdir(path) or path.endswith(".safetensors"):
        folder, name = os.path.split(path)
        # The tensors of a folder, named by themselves, stand for the folder.
        stands = (name == MODEL or is_shard_name(name)) and os.path.exists(os.path.join(folder, CONFIG))
        target = Target((folder or ".") if stands else path)
    elif not os.path.lexists(path):
        raise InputError("not-found", "there is no such bundle", path=path)
    else:
        raise InputError(
            "not-a-bundle",
            "this is no bundle",
            path=path,
            hint="a bundle is a folder or a .safetensors file; convert makes one of a file of vectors",
        )
    if not os.path.exists(target.paths[MODEL]) and not os.path.exists(target.paths[CONFIG]):
        raise InputError("not-a-bundle", "this is no bundle", path=path, expected=f"{MODEL} and {CONFIG} in it")
    return target


def open_bundle(bundle: str | os.PathLike[str]) -> tuple[Bundle, Vocabulary]:
    """The files of a bundle, and the vocabulary that belongs to its table; raises what `vec2emb.load` raises."""
    opened = Bundle(bundle)
    return opened, open_vocabulary(opened)


def open_vocabulary(opened: Bundle) -> Vocabulary:
    """The vocabulary that belongs to the table of a bundle.

    Raises:
        BundleError: it is another one.
        VocabularyError: it is none.
    """
    from ..words.vocabulary import Vocabulary

    manifest = opened.manifest
    vocab = Vocabulary.map_file(
        opened.target.paths[VOCAB],
        padding_idx=manifest.padding_idx,
        unk_idx=manifest.unk_idx,
        sha256=opened.vocab_sha256,
        lookup=manifest.lookup,
    )
    if len(vocab) != manifest.rows:
        raise opened._damaged(f"{VOCAB} and the table differ in length", f"{manifest.rows} lines", str(len(vocab)))
    return vocab
