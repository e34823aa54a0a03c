"""What a bundle records, carried over to a table of its rows under other ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from .manifest import Manifest, Training
from .provenance import Generated, Provenance, SpecialToken, Spellings
from .ranges import Ranges

RowMap = Callable[[int], Sequence[int]]
"""The rows of the new table that have the vector of a row of the old one."""


def derive_manifest(new: Manifest, old: Manifest, rows: RowMap, *, keep_training: bool) -> Manifest:
    """Add what the bundle `old` records to the record of a table that was made of its rows.

    Carried over are provenance, steps, source (as the origin of the new one), lookup and tokenizer.

    Args:
        new: the record of the table, as of any source.
        rows: row of `old` -> rows of `new`.
        keep_training: also carry over which rows train.
    """
    provenance = derive_provenance(new.provenance, old.provenance, rows)
    source = new.source
    if source is not None:
        rounded = (old.dtype,) if old.dtype != "float32" else ()
        source = source._replace(treated=(*rounded, *source.treated), origin=old.source)
    training = new.training
    if keep_training:
        training = _training(old.training, provenance, rows)
    elif training.kind == "new":
        training = Training("new", provenance.new_rows())
    return new._replace(
        provenance=provenance,
        source=source,
        training=training,
        lookup=old.lookup if new.lookup == "exact" else new.lookup,
        tokenizer=new.tokenizer or old.tokenizer,
        earlier_steps=old.history,
    )


def _training(old: Training, provenance: Provenance, rows: RowMap) -> Training:
    if old.kind == "new":
        return Training("new", provenance.new_rows())
    if old.rows is None:
        return old
    padding = provenance.token_of_role("padding")
    placed = _placed(old.rows, rows)
    return Training("rows", placed if padding is None else placed - Ranges((padding, padding + 1)))


def derive_provenance(new: Provenance, old: Provenance, rows: RowMap) -> Provenance:
    """Where each row of `new` comes from, when its rows of the file are rows of `old`.

    Args:
        new: what is known without `old`.
        rows: row of `old` -> rows of `new`; a row that `new` set itself is none of them.
    """
    generated = [one._replace(rows=_placed(one.rows, rows)) for one in old.generated]
    spellings = {row: spelling for at, spelling in old.spellings.pairs() for row in rows(at)}
    given = _placed(old.given, rows)
    specials, carried = _specials(new, old, rows, generated, spellings)
    named = Ranges.of_rows(sorted(special.id for special in specials))
    generated = [one._replace(rows=one.rows - named) for one in generated]
    own = new.spellings.rows  # of these, the record says more than that of the row they copy
    spelled = [(row, text) for row, text in spellings.items() if row not in named and row not in own]
    recorded = Ranges.of_pairs(pair for one in generated for pair in one.rows) | given
    recorded |= Ranges.of_rows(sorted(row for row, _ in spelled)) | carried
    added = tuple((step, _placed(those, rows)) for step, those in old.added)
    trained = _placed(old.trained, rows)
    recorded |= trained | Ranges.of_pairs(pair for _, those in added for pair in those)
    return new._replace(
        specials=specials,
        generated=(*new.generated, *(one for one in generated if one.rows)),
        spellings=Spellings.of_pairs([*new.spellings.pairs(), *spelled]),
        given=given - named,
        added=tuple((step, those) for step, those in added if those),
        inherited=(recorded | _placed(old.inherited, rows)) - own,
        trained=trained,
    )


def _specials(
    new: Provenance, old: Provenance, rows: RowMap, generated: Iterable[Generated], spellings: dict[int, str]
) -> tuple[tuple[SpecialToken, ...], Ranges]:
    """The special tokens of the new table, those of the old one among them; and the rows whose record is the old one's.

    A padding or unknown token of the old table that has another role in the new one is a special token there.
    """
    before = {row: special for special in old.specials for row in rows(special.id)}
    specials, carried = [], []
    for special in new.specials:
        init, seed = special.init, special.seed
        if init == "file":
            made = next((one for one in generated if special.id in one.rows), None)
            if special.id in before:
                init, seed = before[special.id].init, before[special.id].seed
            elif made is not None:
                init, seed = made.init, made.seed
            elif special.id in spellings:
                init = f"token:{spellings[special.id]}"
            if init != "file":
                carried.append(special.id)
        specials.append(special._replace(init=init, seed=seed))
    taken = {special.id for special in specials} | set(new.spellings.rows.rows())
    for row, special in sorted(before.items()):
        if row not in taken:
            specials.append(special._replace(id=row, role="special"))
            carried.append(row)
    return tuple(specials), Ranges.of_rows(sorted(carried))


def _placed(old: Ranges, rows: RowMap) -> Ranges:
    return Ranges.of_rows(sorted({new for row in old.rows() for new in rows(row)}))
