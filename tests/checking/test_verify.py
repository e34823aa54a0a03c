"""Whether a bundle is whole, is what its source gives, and can be made again to the byte."""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FIXTURES, collected, digest_of, run
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import vec2emb
from vec2emb.checking.result import Verification
from vec2emb.errors import InputError, UsageError

GLOVE = FIXTURES / "glove.6B.50d.sample.txt"
SMALL = (
    b"the 0.25 -1.5\nThe 3 4\nApple 1 2\nbanana 0.1 0.2\nthe 7 7\n"
    b"cat -0 1e-3\nDOG 5 6\n<unk> 9 8\nCat 2 2\nodd 65000 1\n"
)
WORDS = ["banana", "apple", "zebra", "the", "dog", "lion"]


def converted(source: Path, output: Path, **options: Any) -> Path:
    collected(lambda: vec2emb.convert(source, output, **options))
    return output


def failed(found: Verification) -> list[str]:
    return [check["check"] for check in found.checks if not check["ok"]]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.txt"
    path.write_bytes(SMALL)
    return path


# The files by themselves.


def test_a_whole_bundle_passes(tmp_path: Path) -> None:
    bundle = converted(GLOVE, tmp_path / "b")
    found = vec2emb.verify(bundle)
    assert found.ok
    assert [check["check"] for check in found.checks] == [
        "the files belong together",
        "digest of model.safetensors",
        "digest of vocab.txt",
        "sha256 of vec2emb.json",
        "the vocabulary is unique and belongs to the table",
        "the padding row is zero",
        "records of rows fit the table",
    ]


def test_files_of_one_stem_and_saved_tables_pass(tmp_path: Path) -> None:
    assert vec2emb.verify(converted(GLOVE, tmp_path / "one.safetensors")).ok
    vec2emb.save(tmp_path / "saved", ["<pad>", "a"], np.zeros((2, 3)), pad_token="<pad>")
    assert vec2emb.verify(tmp_path / "saved").ok


@pytest.mark.parametrize("kind", ["folder", "stem"])
def test_one_flipped_bit_is_found_in_any_file(small: Path, tmp_path: Path, kind: str) -> None:
    """A bit of every byte of the two files of text, and of every third of the tensors' (of one stem, of fewer)."""
    output = tmp_path / ("b" if kind == "folder" else "b.safetensors")
    converted(small, output, vocab=WORDS, case_fallback=True, license="CC0-1.0", unit_norm=True)
    files = sorted(output.iterdir()) if kind == "folder" else sorted(tmp_path.glob("b.*"))
    assert len(files) == 3
    draw = random.Random(3)
    for file in files:
        content = file.read_bytes()
        step = 3 if file.name.endswith("safetensors") else 1
        for at in range(0, len(content), step if kind == "folder" else 11 * step):
            bit = draw.randrange(8)
            with file.open("r+b") as stream:
                stream.seek(at)
                stream.write(bytes([content[at] ^ 1 << bit]))
            assert not vec2emb.verify(output).ok, (file.name, at, bit)
            with file.open("r+b") as stream:
                stream.seek(at)
                stream.write(content[at : at + 1])
    assert vec2emb.verify(output).ok


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt", "vec2emb.json"])
def test_cut_and_missing_files_are_found(tmp_path: Path, name: str) -> None:
    bundle = converted(GLOVE, tmp_path / "b")
    content = (bundle / name).read_bytes()
    (bundle / name).write_bytes(content[:-2])
    assert not vec2emb.verify(bundle).ok
    (bundle / name).unlink()
    assert failed(vec2emb.verify(bundle)) == ["the files belong together"]


