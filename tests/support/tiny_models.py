"""Real models of `transformers`, made from configurations so small that they cost nothing."""

from __future__ import annotations

from typing import Any

import pytest

VOCABULARY = 50
WIDTH = 16

_BERT = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": WIDTH,
}
_BART = {
    "vocab_size": VOCABULARY,
    "d_model": WIDTH,
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 1),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), WIDTH),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 2),
}
_GPT2 = {"vocab_size": VOCABULARY, "n_embd": WIDTH, "n_layer": 1, "n_head": 2, "bos_token_id": 0, "eos_token_id": 1}
_OPT = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "word_embed_proj_dim": WIDTH,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "ffn_dim": WIDTH,
}
_SPECIALS = {"bos_token_id": 0, "eos_token_id": 2}
_TEXT = {**_BERT, **_SPECIALS}
_VISION = {key: value for key, value in _BERT.items() if key != "vocab_size"} | {"image_size": 32, "patch_size": 16}


def tiny(name: str, **settings: Any) -> Any:
    """A model with random weights, by the name of its class: `tiny("BertModel", max_position_embeddings=64)`."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    family = name.removesuffix("Model").removesuffix("ForMaskedLM").removesuffix("ForConditionalGeneration")
    family = family.removesuffix("LMHead").removesuffix("ForCausalLM")
    basics: dict[str, Any] = {"GPT2": _GPT2, "Bart": _BART, "Pegasus": _BART, "OPT": _OPT, "CLIPText": _TEXT}.get(
        family, _BERT
    )
    if family == "Roberta":
        basics = {**basics, "max_position_embeddings": 514}
    if family == "CLIP":
        basics = {"text_config": _TEXT, "vision_config": _VISION, "projection_dim": 8}
    if family == "LED":
        basics = {**_BART, "attention_window": [4]}
    torch.manual_seed(0)
    return getattr(transformers, name)(getattr(transformers, f"{family}Config")(**{**basics, **settings})).eval()
