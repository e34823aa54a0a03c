"""Rows that the file does not have: their values, their order, and what they depend on."""

from __future__ import annotations

import itertools
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vec2emb
from vec2emb import Report, Table
from vec2emb.conversion.initialization import RunningSums, Statistics, initial_vector, standard_normal
from vec2emb.errors import InputError, UsageError
from vec2emb.words.special_tokens import Special, arrange, parse_special

pytestmark = pytest.mark.filterwarnings("ignore::vec2emb.Vec2embWarning")


def write(path: Path, rows: list[tuple[str, Any]]) -> Path:
    """GloVe text; `%.9g` gives every float32 back."""
    path.write_text("".join(f"{t} {' '.join(map('{:.9g}'.format, v))}\n" for t, v in rows), encoding="utf-8")
    return path


def converted(tmp_path: Path, rows: list[tuple[str, Any]], **options: Any) -> tuple[Table, Report]:
    source = write(tmp_path / "v.txt", rows)
    report = vec2emb.convert(
        source, tmp_path / "out", format="glove", dim=len(rows[0][1]), if_exists="replace", **options
    )
    return vec2emb.load(tmp_path / "out"), report


def some_rows(count: int, dim: int, seed: int = 0) -> list[tuple[str, Any]]:
    """Of very different sizes, so that an order of summation other than the right one shows."""
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(count, dim)) * 10.0 ** rng.integers(-6, 7, (count, dim))).astype(np.float32)
    return [(f"w{i}", row) for i, row in enumerate(rows)]


def mean_of(vectors: Any) -> Any:
    return np.asarray(vectors).mean(axis=0, dtype=np.float64).astype(np.float32)


# The mean, bit by bit.


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("at", ["start", "end"])
@pytest.mark.parametrize("unit_norm", [False, True])
@pytest.mark.parametrize("dim", [2, 3, 50])
def test_mean_is_numpys(tmp_path: Path, threads: int, dim: int, unit_norm: bool, at: str) -> None:
    rows = some_rows(301, dim)
    table, _ = converted(tmp_path, rows, unit_norm=unit_norm, specials_at=at, threads=threads)
    body = table.vectors[2:] if at == "start" else table.vectors[:-2]
    if not unit_norm:
        np.testing.assert_array_equal(body, [row for _, row in rows])
    pad, unk = (0, 1) if at == "start" else (301, 302)
    assert (table.vocab.padding_idx, table.vocab.unk_idx) == (pad, unk)
    assert table.vectors[unk].tobytes() == mean_of(body).tobytes()
    assert not table.vectors[pad].any()


def pieces_of(rows: Any, first: int, rng: Any) -> list[tuple[int, memoryview]]:
    """The rows cut anywhere, each piece with the id of its first row."""
    cuts = sorted({0, len(rows), *rng.integers(0, len(rows) + 1, 12).tolist()})
    return [(first + a, memoryview(rows[a:b].tobytes())) for a, b in itertools.pairwise(cuts)]


@pytest.mark.parametrize("seed", range(20))
def test_running_sums_do_not_depend_on_the_order_in_which_pieces_come(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.array([row for _, row in some_rows(200, 5, seed)])
    pieces = pieces_of(rows, 2, rng)
    rng.shuffle(pieces)
    sums = RunningSums(2, 5)
    for id, piece in pieces:
        assert sums.upto(202) is None
        sums.add(id, piece)
    found = sums.upto(202)
    assert found is not None
    assert found.rows == 200
    assert bytes(found.totals) == rows.sum(axis=0, dtype=np.float64).tobytes()
    assert sums.upto(201) is None
    assert sums.upto(203) is None


def test_running_sums_of_many_threads() -> None:
    rows = np.array([row for _, row in some_rows(20_000, 5)])
    sums, pieces = RunningSums(0, 5), iter([(i, memoryview(rows[i : i + 7].tobytes())) for i in range(0, 20_000, 7)])
    lock = threading.Lock()

    def work() -> None:
        while True:
            with lock:
                piece = next(pieces, None)
            if piece is None:
                return
            sums.add(*piece)

    with ThreadPoolExecutor(8) as pool:
        for _ in range(8):
            pool.submit(work)
    found = sums.upto(20_000)
    assert found is not None
    assert bytes(found.totals) == rows.sum(axis=0, dtype=np.float64).tobytes()


@pytest.mark.parametrize(
    "ids", [(0, 2), (3, 2, 2), (2, 2), (4, 4)], ids=["too early", "again", "the same", "the same, waiting"]
)
def test_running_sums_are_given_up_where_the_order_is_none(ids: tuple[int, ...]) -> None:
    sums = RunningSums(2, 1)
    for id in ids:
        sums.add(id, memoryview(np.ones(1, np.float32).tobytes()))
    for stop in range(6):
        assert sums.upto(stop) is None


def test_running_sums_let_only_so_much_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunningSums, "WAITING", 8)
    ones = memoryview(np.ones(1, np.float32).tobytes())
    sums = RunningSums(0, 1)
    for id in (2, 1, 0):
        sums.add(id, ones)
    assert sums.upto(3) is not None
    sums = RunningSums(0, 1)
    for id in (3, 2, 1, 0):
        sums.add(id, ones)
    assert sums.upto(4) is None


