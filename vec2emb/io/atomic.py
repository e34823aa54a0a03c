"""Output that appears complete and in one step, or not at all: a file, files of one stem, or a folder.

All of it is written into a hidden folder beside the target and moved into place when it is on the disk. A lock file
beside the two is held while the run lives; it tells a live run from a killed one. Every kind of output is written this
way: bundles, exports, checkpoints, counts, vocabularies, row reports, pages, lists of words and downloads.

Where a run may be killed, what is left then, and what the next run for the same target does about it (a run that fails
or is interrupted does the same on its way out):

- while writing, or before anything was moved: the hidden folder and the lock file. Both are removed.
- a new file, after its link was made: the file is complete. The hidden folder is removed.
- new files of one stem, some of them linked, but not the last, which makes the output whole: the links are removed.
- a file replaced, before or after its rename: the old or the new one is there. The hidden folder is removed.
- files of one stem replaced, some of them moved: the hidden folder holds a marker and the other files, which are moved.
- a new folder, before or after its rename: nothing or the complete folder is there. The hidden folder is removed.
- a folder replaced, after the exchange: the new one is in its place, the old one hidden. Files in the old one that are
  not ours are moved into the new one; the rest is removed.
- a folder replaced where the system cannot exchange two: the old one is aside, and no new one in its place. The old one
  is moved back. If the new one is in its place, the old one is removed as after an exchange.
- while removing: what is left is removed. The lock file goes last.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, Self

from ..errors import OutputError, TryAgainError
from .filesystem import NO_LINKS, adopt, are_same, exchange, same_file, sync, try_lock, writing
from .interrupts import held_back

_READY = ".vec2emb-ready"  # in the hidden folder of several files: all is written and synced, move it in
_PREFIX = ".vec2emb-"
_open: set[AtomicOutput] = set()
_ABANDONED = 86_400  # seconds after which a lock file is taken for that of a killed run, where there are no locks
_PAUSE = 0.05  # seconds between two looks at a lock that another run holds


class AtomicOutput:
    """One output on its way to its target; a context manager that leaves nothing behind unless it was published.

    Args:
        path: the final path, absolute: of the folder, of the file, or of the file that names a stem.
        label: the path in the caller's words.
        check: raises if the target must not be written to. It is called before anything is touched, again when no
            other run of ours can write there, and again before the output is moved into place.
        files: the final path of each file of the hidden folder, in the order in which they are moved; the last one
            makes the output whole. None if the output is a folder.

    Attributes:
        hidden, aside, lock: the folder that is written to, a replaced one on its way out, and the lock file.
    """

    what = "the output"
    busy = "another run is writing there"
    parents = True  # make the folders above the target
    shared = False  # runs for one target write the same: wait for each other, and go separate ways without locks

    def __init__(
        self, path: str, label: str, check: Callable[[], None], *, files: dict[str, str] | None = None
    ) -> None:
        self._path, self._label, self._files = path, label, files
        self.check = check
        self._parent, name = os.path.split(path)
        # Of fixed length, so that a target with a name of 255 bytes has room for it too.
        digest = hashlib.sha256(os.fsencode(name)).hexdigest()[:16]
        self.hidden, self.aside, self.lock = (
            os.path.join(self._parent, f"{_PREFIX}{digest}.{end}") for end in ("tmp", "old", "lock")
        )
        self._undo = contextlib.ExitStack()

    # What a kind of output may say of itself.

    def is_free(self) -> bool:
        """Whether nothing is at the target, or an empty folder if it is to be one."""
        if self._files is not None:
            return not any(map(os.path.lexists, self._files.values()))
        return not os.path.lexists(self._path) or (os.path.isdir(self._path) and not os.listdir(self._path))

    def is_whole(self) -> bool:
        """Whether what is at the target is a whole output, so that the one it replaced may go."""
        return True

    def own_files(self, folder: str) -> Sequence[str] | None:
        """The names in a folder of this output that are ours, in the order of removal; None for all."""
        return None

    def take_after(self) -> None:
        """Give what is written mode and owner of what it replaces."""
        if self._files is None:
            adopt(self.hidden, self._path)
        for name, path in (self._files or {}).items():
            adopt(self.path(name), path)

    # Writing.

    def check_early(self) -> None:
        """Refuse a target before anything is touched, unless a killed run left something to recover."""
        if not any(map(os.path.lexists, (self.hidden, self.aside, self.lock))):
            self.check()

    def __enter__(self) -> Self:
        try:
            with held_back():  # no hidden folder without the one who removes it
                _open.add(self)
                self._begin()
        except BaseException:
            self.__exit__(OSError)
            raise
        return self

    def _begin(self) -> None:
        with writing(self._label, self.what), contextlib.ExitStack() as undo:
            self.check_early()
            if self.parents:
                _make_parents(self._parent, undo)
            lock = self._take_lock()
            undo.callback(os.close, lock)
            undo.callback(_unlink, self.lock)
            undo.callback(self._recover)
            self._recover()
            self.check()  # recovery may have brought an output back, or removed half of one
            os.makedirs(self.hidden, exist_ok=True)
            self._undo = undo.pop_all()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with held_back(), writing(self._label, self.what):
            try:
                self._undo.close()
            except OSError:
                if kind is None:  # else the error under way says more
                    raise
            _open.discard(self)

    def path(self, name: str) -> str:
        """Where to write a file of this name before publishing."""
        return os.path.join(self.hidden, name)

    def publish(self) -> None:
        """Move everything into place; the files are closed and synced.

        Raises:
            OutputError: something else was put there meanwhile, or the system refuses.
        """
        with writing(self._label, self.what):
            for folder, _, _ in os.walk(self.hidden):
                sync(folder)
            self.check()
            self.take_after()
            if self._files is None:
                self._publish_folder()
            else:
                self._publish_files(self._files)
            sync(self._parent)
        try:
            self._recover()
        except OSError as error:
            raise OutputError(
                "cannot-tidy",
                f"{self.what} is in its place, but what it replaced cannot be tidied up ({error.strerror})",
                path=self._label,
                found=str(error.filename),
                hint="make it movable; the next run for this target tries again",
            ) from error

    def _publish_folder(self) -> None:
        if self.is_free():
            # Takes the place of an empty folder or of nothing; never of anything else.
            os.rename(self.hidden, self._path)
        elif not exchange(self.hidden, self._path):
            os.rename(self._path, self.aside)
            os.rename(self.hidden, self._path)

    def _publish_files(self, files: dict[str, str]) -> None:
        if self.is_free() and self._link(files):
            return
        if len(files) == 1:
            ((name, path),) = files.items()
            os.replace(self.path(name), path)
            return
        with open(self.path(_READY), "wb") as marker:
            os.fsync(marker.fileno())
        sync(self.hidden)
        self._move_in(files)

    def _link(self, files: dict[str, str]) -> bool:
        """Give the files their final names, which must be free; False where there are no hard links."""
        for name, path in files.items():
            try:
                os.link(self.path(name), path)  # fails where somebody was faster
            except OSError as error:
                if error.errno in NO_LINKS:
                    return False
                raise
        return True

    def _move_in(self, files: dict[str, str]) -> None:
        for name, path in files.items():
            if os.path.exists(self.path(name)):
                os.replace(self.path(name), path)
        sync(self._parent)
        os.unlink(self.path(_READY))

    def _take_lock(self) -> int:
        """Make or take over the lock file and lock it; the descriptor that holds the lock."""
        while True:
            lock = os.open(self.lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
            locked = try_lock(lock)
            if locked is None and self.shared:
                self.hidden += "." + os.urandom(8).hex()
            if locked is False:
                os.close(lock)
                if not self.shared:
                    raise TryAgainError("target-busy", self.busy, path=self._label, hint="wait for it, then try again")
                time.sleep(_PAUSE)
            elif same_file(lock, self.lock):
                return lock
            else:
                os.close(lock)  # its owner finished, and removed it, just before it was locked

    # Recovery.

    def _recover(self) -> None:
        """Finish or undo what was interrupted, so that the target holds one whole output or none."""
        if os.path.isdir(self.aside):
            if self.is_free():
                os.rename(self.aside, self._path)
            elif self.is_whole():
                self._clear(self.aside)
        if not os.path.isdir(self.hidden):
            return
        if self._files is not None:
            if os.path.exists(self.path(_READY)):
                self._move_in(self._files)
            else:
                self._unlink(self._files)
        self._clear(self.hidden)

    def _unlink(self, files: dict[str, str]) -> None:
        """Take back what `_link` did, unless it came to its end, which is the link of the last file."""
        *others, last = files
        if not os.path.exists(self.path(last)) or are_same(self.path(last), files[last]):
            return
        for name in others:
            if are_same(self.path(name), files[name]):
                os.unlink(files[name])

    def _clear(self, folder: str) -> None:
        """Remove a folder of ours; what is not ours in it is moved to the target, or left where it is."""
        own = self.own_files(folder)
        if own is None:
            import shutil  # late: it loads three compressions

            shutil.rmtree(folder)
            return
        into = self._path if self._files is None and os.path.isdir(self._path) else None
        own = (*own[:-1], _READY, *own[-1:])
        foreign = [name for name in os.listdir(folder) if name not in own]
        if into is not None:
            for name in foreign:
                os.rename(os.path.join(folder, name), _free_path(into, name))
        for name in own:
            _unlink(os.path.join(folder, name))
        if into is not None or not foreign:
            os.rmdir(folder)


def close_open() -> None:
    """Remove what is still open: at the end of a command that was interrupted between two steps."""
    for output in list(_open):
        with contextlib.suppress(OutputError):
            output.__exit__(OSError)


class AtomicFile(AtomicOutput):
    """One file of any content, written at `file`.

    Args:
        label: where it goes, in the caller's words.
        check: raises if the target must not be written to.
        parents: make the folders above it; without it a folder that is missing is an error.
    """

    what = "the file"

    def __init__(self, path: str, label: str, check: Callable[[], None], *, parents: bool = True) -> None:
        super().__init__(path, label, check, files={"file": path})
        self.parents = parents
        self.file = self.path("file")


@contextlib.contextmanager
def new_file(path: str) -> Iterator[BinaryIO]:
    """A new file, with the folders above it; on the disk when the block is left."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "xb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


