"""What a source is, told by its first bytes, by what lies in a folder, or by what an object has; nothing is opened.

The answer is one word, for `open_matrix`; None is for rows of bytes, and for all that nobody knows.
"""

from __future__ import annotations

import os
import stat
import struct

from ...bundle.publication import CONFIG, MODEL, VOCAB
from ...errors import InputError
from ...io.sources import is_open_file
from ...io.urls import is_url, name_of, plain

FASTTEXT_MAGIC = b"\xba\x16\x4f\x2f"
HEAD = 72  # bytes that tell


def kind_of(where: object, allow_pickle: bool = False) -> str | None:
    """`folder`, `bundle`, `fasttext`, `npz`, `pickle`, `object` or None.

    A pickle is one only where it may be opened.
    """
    if not isinstance(where, str | os.PathLike):
        return None if isinstance(where, bytes) or is_open_file(where) else "object"
    path = os.fsdecode(where)
    if os.path.isdir(path):
        own = (CONFIG, VOCAB)  # of an incomplete bundle perhaps one alone
        return "bundle" if any(os.path.exists(os.path.join(path, name)) for name in own) else "folder"
    if path.endswith(".safetensors") and _has_settings(path):
        return "bundle"
    head = _head(path)
    if head.startswith(FASTTEXT_MAGIC) or is_old_fasttext(head):
        return "fasttext"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")) and _holds_arrays(path):
        return "npz"
    if allow_pickle and is_gensim_pickle(head):
        return "pickle"
    return None


def is_bundle(source: object) -> bool:
    """Whether a source is to be opened as a bundle: a folder of one, or a file of tensors."""
    if not isinstance(source, str | os.PathLike):
        return False
    path = plain(os.fsdecode(source))
    if not is_url(path):
        kind = kind_of(path)
        return kind == "bundle" or (kind is None and path.endswith(".safetensors"))
    if name_of(path).endswith(".safetensors"):
        return True
    from ...io.remote import is_folder

    return is_folder(path)


def _has_settings(path: str) -> bool:
    """Whether a bundle's settings stand beside its tensors."""
    folder, name = os.path.split(path)
    own = f"{path.removesuffix('.safetensors')}.{CONFIG}"
    return os.path.exists(own) or (name == MODEL and os.path.exists(os.path.join(folder, CONFIG)))


def _head(path: str) -> bytes:
    """The first bytes of a regular file; none of a pipe, which they would be lost to, or of what cannot be read."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb", buffering=0) as file:
            return file.read(HEAD)
    except (OSError, ValueError):
        return b""  # whoever opens it says why


def is_gensim_pickle(head: bytes) -> bool:
    """Whether these are the first bytes of a pickle of protocol 2 or later, which is all that gensim writes."""
    return len(head) > 1 and head[0] == 0x80 and 2 <= head[1] <= 5


def is_old_fasttext(head: bytes) -> bool:
    """Whether these are the settings with which fastText's models of 2016 begin, which had no mark yet."""
    if len(head) < HEAD:
        return False
    dim, window, epochs, _, _, _, loss, model, buckets, shortest, longest, _ = struct.unpack_from("<12i", head)
    sample: float = struct.unpack_from("<d", head, 48)[0]
    size, words, labels = struct.unpack_from("<3i", head, 56)
    return bool(
        1 <= dim <= 10_000 and 1 <= window <= 1000 and 1 <= epochs <= 100_000 and 1 <= loss <= 3 and 1 <= model <= 3
        and buckets >= 0 and 0 <= shortest <= 100 and 0 <= longest <= 100 and 0 <= sample <= 1
        and words >= 0 and labels >= 0 and size == words + labels
    )  # fmt: skip


def _holds_arrays(path: str) -> bool:
    """Whether a zip archive holds NumPy arrays and nothing else."""
    from ...io.archives.zip_directory import read_directory

    try:
        with open(path, "rb") as file:
            names = read_directory(file, path).namelist()
    except (OSError, InputError):
        return False  # the reader of archives reports what is wrong
    return bool(names) and all(name.endswith(".npy") for name in names)
