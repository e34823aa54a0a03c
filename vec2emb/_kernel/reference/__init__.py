"""The kernel in plain Python: the specification that the native one must meet.

Nothing here is fast and everything should be readable. Each function has a native namesake with the
same arguments, the same results and the same faults; the whole suite runs through both.

Read in this order: `rows` (what a scan finds), `blocks` (what goes in), `numbers` (what a numeral is), `text`
and `binary` (the layouts of a row), `filling` (vectors of rows), `tokens` (the index that gives each token its id),
`counting` (how often each token occurs in text), `arithmetic` (sums and casts over finished rows), `writing`
(rows of text, for exports).
"""

from .arithmetic import add_rows, add_square_deviations, cast_rows
from .binary import scan_binary, scan_tokens
from .blocks import Block, Policy
from .counting import TokenCounter
from .filling import check, fill
from .rows import Rows
from .text import profile_text, scan_text
from .tokens import TokenIndex
from .writing import format_rows

__all__ = [  # the names of both kernels
    "Block",
    "Policy",
    "Rows",
    "TokenCounter",
    "TokenIndex",
    "add_rows",
    "add_square_deviations",
    "cast_rows",
    "check",
    "fill",
    "format_rows",
    "profile_text",
    "scan_binary",
    "scan_text",
    "scan_tokens",
]
