"""From a bundle to what other programs read: files of vectors, lists of words, folders of other libraries."""

from __future__ import annotations

import os
import shutil

from ..bundle.outputs import check_outputs
from ..bundle.publication import CONFIG
from ..bundle.reader import Bundle, open_bundle
from ..editing.resharding import write_shards
from ..errors import UsageError, shown, warn_caller
from ..io.atomic import AtomicFile, AtomicOutput, check_file, new_file, place_of
from ..io.compressed_output import compression_of, packed
from ..io.digest import file_digest
from ..io.filesystem import size_and_sha256, writing
from ..io.progress import Progress, ProgressLike, progress_of
from ..io.urls import local_only
from ..options.commands import EXPORT
from ..options.definition import check
from ..options.sizes import parse_size
from ..safetensors_files.sharding import SIZE
from . import model_folder as folders
from .arrays import write_npz
from .huggingface import HUGGINGFACE
from .model2vec import MODEL2VEC
from .part import Part
from .result import Export
from .vectors import VECTORS, check_tokens, needs_options, options_to_read, write_vectors
from .words import write_vocab_json

FOLDERS = {layout.name: layout for layout in (HUGGINGFACE, MODEL2VEC)}


def export(
    bundle: str | os.PathLike[str],
    to: str,
    path: str | os.PathLike[str],
    *,
    specials: str = "keep",
    normalize_module: bool = False,
    model_card: bool = False,
    shard_size: int | str | None = None,
    if_exists: str = "error",
    progress: ProgressLike = False,
) -> Export:
    """Write the table of a bundle as other programs read it: a file of vectors, a list of words, a folder, or shards.

    Nothing is lost: the numbers of text are the shortest that read back as the same float32; float16 and bfloat16
    are written as the float32 that they stand for (`npz` and folders keep float16). What is written appears complete
    or not at all, a file of vectors only after it was read back and compared with the table. The same bundle gives the
    same bytes.

    Args:
        bundle: a folder, or the `.safetensors` file of a bundle under one stem.
        to: a file of vectors: `word2vec` (text with a header), `word2vec-binary`, `glove` (text without one) or
            `fasttext-vec` (text for fastText's `-pretrainedVectors`); `vocab-json` (`{"token": id, ..}`) or `npz`
            (numpy arrays `weight` [V, D] and `vocab`, the bytes of vocab.txt); or a folder: `huggingface`, which
            sentence-transformers, model2vec and transformers load, or `model2vec`, that library's own; or
            `shards`, the same bundle in several files as PyTorch's distributed checkpoint has them.
        path: the file, of which `.gz`, `.bz2`, `.xz` and `.zst` at its end compress it, or the folder.
        specials: `keep` the rows of the special tokens, or `drop` them; folders and shards need them.
        normalize_module: of a folder: texts are scaled to length 1 at the end.
        model_card: of a folder: write README.md from the source and the licence that are recorded.
        shard_size: of shards, the largest that one of words may be, as a number of bytes or as `5GB`, which is the
            default.
        if_exists: raise an `error` where a file or an earlier export stands already, or `replace` it. README.md and
            .gitattributes of a folder stay; a folder with any other foreign file is never replaced.
        progress: True for the usual display, or a function of (bytes done, bytes in all).

    Returns:
        What was written, with notes on what its readers make of it. If `convert` needs options to read a file of
        vectors, a warning names them; another counts the tokens that the tokenizer of a folder never finds.

    Raises:
        InputError: there is no bundle, or it is damaged.
        OutputError: the format cannot hold a token or value, or the target exists or cannot be written.
        UsageError: an argument is none that there is.
    """
    check(EXPORT, locals())
    label = os.fsdecode(path)
    _check_arguments(label, to, specials, {"normalize_module": normalize_module, "model_card": model_card})
    if to == "shards":
        return _export_shards(bundle, label, SIZE if shard_size is None else shard_size, if_exists, progress)
    if shard_size is not None:
        raise UsageError("shard-size-alone", f"{to} is not cut into shards", hint="--to shards")
    opened, vocab = open_bundle(bundle)
    if to != "vocab-json":  # which has no row of the table
        opened.check_sum()
    part = Part(opened, vocab, specials == "drop")
    compression = "none" if to in FOLDERS or to == "npz" else compression_of(label)
    done = Export(label, to, compression, part.rows, part.dim, part.dropped)
    with progress_of(progress, os.path.basename(label)) as show:
        if to in FOLDERS:
            _export_folder(opened, part, done, if_exists, normalize_module, model_card, show)
        else:
            _export_file(part, done, if_exists, show)
    for warning in done.warnings:
        warn_caller(warning)
    return done


