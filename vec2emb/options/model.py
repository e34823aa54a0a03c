"""How a table enters a model: positions, scale, names of tensors, and which rows train."""

from __future__ import annotations

from ..positions.key_styles import KINDS, MAX_ROWS, PRESETS, STYLES
from .definition import BOOL, MANY, NONE, NUMBER, PATH, TEXT, Option, whole

POSITIONS, TRAINING, NAMES = "Positions", "Training", "Names"

POSITION_TABLE = Option(
    "positions", TEXT, "Add a position table; `vec2emb positions` has more choices.",
    "none", ("none", *KINDS), "positions-kind", POSITIONS, recorded="positions",
)  # fmt: skip
MAX_POSITIONS = Option(
    "max_positions", whole(1, MAX_ROWS) | NONE, "How many positions a text may use.",
    code="max-positions", heading=POSITIONS, metavar="N", recorded="max_positions",
)  # fmt: skip
PRESET = Option(
    "position_preset", TEXT | NONE, "Sinusoid convention.",
    None, tuple(PRESETS), "unknown-preset", POSITIONS, usual="vaswani", recorded="position_preset",
)  # fmt: skip
TRAIN_POSITIONS = Option(
    "train_positions", BOOL | NONE, "Record whether positions train.", heading=POSITIONS,
    flags=("--train-positions/--freeze-positions",), usual="a learned table trains, a sinusoidal one does not",
    recorded="train_positions",
)  # fmt: skip
SCALE_LIKE = (TEXT | NUMBER).named("ScaleLike")
SCALE = Option(
    "scale", SCALE_LIKE,
    "Factor that the module multiplies words by: none, sqrt-dim, unit-rms, match-positions or a number. Stored rows do "
    "not change.",
    "none", heading=POSITIONS, metavar="SCALE", recorded="scale",
)  # fmt: skip
POSITION_OPTIONS = (POSITION_TABLE, MAX_POSITIONS, PRESET, TRAIN_POSITIONS, SCALE)

TRAIN_LIKE = (PATH | MANY).named("TrainLike")
TRAIN_ROWS = Option(
    "train_rows", TRAIN_LIKE | NONE,
    "Record which rows train: all, new (special tokens that were set, and missing words), or a FILE of words.",
    usual="all, or as a bundle records", heading=TRAINING, metavar="ROWS", recorded="train_rows",
)  # fmt: skip
FREEZE = Option("freeze", BOOL, "Record that no row trains.", False, heading=TRAINING)
TRAIN_OPTIONS = (TRAIN_ROWS, FREEZE)

STYLE = Option(
    "key_style", TEXT, "Naming convention of the tensors.",
    "plain", tuple(STYLES), "key-style", NAMES, recorded="key_style",
)  # fmt: skip
WORD_KEY = Option(
    "word_key", TEXT | NONE, "Name of the word table.",
    usual="that of the style", heading=NAMES, metavar="KEY", recorded="word_key",
)  # fmt: skip
POSITION_KEY = Option(
    "position_key", TEXT | NONE, "Name of the position table.",
    usual="that of the style", heading=NAMES, metavar="KEY", recorded="position_key",
)  # fmt: skip
TIED_HEAD = Option(
    "tied_head", TEXT | NONE, "Name of the output head that shares the word table, recorded.",
    heading=NAMES, metavar="KEY", recorded="tied_head",
)  # fmt: skip
NAME_OPTIONS = (STYLE, WORD_KEY, POSITION_KEY, TIED_HEAD)
