"""Key styles against the state dicts of real models."""

from __future__ import annotations

from typing import Any

import pytest
from tiny_models import VOCABULARY, WIDTH, tiny

from vec2emb.errors import UsageError
from vec2emb.positions.key_styles import (
    KNOWN_POSITIONS,
    PADDED_TYPES,
    PRESETS,
    STYLES,
    is_position_ids,
    is_position_table,
    known_suffix,
)

MODELS = {
    "bert": ("BertModel", "BertForMaskedLM", 512),
    "roberta": ("RobertaModel", "RobertaForMaskedLM", 512),
    "gpt2": ("GPT2Model", "GPT2LMHeadModel", 1024),
    "bart": ("BartModel", "BartForConditionalGeneration", 1024),
    "clip": ("CLIPModel", None, 77),
}


def test_the_styles_are_those_of_the_documentation() -> None:
    assert list(STYLES) == ["plain", "bert", "roberta", "gpt2", "bart", "fairseq", "clip"]
    plain = STYLES["plain"]
    assert plain.alone_key == "weight"
    assert (plain.word_key, plain.position_keys) == ("word_embeddings.weight", ("position_embeddings.weight",))


@pytest.mark.parametrize("name", MODELS)
def test_the_keys_are_in_a_real_model(name: str) -> None:
    """With as many rows as the style counts, and nothing else that looks like a table of positions."""
    style, (bare, _, positions) = STYLES[name], MODELS[name]
    model = tiny(bare)
    shapes = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    config: Any = getattr(model.config, "text_config", model.config)
    assert shapes[style.word_key] == shapes[style.alone_key] == (VOCABULARY, WIDTH)
    rows = style.first_row(config.pad_token_id) + positions
    assert {key: shape for key, shape in shapes.items() if is_position_table(key)} == dict.fromkeys(
        style.position_keys, (rows, WIDTH)
    )


@pytest.mark.parametrize("name", [name for name, models in MODELS.items() if models[1]])
def test_the_tied_head_shares_the_words(name: str) -> None:
    style, (_, headed, _) = STYLES[name], MODELS[name]
    assert headed is not None
    weights = tiny(headed).state_dict()
    word = next(key for key in weights if key == style.word_key or key.endswith("." + style.word_key))
    assert style.tied_head is not None
    assert weights[style.tied_head].data_ptr() == weights[word].data_ptr()


@pytest.mark.parametrize("name", MODELS)
def test_a_file_of_this_style_loads_without_a_word(name: str) -> None:
    """No unexpected key; the only missing ones are of the rest of the model, or names of the same memory."""
    torch = pytest.importorskip("torch")
    style, (bare, _, positions) = STYLES[name], MODELS[name]
    model = tiny(bare)
    config: Any = getattr(model.config, "text_config", model.config)
    rows = style.first_row(config.pad_token_id) + positions
    state = {style.word_key: torch.ones(VOCABULARY, WIDTH)}
    state |= {key: torch.full((rows, WIDTH), 2.0) for key in style.position_keys}
    result = model.load_state_dict(state, strict=False)
    assert not result.unexpected_keys
    loaded = model.state_dict()
    assert all((loaded[key] == state[key]).all() for key in state)
    assert not [key for key in result.missing_keys if is_position_table(key)]
    words = [key for key in result.missing_keys if "embed_tokens" in key or "word_embeddings" in key]
    assert all(loaded[key].data_ptr() == loaded[style.word_key].data_ptr() for key in words)


def test_first_rows() -> None:
    assert [STYLES[name].first_row(1) for name in STYLES] == [0, 0, 2, 0, 2, 2, 0]
    assert [STYLES[name].first_row(0) for name in STYLES] == [0, 0, 1, 0, 2, 1, 0]
    assert STYLES["bart"].first_row(None) == 2
    with pytest.raises(UsageError, match="in this key style the first position follows the padding row") as caught:
        STYLES["roberta"].first_row(None)
    assert caught.value.code == "padding-needed"


@pytest.mark.parametrize(
    ("key", "suffix"),
    [
        ("bert.embeddings.position_embeddings.weight", "position_embeddings.weight"),
        ("position_embeddings.weight", "position_embeddings.weight"),
        ("transformer.wpe.weight", "wpe.weight"),
        ("model.decoder.embed_positions.weight", "embed_positions.weight"),
        ("text_model.embeddings.position_embedding.weight", "position_embedding.weight"),
        ("positional_embedding", "positional_embedding"),
        ("deberta.encoder.rel_position_embeddings.weight", None),
        ("decoder.swpe.weight", None),
        ("embeddings.word_embeddings.weight", None),
        ("embeddings.position_ids", None),
    ],
)
def test_names_of_position_tables(key: str, suffix: str | None) -> None:
    assert known_suffix(key) == suffix
    assert is_position_table(key) == (suffix is not None)


def test_other_towers_are_no_text() -> None:
    assert not is_position_table("vision_model.embeddings.position_embedding.weight")
    assert not is_position_table("visual.positional_embedding")


def test_the_integer_buffer_is_no_table() -> None:
    assert is_position_ids("bert.embeddings.position_ids")
    assert is_position_ids("position_ids")
    assert not is_position_ids("embeddings.position_ids.weight")


def test_all_styles_are_known_to_resizing() -> None:
    for name, style in STYLES.items():
        for key in style.position_keys:
            suffix = known_suffix(key)
            assert suffix is not None, name
            assert KNOWN_POSITIONS[suffix] in (style.offset, 0 if name == "roberta" else 2)


def test_padded_types_are_models_that_exist() -> None:
    """Every one of them computes its positions as RoBERTa does: from the padding on."""
    import importlib
    import inspect

    auto = pytest.importorskip("transformers.models.auto.configuration_auto")
    for kind in sorted(PADDED_TYPES):
        folder = auto.model_type_to_module_name(kind.replace("_text_model", "")).replace("-", "_")
        name = "data2vec_text" if kind == "data2vec-text" else folder
        source = inspect.getsource(importlib.import_module(f"transformers.models.{folder}.modeling_{name}"))
        assert "padding_idx + 1" in source, kind


def test_presets_are_frozen() -> None:
    with pytest.raises(TypeError):
        PRESETS["mine"] = PRESETS["vaswani"]  # type: ignore[index]
