"""A vocabulary given, words to keep, and how case is treated; expectations are worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import collected

import vec2emb
from vec2emb.conversion import row_writer
from vec2emb.errors import InputError, UsageError, VocabularyError

TABLE = b"""the 0.5 -1.25 2
The 5 5 5
OF 1 0.25 -0.75
And 7 7 7
and -0.5 0.125 0.0625
of 2 2 2
The 6 6 6
<unk> 3 4 5
xx 1 1 1
"""
VECTORS = {
    "the": [0.5, -1.25, 2.0], "The": [5.0] * 3, "OF": [1.0, 0.25, -0.75], "And": [7.0] * 3,
    "and": [-0.5, 0.125, 0.0625], "of": [2.0] * 3, "<unk>": [3.0, 4.0, 5.0], "xx": [1.0] * 3,
}  # fmt: skip


@pytest.fixture(params=[row_writer.STAGED, 0], ids=["in-memory", "in-place"])
def source(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of vectors; rows in a given order are put together in memory, or, as those of a large table, in place."""
    monkeypatch.setattr(row_writer, "STAGED", request.param)
    path = tmp_path / "vectors.txt"
    path.write_bytes(TABLE)
    return path


def converted(source: Path, **options: Any) -> tuple[vec2emb.Table, vec2emb.Report, list[str]]:
    """The table, the report, and the codes of the warnings."""
    target = source.parent / "bundle"
    report, found = collected(lambda: vec2emb.convert(source, target, if_exists="replace", **options))
    return vec2emb.load(target), report, [warning.code for warning in found]


def rows(table: vec2emb.Table) -> dict[str, list[float]]:
    return {token: vector.tolist() for token, vector in table}


@pytest.mark.parametrize("option", ["vocab", "only"])
def test_a_list_of_words_that_is_another_file(source: Path, option: str) -> None:
    source.write_bytes(TABLE.replace(b"<unk>", b"unk"))
    with pytest.raises(InputError) as caught:
        converted(source, **{option: source})
    assert (caught.value.code, caught.value.path) == ("nothing-to-fit", str(source))
    assert str(caught.value.found).startswith("'the 0.5 -1.25 2', 'The 5 5 5', ")
    assert "is that the right list of words?" in str(caught.value)


def test_lines_are_rows_when_padding_and_unknown_are_there(kernel: str, block: str, threads: int, source: Path) -> None:
    words = ["[CLS]", "xx", "<unk>", "the", "<pad>", "Zebra", "of"]
    table, report, codes = converted(source, vocab=words, missing="zeros", threads=threads)
    assert table.vocab.to_list() == words
    assert (table.vocab.padding_idx, table.vocab.unk_idx, report.id_shift) == (4, 2, 0)
    expected = [[0.0] * 3, VECTORS["xx"], VECTORS["<unk>"], VECTORS["the"], [0.0] * 3, [0.0] * 3, VECTORS["of"]]
    assert table.vectors.tolist() == expected
    assert (report.missing, report.first_missing) == (2, ["[CLS]", "Zebra"])
    assert codes == ["special-in-file"]


def test_padding_and_unknown_go_in_front_when_neither_is_there(kernel: str, source: Path) -> None:
    table, report, _ = converted(source, vocab=["of", "the"], unk="?", unk_init="mean")
    assert table.vocab.to_list() == ["<pad>", "?", "of", "the"]
    assert report.id_shift == 2
    assert table.vectors.tolist() == [[0.0] * 3, [1.25, 0.375, 2.0], [2.0] * 3, VECTORS["the"]]


def test_or_behind_the_words(source: Path) -> None:
    table, report, _ = converted(source, vocab=["of", "the"], specials_at="end", unk="?", unk_init="zeros")
    assert table.vocab.to_list() == ["of", "the", "<pad>", "?"]
    assert (report.id_shift, table.vocab.padding_idx, table.vocab.unk_idx) == (0, 2, 3)


@pytest.mark.parametrize("words", [["<pad>", "the"], ["the", "<unk>"]])
def test_one_of_two_decides_nothing(source: Path, words: list[str]) -> None:
    with pytest.raises(VocabularyError, match=r"--pad TOKEN or --unk TOKEN.*--no-pad") as error:
        converted(source, vocab=words)
    assert error.value.code == "special-missing"


