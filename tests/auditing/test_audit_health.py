"""What an audit says of a file by itself, against figures that are computed here in the plainest way."""

from __future__ import annotations

import math
import os
import threading
import tracemalloc
import unicodedata
from collections import Counter
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FIXTURES, collected

import vec2emb
from vec2emb.auditing.kinds import KINDS, kind_of, script_of
from vec2emb.auditing.results import Source
from vec2emb.errors import InputError, UsageError

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"


def table_of(path: Path) -> tuple[list[str], list[list[float]]]:
    """Tokens and values of a file without faults, by Python alone."""
    rows = [line.split(" ") for line in path.read_text("utf-8").split("\n")[:-1]]
    return [row[0] for row in rows], [[float(np.float32(float(value))) for value in row[1:]] for row in rows]


def write(path: Path, rows: list[tuple[bytes | str, Any]]) -> Path:
    lines = []
    for token, values in rows:
        name = token if isinstance(token, bytes) else token.encode()
        lines.append(name + b" " + b" ".join(str(value).encode() for value in values) + b"\n")
    path.write_bytes(b"".join(lines))
    return path


def of(path: Path | str, **options: Any) -> Source:
    return vec2emb.audit(path, **options).sources[0]


# Figures of a real file.


def test_figures_of_the_sample() -> None:
    tokens, rows = table_of(SAMPLE)
    source = of(SAMPLE)
    health = source.health
    assert (source.kind, source.format, source.compression) == ("vectors", "glove", "none")
    assert (health.rows, health.loaded, health.dim, health.faulty, health.made) == (250, 250, 50, 0, 0)
    assert (health.header_rows, health.header_agrees, health.limited) == (None, None, False)

    norms = sorted(math.sqrt(math.fsum(value * value for value in row)) for row in rows)
    assert (health.norms.min, health.norms.max) == pytest.approx((norms[0], norms[-1]), rel=1e-8)
    assert health.norms.median == pytest.approx((norms[124] + norms[125]) / 2, rel=1e-8)
    assert sum(health.norms.histogram.counts) == 250

    mean = [math.fsum(row[d] for row in rows) / 250 for d in range(50)]
    assert health.dimensions.mean == pytest.approx(mean, abs=1e-8)
    spread = [math.sqrt(math.fsum((row[d] - mean[d]) ** 2 for row in rows) / 250) for d in range(50)]
    assert health.dimensions.spread == pytest.approx(spread, rel=1e-7)
    squares = [math.fsum(row[d] ** 2 for row in rows) for d in range(50)]
    assert health.dimensions.share == pytest.approx([square / math.fsum(squares) for square in squares], rel=1e-7)
    assert [rogue.dim for rogue in health.dimensions.rogue] == [d for d in range(50) if squares[d] >= sum(squares) / 10]
    assert health.mean_length == pytest.approx(math.sqrt(math.fsum(value * value for value in mean)), rel=1e-7)

    units = [[value / math.sqrt(math.fsum(v * v for v in row)) for value in row] for row in rows]
    cosines = [math.fsum(a * b for a, b in zip(x, y, strict=True)) for x, y in combinations(units, 2)]
    assert health.mean_cosine == pytest.approx(math.fsum(cosines) / len(cosines), rel=1e-7)

    for form, found in (("NFC", health.nfc_twins), ("NFKC", health.nfkc_twins)):
        assert found == 250 - len({unicodedata.normalize(form, token) for token in tokens})  # type: ignore[arg-type]
    assert health.case_twins == 250 - len({token.casefold() for token in tokens})
    assert health.nfkc_twins > 0
    lengths = sorted(map(len, tokens))
    assert (health.token_length.max, health.token_length.median) == (lengths[-1], lengths[124])
    assert sum(health.kinds.values()) == 250


def test_outliers_are_beyond_the_outer_fences() -> None:
    _, rows = table_of(SAMPLE)
    norms = np.sqrt((np.array(rows) ** 2).sum(axis=1))
    first, third = np.quantile(norms, [0.25, 0.75])
    beyond = int(((norms > third + 3 * (third - first)) | (norms < first - 3 * (third - first))).sum())
    assert of(SAMPLE).health.norm_outliers == beyond


def test_neither_blocks_nor_threads_change_anything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = faulty(tmp_path)
    wanted = vec2emb.audit(path).to_dict()
    for size, threads in (("16", 1), ("64", 3), ("5000", 2)):
        monkeypatch.setenv("VEC2EMB_BLOCK_BYTES", size)
        assert vec2emb.audit(path, threads=threads).to_dict() == wanted