def test_a_changed_record_is_found_though_its_hash_fits(small: Path, tmp_path: Path) -> None:
    """Somebody who mends the hash still contradicts the other two files, or the source."""
    from vec2emb.bundle.manifest import content_sha256, pretty

    bundle = converted(small, tmp_path / "b", vocab=WORDS)
    good = json.loads((bundle / "vec2emb.json").read_text())

    def judge(**changes: Any) -> Verification:
        config = {**good, **changes}
        (bundle / "vec2emb.json").write_bytes(pretty({**config, "self_sha256": content_sha256(config)}))
        return vec2emb.verify(bundle, rebuild=small)

    assert judge().ok
    records = "records of rows fit the table"
    together, rebuilt = ["the files belong together"], ["rebuilt vec2emb.json is the same"]
    provenance = good["provenance"]
    assert failed(judge(rows=9)) == together
    assert failed(judge(specials=[{**good["specials"][0], "id": 3}, good["specials"][1]])) == together
    assert failed(judge(provenance={**provenance, "given": "7:8 3:4 5:6"})) == [records]
    assert failed(judge(provenance={**provenance, "spellings": {"rows": "3:5", "tokens": "the"}})) == [records]
    assert failed(judge(specials=[{**good["specials"][0], "token": "the"}, good["specials"][1]])) == [records]
    assert failed(judge(provenance={**provenance, "given": "3:90"})) == together
    assert failed(judge(provenance={**provenance, "generated": []})) == rebuilt
    assert failed(judge(provenance={**provenance, "spellings": {"rows": "2:3", "tokens": "x"}})) == rebuilt
    assert failed(judge(source={**good["source"], "rows": 3})) == rebuilt


@pytest.mark.parametrize(
    "name", ["format", "dim", "limit", "nonfinite", "unit_norm", "encoding", "encoding_errors", "binary_dtype",
    "byte_order", "bad_rows", "member", "duplicates", "lowercase", "pieces"],
)  # fmt: skip
def test_a_recorded_option_that_cannot_be(name: str, small: Path, tmp_path: Path) -> None:
    from vec2emb.bundle.manifest import content_sha256, pretty

    bundle = converted(small, tmp_path / "b")
    good = json.loads((bundle / "vec2emb.json").read_text())
    assert name in good["replay"]["options"]
    for value in (1.5, "no such value") if name != "member" else (1.5, False):
        config = {**good, "replay": {**good["replay"], "options": {**good["replay"]["options"], name: value}}}
        (bundle / "vec2emb.json").write_bytes(pretty({**config, "self_sha256": content_sha256(config)}))
        found = vec2emb.verify(bundle, source=small)
        assert failed(found) == ["the source can be read as the bundle records"]
        assert "$.replay.options" in str(found)


def test_special_tokens_of_a_bundle_are_lower_cased_with_it(small: Path, tmp_path: Path) -> None:
    first = converted(small, tmp_path / "a", specials=["[MASK]=normal"])
    second = converted(first, tmp_path / "b", lowercase=True)
    assert vec2emb.verify(second, source=first).ok
    assert vec2emb.verify(second, rebuild=first).ok
    specials = json.loads((second / "vec2emb.json").read_text())["specials"]
    assert [special["token"] for special in specials] == ["<pad>", "<unk>", "[mask]"]


def test_a_folder_without_a_bundle_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing", tmp_path / "nothing.safetensors"):
        with pytest.raises(InputError):
            vec2emb.verify(path)


# Against a source.


