"""What a bundle records for a module, and what a module records for the bundle it is saved to.

All that `vec2emb.torch` knows of a bundle's manifest is in this file.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ..bundle.manifest import Manifest, PositionRecord, Scale, Training
from ..bundle.ranges import NO_ROWS, Ranges
from ..bundle.table import Table
from ..bundle.training import TrainRows
from ..words.vocabulary import Lookup, Vocabulary

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
    manifest, positions = table.manifest, None
    if manifest is None:
        return BundleFacts(len(table), table.padding_idx, "all", NO_ROWS, None, 1.0, None)
    if manifest.positions is not None:
        recorded = manifest.positions
        positions = PositionFacts(recorded.offset, recorded.padding_idx, recorded.trains, manifest.position_keys)
    training = manifest.training
    return BundleFacts(
        len(table), table.padding_idx, training.kind, training.rows or NO_ROWS, positions, manifest.factor, manifest.key
    )


def planned_ranges(table: Table, plan: TrainRows) -> Ranges | None:
    """Return the rows that a plan trains; None for all or none of them.

    Raises:
        UsageError, VocabularyError: the plan names a row or a word that the table lacks.
    """
    new = NO_ROWS if table.manifest is None else table.manifest.provenance.new_rows()
    vocab = table.vocab if plan.words is not None else None

    def row_of(word: str) -> int | None:  # whatever lookup the vocabulary has
        return vocab.get(word) if vocab is not None and word in vocab.tokens else None

    return plan.ranges(len(table), table.padding_idx, new, row_of)


class Origin:
    """The bundle that a module came from, as far as saving the module needs it.

    It holds no path: copied or unpickled where the bundle is not, a module is still complete.
    """

    def __init__(self, vocab: Vocabulary, manifest: Manifest | None, positions: NDArray[np.float32] | None) -> None:
        self.vocab, self.manifest, self.positions = vocab, manifest, positions

    @classmethod
    def of(cls, table: Table) -> Origin:
        """What there is to remember of a table."""
        positions = table.positions
        return cls(table.vocab, table.manifest, None if positions is None else positions.copy())

    def __deepcopy__(self, memo: dict[int, Any]) -> Origin:
        return self  # nothing changes it

    def __reduce__(self) -> tuple[Any, ...]:
        vocab = self.vocab
        held = bytes(vocab.blob), vocab.padding_idx, vocab.unk_idx, vocab.lookup
        return _origin, (*held, self.manifest, self.positions)


def _origin(
    blob: bytes, padding_idx: int | None, unk_idx: int | None, lookup: Lookup, manifest: Manifest | None, positions: Any
) -> Origin:
    vocab = Vocabulary.from_blob(blob, padding_idx=padding_idx, unk_idx=unk_idx, lookup=lookup)
    return Origin(vocab, manifest, positions)


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
    rows, dtype = Table.of_arrays(origin.vocab, _plain(trained.words)), _stored_dtype(trained.words)
    known = rows.described(dtype) if origin.manifest is None else origin.manifest
    training = Training("rows", trained.ranges) if trained.train is None else Training(trained.train)
    if known.training.rows == training.rows and training.rows is not None:
        training = known.training  # the plan keeps its name if its rows are still the same
    padding, before = known.padding_idx, known.provenance
    every = Ranges((0, before.size) if before.size else ())
    every = every if padding is None else every - Ranges((padding, padding + 1))
    manifest = known._replace(dtype=dtype, training=training, provenance=before._replace(trained=every))
    positions = origin.positions
    if trained.text is not None:
        key, scale, table = trained.text
        recorded, positions = None, None
        if table is not None:
            recorded, positions = _positions(table, known.positions), _plain(table.weight).numpy()
        factor = known.scale if scale == known.factor else Scale("factor", scale)
        manifest = manifest._replace(key=key, scale=factor, positions=recorded)
    return Table(origin.vocab, rows.vectors, manifest, positions)


def _positions(table: TrainedPositions, recorded: PositionRecord | None) -> PositionRecord:
    """What is recorded of a position table; one that no bundle records is a learned one."""
    facts = table.facts
    if recorded is None:
        return PositionRecord(facts.keys, "learned", table.num, facts.offset, facts.padding_idx, facts.trains)
    return recorded._replace(**facts._asdict(), num=table.num)


def _stored_dtype(weight: Tensor) -> str:
    name = str(weight.dtype).removeprefix("torch.")
    return name if name in ("float16", "bfloat16") else "float32"


def _plain(weight: Tensor) -> Tensor:
    return weight.detach().cpu().float()