def test_the_same_under_both_kernels(kernel: str, tmp_path: Path) -> None:
    health = of(faulty(tmp_path)).health
    assert (health.rows, health.duplicates, health.nan_rows, health.faulty) == (48, 2, 1, 3)


# Faults that were sown, each found and named.


def faulty(folder: Path) -> Path:
    rng = np.random.default_rng(7)
    base = [f"w{letter}" for letter in "abcdefghijklmnopqrstuvwxyz"] + [
        "the", "of", "Paris", "paris", "fish", "ﬁsh", "café", "cafe\u0301", "\x1b[31mred", "<script>alert(1)</script>",
    ]  # fmt: skip
    values = rng.normal(size=(len(base), 12)).round(5)
    values[:, 4] += 20  # the rogue dimension
    rows: list[tuple[bytes | str, Any]] = [(token, row) for token, row in zip(base, values, strict=True)]
    rows += [
        ("the", values[0]), ("the", values[1]),
        ("nanrow", ["nan", *values[0, 1:]]), ("infrow", ["inf", *values[1, 1:]]), ("zero", [0] * 12),
        ("const", [2.5] * 12), ("copy", values[3]), ("long", values[2] * 1000),
        ("short", [1, 2]), (b"b\xff", values[4]), ("text", ["x", *values[5, 1:]]), ("unk", values[6] + 0.5),
    ]  # fmt: skip
    return write(folder / "faulty.txt", rows)


def test_sown_faults_are_counted_and_named(tmp_path: Path) -> None:
    health = of(faulty(tmp_path)).health
    assert (health.rows, health.loaded, health.faulty) == (48, 43, 3)
    named = {name: [example.token for example in examples] for name, examples in health.examples.items()}
    for figure, count, tokens in (
        ("duplicates", 2, ["the", "the"]), ("nan_rows", 1, ["nanrow"]), ("inf_rows", 1, ["infrow"]),
        ("zero_rows", 1, ["zero"]), ("constant_rows", 1, ["const"]), ("identical_vectors", 1, ["copy"]),
        ("case_twins", 2, ["Paris", "ﬁsh"]), ("nfkc_twins", 2, ["ﬁsh", "cafe\u0301"]), ("nfc_twins", 1, ["cafe\u0301"]),
    ):  # fmt: skip
        assert (getattr(health, figure), named[figure]) == (count, tokens), figure
    assert named["norm_outliers"][0] == "long"
    assert named["control"] == ["\x1b[31mred"]
    assert [rogue.dim for rogue in health.dimensions.rogue] == [4]
    assert {code: (f.count, f.line) for code, f in health.faults.items() if f.count} == {
        "row-width": (1, 45), "invalid-utf8": (1, 46), "not-a-numeral": (1, 47),
    }  # fmt: skip
    assert health.kinds["invalid_utf8"] == 1
    assert [special.token for special in health.near_specials] == ["unk"]
    assert [example.detail for example in health.examples["duplicates"]] == ["line 37", "line 38"]


def test_findings_name_them_and_say_what_to_do(tmp_path: Path) -> None:
    findings = {finding.code: finding for finding in of(faulty(tmp_path)).health.findings}
    assert [finding.level for finding in findings.values()] == sorted(
        (finding.level for finding in findings.values()), key=["fault", "warning", "note"].index
    )
    assert findings["nan-rows"].message == "1 row with NaN: 'nanrow' (row 36)"
    assert findings["nan-rows"].advice == "--nonfinite zero writes 0, --bad-rows skip leaves it out"
    assert findings["duplicates"].message.startswith("2 rows of tokens that came before: 'the' (line 37)")
    assert findings["identical-vectors"].message.endswith("'copy' (same as 'wd')")
    assert findings["rogue-dims"].message.startswith("1 of 12 dimensions carry much of the squared length: 4 (")
    assert "\\x1b" in findings["control"].message
    assert findings["row-width"].message.startswith("1 row does not load, the first: line 45: the row has too few")
    assert findings["near-special"].advice == "--unk unk makes it the unknown token, with its own vector"


def test_a_token_that_stands_twice_counts_once_more_only(tmp_path: Path) -> None:
    path = write(tmp_path / "v.txt", [("a", [1, 2]), ("a", [3, "x"]), ("b", [0, 1])])
    health = of(path).health
    assert (health.rows, health.loaded, health.duplicates, health.faulty) == (3, 2, 1, 0)


