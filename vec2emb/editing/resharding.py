"""A bundle written again with its table cut into shards, or cut otherwise."""

from __future__ import annotations

import os

from ..bundle.manifest import Manifest
from ..bundle.reader import Bundle, open_bundle
from ..bundle.table import stored_positions
from ..bundle.target import target_of
from ..bundle.writer import BundleWriter, check_folder
from ..errors import OutputError
from ..io.progress import ProgressLike, progress_of
from ..options.sizes import parse_size


def write_shards(
    bundle: str | os.PathLike[str],
    output: str,
    shard_size: int | str,
    if_exists: str,
    progress: ProgressLike,
) -> Manifest:
    """Copy a bundle whose checksums hold; all that vec2emb.json says of the table stays, all of its files is new.

    Returns:
        The new manifest.

    Raises:
        InputError: there is no bundle, or it is damaged.
        OutputError: the target exists or cannot be written.
        UsageError: the size or the output is none that shards can have.
    """
    size, target = parse_size("shard_size", shard_size), target_of(output)
    check_folder(target, size)
    Bundle(bundle)  # what is no bundle is refused before anything is touched
    with target.publication(if_exists) as publication:
        opened, vocab = open_bundle(bundle)
        opened.check_sum()
        manifest = opened.manifest
        with (
            BundleWriter(publication, manifest.dim, manifest.dtype, stored=True, shard_size=size) as writer,
            progress_of(progress, os.path.basename(output)) as show,
        ):
            done = 0
            for row, stored in opened.pieces():
                writer.rows.write(row, stored)
                done += len(stored)
                if show is not None:
                    show(done, opened.tensor.stop)
            writer.write_vocabulary([bytes(vocab.blob)])
            written = writer.finish(manifest, stored_positions(opened))
            if any(writer.rows.read(row, len(stored) // opened.width) != stored for row, stored in opened.pieces()):
                raise OutputError("export-misread", "what was written reads otherwise", path=output)
        publication.publish()
    return written
