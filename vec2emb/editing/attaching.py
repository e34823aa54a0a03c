"""Position tables of bundles and checkpoints that exist: attached, made longer or shorter, looked at.

A bundle is written anew and takes the place of the old one in one step. Its words are copied byte for byte, once their
checksum holds, and what was done is recorded as a step, so that the bundle can be made again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from ..bundle.model_layout import ModelLayout, ModelPlan, Scale, ScaleLike, name_tensors
from ..bundle.publication import CONFIG
from ..bundle.reader import Bundle, compare_with_existing, open_bundle
from ..bundle.table import OF_FILES, rows_of_source, stored_positions
from ..bundle.target import target_of
from ..bundle.writer import BundleWriter
from ..conversion.report import announce
from ..errors import UsageError, Vec2embWarning
from ..io.urls import is_url, plain
from ..options.commands import ATTACH, DESCRIBE, RESIZE
from ..options.definition import check, pick
from ..positions import Facts, facts, resize
from ..positions.key_styles import STYLES
from ..positions.plan import PositionPlan
from .checkpoint_files import open_checkpoint
from .checkpoints import Resized, find_tables, load_table, reserved_rows
from .checkpoints import resize_positions as resize_checkpoint

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Pathish = str | os.PathLike[str]


class Attached(NamedTuple):
    """What stands in a bundle now.

    Attributes:
        keys: what the tensors are called: words first, then positions.
        positions: the position table, as vec2emb.json records it.
        scale: what a module multiplies words by: `{kind, factor}`, or None.
        word_norm, position_norm: root mean square lengths; `norm_ratio` is the first, scaled, by the second.
    """

    path: str
    keys: tuple[str, ...]
    positions: dict[str, Any]
    scale: dict[str, Any] | None
    word_norm: float | None
    position_norm: float | None
    norm_ratio: float | None
    warnings: tuple[Vec2embWarning, ...]

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {**self._asdict(), "warnings": [warning.to_dict() for warning in self.warnings]}


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
    recorded: dict[str, Any] | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {**self._asdict(), "facts": self.facts._asdict()}


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
        config, facts = opened.config, opened.facts
        style = key_style or config.get("key_style") or "plain"
        model = ModelPlan.parse(
            plan,
            Scale(**config["scale"]).asked if scale is None and config.get("scale") else scale or "none",
            style,
            word_key or _own_key(config),
            position_key,
            config.get("tied_head") if key_style is None else None,
        )
        model.check(facts["dim"], facts["padding_idx"] is not None)
        return model.make_table(facts["dim"], facts["padding_idx"])

    asked = {
        **plan._asdict(), "scale": scale, "key_style": key_style, "word_key": word_key, "position_key": position_key
    }  # fmt: skip
    asked["max_positions"], asked["train_positions"] = asked.pop("num"), asked.pop("trains")
    step = {"attach_positions": {name: value for name, value in asked.items() if value is not None}}
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
        recorded = opened.config["positions"]
        if recorded is None:
            raise UsageError("no-positions", "the bundle has no positions", path=opened.label, hint="attach some first")
        plan = PositionPlan.of_recorded(recorded)
        names = name_tensors(
            opened.config.get("key_style") or "plain", opened.config["key"], None, opened.config.get("tied_head"), True
        )._replace(positions=tuple(recorded["keys"]))
        scale = Scale(**opened.config["scale"]) if opened.config.get("scale") else Scale("none", 1.0)
        return ModelLayout(names, plan._replace(num=to), _resized(opened, plan, to, method, options), scale)

    step = {"resize_positions": {"to": to, "method": method, **options}}
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
        recorded = opened.config["positions"]
        table = stored_positions(opened)
        if recorded is None or table is None:
            raise UsageError("no-positions", "the bundle has no positions", path=opened.label)
        return [
            ShownTable(name, recorded["offset"], recorded["num"], facts(table), recorded, ())
            for name in recorded["keys"]
        ]
    source = open_checkpoint(os.fspath(path))
    shown = []
    for name, at in find_tables(source, key):
        notes: list[str] = []
        _, rows = load_table(source.shards[at], name)
        front = reserved_rows(source, name, rows, notes)
        shown.append(ShownTable(name, front, len(rows) - front, facts(rows), None, tuple(notes)))
    return shown


_NOW = {"preset": "position_preset"}  # arguments that are recorded under another name


def repeat_steps(bundle: Pathish, steps: list[dict[str, Any]]) -> None:
    """Do again to a bundle what is recorded that was done to another."""
    for name, options in (item for step in steps for item in step.items()):
        if name == "attach_positions":
            attach_positions(bundle, **{_NOW.get(name, name): value for name, value in options.items()})
        elif name == "resize_positions":
            resize_positions(bundle, bundle, if_exists="replace", **options)
        else:
            raise UsageError("unknown-step", "this version cannot do a step that is recorded", found=name)


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
        plan.check("plain", opened.facts["dim"], True)
        return plan.table(opened.facts["dim"])
    table = stored_positions(opened)
    if table is None:
        raise AssertionError("a plan without a table")
    resized: Any = resize(table, to, method=method, offset=plan.offset or 0, **options)
    return resized  # type: ignore[no-any-return]


def _rewrite(bundle: Pathish, output: Pathish | None, if_exists: str, decide: Any, step: dict[str, Any]) -> Attached:
    """Write a bundle anew with the position table that `decide` makes for it."""
    before = Bundle(bundle)  # what is no bundle is refused before anything is touched
    if output is None and before.location is not None:
        raise UsageError(
            "output-missing", "a bundle behind a URL is not changed in place", found=before.label, hint="name an output"
        )
    target = target_of(before.label if output is None else output)
    with target.publication("replace" if output is None else if_exists) as publication:
        opened, vocab = open_bundle(bundle)  # again: nobody else can write it any more, if it is the target
        opened.check_sum()
        config, facts = opened.config, opened.facts
        dim, rows = facts["dim"], facts["rows"]
        layout = decide(opened)
        layout = layout.measure(rows_of_source(opened), dim)
        own = {name: facts.get(name) for name in ("padding_idx", "train", "unk_idx")}
        details = {name: value for name, value in config.items() if name not in {*facts, *OF_FILES}}
        details |= {**layout.details(), "steps": [*(config.get("steps") or []), step]}
        with BundleWriter(publication, dim, facts["dtype"], stored=True, shard_size=config.get("shard_size")) as writer:
            for at, stored in opened.pieces():
                writer.rows.write(at, stored)
            writer.write_vocabulary([bytes(vocab.blob)])
            written = writer.finish(rows, {**own, **layout.facts()}, details, layout.tensors())
        found = tuple(filter(None, [layout.warning(target.label)]))
        announce(list(found), strict=False)
        if if_exists == "keep" and output is not None and not target.is_free():
            compare_with_existing(target, written)
        else:
            publication.publish()
    keys = (layout.names.word, *layout.names.positions)
    norms = layout.word_norm, layout.position_norm, layout.ratio
    return Attached(target.label, keys, written["positions"], written["scale"], *norms, found)


def _own_key(config: dict[str, Any]) -> str | None:
    """The name of the word table, if it is none of the style's that the bundle has now."""
    home = STYLES[config.get("key_style") or "plain"]
    return None if config["key"] in (home.word_key, home.alone_key) else config["key"]


def _is_bundle(path: Pathish) -> bool:
    label = plain(os.fsdecode(path))
    if is_url(label):
        return True  # a checkpoint is read from this machine only
    if os.path.isdir(label):
        return os.path.isfile(os.path.join(label, CONFIG))
    return label.endswith(".safetensors") and os.path.isfile(f"{label.removesuffix('.safetensors')}.{CONFIG}")