def test_rows_are_those_of_the_source(tmp_path: Path, kernel: str, block: str) -> None:
    bundle = converted(GLOVE, tmp_path / "b")
    packed = tmp_path / "other.gz"
    packed.write_bytes(gzip.compress(b"250 50\n" + GLOVE.read_bytes()))
    found = vec2emb.verify(bundle, packed)
    assert found.ok
    assert f"250 rows are what their words have in {packed}" in [check["check"] for check in found.checks]
    assert found.notes == ["2 rows come from no row of the file: special and missing words"]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"unit_norm": True},
    {"dtype": "float16"},
    {"dtype": "bfloat16", "unit_norm": True},
    {"duplicates": "last"},
    {"duplicates": "last", "lowercase": True},
    {"lowercase": True},
    {"limit": 5},
    {"format": "glove", "dim": 2},
    {"bad_rows": "skip", "freeze": True},
    {"nonfinite": "keep", "seed": 5},
    {"nonfinite": "zero", "unk_init": "normal", "seed": 6},
    {"pad": None, "unk": None},
    {"pad": "[PAD]", "unk": "[UNK]", "unk_init": "token:cat"},
    {"specials": ["<bos>", "<eos>=uniform", "cat", ("The", "token:Apple")], "specials_at": "end"},
    {"specials": ["<unk>", "<pad>"]},
    {"vocab": WORDS},
    {"vocab": WORDS, "missing": "zeros", "specials_at": "end", "specials": ["<sep>"]},
    {"vocab": [*WORDS, "<pad>", "<unk>"], "missing": "uniform", "seed": 9},
    {"vocab": WORDS, "case_fallback": True, "missing": "mean", "unk_init": "token:odd"},
    {"vocab": WORDS, "lowercase": True, "dtype": "float16"},
    {"only": WORDS},
    {"only": [*WORDS, "<unk>"], "specials_at": "end", "unk_init": "token:Cat"},
    {"only": WORDS, "case_fallback": True, "duplicates": "last"},
    {"only": WORDS, "lowercase": True, "license": "CC0-1.0", "source_url": "https://example.org/v.txt"},
    {"only": WORDS, "bad_rows": "skip", "unit_norm": True},
    {"positions": "learned", "max_positions": 5, "seed": 3, "train_rows": "new", "dtype": "float16"},
    {"positions": "sinusoidal", "max_positions": 4, "scale": "sqrt-dim", "train_rows": ["cat", "odd"]},
]


@pytest.mark.parametrize("options", OPTIONS, ids=map(str, range(len(OPTIONS))))
def test_each_set_of_options_can_be_checked_and_made_again(
    small: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    bundle = converted(small, tmp_path / "b", **options)
    found = vec2emb.verify(bundle, source=small, rebuild=small)
    assert found.ok, str(found)
    assert found.identical_digest == digest_of(bundle / "model.safetensors")
    stem = converted(small, tmp_path / "s.safetensors", **options)
    assert vec2emb.verify(stem, rebuild=small).identical_digest == found.identical_digest


words_lists = st.lists(st.sampled_from([*WORDS, "The", "Cat", "DOG", "odd", "nothing"]), min_size=3, unique=True)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    options=st.fixed_dictionaries(
        {
            "unit_norm": st.booleans(),
            "dtype": st.sampled_from(["float32", "float16", "bfloat16"]),
            "duplicates": st.sampled_from(["first", "last"]),
            "specials_at": st.sampled_from(["start", "end"]),
            "seed": st.integers(0, 99),
            "unk_init": st.sampled_from([None, "zeros", "mean", "normal", "uniform", "token:banana"]),
            "pad": st.sampled_from(["<pad>", None, "[PAD]"]),
            "specials": st.lists(st.sampled_from(["<s>", "cat", "<m>=uniform"]), unique=True),
        }
    ),
    words=words_lists,
    use=st.sampled_from(["all", "vocab", "vocab, case", "only", "only, case", "lowercase", "only, lowercase"]),
)
def test_whatever_the_options(small: Path, tmp_path: Path, options: dict[str, Any], words: list[str], use: str) -> None:
    name, _, case = use.partition(", ")
    wanted: dict[str, Any] = {name: words} if name in ("vocab", "only") else {}
    wanted |= {"case_fallback": case == "case", "lowercase": "lowercase" in use}
    if name == "vocab" and options["specials"] and options["pad"] is None:
        options = {**options, "specials_at": "end"}
    output = tmp_path / "any"
    shutil.rmtree(output, ignore_errors=True)
    try:
        converted(small, output, **options, **wanted)
    except InputError:  # no row to fit a mean to, a word that an INIT names but the file lacks
        assume(False)
    found = vec2emb.verify(output, source=small, rebuild=small)
    assert found.ok, str(found)
    assert found.identical_digest is not None