@pytest.mark.usefixtures("kernel")
def test_mean_of_one_dimension_adds_one_row_after_the_other(tmp_path: Path) -> None:
    """A column that is contiguous numpy sums in pairs; a plain loop is the promise for D = 1."""
    rows = some_rows(1000, 1)
    table, _ = converted(tmp_path, rows)
    total = 0.0
    for _, row in rows:
        total += float(row[0])
    assert table["absent"][0] == np.float32(total / 1000)


@pytest.mark.parametrize("at", ["start", "end"])
@pytest.mark.parametrize("duplicates", ["first", "last"])
def test_mean_is_over_the_rows_that_were_taken_in_their_final_order(tmp_path: Path, duplicates: str, at: str) -> None:
    rows = some_rows(40, 3)
    rows[5] = ("<s>", rows[5][1])  # a special that keeps the file's vector: it counts, at its place in the table
    rows[9] = ("</s>", rows[9][1])  # one that gets another: it does not
    rows[11] = ("<pad>", rows[11][1])  # nor does padding
    rows[30] = ("w3", rows[30][1])  # a duplicate
    table, report = converted(
        tmp_path, rows, duplicates=duplicates, specials_at=at, specials=["</s>=zeros", "<s>"], unk_init="mean"
    )
    names = [token for i, (token, _) in enumerate(rows) if i not in (5, 9, 11, 30)]
    special = ["<pad>", "<unk>", "</s>", "<s>"]
    assert table.vocab.tokens == (special + names if at == "start" else names + special)
    np.testing.assert_array_equal(table["w3"], rows[30 if duplicates == "last" else 3][1])
    np.testing.assert_array_equal(table["<s>"], rows[5][1])
    assert not table["</s>"].any()
    assert not table["<pad>"].any()
    taken = [table[token] for token in table.vocab.tokens if token not in special[:3]]
    assert table["<unk>"].tobytes() == mean_of(taken).tobytes()
    assert {special.token: special.init for special in report.specials} == {
        "<pad>": "zeros", "<unk>": "mean", "</s>": "zeros", "<s>": "file",
    }  # fmt: skip


@pytest.mark.parametrize("at", ["start", "end"])
def test_mean_with_the_last_of_a_special_that_stands_twice(tmp_path: Path, at: str) -> None:
    rows = [("<s>", [1, 2]), ("a", [3, 4]), ("<s>", [5, 6]), ("b", [7, 8])]
    for duplicates, vector in (("first", [1, 2]), ("last", [5, 6])):
        table, _ = converted(tmp_path, rows, duplicates=duplicates, specials=["<s>"], specials_at=at)
        assert table["<s>"].tolist() == vector
        assert table["<unk>"].tolist() == mean_of([vector, [3, 4], [7, 8]]).tolist()


def test_mean_leaves_rows_out_that_are_not_finite(tmp_path: Path) -> None:
    rows = [("a", [1, 2]), ("b", [math.nan, 3]), ("c", [3, 6]), ("d", [math.inf, 0])]
    table, _ = converted(tmp_path, rows, nonfinite="keep")
    assert table["<unk>"].tolist() == [2, 4]
    assert np.isnan(table["b"][0])
    table, _ = converted(tmp_path, rows, nonfinite="zero")
    assert table["b"].tolist() == [0, 3]
    assert table["<unk>"].tolist() == [1, 2.75]


