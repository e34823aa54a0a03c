"""Files that appear together, complete, or not at all.

A publication is written into a hidden folder beside its target and moved into place when all of it is on disk. A lock
file beside the two is held for as long as the owner lives, so that what a killed run left is told from what is in use.
What each step may be interrupted at, and what the next run (or the same one, on its way out) does about it:

- while writing: there is the hidden folder; it is removed.
- a folder replaced, between the exchange and the tidying up: the new one is in its place, the old one hidden. Files of
  other programs that it holds are moved back into the new one, the rest is removed.
- a folder replaced where the system cannot exchange two: old one aside, new one not yet in. The old one is moved back.
- new files of one stem, some of them linked, the tensors not: the links are removed.
- files of one stem replaced, half of them: the hidden folder holds a marker and the other half, which is moved in.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from typing import Any

from ..errors import OutputError, TryAgainError, UsageError, shown
from ..io.filesystem import NO_LINKS, adopt, are_same, exchange, same_file, sync, try_lock, writing
from ..options.output import IF_BUNDLE_EXISTS
from ..safetensors_files.sharding import is_shard_name, shards_of

MODEL, VOCAB, CONFIG = "model.safetensors", "vocab.txt", "vec2emb.json"
MAX_CONFIG = 64 << 20  # bytes of vec2emb.json

# Names that no other program gives a file of its own.
WAITING = ".vec2emb-waiting"  # float32 rows whose place in the table is not known yet
SCRATCH = ".vec2emb-scratch"  # float32 rows on their way to another type
_READY = ".vec2emb-ready"  # in the hidden folder of a stem: all is written and synced, move it in
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
        self.parent, self.name = os.path.split(path)
        # Of fixed length, so that a target with a name of 255 bytes has room for it too.
        digest = hashlib.sha256(os.fsencode(self.name)).hexdigest()[:16]
        self.hidden, self.aside, self.lock = (
            os.path.join(self.parent, f".vec2emb-{digest}.{end}") for end in ("tmp", "old", "lock")
        )

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


class Publication:
    """The hidden folder of one target, from opening to publishing; a context manager that leaves nothing behind."""

    def __init__(self, target: Target, if_exists: str = "error") -> None:
        self.target = target
        self.if_exists = if_exists
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> Publication:
        target = self.target
        with writing(target.label), contextlib.ExitStack() as undo:
            if not any(map(os.path.lexists, (target.hidden, target.aside, target.lock))):
                target.check(self.if_exists)  # before anything is touched
            _make_parents(target, undo)
            lock = _take_lock(target)
            undo.callback(os.close, lock)
            undo.callback(os.unlink, target.lock)
            undo.callback(_recover, target)
            _recover(target)
            target.check(self.if_exists)  # healing may have brought a bundle back, or tidied half of one away
            os.makedirs(target.hidden, exist_ok=True)
            self._undo = undo.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with writing(self.target.label):
            try:
                self._undo.close()
            except OSError:
                if kind is None:  # else the error under way says more
                    raise

    def path(self, name: str) -> str:
        """Where to write a file of this name before publishing."""
        return os.path.join(self.target.hidden, name)

    def publish(self) -> None:
        """Move everything into place; the files are closed and synced.

        Raises:
            OutputError: another file or bundle has come to stand there meanwhile, or the system refuses.
        """
        target = self.target
        with writing(target.label):
            self._take_after()
            sync(target.hidden)
            if target.is_folder:
                self._publish_folder()
            else:
                self._publish_files()
            sync(target.parent)
        try:
            _recover(target)
        except OSError as error:
            raise OutputError(
                "cannot-tidy",
                f"the bundle is in its place, but what it replaced cannot be tidied up ({error.strerror})",
                path=target.label,
                found=str(error.filename),
                hint="make it movable; the next run for this target tries again",
            ) from error

    def _take_after(self) -> None:
        """Give what is written mode and owner of what it replaces: the file of its name, or else the old tensors."""
        target = self.target
        shards = _shards_in(target.path) if target.is_folder else []
        paths = {**target.paths, **{name: os.path.join(target.path, name) for name in shards}}
        old = {name: path for name, path in paths.items() if os.path.lexists(path)}
        table = next((old[name] for name in (MODEL, *shards, VOCAB) if name in old), None)
        for name in (*target.paths, *_shards_in(target.hidden)):
            like = old.get(name, table)
            if like is not None and os.path.exists(self.path(name)):
                adopt(self.path(name), like)
        if target.is_folder:
            adopt(target.hidden, target.path)

    def _publish_folder(self) -> None:
        target = self.target
        if target.is_free():
            # Takes the place of an empty folder or of nothing; never of anything else.
            os.rename(target.hidden, target.path)
            return
        target.check(self.if_exists)
        if not exchange(target.hidden, target.path):
            os.rename(target.path, target.aside)
            os.rename(target.hidden, target.path)

    def _publish_files(self) -> None:
        target = self.target
        if not target.is_free():
            target.check(self.if_exists)
        elif _link_files(target):
            return
        with open(self.path(_READY), "wb") as marker:
            os.fsync(marker.fileno())
        sync(target.hidden)
        _move_files_in(target)


def _make_parents(target: Target, undo: contextlib.ExitStack) -> None:
    """Make the folders above the target; those that are still empty in the end are removed."""

    def remove(folder: str) -> None:
        with contextlib.suppress(OSError):
            os.rmdir(folder)

    missing = []
    parent = target.parent
    while not os.path.isdir(parent):
        missing.append(parent)
        parent = os.path.dirname(parent)
    for parent in reversed(missing):
        try:
            os.mkdir(parent)
        except FileExistsError:
            if not os.path.isdir(parent):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), parent) from None
        else:
            undo.callback(remove, parent)


def _take_lock(target: Target) -> int:
    """Make or take over the lock file and lock it; the descriptor that holds the lock."""
    while True:
        lock = os.open(target.lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        if not try_lock(lock):
            os.close(lock)
            raise TryAgainError(
                "target-busy",
                "another run is writing this bundle",
                path=target.label,
                hint="wait for it, then try again",
            )
        if same_file(lock, target.lock):
            return lock
        os.close(lock)  # its owner finished, and removed it, just before it was locked


def _recover(target: Target) -> None:
    """Finish or undo what was interrupted, so that the target holds one whole bundle or none."""
    if os.path.isdir(target.aside):
        if target.is_free():
            os.rename(target.aside, target.path)
        elif target.holds_bundle():
            _clear(target.aside, into=target.path)
    if not os.path.isdir(target.hidden):
        return
    if not target.is_folder:
        if os.path.exists(os.path.join(target.hidden, _READY)):
            _move_files_in(target)
        else:
            _unlink_files(target)
    _clear(target.hidden, into=target.path if target.is_folder and os.path.isdir(target.path) else None)


def _link_files(target: Target) -> bool:
    """Give the files of a stem their final names, which must be free; False where there are no hard links."""
    for name in (VOCAB, CONFIG, MODEL):
        try:
            os.link(os.path.join(target.hidden, name), target.paths[name])  # fails where somebody was faster
        except OSError as error:
            if error.errno in NO_LINKS:
                return False
            raise
    return True


def _unlink_files(target: Target) -> None:
    """Take back what `_link_files` did, unless it came to its end, which is the link of the tensors."""
    hidden = {name: os.path.join(target.hidden, name) for name in (VOCAB, CONFIG, MODEL)}
    if not os.path.exists(hidden[MODEL]) or are_same(hidden[MODEL], target.paths[MODEL]):
        return
    for name in (VOCAB, CONFIG):
        if are_same(hidden[name], target.paths[name]):
            os.unlink(target.paths[name])


def _move_files_in(target: Target) -> None:
    for name in (VOCAB, CONFIG, MODEL):
        source = os.path.join(target.hidden, name)
        if os.path.exists(source):
            os.replace(source, target.paths[name])
    sync(target.parent)
    os.unlink(os.path.join(target.hidden, _READY))


def _clear(folder: str, into: str | None) -> None:
    """Remove a folder of ours; what is not ours in it is moved `into` another, or left where it is if there is none."""
    # The tensors first: `_unlink_files` tells by them what is under way. The settings last: they say what is ours.
    ours = (*_shards_in(folder), MODEL, VOCAB, _READY, SCRATCH, WAITING, CONFIG)
    foreign = [name for name in os.listdir(folder) if name not in ours]
    if into is not None:
        for name in foreign:
            os.rename(os.path.join(folder, name), _free_path(into, name))
    for name in ours:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    if into is not None or not foreign:
        os.rmdir(folder)


def _free_path(folder: str, name: str) -> str:
    """The path of a name in a folder; another name, if one has come to stand there meanwhile."""
    path, number = os.path.join(folder, name), 1
    while os.path.lexists(path):
        path, number = os.path.join(folder, f"{name}.old{number}"), number + 1
    return path


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
