"""A bundle written again with the same ids: its rows and tokens are copied byte for byte, more may follow."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..errors import OutputError, UsageError, Vec2embWarning, warn_caller
from ..io.progress import Progress
from .manifest import Manifest, Step
from .publication import Target
from .reader import Bundle, open_bundle, publish_or_keep
from .table import stored_positions
from .target import target_of
from .writer import BundleWriter, check_folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..safetensors_files.rows import RowFile
    from ..words.vocabulary import Vocabulary


class Source(NamedTuple):
    """The bundle that is rewritten, open and checked.

    Attributes:
        bundle, vocab: its files.
        target: where the new one is written.
        staging: opens a file for float32 rows that are made on the way.
    """

    bundle: Bundle
    vocab: Vocabulary
    target: Target
    staging: Callable[[], RowFile]


class Contents(NamedTuple):
    """What a rewritten bundle holds beside the old rows and tokens.

    Attributes:
        manifest: what it records.
        positions: float32[P, D], its position table, if the manifest has one.
        tokens: in UTF-8, each followed by LF, added at the end.
        rows: (first row, rows as they are stored) of these.
        step: what was done, recorded after the others; None for what a record does not need.
        warnings: given once everything is written and before it appears.
    """

    manifest: Manifest
    positions: NDArray[np.float32] | None
    tokens: bytes = b""
    rows: Iterable[tuple[int, bytes | bytearray]] = ()
    step: Step | None = None
    warnings: tuple[Vec2embWarning, ...] = ()


class Rewritten(NamedTuple):
    """The new manifest, and whether the target held the same bundle already, so that nothing was written."""

    manifest: Manifest
    kept_existing: bool


def rewrite_bundle(
    bundle: str | os.PathLike[str],
    output: str | os.PathLike[str] | None,
    change: Callable[[Source], Contents],
    *,
    if_exists: str = "error",
    shard_size: int | None = None,
    read_back: bool = False,
    show: Progress | None = None,
) -> Rewritten:
    """Write a bundle whose checksums hold again, changed; it appears complete or not at all.

    Args:
        bundle: a folder, or NAME.safetensors.
        output: where to write; None replaces the bundle.
        change: what is different, decided once the bundle is locked.
        if_exists: as in `convert`.
        shard_size: of the new table; None keeps that of the old one.
        read_back: compare what was written with the old rows before it appears.
        show: called with (bytes done, bytes in all).

    Raises:
        InputError: there is no bundle, or it is damaged.
        OutputError: the result cannot be written.
        UsageError: a bundle behind a URL has no output, or shards have no folder.
        TryAgainError: another run is writing there.
    """
    before = Bundle(bundle)  # what is no bundle is refused before anything is touched
    if output is None and before.location is not None:
        raise UsageError(
            "output-missing", "a bundle behind a URL is not changed in place", found=before.label, hint="name an output"
        )
    target = target_of(before.label if output is None else output)
    check_folder(target, shard_size)
    with target.publication("replace" if output is None else if_exists) as publication:
        opened, vocab = open_bundle(bundle)  # again: nobody else can write it any more, if it is the target
        opened.check_sum()
        old = opened.manifest
        size = old.shard_size if shard_size is None else shard_size
        with BundleWriter(publication, old.dim, old.dtype, stored=True, shard_size=size) as writer:
            contents = change(Source(opened, vocab, target, writer.staging_rows))
            for at, stored in opened.pieces():
                writer.rows.write(at, stored)
                if show is not None:
                    show(at * opened.width + len(stored), opened.tensor.stop)
            for at, added in contents.rows:
                writer.rows.write(at, added)
            writer.write_vocabulary([bytes(vocab.blob), contents.tokens])
            steps = old.steps if contents.step is None else (*old.steps, contents.step)
            written = writer.finish(contents.manifest._replace(steps=steps), contents.positions)
            if read_back and _differs(writer.rows, opened):
                raise OutputError("export-misread", "what was written reads otherwise", path=target.label)
        for warning in contents.warnings:
            warn_caller(warning)
        return Rewritten(written, publish_or_keep(publication, written))


def _differs(rows: RowFile, opened: Bundle) -> bool:
    """Whether what was written is not the old rows."""
    return any(rows.read(at, len(stored) // opened.width) != stored for at, stored in opened.pieces())


def unchanged(source: Source) -> Contents:
    """The same bundle."""
    return Contents(source.bundle.manifest, stored_positions(source.bundle))