def test_unit_norm_scales_to_length_one_and_leaves_zeros(tmp_path: Path) -> None:
    rows = [("a", [3, 4]), ("z", [0, 0]), ("tiny", [1e-38, 1e-38]), ("huge", [3e38, 3e38]), ("minus", [-0.5, 0])]
    table, _ = converted(tmp_path, rows, unit_norm=True)
    half = np.float32(math.sqrt(0.5))
    expected = [[0.6, 0.8], [0, 0], [half, half], [half, half], [-1, 0]]
    np.testing.assert_array_equal(table.vectors[2:], np.array(expected, np.float32))


# Random rows.


def test_random_rows_have_the_mean_and_the_deviation_of_the_file(tmp_path: Path) -> None:
    """Within five standard errors; 2,000 draws a dimension."""
    rng = np.random.default_rng(5)
    centre, spread = np.array([3.0, -1, 0]), np.array([0.5, 2, 1e-3])
    rows = [(f"w{i}", row) for i, row in enumerate((rng.normal(size=(500, 3)) * spread + centre).astype(np.float32))]
    drawn = 2000
    for init in ("normal", "uniform"):
        table, _ = converted(tmp_path, rows, specials=[f"<s{i}>={init}" for i in range(drawn)])
        file_rows, sample = table.vectors[2 + drawn :].astype(float), table.vectors[2 : 2 + drawn].astype(float)
        mean, deviation = file_rows.mean(axis=0), file_rows.std(axis=0)
        assert (abs(sample.mean(axis=0) - mean) < 5 * deviation / math.sqrt(drawn)).all()
        assert (abs(sample.std(axis=0) / deviation - 1) < 5 / math.sqrt(2 * drawn)).all()
        scaled = (sample - mean) / deviation
        if init == "uniform":
            assert (abs(scaled) <= math.sqrt(3) * (1 + 1e-6)).all()
            assert (abs(scaled).max(axis=0) > 1.7).all()
        else:
            assert (abs(scaled).max(axis=0) > 3).all()
            assert abs((scaled**4).mean() - 3) < 5 * math.sqrt(96 / (3 * drawn))
        assert len(np.unique(sample, axis=0)) == drawn
        assert abs(np.corrcoef(scaled.T)[np.triu_indices(3, 1)]).max() < 5 / math.sqrt(drawn)


def test_a_random_row_depends_on_seed_and_token_alone(tmp_path: Path) -> None:
    rows = some_rows(20, 4)

    def row(token: str, **options: Any) -> bytes:
        table, _ = converted(tmp_path, rows, **options)
        return bytes(table[token].tobytes())

    first = row("<s>", specials=["<s>"])
    assert row("<s>", specials=["<s>"]) == first
    assert row("<s>", specials=["<a>", "<s>=normal", "<b>=uniform"], pad=None, unk=None) == first
    assert row("<s>", specials=["<a>=zeros", "<s>"], specials_at="end", threads=1) == first
    assert row("<s>", unk="<s>", unk_init="normal") == first
    others = [
        row("<s>", specials=["<s>"], seed=1), row("<s>", specials=["<s>"], seed=-1), row("<t>", specials=["<t>"]),
        row("<s>", specials=["<s>=uniform"]),
    ]  # fmt: skip
    assert len({first, *others}) == 5


def test_random_bits_are_those_of_philox_keyed_by_seed_and_token() -> None:
    """Derived a second time: 53 bits of Philox(SHA-256(seed, 0, token)), then Box and Muller."""
    import hashlib

    from numpy.random import Philox

    for seed, token in ((0, "<s>"), (-7, "ä\n"), (2**70, "")):
        key = int.from_bytes(hashlib.sha256(f"{seed}\0{token}".encode()).digest()[:16], "little")
        u = [(int(bits) >> 11) / 2**53 for bits in Philox(key=key).random_raw(4)]
        expected = []
        for a, b in ((u[0], u[1]), (u[2], u[3])):
            radius = math.sqrt(-2 * math.log1p(-a))
            expected += [radius * math.cos(math.tau * b), radius * math.sin(math.tau * b)]
        np.testing.assert_allclose(np.asarray(standard_normal(seed, token, 4)), expected, rtol=1e-12)
        np.testing.assert_allclose(np.asarray(standard_normal(seed, token, 3)), expected[:3], rtol=1e-12)


