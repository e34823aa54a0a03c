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
from .partly_frozen import PartlyFrozenEmbedding

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

    def __init__(
        self,
        vocab: Vocabulary,
        manifest: Manifest | None,
        positions: NDArray[np.float32] | None,
        trainable: Ranges | None,
    ) -> None:
        self.vocab, self.manifest, self.positions, self.trainable = vocab, manifest, positions, trainable

    @classmethod
    def of(cls, table: Table, trainable: Ranges | None) -> Origin:
        """What there is to remember of a table; `trainable` are the rows that can train, None if that is not known."""
        positions = table.positions
        return cls(table.vocab, table.manifest, None if positions is None else positions.copy(), trainable)

    def __deepcopy__(self, memo: dict[int, Any]) -> Origin:
        return self  # nothing changes it

    def __reduce__(self) -> tuple[Any, ...]:
        vocab = self.vocab
        held = bytes(vocab.blob), vocab.padding_idx, vocab.unk_idx, vocab.lookup
        return _origin, (*held, self.manifest, self.positions, self.trainable)


def _origin(
    blob: bytes,
    padding_idx: int | None,
    unk_idx: int | None,
    lookup: Lookup,
    manifest: Manifest | None,
    positions: Any,
    trainable: Ranges | None,
) -> Origin:
    vocab = Vocabulary.from_blob(blob, padding_idx=padding_idx, unk_idx=unk_idx, lookup=lookup)
    return Origin(vocab, manifest, positions, trainable)


def remember(module: M, table: Table, words: nn.Module) -> M:
    """Note in a module which table it came from, and which rows of its word table an optimizer can change."""
    if not any(parameter.requires_grad for parameter in words.parameters()):
        trainable = NO_ROWS
    elif isinstance(words, PartlyFrozenEmbedding):
        trainable = Ranges(words.plan.bounds)
    else:
        trainable = _every(len(table))
    vars(module)["origin"] = Origin.of(table, trainable)  # past nn.Module, which would look at it
    return module


def _every(count: int) -> Ranges:
    return Ranges((0, count) if count else ())


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
    now = {"all": _every(before.size), "none": NO_ROWS}.get(trained.train or "", trained.ranges)
    changed = _every(before.size) if origin.trainable is None else origin.trainable | now
    if padding is not None:
        changed -= Ranges((padding, padding + 1))
    provenance = before._replace(trained=before.trained | changed)
    manifest = known._replace(dtype=dtype, training=training, provenance=provenance)
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
