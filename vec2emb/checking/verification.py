"""Whether a bundle is whole, is what its source gives, and can be made again to the byte."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from ..bundle.manifest_parser import self_checksum
from ..bundle.publication import CONFIG, VOCAB
from ..bundle.reader import Bundle
from ..errors import BundleError, InputError, shown
from ..io.digest import file_digest
from ..io.filesystem import size_and_sha256
from ..io.progress import ProgressLike
from ..io.sources import SourceLike
from ..io.urls import is_url, label_of, plain
from ..options.commands import VERIFY
from ..options.definition import check
from ..words.vocabulary import Vocabulary
from .result import Verification

_NO_FILE = ("not-found", "not-a-bundle", "is-a-folder", "cannot-open", "read-failed")


def verify(
    bundle: str | os.PathLike[str],
    source: SourceLike | None = None,
    rebuild: str | os.PathLike[str] | bool | None = None,
    *,
    allow_pickle: bool = False,
    sha256: bool = False,
    threads: int | None = None,
    progress: ProgressLike = False,
) -> Verification:
    """Check a bundle: its files by themselves, against a file of vectors, against a bundle made again.

    The files are compared with each other and with their checksums, so that one changed bit in any of them is found.

    Args:
        bundle: a folder, or the `.safetensors` file of a bundle under one stem.
        source: a file of vectors, or whatever else `convert` takes: is every row what its word has there, read and
            treated as the bundle records? Memory does not grow with it.
        rebuild: the file that the bundle was made of: a conversion with the recorded options must give the same three
            files, byte for byte; True for a table from scratch, which has no such file. It is written to the system's
            folder for temporary files. Words of `vocab` and `only` are taken from the bundle itself.
        sha256: also compute the plain SHA-256 of every file, as `sha256sum` does, one file after the other.
        allow_pickle, threads, progress: as for `convert`.

    Returns:
        All checks. Nothing is raised for one that fails; look at `ok`.

    Raises:
        InputError: there is no bundle or no source.
        UsageError: `rebuild` of a bundle that was not made by `convert`.
    """
    check(VERIFY, locals())
    label = plain(os.fsdecode(bundle))
    if is_url(label):  # what is there now, not what was downloaded once
        from ..bundle.download import downloaded

        with downloaded(label) as folder:
            found = verify(
                folder, source, rebuild, sha256=sha256, allow_pickle=allow_pickle, threads=threads, progress=progress
            )
        found.path = label_of(label)
        return found
    found = Verification(label)
    try:
        opened = Bundle(label)
    except InputError as error:
        if error.code == "not-a-bundle" or not os.path.lexists(label):
            raise
        found.check("the files belong together", False, str(error))
        return found
    found.check("the files belong together", True)
    _check_checksums(opened, found, threads)
    if sha256:
        found.sha256 = {os.path.basename(path): size_and_sha256(path)[1] for path in opened.paths()}
    vocab = _check_vocabulary(opened, found)
    if vocab is None or not _check_records(opened, vocab, found):
        return found  # rows without words, or words without rows: there is nothing to compare
    if source is not None:
        from .row_comparison import check_rows

        with _failing(found, "the source can be read as the bundle records"):
            check_rows(opened, vocab, source, found, allow_pickle, threads, progress)
    if rebuild is not None and rebuild is not False:
        from .rebuilding import check_rebuilt

        with _failing(found, "the bundle can be made again"):
            check_rebuilt(opened, vocab, rebuild, found, allow_pickle, threads, progress)
    return found


@contextlib.contextmanager
def _failing(found: Verification, name: str) -> Iterator[None]:
    """Make a fault of a source that is there a failed check; that none is there stays an error."""
    try:
        yield
    except InputError as error:
        if error.code in _NO_FILE:
            raise
        found.check(name, False, str(error))


def _check_checksums(opened: Bundle, found: Verification, threads: int | None) -> None:
    for path, recorded in opened.checksums():
        actual = file_digest(path, threads)
        found.check(
            f"digest of {os.path.basename(path)}", actual == recorded, f"{actual}, where {CONFIG} says {recorded}"
        )
    own, actual = self_checksum(opened.target.paths[CONFIG])
    name = os.path.basename(opened.target.paths[CONFIG])
    found.check(f"sha256 of {name}", actual == own, f"{actual}, where it says {shown(own)} of itself")


def _check_vocabulary(opened: Bundle, found: Verification) -> Vocabulary | None:
    manifest = opened.manifest
    try:
        vocab = Vocabulary.map_file(
            opened.target.paths[VOCAB],
            padding_idx=manifest.padding_idx,
            unk_idx=manifest.unk_idx,
            sha256=opened.vocab_sha256,
            lookup=manifest.lookup,
        )
    except InputError as error:
        found.check("the vocabulary is unique and belongs to the table", False, str(error))
        return None
    fits = len(vocab) == manifest.rows
    found.check(
        "the vocabulary is unique and belongs to the table", fits, f"{len(vocab)} tokens for {manifest.rows} rows"
    )
    return vocab if fits else None


def _check_records(opened: Bundle, vocab: Vocabulary, found: Verification) -> bool:
    """Whether what vec2emb.json says of rows can be true of this table."""
    manifest = opened.manifest
    padding = manifest.padding_idx
    if padding is not None and manifest.provenance.zeroes_padding:
        found.check("the padding row is zero", not any(opened.stored_bytes(padding, 1)), f"row {padding} is not")
    wrong = [
        f"{shown(special.token)} is not row {special.id}"
        for special in manifest.specials
        if vocab.tokens[special.id] != special.token
    ]
    try:
        manifest.provenance.parse()
    except BundleError as error:
        wrong.append(error.message)
    return found.check("records of rows fit the table", not wrong, "; ".join(wrong[:3]))
