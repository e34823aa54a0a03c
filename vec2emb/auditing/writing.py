"""Files of an audit: the page, and the missing words for a spreadsheet. Each appears complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..errors import OutputError
from ..io.atomic import replaced_file
from ..io.filesystem import writing
from ..io.urls import local_only
from .outcome import Audit
from .results import Source

_PASSED = b"vec2emb audit: all gates passed\n"


def write_page(audit: Audit, path: str | os.PathLike[str], *, command: str | None = None) -> None:
    """Write the page of an audit, one HTML file; one that is there is replaced.

    Args:
        audit: what was found.
        path: the file.
        command: what was typed, for the page's foot.

    Raises:
        OutputError: it cannot be written.
        MissingPackageError: matplotlib is not installed.
    """
    from .page import html_page

    _write(os.fspath(path), html_page(audit, command=command))


def write_words(audit: Audit, path: str | os.PathLike[str]) -> None:
    r"""Write the missing words of an audit as TSV: `token`, `count`, `remedy`; with several sources `source` in front.

    UTF-8, a head line, LF. Tab, CR and backslash inside a token are written `\t`, `\r` and `\\`.

    Raises:
        OutputError: it cannot be written.
    """
    several = len(audit.sources) > 1
    lines = ["source\t" * several + "token\tcount\tremedy\n"]
    for source in audit.sources:
        front = f"{_cell(source.name)}\t" if several else ""
        lines += [front + line for line in _misses(source)]
    _write(os.fspath(path), "".join(lines))


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
                is_ours = file.read(len(_PASSED)) in (b"", _PASSED)
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
    _write(os.fspath(path), _PASSED.decode() + "".join(lines))


def _misses(source: Source) -> Iterator[str]:
    if source.coverage is not None:
        for token, count, remedy in source.coverage.misses:
            yield f"{_cell(token)}\t{count}\t{remedy or ''}\n"


def _cell(token: str) -> str:
    return token.replace("\\", "\\\\").replace("\t", "\\t").replace("\r", "\\r").replace("\n", "\\n")


def _write(path: str, text: str) -> None:
    local_only(path, "a file of an audit")
    with replaced_file(path, replace=True) as file:
        file.write(text.encode("utf-8", "backslashreplace"))
