"""What a bundle records for a module, and what a module records for the bundle it is saved to.

All that `vec2emb.torch` knows of the content of `vec2emb.json` is in this file.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ..table import Table
from ..trainrows import Ranges, TrainRows, missing_rows, new_rows
from ..vocabulary import Lookup, Vocabulary

M = TypeVar("M", bound=nn.Module)


class PositionFacts(NamedTuple):
    """A position table: its reserved rows in front, its padding row, whether it trains, its keys in the file."""

    offset: int
    padding_idx: int | None
    trains: bool
    keys: tuple[str, ...]


class BundleFacts(NamedTuple):
    """What a bundle records of its tables.

    Attributes:
        rows: V.
        train: `all`, `none`, or the name of a plan whose rows are in `ranges`.
        scale: what words are multiplied by before positions are added.
        word_key: key of the word table in the file.
    """

    rows: int
    padding_idx: int | None
    train: str
    ranges: Ranges
    positions: PositionFacts | None
    scale: float
    word_key: str | None


def facts_of(table: Table) -> BundleFacts:
    """Return what is recorded of a table; one in memory records little."""
    config = table.config
    recorded, positions = config.get("positions"), None
    if recorded is not None:
        positions = PositionFacts(
            recorded["offset"], recorded["padding_idx"], recorded["trains"], tuple(recorded["keys"])
        )
    return BundleFacts(
        len(table), table.padding_idx, config.get("train", "all"), config.get("train_rows") or [],
        positions, (config.get("scale") or {}).get("factor", 1.0), config.get("key"),
    )  # fmt: skip


def planned_ranges(table: Table, plan: TrainRows) -> Ranges | None:
    """Return the rows that a plan trains; None for all or none of them.

    Raises:
        UsageError, VocabularyError: the plan names a row or a word that the table lacks.
    """
    new = new_rows(table.config.get("specials", ()), missing_rows(table.config))
    vocab = table.vocab if plan.words is not None else None

    def row_of(word: str) -> int | None:  # whatever lookup the vocabulary has
        return vocab.get(word) if vocab is not None and word in vocab.tokens else None

    return plan.ranges(len(table), table.padding_idx, new, row_of)


class Origin:
    """The bundle that a module came from, as far as saving the module needs it.

    It holds no path: copied or unpickled where the bundle is not, a module is still complete.
    """

    def __init__(self, vocab: Vocabulary, config: dict[str, Any], positions: NDArray[np.float32] | None) -> None:
        self.vocab, self.config, self.positions = vocab, config, positions

    @classmethod
    def of(cls, table: Table) -> Origin:
        """What there is to remember of a table."""
        positions = table.positions
        return cls(table.vocab, table.config, None if positions is None else positions.copy())

    def __deepcopy__(self, memo: dict[int, Any]) -> Origin:
        return self  # nothing changes it

    def __reduce__(self) -> tuple[Any, ...]:
        vocab = self.vocab
        held = bytes(vocab.blob), vocab.padding_idx, vocab.unk_idx, vocab.lookup
        return _origin, (*held, self.config, self.positions)


def _origin(
    blob: bytes, padding_idx: int | None, unk_idx: int | None, lookup: Lookup, config: dict[str, Any], positions: Any
) -> Origin:
    vocab = Vocabulary.from_blob(blob, padding_idx=padding_idx, unk_idx=unk_idx, lookup=lookup)
    return Origin(vocab, config, positions)


def remember(module: M, table: Table) -> M:
    """Note in a module which table it came from."""
    vars(module)["origin"] = Origin.of(table)  # past nn.Module, which would look at it
    return module


class TrainedPositions(NamedTuple):
    """A position table of a module, with its values."""

    num: int
    facts: PositionFacts
    weight: Tensor


class Trained(NamedTuple):
    """What a module tells the bundle it is saved to.

    Attributes:
        train: `all` or `none`; None if `ranges` has the rows.
        words: float[V, D].
        text: None for a word table alone; else its key, its scale, and its positions, if it has any.
    """

    words: Tensor
    train: str | None
    ranges: Ranges
    text: tuple[str, float, TrainedPositions | None] | None


def trained_table(origin: Origin, trained: Trained) -> Table:
    """Return the table to save: the origin's record, with what training changed.

    Raises:
        InputError: there are not as many rows as tokens.
    """
    known = origin.config
    config = {**known, "trained": True, "dtype": _stored_dtype(trained.words)}
    if trained.train is not None:
        config |= {"train": trained.train, "train_rows": None}
    else:  # the plan keeps its name if its rows are still the same
        name = known["train"] if known.get("train_rows") == trained.ranges else "rows"
        config |= {"train": name, "train_rows": trained.ranges}
    positions = origin.positions
    if trained.text is not None:
        key, scale, table = trained.text
        config |= {"key": key, "scale": _scale(scale, known.get("scale")), "positions": None}
        positions = None
        if table is not None:
            # A table that no bundle records is a learned one.
            recorded = known.get("positions") or {"kind": "learned", "preset": None}
            now = {**table.facts._asdict(), "num": table.num, "keys": list(table.facts.keys)}
            config["positions"] = {**recorded, **now}
            positions = _plain(table.weight).numpy()
    rows = Table.of_arrays(origin.vocab, _plain(trained.words))
    return Table(origin.vocab, rows.vectors, config, positions)


def _stored_dtype(weight: Tensor) -> str:
    name = str(weight.dtype).removeprefix("torch.")
    return name if name in ("float16", "bfloat16") else "float32"


def _scale(now: float, recorded: dict[str, Any] | None) -> dict[str, Any] | None:
    same = now == (recorded or {}).get("factor", 1.0)
    return recorded if same else {"kind": "factor", "factor": now}


def _plain(weight: Tensor) -> Tensor:
    return weight.detach().cpu().float()
