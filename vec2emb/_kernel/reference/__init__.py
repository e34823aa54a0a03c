"""The kernel in plain Python: the specification that the native one must meet.

Nothing here is fast and everything should be readable. Each function has a native namesake with the
same arguments, the same results and the same faults; the whole suite runs through both.

Read in this order: `rows` (what a scan finds), `numbers` (what a numeral is), `text` and `binary`
(the two layouts of a row), `tokens` (the index that gives each token its id), `arithmetic` (sums and
casts over finished rows).
"""

from .arithmetic import add_rows, add_square_deviations, cast_rows
from .binary import check_binary, fill_binary, scan_binary
from .rows import Rows
from .text import check_text, fill_text, profile_text, scan_text
from .tokens import TokenIndex

NAME = "reference"

__all__ = [
    "NAME",
    "Rows",
    "TokenIndex",
    "add_rows",
    "add_square_deviations",
    "cast_rows",
    "check_binary",
    "check_text",
    "fill_binary",
    "fill_text",
    "profile_text",
    "scan_binary",
    "scan_text",
]
