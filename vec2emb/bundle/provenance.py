"""Which rows of a bundle no file gave: padding, special tokens with an init, words that the file lacked."""

from __future__ import annotations

from .reader import Bundle
from .training import missing_rows, new_rows


def made_rows(bundle: Bundle) -> set[int]:
    """The rows that say nothing about the vectors of the bundle's source.

    What `vec2emb.save` was given counts as given, but for padding.
    """
    config, padding = bundle.config, bundle.facts.get("padding_idx")
    made = new_rows(config["specials"], missing_rows(config))
    rows = {row for start, stop in made for row in range(start, stop)}
    if padding is not None:
        rows.add(padding)
    return {row for row in rows if 0 <= row < bundle.tensor.shape[0]}


def borrowed_rows(bundle: Bundle) -> set[int]:
    """The rows that are, by intention, a copy of another spelling's."""
    fallbacks = bundle.config.get("fallbacks") or []
    return {row for row, _ in fallbacks if isinstance(row, int) and 0 <= row < bundle.tensor.shape[0]}
