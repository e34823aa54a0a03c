"""Files of an audit: the page, and the missing words for a spreadsheet. Each appears complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from ..bundle.outputs import check_outputs
from ..errors import OutputError
from ..io.atomic import check_file, new_output, place_of
from ..io.filesystem import writing
from ..io.urls import local_only
from ..options.output import IF_FILE_EXISTS
from .outcome import Audit
from .results import Source

_HEAD = "token\tcount\tremedy\n"
_PASSED = "vec2emb audit: all gates passed\n"


def write_page(
    audit: Audit, path: str | os.PathLike[str], *, command: str | None = None, if_exists: str = "error"
) -> None:
    """Write the page of an audit, one HTML file; an earlier page is replaced.

    Args:
        audit: what was found.
        path: the file.
        command: what was typed, for the page's foot.
        if_exists: raise an `error` where another file is there, or `replace` it.

    Raises:
        OutputError: it cannot be written.
        MissingPackageError: matplotlib is not installed.
    """
    from .page import html_page

    _write(os.fspath(path), html_page(audit, command=command), _is_page, if_exists)


def write_words(audit: Audit, path: str | os.PathLike[str], *, if_exists: str = "error") -> None:
    r"""Write the missing words of an audit as TSV: `token`, `count`, `remedy`; with several sources `source` in front.

    UTF-8, a head line, LF. Tab, CR and backslash inside a token are written `\t`, `\r` and `\\`. An earlier list is
    replaced; `if_exists="replace"` replaces any other file, too.

    Raises:
        OutputError: it cannot be written.
    """
    several = len(audit.sources) > 1
    lines = ["source\t" * several + _HEAD]
    for source in audit.sources:
        front = f"{_cell(source.name)}\t" if several else ""
        lines += [front + line for line in _misses(source)]
    _write(os.fspath(path), "".join(lines), _is_list, if_exists)


def remove_passed(path: str | os.PathLike[str]) -> None:
    """Remove the file that an earlier audit left when its gates passed; anything else is kept.

    Raises:
        OutputError: something else is there, or it cannot be removed.
    """
    label = os.fspath(path)
    local_only(label, "a file of an audit")
    if not os.path.lexists(label):
        return
    with writing(label):
        is_ours = os.path.isfile(label)
        if is_ours:
            with open(label, "rb") as file:
                is_ours = _is_passed(file)
        if is_ours:
            os.remove(label)
    if not is_ours:
        raise OutputError(
            "target-not-passed", "the file was not written by --passed, and is kept", path=label,
            hint="choose another name for --passed",
        )  # fmt: skip


def write_passed(audit: Audit, path: str | os.PathLike[str]) -> None:
    """Write the file that says that all gates passed: a line for each gate and source, without measured values.

    So the content changes only with the gates, for tools that compare content.

    Raises:
        OutputError: it cannot be written.
    """
    lines = [f"{gate.kind} {gate.path}={gate.bound:g} {_cell(gate.source)}\n" for gate in audit.gates]
    _write(os.fspath(path), _PASSED + "".join(lines), _is_passed, "error")


def _misses(source: Source) -> Iterator[str]:
    if source.coverage is not None:
        for token, count, remedy in source.coverage.misses:
            yield f"{_cell(token)}\t{count}\t{remedy or ''}\n"


def _cell(token: str) -> str:
    return token.replace("\\", "\\\\").replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")


def check_files(
    html: str | None,
    missing_words: str | None,
    passed: str | None,
    inputs: Iterable[object],
    if_exists: str = "error",
) -> None:
    """Refuse the files of an audit before it begins.

    Raises:
        OutputError: one would replace what is read, a part of a bundle, or a file that is not of an audit, or its
            folder does not exist.
        UsageError: both are one file, or `if_exists` is neither `error` nor `replace`.
    """
    IF_FILE_EXISTS.check(if_exists)
    for path, is_ours in ((html, _is_page), (missing_words, _is_list)):
        if path is not None:
            local_only(path, "a file of an audit")
            _check(path, is_ours, if_exists)
    for path in (html, missing_words, passed):
        if path is not None and not os.path.lexists(os.path.dirname(place_of(path))):
            raise OutputError("cannot-write", "its folder does not exist", path=path, hint="make the folder first")
    check_outputs({"--html": html, "--missing-words": missing_words, "--passed": passed}, inputs)


def _is_page(file: BinaryIO) -> bool:
    from .page import GENERATOR

    head = file.read(1 << 10)
    return not head or GENERATOR.encode() in head


def _is_list(file: BinaryIO) -> bool:
    line = file.readline(1 << 10)
    return not line or line.removeprefix(b"source\t") == _HEAD.encode()


def _is_passed(file: BinaryIO) -> bool:
    return file.read(len(_PASSED)) in (b"", _PASSED.encode())


def _check(path: str, is_ours: Callable[[BinaryIO], bool], if_exists: str) -> None:
    check_file(path, replace=if_exists == "replace", is_ours=is_ours, hint="--if-exists replace writes it anew")


def _write(path: str, text: str, is_ours: Callable[[BinaryIO], bool], if_exists: str) -> None:
    local_only(path, "a file of an audit")
    with new_output(path, lambda: _check(path, is_ours, if_exists)) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
