"""Which tensors of a model family have an axis over the vocabulary, and which ids its configuration leaves unsaid.

A tensor is named by the end of its key, so that `bert.embeddings.word_embeddings.weight` and
`embeddings.word_embeddings.weight` are one. Heads that are tied to the embedding are absent from files. The names are
those of the classes of transformers; a test builds a model of each family and compares.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..editing.checkpoint_files import Checkpoint
from ..errors import InputError, shown
from ..typed import ModelSettings

Axes = Mapping[str, int]
"""The end of a key, and which axis of its tensor is over the vocabulary."""


def _rows(*names: str) -> dict[str, int]:
    return dict.fromkeys(names, 0)


def _ids(families: tuple[str, ...], **ids: int) -> dict[str, dict[str, int]]:
    return {family: {f"{name}_token_id": id for name, id in ids.items()} for family in families}


_WORDS = "embeddings.word_embeddings.weight"
_BERT = _rows(
    _WORDS, "cls.predictions.decoder.weight", "cls.predictions.decoder.bias", "cls.predictions.bias"
)  # fmt: skip
_ROBERTA = _rows(_WORDS, "lm_head.decoder.weight", "lm_head.decoder.bias", "lm_head.bias")
_GPT2 = _rows("wte.weight", "lm_head.weight")
_GPTJ = {**_GPT2, "lm_head.bias": 0}
_LLAMA = _rows("embed_tokens.weight", "lm_head.weight")
_T5 = _rows("shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight")
_BART = {**_T5, "final_logits_bias": 1}
_CLIP = _rows("embeddings.token_embedding.weight")

_LIKE_ROBERTA = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "roberta-prelayernorm", "mpnet", "xmod")

FAMILIES: Mapping[str, Axes] = {
    **dict.fromkeys(("bert", "ernie", "layoutlm"), _BERT),
    **dict.fromkeys(_LIKE_ROBERTA, _ROBERTA),
    "distilbert": _rows(_WORDS, "vocab_projector.weight", "vocab_projector.bias"),
    "electra": _rows(_WORDS, "generator_lm_head.weight", "generator_lm_head.bias"),
    "albert": _rows(_WORDS, "predictions.decoder.weight", "predictions.decoder.bias", "predictions.bias"),
    "deberta": {**_BERT, **_rows("lm_predictions.lm_head.bias")},
    "deberta-v2": {**_BERT, **_rows("lm_predictions.lm_head.bias")},
    "mobilebert": {**_BERT, "cls.predictions.dense.weight": 1},
    "modernbert": _rows("embeddings.tok_embeddings.weight", "decoder.weight", "decoder.bias"),
    **dict.fromkeys(("gpt2", "gpt_neo", "gpt_bigcode"), _GPT2),
    **dict.fromkeys(("gptj", "codegen"), _GPTJ),
    "gpt_neox": _rows("embed_in.weight", "embed_out.weight", "lm_head.weight"),
    **dict.fromkeys(("bloom", "falcon"), _rows("word_embeddings.weight", "lm_head.weight")),
    **dict.fromkeys(
        (
            "llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "olmo", "olmo2",
            "granite", "smollm3", "cohere", "stablelm", "starcoder2", "opt",
        ),
        _LLAMA,
    ),
    "phi": {**_LLAMA, "lm_head.bias": 0},
    **dict.fromkeys(("t5", "mt5", "umt5", "longt5", "switch_transformers"), _T5),
    **dict.fromkeys(("bart", "mbart", "pegasus", "plbart", "blenderbot", "blenderbot-small", "led", "marian"), _BART),
    "m2m_100": _T5,
    **dict.fromkeys(("clip", "clip_text_model"), _CLIP),
    "xlnet": _rows("word_embedding.weight", "lm_loss.weight", "lm_loss.bias"),
}  # fmt: skip
"""By the `model_type` of config.json."""

DEFAULT_IDS: Mapping[str, Mapping[str, int]] = {
    **_ids(("bart",), bos=0, decoder_start=2, eos=2, forced_eos=2, pad=1),
    **_ids(("led", "m2m_100"), bos=0, decoder_start=2, eos=2, pad=1),
    **_ids(("stablelm",), bos=0, eos=0),
    **_ids(("gpt_neox",), bos=0, eos=2),
    **_ids(("mbart", "plbart"), bos=0, eos=2, forced_eos=2, pad=1),
    **_ids(_LIKE_ROBERTA, bos=0, eos=2, pad=1),
    **_ids(("blenderbot", "blenderbot-small"), bos=1, decoder_start=1, eos=2, forced_eos=2, pad=0),
    **_ids(("bloom", "llama", "mistral", "mixtral", "granite", "phi"), bos=1, eos=2),
    **_ids(("xlnet",), bos=1, eos=2, pad=5),
    **_ids(("phi3",), bos=1, eos=32000, pad=32000),
    **_ids(("gemma", "gemma2", "gemma3_text"), bos=2, eos=1, pad=0),
    **_ids(("opt",), bos=2, eos=2, pad=1),
    **_ids(("albert",), bos=2, eos=3, pad=0),
    **_ids(("cohere",), bos=5, eos=255001, pad=0),
    **_ids(("falcon",), bos=11, eos=11),
    **_ids(("clip_text_model",), bos=49406, eos=49407, pad=1),
    **_ids(("gpt2", "gpt_neo", "gpt_bigcode", "gptj", "codegen", "starcoder2"), bos=50256, eos=50256),
    **_ids(("modernbert",), bos=50281, cls=50281, eos=50282, pad=50283, sep=50282),
    **_ids(("smollm3",), bos=128000, eos=128001, pad=128004),
    **_ids(("pegasus",), decoder_start=0, eos=1, forced_eos=1, pad=0),
    **_ids(("mt5", "umt5"), decoder_start=0, eos=1, pad=0),
    **_ids(("marian",), decoder_start=58100, eos=0, forced_eos=0, pad=58100),
    **_ids(("t5", "longt5", "switch_transformers"), eos=1, pad=0),
    **_ids(("olmo", "olmo2"), eos=50279, pad=1),
    **_ids(("bert", "ernie", "layoutlm", "distilbert", "electra", "deberta", "deberta-v2", "mobilebert"), pad=0),
}
"""The ids that the classes of transformers take where config.json does not have the field."""


class Vocabulary(NamedTuple):
    """The tensors over a model's vocabulary.

    Attributes:
        size: length of their vocabulary axes.
        axes: by key, which axis that is.
    """

    size: int
    axes: dict[str, int]


def vocabulary_of(checkpoint: Checkpoint) -> Vocabulary:
    """Find the tensors over the vocabulary by the family of a checkpoint.

    Raises:
        InputError: the family is not known, it has no embedding, the tensors disagree on the size of the vocabulary, or
            another tensor has an axis of its length.
    """
    family = model_type(checkpoint.config)
    if family not in FAMILIES:
        raise InputError(
            "family-unknown",
            "the model must be of a family whose vocabulary tensors are known",
            path=checkpoint.label,
            expected=f"a model_type of {', '.join(FAMILIES)}",
            found=shown(family) if family else "no model_type in config.json",
        )
    axes: dict[str, int] = {}
    sizes: dict[int, str] = {}
    shapes = {key: checkpoint.shards[at].header.tensors[key].shape for key, at in checkpoint.names()}
    for key, shape in shapes.items():
        axis = _axis(key, FAMILIES[family])
        if axis is not None:
            if len(shape) <= axis:
                raise _no_axis(checkpoint, key, shape)
            axes[key] = axis
            sizes.setdefault(shape[axis], key)
    if not axes:
        raise InputError(
            "no-vocabulary-tensor",
            f"a model of the family {family} must have a tensor over its vocabulary",
            path=checkpoint.label,
            expected=f"a key that ends in {' or '.join(FAMILIES[family])}",
        )
    if len(sizes) > 1:
        found = ", ".join(f"{size} in {shown(key)}" for size, key in sizes.items())
        raise InputError(
            "vocabulary-sizes", "all tensors over the vocabulary must have one size", path=checkpoint.label, found=found
        )
    [size] = sizes
    for key, shape in shapes.items():
        if key not in axes and size in shape:
            raise unlisted(checkpoint.label, key, shape, size)
    return Vocabulary(size, axes)


def unlisted(path: str, key: str, shape: tuple[int, ...], size: int) -> InputError:
    """The error of a tensor that has an axis as long as the vocabulary and is not known to be over it."""
    return InputError(
        "tensor-unlisted",
        f"{shown(key)} has an axis as long as the vocabulary ({size}), and it is not known whether it is over it",
        path=path,
        found=f"shape {list(shape)}",
        hint="such a model cannot be trimmed",
    )


def model_type(config: ModelSettings) -> str:
    """Return the family that a config.json names, or an empty string."""
    family = config.get("model_type")
    return family if isinstance(family, str) else ""


def _axis(key: str, axes: Axes) -> int | None:
    return next((axis for end, axis in axes.items() if key == end or key.endswith(f".{end}")), None)


def _no_axis(checkpoint: Checkpoint, key: str, shape: tuple[int, ...]) -> InputError:
    found = f"shape {list(shape)}"
    return InputError("tensor-unlisted", f"{shown(key)} must have an axis over the vocabulary", path=checkpoint.label,
                      found=found)  # fmt: skip
