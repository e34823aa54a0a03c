"""Proof of a cut tokenizer: a sample of the corpus, encoded with the original and with the cut one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from ..corpus.reading import Blocks
from ..corpus.splitting import tokenizer_of
from ..corpus.tally import texts_of
from ..io.progress import Progress
from .counts import Corpus, ids_differ

_SEED = 0
_BATCH = 500  # texts encoded at a time
_EXAMPLES = 20  # lost tokens that are shown with what they became


class LostToken(NamedTuple):
    """A token that the sample used and that is gone.

    Attributes:
        token: as the vocabulary had it.
        uses: how often the sample used it.
        text: a text piece it stood for.
        now: the tokens that this piece is encoded with now.
    """

    token: str
    uses: int
    text: str
    now: tuple[str, ...]


class Proof(NamedTuple):
    """What the sample showed.

    Attributes:
        texts: how many texts were encoded twice, special tokens included.
        identical: how many gave the same tokens.
        whole: how many used, with the original tokenizer, only tokens that were kept; all of them must be identical.
        broken: the first texts for which that is not so.
        tokens_before, tokens_after: length of all texts together.
        unknown_before, unknown_after: how many of these tokens are the unknown one.
        lost: the most frequent tokens of the sample that are gone.
        memory: the most memory that the process of the proof had, in bytes.
    """

    texts: int = 0
    identical: int = 0
    whole: int = 0
    broken: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    unknown_before: int = 0
    unknown_after: int = 0
    lost: tuple[LostToken, ...] = ()
    memory: int = 0


class _Texts(NamedTuple):
    """Texts as the original tokenizer encodes them.

    Attributes:
        ids: of each text the new ids, -1 for a lost token.
        places: of each of the most frequent lost ids, a text in which it is and the characters it stands for.
    """

    ids: list[Any]
    lost: Counter[int]
    places: dict[int, tuple[int, int, int]]


def prove(
    before: str, after: str, new_ids: bytes, corpus: Corpus | None, sample: int, unknown: int | None, show: Progress
) -> Proof:
    """Compare two tokenizers; a job for `run_apart`.

    Args:
        before, after: paths of the tokenizer.json of the original and of the cut one.
        new_ids: int64[old tokens] as bytes, the new id of each old one; -1 if it is gone.
        corpus: what the sample is taken from; without it only the ids of all tokens are compared.
        sample: number of texts in the sample.
        unknown: old id of the unknown token.

    Raises:
        InputError: the corpus or a tokenizer cannot be read, or the tokens have other ids than the files say.
    """
    new = np.frombuffer(new_ids, np.int64)
    texts = [] if corpus is None else _sample(corpus, sample, show)
    original = _load(before)
    ids = original.get_vocab(with_added_tokens=True)
    if max(ids.values(), default=-1) >= len(new):
        raise ids_differ(before)
    expected = {token: int(new[id]) for token, id in ids.items() if new[id] >= 0}
    first = _encode_first(original, texts, new)
    names = {id: str(original.id_to_token(id)) for id in first.places}
    del original, ids  # two large ones at a time would double the memory
    cut = _load(after)
    if cut.get_vocab(with_added_tokens=True) != expected:
        raise ids_differ(before)
    return _compare(cut, texts, first, names, -1 if unknown is None else int(new[unknown]))


def _load(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        return tokenizer_of(file.read(), path)


def _sample(corpus: Corpus, size: int, show: Progress) -> list[str]:
    """Texts of a corpus that are not blank, each with the same chance (Vitter's algorithm R)."""
    draw, chosen = random.Random(_SEED), list[str]()  # noqa: S311 - no secret
    for seen, text in enumerate(_texts(corpus, show)):
        if seen < size:
            chosen.append(text)
        elif (place := draw.randrange(seen + 1)) < size:
            chosen[place] = text
    return chosen


def _texts(corpus: Corpus, show: Progress) -> Iterator[str]:
    settings, buffer = corpus.settings("lines"), bytearray()
    blocks = Blocks(corpus.pieces(), settings)
    try:
        while (block := blocks.read(buffer)) is not None:
            yield from (text for text in texts_of(block, buffer, settings) if text.strip())
            show(blocks.consumed, None)
    finally:
        blocks.close()


def _encodings(tokenizer: Any, texts: list[str]) -> Iterator[Any]:
    for start in range(0, len(texts), _BATCH):
        yield from tokenizer.encode_batch(texts[start : start + _BATCH])


def _encode_first(tokenizer: Any, texts: list[str], new: Any) -> _Texts:
    found = _Texts([], Counter(), {})
    for number, encoding in enumerate(_encodings(tokenizer, texts)):
        old = np.array(encoding.ids, np.int64)
        ids = new[old]
        found.ids.append(ids)
        for at in np.flatnonzero(ids < 0).tolist():
            id = int(old[at])
            found.lost[id] += 1
            if id not in found.places:
                found.places[id] = (number, *encoding.offsets[at])
    for id in found.places.keys() - {id for id, _ in found.lost.most_common(_EXAMPLES)}:
        del found.places[id]
    return found


def _compare(tokenizer: Any, texts: list[str], first: _Texts, names: dict[int, str], unknown: int) -> Proof:
    places: dict[int, list[tuple[int, int, int]]] = {}
    for id, (number, start, stop) in first.places.items():
        places.setdefault(number, []).append((id, start, stop))
    identical = whole = after = unknown_before = unknown_after = 0
    broken: list[str] = []
    lost: dict[int, LostToken] = {}
    for number, encoding in enumerate(_encodings(tokenizer, texts)):
        ids = first.ids[number]
        after += len(encoding.ids)
        if unknown >= 0:
            unknown_before += int((ids == unknown).sum())
            unknown_after += encoding.ids.count(unknown)
        same = np.array_equal(np.array(encoding.ids, np.int64), ids)
        identical += same
        if (ids >= 0).all():
            whole += 1
            if not same:
                broken.append(texts[number])
        for id, start, stop in places.get(number, ()):
            parts = zip(encoding.tokens, encoding.offsets, encoding.special_tokens_mask, strict=True)
            # A space in front may have no place of its own, but that where the next token starts.
            now = tuple(
                token
                for token, (a, b), special in parts
                if not special and ((a < stop and b > start) or a == b == start)
            )
            lost[id] = LostToken(names[id], first.lost[id], texts[number][start:stop], now)
    ordered = sorted(lost.items(), key=lambda item: (-item[1].uses, item[0]))
    return Proof(
        len(texts),
        identical,
        whole,
        tuple(broken[:3]),
        sum(map(len, first.ids)),
        after,
        unknown_before,
        unknown_after,
        lost=tuple(token for _, token in ordered),
    )