def place_of(label: str | os.PathLike[str]) -> str:
    """The absolute path of a file to write; a link in its place is not followed."""
    text = os.fsdecode(label)
    return os.path.join(os.path.realpath(os.path.dirname(text)), os.path.basename(text))


def check_file(
    label: str, *, replace: bool, is_ours: Callable[[BinaryIO], bool] | None = None,
    hint: str = "pass replace=True to replace it",
) -> None:  # fmt: skip
    """Refuse a file that must not be written.

    Args:
        label: where it goes.
        replace: replace whatever file is there.
        is_ours: whether an open file is an earlier one of the same kind, which is replaced even without `replace`.
        hint: how to ask for `replace`.

    Raises:
        OutputError: something else than a regular file is there, or a file that may not be replaced.
    """
    path = place_of(label)
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    if stat.S_ISDIR(mode):
        raise OutputError("target-is-a-folder", "this is a folder", path=label, hint="name a file")
    if not stat.S_ISREG(mode):
        what = "a link, which is neither followed nor replaced" if stat.S_ISLNK(mode) else "a device, pipe or socket"
        raise OutputError("target-not-a-file", f"this is {what}", path=label, hint="name a file")
    if replace:
        return
    if is_ours is not None:
        with writing(label), open(path, "rb") as file:
            if is_ours(file):
                return
    raise OutputError("target-exists", "the file is there already", path=label, hint=hint)


