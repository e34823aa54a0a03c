"""How a table enters a model: positions, scale, names of tensors, and which rows train."""

from __future__ import annotations

from ..positions.key_styles import FREQUENCIES, INITS, KINDS, LAYOUTS, MAX_ROWS, METHODS, ODD, PRESETS, STYLES
from .definition import BOOL, MANY, NONE, NUMBER, PATH, REQUIRED, TEXT, Option, checked_within, whole

POSITIONS, SINUSOIDAL, LEARNED, METHOD = "Positions", "Sinusoidal table", "Learned table", "Method"
TRAINING, NAMES, CHECKPOINT = "Training", "Names", "Checkpoint"

POSITION_TABLE = Option(
    "positions", TEXT, "Add a position table; `vec2emb positions` has more choices.",
    "none", ("none", *KINDS), "positions-kind", POSITIONS, recorded=True,
)  # fmt: skip
KIND = Option("kind", TEXT, "Kind of table.", REQUIRED, KINDS, "positions-kind", POSITIONS, kind="positional")
MAX_POSITIONS = Option(
    "max_positions", whole(1, MAX_ROWS) | NONE, "How many positions a text may use.",
    code="max-positions", heading=POSITIONS, metavar="N", recorded=True,
)  # fmt: skip
PRESET = Option(
    "position_preset", TEXT | NONE, "Sinusoid convention.",
    None, tuple(PRESETS), "unknown-preset", POSITIONS, usual="vaswani", recorded=True,
)  # fmt: skip
TRAIN_POSITIONS = Option(
    "train_positions", BOOL | NONE, "Record whether positions train.", heading=POSITIONS,
    flags=("--train-positions/--freeze-positions",), usual="a learned table trains, a sinusoidal one does not",
    recorded=True,
)  # fmt: skip
SCALE_LIKE = (TEXT | NUMBER).named("ScaleLike")
SCALE = Option(
    "scale", SCALE_LIKE,
    "Factor that the module multiplies words by: none, sqrt-dim, unit-rms, match-positions or a number. Stored rows do "
    "not change.",
    "none", heading=POSITIONS, metavar="SCALE", recorded=True,
)  # fmt: skip
POSITION_OPTIONS = (POSITION_TABLE, MAX_POSITIONS, PRESET, TRAIN_POSITIONS, SCALE)

OFFSET = Option(
    "offset", whole(0, MAX_ROWS) | NONE, "Number of rows before the first position.",
    code="offset-range", usual="as the key style or preset needs", heading=POSITIONS, metavar="N",
)  # fmt: skip
PADDING = Option(
    "padding_idx", whole(0, MAX_ROWS) | NONE,
    "Row for padding tokens, kept zero; positions then count the other tokens only.",
    code="padding-idx-range", usual="as the key style or preset needs", heading=POSITIONS, metavar="ROW",
    flags=("--padding",),
)  # fmt: skip
TABLE_OPTIONS = (
    Option("layout", TEXT | NONE, "Order of the columns.", None, LAYOUTS, "unknown-layout", SINUSOIDAL,
           usual="that of the preset"),
    Option("frequencies", TEXT | NONE, "Frequencies of the waves.", None, FREQUENCIES, "unknown-frequencies",
           SINUSOIDAL, usual="those of the preset"),
    Option("base", NUMBER | NONE, "Base of the frequencies: the longest wave has about 2 pi B rows.",
           heading=SINUSOIDAL, metavar="B", usual="10000"),
    Option("odd", TEXT | NONE, "What to do if the width is odd.", None, ODD, "unknown-odd", SINUSOIDAL,
           usual="that of the preset"),
    Option("start", NUMBER | NONE, "Angle of row 0.", heading=SINUSOIDAL, metavar="X", usual="0"),
    OFFSET,
    PADDING,
    Option("init", TEXT | NONE, "First values.", None, INITS, "unknown-init", LEARNED, usual="normal"),
    Option("std", NUMBER | NONE, "Standard deviation of the first values.", heading=LEARNED, metavar="S", usual="0.02"),
    Option("seed", whole() | NONE, "Seed of the random numbers.", code="seed-range", heading=LEARNED, metavar="N",
           usual="0"),
)  # fmt: skip

TO = Option(
    "to",
    whole(1, MAX_ROWS),
    "Usable positions of the result.",
    REQUIRED,
    code="max-positions",
    heading=METHOD,
    metavar="N",
)
RESIZING = (
    Option("method", TEXT | NONE, "How rows are made.  [required unless a formula makes them]", None, METHODS,
           "unknown-method", METHOD),
    Option("key", TEXT | NONE, "Resize only this table.", usual="all with a known name", heading=CHECKPOINT,
           metavar="NAME"),
    OFFSET.but(usual="from the configuration or the names", heading=CHECKPOINT),
    Option("alpha", NUMBER, "Weight of the hierarchical method.", 0.4, heading=METHOD, metavar="A"),
    Option("keep", whole(), "Rows that the stretch method keeps.", 20, code="keep-range", heading=METHOD, metavar="N"),
    Option("align_corners", BOOL, "Keep the first and the last row (linear and cubic).", False, heading=METHOD),
    Option("seed", whole(), "Seed of the random method.", 0, code="seed-range", heading=METHOD, metavar="N"),
)  # fmt: skip

TRAIN_LIKE = (PATH | MANY).named("TrainLike")
TRAIN_ROWS = Option(
    "train_rows", TRAIN_LIKE | NONE,
    "Record which rows train: all, new (special tokens that were set, and missing words), or a FILE of words.",
    usual="all", heading=TRAINING, metavar="ROWS", recorded=True,
)  # fmt: skip
FREEZE = Option("freeze", BOOL, "Record that no row trains.", False, heading=TRAINING)
TRAIN_FROM_NOW = TRAIN_ROWS.but(
    type=TRAIN_LIKE, default="added", usual=None,
    help="Record which rows train from now on: added, keep (as before), all, new, or a FILE of words.",
)  # fmt: skip
TRAIN_OPTIONS = (TRAIN_ROWS, FREEZE)

STYLE = Option(
    "key_style", TEXT, "Naming convention of the tensors.",
    "plain", tuple(STYLES), "key-style", NAMES, recorded=True,
)  # fmt: skip
WORD_KEY = Option(
    "word_key", TEXT | NONE, "Name of the word table.",
    usual="that of the style", heading=NAMES, metavar="KEY", recorded=True,
)  # fmt: skip
POSITION_KEY = Option(
    "position_key", TEXT | NONE, "Name of the position table.",
    usual="that of the style", heading=NAMES, metavar="KEY", recorded=True,
)  # fmt: skip
TIED_HEAD = Option(
    "tied_head", TEXT | NONE, "Name of the output head that shares the word table, recorded.",
    heading=NAMES, metavar="KEY", recorded=True,
)  # fmt: skip
NAME_OPTIONS = (STYLE, WORD_KEY, POSITION_KEY, TIED_HEAD)

# Of modules.
DTYPE = Option("dtype", checked_within("torch.dtype | None"))
DEVICE = Option("device", checked_within("torch.device | str | None"))
SPARSE = Option("sparse", BOOL, default=False)
MODULE_FREEZE = FREEZE.but(type=BOOL | NONE, default=None)