def test_identical_vectors_are_told_by_their_bits(tmp_path: Path) -> None:
    rows: list[tuple[bytes | str, Any]] = [
        ("a", [1, 2]),
        ("b", [1, 2]),
        ("c", [2, 1]),
        ("d", [1, 2]),
        ("e", [0, 0]),
        ("f", [0, 0]),
    ]
    health = of(write(tmp_path / "v.txt", rows)).health
    assert (health.identical_vectors, health.zero_rows) == (2, 2)
    assert [(e.token, e.detail) for e in health.examples["identical_vectors"]] == [
        ("b", "same as 'a'"), ("d", "same as 'b'")
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("header", "agrees", "code"),
    [(b"3 2\n", True, None), (b"4 2\n", False, "header-rows"), (b"2 2\n", False, "header-rows")],
)
def test_a_header_is_held_against_the_facts(header: bytes, agrees: bool, code: str | None, tmp_path: Path) -> None:
    path = tmp_path / "v.vec"
    path.write_bytes(header + b"a 1 2\nb 3 4\nc 5 6\n")
    health = of(path).health
    assert (health.header_agrees, health.header_rows) == (agrees, int(header[:1]))
    assert [finding.code for finding in health.findings if finding.level == "fault"] == ([code] if code else [])


def test_a_file_of_nothing_but_faults(tmp_path: Path) -> None:
    path = write(tmp_path / "v.txt", [("a", ["nan", "nan"]), ("b", ["inf", 1])])
    health = of(path).health
    assert (health.loaded, health.nan_rows, health.inf_rows) == (2, 1, 1)
    assert (health.norms.median, health.mean_length, health.mean_cosine) == (None, None, None)
    assert (health.dimensions.mean, health.norms.histogram.counts) == ([], [])


def test_what_is_no_table_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("some words\nand more\n")
    with pytest.raises(InputError):
        vec2emb.audit(tmp_path / "t.txt")
    with pytest.raises(UsageError) as error:
        vec2emb.audit()
    assert error.value.code == "no-source"


def test_a_limit_is_said(tmp_path: Path) -> None:
    health = of(SAMPLE, limit=10).health
    assert (health.rows, health.limited, health.header_agrees) == (10, True, None)


@pytest.mark.parametrize("dim", [1, 2])
def test_tables_of_hardly_any_width(dim: int, tmp_path: Path) -> None:
    path = write(tmp_path / "v.txt", [("a", range(1, dim + 1)), ("b", range(5, 5 + dim)), ("c", [7] * dim)])
    assert of(path, dim=dim).health.constant_rows == (0 if dim == 1 else 1)


@pytest.mark.parametrize("name", ["g.bin", "g.bin.gz", "g.vec", "g.txt.xz"])
def test_what_a_file_is_packed_in_changes_no_figure(name: str, tmp_path: Path) -> None:
    vec2emb.convert(SAMPLE, tmp_path / "b")
    to = {"bin": "word2vec-binary", "vec": "word2vec", "txt": "glove"}[name.split(".")[1]]
    vec2emb.export(tmp_path / "b", to, tmp_path / name, specials="drop")
    found, wanted = of(tmp_path / name), of(SAMPLE)
    assert found.format == to
    if to != "glove":
        assert (found.health.header_rows, found.health.header_agrees) == (250, True)
    assert replace(found.health, header_rows=None, header_agrees=None) == wanted.health


def test_what_can_be_opened_but_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(SAMPLE.read_bytes(),))
    writer.start()
    source = of(pipe)
    writer.join()
    assert source.health == of(SAMPLE).health
    assert (source.files[0].bytes, source.files[0].sha256) == (None, None)


def test_no_vector_is_kept(tmp_path: Path) -> None:
    rows = np.random.default_rng(2).normal(size=(20_000, 400)).astype(np.float32)
    vec2emb.save(tmp_path / "b", [f"w{i}" for i in range(20_000)], rows)
    vec2emb.export(tmp_path / "b", "word2vec-binary", tmp_path / "b.bin")
    for path in (tmp_path / "b", tmp_path / "b.bin"):
        tracemalloc.start()
        assert of(path, threads=2).health.loaded == 20_000
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < rows.nbytes / 2, f"{peak:,} bytes at most, {rows.nbytes:,} the table"


# Bundles.


def test_a_bundle_is_judged_by_the_rows_that_came_from_its_file(tmp_path: Path) -> None:
    words = [*table_of(SAMPLE)[0][:20], "zyzzyva", "xyzzy"]
    collected(lambda: vec2emb.convert(SAMPLE, tmp_path / "b", vocab=words))
    source = of(tmp_path / "b")
    health = source.health
    assert (source.kind, source.format) == ("bundle", "float32")
    assert (health.rows, health.made, health.loaded) == (24, 4, 20)  # padding, unknown and two words that were drawn
    assert (health.zero_rows, health.checks_failed) == (0, 0)
    rows = np.array(table_of(SAMPLE)[1][:20])
    assert health.dimensions.mean == pytest.approx(rows.mean(axis=0).tolist(), abs=1e-8)
    assert [file.name for file in source.files] == [
        str(tmp_path / "b" / name) for name in ("model.safetensors", "vocab.txt", "vec2emb.json")
    ]


