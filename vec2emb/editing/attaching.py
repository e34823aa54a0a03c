"""Position tables of bundles and checkpoints that exist: attached, made longer or shorter, looked at.

A bundle is written anew and takes the place of the old one in one step. Its words are copied byte for byte, once their
checksum holds, and what was done is recorded as a step, so that the bundle can be made again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from ..bundle.manifest import REPLAY_VERSION, Manifest, PositionRecord, Replay, Scale, Step
from ..bundle.model_layout import ModelLayout, ModelPlan, ScaleLike, ScalePlan, name_tensors
from ..bundle.publication import CONFIG
from ..bundle.reader import Bundle
from ..bundle.rewriting import Contents, Source, rewrite_bundle
from ..bundle.table import rows_of_source, stored_positions
from ..conversion.recording import arguments_of
from ..errors import UsageError, Vec2embWarning
from ..io.urls import is_url, plain
from ..options.commands import ATTACH, DESCRIBE, RESIZE
from ..options.definition import check, pick
from ..positions import Facts, facts, resize
from ..positions.key_styles import STYLES
from ..positions.plan import PositionPlan
from ..typed import JsonReport
from .checkpoint_files import open_checkpoint
from .checkpoints import Resized, find_tables, load_table, reserved_rows
from .checkpoints import resize_positions as resize_checkpoint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pathish = str | os.PathLike[str]

ATTACHING = {
    "kind": "kind",
    "max_positions": "max_positions",
    "preset": "position_preset",
    "layout": "layout",
    "frequencies": "frequencies",
    "base": "base",
    "odd": "odd",
    "start": "start",
    "offset": "offset",
    "padding_idx": "padding_idx",
    "init": "init",
    "std": "std",
    "seed": "seed",
    "train_positions": "train_positions",
    "scale": "scale",
    "key_style": "key_style",
    "word_key": "word_key",
    "position_key": "position_key",
}
"""Name of an option in a replay record, version 1 -> argument of `attach_positions`."""

RESIZING = {
    "to": "to",
    "method": "method",
    "alpha": "alpha",
    "keep": "keep",
    "align_corners": "align_corners",
    "seed": "seed",
}
"""The same for `resize_positions`."""


class Attached(NamedTuple):
    """What stands in a bundle now.

    Attributes:
        keys: what the tensors are called: words first, then positions.
        positions: the position table, as the manifest records it.
        scale: what a module multiplies words by: kind and factor, or None.
        word_norm, position_norm: root mean square lengths; `norm_ratio` is the first, scaled, by the second.
    """

    path: str
    keys: tuple[str, ...]
    positions: PositionRecord
    scale: Scale | None
    word_norm: float | None
    position_norm: float | None
    norm_ratio: float | None
    warnings: tuple[Vec2embWarning, ...]

    def to_dict(self) -> JsonReport:
        """What `--json` prints."""
        return {
            **self._asdict(),
            "positions": self.positions.to_dict(),
            "scale": None if self.scale is None else self.scale._asdict(),
            "warnings": [warning.to_dict() for warning in self.warnings],
        }


class ShownTable(NamedTuple):
    """A position table that was looked at.

    Attributes:
        key: its name.
        offset, usable: rows in front of the first position, and how many follow.
        facts: what its numbers look like.
        recorded: what the bundle says of it; None for a checkpoint.
        notes: what a reader should know, one sentence each.
    """

    key: str
    offset: int
    usable: int
    facts: Facts
    recorded: PositionRecord | None
    notes: tuple[str, ...]

    def to_dict(self) -> JsonReport:
        """What `--json` prints."""
        recorded = None if self.recorded is None else self.recorded.to_dict()
        return {**self._asdict(), "facts": self.facts._asdict(), "recorded": recorded}


def attach_positions(
    bundle: str | os.PathLike[str],
    kind: str,
    max_positions: int,
    *,
    position_preset: str | None = None,
    layout: str | None = None,
    frequencies: str | None = None,
    base: float | None = None,
    odd: str | None = None,
    start: float | None = None,
    offset: int | None = None,
    padding_idx: int | None = None,
    init: str | None = None,
    std: float | None = None,
    seed: int | None = None,
    train_positions: bool | None = None,
    scale: ScaleLike | None = None,
    key_style: str | None = None,
    word_key: str | None = None,
    position_key: str | None = None,
    output: str | os.PathLike[str] | None = None,
    if_exists: str = "error",
) -> Attached:
    """Give a bundle a position table; one that it has is replaced.

    Args:
        bundle: a folder, or NAME.safetensors.
        kind: `learned` or `sinusoidal`.
        max_positions: usable positions.
        position_preset, layout, frequencies, base, odd, start: of a sinusoidal table, as in `positions.sinusoidal`.
        offset, padding_idx: as there; by default what the key style or the preset needs.
        init, std, seed: of a learned table, as in `positions.learned`.
        train_positions: by default a learned table trains and a sinusoidal one does not.
        scale: as in `convert`; by default it stays as it is.
        key_style, word_key, position_key: as in `convert`; by default the names stay as they are.
        output: where to write the result; by default it takes the place of the bundle.
        if_exists: what to do about a bundle at `output`.

    Raises:
        InputError: there is no bundle, or it is damaged.
        UsageError: there is no such table.
        OutputError: the result cannot be written.
        TryAgainError: another run is writing there.
    """
    given = check(ATTACH, locals())
    own = {"num": max_positions, "trains": train_positions, "preset": position_preset}
    plan = PositionPlan(**pick(PositionPlan._fields, {**given, **own}))

    def model_layout(opened: Bundle) -> ModelLayout:
        manifest = opened.manifest
        model = ModelPlan.parse(
            plan,
            ScalePlan.of_recorded(manifest.scale).asked if scale is None else scale,
            key_style or manifest.key_style,
            word_key or _own_key(manifest),
            position_key,
            manifest.tied_head if key_style is None else None,
        )
        model.check(manifest.dim, manifest.padding_idx is not None)
        return model.make_table(manifest.dim, manifest.padding_idx)

    asked = {
        **plan._asdict(), "scale": scale, "key_style": key_style, "word_key": word_key, "position_key": position_key
    }  # fmt: skip
    for field, argument in {"num": "max_positions", "trains": "train_positions", "preset": "position_preset"}.items():
        asked[argument] = asked.pop(field)
    recorded: dict[str, Any] = {name: asked[argument] for name, argument in ATTACHING.items()}
    options = {name: value for name, value in recorded.items() if value is not None}
    step = Step("attach-positions", Replay(REPLAY_VERSION, options))
    return _rewrite(bundle, output, if_exists, model_layout, step)


def resize_positions(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    to: int,
    method: str | None = None,
    key: str | None = None,
    offset: int | None = None,
    alpha: float = 0.4,
    keep: int = 20,
    align_corners: bool = False,
    seed: int = 0,
    if_exists: str = "error",
) -> Attached | Resized:
    """Write a bundle or a checkpoint whose position tables have `to` usable positions.

    The fixed sinusoidal table of a bundle follows its formula and takes no method. Of a checkpoint all tables with a
    known name are resized, and its configuration follows.

    Args:
        path: a bundle; or a checkpoint: a folder, a safetensors file, or the index of a sharded one.
        output: where to write. It may be the bundle itself with if_exists="replace".
        method, alpha, keep, align_corners, seed: as in `positions.resize`.
        key: of a checkpoint, the one table to resize.
        offset: of a checkpoint, the rows in front of the first position, where nothing else tells.
        if_exists: `error` or `replace`; of a bundle also `keep`.

    Raises:
        InputError: there is no such table, or the input is damaged.
        UsageError: the method cannot give this length.
        OutputError: the result cannot be written.
        TryAgainError: another run is writing there.
    """
    check(RESIZE, locals())
    options: dict[str, Any] = {"alpha": alpha, "keep": keep, "align_corners": align_corners, "seed": seed}
    if not _is_bundle(path):
        if if_exists not in ("error", "replace"):
            raise UsageError(
                "if-exists", "no such policy for a checkpoint", expected="error or replace", found=if_exists
            )
        return resize_checkpoint(
            path, output, to=to, method=method, key=key, offset=offset, replace=if_exists == "replace", **options
        )
    if key is not None or offset is not None:
        raise UsageError("bundle-knows", "a bundle records where its positions are: leave out --key and --offset")

    def model_layout(opened: Bundle) -> ModelLayout:
        manifest, recorded = opened.manifest, opened.manifest.positions
        if recorded is None:
            raise UsageError("no-positions", "the bundle has no positions", path=opened.label, hint="attach some first")
        plan = recorded.plan()
        names = name_tensors(manifest.key_style, manifest.key, None, manifest.tied_head, True)
        names = names._replace(positions=recorded.keys)
        table = _resized(opened, plan, to, method, options)
        return ModelLayout(names, plan._replace(num=to), table, ScalePlan.of_recorded(manifest.scale))

    given: dict[str, Any] = {"to": to, "method": method, **options}
    recorded_options = {name: given[argument] for name, argument in RESIZING.items()}
    step = Step("resize-positions", Replay(REPLAY_VERSION, recorded_options))
    return _rewrite(path, output, if_exists, model_layout, step)


def describe_positions(path: str | os.PathLike[str], key: str | None = None) -> list[ShownTable]:
    """What the position tables of a bundle or a checkpoint look like.

    Args:
        path: a bundle; or a checkpoint: a folder, a safetensors file, or the index of a sharded one.
        key: of a checkpoint, the one table to look at.

    Raises:
        InputError: there is no such table, or the files are damaged.
    """
    check(DESCRIBE, locals())
    if _is_bundle(path):
        opened = Bundle(path)
        recorded = opened.manifest.positions
        table = stored_positions(opened)
        if recorded is None or table is None:
            raise UsageError("no-positions", "the bundle has no positions", path=opened.label)
        return [ShownTable(name, recorded.offset, recorded.num, facts(table), recorded, ()) for name in recorded.keys]
    source = open_checkpoint(os.fspath(path))
    shown = []
    for name, at in find_tables(source, key):
        notes: list[str] = []
        _, rows = load_table(source.shards[at], name)
        front = reserved_rows(source, name, rows, notes)
        shown.append(ShownTable(name, front, len(rows) - front, facts(rows), None, tuple(notes)))
    return shown


def repeat_steps(bundle: str | os.PathLike[str], steps: Iterable[Step]) -> None:
    """Do again to a bundle what is recorded that was done to another."""
    label = os.fspath(bundle)
    for step in steps:
        if step.kind == "attach-positions":
            attach_positions(bundle, **arguments_of(step.replay, ATTACHING, label))
        elif step.kind == "resize-positions":
            resize_positions(bundle, bundle, if_exists="replace", **arguments_of(step.replay, RESIZING, label))
        else:
            raise UsageError("unknown-step", "this version cannot do a step that is recorded", found=step.kind)


def _resized(
    opened: Bundle, plan: PositionPlan, to: int, method: str | None, options: dict[str, Any]
) -> NDArray[np.float32]:
    if plan.kind == "sinusoidal" and not plan.trains:
        if method is not None:
            raise UsageError(
                "method-of-formula", "a fixed sinusoidal table follows its formula", found=method,
                hint="leave the method out",
            )  # fmt: skip
        plan = plan._replace(num=to)
        plan.check("plain", opened.manifest.dim, True)
        return plan.table(opened.manifest.dim)
    table = stored_positions(opened)
    if table is None:
        raise AssertionError("a plan without a table")
    resized: Any = resize(table, to, method=method, offset=plan.offset or 0, **options)
    return resized  # type: ignore[no-any-return]


def _rewrite(
    bundle: Pathish, output: Pathish | None, if_exists: str, decide: Callable[[Bundle], ModelLayout], step: Step
) -> Attached:
    """Write a bundle anew with the position table that `decide` makes for it."""
    attached: list[tuple[str, ModelLayout, tuple[Vec2embWarning, ...]]] = []

    def attach(source: Source) -> Contents:
        opened = source.bundle
        layout = decide(opened).measure(rows_of_source(opened), opened.manifest.dim)
        found = tuple(filter(None, [layout.warning(source.target.label)]))
        attached.append((source.target.label, layout, found))
        manifest = opened.manifest._replace(
            key=layout.names.word, key_style=layout.names.style, tied_head=layout.names.tied_head,
            positions=layout.recorded_positions(), scale=layout.scale.recorded(),
        )  # fmt: skip
        return Contents(manifest, layout.table, step=step, warnings=found)

    written = rewrite_bundle(bundle, output, attach, if_exists=if_exists).manifest
    label, layout, found = attached[0]
    if written.positions is None:
        raise AssertionError("positions were attached")
    keys = (layout.names.word, *layout.names.positions)
    norms = layout.word_norm, layout.position_norm, layout.ratio
    return Attached(label, keys, written.positions, written.scale, *norms, found)


def _own_key(manifest: Manifest) -> str | None:
    """The name of the word table, if it is none of the style's that the bundle has now."""
    home = STYLES[manifest.key_style]
    return None if manifest.key in (home.word_key, home.alone_key) else manifest.key


def _is_bundle(path: Pathish) -> bool:
    label = plain(os.fsdecode(path))
    if is_url(label):
        return True  # a checkpoint is read from this machine only
    if os.path.isdir(label):
        return os.path.isfile(os.path.join(label, CONFIG))
    return label.endswith(".safetensors") and os.path.isfile(f"{label.removesuffix('.safetensors')}.{CONFIG}")
