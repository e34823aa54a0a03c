"""Special tokens: which there are, where they stand, and what their rows hold."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import bits, collected

import vec2emb
from vec2emb.errors import InputError, RowError, UsageError
from vec2emb.words.special_tokens import arrange, parse_special

ROWS = b"the 1 2\n<unk> 3 4\nof 5 9\n<s> 7 8\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "v.txt"
    path.write_bytes(ROWS)
    return path


def converted(source: Path, **options: Any) -> tuple[dict[str, list[float]], vec2emb.Report, list[str]]:
    """Tokens with their rows, in order; the report; the codes of the warnings."""
    out = source.parent / "out"
    report, found = collected(lambda: vec2emb.convert(source, out, if_exists="replace", **options))
    table = vec2emb.load(out)
    rows = {token: [float(x) for x in vector] for token, vector in table}
    assert len(rows) == len(table) == report.rows
    return rows, report, [w.code for w in found]


@pytest.mark.parametrize(
    ("text", "token", "init"),
    [
        ("<s>", "<s>", None),
        ("<s>=zeros", "<s>", "zeros"),
        ("<s>=mean", "<s>", "mean"),
        ("<s>=normal", "<s>", "normal"),
        ("<s>=uniform", "<s>", "uniform"),
        ("<s>=token:the", "<s>", "token:the"),
        ("<s>=token: ", "<s>", "token: "),
        ("a=b=mean", "a=b", "mean"),
        ("a=b", "a=b", None),
        ("a=Mean", "a=Mean", None),
        ("a=token:", "a=token:", None),
        ("mean", "mean", None),
        ("a=mean ", "a=mean ", None),
        ("=mean", "", "mean"),
        ("==mean", "=", "mean"),
    ],
)
def test_split(text: str, token: str, init: str | None) -> None:
    assert parse_special(text) == (token, init)


@pytest.mark.parametrize(
    ("pad", "unk", "specials", "order"),
    [
        ("<pad>", "<unk>", [], ["<pad>", "<unk>"]),
        ("<pad>", "<unk>", ["<s>", "</s>=zeros"], ["<pad>", "<unk>", "<s>", "</s>"]),
        ("<pad>", "<unk>", ["<unk>", "<pad>"], ["<unk>", "<pad>"]),
        ("<pad>", "<unk>", ["<s>", "<unk>"], ["<pad>", "<s>", "<unk>"]),
        ("<pad>", "<unk>", ["<s>", "<pad>"], ["<unk>", "<s>", "<pad>"]),
        (None, "<unk>", ["<pad>"], ["<unk>", "<pad>"]),
        ("<pad>", None, [("<s>", None)], ["<pad>", "<s>"]),
        (None, None, [], []),
    ],
)
def test_order(pad: str | None, unk: str | None, specials: list[Any], order: list[str]) -> None:
    arranged = arrange(pad, unk, None, specials)
    assert [special.token for special in arranged] == order
    assert [special.role for special in arranged] == [
        {pad: "padding", unk: "unknown"}.get(token, "special") for token in order
    ]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((None, None, None, ["<s>", "<s>"]), "special-twice"),
        ((None, None, None, ["<s>", "<s>=mean"]), "special-twice"),
        (("x", "x", None, []), "special-twice"),
        (("x", "x", None, ["x"]), "special-twice"),
        (("<pad>", None, None, ["<pad>=mean"]), "padding-init"),
        (("<pad>", None, None, [("<pad>", "normal")]), "padding-init"),
        ((None, "<unk>", "zeros", ["<unk>=mean"]), "unk-init-twice"),
        ((None, None, "zeros", []), "unk-init-alone"),
        ((None, "<unk>", "ones", []), "unknown-init"),
        ((None, "<unk>", "token:", []), "unknown-init"),
        ((None, None, None, [("<s>", "ones")]), "unknown-init"),
        ((None, None, None, [("<s>", 0)]), "unknown-init"),
        ((None, None, None, [""]), "special-token"),
        ((None, None, None, ["=mean"]), "special-token"),
        ((None, None, None, ["a\nb"]), "special-token"),
        ((None, None, None, ["\ud800"]), "special-token"),
        (("", None, None, []), "special-token"),
        ((5, None, None, []), "argument-type"),
        ((None, None, None, "<s>"), "specials-type"),
        ((None, None, None, [5]), "specials-type"),
        ((None, None, None, [("<s>",)]), "specials-type"),
    ],
)
def test_refused(arguments: tuple[Any, ...], code: str, source: Path) -> None:
    pad, unk, unk_init, specials = arguments
    with pytest.raises(UsageError) as caught:
        vec2emb.convert(source, source.parent / "out", pad=pad, unk=unk, unk_init=unk_init, specials=specials)
    assert caught.value.code == code
    assert not (source.parent / "out").exists()


def test_the_same_init_twice_is_one(source: Path) -> None:
    rows, _, _ = converted(source, unk_init="zeros", specials=["<unk>=zeros", "<pad>=zeros"])
    assert list(rows) == ["<unk>", "<pad>", "the", "of", "<s>"]
    assert rows["<unk>"] == [0, 0]


def test_a_special_of_the_file_keeps_its_vector(kernel: str, source: Path) -> None:
    rows, report, codes = converted(source, specials=["<s>", "</s>=zeros"])
    assert rows == {"<pad>": [0, 0], "<unk>": [3, 4], "<s>": [7, 8], "</s>": [0, 0], "the": [1, 2], "of": [5, 9]}
    assert codes == ["special-in-file"]
    assert "'<unk>' (the file's vector is used), '<s>' (the file's vector is used)" in str(report.warnings[0])
    assert (report.warnings[0].count, report.warnings[0].line) == (2, 2)
    assert report.specials == (
        ("<pad>", 0, "padding", "zeros", None),
        ("<unk>", 1, "unknown", "file", None),
        ("<s>", 2, "special", "file", None),
        ("</s>", 3, "special", "zeros", None),
    )
    assert (report.padding_idx, report.unk_idx) == (0, 1)


def test_an_init_replaces_the_vector_of_the_file(kernel: str, source: Path) -> None:
    """The mean is then over the rows that were taken from the file: the, of."""
    rows, report, codes = converted(source, unk_init="mean", specials=["<s>=token:of"])
    assert rows == {"<pad>": [0, 0], "<unk>": [3, 5.5], "<s>": [5, 9], "the": [1, 2], "of": [5, 9]}
    assert codes == ["special-in-file"]
    assert "'<unk>' (the file's vector is not used: mean), '<s>' (the file's vector is not used: token:of)" in str(
        report.warnings[0]
    )


def test_padding_is_zero_whatever_the_file_says(kernel: str, source: Path) -> None:
    rows, report, _ = converted(source, pad="the", unk=None)
    assert rows == {"the": [0, 0], "<unk>": [3, 4], "of": [5, 9], "<s>": [7, 8]}
    assert "'the' (the file's vector is not used: padding is zero)" in str(report.warnings[0])
    assert (report.padding_idx, report.unk_idx) == (0, None)


def test_at_the_end(kernel: str, block: str, threads: int, source: Path) -> None:
    rows, report, _ = converted(source, specials=["<s>", "</s>=token:<unk>"], specials_at="end", threads=threads)
    assert list(rows.items()) == [
        ("the", [1, 2]), ("of", [5, 9]), ("<pad>", [0, 0]), ("<unk>", [3, 4]), ("<s>", [7, 8]), ("</s>", [3, 4]),
    ]  # fmt: skip
    assert (report.padding_idx, report.unk_idx) == (2, 3)
    assert [special.id for special in report.specials] == [2, 3, 4, 5]


def test_none_at_all(source: Path) -> None:
    rows, report, codes = converted(source, pad=None, unk=None)
    assert rows == {"the": [1, 2], "<unk>": [3, 4], "of": [5, 9], "<s>": [7, 8]}
    assert (report.padding_idx, report.unk_idx, report.specials, codes) == (None, None, (), [])


def test_the_limit_counts_rows_of_the_file(source: Path) -> None:
    rows, report, codes = converted(source, limit=1, specials=["<s>=zeros"])
    assert rows == {"<pad>": [0, 0], "<unk>": [1, 2], "<s>": [0, 0], "the": [1, 2]}
    assert (report.limited, codes) == (True, [])


@pytest.mark.parametrize("duplicates", ["first", "last"])
def test_a_special_that_stands_twice_in_the_file(duplicates: str, kernel: str, block: str, source: Path) -> None:
    source.write_bytes(ROWS + b"<unk> 11 12\n<s> 13 14\n")
    rows, _, codes = converted(source, duplicates=duplicates, specials=["<s>=zeros"])
    assert rows["<unk>"] == ([3, 4] if duplicates == "first" else [11, 12])
    assert rows["<s>"] == [0, 0]
    assert list(rows) == ["<pad>", "<unk>", "<s>", "the", "of"]
    assert sorted(codes) == ["duplicate-tokens", "special-in-file"]


def test_a_special_that_stands_twice_is_an_error_like_any_other(source: Path) -> None:
    source.write_bytes(ROWS + b"<unk> 11 12\n")
    with pytest.raises(RowError, match="lines 2 and 5"):
        vec2emb.convert(source, source.parent / "out", duplicates="error")


@pytest.mark.parametrize("word", ["zebra", "<pad>", "</s>", "\ud800"])
def test_a_word_that_the_file_does_not_have(word: str, source: Path) -> None:
    """Special tokens that the file lacks are no words of the file."""
    with pytest.raises(InputError, match="a word that the file does not have") as caught:
        vec2emb.convert(source, source.parent / "out", specials=[("<t>", f"token:{word}"), "</s>"])
    assert caught.value.code == "init-word-missing"
    assert not (source.parent / "out").exists()


def test_nothing_to_take_a_mean_of(source: Path) -> None:
    source.write_bytes(b"<pad> 1 2\n")
    with pytest.raises(InputError) as caught:
        vec2emb.convert(source, source.parent / "out")
    assert (caught.value.code, caught.value.path, caught.value.found) == ("nothing-to-fit", str(source), None)
    rows, _, _ = converted(source, unk_init="zeros")
    assert rows == {"<pad>": [0, 0], "<unk>": [0, 0]}


def numbers(count: int = 300) -> bytes:
    draw = np.random.default_rng(3)
    return b"".join(b"w%d %.5f %.5f %.5f\n" % (i, *draw.normal([0, 5, -1], [1, 0.1, 3])) for i in range(count))


def test_the_mean_is_numpys(kernel: str, block: str, threads: int, source: Path) -> None:
    source.write_bytes(numbers())
    expected = vec2emb.read_vectors(source).vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
    vec2emb.convert(source, source.parent / "out", threads=threads)
    assert bits([vec2emb.load(source.parent / "out")["<unk>"]]) == bits([expected])


def test_the_mean_is_taken_after_unit_norm(kernel: str, source: Path) -> None:
    source.write_bytes(numbers())
    expected = vec2emb.read_vectors(source, unit_norm=True).vectors.mean(axis=0, dtype=np.float64)
    vec2emb.convert(source, source.parent / "out", unit_norm=True)
    assert bits([vec2emb.load(source.parent / "out")["<unk>"]]) == bits([expected.astype(np.float32)])


@pytest.mark.parametrize("seed", [None, "1", 1.0, True, np.int64(1)])
def test_a_seed_is_a_whole_number(source: Path, seed: Any) -> None:
    with pytest.raises(UsageError) as caught:
        vec2emb.convert(source, source.parent / "out", seed=seed)
    assert caught.value.code == "seed-range"


def test_random_rows_depend_on_seed_and_token_alone(kernel: str, source: Path) -> None:
    source.write_bytes(numbers())
    alone, _, _ = converted(source, specials=["<a>"], seed=1)
    among, _, _ = converted(source, specials=["<b>", "<a>", "<c>=uniform"], seed=1, specials_at="end", pad=None)
    other, _, _ = converted(source, specials=["<a>"], seed=2)
    assert alone["<a>"] == among["<a>"] != other["<a>"]
    assert len({tuple(among[token]) for token in ("<a>", "<b>", "<c>")}) == 3


def test_random_rows_are_fitted_to_the_file(source: Path) -> None:
    source.write_bytes(numbers())
    vectors = vec2emb.read_vectors(source).vectors
    mean, deviation = vectors.mean(axis=0, dtype=np.float64), vectors.std(axis=0, dtype=np.float64)
    normal = [f"<n{i}>=normal" for i in range(1000)]
    uniform = [f"<u{i}>=uniform" for i in range(1000)]
    rows, _, _ = converted(source, specials=normal + uniform)
    for kind in ("n", "u"):
        drawn = np.array([rows[f"<{kind}{i}>"] for i in range(1000)])
        standard = (drawn - mean) / deviation
        assert np.abs(standard.mean(axis=0)).max() < 4 / math.sqrt(1000)
        assert np.abs(standard.std(axis=0) - 1).max() < 0.1
        if kind == "u":
            assert np.abs(standard).max() <= math.sqrt(3) * (1 + 1e-6)
        else:
            assert 2.5 < np.abs(standard).max() < 5.5
