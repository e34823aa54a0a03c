"""The merges of a BPE model: which tokens a token is built from.

BPE starts with the characters of a word and joins the adjacent pair of lowest rank, leftmost first, until no pair has a
merge. Inside a token of the result no step looks beyond the token: a pair that crosses its border and was joined would
have moved the border. So a token has the same history in every text, which is the one it has when it is encoded alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from ..errors import InputError, shown


class Merges:
    """Pairs of tokens that are joined, by rank.

    Attributes:
        prefix: marks pieces inside a word (`continuing_subword_prefix`), or empty.
        suffix: marks the last piece of a word (`end_of_word_suffix`), or empty.
    """

    def __init__(
        self, lines: list[Any], vocabulary: Mapping[str, int], *, prefix: str = "", suffix: str = "", path: str
    ) -> None:
        """Read the merges of a tokenizer.json: `["a", "b"]` or `"a b"` each.

        The list is emptied on the way: half a million of them take 100 MB as objects of Python, and 6 MB here.

        Raises:
            InputError: an entry is not a pair, or one of its tokens is not in the vocabulary.
        """
        self.prefix = prefix
        self.suffix = suffix
        self._vocabulary = vocabulary
        self._are_lines = bool(lines) and isinstance(lines[0], str)
        self._parts = array("i"), array("i")
        self._results = array("i")
        self._ranks: dict[int, int] = {}
        lines.reverse()
        while lines:
            left, right = _pair(lines.pop(), len(self._results), path)
            tokens = (left, right, left + right[len(prefix) :])
            for token, ids in zip(tokens, (*self._parts, self._results), strict=True):
                if token not in vocabulary:
                    raise InputError(
                        "tokenizer-invalid",
                        f"merge {len(self._results) + 1} needs a token that is not in the vocabulary",
                        path=path,
                        found=shown(token),
                    )
                ids.append(vocabulary[token])
            self._ranks[_key(self._parts[0][-1], self._parts[1][-1])] = len(self._results) - 1

    def ancestors(self, token: str) -> set[int]:
        """Return the ids of all tokens that are joined on the way to `token`, without its own.

        Empty if the merges never give the token: then no text makes it of others.
        """
        vocabulary = self._vocabulary
        symbols = [vocabulary.get(piece, -1) for piece in self._characters(token)]
        used = set(symbols)
        while len(symbols) > 1:
            best, at = min(
                ((self._ranks.get(_key(a, b), len(self._results)), i) for i, (a, b) in enumerate(pairwise(symbols))),
            )
            if best == len(self._results):
                return set()
            symbols[at : at + 2] = [self._results[best]]
            used.add(symbols[at])
        return used - {vocabulary[token]} if symbols == [vocabulary[token]] else set()

    def pairs(self, kept: Container[int], tokens: Sequence[str | None]) -> Iterator[tuple[str, str]]:
        """Yield, by rank, the merges whose two tokens and result are all in `kept`."""
        for left, right, result in zip(*self._parts, self._results, strict=True):
            if left in kept and right in kept and result in kept:
                yield str(tokens[left]), str(tokens[right])

    def written(self, pairs: Iterable[tuple[str, str]]) -> list[Any]:
        """Return pairs in the form that the file had them in."""
        return [" ".join(pair) if self._are_lines else list(pair) for pair in pairs]

    def _characters(self, token: str) -> list[str]:
        """The symbols that BPE starts from to make a token."""
        ends = bool(self.suffix) and token.endswith(self.suffix)
        continues = bool(self.prefix) and token.startswith(self.prefix)
        text = token[len(self.prefix) if continues else 0 : len(token) - (len(self.suffix) if ends else 0)]
        pieces = [self.prefix + one if i or continues else one for i, one in enumerate(text)]
        if ends and pieces:
            pieces[-1] += self.suffix
        return pieces


def _pair(line: object, rank: int, path: str) -> tuple[str, str]:
    pair = line.split(" ") if isinstance(line, str) else line
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(token, str) for token in pair):
        raise InputError(
            "tokenizer-invalid", f"merge {rank + 1} must be two tokens", path=path, found=shown(repr(line))
        )
    return pair[0], pair[1]


def _key(left: int, right: int) -> int:
    return left << 32 | right & 0xFFFFFFFF
