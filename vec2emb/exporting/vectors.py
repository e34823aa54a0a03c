"""Files of vectors: Word2Vec text and binary, GloVe, fastText `.vec`. Each is read back before it appears."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import IO, NamedTuple

from ..conversion.parsed_rows import ParsedRows
from ..conversion.reading_pass import ReadOptions, open_pass
from ..conversion.selection import Selection
from ..errors import InputError, OutputError, Vec2embWarning, shown
from ..formats import binary_writer, fasttext_writer, text_writer
from ..io.progress import Progress
from .part import Part
from .result import Export, ReadingOptions


class Vectors(NamedTuple):
    """How a file of vectors is written.

    Attributes:
        header: its first line, or None where it has none.
        unfit, unfit_first: why it cannot hold a token, or not as the first.
        encode: tokens, each followed by LF, and float32[n, dim] to rows.
        read_as: options with which a reader need not find out what the file is.
        finite: whether it holds finite numbers only.
    """

    header: Callable[[int, int], bytes] | None
    unfit: Callable[[bytes], str | None]
    unfit_first: Callable[[bytes], str | None]
    encode: Callable[[bytes, bytes, int], bytes]
    read_as: Callable[[int], ReadingOptions]
    finite: bool = False


def _nothing(token: bytes) -> None:
    """A header stands in front of the first token."""


VECTORS = {
    "word2vec": Vectors(
        text_writer.header, text_writer.unfit, _nothing, text_writer.encode, lambda dim: {"format": "word2vec"}
    ),
    "word2vec-binary": Vectors(
        text_writer.header, binary_writer.unfit, _nothing, binary_writer.encode,
        lambda dim: {"format": "word2vec-binary", "binary_dtype": "float32", "byte_order": "little"},
    ),
    "glove": Vectors(
        None, text_writer.unfit, text_writer.unfit_first, text_writer.encode,
        lambda dim: {"format": "glove", "dim": dim},
    ),
    "fasttext-vec": Vectors(
        text_writer.header, fasttext_writer.unfit, _nothing, fasttext_writer.encode,
        lambda dim: {"format": "word2vec"}, finite=True,
    ),
}  # fmt: skip


def check_tokens(part: Part, layout: Vectors, to: str) -> None:
    """Raise OutputError if the format cannot hold one of the tokens."""
    for start, stop in part.pieces():
        for row, token in enumerate(part.blob(start, stop).split(b"\n")[:-1], start):
            why = layout.unfit(token) or (layout.unfit_first(token) if row == part.first else None)
            if why is not None:
                raise OutputError(
                    "token-not-exportable", f"{to} cannot hold the token of row {row}, {shown(token)}: {why}",
                    path=part.label, hint=_other_format(token, to),
                )  # fmt: skip


def write_vectors(part: Part, stream: IO[bytes], layout: Vectors, to: str, show: Progress | None) -> str:
    """Write all rows; the SHA-256 of their tokens."""
    digest = hashlib.sha256()
    if layout.header is not None:
        stream.write(layout.header(part.rows, part.dim))
    done = 0
    for start, stop in part.pieces():
        tokens = part.blob(start, stop)
        digest.update(tokens)
        rows = part.floats(start, stop)
        if layout.finite:
            _check_finite(part, start, rows, to)
        stream.write(layout.encode(tokens, rows, part.dim))
        done += len(rows)
        if show is not None:
            show(done, part.rows * part.dim * 4)
    return digest.hexdigest()


def options_to_read(hidden: str, label: str, part: Part, tokens_sha256: str, layout: Vectors) -> ReadingOptions:
    """Read the file as `convert` does; the options that this takes, none if it finds out itself what the file is.

    Raises:
        OutputError: it would be read as something else, or not at all.
    """
    needed = layout.read_as(part.dim)
    attempts: Sequence[ReadingOptions] = ({}, needed)
    failure: InputError | None = None
    for options in attempts:
        try:
            same = _reads_back(hidden, part, tokens_sha256, options)
        except InputError as error:
            failure = error
            continue
        if same:
            return options
        failure = None
        break
    raise OutputError(
        "export-misread",
        "what this format makes of the table is read as something else",
        path=label,
        found=None if failure is None else f"{failure.message} [{failure.code}]",
        hint="export it to another format",
    )


def needs_options(done: Export) -> Vec2embWarning:
    """The warning that names the options that `convert` needs to read the file."""
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in done.options.items())
    text = f"{done.path}: what the file is cannot be told from its first rows alone; to read it: convert {words}"
    return Vec2embWarning("needs-options", text, path=done.path)


def _reads_back(hidden: str, part: Part, tokens_sha256: str, options: ReadingOptions) -> bool:
    different: list[int] = []

    def compare(parsed: ParsedRows) -> None:
        for first, rows in parsed.runs():
            if not different and part.differs(first, rows):
                different.append(first)

    with open_pass(hidden, ReadOptions(nonfinite="keep", **options)) as opened:
        if opened.detected.dim != part.dim:
            return False
        selection = Selection([], expected=part.rows)
        opened.run(selection, compare)
    digest = hashlib.sha256()
    for piece in selection.vocabulary():
        digest.update(piece)
    return not different and len(selection) == part.rows and digest.hexdigest() == tokens_sha256


def _check_finite(part: Part, start: int, rows: bytes, to: str) -> None:
    import numpy as np

    finite = np.isfinite(np.frombuffer(rows, np.float32)).reshape(-1, part.dim).all(axis=1)
    if not finite.all():
        row = start + int(np.argmin(finite))
        raise OutputError(
            "value-not-exportable",
            f"{to} holds finite numbers only, and row {row}, {shown(part.tokens(row, row + 1)[0])}, has others",
            path=part.label,
            hint="--to word2vec can hold them; or convert anew with --nonfinite zero",
        )


def _other_format(token: bytes, to: str) -> str:
    if to != "word2vec-binary" and not binary_writer.unfit(token):
        return "--to word2vec-binary can"
    if to in ("glove", "fasttext-vec") and not text_writer.unfit(token):
        return "--to word2vec can"
    if to == "word2vec-binary" and not text_writer.unfit(token):
        return "--to word2vec or glove can"
    return "no format of word vectors can, --to npz can; leave special tokens out with --specials drop, if it is one"
