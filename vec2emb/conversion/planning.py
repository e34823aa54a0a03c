"""Which rows a conversion is to have: its options, turned into a selection."""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

from collections.abc import Iterable, Mapping
from types import EllipsisType
from typing import TYPE_CHECKING, Any, NamedTuple

from .._kernel import TokenIndex
from ..errors import UsageError, VocabularyError, shown
from ..options.definition import pick
from ..words.pieces import is_marked
from ..words.special_tokens import Special, SpecialLike, arrange
from ..words.word_list import WordList, WordsLike, read_words
from .selection import Rules, Selection

if TYPE_CHECKING:
    from ..bundle.manifest import Scalar


class WordOptions(NamedTuple):
    """Which rows there are to be; every field has the meaning of `convert`'s argument of that name."""

    pad: str | EllipsisType | None = ...
    unk: str | EllipsisType | None = ...
    zero_padding: bool = False
    unk_init: str | None = None
    specials: Iterable[SpecialLike] = ()
    specials_at: str = "start"
    vocab: WordsLike | None = None
    fill_gaps: bool = False
    only: WordsLike | None = None
    pieces: str = "none"
    case_fallback: bool = False
    lowercase: bool = False
    duplicates: str = "first"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "WordOptions":
        """The options among the arguments of a function, which has checked them."""
        return cls(**pick(cls._fields, given))


class Plan:
    """The rows that are wanted.

    Attributes:
        specials: the special tokens in their order.

    Raises:
        UsageError: options exclude each other.
        VocabularyError: a list of words is damaged.
    """

    def __init__(self, options: WordOptions, note_events: bool = False) -> None:
        vocab, only = options.vocab, options.only
        if vocab is not None and only is not None:
            raise UsageError("vocab-and-only", "rows follow a vocabulary, or a list of words to keep, not both")
        if options.case_fallback and vocab is None and only is None:
            raise UsageError(
                "case-fallback-alone",
                "only words that are asked for can fall back to another spelling",
                hint="add --vocab FILE or --only FILE, or use --lowercase",
            )
        if options.case_fallback and options.lowercase:
            raise UsageError("two-case-policies", "--case-fallback and --lowercase exclude each other")
        if options.pieces != "none" and (vocab is None or options.lowercase):
            raise UsageError(
                "pieces-alone", "pieces are tokens of a vocabulary, looked up as they are",
                found=f"pieces={options.pieces}",
                hint="add --vocab FILE, and use --case-fallback in the place of --lowercase",
            )  # fmt: skip
        self.rules = Rules(options.duplicates, options.lowercase, note_events)
        self.words = None if vocab is None else read_words(vocab, options.fill_gaps)
        self.only = None if only is None else read_words(only)
        if self.words is not None and options.pieces != "none":
            _refuse_unmarked(self.words, options.pieces)
        if options.fill_gaps and (self.words is None or not self.words.has_ids):
            raise UsageError(
                "gaps-without-ids", "only a vocabulary with ids can have gaps between them",
                hint="add --vocab with a vocab.json or tokenizer.json, or leave out --fill-gaps",
            )  # fmt: skip
        pad, unk, self._open = default_roles(options.pad, options.unk, self.words)
        given = options.specials
        self._named = given if isinstance(given, str) else list(given)  # `arrange` refuses the former
        if self.words is not None and self.words.placeholders and not isinstance(self._named, str):
            self._named += [(token, "normal") for token in self.words.placeholders]
        self.specials: list[Special] = arrange(pad, unk, options.unk_init, self._named)
        if options.lowercase:
            _refuse_capitals(self.words or self.only, {special.token for special in self.specials})
        self._case_fallback = options.case_fallback
        self._pieces = options.pieces
        self._at = options.specials_at
        self._recorded = {"pad": pad, "unk": unk, "unk_init": options.unk_init}
        self._zero_padding = options.zero_padding

    def adopt(self, pad: str | None, unk: str | None, keeps_padding: bool) -> None:
        """Follow what a source says of itself.

        Args:
            pad, unk: the tokens that it names; they are used unless the caller or a vocabulary names others.
            keeps_padding: whether the row of its padding token is part of a model, and stays as it is.
        """
        asked, words = self._recorded, self.words or self.only
        for role, own, usual in (("pad", pad, "<pad>"), ("unk", unk, "<unk>")):
            if role in self._open and own is not None and (words is None or usual not in words.vocab.tokens):
                asked[role] = own
        self.specials = arrange(asked["pad"], asked["unk"], asked["unk_init"], self._named)
        if keeps_padding and not self._zero_padding:
            self.specials = [
                one._replace(init=None) if one.role == "padding" and one.token == pad else one for one in self.specials
            ]

    def generate(self, missing: str) -> None:
        """Set every row without a source: special tokens that would take the file's mean are set as words are.

        Raises:
            UsageError: a row has no meaning without a source.
        """
        for init in (missing, *(special.init for special in self.specials)):
            if init in ("mean", "subword", "error") or (init or "").startswith("token:"):
                raise UsageError(
                    "from-scratch-init", "without SOURCE, rows must be normal, uniform or zeros", found=init,
                    hint="choose another --missing, --unk-init or --special TOKEN=INIT, or name a SOURCE",
                )  # fmt: skip
        self.specials = [one._replace(default=missing) if one.default == "mean" else one for one in self.specials]

    def selection(self, expected: int) -> Selection:
        """The selection for a source of about `expected` rows."""
        words = self.words or self.only
        extra_tokens = self._extra_tokens(words)
        if words is None:
            return Selection(self.specials, self._at, self.rules, expected=expected)
        from .vocabulary_order import Arrangement, Fallback, GivenOrder  # late: most conversions have no list of words

        if self._case_fallback or self._pieces != "none":
            arrangement = Arrangement(words, self.specials, self._at) if self.words else None
            return Fallback(
                words.vocab, self.specials, self._at, self.rules, extra_tokens=extra_tokens, arrangement=arrangement,
                pieces=self._pieces, case_fallback=self._case_fallback,
            )  # fmt: skip
        if self.words is not None:
            return GivenOrder(words, self.specials, self._at, self.rules, extra_tokens=extra_tokens)
        extra = b"".join(token + b"\n" for token in [*(s.token.encode() for s in self._not_in(words)), *extra_tokens])
        wanted = TokenIndex.over(bytes(words.vocab.blob) + extra)
        expected = min(expected, len(wanted))
        return Selection(
            self.specials, self._at, self.rules, expected=expected, wanted=wanted, extra_tokens=extra_tokens
        )

    def _not_in(self, words: WordList) -> list[Special]:
        return [special for special in self.specials if special.token not in words.vocab.tokens]

    def _extra_tokens(self, words: WordList | None) -> list[bytes]:
        """Words of `token:WORD` that are no rows themselves, but whose vector is needed."""
        if words is None:
            return []
        named = [s.init.removeprefix("token:") for s in self.specials if s.init and s.init.startswith("token:")]
        rows = {special.token for special in self.specials}
        return [word.encode() for word in dict.fromkeys(named) if word not in rows and word not in words.vocab.tokens]

    def recorded(self) -> "dict[str, Scalar]":
        """The options under the names of a replay record."""
        return {
            **self._recorded,
            "zero_padding": self._zero_padding,
            "specials_at": self._at,
            "pieces": self._pieces,
            "case_fallback": self._case_fallback,
            "lowercase": self.rules.lowercase,
            "duplicates": self.rules.duplicates,
        }