def test_rows_that_differ_are_named(small: Path, tmp_path: Path) -> None:
    bundle = converted(small, tmp_path / "b", vocab=WORDS, case_fallback=True)
    other = tmp_path / "other.txt"
    other.write_bytes(SMALL.replace(b"banana 0.1 0.2", b"banana 0.1 0.3").replace(b"Apple 1 2", b"Apple 1 -2"))
    found = vec2emb.verify(bundle, other)
    assert failed(found) == [f"5 rows are what their words have in {other}"]
    assert found.checks[-3]["found"] == "2 different: 'banana' (row 2), 'apple' (row 3)"
    other.write_bytes(SMALL.replace(b"banana", b"zebra"))
    found = vec2emb.verify(bundle, other)
    assert [check["found"] for check in found.checks if not check["ok"]] == [
        "1 not there: 'banana' (row 2)",
        "1 there, and not taken from there: 'zebra' (row 4)",
    ]
    other.write_bytes(SMALL + b"dog 1 1\n")  # recorded as having taken the row of DOG
    found = vec2emb.verify(bundle, other)
    assert [check["found"] for check in found.checks if not check["ok"]] == [
        "1 there, and not taken from there: 'dog' (row 6)"
    ]


def test_a_row_of_another_word_is_found(tmp_path: Path) -> None:
    """What a checksum cannot find, as it was made of the wrong table."""
    table = vec2emb.read_vectors(GLOVE)
    vectors = table.vectors.copy()
    vectors[[100, 200]] = vectors[[200, 100]]
    vec2emb.save(tmp_path / "b", table.vocab, vectors)
    found = vec2emb.verify(tmp_path / "b", GLOVE)
    assert failed(found) == [f"250 rows are what their words have in {GLOVE}"]
    first, second = table.vocab.tokens[100], table.vocab.tokens[200]
    assert f"2 different: '{first}' (row 100), '{second}' (row 200)" in str(found)


def test_another_source_is_a_failed_check_and_none_an_error(tmp_path: Path) -> None:
    bundle = converted(GLOVE, tmp_path / "b")
    (tmp_path / "v.txt").write_bytes(SMALL)
    assert failed(vec2emb.verify(bundle, tmp_path / "v.txt")) == [f"the dimension is that of {tmp_path / 'v.txt'}"]
    (tmp_path / "cut.txt").write_bytes(GLOVE.read_bytes()[:-300])
    assert not vec2emb.verify(bundle, rebuild=tmp_path / "cut.txt").ok
    (tmp_path / "bad.txt").write_bytes(GLOVE.read_bytes() + b"word 1 2 3\n")
    assert failed(vec2emb.verify(bundle, tmp_path / "bad.txt")) == ["the source can be read as the bundle records"]
    assert failed(vec2emb.verify(bundle, rebuild=tmp_path / "bad.txt")) == ["the bundle can be made again"]
    for source, rebuild in ((tmp_path / "none", None), (None, tmp_path / "none")):
        with pytest.raises(InputError, match="there is no such file"):
            vec2emb.verify(bundle, source, rebuild)


# Made again.


def test_another_name_and_compression_are_noted(tmp_path: Path) -> None:
    bundle = converted(GLOVE, tmp_path / "b")
    packed = tmp_path / "renamed.gz"
    packed.write_bytes(gzip.compress(GLOVE.read_bytes(), mtime=0))
    found = vec2emb.verify(bundle, rebuild=packed)
    assert found.ok
    assert found.identical_digest is not None
    assert found.notes == [
        "source name: 'renamed.gz' now, recorded 'glove.6B.50d.sample.txt'",
        f"source bytes: '{packed.stat().st_size}' now, recorded '{GLOVE.stat().st_size}'",
        "source compression: 'gzip' now, recorded 'none'",
    ]


