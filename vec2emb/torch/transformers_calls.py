"""Methods of transformers that change tables in place, recognized where they ask a partly frozen one.

They would end in errors that do not say what to do, or drop what trains. transformers asks no method of a table first,
so the only sign is who calls.
"""

from __future__ import annotations

import sys
from types import FrameType

from ..errors import UsageError

_RESIZING = ("_get_resized_embeddings", "_resize_token_embeddings")
_LISTING = ("named_modules", "_named_members", "named_parameters", "<setcomp>")


def refuse_resizing() -> None:
    """Raise if the caller of the caller is `resize_token_embeddings` of a model."""
    if sys._getframe(2).f_code.co_name in _RESIZING:
        raise UsageError(
            "resize-partly-frozen", "a partly frozen table is not resized in place",
            hint="model.set_input_embeddings(vec2emb.torch.resize_embedding(table, num_embeddings)), then set "
            "model.config.vocab_size",
        )  # fmt: skip


def refuse_tying() -> None:
    """Raise if modules are listed because `tie_weights` of a model looks for the parameter to share."""
    frame: FrameType | None = sys._getframe(2)
    seen = set()
    while frame is not None and frame.f_code.co_name in _LISTING:
        seen.add(frame.f_code.co_name)
        frame = frame.f_back
    if frame is not None and frame.f_code.co_name == "get_expanded_tied_weights_keys" and "_named_members" in seen:
        raise tied_by_transformers()


def tied_by_transformers() -> UsageError:
    """The error that says how to tie a partly frozen table in a model of transformers."""
    return UsageError(
        "tied-partly-frozen", "a partly frozen table has no single parameter that another layer could share",
        hint="model.set_output_embeddings(vec2emb.torch.tie_head(table, bias=model.get_output_embeddings().bias)), "
        "then model.config.tie_word_embeddings = False",
    )  # fmt: skip
