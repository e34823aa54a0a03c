"""What a file of vectors is: its format, its dimension, where its rows begin.

Only the head of the file is looked at: the first 1,000 rows, or as many of them as its first 4 MiB hold. Nothing here
depends on how the file is read later.
"""

from __future__ import annotations

import re
import struct
from collections import Counter

from .._kernel import profile_text
from ..errors import FormatError, HeaderError, InputError, SourceError, shown
from ..io.sources import Source
from ..options.choices import MAX_DIM
from .described import Detected, ReadAs
from .lookalikes import ROWS, is_array_over_lines, lookalike
from .other import PRINTED_ARRAY, explain_row, recognise

SAMPLE_ROWS = 1000
SAMPLE_BYTES = 4 << 20

_BOM = b"\xef\xbb\xbf"
_NUMBER = re.compile(rb"[-+0-9.eE]+")
_HEADER = re.compile(rb"[ \t]*([0-9]{1,1000})[ \t]+([0-9]{1,1000})[ \t]*\r?")


def detect(source: Source, read_as: ReadAs) -> Detected:
    """Look at the head of a source, put its rows back, and tell what they are.

    Raises:
        FormatError: the file is empty, is something else, or fits more than one reading.
        HeaderError: the header and the rows contradict each other.
    """
    head, whole = _read_head(source)
    try:
        detected = _Head(head, whole, source.label).detect(read_as)
    except InputError as error:
        if source.failure is not None and error.code in ("empty-file", "no-rows", "header-alone", "row-too-long"):
            raise source.failure from None  # that is why nothing is there
        raise
    source.unread(head[detected.skip :])
    return detected


def why_not_meant(source: Source, read_as: ReadAs) -> InputError | None:
    """Why a member of an archive is not the table that is meant, told by its head; None if it may be.

    It is not if it is plainly something else or, where a dimension is asked for, has another.
    """
    head = _Head(*_read_head(source), source.label)
    try:
        head.refuse_other()
        if read_as.dim is None:
            return None
        found = head.detect(read_as._replace(dim=None)).dim
    except InputError as error:
        return None if error.code.startswith("ambiguous") else error
    if found == read_as.dim:
        return None
    return FormatError(
        "dim-mismatch",
        f"it has {found} values a row",
        path=source.label,
        expected=f"{read_as.dim}, as --dim says",
    )


def _read_head(source: Source) -> tuple[bytes, bool]:
    """The sampled bytes, and whether they are the whole file."""
    head = bytearray()
    lines = 0
    while lines <= SAMPLE_ROWS and len(head) < SAMPLE_BYTES and source.failure is None:
        piece = source.read(128 << 10)
        head += piece
        lines += piece.count(b"\n")
        if len(piece) < 128 << 10:
            return bytes(head), source.failure is None
    return bytes(head), False


