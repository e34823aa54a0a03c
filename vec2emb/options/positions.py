"""Position tables that are attached or resized; what `convert` has of them is in `model.py`."""

from __future__ import annotations

from ..positions.key_styles import FREQUENCIES, INITS, KINDS, LAYOUTS, MAX_ROWS, METHODS, ODD
from .definition import BOOL, NONE, NUMBER, REQUIRED, TEXT, Option, whole
from .model import POSITIONS

SINUSOIDAL, LEARNED, METHOD, CHECKPOINT = "Sinusoidal table", "Learned table", "Method", "Checkpoint"

KIND = Option("kind", TEXT, "Kind of table.", REQUIRED, KINDS, "positions-kind", POSITIONS, kind="positional")
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
