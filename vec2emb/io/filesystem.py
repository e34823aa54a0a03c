"""What the standard library does not say of files in one word: exchanging, locking, syncing, writing all of it."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence

from ..errors import OutputError

NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)  # what systems say that have no hard links
_PIECE = 1 << 20  # bytes read at a time


def exchange(a: str, b: str) -> bool:
    """Swap two folders in one step; False where the system has no such call."""
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    if hasattr(library, "renameat2"):
        here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
        failed = library.renameat2(here, os.fsencode(a), here, os.fsencode(b), swap)
    elif hasattr(library, "renamex_np"):
        failed = library.renamex_np(os.fsencode(a), os.fsencode(b), 2)  # RENAME_SWAP
    else:
        return False
    if not failed:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM):
        return False
    raise OSError(code, os.strerror(code), b)


def adopt(path: str, model: str) -> None:
    """Give a file or folder mode and owner of the one whose place it takes, as far as the system lets us."""
    try:
        status = os.stat(model, follow_symlinks=False)
    except OSError:
        return  # nothing to take after
    if stat.S_ISLNK(status.st_mode):
        return
    ours = os.stat(path)
    if (ours.st_uid, ours.st_gid) != (status.st_uid, status.st_gid) and hasattr(os, "chown"):
        with contextlib.suppress(OSError):  # only root may give files away
            os.chown(path, status.st_uid, status.st_gid)
    with contextlib.suppress(OSError):
        os.chmod(path, stat.S_IMODE(status.st_mode))


def sync(path: str) -> None:
    """Flush a folder's entries, or a file, to the disk, where the system can."""
    try:
        folder = os.open(path, os.O_RDONLY)
    except OSError:
        return  # Windows cannot open folders
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextlib.contextmanager
def writing(label: str, what: str = "the output", hint: str | None = "nothing was left behind") -> Iterator[None]:
    """Turn what the system says about an output into an OutputError."""
    try:
        yield
    except OSError as error:
        raise fault_of(error, label, what, hint) from error


def fault_of(error: OSError, label: str | None, what: str, hint: str | None) -> OutputError:
    """What the system says about an output, as an error of ours."""
    code = {
        errno.ENOSPC: "disk-full",
        errno.EDQUOT: "disk-full",
        errno.EACCES: "cannot-write",
        errno.EPERM: "cannot-write",
        errno.EROFS: "cannot-write",
        errno.ENAMETOOLONG: "name-too-long",
        errno.EEXIST: "target-exists",
        errno.ENOTEMPTY: "target-exists",
        errno.ENOTDIR: "cannot-write",
        errno.EISDIR: "cannot-write",
        errno.ENOENT: "cannot-write",
    }.get(error.errno or 0, "write-failed")
    return OutputError(code, f"{what} cannot be written ({error.strerror or error})", path=label, hint=hint)


def write_all(descriptor: int, data: bytes | bytearray | memoryview, offset: int) -> None:
    """Write all of `data` at an offset; the system may take it in pieces."""
    view = memoryview(data)
    while view:
        count = os.pwrite(descriptor, view, offset)
        view = view[count:]
        offset += count


def write_file(path: str, pieces: Sequence[bytes] | Iterator[bytes], *, flush: bool = True) -> tuple[int, str]:
    """Write a new file, and sync it unless the caller will; its size and sha256."""
    digest, size = hashlib.sha256(), 0
    with open(path, "xb") as file:
        for piece in pieces:
            file.write(piece)
            digest.update(piece)
            size += len(piece)
        if flush:
            file.flush()
            os.fsync(file.fileno())
    return size, digest.hexdigest()


def sha256_of(descriptor: int) -> str:
    """SHA-256 of an open file, all of it, wherever it was read to."""
    digest, at, buffer = hashlib.sha256(), 0, memoryview(bytearray(_PIECE))
    while size := os.preadv(descriptor, [buffer], at):
        digest.update(buffer[:size])
        at += size
    return digest.hexdigest()


def size_and_sha256(path: str) -> tuple[int, str]:
    """Bytes and SHA-256 of a file."""
    with open(path, "rb", buffering=0) as file:
        return os.fstat(file.fileno()).st_size, sha256_of(file.fileno())


Identity = tuple[int, ...]


def identity(file: int | str, *, links_may_change: bool = False) -> Identity:
    """Which file is open, or found at a path, and in which state it is.

    Args:
        file: a descriptor or a path.
        links_may_change: leave out the time at which its state changed. That of a source is compared, as it tells of a
            file that was written to and given its old time back. That of a finished bundle is not: a new name, a name
            that is removed and other permissions change it too.
    """
    status = os.stat(file)
    state = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    return state if links_may_change else (*state, status.st_ctime_ns)


def same_file(descriptor: int, path: str) -> bool:
    """Whether a path still leads to the file that is open."""
    try:
        ours, theirs = os.fstat(descriptor), os.lstat(path)
    except OSError:
        return False
    return os.path.samestat(ours, theirs)


def are_same(a: str, b: str) -> bool:
    """Whether two paths are links of one file."""
    try:
        return os.path.samestat(os.lstat(a), os.lstat(b))
    except OSError:
        return False


def try_lock(descriptor: int) -> bool | None:
    """Lock an open file; False if another process has, None if there are no locks here.

    It is free again when its owner ends or closes it.
    """
    try:
        import fcntl
    except ImportError:
        return None  # no such locks on Windows
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None  # nor on some network file systems
    return True