@contextlib.contextmanager
def new_output(label: str, check: Callable[[], None]) -> Iterator[BinaryIO]:
    """A file that takes its name, complete and synced, when the block is left without an error.

    Args:
        label: where it goes; the folder must be there.
        check: raises if it must not be written, as `check_file` does.

    Raises:
        OutputError: it must not, or cannot be written.
        TryAgainError: another run is writing it.
    """
    with AtomicFile(place_of(label), label, check, parents=False) as output:
        with writing(label, output.what), new_file(output.file) as file:
            yield file
        output.publish()


def tidy(folder: str) -> None:
    """Remove what killed runs left in a folder in which nothing is ever replaced, whatever their targets."""
    import shutil

    for name in os.listdir(folder):
        if not (name.startswith(_PREFIX) and name.endswith(".lock")):
            continue
        path = os.path.join(folder, name)
        with contextlib.suppress(OSError), contextlib.ExitStack() as undo:  # OSError: it was removed meanwhile
            lock = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
            undo.callback(os.close, lock)
            locked, age = try_lock(lock), time.time() - os.fstat(lock).st_mtime
            if same_file(lock, path) and (locked or (locked is None and age > _ABANDONED)):
                for other in os.listdir(folder):
                    if other.startswith(name.removesuffix("lock")) and other != name:
                        shutil.rmtree(os.path.join(folder, other), ignore_errors=True)
                os.unlink(path)


def _make_parents(parent: str, undo: contextlib.ExitStack) -> None:
    """Make the folders above a target; those that are still empty in the end are removed."""

    def remove(folder: str) -> None:
        with contextlib.suppress(OSError):
            os.rmdir(folder)

    missing = []
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


def _free_path(folder: str, name: str) -> str:
    """The path of a name in a folder; another name, if one has come to stand there meanwhile."""
    path, number = os.path.join(folder, name), 1
    while os.path.lexists(path):
        path, number = os.path.join(folder, f"{name}.old{number}"), number + 1
    return path


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