def test_bert_style(source: Path) -> None:
    words = ["[PAD]", *(f"[unused{i}]" for i in range(99)), "[UNK]", "the", "of"]
    table, report, _ = converted(source, vocab=words, pad="[PAD]", unk="[UNK]", missing="mean")
    assert (table.vocab.padding_idx, table.vocab.unk_idx, len(table), report.id_shift) == (0, 100, 103, 0)
    mean = ((np.array(VECTORS["the"]) + VECTORS["of"]) / 2).tolist()
    assert table["[unused7]"].tolist() == mean
    assert table["[PAD]"].tolist() == [0.0] * 3


def test_without_special_tokens_the_ids_stay(source: Path) -> None:
    table, report, _ = converted(source, vocab=["of", "the"], pad=None, unk=None)
    assert table.vocab.to_list() == ["of", "the"]
    assert (report.id_shift, table.vocab.padding_idx, table.vocab.unk_idx) == (0, None, None)


def test_a_special_token_of_the_vocabulary_gets_its_init(source: Path) -> None:
    words = ["<pad>", "<unk>", "Q", "the"]
    table, _, _ = converted(source, vocab=words, specials=["Q=token:xx"])
    assert table["Q"].tolist() == VECTORS["xx"]  # xx itself has no row
    with pytest.raises(VocabularyError, match="its ids are to stay"):
        converted(source, vocab=words, specials=["R"])
    table, _, _ = converted(source, vocab=words, specials=["R=zeros"], specials_at="end", missing="zeros")
    assert table.vocab.to_list() == [*words, "R"]


def test_missing_words_are_seeded_and_depend_on_nothing_else(kernel: str, source: Path) -> None:
    first, _, _ = converted(source, vocab=["the", "Zebra", "of"])
    again, _, _ = converted(source, vocab=["of", "a", "b", "Zebra", "the"], threads=3)
    other, _, _ = converted(source, vocab=["the", "Zebra", "of"], seed=1)
    assert first["Zebra"].tolist() == again["Zebra"].tolist() != other["Zebra"].tolist()
    assert np.isfinite(first.vectors).all()
    fitted = first.vectors[[1, 2, 4]]  # the file's own unknown row is a row of the file, too
    mean, deviation = fitted.mean(axis=0), fitted.std(axis=0)
    uniform, _, _ = converted(source, vocab=["the", "Zebra", "of"], missing="uniform")
    assert (abs(uniform["Zebra"] - mean) <= deviation * 3**0.5 * 1.000001).all()


def test_missing_words_can_be_an_error(source: Path) -> None:
    with pytest.raises(VocabularyError, match=r"lacks 2 of the words.*'Zebra', 'Yak'"):
        converted(source, vocab=["the", "Zebra", "Yak"], missing="error")
    assert not (source.parent / "bundle").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("words.txt", "of\nxx\n"),
        ("words.json", ["of", "xx"]),
        ("vocab.json", {"xx": 1, "of": 0}),
        ("tokenizer.json", {"model": {"vocab": {"of": 0}}, "added_tokens": [{"id": 1, "content": "xx"}]}),
        ("tokenizer.json", {"model": {"type": "Unigram", "vocab": [["of", -1.5], ["xx", -2]]}}),
    ],
)  # fmt: skip
def test_forms_of_a_word_list(source: Path, name: str, content: Any) -> None:
    path = source.parent / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    table, _, codes = converted(source, vocab=path, pad=None, unk=None)
    assert table.vocab.to_list() == ["of", "xx"]
    assert codes == ["duplicate-tokens"] * 0
    table, _, _ = converted(source, only=path, pad=None, unk=None)
    assert table.vocab.to_list() == ["of", "xx"]