class _Head:
    """The first bytes of a file, under examination."""

    def __init__(self, head: bytes, whole: bool, label: str) -> None:
        self.head = head
        self.label = label
        self.whole = whole
        self.bom = self._bom()
        ended = head if not whole or head.endswith(b"\n") else head + b"\n"
        self.text = ended[: ended.rfind(b"\n") + 1] if whole or b"\n" in ended else b""

    def detect(self, read_as: ReadAs) -> Detected:
        format, dim = read_as.format, read_as.dim
        self.refuse_other()
        self._refuse_cr_lines()
        header = self._header(format)
        if header and (
            format == "word2vec-binary" or (format == "auto" and _looks_binary(self.head[header.end() + 1 :]))
        ):
            return self._as_binary(header, read_as)
        self._refuse_binary(header)
        return self._as_word2vec(header, dim) if header else self._as_glove(dim, format == "glove")

    def refuse_other(self) -> None:
        """Raise FormatError if this is plainly no table."""
        if not self.head.strip():
            raise self._no_rows()
        other = recognise(self.head)
        if other is not None:
            slug, what, advice = other
            raise FormatError(f"is-{slug}", "this is no file of word vectors", path=self.label, found=what, hint=advice)

    def _no_rows(self) -> FormatError:
        return FormatError(
            "no-rows" if self.head else "empty-file",
            "the file holds nothing but blank lines" if self.head else "the file is empty",
            path=self.label,
            hint="did the download or the step before it fail?",
        )

    def _row_too_long(self) -> SourceError:
        return SourceError(
            "row-too-long",
            f"the first row does not end within {SAMPLE_BYTES >> 20} MiB",
            path=self.label,
            hint="this is hardly a table of word vectors in text; what is it?",
        )

    def _bom(self) -> int:
        """Length of a byte-order mark; if nothing of the token remains behind it, it is itself the token."""
        if not self.head.startswith(_BOM) or self.head[3:4] in (b" ", b"\t"):
            return 0
        return len(_BOM)

    def _refuse_cr_lines(self) -> None:
        """A file whose rows end in CR alone would pass for one long row."""
        first = self.head[self.bom :].split(b"\n", 1)[0]
        rows = [row.split() for row in first.split(b"\r")[:SAMPLE_ROWS]]
        rows = [row for row in rows if row]
        if len(rows) > 1 and all(len(row) > 1 and _NUMBER.fullmatch(row[-1]) for row in rows):
            raise FormatError(
                "cr-line-ends",
                "the rows end in CR alone",
                path=self.label,
                line=1,
                expected="LF, or CR and LF",
                hint="convert the line ends first: tr '\\r' '\\n'",
            )

    # The header.

    def _header(self, format: str) -> re.Match[bytes] | None:
        if format == "glove":
            return None
        line_end = self.head.find(b"\n")
        line_end = line_end if line_end >= 0 else len(self.head)
        match = _HEADER.fullmatch(self.head, self.bom, line_end)
        if format in ("word2vec", "word2vec-binary"):
            if match is None:
                self._refuse_bare_doubles()
                raise HeaderError(
                    "header-missing",
                    "the first line is no Word2Vec header",
                    path=self.label,
                    line=1,
                    expected="two numbers, rows and dimension",
                    found=shown(self.head[self.bom : min(line_end, self.bom + 200)]),
                    hint="use --format glove for a file without a header",
                )
            return match
        if match is not None:
            rest = self.head[line_end + 1 :].lstrip(b" \t\r\n")
            if rest and len(rest.split(b"\n", 1)[0].split(None, 2)) == 2 and not _looks_binary(rest):
                raise FormatError(
                    "ambiguous-header",
                    "line 1 is either a header or a row of one value, and so are the others",
                    path=self.label,
                    line=1,
                    found=shown(match.group()),
                    hint="say which: --format word2vec (a header) or --format glove (a row)",
                )
        return match

    def _refuse_binary(self, header: re.Match[bytes] | None) -> None:
        """Refuse what is to be read as text and is none."""
        if header and _looks_binary(self.head[header.end() + 1 :]):
            raise FormatError(
                "is-word2vec-binary",
                "this is Word2Vec binary",
                path=self.label,
                hint="use --format word2vec-binary, or leave --format out",
            )
        self._refuse_bare_doubles()
        at = self.head.find(b"\0")
        if at >= 0:
            raise FormatError(
                "nul-bytes",
                "this is no text: it holds NUL bytes",
                path=self.label,
                line=self.head.count(b"\n", 0, at) + 1,
                offset=at,
                hint="is it a binary file?",
            )

    def _refuse_bare_doubles(self) -> None:
        """GloVe's -binary 1 writes the matrix alone."""
        count = min(len(self.head) // 8, 200)
        if b"\0" not in self.head[:1600] and not any(byte < 9 or byte > 126 for byte in self.head[:64]):
            return
        values = struct.unpack_from(f"<{count}d", self.head)
        if count >= 2 and (not self.whole or len(self.head) % 8 == 0) and all(1e-12 < abs(v) < 1e4 for v in values):
            raise FormatError(
                "is-glove-binary",
                "this is GloVe's binary form, bare 8-byte floats without words",
                path=self.label,
                hint="the words are in its vocabulary file; write the vectors again with -binary 0",
            )

    def _as_binary(self, header: re.Match[bytes], read_as: ReadAs) -> Detected:
        rows, width = int(header[1]), int(header[2])
        place = {"path": self.label, "line": 1}
        if header.group().endswith(b"\r"):
            raise HeaderError(
                "binary-as-text",
                "the header ends with CR LF: the file went through a transfer as text, which changes its floats",
                found=shown(header.group()),
                hint="transfer it again in binary mode",
                **place,  # type: ignore[arg-type]
            )
        body = self.head[header.end() + 1 :]
        self._check_header(header, body, read_as.dim)
        lines = b"" if _looks_binary(body) else self.text[header.end() + 1 :]
        profile = profile_text(lines, len(lines), SAMPLE_ROWS)
        # Not the first row alone: a few floats are digits and line feeds.
        rows_of_text = sum(numerals >= min(width, fields - 1) > 0 for _, _, fields, numerals in profile)
        if rows_of_text * 2 > len(profile):
            raise FormatError(
                "is-text",
                "this is text, not Word2Vec binary",
                found=shown(lines[profile[0][0] : profile[0][1]]),
                hint="use --format word2vec",
                **place,  # type: ignore[arg-type]
            )
        if read_as.binary_dtype is None and read_as.byte_order is None:  # else the caller knows better
            from .plausibility import check_sample

            check_sample(body, self.whole, rows, width, self.label)
        space = body.find(b" ", 0, 1000)
        record = max(space, 1) + 1 + width * read_as.width
        skip = header.end() + 1
        return Detected("word2vec-binary", width, "from the header", rows, skip, 1, 1, record)

    def _check_header(self, header: re.Match[bytes], body: bytes, dim: int | None) -> None:
        """Refuse a header that cannot be true whatever the rows are."""
        rows, width = int(header[1]), int(header[2])
        place = {"path": self.label, "line": 1}
        found = shown(header.group())
        if not body.strip() and self.whole:
            raise HeaderError(
                "header-alone",
                "the file ends after its header",
                expected=f"{rows} rows" if rows else "rows",
                found="none",
                hint="the download or the step before it did not finish",
                **place,  # type: ignore[arg-type]
            )
        if rows == 0:
            raise HeaderError(
                "header-zero-rows",
                "the header promises no rows, but rows follow",
                found=found,
                hint="correct the count, or remove the header and use --format glove",
                **place,  # type: ignore[arg-type]
            )
        if not 1 <= width <= MAX_DIM:
            raise HeaderError(
                "header-dim-range",
                "the header's dimension cannot be true",
                expected=f"1 to {MAX_DIM}",
                found=found,
                **place,  # type: ignore[arg-type]
            )
        if dim is not None and dim != width:
            raise HeaderError(
                "dim-mismatch",
                "the header and --dim disagree",
                expected=f"--dim {dim}",
                found=found,
                hint="leave --dim out, or use --format glove",
                **place,  # type: ignore[arg-type]
            )

    def _as_word2vec(self, header: re.Match[bytes], dim: int | None) -> Detected:
        rows, width = int(header[1]), int(header[2])
        skip = min(header.end() + 1, len(self.head))
        place = {"path": self.label, "line": 1}
        body = self.text[skip:]
        self._check_header(header, body, dim)
        if not body.strip() and self.head[skip:].strip():
            raise self._row_too_long()
        profile = profile_text(body, len(body), SAMPLE_ROWS)
        counts = _widths(profile, body)
        common, times = counts.most_common(1)[0] if counts else (width, 0)
        if common == rows and common != width and times * 2 > len(profile):
            raise HeaderError(
                "header-swapped",
                "count and dimension in the header look swapped",
                expected=f"rows of {width} values",
                found=f"rows of {common}",
                hint=f"the first line should read: {width} {rows}",
                **place,  # type: ignore[arg-type]
            )
        self._refuse_wide_rows(profile, width, f"{width} from the header")
        if dim is None:
            self._refuse_lookalikes(profile, width, body, 2, True)
        return self._detected("word2vec", width, "from the header", rows, skip, 2, profile)

    # The rows.

    def _as_glove(self, dim: int | None, said: bool) -> Detected:
        body = self.text[self.bom :]
        profile = profile_text(body, len(body), SAMPLE_ROWS)
        if not profile:
            raise self._row_too_long() if self.head[self.bom :].strip() else self._no_rows()
        if dim is None:
            dim, dim_from = self._commonest_width(profile, body), "as in most rows"
            self._refuse_wide_rows(profile, dim, f"{dim}, the commonest number")
            self._refuse_lookalikes(profile, dim, body, 1, said)
        else:
            dim_from = "from --dim"
            self._refuse_wide_rows(profile, dim, f"{dim} from --dim")
        return self._detected("glove", dim, dim_from, None, self.bom, 1, profile)

    def _commonest_width(self, profile: list[tuple[int, int, int, int]], body: bytes) -> int:
        ranked = _widths(profile, body).most_common()
        best = [width for width, times in ranked if times == ranked[0][1]]
        first = profile[:20]
        if is_array_over_lines([body[start:end] for start, end, _, _ in profile[:ROWS]]):
            raise self._not_vectors(1, PRINTED_ARRAY)
        # Rows of plain numerals, wider than one, need no explanation.
        odd = [(start, end) for start, end, fields, numerals in first if numerals < fields - 1 or fields <= 2]
        if best == [0] or sum(explain_row(body[start:end]) is not None for start, end in odd) * 2 > len(first):
            self._refuse_words(profile, body)
        if len(best) > 1:
            listed = ", ".join(map(str, sorted(best)))
            raise FormatError(
                "ambiguous-dim",
                f"rows of {listed} values are equally common",
                path=self.label,
                hint=f"say which dimension is right, such as --dim {max(best)}",
            )
        return best[0]

    def _refuse_words(self, profile: list[tuple[int, int, int, int]], body: bytes) -> None:
        """The rows end in no number: say what they look like."""
        start, end, _, _ = profile[0]
        row = body[start:end]
        line = body.count(b"\n", 0, start) + 1
        known = next((k for s, e, _, _ in profile[:20] if (k := explain_row(body[s:e])) is not None), None)
        if known is not None:
            raise self._not_vectors(line, known)
        raise FormatError(
            "no-values",
            "the rows end in no numbers",
            path=self.label,
            line=line,
            expected="a token and its values, separated by spaces or tabs",
            found=shown(row),
            hint="this does not look like a file of word vectors",
        )

    def _refuse_lookalikes(
        self, profile: list[tuple[int, int, int, int]], dim: int, body: bytes, first_line: int, dim_is_known: bool
    ) -> None:
        """Refuse rows that end in as many numbers as they should, but are not tokens with vectors."""
        rows = [body[start:end] for start, end, fields, numerals in profile[:ROWS] if min(numerals, fields - 1) >= dim]
        found = lookalike(rows, dim, dim_is_known)
        if found is not None:
            raise self._not_vectors(first_line, found)

    def _not_vectors(self, line: int, what: tuple[str, str, str]) -> FormatError:
        slug, found, advice = what
        message = "the rows are not word vectors"
        return FormatError(f"is-{slug}", message, path=self.label, line=line, found=found, hint=advice)

    def _refuse_wide_rows(self, profile: list[tuple[int, int, int, int]], dim: int, claim: str) -> None:
        """If most tokens seem to end in numbers, these are values, and the dimension is wrong."""
        wide = Counter(min(n, fields - 1) for _, _, fields, n in profile if fields - dim >= 2 and n > dim)
        if sum(wide.values()) * 2 <= len(profile):
            return
        common, _ = wide.most_common(1)[0]
        hint = f"are there several values a word too many? correct the dimension to {common}"
        if common == 2 * (dim + 1):
            hint = (
                "GloVe's -model 0 writes word vector, bias, context vector and bias in one row: "
                "write the vectors again with -model 1 or 2"
            )
        raise HeaderError(
            "dim-too-small",
            "the rows have several values a word too many",
            path=self.label,
            expected=claim,
            found=f"{common} values in most rows",
            hint=hint,
        )

    def _detected(
        self,
        format: str,
        dim: int,
        dim_from: str,
        header_rows: int | None,
        skip: int,
        first_line: int,
        profile: list[tuple[int, int, int, int]],
    ) -> Detected:
        sampled = profile[-1][1] + 1 if profile else 0
        return Detected(format, dim, dim_from, header_rows, skip, first_line, len(profile), sampled)


def _widths(profile: list[tuple[int, int, int, int]], body: bytes) -> Counter[int]:
    """How often rows have how many values: numerals at their end, less the token, which may be white space alone."""
    return Counter(min(numerals, fields - (body[start] not in b" \t")) for start, _, fields, numerals in profile)


def _looks_binary(body: bytes) -> bool:
    """Whether what follows a header are records of floats: its first line ends in no number and holds control bytes."""
    piece = body[:400]
    fields = piece.split(b"\n", 1)[0].split()
    ends_in_number = bool(fields) and _NUMBER.fullmatch(fields[-1]) is not None
    return not ends_in_number and any(byte < 9 or 13 < byte < 32 for byte in piece)
