"""The kernel in plain Python: the specification that the native one must meet.

Nothing here is fast and everything should be readable. Each function has a native namesake with the
same arguments, the same results and the same faults; the whole suite runs through both.

Read in this order: `rows` (what a scan finds), `numbers` (what a numeral is), `text` and `binary`
(the layouts of a row), `tokens` (the index that gives each token its id), `counting` (how often each
token stands in text), `arithmetic` (sums and casts over finished rows), `writing`
(rows of text, for exports).
"""

from .arithmetic import add_rows, add_square_deviations, cast_rows
from .binary import check_binary, fill_binary, scan_binary, scan_tokens
from .counting import TokenCounter
from .rows import Rows
from .text import check_text, fill_text, profile_text, scan_text
from .tokens import TokenIndex
from .writing import format_rows

NAME = "reference"

__all__ = [
    "NAME",
    "Rows",
    "TokenCounter",
    "TokenIndex",
    "add_rows",
    "add_square_deviations",
    "cast_rows",
    "check_binary",
    "check_text",
    "fill_binary",
    "fill_text",
    "format_rows",
    "profile_text",
    "scan_binary",
    "scan_text",
    "scan_tokens",
]
