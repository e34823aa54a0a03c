"""The options of `convert`, `read_vectors` and `iter_vectors`, in the order of their signatures."""

from __future__ import annotations

from . import model, output, reading, words
from .definition import checked_within
from .reading import READING, SOURCE

CONVERT = (
    SOURCE.but(type=checked_within("SourceLike | None"), default=None),
    output.OUT_UNLESS_DRY,
    *reading.INPUT_OPTIONS,
    words.FROM_SCRATCH,
    *words.WORD_OPTIONS,
    *reading.ROW_OPTIONS,
    *words.SPECIAL_OPTIONS,
    *model.POSITION_OPTIONS,
    *model.TRAIN_OPTIONS,
    output.DTYPE,
    output.SHARD_SIZE,
    *model.NAME_OPTIONS,
    output.LICENSE,
    output.SOURCE_URL,
    output.IF_BUNDLE_EXISTS,
    output.EXPECT,
    output.ROW_REPORT,
    output.DRY_RUN,
    output.STRICT,
    *output.RUNNING,
)
# They say how SOURCE is read or what is recorded of it, and so mean nothing without one.
OF_SOURCE = (
    *READING, words.SUBWORD_PIECES, words.CASE_FALLBACK, words.ZERO_PADDING, output.LICENSE, output.SOURCE_URL,
)  # fmt: skip
READ_VECTORS = (SOURCE, *READING, output.THREADS, output.STRICT, output.PROGRESS)
ITER_VECTORS = (SOURCE, *READING, output.STRICT)
