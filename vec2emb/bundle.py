"""The bundle on disk: what it consists of, and its one reader. `bundlewriter` has the one writer.

A bundle is three files, in a folder or side by side under one stem:

    model.safetensors   the table, `weight`: [V, D], or word table and position table under the keys of a key style; the
                        header is padded to 4,096 bytes, its metadata is `format: pt` and `vec2emb`, one canonical JSON
                        string that says nothing of the source
    vocab.txt           UTF-8, each token followed by LF, line i is row i
    vec2emb.json        everything else: how each special token was set, which rows train, the source, the options, size
                        and sha256 of the other two, and sha256 of itself (less that field)
"""

from __future__ import annotations

import json
import mmap
import os
from array import array
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, get_args

from .errors import BundleError, InputError, OutputError, UsageError, shown
from .keys import STYLES
from .publishing import CONFIG, MODEL, VOCAB, Target
from .tensorfile import TensorInfo, read_header, reading
from .trainrows import are_ranges
from .urls import is_url, label_of, plain
from .vocab_tokens import Lookup

if TYPE_CHECKING:
    from .vocabulary import Vocabulary

FORMAT_VERSION = 1
HEADER_BYTES = 4096
KEY = "weight"

_POSITION_FACTS = ("kind", "num", "offset", "padding_idx", "preset", "trains")

DTYPES = {
    # name: (safetensors' name, bytes, smallest float32 magnitude that rounds to infinity)
    "float32": ("F32", 4, None),
    "float16": ("F16", 2, 65520.0),
    "bfloat16": ("BF16", 2, 3.3961775292304957e38),
}


def largest(dtype: str) -> float:
    """The largest float32 magnitude that does not round to infinity in a dtype.

    Raises:
        UsageError: there is no such dtype.
    """
    if dtype not in DTYPES:
        raise UsageError("dtype", "no such type", expected=" or ".join(DTYPES), found=repr(dtype))
    limit = DTYPES[dtype][2]
    return float("inf") if limit is None else _float32_below(limit)


def _float32_below(limit: float) -> float:
    bits = array("I", array("f", [limit]).tobytes())
    return float(array("f", array("I", [bits[0] - 1]).tobytes())[0])


def canonical(value: Any) -> str:
    """JSON with one spelling: sorted keys, no spaces, ASCII only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def self_sha256(config: dict[str, Any]) -> str:
    """SHA-256 of the content of vec2emb.json, in its canonical spelling and without the field that holds the hash."""
    import hashlib

    content = {name: value for name, value in config.items() if name != "self_sha256"}
    return hashlib.sha256(canonical(content).encode()).hexdigest()


def pretty(value: Any) -> bytes:
    """JSON for people, in UTF-8. A file's name may hold bytes that are no text; their surrogates stay escaped."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


