"""Knowing what comes out: expectations, rehearsals, row reports, records; and tokens in other encodings."""

from __future__ import annotations

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from helpers import collected, digest_of, run

import vec2emb
from vec2emb.errors import CheckError, InputError, OutputError, UsageError

TABLE = b"the 0.5 -1.25 2\nof 1 0.25 -0.75\nthe 9 9 9\nbad 1 x 2\nand -0.5 0.125 0.0625\n"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "vectors.txt"
    path.write_bytes(TABLE)
    return path


def convert(source: Path, **options: Any) -> vec2emb.Report:
    out = options.pop("output", source.parent / "out")
    return collected(lambda: vec2emb.convert(source, out, bad_rows="skip", **options))[0]


def test_expectations_that_hold(source: Path) -> None:
    convert(source, expect={"rows": 5, "dim": 3})
    digest = hashlib.sha256((source.parent / "out" / "model.safetensors").read_bytes()).hexdigest()
    convert(source, expect=f"rows=5,dim=3,sha256={digest.upper()}", if_exists="replace")
    convert(source, expect={"digest": digest_of(source.parent / "out" / "model.safetensors")}, if_exists="replace")


@pytest.mark.parametrize(
    ("expect", "code"),
    [
        ("rows=4", "expected-rows"),
        ({"dim": 2}, "expected-dim"),
        ("sha256=" + "0" * 64, "expected-sha256"),
        ("digest=" + "0" * 64, "expected-digest"),
    ],
)
def test_expectations_that_are_missed_leave_nothing(source: Path, expect: Any, code: str) -> None:
    with pytest.raises(CheckError, match="nothing was written") as error:
        convert(source, expect=expect)
    assert (error.value.code, error.value.exit_code) == (code, 3)
    assert sorted(path.name for path in source.parent.iterdir()) == ["vectors.txt"]


@pytest.mark.parametrize("expect", ["rows", "rows=x", "columns=3", "sha256=12", "digest=12", {"rows": -1}])
def test_expectations_that_are_none(source: Path, expect: Any) -> None:
    with pytest.raises(UsageError, match="this is no expectation"):
        convert(source, expect=expect)


def test_a_rehearsal_writes_nothing_and_tells_the_same(kernel: str, source: Path) -> None:
    rehearsed = convert(source, dry_run=True, output=None, vocab=["of", "Zebra"], dtype="float16")
    assert sorted(path.name for path in source.parent.iterdir()) == ["vectors.txt"]
    real = convert(source, vocab=["of", "Zebra"], dtype="float16")
    same = ("rows", "dim", "bytes", "specials", "missing", "first_missing", "file_rows", "id_shift", "padding_idx")
    assert {name: getattr(rehearsed, name) for name in same} == {name: getattr(real, name) for name in same}
    assert rehearsed.bytes == (source.parent / "out" / "model.safetensors").stat().st_size == 4096 + 4 * 3 * 2
    assert rehearsed.dry_run
    assert rehearsed.path is None


def test_a_rehearsal_on_the_command_line(source: Path) -> None:
    done = run("convert", source, "--dry-run", "--bad-rows", "skip", "--expect", "rows=5")
    assert done.returncode == 0, done.stderr
    assert b"5 rows x 3, float32, 4,156 bytes would be written" in done.stdout
    assert run("convert", source, "--dry-run", "--expect", "rows=7").returncode == 3


def test_the_row_report_names_every_row_that_is_not_simply_the_files(kernel: str, block: str, source: Path) -> None:
    lines = source.parent / "rows.jsonl"
    convert(source, vocab=["the", "THE", "Zebra"], case_fallback=True, row_report=lines)
    assert [json.loads(line) for line in lines.read_text().splitlines()] == [
        {"what": "duplicate", "line": 3, "token": "the"},
        {"what": "special", "row": 0, "token": "<pad>", "reason": "padding, zeros"},
        {"what": "special", "row": 1, "token": "<unk>", "reason": "unknown, mean"},
        {"what": "fallback", "row": 3, "token": "THE", "reason": "the row of the"},
        {"what": "initialised", "row": 4, "token": "Zebra", "reason": "normal"},
    ]
    assert sorted(path.name for path in source.parent.iterdir()) == ["out", "rows.jsonl", "vectors.txt"]