def test_the_deviation_is_numpys() -> None:
    rows = np.array([row for _, row in some_rows(300, 5)], np.float32)
    statistics = Statistics(lambda: iter([rows[:7].tobytes(), rows[7:].tobytes()]), 5)
    np.testing.assert_allclose(statistics.deviation, rows.std(axis=0, dtype=np.float64), rtol=1e-13)
    np.testing.assert_array_equal(statistics.mean, rows.mean(axis=0, dtype=np.float64))
    np.testing.assert_array_equal(initial_vector("mean", "x", 0, statistics), mean_of(rows))


def test_one_row_has_no_deviation_so_its_random_rows_are_itself(tmp_path: Path) -> None:
    table, _ = converted(tmp_path, [("a", [1, -2])], specials=["<s>=normal", "<t>=uniform"])
    assert table["<s>"].tolist() == table["<t>"].tolist() == table["<unk>"].tolist() == [1, -2]


# Copies.


def test_a_copy_of_a_word(tmp_path: Path) -> None:
    rows = [("a=b", [1, 2]), ("of", [3, 4]), ("<s>", [5, 6])]
    specials = ["<x>=token:a=b", "<y>=token:of", ("<z>", "token:<s>"), "<s>"]
    table, report = converted(
        tmp_path, rows, specials=["<y>=token:of", ("<x>", "token:a=b"), ("<z>", "token:<s>"), "<s>"]
    )
    assert [table[token].tolist() for token in ("<x>", "<y>", "<z>", "<s>")] == [[1, 2], [3, 4], [5, 6], [5, 6]]
    assert [special.init for special in report.specials] == [
        "zeros",
        "mean",
        "token:of",
        "token:a=b",
        "token:<s>",
        "file",
    ]
    assert specials[0] == "<x>=token:a=b"
    table, _ = converted(tmp_path, rows, unk_init="token:of", specials_at="end", unit_norm=True)
    np.testing.assert_array_equal(table["absent"], np.array([0.6, 0.8], np.float32))


@pytest.mark.parametrize("word", ["absent", "<pad>", "<unk>", "<t>"])
def test_a_copy_of_a_word_that_the_file_does_not_have(tmp_path: Path, word: str) -> None:
    with pytest.raises(InputError, match="a word that the file does not have") as caught:
        converted(tmp_path, [("a", [1, 2]), ("<t>", [3, 4])], specials=["<t>=zeros", f"<s>=token:{word}"])
    assert caught.value.code == "init-word-missing"
    assert word in str(caught.value)
    assert not (tmp_path / "out").exists()


# Specials and the file.


def test_a_special_of_the_file_keeps_its_vector_unless_told_otherwise_and_padding_is_always_zero(
    tmp_path: Path,
) -> None:
    rows = [("a", [1, 2]), ("<unk>", [3, 4]), ("<pad>", [5, 6]), ("<s>", [7, 8])]
    table, report = converted(tmp_path, rows, specials=["<s>"])
    assert table.vocab.tokens == ["<pad>", "<unk>", "<s>", "a"]
    assert table.vectors.tolist() == [[0, 0], [3, 4], [7, 8], [1, 2]]
    (warning,) = [w for w in report.warnings if w.code == "special-in-file"]
    assert (warning.count, warning.line) == (3, 2)
    assert "'<pad>' (the file's vector is not used: padding is zero)" in str(warning)
    table, _ = converted(tmp_path, rows, unk_init="mean", specials=["<s>=zeros"])
    assert table.vectors.tolist() == [[0, 0], [1, 2], [0, 0], [1, 2]]
    table, _ = converted(tmp_path, rows, pad=None, unk=None)
    assert table.vocab.tokens == ["a", "<unk>", "<pad>", "<s>"]
    assert table.vectors.tolist() == [[1, 2], [3, 4], [5, 6], [7, 8]]
    assert table.vocab.padding_idx is None