def test_a_tokenizer_names_its_own_special_tokens(source: Path) -> None:
    model = {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[PAD]": 0, "the": 1, "[UNK]": 2}}
    path = source.parent / "tokenizer.json"
    path.write_text(json.dumps({"model": model, "padding": {"pad_token": "[PAD]"}}))
    table, _, _ = converted(source, vocab=path)
    assert (table.vocab.padding_idx, table.vocab.unk_idx, len(table)) == (0, 2, 3)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["the", "of", "the"], "duplicate-token"),
        ({"the": 0, "of": 2}, "ids-with-gaps"),
        ("the of", "not-found"),
    ],
)
def test_damaged_word_lists(source: Path, words: list[str] | Mapping[str, int] | str, code: str) -> None:
    with pytest.raises(InputError) as error:
        converted(source, vocab=words)
    assert error.value.code == code


@pytest.mark.parametrize("text", ['{"the": 0, "of": 5}', '{"the": "a"}', "[1]", "{", '{"model": {"vocab": 3}}', "7"])
def test_damaged_json_word_lists(source: Path, text: str) -> None:
    path = source.parent / "vocab.json"
    path.write_text(text)
    with pytest.raises(VocabularyError, match=r"vocab\.json") as error:
        converted(source, vocab=path)
    assert error.value.code in ("ids-with-gaps", "words-form", "words-not-json")


def test_only_keeps_the_order_of_the_file(kernel: str, block: str, threads: int, source: Path) -> None:
    table, report, codes = converted(source, only=["xx", "Zebra", "The", "the"], threads=threads)
    assert table.vocab.to_list() == ["<pad>", "<unk>", "the", "The", "xx"]
    assert {token: rows(table)[token] for token in ("the", "The", "xx")} == {
        token: VECTORS[token] for token in ("the", "The", "xx")
    }
    assert table["<unk>"].tolist() == VECTORS["<unk>"]  # the file has it, so it is used though nobody listed it
    assert (report.absent, report.first_absent, report.duplicates) == (1, ["Zebra"], 1)
    assert codes == ["duplicate-tokens", "special-in-file"]


def test_the_word_of_an_init_need_not_be_kept(kernel: str, source: Path) -> None:
    table, _, _ = converted(source, only=["the"], specials=["Q=token:xx"], specials_at="end")
    assert table.vocab.to_list() == ["the", "<pad>", "<unk>", "Q"]
    assert table["Q"].tolist() == VECTORS["xx"]


def test_case_fallback_for_a_vocabulary(kernel: str, block: str, threads: int, source: Path) -> None:
    words = ["<pad>", "THE", "<unk>", "Of", "oF", "Zebra", "and", "XX"]
    table, report, _ = converted(source, vocab=words, case_fallback=True, missing="zeros", threads=threads)
    assert table.vocab.to_list() == words
    assert table.vectors.tolist() == [
        [0.0] * 3, VECTORS["the"], VECTORS["<unk>"], VECTORS["of"], VECTORS["of"],
        [0.0] * 3, VECTORS["and"], VECTORS["xx"],
    ]  # fmt: skip
    assert list(report.manifest.provenance.spellings.pairs()) == [(1, "the"), (3, "of"), (4, "of"), (7, "xx")]
    assert report.fallbacks == 4
    assert table.vocab.encode(["XX", "aND", "no"]).tolist() == [7, 6, 2]


def test_case_fallback_for_words_to_keep(kernel: str, source: Path) -> None:
    table, report, _ = converted(source, only=["xx", "AND", "Of", "no"], case_fallback=True, pad=None, unk=None)
    assert rows(table) == {"AND": VECTORS["and"], "Of": VECTORS["of"], "xx": VECTORS["xx"]}
    assert list(rows(table)) == ["AND", "Of", "xx"]  # as the rows stand in the file
    assert (report.absent, report.fallbacks) == (1, 2)


def test_lowercase_prefers_the_row_that_is_lower_case(kernel: str, block: str, threads: int, source: Path) -> None:
    table, report, _ = converted(source, lowercase=True, threads=threads)
    assert table.vocab.to_list() == ["<pad>", "<unk>", "the", "of", "and", "xx"]
    assert [rows(table)[token] for token in ("the", "of", "and")] == [VECTORS["the"], VECTORS["of"], VECTORS["and"]]
    assert (report.merged, report.duplicates, report.all_lowercase) == (4, 0, True)
    assert table.vocab.encode(["THE", "Xx"]).tolist() == [2, 5]
    assert table.vocab.encode(["THE", "Xx"], lookup="exact").tolist() == [1, 1]


