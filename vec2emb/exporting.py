"""From a bundle back to a file of vectors: Word2Vec text, Word2Vec binary, GloVe."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from .bundle import Bundle, open_bundle
from .errors import InputError, OutputError, UsageError, Vec2embWarning, shown
from .formats import binary_writer, text_writer
from .packing import compression_of, packed
from .passes import ReadOptions, open_pass
from .progress import Progress, ProgressLike, progress_of
from .selection import Selection
from .staging import new_file, staged
from .table import stored_rows
from .wanted import ranges_without

if TYPE_CHECKING:
    from .vocabulary import Vocabulary

_PART = "export"  # the name of the file while it is written
_PIECE = 1 << 20  # bytes of rows at a time


class _Writer(NamedTuple):
    """How a format is written.

    Attributes:
        header: its first line, or None where it has none.
        unfit, unfit_first: why it cannot hold a token, or not as the first.
        encode: tokens, each followed by LF, and float32[n, dim] to rows.
        read_as: options with which a reader need not find out what the file is.
    """

    header: Callable[[int, int], bytes] | None
    unfit: Callable[[bytes], str | None]
    unfit_first: Callable[[bytes], str | None]
    encode: Callable[[bytes, bytes, int], bytes]
    read_as: Callable[[int], dict[str, Any]]


def _nothing(token: bytes) -> None:
    """A header stands in front of the first token."""


_WRITERS = {
    "word2vec": _Writer(
        text_writer.header, text_writer.unfit, _nothing, text_writer.encode, lambda dim: {"format": "word2vec"}
    ),
    "word2vec-binary": _Writer(
        text_writer.header, binary_writer.unfit, _nothing, binary_writer.encode,
        lambda dim: {"format": "word2vec-binary", "binary_dtype": "float32", "byte_order": "little"},
    ),
    "glove": _Writer(
        None, text_writer.unfit, text_writer.unfit_first, text_writer.encode,
        lambda dim: {"format": "glove", "dim": dim},
    ),
}  # fmt: skip


class Export:
    """What was exported.

    Attributes:
        path: the file, as the caller gave it.
        format, compression: of the file.
        rows, dim: its rows, and values a row.
        dropped: special tokens that were left out.
        bytes, sha256: of the file.
        options: options that `convert` needs to read it; mostly none, since it finds out itself.
        warnings: what is odd.
    """

    def __init__(self, path: str, format: str, compression: str, rows: int, dim: int, dropped: int) -> None:
        self.path = path
        self.format = format
        self.compression = compression
        self.rows = rows
        self.dim = dim
        self.dropped = dropped
        self.bytes = 0
        self.sha256 = ""
        self.options: dict[str, Any] = {}
        self.warnings: list[Vec2embWarning] = []

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {**vars(self), "warnings": [warning.to_dict() for warning in self.warnings]}

    def __str__(self) -> str:
        compression = "" if self.compression == "none" else f", {self.compression}"
        dropped = f", {self.dropped} special tokens left out" if self.dropped else ""
        return (
            f"{self.path}: {self.format}{compression}, {self.rows:,} rows x {self.dim}{dropped}; "
            "read back, the same to the bit"
        )


def export(
    bundle: str | os.PathLike[str],
    to: str,
    path: str | os.PathLike[str],
    *,
    specials: str = "keep",
    if_exists: str = "error",
    progress: ProgressLike = False,
) -> Export:
    """Write the table of a bundle as a file of vectors that other programs read.

    Nothing is lost: the numbers of text are the shortest that read back as the same float32; float16 and bfloat16
    are written as the float32 that they stand for. The file appears complete or not at all, and only after it was read
    back and compared with the table. The same bundle gives the same bytes.

    Args:
        bundle: a folder, or the `.safetensors` file of a bundle under one stem.
        to: `word2vec` (text with a header), `word2vec-binary` or `glove` (text without one).
        path: the file; `.gz`, `.bz2`, `.xz` and `.zst` at its end compress it.
        specials: `keep` the rows of the special tokens, or `drop` them.
        if_exists: raise an `error` where a file stands already, or `replace` it.
        progress: True for the usual display, or a function of (bytes done, bytes in all).

    Returns:
        What was written. If `convert` needs options to read it, there is a warning that names them.

    Raises:
        InputError: there is no bundle, or it is damaged.
        OutputError: the format cannot hold a token, or the file exists or cannot be written.
        UsageError: an argument is none that there is.
    """
    label = os.fsdecode(path)
    writer = _WRITERS.get(to)
    if writer is None:
        raise UsageError("export-format", "no such format to export to", expected=" or ".join(_WRITERS), found=repr(to))
    for name, value, known in (
        ("specials", specials, ("keep", "drop")),
        ("if_exists", if_exists, ("error", "replace")),
    ):
        if value not in known:
            code = name.replace("_", "-")
            raise UsageError(code, f"{name} cannot be so", expected=" or ".join(known), found=repr(value))
    if label in ("", "-"):
        raise UsageError("output-name", "the output has no name that a file can have", found=shown(label))
    compression = compression_of(label)
    opened, vocab = open_bundle(bundle)
    part = _Part(opened, vocab, specials == "drop")
    part.check(writer, to)
    done = Export(label, to, compression, part.rows, part.dim, len(vocab) - part.rows)
    target = os.path.realpath(label)
    with (
        staged(target, lambda: _check_target(label, target, opened, if_exists), file=_PART) as folder,
        progress_of(progress, os.path.basename(label)) as show,
    ):
        hidden = os.path.join(folder, _PART)
        with new_file(hidden) as file, packed(file, compression) as stream:
            tokens_sha256 = part.write(stream, writer, show)
        done.options = _options_to_read(hidden, label, part, tokens_sha256, writer)
        with open(hidden, "rb") as file:
            done.sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            done.bytes = file.tell()
    if done.options:
        words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in done.options.items())
        text = f"{label}: what the file is cannot be told from its first rows alone; to read it: convert {words}"
        done.warnings.append(Vec2embWarning("needs-options", text, path=label))
        warnings.warn(done.warnings[0], stacklevel=2)
    return done


class _Part:
    """The rows of a bundle that are exported: all, or all but the special tokens.

    Attributes:
        rows, dim: how many, and values a row.
    """

    def __init__(self, bundle: Bundle, vocab: Vocabulary, drop_specials: bool) -> None:
        self._bundle = bundle
        self._vocab = vocab
        specials = sorted(special["id"] for special in bundle.config["specials"]) if drop_specials else []
        self._ranges = list(ranges_without(specials, len(vocab)))
        self.rows = sum(stop - start for start, stop in self._ranges)
        self.dim = bundle.tensor.shape[1]
        if not self.rows:
            raise InputError("nothing-to-export", "no row is left to be exported", path=bundle.label)

    def check(self, writer: _Writer, to: str) -> None:
        """Raise OutputError if the format cannot hold one of the tokens."""
        first = self._ranges[0][0]
        for start, stop in self._pieces():
            for row, token in enumerate(self._tokens(start, stop).split(b"\n")[:-1], start):
                why = writer.unfit(token) or (writer.unfit_first(token) if row == first else None)
                if why is not None:
                    raise OutputError(
                        "token-not-exportable", f"{to} cannot hold the token of row {row}, {shown(token)}: {why}",
                        path=self._bundle.label, hint=_other_format(token, to),
                    )  # fmt: skip

    def write(self, stream: IO[bytes], writer: _Writer, show: Progress | None) -> str:
        """Write all rows; the SHA-256 of their tokens."""
        digest = hashlib.sha256()
        if writer.header is not None:
            stream.write(writer.header(self.rows, self.dim))
        done = 0
        for start, stop in self._pieces():
            tokens = self._tokens(start, stop)
            digest.update(tokens)
            rows = self._read(start, stop)
            stream.write(writer.encode(tokens, rows, self.dim))
            done += len(rows)
            if show is not None:
                show(done, self.rows * self.dim * 4)
        return digest.hexdigest()

    def differs(self, first: int, rows: memoryview) -> bool:
        """Whether float32[n, dim] are not the exported rows from `first` on; one NaN is like another of its sign."""
        import numpy as np

        at, width = 0, 4 * self.dim
        for start, stop in self._ranges:
            skipped = min(first, stop - start)
            first -= skipped
            count = min(stop - start - skipped, (len(rows) - at) // width)
            if not count:
                continue
            mine, its = self._read(start + skipped, start + skipped + count), rows[at : at + count * width]
            at += count * width
            if mine != its:
                a, b = np.frombuffer(mine, np.float32), np.frombuffer(its, np.float32)
                nan = np.isnan(a) & np.isnan(b) & (np.signbit(a) == np.signbit(b))
                if not ((a.view(np.uint32) == b.view(np.uint32)) | nan).all():
                    return True
        return at < len(rows)

    def _pieces(self) -> Iterator[tuple[int, int]]:
        step = max(1, _PIECE // (4 * self.dim))
        for start, stop in self._ranges:
            for row in range(start, stop, step):
                yield row, min(row + step, stop)

    def _tokens(self, start: int, stop: int) -> bytes:
        return "\n".join([*self._vocab.tokens[start:stop], ""]).encode()

    def _read(self, start: int, stop: int) -> bytes:
        rows = stored_rows(self._bundle, start, stop).tobytes()
        self._bundle.release()
        return rows


def _other_format(token: bytes, to: str) -> str:
    if to != "word2vec-binary" and not binary_writer.unfit(token):
        return "--to word2vec-binary can"
    if to == "glove" and not text_writer.unfit(token):
        return "--to word2vec can"
    if to == "word2vec-binary" and not text_writer.unfit(token):
        return "--to word2vec or glove can"
    return "no format of word vectors can; leave special tokens out with --specials drop, if it is one"


def _check_target(label: str, target: str, bundle: Bundle, if_exists: str) -> None:
    if target in bundle.target.paths.values():
        raise OutputError("target-is-the-bundle", "this is a file of the bundle itself", path=label)
    if not os.path.lexists(target):
        return
    if not os.path.isfile(target):
        raise OutputError("target-not-a-file", "no file stands there, but something else", path=label)
    if if_exists == "error":
        raise OutputError("target-exists", "the file is there already", path=label, hint="--if-exists replace")


def _options_to_read(hidden: str, label: str, part: _Part, tokens_sha256: str, writer: _Writer) -> dict[str, Any]:
    """Read the file as `convert` does; the options that this takes, none if it finds out itself what the file is.

    Raises:
        OutputError: it would be read as something else, or not at all.
    """
    needed = writer.read_as(part.dim)
    attempts: Sequence[dict[str, Any]] = ({}, needed)
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


def _reads_back(hidden: str, part: _Part, tokens_sha256: str, options: dict[str, Any]) -> bool:
    different: list[int] = []

    def compare(first: int, rows: memoryview) -> None:
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
