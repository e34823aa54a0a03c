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
        self.num = len(weight) - offset
        if trains:
            self.weight = nn.Parameter(weight.detach().clone())
        else:
            self.register_buffer("weight", weight.detach().clone())

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
        kind = "parameter" if isinstance(self.weight, nn.Parameter) else "buffer"
        return f"{self.num}, {self.weight.shape[1]}, offset={self.offset}{padding}, {kind}"


class TextEmbedding(nn.Module):
    """Words, times a scale, plus positions; then LayerNorm and dropout, if asked for.

    The state dict has the keys of the bundle's file, word table and position tables, and `norm.weight` and `norm.bias`
    with a LayerNorm.

    Args:
        words: the word table.
        positions: the position table, or None.
        scale: what words are multiplied by.
        word_key, position_keys: keys of the state dict. The one position table stands under each of its keys.
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

    def state_dict(self, *args: Any, **options: Any) -> Any:
        """As ever, under the keys of the file."""
        state = super().state_dict(*args, **options)
        prefix = options.get("prefix", "")
        for own, names in self.keys.items():
            tensor = state.pop(prefix + own)
            state.update(dict.fromkeys((prefix + name for name in names), tensor))
        return state

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Hand the tensors of the file to the parts, under the names that these have."""
        given = {
            own: {prefix + name: state_dict.pop(prefix + name, None) for name in names}
            for own, names in self.keys.items()
        }
        for key in [key for key in state_dict if key.startswith((f"{prefix}words.", f"{prefix}positions."))]:
            unexpected_keys.append(key)
            del state_dict[key]
        for own, tensors in given.items():
            missing_keys += [key for key, tensor in tensors.items() if tensor is None]
            found = [tensor for tensor in tensors.values() if tensor is not None]
            if not all(torch.equal(found[0], tensor) for tensor in found[1:]):
                error_msgs.append(f"{' and '.join(tensors)} differ, and this module has one table for both")
            # Without a tensor the part keeps its own, so that it does not complain in other words.
            state_dict[prefix + own] = found[0] if found else self.get_submodule(own.split(".")[0]).weight
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