def _check_arguments(label: str, to: str, specials: str, of_folders: dict[str, bool]) -> None:
    local_only(label, "a file of vectors that is written")
    if label in ("", "-"):
        raise UsageError("output-name", "the output has no name that a file can have", found=shown(label))
    if to not in FOLDERS:
        for name in (name for name, wanted in of_folders.items() if wanted):
            raise UsageError(
                "folder-option", f"{name} is for a folder", expected=" or ".join(f"--to {name}" for name in FOLDERS),
                found=f"--to {to}",
            )  # fmt: skip
    elif specials == "drop":
        raise UsageError("specials-needed", f"{to} needs the special tokens", hint="leave out --specials drop")
    if to == "shards" and specials == "drop":
        raise UsageError("specials-needed", "shards hold the whole table", hint="leave out --specials drop")
    if to == "npz":
        packing = compression_of(label)
        if packing != "none":
            raise UsageError("compression-suffix", "an .npz is not compressed as a whole", path=label, found=packing)


def _export_file(part: Part, done: Export, if_exists: str, show: Progress | None) -> None:
    label, to = done.path, done.format
    layout = VECTORS.get(to)
    if layout is not None:
        check_tokens(part, layout, to)
    check_outputs({"output": label})

    def check() -> None:
        check_file(label, replace=if_exists == "replace", hint="--if-exists replace")

    with AtomicFile(place_of(label), label, check) as output, writing(label):
        with new_file(output.file) as file:
            if layout is not None:
                with packed(file, done.compression) as stream:
                    tokens_sha256 = write_vectors(part, stream, layout, to, show)
            elif to == "npz":
                done.dtype = part.dtype
                write_npz(part, file, show)
            else:
                done.dtype = None
                with packed(file, done.compression) as stream:
                    write_vocab_json(part, stream)
        if layout is not None:
            done.options = options_to_read(output.file, label, part, tokens_sha256, layout)
            done.read_back = True
        done.bytes, done.sha256 = size_and_sha256(output.file)
        output.publish()
    if done.options:
        done.warnings.append(needs_options(done))


def _export_folder(
    opened: Bundle, part: Part, done: Export, if_exists: str, normalize: bool, card: bool, show: Progress | None
) -> None:
    layout = FOLDERS[done.format]
    folders.check_part(part, layout)
    target = os.path.realpath(done.path)
    own = opened.target.path if opened.target.is_folder else None
    output = AtomicOutput(target, done.path, lambda: folders.check_target(done.path, target, own, if_exists))
    with output, writing(done.path):
        hidden = output.hidden
        folders.write_folder(part, hidden, layout, done, normalize=normalize, card=card, show=show)
        for name in sorted(os.listdir(hidden)):
            size, digest = size_and_sha256(os.path.join(hidden, name))
            done.files[name] = {"bytes": size, "sha256": digest}
            done.bytes += size
        for name in folders.STAYING:
            there, new = os.path.join(target, name), os.path.join(hidden, name)
            if os.path.isfile(there) and not os.path.exists(new):
                with open(there, "rb") as old, new_file(new) as file:
                    shutil.copyfileobj(old, file)
        output.publish()


def _export_shards(
    bundle: str | os.PathLike[str], label: str, shard_size: int | str, if_exists: str, progress: ProgressLike
) -> Export:
    manifest = write_shards(bundle, label, shard_size, if_exists, progress)
    done = Export(label, "shards", "none", manifest.rows, manifest.dim, 0)
    path = os.path.join(label, CONFIG)
    done.files = {name: record.to_dict() for name, record in manifest.files.items()}
    done.files[CONFIG] = {"bytes": os.path.getsize(path), "digest": file_digest(path)}
    done.dtype, done.read_back = manifest.dtype, True
    done.bytes = os.path.getsize(path) + sum(record.bytes for name, record in manifest.files.items() if name != CONFIG)
    done.digest = manifest.table_digest()
    shards, limit = manifest.shards, parse_size("shard_size", shard_size)
    larger = max(manifest.files[name].bytes for name in shards) > limit
    done.notes.append(
        f"{len(shards):,} shard{'' if len(shards) == 1 else 's'} of at most {limit:,} bytes"
        f"{', but for that of positions' if larger else ''}"
    )
    return done