def test_a_member_may_be_unpacked(tmp_path: Path) -> None:
    """Both ways to check take the file that was in the archive."""
    with zipfile.ZipFile(tmp_path / "both.zip", "w") as archive:
        archive.write(GLOVE, "a.txt")
        archive.writestr("b.txt", SMALL)
    bundle = converted(tmp_path / "both.zip", tmp_path / "b", member="a.txt")
    found = vec2emb.verify(bundle, source=GLOVE, rebuild=GLOVE)
    assert found.ok, str(found)
    assert [note for note in found.notes if "member" in note] == [
        "source member: 'None' now, recorded 'a.txt'",
        "option member: 'None' now, recorded 'a.txt'",
    ]
    assert vec2emb.verify(bundle, source=tmp_path / "both.zip").ok
    with pytest.raises(UsageError) as caught:  # its first bytes are gone
        vec2emb.verify(bundle, source=io.BytesIO(GLOVE.read_bytes()))
    assert caught.value.code == "member-without-archive"


def test_any_other_row_is_found(tmp_path: Path) -> None:
    bundle = converted(GLOVE, tmp_path / "b")
    other = tmp_path / GLOVE.name
    other.write_bytes(GLOVE.read_bytes().replace(b"the 0.418 ", b"the 0.419 "))
    found = vec2emb.verify(bundle, rebuild=other)
    assert failed(found) == ["rebuilt model.safetensors is the same", "rebuilt vec2emb.json is the same"]
    assert "different: 'files', 'self_sha256'" in str(found)
    assert found.identical_digest is None


def test_a_table_that_was_saved_cannot_be_made_again(tmp_path: Path) -> None:
    vec2emb.save(tmp_path / "b", ["a"], np.zeros((1, 2)))
    with pytest.raises(UsageError, match="from a table in memory"):
        vec2emb.verify(tmp_path / "b", rebuild=GLOVE)


def test_renamed_files_are_made_again_under_their_first_name(tmp_path: Path) -> None:
    converted(GLOVE, tmp_path / "one.safetensors")
    for file in list(tmp_path.iterdir()):
        file.rename(tmp_path / file.name.replace("one", "two"))
    assert vec2emb.verify(tmp_path / "two.safetensors", rebuild=GLOVE).ok


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = converted(GLOVE, tmp_path / "b")
    (tmp_path / "t").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
    (tmp_path / "bad.txt").write_bytes(GLOVE.read_bytes() + b"word 1 2 3\n")
    for source in (GLOVE, tmp_path / "bad.txt"):
        vec2emb.verify(bundle, rebuild=source)
        assert list((tmp_path / "t").iterdir()) == []


def test_the_command(tmp_path: Path) -> None:
    bundle = converted(GLOVE, tmp_path / "b")
    done = run("verify", bundle, "--source", GLOVE, "--rebuild", GLOVE)
    lines = done.stdout.decode().splitlines()
    digest = digest_of(bundle / "model.safetensors")
    assert (done.returncode, lines[-1], done.stderr) == (0, f"identical, digest {digest}", b"")
    assert lines[0] == "ok: the files belong together"
    content = bytearray((bundle / "vocab.txt").read_bytes())
    content[-2] ^= 1
    (bundle / "vocab.txt").write_bytes(content)
    done = run("verify", bundle)
    assert done.returncode == 3
    assert b"FAILED: digest of vocab.txt: " in done.stdout
    told = json.loads(run("verify", bundle, "--json").stdout)
    assert (told["ok"], told["path"], told["identical_digest"]) == (False, str(bundle), None)
    assert run("verify", tmp_path / "none").returncode == 1


def test_warnings_of_the_source_are_not_said_again(small: Path, tmp_path: Path) -> None:
    bundle = converted(small, tmp_path / "b")
    _, warned = collected(lambda: vec2emb.verify(bundle, small, small))
    assert warned == []