class Bundle:
    """The files of a bundle, opened and compared with each other; of the table itself not a byte is read.

    Attributes:
        config: the content of vec2emb.json.
        facts: what the tensors' own metadata say: rows, dim, dtype, padding_idx, unk_idx, vocab_sha256 ..
        header, tensor, positions: of the safetensors file, and the places of word table and position table in it.
        data: that file, mapped: whatever is replaced later, header and rows are of one file.
        location: the URL that it was opened by, or None.
        recorded: bytes and sha256 that MODEL and VOCAB should have.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        given = plain(os.fsdecode(path))
        self.location = given if is_url(given) else None
        if self.location is not None:
            from .fetching import cached

            given = cached(self.location)
        self.target = _locate(given)
        self.label = label_of(self.location or self.target.label)
        self.config = _read_config(self.target)
        model = self.target.paths[MODEL]
        with reading(model) as descriptor:
            self.header = read_header(descriptor, path=model)
            self.data = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        self.facts = self._read_facts()
        self.tensor = self._find_table()
        self.positions = self._find_positions()
        self.recorded = {name: self._find_recorded(name) for name in (MODEL, VOCAB)}
        self._compare()

    def release(self) -> None:
        """Give back the memory of the mapped file, as after copying rows; what is used again is mapped again."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self.data.madvise(mmap.MADV_DONTNEED)

    def stored_bytes(self, row: int, count: int) -> bytes:
        """Rows of the table as they are stored."""
        tensor = self.tensor
        width = (tensor.stop - tensor.start) // tensor.shape[0]
        start = self.header.data_start + tensor.start + row * width
        return self.data[start : start + count * width]

    def check_sum(self) -> None:
        """Refuse tensors that are not those that were written, before they are copied and get a new checksum.

        Raises:
            BundleError: their sha256 is another.
        """
        import hashlib

        expected, actual = self.recorded[MODEL]["sha256"], hashlib.sha256(self.data).hexdigest()
        if actual != expected:
            raise BundleError(
                "bundle-damaged", "the tensors are not those that were written", path=self.label,
                expected=f"sha256 {expected}", found=actual, hint="convert again, or copy the bundle again",
            )  # fmt: skip

    def _read_facts(self) -> dict[str, Any]:
        text = self.header.metadata.get("vec2emb")
        try:
            facts = json.loads(text) if text is not None else None
        except (ValueError, RecursionError):
            facts = None
        if not isinstance(facts, dict):
            raise BundleError(
                "bundle-metadata", "the tensors were not written by vec2emb", path=self.target.paths[MODEL],
                expected="metadata named 'vec2emb'", found=str(sorted(self.header.metadata)),
            )  # fmt: skip
        return facts

    def _find_table(self) -> TensorInfo:
        facts, key = self.facts, self.config.get("key", KEY)
        tensor = self.header.tensors.get(key) if isinstance(key, str) else None
        rows, dim = facts.get("rows"), facts.get("dim")
        if tensor is None or tensor.shape != (rows, dim):
            raise self._damaged("the table is not as its metadata say", f"{rows} x {dim}", str(tensor and tensor.shape))
        dtype = facts.get("dtype")
        if not isinstance(dtype, str) or dtype not in DTYPES or DTYPES[dtype][0] != tensor.dtype:
            raise self._damaged("the table has another type than its metadata say", shown(str(dtype)), tensor.dtype)
        for name in ("padding_idx", "unk_idx"):
            id = facts.get(name)
            if id is not None and not (type(id) is int and 0 <= id < tensor.shape[0]):
                raise self._damaged(f"{name} is no row", f"0 .. {tensor.shape[0] - 1}, or null", shown(str(id)))
        if not isinstance(facts.get("vocab_sha256"), str):
            raise self._damaged("the tensors do not say which vocabulary is theirs", "its sha256", "none")
        return tensor

    def _find_positions(self) -> TensorInfo | None:
        """The position table; where it stands under several keys, the first."""
        facts, recorded = self.facts.get("positions"), self.config.get("positions")
        if facts is None and recorded is None:
            return None
        if (
            not (isinstance(facts, dict) and isinstance(recorded, dict))
            or {*_POSITION_FACTS} != facts.keys()
            or canonical({name: recorded.get(name) for name in facts}) != canonical(facts)
        ):
            raise self._damaged(
                f"{CONFIG} and the tensors disagree about positions", shown(str(facts)), shown(str(recorded))
            )
        rows = facts["num"] + facts["offset"]
        tensors = [self.header.tensors.get(key) for key in recorded["keys"]]
        for tensor in tensors:
            if tensor is None or tensor.shape != (rows, self.tensor.shape[1]) or tensor.dtype != self.tensor.dtype:
                raise self._damaged(
                    "the positions are not as their metadata say", f"{rows} rows", str(tensor and tensor.shape)
                )
        return tensors[0]

    def _find_recorded(self, name: str) -> dict[str, Any]:
        """Size and sha256 of a file, found by the end of its name: all files may have been renamed together."""
        files = self.config.get("files")
        for key, facts in files.items() if isinstance(files, dict) else ():
            if (
                key.endswith(name.removeprefix("model"))
                and isinstance(facts, dict)
                and type(facts.get("bytes")) is int
                and isinstance(facts.get("sha256"), str)
            ):
                return facts
        raise self._damaged(f"{CONFIG} does not say what {name} should be", "its bytes and sha256", shown(str(files)))

    def _compare(self) -> None:
        for name in ("rows", "dim", "dtype", "padding_idx", "unk_idx", "format_version", "scale", "train"):
            if canonical(self.config.get(name)) != canonical(self.facts.get(name)):  # as 0, 0.0 and False are equal
                raise self._damaged(
                    f"{CONFIG} and the tensors disagree about {name}",
                    str(self.facts.get(name)),
                    shown(str(self.config.get(name))),
                )
        ranges, single = self.config.get("train_rows"), self.config["train"] in ("new", "rows")
        if single != (ranges is not None) or (ranges and ranges[-1][1] > self.facts["rows"]):
            raise self._damaged(
                "the rows that train are none", f"ranges up to {self.facts['rows']}", shown(str(ranges))
            )
        for name in (MODEL, VOCAB):
            path = self.target.paths[name]
            recorded = self.recorded[name]["bytes"]
            try:
                size = os.stat(path).st_size
            except OSError:
                raise self._damaged(f"{os.path.basename(path)} is missing", "the file", "none") from None
            if size != recorded:
                raise self._damaged(f"{os.path.basename(path)} has another size", f"{recorded} bytes", str(size))

    def _damaged(self, message: str, expected: str, found: str) -> BundleError:
        return BundleError(
            "bundle-damaged", message, path=self.label, expected=expected, found=found,
            hint="the files do not belong together: convert again, or copy the bundle again",
        )  # fmt: skip


