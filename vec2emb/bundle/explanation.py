"""What is known of a word: its row and where that comes from, or what stands there instead.

For a word that a table lacks, other spellings of it are tried, and for each that is there it is said which option or
which line of code would find it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import shown
from ..words.token_lookup import other_forms
from .provenance import STANDARD

if TYPE_CHECKING:
    from ..words.vocabulary import Vocabulary
    from .manifest import Manifest, SourceRecord
    from .provenance import Origin, SpecialToken

_APOSTROPHES = "'\N{RIGHT SINGLE QUOTATION MARK}\N{MODIFIER LETTER APOSTROPHE}"
_HYPHENS = re.compile("[-\N{HYPHEN}\N{NON-BREAKING HYPHEN}\N{EN DASH}]")
_ENDING = re.compile(f"(.+?)(n[{_APOSTROPHES}]t|[{_APOSTROPHES}](?:s|d|m|ll|re|ve))", re.IGNORECASE)
_CASES = {
    "lower-case": "encode(tokens, lookup='lower'), which --lowercase makes the usual",
    "capitalised": "encode(tokens, lookup='case-fallback')",
    "upper-case": "encode(tokens, lookup='case-fallback')",
}
_NORMALIZE = 'normalise the text as well: unicodedata.normalize("{}", text)'

_INITS = {
    "zeros": "zeros",
    "mean": "the mean of the file's rows",
    "normal": "drawn from the normal distribution of the file's rows",
    "subword": "composed of its character n-grams by the source's model",
    "standard-normal": "drawn from N(0, 1)",
    "standard-uniform": "drawn evenly from -sqrt(3) to sqrt(3)",
    "uniform": "drawn evenly over the spread of the file's rows",
}


class Spelling(NamedTuple):
    """Another spelling of a word, which is in the table.

    Attributes:
        kind: what was done to the word: `lower-case`, `capitalised`, `upper-case`, `NFC`, `NFKC`, `accents off`,
            `apostrophe`, `punctuation off`, `possessive`, `contraction`, `hyphen split`; two of them joined by a comma.
        tokens: the tokens it is then; one, unless the word was split.
        ids: their rows.
        advice: the option or the code that finds it.
    """

    kind: str
    tokens: list[str]
    ids: list[int]
    advice: str

    def __str__(self) -> str:
        tokens = " ".join(f"{shown(token)} (id {id})" for token, id in zip(self.tokens, self.ids, strict=True))
        return f"{tokens}, {self.kind}: {self.advice}"


class Explanation:
    """What is known of a word.

    Attributes:
        word: the word.
        id: what `encode` makes of it: its row or that of the unknown token; None if `encode` raises an error.
        found: whether the word has a row, as it stands or through the vocabulary's own lookup.
        token: the token of row `id`; None if there is none.
        origin: `file`, `special`, `fallback`, `initialised`, `given`, or `missing` for a word without a row.
        text: the origin in words.
        spellings: of a word without a row, the spellings that are there.
    """

    def __init__(self, word: str) -> None:
        self.word = word
        self.id: int | None = None
        self.found = False
        self.token: str | None = None
        self.origin = "missing"
        self.text = ""
        self.spellings: list[Spelling] = []

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {**vars(self), "spellings": [spelling._asdict() for spelling in self.spellings]}

    def __str__(self) -> str:
        head = f"{shown(self.word)}: id {self.id}, " if self.found else f"{shown(self.word)}: "
        return "\n".join([head + self.text, *(f"  there is {spelling}" for spelling in self.spellings)])

    def __repr__(self) -> str:
        return f"<Explanation of {shown(self.word)}: {self.origin}, id {self.id}>"


def explain_word(word: str, vocab: Vocabulary, manifest: Manifest | None, *, from_file: bool) -> Explanation:
    """Say what is known of a word.

    Args:
        word: the word.
        vocab: the words that have a row.
        manifest: of the bundle; None for a table that is in memory only.
        from_file: whether such a table was read from a file.
    """
    found = Explanation(word)
    id = vocab.get(word)
    if id is None:
        found.id, found.token = vocab.unk_idx, vocab.unk_token
        found.text = "not in the table; " + (
            "encode() raises an error, since there is no unknown token"
            if vocab.unk_idx is None
            else f"encode() gives {vocab.unk_idx}, the unknown token {shown(str(vocab.unk_token))}"
        )
        found.spellings = list(_spellings(word, vocab))
        return found
    found.id, found.found, found.token = id, True, vocab.tokens[id]
    found.origin, found.text = _origin(id, manifest, from_file)
    if found.token != word:
        found.text = f"found as {shown(found.token)} (lookup {vocab.lookup}); {found.text}"
    return found


# Where a row comes from.


def _origin(row: int, manifest: Manifest | None, from_file: bool) -> tuple[str, str]:
    if manifest is None:
        return ("file", "the row of the file as it is") if from_file else ("given", "the row that was given")
    origin = manifest.provenance.origin(row)
    kind, text = _before_training(origin, manifest)
    return kind, f"{text}; trained since" if origin.trained else text


def _before_training(origin: Origin, manifest: Manifest) -> tuple[str, str]:
    added = origin.step is not None
    source = manifest.source if origin.step is None else manifest.history[origin.step].source
    treated = _treated(_readings(origin, manifest), manifest.dtype)
    if origin.special is not None:
        return "special", _of_special(origin.special, added, treated)
    begun = "added; " if added else ""
    if origin.spelling is not None:
        return (
            "fallback",
            f"{begun}the row of {shown(origin.spelling)}, since the file lacks the word as it stands{treated}",
        )
    if origin.generated is not None:
        where = None if source is None else shown(source.name) if added else "the file"
        lacking = "" if where is None or origin.generated.init in STANDARD.values() else f"not in {where}; "
        return "initialised", f"{begun}{lacking}{_made(origin.generated.init, origin.generated.seed)}"
    if origin.kind == "given" or source is None:
        return "given", f"{begun}the row that was given when the bundle was saved{treated}"
    return "file", f"{begun}the row of {shown(source.name) if added else 'the file'}{treated or ' as it is'}"


def _of_special(special: SpecialToken, added: bool, treated: str) -> str:
    name = "a special token" if special.role == "special" else f"the {special.role} token"
    name += ", added" if added else ""
    if special.init == "file":
        return f"{name}; the file's own row{treated}"
    if special.init == "given":
        return f"{name}; the row that was given"
    if special.init.startswith("token:"):
        return f"{name}; the row of {shown(special.init.removeprefix('token:'))}{'' if added else treated}"
    return f"{name}; {_made(special.init, special.seed)}"


def _made(init: str, seed: int | None) -> str:
    return f"{_INITS.get(init, init)}{'' if seed is None else f', seed {seed}'}"


_TREATED = {
    "lowercase": "the file's tokens were lower-cased",
    "unit-norm": "scaled to length 1",
    "nonfinite-zero": "nan and inf made 0",
}


def _readings(origin: Origin, manifest: Manifest) -> list[SourceRecord]:
    """The files that a row was read from, one after the other: a bundle, that which the bundle was made of, .."""
    chain: list[SourceRecord] = []
    source = manifest.source
    while source is not None:
        chain.append(source)
        source = source.origin
    if origin.step is None:
        return chain
    own = manifest.history[origin.step].source
    if origin.step >= len(manifest.earlier_steps):
        chain = []
    return [one for one in chain if one.format == "bundle"] + ([] if own is None else [own])


def _treated(readings: list[SourceRecord], dtype: str) -> str:
    """What was done to the rows of a file; empty for nothing."""
    done = {name: None for source in reversed(readings) for name in source.treated}
    if dtype != "float32":
        done[dtype] = None
    texts = [_TREATED.get(name, f"rounded to {name}") for name in done]
    return f", {', '.join(texts)}" if texts else ""


# Other spellings.


def _spellings(word: str, vocab: Vocabulary) -> Iterator[Spelling]:
    """The spellings that are there, none twice, and one for each thing that can be done."""
    seen: set[tuple[str, ...]] = {(word,)}
    done: set[str] = set()
    for kind, tokens, advice in _candidates(word):
        base = kind.partition(",")[0]
        if base in done or tuple(tokens) in seen or not all(token in vocab.tokens for token in tokens):
            continue
        seen.add(tuple(tokens))
        done.add(base)
        yield Spelling(kind, tokens, [vocab.tokens.index(token) for token in tokens], advice)


def _candidates(word: str) -> Iterator[tuple[str, list[str], str]]:
    """(kind, tokens, advice): what is done to the case alone first, then all else, as it is and in lower case."""
    for (kind, advice), form in zip(_CASES.items(), other_forms("case-fallback"), strict=True):
        yield kind, [form(word)], f"{advice}; or convert with --case-fallback, which gives the word a row of its own"
    for kind, tokens, advice in _rewritten(word):
        yield kind, tokens, advice
        lowered = [token.lower() for token in tokens]
        yield f"{kind}, lower-case", lowered, f"{advice}; then encode(tokens, lookup='lower')"


def _rewritten(word: str) -> Iterator[tuple[str, list[str], str]]:
    for form in ("NFC", "NFKC"):
        yield form, [unicodedata.normalize(form, word)], _NORMALIZE.format(form)
    plain = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    yield (
        "accents off",
        [plain],
        (
            'take the accents off the text: "".join(c for c in unicodedata.normalize("NFD", text) '
            "if not unicodedata.combining(c))"
        ),
    )
    for apostrophe in _APOSTROPHES:
        other = re.sub(f"[{_APOSTROPHES}]", apostrophe, word)
        yield "apostrophe", [other], f"write apostrophes of the text as {_named(apostrophe)}"
    bare = word
    while bare and _is_punctuation(bare[0]):
        bare = bare[1:]
    while bare and _is_punctuation(bare[-1]):
        bare = bare[:-1]
    if bare:
        yield "punctuation off", [bare], "split punctuation off when the text is cut into tokens"
    for text in dict.fromkeys((word, bare)):
        if ended := _ENDING.fullmatch(text):
            plain_end = re.sub(f"[{_APOSTROPHES}]", "'", ended[2])
            kind = "possessive" if plain_end.lower() == "'s" else "contraction"
            advice = f"split {plain_end.lower()} off when the text is cut into tokens"
            for tokens in ([ended[1], ended[2]], [ended[1], plain_end], [ended[1]]):
                if kind == "possessive" or len(tokens) == 2:
                    yield kind, tokens, advice
    parts = [part for part in _HYPHENS.split(word) if part]
    if len(parts) > 1:
        yield "hyphen split", parts, 'split at hyphens when the text is cut into tokens: re.split("-", word)'


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def _named(character: str) -> str:
    return f"U+{ord(character):04X}, {unicodedata.name(character)}"