def test_float16_and_bfloat16_bundles(tmp_path: Path) -> None:
    wanted = of(SAMPLE).health.norms.median
    for dtype in ("float16", "bfloat16"):
        vec2emb.convert(SAMPLE, tmp_path / dtype, dtype=dtype)
        source = of(tmp_path / dtype)
        assert source.format == dtype
        assert source.health.norms.median == pytest.approx(wanted, rel=1e-2)


def test_rows_that_were_borrowed_are_no_copies(tmp_path: Path) -> None:
    vec2emb.convert(SAMPLE, tmp_path / "b", vocab=["the", "The", "THE", "of"], case_fallback=True)
    health = of(tmp_path / "b").health
    assert (health.identical_vectors, health.loaded) == (0, 4)


def test_a_damaged_bundle_fails_its_checks(tmp_path: Path) -> None:
    vec2emb.convert(SAMPLE, tmp_path / "b")
    model = tmp_path / "b" / "model.safetensors"
    data = bytearray(model.read_bytes())
    data[-1] ^= 1
    model.write_bytes(data)
    health = of(tmp_path / "b").health
    assert health.checks_failed == 1
    assert health.findings[0].code == "check-failed"
    assert "digest of model.safetensors" in health.findings[0].message


# Kinds of token.


@pytest.mark.parametrize(
    ("token", "kind"),
    [
        ("the", "word"), ("l'été", "word"), ("naïve", "word"), ("हिन्दी", "word"), ("می‌خواهم", "word"),
        ("co-op", "word"), ("1,000", "digits"), ("3.14", "digits"), ("٣", "digits"), ("1990s", "other"),
        ("covid-19", "other"),
        ("...", "punctuation"), ("€", "punctuation"), ("-", "punctuation"), ("🙂", "punctuation"),
        ("\u00a0", "white_space"), ("\u3000", "white_space"), ("a\x1b[0m", "control"), ("\u202eabc", "control"),
        ("http://a.b/c", "url"), ("www.x", "url"), ("me@mail.org", "url"), ("nytimes.com", "url"), ("e.g.", "word"),
        ("New York", "several_words"), ("New_York", "several_words"), (". . .", "several_words"),
        ("cafÃ©", "mojibake"), ("donâ€™t", "mojibake"), ("x\ufffd", "mojibake"), ("Ãltere", "word"), ("façade", "word"),
    ],
)  # fmt: skip
def test_kinds(token: str, kind: str) -> None:
    assert kind_of(token) == kind
    assert kind in KINDS


@pytest.mark.parametrize(
    ("token", "script"),
    [("the", "Latin"), ("Straße", "Latin"), ("москва", "Cyrillic"), ("東京", "Han"), ("東京タワー", "Japanese"),
     ("раypal", "Mixed"), ("ｆｕｌｌ", "Latin"), ("𝐛𝐨𝐥𝐝", "Latin"), ("ελλάδα", "Greek")],
)  # fmt: skip
def test_scripts(token: str, script: str) -> None:
    assert script_of(token) == script


def test_kinds_are_counted_one_by_one(tmp_path: Path) -> None:
    tokens = ["the", "The", "1990", "!", "http://x.y", "a_b", "\u00a0", "cafÃ©", "b\x07", "x1", "東京", "москва"]
    path = write(tmp_path / "v.txt", [(token, [i + 1, 1]) for i, token in enumerate(tokens)])
    health = of(path).health
    wanted = Counter(map(kind_of, tokens))
    assert {kind: count for kind, count in health.kinds.items() if count} == wanted
    assert health.scripts == {"Latin": 2, "Cyrillic": 1, "Han": 1}


@pytest.mark.parametrize("length", [1e15, 1e30, 1.0, 1e-20])
@pytest.mark.parametrize("apart", [0.0, 1e-16])
def test_lengths_that_are_equal(length: float, apart: float, tmp_path: Path) -> None:
    """So far from 0 that no bin is narrow enough to lie between two of them, they are all in one bin."""
    rows = [f"w{i} {length * (1 + apart * i)!r} 0\n" for i in range(9)]
    (tmp_path / "v.txt").write_text("".join(rows))
    histogram = vec2emb.audit(tmp_path / "v.txt").sources[0].health.norms.histogram
    assert sum(histogram.counts) == 9
    assert histogram.edges[0] < length < histogram.edges[-1]
