"""`evaluate`: whether a table still means something, by gensim's own evaluation on the sets in its wheel."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..bundle.reader import open_bundle
from ..bundle.table import Table
from ..errors import InputError, UsageError, needed, printable
from ..io.urls import local_only
from ..options.commands import EVALUATE
from ..options.definition import check
from ..typed import JsonReport

if TYPE_CHECKING:
    from gensim.models import KeyedVectors

SETS = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt", "questions-words": "questions-words.txt"}


class Score(NamedTuple):
    """The score on one set.

    Attributes:
        name: of the set, or its file.
        kind: `similarity` (pairs of words that people have judged) or `analogy` (a is to b as c is to d).
        used: pairs or questions whose words are all there.
        left_out: the others.
        pearson, spearman: of a similarity set, correlation of the cosines with the judgements; None if there is none.
        accuracy: of analogies, the share that is answered right; None if no question is left.
    """

    name: str
    kind: str
    used: int
    left_out: int
    pearson: float | None
    spearman: float | None
    accuracy: float | None

    def to_dict(self) -> JsonReport:
        """What `--json` prints."""
        return self._asdict()

    def __str__(self) -> str:
        if self.kind == "analogy":
            score = "no question can be asked" if self.accuracy is None else f"accuracy {self.accuracy:.4f}"
        elif self.spearman is None or self.pearson is None:
            score = "no pair is there"
        else:
            score = f"Spearman {self.spearman:.4f}, Pearson {self.pearson:.4f}"
        return printable(f"{self.name}: {score} ({self.used:,} of {self.used + self.left_out:,})")


def evaluate(
    bundle: str | os.PathLike[str],
    sets: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = ("wordsim353", "simlex999"),
    *,
    restrict: int = 300_000,
) -> list[Score]:
    """Score a bundle on word similarity and analogies, through gensim.

    Rows that no file gave (padding, drawn ones) are left out, so that the scores are those of the original file.

    Args:
        bundle: a folder, or the `.safetensors` file of a bundle under one stem.
        sets: `wordsim353`, `simlex999`, `questions-words` (minutes), or files: pairs with a score, separated by
            tabs, or analogies under lines `: SECTION`.
        restrict: only the first so many tokens take part.

    Raises:
        InputError: there is no bundle, or no such file.
        UsageError: `restrict` is below 1, or there is no such set.
        MissingPackageError: gensim is not installed.
    """
    check(EVALUATE, locals())
    if isinstance(sets, str | os.PathLike):
        sets = [sets]
    vectors = _keyed_vectors(bundle)
    return [_score(vectors, os.fspath(name), restrict) for name in sets]


def _keyed_vectors(bundle: str | os.PathLike[str]) -> KeyedVectors:
    """gensim's KeyedVectors over the table: without a copy where the rows that count are one range."""
    with needed("gensim", "gensim", "evaluating"):
        from gensim.models import KeyedVectors
    opened, vocab = open_bundle(bundle)
    table, made = Table.mapped(opened, vocab), opened.manifest.provenance.made_rows()
    kept = list(made.complement(len(vocab)).rows())
    if not kept:
        raise InputError("no-rows", "the bundle has no row that came from a file", path=opened.label)
    one_range = kept[-1] - kept[0] + 1 == len(kept)
    keyed = KeyedVectors(vector_size=table.dim)
    keyed.vectors = table.rows(kept[0], kept[-1] + 1) if one_range else table.vectors[kept]
    keyed.index_to_key = [vocab.tokens[row] for row in kept]
    keyed.key_to_index = {token: i for i, token in enumerate(keyed.index_to_key)}
    return keyed


def _score(vectors: KeyedVectors, name: str, restrict: int) -> Score:
    path = _path_of(name)
    with open(path, "rb") as file:
        lines = [line for line in file if line.strip() and not line.startswith(b"#")]
    if lines and lines[0].startswith(b": "):
        accuracy, sections = vectors.evaluate_word_analogies(path, restrict_vocab=restrict)
        used = len(sections[-1]["correct"]) + len(sections[-1]["incorrect"])
        asked = sum(not line.startswith(b":") and len(line.split()) == 4 for line in lines)
        return Score(name, "analogy", used, asked - used, None, None, float(accuracy) if used else None)
    pairs = sum(_is_pair(line) for line in lines)
    try:
        pearson, spearman, left_out = vectors.evaluate_word_pairs(path, restrict_vocab=restrict)
    except ValueError as error:
        if not pairs:
            raise InputError("no-pairs", f"the file is no set of word pairs ({error})", path=name) from error
        return Score(name, "similarity", 0, pairs, None, None, None)
    missing = round(pairs * left_out / 100)
    return Score(name, "similarity", pairs - missing, missing, float(pearson[0]), float(spearman[0]), None)


def _is_pair(line: bytes) -> bool:
    fields = line.split(b"\t")
    try:
        return len(fields) == 3 and float(fields[2]) is not None
    except ValueError:
        return False


def _path_of(name: str) -> str:
    if name in SETS:
        from gensim.test.utils import datapath

        path: str = datapath(SETS[name])
        return path
    local_only(name, "a set to score with")
    if not os.path.isfile(name):
        raise UsageError("no-such-set", "there is no such set, and no such file", expected=", ".join(SETS), found=name)
    return name