def test_the_row_report_names_skipped_rows(kernel: str, source: Path) -> None:
    lines = source.parent / "rows.jsonl"
    convert(source, row_report=lines)
    first = json.loads(lines.read_text().splitlines()[1])
    assert first["what"] == "skipped"
    assert (first["line"], first["token"]) == (4, "bad")
    assert "found 'x'" in first["reason"]


def test_no_row_report_without_a_bundle(source: Path) -> None:
    with pytest.raises(InputError):
        vec2emb.convert(source, source.parent / "out", row_report=source.parent / "rows.jsonl")
    assert sorted(path.name for path in source.parent.iterdir()) == ["vectors.txt"]


@pytest.mark.parametrize("name", ["vectors.txt", "words.txt", "folder", "out", "out/rows.jsonl"])
def test_a_row_report_takes_the_place_of_another_one_alone(source: Path, name: str) -> None:
    (source.parent / "words.txt").write_text("the\n")
    (source.parent / "folder").mkdir()
    before = source.read_bytes()
    with pytest.raises((OutputError, UsageError)) as caught:
        convert(source, vocab=source.parent / "words.txt", row_report=source.parent / name)
    assert caught.value.code in ("target-not-a-report", "row-report-in-bundle", "output-is-input")
    assert (source.read_bytes(), (source.parent / "words.txt").read_text()) == (before, "the\n")
    assert sorted(path.name for path in source.parent.iterdir()) == ["folder", "vectors.txt", "words.txt"]
    for words in (["the", "Zebra"], ["the"]):
        convert(source, vocab=words, row_report=source.parent / "rows.jsonl", if_exists="replace")
    assert "Zebra" not in (source.parent / "rows.jsonl").read_text()


def test_licence_and_origin_are_recorded(source: Path) -> None:
    report = convert(source, license="PDDL-1.0", source_url="https://example.org/v.txt")
    recorded = json.loads((source.parent / "out" / "vec2emb.json").read_bytes())["source"]
    assert (recorded["license"], recorded["url"]) == ("PDDL-1.0", "https://example.org/v.txt")
    assert report.manifest.to_dict()["source"] == recorded


# Encodings.


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("latin-1", ["café", "cafè"]),
        ("cp1252", ["“quoted”", "€"]),
        ("gb18030", ["中国", "词向量"]),
        ("shift_jis", ["日本", "ソース"]),  # their second bytes lie in ASCII
        ("big5", ["功能", "許功蓋"]),
        ("euc-kr", ["한국", "말"]),
        ("utf-8", ["a\u00a0b", "\u3000"]),
    ],
)
def test_other_encodings(
    kernel: str, block: str, threads: int, tmp_path: Path, encoding: str, words: list[str]
) -> None:
    source = tmp_path / "v.vec"
    source.write_bytes(b"2 2\n" + b"".join(word.encode(encoding) + b" 0.5 1\n" for word in words))
    assert vec2emb.read_vectors(source, encoding=encoding, threads=threads).vocab.to_list() == words


