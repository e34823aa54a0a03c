"""What is known of a word: its row and where that comes from, or what stands there instead.

For a word that a table lacks, other spellings of it are tried, and for each that is there it is said which option or
which line of code would find it.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import shown
from ..words.token_lookup import other_forms
from .training import missing_rows

if TYPE_CHECKING:
    from ..words.vocabulary import Vocabulary

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


def explain_word(word: str, vocab: Vocabulary, config: dict[str, Any], *, from_file: bool) -> Explanation:
    """Say what is known of a word.

    Args:
        word: the word.
        vocab: the words that have a row.
        config: of the bundle; empty for a table that is in memory only.
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
    found.origin, found.text = _origin(id, config, from_file)
    if found.token != word:
        found.text = f"found as {shown(found.token)} (lookup {vocab.lookup}); {found.text}"
    return found


# Where a row comes from.


def _origin(row: int, config: dict[str, Any], from_file: bool) -> tuple[str, str]:
    special = next((special for special in config.get("specials", []) if special["id"] == row), None)
    extensions = config.get("extensions") or []
    step = next((one for one in extensions if one["rows"][0] <= row < one["rows"][1]), None)
    if special is not None:
        return "special", _of_special(special, config, step)
    if step is not None:
        return _of_added(row, step, config)
    fallbacks: list[list[Any]] = config.get("fallbacks") or []
    at = bisect_left(fallbacks, row, key=lambda pair: pair[0])
    if at < len(fallbacks) and fallbacks[at][0] == row:
        spelling = fallbacks[at][1]
        return "fallback", f"the row of {shown(spelling)}, since the file lacks the word as it stands{_treated(config)}"
    missing = missing_rows(config)
    at = bisect_right(missing, row, key=lambda pair: pair[0]) - 1
    if at >= 0 and row < missing[at][1]:
        # What is recorded beside the rows may be of all of them, those of extensions included.
        return "initialised", f"not in the file; {_made(_policy(config) or config['missing'].get('init'), config)}"
    if not config:
        return ("file", "the row of the file as it is") if from_file else ("given", "the row that was given")
    if config.get("source") is None:
        return "given", "the row that was given when the bundle was saved"
    return "file", f"the row of the file{_treated(config) or ' as it is'}"


def _of_special(special: dict[str, Any], config: dict[str, Any], step: dict[str, Any] | None) -> str:
    """Of a special token; `step` is the extension that added it."""
    role, init = special["role"], special["init"]
    name = "a special token" if role == "special" else f"the {role} token"
    if step is not None:
        copied = f"the row of {shown(init.removeprefix('token:'))}" if init.startswith("token:") else None
        return f"{name}, added; {copied or _made(init, step)}"
    if init == "file":
        return f"{name}; the file's own row{_treated(config)}"
    if init == "given":
        return f"{name}; the row that was given"
    if init.startswith("token:"):
        return f"{name}; the row of {shown(init.removeprefix('token:'))}{_treated(config)}"
    return f"{name}; {_made(init, config)}"


def _of_added(row: int, step: dict[str, Any], config: dict[str, Any]) -> tuple[str, str]:
    """Of a word that the bundle gained since it was converted."""
    name = shown(step["source"]["name"]) if step["source"] else None
    if any(start <= row < stop for start, stop in step["missing"]):
        lacking = f"not in {name}; " if name else ""
        return "initialised", f"added; {lacking}{_made(_policy(step), step)}"
    return "file", f"added; the row of {name}{_treated({**config, 'options': step['options']}) or ' as it is'}"


def _policy(record: dict[str, Any]) -> str | None:
    """How a conversion or an extension set the rows that no source gave, by its own options."""
    policy = record.get("options", {}).get("missing")
    return policy if isinstance(policy, str) else None


def _made(init: str | None, record: dict[str, Any]) -> str:
    if init is None:
        return "how it was set is not recorded"
    seed = f", seed {record['options'].get('seed', 0)}" if init in ("normal", "uniform") else ""
    return f"{_INITS.get(init, init)}{seed}"


def _treated(config: dict[str, Any]) -> str:
    """What was done to the rows of the file; empty for nothing."""
    options, done = config.get("options", {}), []
    if options.get("lowercase"):
        done.append("the file's tokens were lower-cased")
    if options.get("unit_norm"):
        done.append("scaled to length 1")
    if options.get("nonfinite") == "zero":
        done.append("nan and inf made 0")
    if config.get("dtype", "float32") != "float32":
        done.append(f"rounded to {config['dtype']}")
    return f", {', '.join(done)}" if done else ""


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