def check_missing(missing: str, given: bool) -> None:
    """Refuse a policy for missing words that has nothing to do."""
    if missing != "normal" and not given:
        raise UsageError("missing-alone", "only words of a vocabulary can be missing", hint="add --vocab FILE")


def _refuse_unmarked(words: WordList, style: str) -> None:
    """Refuse a vocabulary in which no token has the mark of a style: it is of another one."""
    if not any(is_marked(token, style) for token in words.vocab):
        raise VocabularyError(
            "pieces-unmarked", f"no token of the vocabulary has the mark of {style} pieces", path=words.label,
            hint="choose the style of the tokenizer: wordpiece (##ing), metaspace (▁the) or byte-level (Ġthe)",
        )  # fmt: skip


def _refuse_capitals(words: WordList | None, specials: set[str]) -> None:
    """Words with a capital would never match tokens that are lower-cased."""
    capitals = [] if words is None else [w for w in words.vocab if w != w.lower() and w not in specials]
    if words is not None and capitals:
        raise VocabularyError(
            "words-not-lowercase",
            f"the file's tokens are lower-cased, but {len(capitals)} of the words are not",
            path=words.label,
            found=", ".join(shown(word) for word in capitals[:5]),
            hint="lower-case the list as well, or use --case-fallback in the place of --lowercase",
        )


def default_roles(
    pad: str | EllipsisType | None, unk: str | EllipsisType | None, words: WordList | None
) -> tuple[str | None, str | None, set[str]]:
    """Return the padding and the unknown token, and which of the two (`pad`, `unk`) a source may still name.

    Args:
        pad, unk: as the caller names them; `...` for the usual one.
        words: the vocabulary, if there is one.
    """
    free = {role for role, name in (("pad", pad), ("unk", unk)) if name is ...}
    usual: tuple[str | None, str | None] = ("<pad>", "<unk>")
    if words is not None and words.keeps_ids:
        own_pad, own_unk = words.own_specials()
        # A token that the caller names for one of the two is not taken for the other one as well.
        usual, free = (None if own_pad == unk else own_pad, None if own_unk == pad else own_unk), set()
    return usual[0] if pad is ... else pad, usual[1] if unk is ... else unk, free