def test_lowercase_with_duplicates(kernel: str, tmp_path: Path) -> None:
    source = tmp_path / "v.txt"
    source.write_bytes(b"The 1 1\nthe 2 2\nTHE 3 3\nthe 4 4\n")
    assert converted(source, lowercase=True)[0]["the"].tolist() == [2.0, 2.0]
    table, report, _ = converted(source, lowercase=True, duplicates="last")
    assert table["the"].tolist() == [4.0, 4.0]
    assert (report.merged, report.duplicates) == (2, 1)
    with pytest.raises(ValueError, match="it on lines 2 and 4"):
        converted(source, lowercase=True, duplicates="error")


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"vocab": ["a"], "only": ["a"]}, "vocab-and-only"),
        ({"case_fallback": True}, "case-fallback-alone"),
        ({"vocab": ["a"], "case_fallback": True, "lowercase": True}, "two-case-policies"),
        ({"missing": "mean"}, "missing-alone"),
        ({"vocab": ["a"], "missing": "ones"}, "missing-policy"),
    ],
)
def test_options_that_contradict_each_other(source: Path, options: dict[str, Any], code: str) -> None:
    with pytest.raises(UsageError) as error:
        converted(source, **options)
    assert error.value.code == code


def test_rows_that_are_not_kept_are_not_parsed(kernel: str, tmp_path: Path) -> None:
    source = tmp_path / "v.txt"
    source.write_bytes(b"a 1 2\nb x y\nc 3 4\nd 1e999 nan\n")
    table, _, _ = converted(source, only=["c", "a"], dim=2)
    assert table.vocab.to_list() == ["<pad>", "<unk>", "a", "c"]
    source.write_bytes(b"a 1 2\nb 3\nc 3 4\n")
    with pytest.raises(ValueError, match="line 2: the row has too few values"):
        converted(source, only=["c", "a"], dim=2)


def test_sample_of_glove_against_the_full_table(kernel: str, tmp_path: Path) -> None:
    """Every found row equals the full table's, whatever the list."""
    from helpers import FIXTURES

    sample = FIXTURES / "glove.6B.50d.sample.txt"
    full = vec2emb.read_vectors(sample)
    words = list(dict.fromkeys([*list(full.vocab)[::3], "zzz-missing", *list(full.vocab)[1::7]]))
    report, _ = collected(lambda: vec2emb.convert(sample, tmp_path / "b", vocab=words))
    table = vec2emb.load(tmp_path / "b")
    assert list(table.vocab)[2:] == words
    found = [word for word in words if word in full]
    assert report.missing == 1
    assert all(table[word].tobytes() == full[word].tobytes() for word in found)


def test_lowercase_refuses_words_that_could_never_match(source: Path) -> None:
    for words in ({"vocab": ["the", "The", "OF"]}, {"only": ["the", "The", "OF"]}):
        with pytest.raises(VocabularyError, match=r"2 of the words are not.*found 'The', 'OF'") as error:
            converted(source, lowercase=True, **words)
        assert error.value.code == "words-not-lowercase"
    table, _, _ = converted(source, lowercase=True, vocab=["[PAD]", "[UNK]", "the"], pad="[PAD]", unk="[UNK]")
    assert table["the"].tolist() == VECTORS["the"]


def test_the_wrong_list_of_words_is_said(source: Path) -> None:
    _, found = collected(lambda: vec2emb.convert(source, source.parent / "b", vocab=["Yak", "Zebra"], missing="zeros"))
    [lacking] = [warning for warning in found if warning.code == "all-words-missing"]
    assert "none of the words of the vocabulary is in the file (first 'Yak', 'Zebra'); is that the right list?" in str(
        lacking
    )


def test_a_key_that_stands_twice(source: Path) -> None:
    path = source.parent / "vocab.json"
    path.write_text('{"the": 0, "of": 1, "the": 2}')
    with pytest.raises(VocabularyError, match=r"vocab\.json.*'the' stands twice") as error:
        converted(source, vocab=path)
    assert error.value.code == "duplicate-token"