def test_bytes_that_are_not_in_the_encoding(kernel: str, tmp_path: Path) -> None:
    source = tmp_path / "v.vec"
    source.write_bytes(b"3 2\nok 1 2\ncaf\xe9 3 4\ncaf\xe8 5 6\n")
    with pytest.raises(InputError, match=r"line 3: the token is not UTF-8.*63 61 66 e9.*--encoding NAME"):
        vec2emb.read_vectors(source)
    escaped, found = collected(lambda: vec2emb.read_vectors(source, encoding_errors="escape"))
    assert escaped.vocab.to_list() == ["ok", "caf\\xe9", "caf\\xe8"]
    assert [(w.code, w.count, w.line) for w in found] == [("recoded-token", 2, 3)]
    replaced, found = collected(lambda: vec2emb.read_vectors(source, encoding_errors="replace"))
    assert replaced.vocab.to_list() == ["ok", "caf\ufffd"]  # two tokens have become the same: the first is used
    assert replaced.vectors.tolist() == [[1, 2], [3, 4]]
    assert [(w.code, w.count, w.line) for w in found] == [("recoded-token", 1, 3), ("duplicate-tokens", 1, 4)]
    with pytest.raises(InputError, match=r"stands twice.*lines 3 and 4"):
        vec2emb.read_vectors(source, encoding_errors="replace", duplicates="error")


def test_an_encoding_that_lacks_bytes(kernel: str, tmp_path: Path) -> None:
    source = tmp_path / "v.vec"
    source.write_bytes(b"1 2\nx\xff\xff 1 2\n")
    with pytest.raises(InputError, match="the token is not GB18030"):
        vec2emb.read_vectors(source, encoding="gb18030")


@pytest.mark.parametrize(
    ("encoding", "errors", "code"),
    [
        ("utf-16", "error", "encoding-not-ascii"),
        ("utf-32-le", "error", "encoding-not-ascii"),
        ("utf-7", "error", "encoding-not-ascii"),
        ("iso2022_jp", "error", "encoding-not-ascii"),
        ("cp037", "error", "encoding-not-ascii"),
        ("base64", "error", "unknown-encoding"),
        ("no-such", "error", "unknown-encoding"),
        ("\udcff", "error", "unknown-encoding"),
        ("utf-8", "ignore", "encoding-errors"),
    ],
)
def test_encodings_that_cannot_be_read(source: Path, encoding: str, errors: str, code: str) -> None:
    with pytest.raises(UsageError) as error:
        vec2emb.read_vectors(source, encoding=encoding, encoding_errors=errors)
    assert error.value.code == code


def test_absent_words_are_outcomes_that_expect_bounds(tmp_path: Path) -> None:
    source = tmp_path / "v.txt"
    source.write_bytes(b"the 1 2\nof 3 4\n")
    vocab = ["the", "Zebra", "Yak"]
    outcomes: list[tuple[dict[str, Any], str, int]] = [
        ({"vocab": vocab, "missing": "mean"}, "missing", 2),
        ({"vocab": vocab}, "missing", 2),
        ({"only": vocab}, "absent", 2),
    ]
    for options, name, count in outcomes:
        for how in (f"rows=3,{name}<={count - 1}", {name: 0}):
            with pytest.raises(CheckError) as caught:
                vec2emb.convert(source, tmp_path / "no", expect=how, pad=None, unk=None, strict=True, **options)
            assert caught.value.code in (f"expected-{name}", "expected-rows")
            assert not (tmp_path / "no").exists()
        options |= {"expect": f"{name}<={count}", "strict": True, "if_exists": "replace"}
        report, warned = collected(functools.partial(vec2emb.convert, source, tmp_path / "out", **options))
        assert getattr(report, name) == count
        assert [one.code for one in warned] == (
            ["missing-words"] if "vocab" in options and "missing" not in options else []
        )
    with pytest.raises(InputError) as odd:  # oddities of the list and of the file stay errors
        vec2emb.convert(source, tmp_path / "no", vocab=["Yak"], missing="zeros", unk_init="zeros", strict=True)
    assert odd.value.code == "all-words-missing"
    source.write_bytes(b"the 1 2\nof 3 4\nthe 5 6\n")
    with pytest.raises(InputError) as odd:
        vec2emb.convert(source, tmp_path / "no", vocab=vocab, strict=True)
    assert odd.value.code == "duplicate-tokens"
    for text in ("missing=3", "rows<=3", "absent<=x", "missing<", "rows"):
        with pytest.raises(UsageError) as usage:
            vec2emb.convert(source, tmp_path / "no", expect=text)
        assert usage.value.code == "expect-form"
