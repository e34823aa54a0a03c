"""Figures of a vocabulary: kinds and lengths of tokens, tokens that are the same but for spelling, near-specials."""

from __future__ import annotations

import unicodedata
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .._kernel import TokenIndex
from ..errors import shown
from .health_figures import Example, Lengths, NearSpecial
from .kinds import KINDS, kind_of, script_of

FEW = 10  # examples of each figure
_PIECE = 1 << 14  # tokens that are strings at a time
_NAMED = ("control", "mojibake", "url", "several_words", "white_space")  # kinds of which examples are worth having

_UNKNOWN = (
    "unk",
    "UNK",
    "<unk>",
    "<UNK>",
    "[UNK]",
    "<unknown>",
    "UNKNOWN",
    "UUUNKKK",
    "*UNKNOWN*",
    "__UNK__",
    "oov",
    "<oov>",
)
_PADDING = ("<pad>", "<PAD>", "[PAD]", "PAD", "__PAD__", "<padding>", "PADDING")
_ENDS = (
    "</s>",
    "<s>",
    "<eos>",
    "<EOS>",
    "<bos>",
    "<BOS>",
    "<sos>",
    "<go>",
    "<START>",
    "<END>",
    "[CLS]",
    "[SEP]",
    "<sep>",
    "<cls>",
)
_OTHERS = ("[MASK]", "<mask>", "<num>", "<NUM>", "<number>", "<url>", "<user>", "<hashtag>", "<repeat>", "<allcaps>")


class Tokens(NamedTuple):
    """What was found in a vocabulary.

    Attributes:
        kinds: how many tokens are of each kind.
        scripts: how many words are of each script, the commonest first.
        length: how long tokens are.
        twins: by `case`, `nfc`, `nfkc`: how many rows would become one with another.
        near_specials: tokens that look like special ones.
        examples: by the name of a figure.
    """

    kinds: dict[str, int]
    scripts: dict[str, int]
    length: Lengths
    twins: dict[str, int]
    near_specials: list[NearSpecial]
    examples: dict[str, list[Example]]


def look_at_tokens(index: TokenIndex, made: set[int]) -> Tokens:
    """Look at every token once; rows of a bundle that no file gave (`made`) are passed over."""
    kinds, scripts, lengths = Counter[str](), Counter[str](), Counter[int]()
    examples: dict[str, list[Example]] = {}
    twins = {"case": Twins(str.casefold), "nfc": Twins(_normal("NFC")), "nfkc": Twins(_normal("NFKC"))}
    case, normal = twins["case"], (twins["nfc"], twins["nfkc"])
    longest = ""
    plain = 0
    for id, token in strings(index):
        if id in made:
            continue
        lengths[len(token)] += 1
        if len(token) > len(longest):
            longest = token
        if token.isascii():
            if token.islower() and token.isalpha():  # most are; nothing more is to be said of them
                plain += 1
                continue
        else:
            for other in normal:
                other.look(id, token)
        case.look(id, token)
        kind = kind_of(token)
        kinds[kind] += 1
        if kind == "word":
            scripts[script_of(token)] += 1
        elif kind in _NAMED and len(named := examples.setdefault(kind, [])) < FEW:
            named.append(Example(token, f"row {id}"))
    kinds["word"] += plain
    scripts["Latin"] += plain
    for name, found in twins.items():
        found.settle(index)
        if found.merged:
            examples[f"{name}_twins"] = found.examples(index)
    return Tokens(
        {kind: kinds[kind] for kind in KINDS},
        dict(sorted((+scripts).items(), key=lambda item: (-item[1], item[0]))),
        _lengths(lengths, longest),
        {name: found.merged for name, found in twins.items()},
        list(_near_specials(index, made)),
        examples,
    )


def strings(index: TokenIndex) -> Iterator[tuple[int, str]]:
    """Every id with its token."""
    for start in range(0, len(index), _PIECE):
        text = index.blob(start, min(start + _PIECE, len(index))).decode()
        yield from enumerate(text.split("\n")[:-1], start)


class Twins:
    """Tokens that become the same under a form (case-folding, normalisation).

    Only tokens that the form changes are remembered; whether the form itself is a token too is looked up at the end.

    Attributes:
        merged: after `settle`: how many rows would become one with another.
    """

    def __init__(self, form: Callable[[str], str]) -> None:
        self.merged = 0
        self._form = form
        self._forms = TokenIndex()
        self._members = array("L")  # how many tokens have each form
        self._first, self._second = array("q"), array("q")  # ids of the first two of them

    def look(self, id: int, token: str) -> None:
        """Look at a token."""
        form = self._form(token)
        if form == token or not form:
            return
        place = self._forms.add(form.encode())
        if place == len(self._members):
            self._members.append(1)
            self._first.append(id)
            self._second.append(-1)
        else:
            self._members[place] += 1
            if self._members[place] == 2:
                self._second[place] = id

    def settle(self, index: TokenIndex) -> None:
        """Count, when all tokens were seen."""
        for place, members in enumerate(self._members):
            own = index.get(self._forms.token(place))
            if own >= 0:
                self._second[place] = own
            self.merged += members - (own < 0)

    def examples(self, index: TokenIndex) -> list[Example]:
        """The first few."""
        pairs = ((a, b) for a, b in zip(self._first, self._second, strict=True) if b >= 0)
        return [Example(index.token(a).decode(), f"same as {shown(index.token(b))}") for a, b in _first_of(pairs, FEW)]


def _first_of(pairs: Iterator[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    return [pair for pair, _ in zip(pairs, range(count), strict=False)]


def _normal(form: str) -> Callable[[str], str]:
    return lambda token: unicodedata.normalize(form, token)  # type: ignore[arg-type]


def _lengths(counts: Counter[int], longest: str) -> Lengths:
    """Quantiles of lengths, from how often each length occurs."""
    total = counts.total()
    if not total:
        return Lengths(None, None, None, None)

    def at(share: float) -> int:
        seen, wanted = 0, share * (total - 1)
        for length in sorted(counts):
            seen += counts[length]
            if seen > wanted:
                return length
        return max(counts)

    return Lengths(at(0.5), at(0.99), len(longest), longest[:60])


def _near_specials(index: TokenIndex, made: set[int]) -> Iterator[NearSpecial]:
    def there(names: tuple[str, ...]) -> Iterator[str]:
        return (name for name in names if (id := index.get(name.encode())) >= 0 and id not in made)

    for name in there(_UNKNOWN):
        if name == "<unk>":
            advice = "convert takes its vector for the unknown token; --unk-init mean would not"
        else:
            advice = f"--unk {_quoted(name)} makes it the unknown token, with its own vector"
        yield NearSpecial(name, "unknown", advice)
    for name in there(_PADDING):
        if name == "<pad>":
            advice = "convert makes it the padding token and its row zero; --pad TOKEN names another"
        else:
            advice = f"--pad {_quoted(name)} makes it the padding token and its row zero"
        yield NearSpecial(name, "padding", advice)
    for role, names in (("end or start", _ENDS), ("special", _OTHERS)):
        for name in there(names):
            yield NearSpecial(name, role, f"--special {_quoted(name)} puts it in front, with its own vector")


def _quoted(token: str) -> str:
    import shlex

    return shlex.quote(token)
