"""A bundle written again with its table cut into shards, or cut otherwise."""

from __future__ import annotations

import os

from ..bundle.manifest import Manifest
from ..bundle.rewriting import rewrite_bundle, unchanged
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
    size = parse_size("shard_size", shard_size)
    with progress_of(progress, os.path.basename(output)) as show:
        return rewrite_bundle(
            bundle, output, unchanged, if_exists=if_exists, shard_size=size, read_back=True, show=show
        ).manifest
