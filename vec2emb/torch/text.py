"""Words plus positions: what goes into the first layer of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from ..errors import UsageError
from ..positions.key_styles import STYLES
from .partly_frozen import PartlyFrozenEmbedding

_PLAIN = STYLES["plain"]


class PositionTable(nn.Module):
    """The rows of a position table that belong to texts.

    Without a padding row, token t of a text has row `offset + t`. With one, positions are counted as RoBERTa and
    fairseq do it: padding takes that row and is not counted.

    Args:
        weight: float[P, D]; it is copied.
        offset: rows in front of the first position.
        padding_idx: the row of padding tokens, or None.
        trains: whether the table is a parameter or a buffer.
    """

    weight: Tensor

    def __init__(
        self, weight: Tensor, *, offset: int = 0, padding_idx: int | None = None, trains: bool = False
    ) -> None:
        super().__init__()
        self.offset, self.padding_idx = offset, padding_idx
        self.num, self.dim = len(weight) - offset, weight.shape[1]
        if trains:
            self.weight = nn.Parameter(weight.detach().clone())
        else:
            self.register_buffer("weight", weight.detach().clone())

    @property
    def is_parameter(self) -> bool:
        """Whether the table is a parameter; else it is a buffer."""
        return "weight" not in self._buffers

    @property
    def trains(self) -> bool:
        """Whether the table is a parameter that requires a gradient."""
        return self.weight.requires_grad

    def forward(self, ids: Tensor, padding_token: int | None) -> Tensor:
        """Rows for ids int64[.., T], in which `padding_token` is padding: float[.., T, D], or [T, D] for all alike.

        Raises:
            UsageError: a text is longer than the table.
        """
        length = ids.shape[-1]
        if self.padding_idx is None or padding_token is None:
            if length > self.num:
                raise self._too_long(length)
            return self.weight[self.offset : self.offset + length]
        real = ids != padding_token
        count = real.cumsum(-1)
        if length > self.num and bool((count > self.num).any()):  # padding may reach beyond the table
            raise self._too_long(int(count.max()))
        rows = torch.where(real, count + (self.offset - 1), self.padding_idx)
        return functional.embedding(rows, self.weight, padding_idx=self.padding_idx)

    def _too_long(self, length: int) -> UsageError:
        return UsageError(
            "text-too-long", "a text is longer than the position table", expected=f"at most {self.num} tokens",
            found=str(length), hint=f"cut it with Collate(vocab, max_length={self.num}), or resize the table: "
            "vec2emb positions resize",
        )  # fmt: skip

    def extra_repr(self) -> str:
        """What `repr` shows beside the name."""
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        kind = "parameter" if self.is_parameter else "buffer"
        return f"{self.num}, {self.dim}, offset={self.offset}{padding}, {kind}"


class TextEmbedding(nn.Module):
    """Words, times a scale, plus positions; then LayerNorm and dropout, if asked for.

    The state dict has the keys of the parts: those of `words` and `positions.weight`, and `norm.weight` and `norm.bias`
    with a LayerNorm. `load_state_dict` also takes the keys of the bundle's file; `full_state_dict` gives them. Where
    the file has the one position table under two keys, one of them is enough.

    Args:
        words: the word table.
        positions: the position table, or None.
        scale: what words are multiplied by.
        word_key, position_keys: keys of the bundle's file. The one position table has each of its keys there.
        layer_norm: add `norm`, a LayerNorm.
        eps: its epsilon; 1e-12 in BERT, 1e-5 in RoBERTa and BART.
        dropout: probability of the dropout behind it.
    """

    def __init__(
        self,
        words: nn.Embedding | PartlyFrozenEmbedding,
        positions: PositionTable | None = None,
        *,
        scale: float = 1.0,
        word_key: str | None = None,
        position_keys: Sequence[str] = _PLAIN.position_keys,
        layer_norm: bool = False,
        eps: float = 1e-12,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.words, self.positions, self.scale = words, positions, scale
        self.norm = nn.LayerNorm(words.embedding_dim, eps=eps) if layer_norm else None
        self.dropout = nn.Dropout(dropout) if dropout else None
        word_key = word_key or (_PLAIN.alone_key if positions is None else _PLAIN.word_key)
        self.keys: dict[str, tuple[str, ...]] = {"words.weight": (word_key,)}
        if positions is not None:
            self.keys["positions.weight"] = tuple(position_keys)

    def forward(self, ids: Tensor) -> Tensor:
        """What the first layer takes: int64[B, T] -> float[B, T, D].

        Raises:
            UsageError: a text is longer than the position table.
        """
        if is_quantized(self.words):
            raise quantized_words()
        result: Tensor = self.words(ids)
        if self.scale != 1.0:
            result = result * self.scale
        if self.positions is not None:
            result = result + self.positions(ids, self.words.padding_idx)
        if self.norm is not None:
            result = self.norm(result)
        return result if self.dropout is None else self.dropout(result)

    def extra_repr(self) -> str:
        """What `repr` shows beside the parts."""
        return f"scale={self.scale:.6g}"

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *arguments: Any) -> None:
        """Take the keys of the file for those of the parts."""
        for own, names in self.keys.items():
            given = {prefix + name: state_dict.pop(prefix + name) for name in names if prefix + name in state_dict}
            tables = list(given.values())
            if not all(torch.equal(tables[0], table) for table in tables[1:]):
                arguments[-1].append(f"{' and '.join(given)} differ, and this module has one table for both")
            if tables:
                state_dict.setdefault(prefix + own, tables[0])
        super()._load_from_state_dict(state_dict, prefix, *arguments)


def is_quantized(module: nn.Module) -> bool:
    """Whether a module is one that torch put in the place of another to quantize it."""
    return type(module).__module__.startswith("torch.ao.")


def quantized_words() -> UsageError:
    """The error that a quantized word table cannot be used."""
    return UsageError(
        "quantized-words", "the word table was quantized, which is not supported",
        hint="quantize the other layers only: quantize_dynamic(model, {torch.nn.Linear})",
    )  # fmt: skip
