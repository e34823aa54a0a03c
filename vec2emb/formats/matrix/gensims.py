"""Files that gensim saved (`.kv`, `.model`): pickles, opened by gensim, and only where the caller allows it.

A pickle is a program: opening one runs what it says, whatever its name. Arrays that gensim put into `.npy` files beside
it are mapped.
"""

from __future__ import annotations

import os

from ...errors import InputError, needed, shown
from .memory import of_gensim
from .source import MatrixSource


def beside(path: str) -> list[str]:
    """Names of the files of arrays that gensim put beside a file, by their names."""
    folder, name = os.path.split(path)
    try:
        listed = os.listdir(folder or ".")
    except OSError:
        listed = []
    return sorted(one for one in listed if one.startswith(f"{name}.") and one.endswith((".npy", ".npz")))


def open_pickle(path: str) -> MatrixSource:
    """The word vectors of a file that gensim saved.

    Raises:
        InputError: gensim cannot open it, or it has no word vectors.
        MissingPackageError: gensim is not installed.
    """
    with needed("gensim", "gensim", "a file that gensim saved"):
        from gensim.utils import SaveLoad
    try:
        thing = SaveLoad.load(path, mmap="r")
    except FileNotFoundError as error:
        raise InputError(
            "gensim-incomplete", "a file that belongs to it is missing", path=path, expected=str(error.filename),
            hint="copy all files of that stem together",
        ) from error  # fmt: skip
    except Exception as error:  # whatever a pickle of another program or version may raise
        raise InputError(
            "gensim-load", f"gensim cannot open it ({type(error).__name__}: {shown(str(error), 120)})", path=path,
            hint="load and save it with the version of gensim that made it",
        ) from error  # fmt: skip
    source = of_gensim(thing, path)
    source.name, source.size = os.path.basename(path), os.stat(path).st_size
    return source
