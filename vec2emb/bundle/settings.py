"""vec2emb.json as it is read: nothing in it is believed before its form is checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any, get_args

from ..errors import BundleError, shown
from ..positions.key_styles import STYLES
from ..words.token_lookup import Lookup
from .publication import CONFIG, Target, config_bytes
from .training import are_ranges

FORMAT_VERSION = 1


def read_config(target: Target) -> dict[str, Any]:
    """The content of the vec2emb.json at a target.

    Raises:
        BundleError: it is missing, is none, or was written by a newer version.
    """
    path = target.paths[CONFIG]
    try:
        config = json.loads(config_bytes(path))
    except FileNotFoundError:
        raise BundleError(
            "bundle-incomplete", "the bundle has no vec2emb.json", path=target.label, expected=path,
            hint="copy all three files of a bundle together",
        ) from None  # fmt: skip
    except (OSError, ValueError, RecursionError) as error:
        raise BundleError("bundle-config", f"the settings cannot be read ({error})", path=path) from error
    version = config.get("format_version") if isinstance(config, dict) else None
    if type(version) is not int:
        raise BundleError("bundle-config", "the settings have no format_version", path=path)
    if version > FORMAT_VERSION:
        raise BundleError(
            "bundle-version", "the bundle was written by a newer vec2emb", path=target.label,
            expected=f"format_version up to {FORMAT_VERSION}", found=str(version), hint="pip install -U vec2emb",
        )  # fmt: skip
    checked: dict[str, Any] = config
    for name, fits in _SHAPES.items():
        if not fits(checked.get(name)):
            raise BundleError("bundle-config", f"{name} is not as vec2emb writes it", path=path,
                              found=shown(str(checked.get(name))))  # fmt: skip
    return checked


def _is_special(entry: object) -> bool:
    kinds: dict[str, type] = {"token": str, "id": int, "role": str, "init": str}
    return isinstance(entry, dict) and all(type(entry.get(name)) is kind for name, kind in kinds.items())


def _are_positions(value: Any) -> bool:
    """Whether they have the form in which vec2emb.json records a position table."""
    if not isinstance(value, dict):
        return value is None
    num: Any
    offset: Any
    num, offset, padding, keys = map(value.get, ("num", "offset", "padding_idx", "keys"))
    return (
        isinstance(value.get("kind"), str)
        and type(value.get("trains")) is bool
        and (type(num), type(offset)) == (int, int)
        and num > 0 <= offset
        and (padding is None or (type(padding) is int and 0 <= padding < offset))
        and isinstance(keys, list)
        and keys != []
        and all(isinstance(key, str) for key in keys)
    )


def _is_scale(value: object) -> bool:
    if not isinstance(value, dict):
        return value is None
    factor: Any = value.get("factor")
    return type(factor) in (int, float) and 0 < factor < float("inf")


def _is_missing(value: object) -> bool:
    if not isinstance(value, dict):
        return value is None
    return are_ranges(value.get("rows")) and isinstance(value.get("init"), str | None)


def _are_fallbacks(value: object) -> bool:
    """Whether they are rising rows, each with a spelling."""
    if not isinstance(value, list):
        return value is None
    shapes = {(type(pair), *map(type, pair if isinstance(pair, list) else ())) for pair in value}
    return shapes <= {(list, int, str)} and all(one[0] < other[0] for one, other in pairwise(value))


def _is_extension(value: object) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("options"), dict):
        return False
    source = value.get("source")
    return (
        are_ranges([value.get("rows")])
        and are_ranges(value.get("missing"))
        and (source is None or (isinstance(source, dict) and isinstance(source.get("name"), str)))
    )


_SHAPES: dict[str, Callable[[Any], bool]] = {
    "positions": _are_positions,
    "scale": _is_scale,
    "steps": lambda value: value is None or (isinstance(value, list) and all(isinstance(one, dict) for one in value)),
    "train": lambda value: value in ("all", "none", "new", "rows"),
    "train_rows": lambda value: value is None or are_ranges(value),
    "missing": _is_missing,
    "fallbacks": _are_fallbacks,
    "extensions": lambda value: value is None or (isinstance(value, list) and all(map(_is_extension, value))),
    "key_style": lambda value: value is None or (isinstance(value, str) and value in STYLES),
    "tied_head": lambda value: value is None or isinstance(value, str),
    "shard_size": lambda value: value is None or (type(value) is int and value > 0),
    "specials": lambda value: isinstance(value, list) and all(map(_is_special, value)),
    "source": lambda value: value is None or isinstance(value, dict),
    "options": lambda value: isinstance(value, dict),
    "lookup": lambda value: value in (None, *get_args(Lookup)),
}
