"""The small integers that both kernels speak; `*.hpp` repeats them and a test compares the two."""

from enum import IntEnum, IntFlag

ROW_IS_SEPARATED_BY = b" \t"


class Fault(IntEnum):
    """What is wrong with a row. A row has at most one fault: the first of this order."""

    NONE = 0
    TOO_FEW_VALUES = 1
    EMPTY_TOKEN = 2
    NUL_IN_TOKEN = 3
    INVALID_UTF8 = 4
    NOT_A_NUMERAL = 5
    OUT_OF_RANGE = 6
    NONFINITE_VALUE = 7


class Note(IntFlag):
    """What is odd about a row, though it loads."""

    EXCESS_SEPARATORS = 1
    NUMERAL_ENDED_TOKEN = 2
    CR_IN_TOKEN = 4
    NONFINITE = 8
    RECODED = 16  # the token lost bytes that its encoding does not have


class State(IntEnum):
    """What selection decided about a row."""

    UNDECIDED = 0
    NEW = 1  # the first row of this token in the file
    SEEN = 2  # a later row of a token that the file had before
    ABSENT = 3  # a token that nobody asked for
    FAULTY = 4  # would be NEW, but the row has a fault and faults are skipped


class Nonfinite(IntEnum):
    """What becomes of `nan` and `inf`."""

    ERROR = 0
    KEEP = 1
    ZERO = 2


class Cast(IntEnum):
    """Two-byte types that finished rows can be cast to."""

    FLOAT16 = 1
    BFLOAT16 = 2
