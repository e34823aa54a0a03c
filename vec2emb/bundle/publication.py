"""Where a bundle goes, which files there belong to it, and how it appears there: complete, or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import Any

from ..errors import OutputError, UsageError, shown
from ..io.atomic import AtomicOutput
from ..io.filesystem import adopt, are_same, writing
from ..options.output import IF_BUNDLE_EXISTS
from ..safetensors_files.sharding import is_shard_name, shards_of

MODEL, VOCAB, CONFIG = "model.safetensors", "vocab.txt", "vec2emb.json"
MAX_CONFIG = 64 << 20  # bytes of vec2emb.json

# Names that no other program gives a file of its own.
WAITING = ".vec2emb-waiting"  # float32 rows whose place in the table is not known yet
SCRATCH = ".vec2emb-scratch"  # float32 rows on their way to another type
_FILE_SUFFIXES = (
    ".pt", ".pth", ".bin", ".txt", ".vec", ".npy", ".npz", ".json", ".gz", ".bz2", ".xz", ".zst", ".zip", ".tar", ".h5",
    ".ckpt", ".onnx", ".pkl", ".csv", ".tsv", ".parquet", ".kv", ".model", ".safetensor", ".st",
)  # fmt: skip


class Target:
    """Where a bundle is to stand: a folder, or three files of one stem (`NAME.safetensors`).

    Attributes:
        label: as the caller gave it.
        location: what opens it again.
        is_folder: which of the two.
        paths: the final path of each of MODEL, VOCAB and CONFIG.
    """

    def __init__(self, output: str | os.PathLike[str]) -> None:
        self.label = self.location = os.fsdecode(output)
        if self.label in ("", "-") or "\0" in self.label:
            raise UsageError(
                "output-name", "the output has no name that a file can have", found=shown(self.label),
                hint="-o FOLDER, or -o NAME.safetensors",
            )  # fmt: skip
        given = os.path.basename(self.label.rstrip(os.sep))
        self.is_folder = is_folder_name(given, self.label)
        with writing(self.label):
            if self.is_folder:
                path = os.path.realpath(self.label)
                self.paths = {name: os.path.join(path, name) for name in (MODEL, VOCAB, CONFIG)}
            else:
                # A link in place of the file is replaced itself: what it points to belongs to somebody else.
                path = os.path.join(os.path.realpath(os.path.dirname(self.label.rstrip(os.sep))), given)
                stem = path.removesuffix(".safetensors")
                if not os.path.basename(stem):
                    raise UsageError(
                        "output-name", "the output has no name before .safetensors", found=shown(self.label)
                    )
                self.paths = {MODEL: path, VOCAB: f"{stem}.vocab.txt", CONFIG: f"{stem}.vec2emb.json"}
        self.path = path

    @property
    def model_label(self) -> str:
        """The safetensors file, in the caller's words."""
        return os.path.join(self.label, MODEL) if self.is_folder else self.label

    def file_name(self, name: str) -> str:
        """The base name that MODEL, VOCAB or CONFIG has at this target."""
        return os.path.basename(self.paths[name])

    def holds_bundle(self) -> bool:
        """Whether a bundle stands there now."""
        config = _read_config(self.paths[CONFIG])
        if config is None or os.path.isdir(self.paths[VOCAB]):
            return False
        shards = [os.path.join(self.path, name) for name in shards_of(config)] if self.is_folder else []
        return any(map(os.path.isfile, (self.paths[MODEL], *shards)))

    def is_free(self) -> bool:
        """Whether nothing stands there, or an empty folder."""
        if self.is_folder:
            return not os.path.lexists(self.path) or (os.path.isdir(self.path) and not os.listdir(self.path))
        return not any(os.path.lexists(path) for path in self.paths.values())

    def check(self, if_exists: str) -> None:
        """Refuse a target that must not be written to.

        Raises:
            UsageError: `if_exists` is none of `error`, `replace`, `keep`.
            OutputError: a bundle stands there and may not be replaced, or something else does.
        """
        IF_BUNDLE_EXISTS.check(if_exists)
        self._check_place()
        if self.is_free():
            return
        if not self.holds_bundle():
            what = "the folder holds other files" if self._is_folder_now() else "a file of this name is there"
            raise OutputError(
                "target-not-a-bundle",
                f"{what} and no bundle",
                path=self.label,
                hint="choose another name for the output",
            )
        if if_exists == "error":
            raise OutputError(
                "target-exists",
                "a bundle is there already",
                path=self.label,
                hint="--if-exists replace writes it anew, --if-exists keep leaves it if it would be the same",
            )

    def publication(self, if_exists: str = "error") -> Publication:
        """What writes to it."""
        return Publication(self, if_exists)

    def _check_place(self) -> None:
        for path in (self.path, *self.paths.values()):
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.lstat(path)  # a name that is too long shows here, before anything is read
        if self.is_folder and are_same(self.path, os.curdir):
            raise OutputError(
                "target-is-here",
                "the folder is the current one, which a bundle would take away from under the shell",
                path=self.label,
                hint="name a folder in it: -o NAME",
            )
        if self.is_folder and os.path.ismount(self.path):
            raise OutputError(
                "target-is-a-mount",
                "the folder is a mount point, which cannot be replaced in one step",
                path=self.label,
                hint=f"name a folder in it: -o {os.path.join(self.label, 'NAME')}",
            )

    def _is_folder_now(self) -> bool:
        return os.path.isdir(self.path)


