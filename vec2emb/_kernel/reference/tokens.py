"""`TokenIndex`: tokens, as bytes, in the order they came; each knows its id, and whether the file had it yet."""

from __future__ import annotations

from collections.abc import Sequence

from ..codes import State
from .blocks import Bytes
from .rows import Rows


class TokenIndex:
    """An ordered set of tokens. The id of a token is its place in the order, from 0.

    A token never holds LF, so that the tokens joined by LF are a vocabulary file as it stands. Apart from its
    id each token carries one bit, *met*: whether a row of the file has borne it. Tokens that are put in by hand
    (special tokens, a vocabulary given) start unmet; so the first row that bears such a token is NEW, not SEEN.
    """

    def __init__(self, expected: int = 0) -> None:
        """`expected` is a hint of how many tokens will come; it changes speed only."""
        self._ids: dict[bytes, int] = {}
        self._tokens: list[bytes] = []
        self._met: list[bool] = []
        self.first_duplicate: tuple[int, int] | None = None

    @classmethod
    def over(cls, blob: Bytes, start: int = 0) -> TokenIndex:
        """The index of the lines of blob[start:], each ended by LF; the native one refers to the blob, not to a copy.

        If two lines are the same, `first_duplicate` is (the earlier line, the later line) of the first such
        pair, lines counted from 0; looking the token up gives the earlier one.

        Raises:
            ValueError: the blob is not empty and does not end with LF.
        """
        index = cls()
        text = bytes(blob[start:])
        if text and not text.endswith(b"\n"):
            raise ValueError("the last line does not end with LF")
        for token in text.split(b"\n")[:-1]:
            id = len(index._tokens)
            earlier = index._ids.setdefault(token, id)
            if earlier != id and index.first_duplicate is None:
                index.first_duplicate = (earlier, id)
            index._tokens.append(token)
            index._met.append(False)
        return index

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def nbytes(self) -> int:
        """Bytes of all tokens, each with its LF."""
        return sum(map(len, self._tokens)) + len(self._tokens)

    def add(self, token: bytes) -> int:
        """The id of a token, which is put in if it is not there; it stays unmet."""
        if b"\n" in token:
            raise ValueError("a token cannot hold LF")
        id = self._ids.setdefault(token, len(self._tokens))
        if id == len(self._tokens):
            self._tokens.append(token)
            self._met.append(False)
        return id

    def get(self, token: bytes) -> int:
        """The id of a token, or -1."""
        return self._ids.get(token, -1)

    def token(self, id: int) -> bytes:
        """The token of an id.

        Raises:
            IndexError: no token has this id.
        """
        if not 0 <= id < len(self._tokens):
            raise IndexError(f"id {id} in an index of {len(self._tokens)} tokens")
        return self._tokens[id]

    def met(self, id: int) -> bool:
        """Whether a row of the file bore this token."""
        return self._met[id]

    def unmet(self, start: int) -> list[int]:
        """The ids, from `start` on, that no row bore."""
        return [id for id in range(start, len(self._met)) if not self._met[id]]

    def blob(self, start: int, stop: int) -> bytes:
        """The tokens of the ids start .. stop-1, each followed by LF."""
        return b"".join(token + b"\n" for token in self._tokens[start:stop])

    def find(self, tokens: Sequence[str], out: bytearray | memoryview, missing: int) -> int:
        """Write the ids of `tokens` to `out`, int64[n]; `missing` for those that are not there.

        Strings that have no UTF-8 form (lone surrogates) are not there.

        Returns:
            The position of the first missing token, or -1.
        """
        target = memoryview(out).cast("B").cast("q")
        if len(target) < len(tokens):
            raise ValueError("the ids do not fit")
        first = -1
        for i, token in enumerate(tokens):
            try:
                id = self._ids.get(token.encode(), -1)
            except UnicodeEncodeError:
                id = -1
            if id < 0 and first < 0:
                first = i
            target[i] = id if id >= 0 else missing
        return first

    def add_rows(self, data: Bytes, rows: Rows, asked_only: bool = False) -> None:
        """Give every row its id and its state; tokens that are new are put in, in row order.

        A row with a fault never puts a token in: it is FAULTY, unless the file had the token before, in which case
        it is SEEN like any other. With `asked_only`, rows that an earlier look-up found ABSENT or FAULTY stay so.
        """
        for row in range(rows.count):
            if asked_only and rows.state[row] in (State.ABSENT, State.FAULTY):
                continue
            token = rows.token(data, row)
            id = self._ids.get(token, -1)
            if id >= 0 and self._met[id]:
                rows.id[row], rows.state[row] = id, State.SEEN
            elif rows.fault[row]:
                rows.id[row], rows.state[row] = id, State.FAULTY
            else:
                id = self.add(token)
                self._met[id] = True
                rows.id[row], rows.state[row] = id, State.NEW

    def find_rows(self, data: Bytes, rows: Rows) -> None:
        """As `add_rows`, but nothing is put in: rows of other tokens are ABSENT."""
        for row in range(rows.count):
            id = self._ids.get(rows.token(data, row), -1)
            rows.id[row] = id
            if id < 0:
                rows.state[row] = State.ABSENT
            elif self._met[id]:
                rows.state[row] = State.SEEN
            elif rows.fault[row]:
                rows.state[row] = State.FAULTY
            else:
                self._met[id] = True
                rows.state[row] = State.NEW
