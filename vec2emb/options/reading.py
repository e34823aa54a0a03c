"""How a source of vectors is read."""

from __future__ import annotations

from .choices import BAD_ROWS, BINARY_DTYPES, BYTE_ORDERS, DUPLICATES, ENCODING_ERRORS, FORMATS, MAX_DIM, NONFINITE
from .definition import BOOL, NONE, REQUIRED, TEXT, Option, checked_within, whole

INPUT, ROWS = "Input", "Rows"

SOURCE = Option("source", checked_within("SourceLike"), default=REQUIRED, kind="positional", only="python")
MEMBER = Option(
    "member", TEXT | NONE,
    "Member of an archive to read; of an .npz, the array of vectors.",
    usual="its only table, or that of --dim", heading=INPUT, metavar="NAME", recorded="member",
)  # fmt: skip
SHA256 = Option(
    "sha256", TEXT | NONE, "Expected SHA-256 of SOURCE (before decompression).", heading=INPUT, metavar="HEX"
)
ALLOW_PICKLE = Option(
    "allow_pickle", BOOL, "Open a .kv or .model of gensim: a pickle, which can run any code.", False, heading=INPUT
)
FORMAT = Option(
    "format", TEXT, "Format of SOURCE: word2vec has a header (fastText .vec too), glove has none.",
    "auto", FORMATS, "unknown-format", INPUT, recorded="format",
)  # fmt: skip
DIM = Option(
    "dim", whole(1, MAX_DIM) | NONE, "Number of values per row, if there is no header.",
    code="dim-range", heading=INPUT, metavar="N", recorded="dim",
)  # fmt: skip
LIMIT = Option(
    "limit", whole(1) | NONE, "Read only the first N rows.",
    code="limit-range", heading=INPUT, metavar="N", recorded="limit",
)  # fmt: skip
ENCODING = Option(
    "encoding", TEXT, "Encoding of the tokens.", "utf-8", heading=INPUT, metavar="NAME", recorded="encoding"
)
ENCODING_ERROR = Option(
    "encoding_errors", TEXT, "What to do if a token cannot be decoded.",
    "error", tuple(ENCODING_ERRORS), "encoding-errors", INPUT, recorded="encoding_errors",
)  # fmt: skip
BINARY_DTYPE = Option(
    "binary_dtype", TEXT | NONE, "Type of Word2Vec binary values.",
    None, BINARY_DTYPES, "binary-dtype", INPUT, usual="float32, checked", recorded="binary_dtype",
)  # fmt: skip
BYTE_ORDER = Option(
    "byte_order", TEXT | NONE, "Byte order of Word2Vec binary values.",
    None, BYTE_ORDERS, "byte-order", INPUT, usual="little, checked", recorded="byte_order",
)  # fmt: skip
DUPLICATE = Option(
    "duplicates", TEXT, "Which vector to keep if a token is repeated.",
    "first", DUPLICATES, "duplicates", ROWS, recorded="duplicates",
)  # fmt: skip
BAD_ROW = Option(
    "bad_rows", TEXT, "What to do at a faulty row.", "error", BAD_ROWS, "bad-rows-policy", ROWS, recorded="bad_rows"
)
NONFINITE_ROW = Option(
    "nonfinite", TEXT, "What to do at nan and inf.", "error", NONFINITE, "nonfinite-policy", ROWS, recorded="nonfinite"
)
UNIT_NORM = Option(
    "unit_norm", BOOL, "Scale each row to length 1; rows of zeros stay.", False, heading=ROWS, recorded="unit_norm"
)

# In the order in which signatures and help have them.
INPUT_OPTIONS = (
    MEMBER, SHA256, ALLOW_PICKLE, FORMAT, DIM, LIMIT, ENCODING, ENCODING_ERROR, BINARY_DTYPE, BYTE_ORDER,
)  # fmt: skip
ROW_OPTIONS = (DUPLICATE, BAD_ROW, NONFINITE_ROW, UNIT_NORM)
READING = (*INPUT_OPTIONS, *ROW_OPTIONS)


def without(options: tuple[Option, ...], *names: str) -> tuple[Option, ...]:
    """A list of options less some."""
    return tuple(option for option in options if option.name not in names)
