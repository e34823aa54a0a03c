"""Conventions of other projects, as data: names in state dicts, rows they reserve, presets of position tables.

Nothing is computed here and nothing heavy is imported, so that a command line can list its choices from it.
"""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..errors import UsageError

KINDS = ("learned", "sinusoidal")
LAYOUTS = ("interleaved", "sin-cos", "cos-sin")
FREQUENCIES = ("paper", "t2t")
ODD = ("error", "ceil", "zero-pad")
INITS = ("normal", "trunc-normal", "sinusoidal", "zeros")
MAX_ROWS = 1 << 24  # of a position table; a larger value is almost certainly a typo
METHODS = ("truncate", "random", "repeat-last", "tile", "hierarchical", "linear", "cubic", "stretch")


class Preset(NamedTuple):
    """How a family of models lays out its sinusoids; row `padding_idx` is zero, and the rows up to it are reserved."""

    layout: str
    frequencies: str
    odd: str
    padding_idx: int | None = None


PRESETS: Mapping[str, Preset] = MappingProxyType(
    {
        "vaswani": Preset("interleaved", "paper", "error"),
        "xlm": Preset("interleaved", "paper", "ceil"),  # XLM, DistilBERT
        "marian": Preset("sin-cos", "paper", "ceil"),  # Marian, Pegasus, RoFormer
        "t2t": Preset("sin-cos", "t2t", "zero-pad"),
        # fairseq, M2M100, XGLM, Speech2Text: their dictionaries have the padding at 1.
        "fairseq": Preset("sin-cos", "t2t", "zero-pad", padding_idx=1),
        "whisper": Preset("sin-cos", "t2t", "error"),
        "musicgen": Preset("cos-sin", "t2t", "zero-pad"),
    }
)


class KeyStyle(NamedTuple):
    """What one family of models calls its tables, and how it counts the rows of the second.

    Attributes:
        word_key: the word table.
        position_keys: the position table; where a model has two of them, both start from the same rows.
        alone_key: the word table of a file without positions.
        tied_head: the output head that shares the word table, or None. It is named, never stored again.
        offset: rows in front of the first position; None means `padding_idx + 1`.
        zero_row: whether row `padding_idx` of the position table is zero.
    """

    word_key: str
    position_keys: tuple[str, ...]
    alone_key: str
    tied_head: str | None = None
    offset: int | None = 0
    zero_row: bool = False

    def first_row(self, padding_idx: int | None) -> int:
        """The row of the first position.

        Raises:
            UsageError: it follows the padding row, and there is none.
        """
        if self.offset is not None:
            return self.offset
        if padding_idx is None:
            raise UsageError(
                "padding-needed",
                "in this key style the first position follows the padding row",
                expected="a padding index",
                found="none",
                hint="keep a padding token, or choose another key style",
            )
        return padding_idx + 1


_BERT_WORDS = "embeddings.word_embeddings.weight"
_BERT_POSITIONS = ("embeddings.position_embeddings.weight",)

# Without the prefix of a model with a head (`bert.`, `transformer.`, `model.`): the bare model reads these
# as they are, and `from_pretrained` of a model with a head adds the prefix itself.
STYLES: Mapping[str, KeyStyle] = MappingProxyType(
    {
        "plain": KeyStyle("word_embeddings.weight", ("position_embeddings.weight",), "weight"),
        "bert": KeyStyle(_BERT_WORDS, _BERT_POSITIONS, _BERT_WORDS, "cls.predictions.decoder.weight"),
        "roberta": KeyStyle(
            _BERT_WORDS,
            _BERT_POSITIONS,
            _BERT_WORDS,
            "lm_head.decoder.weight",
            offset=None,
            zero_row=True,
        ),
        "gpt2": KeyStyle("wte.weight", ("wpe.weight",), "wte.weight", "lm_head.weight"),
        "bart": KeyStyle(
            "shared.weight",
            ("encoder.embed_positions.weight", "decoder.embed_positions.weight"),
            "shared.weight",
            "lm_head.weight",
            offset=2,  # always, wherever the padding is
        ),
        "fairseq": KeyStyle(
            "encoder.embed_tokens.weight",
            ("encoder.embed_positions.weight",),
            "encoder.embed_tokens.weight",
            "decoder.output_projection.weight",
            offset=None,
            zero_row=True,
        ),
        "clip": KeyStyle(
            "text_model.embeddings.token_embedding.weight",
            ("text_model.embeddings.position_embedding.weight",),
            "text_model.embeddings.token_embedding.weight",
        ),
    }
)


KNOWN_POSITIONS: Mapping[str, int] = MappingProxyType(
    {
        "position_embeddings.weight": 0,  # BERT, ALBERT, ELECTRA, DistilBERT, XLM; RoBERTa, where PADDED_* says so
        "wpe.weight": 0,  # GPT-2
        "positions_embed.weight": 0,  # GPT
        "embed_positions.weight": 2,  # BART, OPT, mBART; fairseq with its padding at 1
        "position_embedding.weight": 0,  # CLIP, SigLIP
        "positional_embedding": 0,  # OpenAI's CLIP
    }
)
"""How the keys of position tables end, and the rows in front where nothing else tells."""

# Tables of image patches and sound frames have the same names, but no length that may be chosen.
OTHER_TOWERS = frozenset({"vision_model", "visual", "vision_tower", "image_encoder", "audio_model", "audio_encoder"})

# In older files of transformers: an integer buffer 0, 1, 2, .. of the old length.
POSITION_IDS = "position_ids"

# Models whose first position follows the padding row, as their `model_type` has it, and as their keys begin.
PADDED_TYPES = frozenset(
    {
        "altclip_text_model",
        "bridgetower_text_model",
        "camembert",
        "clap_text_model",
        "data2vec-text",
        "esm",
        "ibert",
        "layoutlmv3",
        "lilt",
        "longformer",
        "luke",
        "markuplm",
        "mpnet",
        "roberta",
        "roberta-prelayernorm",
        "xlm-roberta",
        "xlm-roberta-xl",
        "xmod",
    }
)
PADDED_PREFIXES = frozenset({"roberta", "longformer", "mpnet", "esm", "luke", "lilt", "layoutlmv3", "markuplm"})
PADDED_DEFAULT = 1  # the padding of all of them, where a configuration leaves it out

LENGTH_FIELDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "encoder": ("max_encoder_position_embeddings", "max_source_positions"),
        "decoder": ("max_decoder_position_embeddings", "max_target_positions"),
        "": ("max_position_embeddings", "n_positions", "n_ctx"),
    }
)
"""Fields of a configuration that hold a maximum length, by the part of the key; LED and Whisper have two."""


def is_position_table(key: str) -> bool:
    """Whether a key names a table of text positions: `bert.embeddings.position_embeddings.weight` does."""
    return known_suffix(key) is not None and OTHER_TOWERS.isdisjoint(key.split("."))


def known_suffix(key: str) -> str | None:
    """The end of a key that `KNOWN_POSITIONS` knows, whole parts only."""
    return next((end for end in KNOWN_POSITIONS if key == end or key.endswith("." + end)), None)


def is_position_ids(key: str) -> bool:
    """Whether a key names the integer buffer of older transformers, which is no table."""
    return key.split(".")[-1] == POSITION_IDS