def test_the_order_of_torchtext_unknown_first(tmp_path: Path) -> None:
    table, report = converted(tmp_path, [("a", [1, 2])], specials=["<unk>", "<pad>", "<bos>"])
    assert table.vocab.tokens == ["<unk>", "<pad>", "<bos>", "a"]
    assert (table.vocab.unk_idx, table.vocab.padding_idx) == (0, 1)
    assert table.vectors[1].tolist() == [0, 0]
    assert (report.manifest.unk_idx, report.manifest.padding_idx) == (0, 1)
    assert [(s.token, s.id, s.role) for s in report.specials] == [
        ("<unk>", 0, "unknown"), ("<pad>", 1, "padding"), ("<bos>", 2, "special"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<s>", ("<s>", None)),
        ("<s>=zeros", ("<s>", "zeros")),
        ("a=b", ("a=b", None)),
        ("a=b=mean", ("a=b", "mean")),
        ("=", ("=", None)),
        ("==zeros", ("=", "zeros")),
        ("x=token:of", ("x", "token:of")),
        ("x=token:", ("x=token:", None)),
        ("x=Zeros", ("x=Zeros", None)),
        ("=zeros", ("", "zeros")),
    ],
)
def test_a_special_is_split_at_its_last_sign_and_only_before_an_init(
    text: str, expected: tuple[str, str | None]
) -> None:
    assert parse_special(text) == expected


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("<p>", "<p>", None, ()), "special-twice"),
        (("<p>", "<u>", None, ("<s>", "<s>=zeros")), "special-twice"),
        (("<p>", "<u>", None, "<s>"), "specials-type"),
        (("<p>", None, "mean", ()), "unk-init-alone"),
        (("<p>", "<u>", "median", ()), "unknown-init"),
        (("<p>", "<u>", None, (("<s>", "median"),)), "unknown-init"),
        (("<p>", "<u>", None, ("<p>=normal",)), "padding-init"),
        (("<p>", "<u>", "mean", ("<u>=zeros",)), "unk-init-twice"),
        (("", "<u>", None, ()), "special-token"),
        (("<p>", "a\nb", None, ()), "special-token"),
        (("<p>", "\ud800", None, ()), "special-token"),
        (("<p>", "<u>", None, ("=zeros",)), "special-token"),
    ],
)
def test_specials_that_contradict_each_other(arguments: Any, code: str) -> None:
    with pytest.raises(UsageError) as caught:
        arrange(*arguments)
    assert caught.value.code == code


def test_padding_and_unknown_stand_where_they_are_named() -> None:
    assert arrange("<p>", "<u>", None, ["<a>"]) == [
        Special("<p>", "zeros", "zeros", "padding"), Special("<u>", None, "mean", "unknown"),
        Special("<a>", None, "normal", "special"),
    ]  # fmt: skip
    assert [s.token for s in arrange("<p>", "<u>", None, ["<a>", "<p>"])] == ["<u>", "<a>", "<p>"]
    assert arrange(None, "<u>", "zeros", []) == [Special("<u>", "zeros", "mean", "unknown")]
    assert arrange(None, None, None, []) == []


@pytest.mark.parametrize("at", ["start", "end"])
def test_a_file_of_nothing_but_specials(tmp_path: Path, at: str) -> None:
    table, _ = converted(tmp_path, [("<unk>", [1, 2])], specials_at=at)
    assert table.vocab.tokens == ["<pad>", "<unk>"]
    assert table.vectors.tolist() == [[0, 0], [1, 2]]
    with pytest.raises(InputError, match=r"nothing has a mean.*unk-init zeros") as caught:
        converted(tmp_path, [("<pad>", [1, 2])], specials_at=at)
    assert caught.value.code == "nothing-to-fit"
    table, _ = converted(tmp_path, [("<pad>", [1, 2])], specials_at=at, unk_init="zeros")
    assert table.vectors.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_random_row_that_overflows_is_refused(tmp_path: Path, dtype: str) -> None:
    edge = 3.4e38 if dtype == "float32" else 6.5e4
    rows = [(f"w{i}", [edge * (-1) ** i]) for i in range(4)]
    with pytest.raises(InputError, match="does not fit") as caught:
        converted(tmp_path, rows, specials=[f"<s{i}>=normal" for i in range(20)], dtype=dtype)
    assert caught.value.code == "out-of-range"
    assert not (tmp_path / "out").exists()


def test_a_copy_of_a_row_that_is_kept_as_it_is_not_finite(tmp_path: Path) -> None:
    rows = [("a", [math.inf, math.nan]), ("b", [1, 2])]
    for dtype in ("float32", "float16"):
        table, _ = converted(tmp_path, rows, nonfinite="keep", unk_init="token:a", dtype=dtype)
        np.testing.assert_array_equal(table["<unk>"], np.array([math.inf, math.nan], np.float32))
