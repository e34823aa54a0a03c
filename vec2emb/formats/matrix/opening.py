"""From what a caller gives to a source, if that is one of words and a matrix."""

from __future__ import annotations

import os

from ...errors import HeaderError, InputError, UsageError
from ...io.checksum import checked_hex, compare
from ...io.filesystem import Identity, identity, sha256_of
from ...options.choices import MAX_DIM
from .. import ReadAs
from .gensims import beside
from .source import MatrixSource, changed


def open_matrix(
    kind: str, where: object, read_as: ReadAs, member: str | None = None, sha256: str | None = None
) -> MatrixSource:
    """Open a source of words and a matrix.

    Args:
        kind: what `kind_of` says that it is.
        where: a path or an object in memory.
        read_as: what the caller says about it.
        member: of an `.npz`, the array of vectors.
        sha256: what the file must have.

    Raises:
        InputError: it is damaged, incomplete, or has no word vectors.
        UsageError: an option has nothing to do with it.
        MissingPackageError: a package is missing that opens it.
    """
    if member is not None and kind != "npz":
        raise UsageError("member-without-archive", "a member can be named of an archive only, which this is not",
                         path=_label(where), found=member)  # fmt: skip
    pinned = None if sha256 is None else _check_sha256(kind, where, checked_hex(sha256))
    source = _open(kind, where, member)
    try:
        if pinned is not None and (source.identity or identity(_path(where))) != pinned:
            raise changed(source.label)
        _check_options(source, read_as)
    except BaseException:
        source.close()
        raise
    return source


def _open(kind: str, where: object, member: str | None) -> MatrixSource:
    if kind == "object":
        from .memory import open_object

        return open_object(where)
    path = _path(where)
    if kind == "bundle":
        from .bundles import BundleSource

        return BundleSource(path)
    if kind == "folder":
        from .folders import FolderSource

        return FolderSource(path)
    if kind == "npz":
        from .npz import NpzSource

        return NpzSource(path, member)
    if kind == "fasttext":
        from .fasttext import FastTextSource

        return FastTextSource(path)
    from .gensims import open_pickle

    return open_pickle(path)


def _check_sha256(kind: str, where: object, sha256: str) -> Identity:
    """Compare a file with its checksum; its identity, which it must have still when it is opened for use."""
    others = beside(_path(where)) if kind == "pickle" else []
    if kind not in ("fasttext", "npz", "pickle") or others:
        raise UsageError(
            "sha256-without-file", "only a file has a checksum, and the source is no single file", path=_label(where),
            found=f"{', '.join(others)} beside it" if others else None,
            hint="leave --sha256 out; vec2emb verify checks a bundle",
        )  # fmt: skip
    try:
        with open(_path(where), "rb", buffering=0) as file:
            before = identity(file.fileno())  # first: a write while it is hashed shows later
            compare(sha256_of(file.fileno()), sha256, _label(where))
            return before
    except OSError as error:
        raise InputError("cannot-open", f"the file cannot be opened ({error.strerror})", path=_label(where)) from error


def _check_options(source: MatrixSource, read_as: ReadAs) -> None:
    """Refuse a width that no row can have, and what is said about bytes that are not there."""
    if source.dim > MAX_DIM:
        raise HeaderError("header-dim-range", "the dimension cannot be true", path=source.label,
                          expected=f"1 to {MAX_DIM}", found=str(source.dim))  # fmt: skip
    if read_as.dim is not None and read_as.dim != source.dim:
        raise HeaderError("dim-mismatch", "the source and --dim disagree", path=source.label,
                          expected=f"--dim {read_as.dim}", found=f"{source.dim} values a row")  # fmt: skip
    if read_as.binary_dtype is not None or read_as.byte_order is not None:
        raise UsageError("binary-options", "the source says itself of what type its values are", path=source.label,
                         hint="leave --binary-dtype and --byte-order out")  # fmt: skip
    if source.is_text and (read_as.encoding not in ("utf-8", "utf-8-sig") or read_as.encoding_errors != "error"):
        raise UsageError("encoding-of-text", "the words of this source are text already", path=source.label,
                         hint="leave --encoding and --encoding-errors out")  # fmt: skip


def _path(where: object) -> str:
    assert isinstance(where, str | os.PathLike), "kind_of finds files at paths only"
    return os.fsdecode(where)


def _label(where: object) -> str:
    return os.fsdecode(where) if isinstance(where, str | os.PathLike) else f"<{type(where).__name__}>"
