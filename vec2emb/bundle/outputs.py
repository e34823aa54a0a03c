"""Which files an output may not replace: what the command reads, another output of it, a part of a bundle."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping

from ..errors import OutputError, UsageError
from ..io.atomic import place_of
from ..io.urls import is_url, plain
from ..safetensors_files.sharding import is_shard_name
from .publication import CONFIG, MODEL, VOCAB, holds_settings


def check_outputs(outputs: Mapping[str, str | os.PathLike[str] | None], inputs: Iterable[object] = ()) -> None:
    """Refuse outputs before anything is read.

    Args:
        outputs: the file of each, or None, by the name of its option.
        inputs: what the command reads; paths of files, of folders with all that is in them, patterns, or anything else,
            which is no file that could be replaced. `hf:FILE` is the file.

    Raises:
        UsageError: two outputs are one file.
        OutputError: an output is an input, or a file of a bundle.
    """
    given = {option: os.fsdecode(path) for option, path in outputs.items() if path is not None}
    taken: dict[str, str] = {}
    for option, label in given.items():
        path = place_of(label)
        if path in taken:
            raise UsageError("output-twice", f"{option} and {taken[path]} are the same file", found=label,
                             hint="name two files")  # fmt: skip
        taken[path] = option
        if _is_of_bundle(path):
            raise OutputError("output-in-bundle", "this is a file of a bundle", path=label,
                              hint="choose another name for the output")  # fmt: skip
    for label in given.values() if any(map(os.path.exists, given.values())) else ():
        source = next((one for one in _paths(inputs) if _is_read(label, one)), None)
        if source is not None:
            raise OutputError("output-is-input", "the output would replace a file that is read", path=label,
                              found=source, hint="choose another name for the output")  # fmt: skip


def _is_of_bundle(path: str) -> bool:
    """Whether a path is that of a file of a bundle: in its folder, or beside others of its stem."""
    folder, name = os.path.split(path)
    if (name in (MODEL, VOCAB, CONFIG) or is_shard_name(name)) and holds_settings(os.path.join(folder, CONFIG)):
        return True
    return any(
        path.endswith(end) and holds_settings(f"{path.removesuffix(end)}.{CONFIG}")
        for end in (".safetensors", f".{VOCAB}", f".{CONFIG}")
    )


def _paths(inputs: Iterable[object]) -> Iterator[str]:
    """The files and folders of this machine among the inputs; a pattern stands for what it matches."""
    for one in inputs:
        if isinstance(one, str | os.PathLike):
            path = plain(os.fsdecode(one))
            path = path.removeprefix("hf:") if not os.path.exists(path) else path
            if os.path.exists(path):
                yield path
            elif not is_url(path):
                yield from glob.iglob(path, recursive=True)
        elif isinstance(one, list | tuple):
            yield from _paths(one)


def _is_read(output: str, source: str) -> bool:
    if not os.path.exists(output):
        return False
    if os.path.isdir(source):
        return place_of(output).startswith(os.path.join(os.path.realpath(source), ""))
    return os.path.samefile(output, source)
