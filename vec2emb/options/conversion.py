"""The options of `convert`, `read_vectors` and `iter_vectors`, in the order of their signatures."""

from __future__ import annotations

from . import model, output, reading, words
from .reading import READING, SOURCE

CONVERT = (
    SOURCE,
    output.OUT_UNLESS_DRY,
    *reading.INPUT_OPTIONS,
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
READ_VECTORS = (SOURCE, *READING, output.THREADS, output.STRICT, output.PROGRESS)
ITER_VECTORS = (SOURCE, *READING, output.STRICT)