def is_folder_name(name: str, label: str) -> bool:
    """Whether a bundle of this base name is a folder.

    Raises:
        UsageError: neither a folder nor the tensors of a bundle have such a name.
    """
    if name.endswith(".safetensors"):
        return False
    if name.lower().endswith(_FILE_SUFFIXES):
        raise UsageError(
            "output-suffix",
            "a bundle is a folder or a .safetensors file with its companions",
            expected="-o FOLDER or -o NAME.safetensors",
            found=label,
        )
    return True


class Publication(AtomicOutput):
    """A bundle on its way to its target: what is special about bundles in an atomic output.

    Files of other programs in the folder of a bundle are kept. A bundle that is there is handled as `if_exists` says.
    """

    what = "the bundle"
    busy = "another run is writing this bundle"

    def __init__(self, target: Target, if_exists: str = "error") -> None:
        files = None if target.is_folder else {name: target.paths[name] for name in (VOCAB, CONFIG, MODEL)}
        super().__init__(target.path, target.label, lambda: target.check(if_exists), files=files)
        self.target = target
        self.if_exists = if_exists

    def is_whole(self) -> bool:
        """Whether a bundle is at the target."""
        return self.target.holds_bundle()

    def own_files(self, folder: str) -> Sequence[str]:
        """The files of a bundle, whole or half written."""
        # The tensors first: recovery tells by them what is under way. The settings last: they say what is ours.
        return (*_shards_in(folder), MODEL, VOCAB, SCRATCH, WAITING, CONFIG)

    def take_after(self) -> None:
        """Give what is written mode and owner of what it replaces: the file of its name, or else the old tensors."""
        target = self.target
        shards = _shards_in(target.path) if target.is_folder else []
        paths = {**target.paths, **{name: os.path.join(target.path, name) for name in shards}}
        old = {name: path for name, path in paths.items() if os.path.lexists(path)}
        table = next((old[name] for name in (MODEL, *shards, VOCAB) if name in old), None)
        for name in (*target.paths, *_shards_in(self.hidden)):
            like = old.get(name, table)
            if like is not None and os.path.exists(self.path(name)):
                adopt(self.path(name), like)
        if target.is_folder:
            adopt(self.hidden, target.path)


def _shards_in(folder: str) -> list[str]:
    """The shards that the settings in a folder list; where there are none yet, all files with such a name."""
    if not os.path.isdir(folder):
        return []
    config = _read_config(os.path.join(folder, CONFIG))
    return list(filter(is_shard_name, os.listdir(folder))) if config is None else shards_of(config)


def config_bytes(path: str) -> bytes:
    """The bytes of a vec2emb.json; of one that is too large so many that it is no JSON."""
    with open(path, "rb") as file:
        # No more is asked for than there is, as Python makes room for all of it.
        return file.read(min(MAX_CONFIG, os.fstat(file.fileno()).st_size))


def _read_config(path: str) -> dict[str, Any] | None:
    """The content of a vec2emb.json; None for any other file, and for none."""
    import json

    try:
        config = json.loads(config_bytes(path))
    except (OSError, ValueError, RecursionError):
        return None
    return config if isinstance(config, dict) and "format_version" in config else None


def holds_settings(path: str) -> bool:
    """Whether a file is the vec2emb.json of a bundle."""
    return _read_config(path) is not None
