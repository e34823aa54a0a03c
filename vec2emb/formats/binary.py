"""Reading Word2Vec binary.

Grammar, in bytes:

    file    = count SPACE dim LF record{count} [LF]
    record  = [LF] token SPACE value{dim}
    value   = IEEE 754, 4 bytes, little-endian (2 or 8 bytes, or big-endian, where an option says so)

word2vec.c writes an LF behind every vector, gensim and GoogleNews do not; so one LF in front of a token is a separator,
decided for each record. What this format cannot carry: a token that is empty, or holds a space, LF or NUL, or starts
with LF. Nothing marks the start of a record: after one wrong length all is noise, which is why such a fault always ends
the reading.
"""

from __future__ import annotations

import struct

from .._kernel import Block, Policy, scan_binary
from .._kernel.codes import Fault
from ..errors import InputError, RowError, SourceError, shown
from ..io.sources import Source
from .blocks import grow
from .described import Detected, ReadAs
from .faults import CODES
from .reader import RowReader

TOKEN_LIMIT = 64 << 10  # bytes; a longer token is no token


class BinaryRecords(RowReader):
    """Records of Word2Vec binary."""

    def __init__(
        self, source: Source, detected: Detected, read_as: ReadAs, policy: Policy, block_bytes: int, dtype: str
    ) -> None:
        width, big_endian = read_as.width, read_as.byte_order == "big"
        super().__init__(
            source.label, detected.dim, read_as, policy, dtype, width=width, big_endian=big_endian
        )  # fmt: skip
        self._source = source
        self._width = width
        self._promised = self._left = detected.header_rows or 0  # records in all, and still to come
        self._offset = detected.skip
        self._block_bytes = max(block_bytes, 16)
        self._carry = b""
        self._done = False

    def cancel(self) -> None:
        self._source.cancel()

    def read(self, block: Block) -> bool:
        """Read the next block and find its records; False at the end.

        Raises:
            SourceError: the file ends inside a record, or goes on after the last.
            RowError: no record can be found.
        """
        buffer = block.buffer
        carry, self._carry = self._carry, b""
        size = len(carry)
        grow(buffer, max(self._block_bytes, size))
        buffer[:size] = carry
        block.offset = self._offset
        while True:
            if not self._done and size < len(buffer):
                with memoryview(buffer) as view:
                    size += self._source.readinto(view[size:])
                self._done = size < len(buffer)
            if not self._left:
                self._check_tail(bytes(memoryview(buffer)[:size]))
                return False
            block.size = size
            # A header may promise more records than the kernel can count.
            block.size = used = scan_binary(block, min(self._left, size), self.policy)
            if used:
                self._carry = bytes(memoryview(buffer)[used:size])
                self._left -= block.rows.count
                self._offset += used
                return True
            self._check_more(buffer, size, self._offset)
            grow(buffer, 2 * len(buffer))

    def hard_fault(self, block: Block) -> int:
        """The first record that shows that records do not line up, or -1."""
        rows = block.rows
        first = rows.first_fault()
        if first < 0:
            return -1
        return next((r for r in range(first, rows.count) if rows.fault_of(r)[0] == Fault.NUL_IN_TOKEN), -1)

    def error(self, block: Block, row: int) -> InputError:
        record = block.line(row)
        fault, start, stop = block.rows.fault_of(row)
        detail = bytes(block.buffer[start:stop])
        place = {"path": self._label, "record": record, "offset": block.offset + start}
        skip = "--bad-rows skip leaves such records out"
        if fault == Fault.NUL_IN_TOKEN:
            return self._misaligned(record, block.offset + start, detail)
        if fault == Fault.EMPTY_TOKEN:
            return RowError(CODES[Fault(fault)], "the record has an empty token", hint=skip, **place)  # type: ignore[arg-type]
        if fault == Fault.INVALID_UTF8:
            return RowError(
                CODES[Fault(fault)],
                f"the token is not {self._encoding.upper()}",
                found=f"the bytes {detail[:40].hex(' ')} ({shown(detail[:40])})",
                hint=f"--encoding NAME reads another encoding, --encoding-errors replace or escape takes it; {skip}",
                **place,  # type: ignore[arg-type]
            )
        letter = {2: "e", 4: "f", 8: "d"}[self._width]
        found = None
        if len(detail) == self._width:
            found = str(struct.unpack(("<", ">")[block.big_endian] + letter, detail)[0])
        if fault == Fault.OUT_OF_RANGE:
            what = f"a value does not fit {self._dtype}"
            return RowError(CODES[Fault(fault)], what, found=found, hint=skip, **place)  # type: ignore[arg-type]
        return RowError(
            CODES[Fault(fault)],
            "a value is not finite",
            expected="finite numbers",
            found=found,
            hint=f"--nonfinite keep takes them as they are, --nonfinite zero writes 0; {skip}",
            **place,  # type: ignore[arg-type]
        )

    def _misaligned(self, record: int, offset: int, token: bytes) -> RowError:
        return RowError(
            "binary-misaligned",
            "the records do not line up",
            path=self._label,
            record=record,
            offset=offset,
            expected="a token",
            found=shown(token[:40]),
            hint="a token before it holds a space, or the values are not "
            f"{self.dim} of {self._width} bytes; was the file transferred as text?",
        )

    def _check_more(self, buffer: bytearray, size: int, offset: int) -> None:
        """Raise if the bytes at hand are no record and never will be."""
        record_bytes = TOKEN_LIMIT + self.dim * self._width + 2
        found = buffer.find(b" ", 0, min(size, TOKEN_LIMIT))
        if (found < 0 and size >= TOKEN_LIMIT) or size >= record_bytes:
            raise self._misaligned(self._record_number(), offset, bytes(buffer[:40]))
        if self._done:
            if self._source.failure is not None:
                raise self._source.failure
            raise SourceError(
                "binary-cut",
                "the file ends inside a record" if size else "the file ends before its last record",
                path=self._label,
                record=self._record_number(),
                offset=offset,
                expected=f"{self._left} more record{'s' if self._left > 1 else ''}",
                found=f"{size} bytes",
                hint="the file is cut off: get it again",
            )

    def _record_number(self) -> int:
        return self._promised - self._left + 1

    def _check_tail(self, tail: bytes) -> None:
        """Behind the last record there is nothing, or the LF that word2vec.c writes."""
        if self._done and tail in (b"", b"\n"):
            return
        raise SourceError(
            "binary-trailing-bytes",
            "the file goes on after the last record that its header promises",
            path=self._label,
            offset=self._offset,
            expected=f"{self._promised} records",
            found="more bytes",
            hint="the header's count or dimension is wrong, or the values have another width",
        )
