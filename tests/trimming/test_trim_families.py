"""The table of families against the classes of transformers: tensors over the vocabulary, and default ids."""

from __future__ import annotations

from typing import Any

import pytest

from vec2emb.trimming.families import DEFAULT_IDS, FAMILIES, _axis

ROWS = 997  # a prime that no other size of a small model is
SMALL = {
    "vocab_size": ROWS, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
    "num_key_value_heads": 1, "head_dim": 8, "d_model": 16, "n_embd": 16, "n_layer": 1, "n_head": 2, "n_heads": 2,
    "dim": 16, "hidden_dim": 16, "n_layers": 1, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2, "d_inner": 16,
    "num_decoder_layers": 1, "d_head": 8, "embedding_size": 16, "encoder_layers": 1, "decoder_layers": 1,
    "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "encoder_attention_heads": 2, "decoder_attention_heads": 2,
    "ffn_dim": 16, "word_embed_proj_dim": 16, "max_position_embeddings": 40, "n_positions": 40,
    "attention_types": [[["global"], 1]],
    "attention_window": [4], "num_local_experts": 2, "num_experts": 2, "rotary_dim": 4, "n_ctx": 40, "pad_token_id": 1,
    "bos_token_id": 0, "eos_token_id": 2, "languages": ["en_XX"], "default_language": "en_XX", "bottleneck_size": 8,
    "intra_bottleneck_size": 16, "true_hidden_size": 16, "num_sparse_encoder_layers": 0, "num_sparse_decoder_layers": 0,
}  # fmt: skip
HEADS = ("ForMaskedLM", "ForPreTraining", "ForCausalLM", "LMHeadModel", "ForConditionalGeneration", "MTModel", "Model")
# Read by transformers from code that needs more than a configuration.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def classes(family: str) -> tuple[Any, list[Any]]:
    """The configuration of a family, and the classes of its models that have words."""
    transformers = pytest.importorskip("transformers")
    from transformers.models.auto import configuration_auto, modeling_auto

    config = configuration_auto.CONFIG_MAPPING[family]
    names: set[str] = set()
    for mapping in ("MODEL", "MODEL_FOR_PRETRAINING", "MODEL_FOR_MASKED_LM", "MODEL_FOR_CAUSAL_LM",
                    "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM"):  # fmt: skip
        found = getattr(modeling_auto, f"{mapping}_MAPPING_NAMES").get(family, ())
        names |= {found} if isinstance(found, str) else set(found)
    return config, [getattr(transformers, name) for name in sorted(names)]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_listed_tensors_are_those_over_the_vocabulary(family: str) -> None:
    import inspect

    config, models = classes(family)
    assert models
    known = {*inspect.signature(config.__init__).parameters, *config.attribute_map}
    settings = {name: value for name, value in SMALL.items() if name in known}
    if family == "clip":
        inner = {**SMALL, "projection_dim": 8}
        settings = {"text_config": inner, "vision_config": {**inner, "image_size": 32, "patch_size": 16}}
    for tied in (True, False):
        for kind in models:
            made = kind(config(**{**settings, "tie_word_embeddings": tied}))
            over = {
                (key, axis)
                for key, value in made.state_dict().items()
                for axis, n in enumerate(value.shape)
                if n == ROWS
            }
            listed = {(key, axis) for key in made.state_dict() if (axis := _axis(key, FAMILIES[family])) is not None}
            assert over == listed, kind.__name__
            assert over


def test_the_ids_that_configurations_leave_unsaid() -> None:
    pytest.importorskip("transformers")
    found = {}
    for family in FAMILIES:
        content = classes(family)[0]().to_dict()
        found[family] = {name: id for name, id in content.items() if name.endswith("_token_id") and type(id) is int}
    assert {family: ids for family, ids in found.items() if ids} == DEFAULT_IDS