def compare_with_existing(target: Target, config: dict[str, Any]) -> None:
    """Raise unless the bundle that stands at a target is the one that was just made.

    Raises:
        OutputError: it is another one.
    """
    import hashlib

    existing = Bundle(target.location)
    keys = (config.keys() | existing.config.keys()) - {"self_sha256"}  # of all the others
    differing = sorted(key for key in keys if config.get(key) != existing.config.get(key))
    for name in (MODEL, VOCAB):
        with open(existing.target.paths[name], "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != config["files"][target.file_name(name)]["sha256"]:
                differing.append(target.file_name(name))
    if differing:
        raise OutputError(
            "target-differs",
            "the bundle that is there is not the one this conversion gives",
            path=target.label,
            found=f"differences in {', '.join(differing)}",
            hint="--if-exists replace writes it anew",
        )


def _locate(path: str) -> Target:
    if os.path.isdir(path) or path.endswith(".safetensors"):
        folder, name = os.path.split(path)
        # The tensors of a folder, named by themselves, stand for the folder.
        target = Target((folder or ".") if name == MODEL and os.path.exists(os.path.join(folder, CONFIG)) else path)
    elif not os.path.lexists(path):
        raise InputError("not-found", "there is no such bundle", path=path)
    else:
        raise InputError(
            "not-a-bundle", "this is no bundle", path=path, hint="a bundle is a folder or a .safetensors file"
        )
    if not os.path.exists(target.paths[MODEL]) and not os.path.exists(target.paths[CONFIG]):
        raise InputError("not-a-bundle", "this is no bundle", path=path, expected=f"{MODEL} and {CONFIG} in it")
    return target


def _read_config(target: Target) -> dict[str, Any]:
    path = target.paths[CONFIG]
    try:
        with open(path, "rb") as file:
            config = json.loads(file.read())
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
    return isinstance(entry, dict) and all(isinstance(entry.get(name), kind) for name, kind in kinds.items())


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
    return value is None or (isinstance(value, dict) and are_ranges(value.get("rows")))


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
    "extensions": lambda value: value is None or (isinstance(value, list) and all(map(_is_extension, value))),
    "key_style": lambda value: value is None or (isinstance(value, str) and value in STYLES),
    "tied_head": lambda value: value is None or isinstance(value, str),
    "specials": lambda value: isinstance(value, list) and all(map(_is_special, value)),
    "source": lambda value: value is None or isinstance(value, dict),
    "options": lambda value: isinstance(value, dict),
    "lookup": lambda value: value in (None, *get_args(Lookup)),
}


def open_bundle(bundle: str | os.PathLike[str]) -> tuple[Bundle, Vocabulary]:
    """The files of a bundle, and the vocabulary that belongs to its table; raises what `vec2emb.load` raises."""
    from .vocabulary import Vocabulary

    opened = Bundle(bundle)
    facts = opened.facts
    vocab = Vocabulary.map_file(
        opened.target.paths[VOCAB],
        padding_idx=facts.get("padding_idx"),
        unk_idx=facts.get("unk_idx"),
        sha256=facts.get("vocab_sha256"),
        lookup=opened.config.get("lookup") or "exact",
    )
    if len(vocab) != facts["rows"]:
        raise opened._damaged(f"{VOCAB} and the table differ in length", f"{facts['rows']} lines", str(len(vocab)))
    return opened, vocab
