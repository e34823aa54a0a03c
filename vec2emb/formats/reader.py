"""`RowReader`: what the readers of all formats have in common."""

from __future__ import annotations

from .._kernel import Block, Policy, check, fill
from ..errors import InputError
from .described import ReadAs
from .recoding import Recoder


class RowReader:
    """Cuts a source into blocks of rows and reads them; one object serves all workers of a pass.

    `read` is called under a lock, in order; everything else works on a block of the caller's.

    Attributes:
        dim: values a row.
        policy: what is done about odd tokens, rows and values.
        missing_lf: whether the last row lacked its LF, once it was read.
    """

    missing_lf = False

    def __init__(
        self,
        label: str,
        dim: int,
        read_as: ReadAs,
        policy: Policy,
        dtype: str,
        *,
        width: int = 0,
        big_endian: bool = False,
    ) -> None:
        self.dim = dim
        self.policy = policy
        self._label = label
        self._dtype = dtype
        self._encoding = read_as.encoding
        self._recoder = Recoder(read_as.encoding, read_as.encoding_errors)
        self._layout = width, big_endian

    def new_block(self) -> Block:
        """An empty block for `read`."""
        return Block(self.dim, *self._layout)

    def read(self, block: Block) -> bool:
        """Read the next block; False at the end.

        Raises:
            InputError: reading fails.
        """
        raise NotImplementedError

    def cancel(self) -> None:
        """End a `read` that waits for a slow source in another thread; nothing can be read after this."""

    def scan(self, block: Block) -> None:
        """Find the rows of a block."""
        if not self.policy.utf8:
            self._recoder.recode(block)

    def hard_fault(self, block: Block) -> int:
        """The first row whose fault cannot be skipped, or -1."""
        return -1

    def check(self, block: Block) -> None:
        """Find the faults in the numbers of all rows."""
        check(block, self.policy)

    def fill(self, block: Block, start: int, stop: int, out: bytearray) -> int:
        """Write the vectors of kept rows start .. stop-1 to `out`; the first with a hard fault, or -1."""
        return fill(block, start, stop, out, self.policy)

    def error(self, block: Block, row: int) -> InputError:
        """What is wrong with a row."""
        raise NotImplementedError
