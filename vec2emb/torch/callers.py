"""Calls of other libraries that cannot work with a partly frozen table, recognized by who calls.

They would end in errors that do not say what to do. These libraries ask no method of a table first: they read `weight`
or list its parameters. Where their functions have other names, their own errors remain.
"""

from __future__ import annotations

import sys
from types import FrameType

from torch import nn

from ..errors import UsageError

_RESIZING = ("_get_resized_embeddings", "_resize_token_embeddings")
_LISTING = ("named_modules", "_named_members", "named_parameters", "parameters", "<setcomp>")


def refuse_resizing() -> None:
    """Raise if the caller of the caller is `resize_token_embeddings` of a model of transformers."""
    if sys._getframe(2).f_code.co_name in _RESIZING:
        raise UsageError(
            "resize-partly-frozen", "a partly frozen table is not resized in place",
            hint="model.set_input_embeddings(vec2emb.torch.resize_embedding(table, num_embeddings)), then set "
            "model.config.vocab_size",
        )  # fmt: skip


def refuse_listing(frozen: nn.Parameter) -> None:
    """Raise if modules are listed to tie the table, or to put all its rows in one flat parameter."""
    frame: FrameType | None = sys._getframe(2)
    seen = set()
    while frame is not None and frame.f_code.co_name in _LISTING:
        seen.add(frame.f_code.co_name)
        frame = frame.f_back
    if frame is None or "_named_members" not in seen:
        return
    if frame.f_code.co_name == "get_expanded_tied_weights_keys":
        raise tied_by_transformers()
    if frame.f_code.co_name == "_get_orig_params":
        flat, ignored = _flattening(frame), frame.f_locals.get("ignored_params", ())
        if flat and frozen not in ignored and not getattr(frozen, "_fsdp_flattened", False):
            raise UsageError(
                "fsdp-flattens", "FullyShardedDataParallel cannot put frozen and training rows in one flat parameter",
                hint="pass use_orig_params=True",
            )  # fmt: skip


def _flattening(frame: FrameType | None) -> bool:
    """Whether a frame belongs to FullyShardedDataParallel wrapping a module without use_orig_params."""
    while frame is not None and frame.f_code.co_name != "_init_param_handle_from_module":
        frame = frame.f_back
    state = None if frame is None else frame.f_locals.get("state")
    return not getattr(state, "_use_orig_params", True)


def tied_by_transformers() -> UsageError:
    """The error that says how to tie a partly frozen table in a model of transformers."""
    return UsageError(
        "tied-partly-frozen", "a partly frozen table has no single parameter that another layer could share",
        hint="model.set_output_embeddings(vec2emb.torch.tie_head(table, bias=model.get_output_embeddings().bias)), "
        "then model.config.tie_word_embeddings = False",
    )  # fmt: skip
