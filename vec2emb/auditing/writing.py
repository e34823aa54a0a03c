"""Files of an audit: the page, and the missing words for a spreadsheet. Each appears complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..io.atomic import replaced_file
from ..io.urls import local_only
from .outcome import Audit
from .results import Source


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
