"""Sources of words and a matrix: objects in memory, NumPy archives, bundles. What comes out is what numpy holds."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import FIXTURES, bits, collected, run

import vec2emb
from vec2emb.errors import InputError, RowError, UsageError, Vec2embError

WORDS = ["the", "naïve", "nbsp\u00a0word", "two words", "tab\there", "cr\rhere", "\u3000", "x"]
VECTORS = np.array([[i + j / 7 for j in range(5)] for i in range(len(WORDS))], np.float32)


def archive(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def blob(words: list[str]) -> Any:
    return np.frombuffer("".join(word + "\n" for word in words).encode(), np.uint8)


def every_source(folder: Path) -> dict[str, Any]:
    """The same table in every form."""
    vec2emb.save(folder / "bundle", WORDS, VECTORS)
    np.savez_compressed(folder / "compressed.npz", v=VECTORS, w=np.array(WORDS))
    embedding = torch.nn.Embedding(len(WORDS), 5, _weight=torch.from_numpy(VECTORS.copy()))
    return {
        "array": (VECTORS, WORDS),
        "lists": (VECTORS.tolist(), tuple(WORDS)),
        "fortran": (np.asfortranarray(VECTORS), WORDS),
        "float64": (VECTORS.astype(np.float64), WORDS),
        "big-endian": (VECTORS.astype(">f4"), WORDS),
        "sliced": (np.repeat(VECTORS, 2, axis=1)[:, ::2], WORDS),
        "generator": (VECTORS, (word for word in WORDS)),
        "embedding": (embedding, WORDS),
        "tensor": (embedding.weight, vec2emb.Vocabulary(WORDS)),
        "table": vec2emb.load(folder / "bundle"),
        "bundle": folder / "bundle",
        "npz": archive(folder / "str.npz", v=VECTORS, w=np.array(WORDS)),
        "npz-bytes": archive(folder / "bytes.npz", v=VECTORS, w=np.array([word.encode() for word in WORDS])),
        "npz-lines": archive(folder / "lines.npz", weight=VECTORS, vocab=blob(WORDS)),
        "npz-fortran": archive(folder / "f.npz", v=np.asfortranarray(VECTORS), w=np.array(WORDS)),
        "npz-big-endian": archive(folder / "b.npz", v=VECTORS.astype(">f8"), w=np.array(WORDS).astype(">U20")),
        "npz-compressed": folder / "compressed.npz",
    }


def test_every_form_is_the_same_table(tmp_path: Path, kernel: str, block: str, threads: int) -> None:
    for name, source in every_source(tmp_path).items():
        print(name)
        table, warned = collected(lambda: vec2emb.read_vectors(source, threads=threads))  # noqa: B023
        assert table.vocab.to_list() == WORDS
        assert bits(table.vectors) == bits(VECTORS)
        assert [warning.code for warning in warned] == ["cr-in-token"]


def test_every_form_is_the_same_bundle(tmp_path: Path) -> None:
    """Also one word after the other, and what is looked at beforehand is what comes."""
    for name, source in every_source(tmp_path).items():
        if name == "generator":
            continue  # it can be read once
        collected(lambda: vec2emb.convert(source, tmp_path / f"to-{name}"))  # noqa: B023
        found = {part: (tmp_path / f"to-{name}" / part).read_bytes() for part in ("model.safetensors", "vocab.txt")}
        if name == "array":
            expected = found
            # Padding is zero, unknown the mean, then the words.
            mean = VECTORS.mean(axis=0, dtype=np.float64).astype(np.float32)
            assert bits(vec2emb.load(tmp_path / "to-array").vectors) == bits([np.zeros(5), mean, *VECTORS])
        assert found == expected, name
        pairs, _ = collected(lambda: list(vec2emb.iter_vectors(source)))  # noqa: B023
        assert [word for word, _ in pairs] == WORDS
        inspected = vec2emb.inspect(source)
        if name != "bundle":
            assert (inspected.facts["rows"], inspected.facts["dim"]) == (8, 5)
            assert inspected.facts["first_tokens"] == WORDS


@pytest.mark.parametrize("name", ["array", "bundle", "npz", "npz-fortran", "npz-compressed", "npz-lines"])
def test_selecting(name: str, tmp_path: Path, kernel: str, block: str) -> None:
    """Sparse rows of a source, in another order, by a slow and obvious look-up."""
    rng = np.random.default_rng(1)
    words = [f"w{i}" for i in range(300)]
    vectors = rng.standard_normal((300, 3)).astype(np.float32)
    vec2emb.save(tmp_path / "bundle", words, vectors)
    np.savez_compressed(tmp_path / "c.npz", v=vectors, w=np.array(words))
    source: Any = {
        "array": (vectors, words),
        "bundle": tmp_path / "bundle",
        "npz": archive(tmp_path / "a.npz", v=vectors, w=np.array(words)),
        "npz-fortran": archive(tmp_path / "f.npz", v=np.asfortranarray(vectors), w=np.array(words)),
        "npz-compressed": tmp_path / "c.npz",
        "npz-lines": archive(tmp_path / "l.npz", v=vectors, w=blob(words)),
    }[name]
    asked = [f"w{i}" for i in (299, 0, 7, 8, 9, 150, 3)]
    report = vec2emb.convert(source, tmp_path / "out", vocab=asked, unk_init="token:w42", threads=2)
    expected = [np.zeros(3), vectors[42], *(vectors[int(word[1:])] for word in asked)]
    table = vec2emb.load(tmp_path / "out")
    assert bits(table.vectors) == bits(expected)
    assert report.file_rows == 300
    only, warned = collected(lambda: vec2emb.convert(source, tmp_path / "only", only=asked, limit=150))
    assert warned == []
    assert vec2emb.load(tmp_path / "only").vocab.to_list()[2:] == ["w0", "w3", "w7", "w8", "w9"]
    assert (only.file_rows, only.absent, only.limited) == (150, 2, True)


def test_policies(tmp_path: Path, kernel: str, block: str) -> None:
    """What goes for rows of a file goes for these: duplicates, odd values, length, lower case, types."""
    words = ["B", "a", "a", "b", "nan"]
    vectors = np.array([[3, 4], [1, 0], [2, 0], [0, 2], [1, np.nan]], np.float32)
    source = vectors, words
    last, warned = collected(lambda: vec2emb.read_vectors(source, duplicates="last", nonfinite="zero", unit_norm=True))
    assert last.vocab.to_list() == ["B", "a", "b", "nan"]
    assert bits(last.vectors) == bits([[np.float32(3 / 5), np.float32(4 / 5)], [1, 0], [0, 1], [1, 0]])
    assert [warning.code for warning in warned] == ["duplicate-tokens"]
    assert last.report is not None
    assert last.report.nonfinite == 1
    _, warned = collected(
        lambda: vec2emb.convert(source, tmp_path / "o", lowercase=True, bad_rows="skip", pad=None, unk=None)
    )
    table = vec2emb.load(tmp_path / "o")
    assert table.vocab.to_list() == ["b", "a"]
    assert bits(table.vectors) == bits([[0, 2], [1, 0]])
    with pytest.raises(RowError) as caught:
        vec2emb.read_vectors(source)
    assert str(caught.value) == (
        "<ndarray>, record 5: a value is not finite (1 row with such values in all): expected finite numbers, "
        "found nan in column 1; --nonfinite keep takes them as they are, --nonfinite zero writes 0; "
        "--bad-rows skip leaves such rows out"
    )
    with pytest.raises(RowError) as caught:
        vec2emb.convert((np.array([[1.0, 1e30], [1e39, 0]]), ["a", "b"]), tmp_path / "p", dtype="float16")
    assert str(caught.value) == (
        "<ndarray>, record 1: a value does not fit float16: found 1e+30 in column 1; "
        "--bad-rows skip leaves such rows out"
    )
    with pytest.raises(RowError, match=r"record 2: a value does not fit float32: found 1e\+39 in column 0"):
        vec2emb.read_vectors((np.array([[1.0, 1e30], [1e39, 0]]), ["a", "b"]))
    with pytest.raises(RowError, match="the token 'a' stands twice"):
        vec2emb.read_vectors(source, duplicates="error")


@pytest.mark.parametrize(
    ("word", "code", "message"),
    [
        ("", "empty-token", "the word is empty"),
        ("a\nb", "line-feed-in-word", "the word holds a line feed, and vocab.txt has a line a word"),
        ("a\0b", "nul-byte", r"the word holds a NUL byte: found 'a\x00b'"),
        ("a\ud800", "invalid-utf8", r"the word is not UTF-8: found the bytes 61 ed a0 80 ('a\xed\xa0\x80')"),
    ],
)
def test_words_that_no_row_can_have(word: str, code: str, message: str, kernel: str, block: str) -> None:
    source = np.ones((3, 2)), ["x", word, "y"]
    with pytest.raises(RowError) as caught:
        vec2emb.read_vectors(source)
    assert caught.value.code == code
    assert str(caught.value) == f"<ndarray>, record 2: {message}; --bad-rows skip leaves such rows out"
    table, warned = collected(lambda: vec2emb.read_vectors(source, bad_rows="skip"))
    assert table.vocab.to_list() == ["x", "y"]
    assert [(warning.code, warning.line) for warning in warned] == [("bad-rows", 2)]


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        ((VECTORS, WORDS[:3]), "shape-mismatch", "expected [3, D], found [8, 5]; one row a word, and (vectors, words)"),
        ((WORDS, VECTORS), "shape-mismatch", "<list>: vectors and words do not fit each other"),
        ((np.zeros(3), ["a", "b", "c"]), "shape-mismatch", "found [3]"),
        ((np.zeros((2, 0)), ["a", "b"]), "shape-mismatch", "expected [V, D], found [2, 0]"),
        ((np.array([["a"]]), ["a"]), "vector-type", "the vectors are no real numbers: found <U1"),
        ((np.array([[1j]]), ["a"]), "vector-type", "the vectors are no real numbers: found complex128"),
        (([[1], [1, 2]], ["a", "b"]), "shape-mismatch", "the vectors are no table"),
        ((np.ones((1, 1)), [7]), "token-type", "a word is not text: expected str, found int '7'"),
        ((VECTORS, "words.txt"), "source-type", "expected (vectors, words), found (ndarray, str)"),
        ((object(), ["a"]), "source-type", "these are no vectors"),
        (torch.nn.Embedding(2, 2), "source-type", "an nn.Embedding comes with its words: (embedding, words)"),
        (42, "source-type", "this is no source of word vectors: expected a path"),
        ((np.ones((0, 2)), []), "no-rows", "the file has no rows"),
    ],
)
def test_objects_that_are_no_source(source: Any, code: str, words: str) -> None:
    with pytest.raises(Vec2embError) as caught:
        vec2emb.read_vectors(source)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_options_that_have_nothing_to_do(tmp_path: Path) -> None:
    for options, code in (
        ({"encoding": "latin-1"}, "encoding-of-text"),
        ({"encoding_errors": "replace"}, "encoding-of-text"),
        ({"binary_dtype": "float16"}, "binary-options"),
        ({"byte_order": "big"}, "binary-options"),
        ({"member": "a"}, "member-without-archive"),
        ({"dim": 4}, "dim-mismatch"),
    ):
        with pytest.raises(Vec2embError) as caught:
            vec2emb.read_vectors((VECTORS, WORDS), **options)
        assert caught.value.code == code
    assert vec2emb.read_vectors((VECTORS[:1], ["a"]), dim=5).dim == 5
    with pytest.raises(UsageError) as usage:
        vec2emb.convert((VECTORS, WORDS), tmp_path / "o", vocab=["q"], missing="subword")
    assert str(usage.value) == (
        "<ndarray>: the source has no subwords to make missing words of: expected a fastText model trained with "
        "subwords (.bin), found memory; --missing normal, mean, uniform or zeros makes rows for them"
    )
    with pytest.raises(UsageError, match="no subwords"):
        vec2emb.convert(FIXTURES / "glove.6B.50d.sample.txt", None, vocab=["q"], missing="subword", dry_run=True)


def test_half_precision_from_torch() -> None:
    weight = torch.tensor([[1.5, -2.25], [3.0, 0.125]])
    for kind in (torch.bfloat16, torch.float16, torch.float64):
        table = vec2emb.read_vectors((torch.nn.Parameter(weight.to(kind)), ["a", "b"]))
        assert table.vectors.tolist() == weight.tolist()
    assert vec2emb.read_vectors((torch.tensor([[1, 2]]), ["a"])).vectors.tolist() == [[1, 2]]


# Bundles.


@pytest.fixture
def glove(tmp_path: Path) -> Path:
    vec2emb.convert(
        FIXTURES / "glove.6B.50d.sample.txt", tmp_path / "glove", pad="[PAD]", unk="[UNK]", license="PDDL-1.0",
        source_url="https://example.org/glove",
    )  # fmt: skip
    return tmp_path / "glove"


def test_a_bundle_under_other_names_and_types(glove: Path, tmp_path: Path) -> None:
    old = vec2emb.load(glove)
    report, warned = collected(
        lambda: vec2emb.convert(glove, tmp_path / "new", dtype="float16", key_style="bert", only=["the", "of", "time"])
    )
    new = vec2emb.load(tmp_path / "new")
    assert not warned
    assert report.format == "bundle"
    assert new.vocab.to_list() == ["[PAD]", "[UNK]", "the", "of", "time"]
    assert (new.vocab.pad_token, new.vocab.unk_token) == ("[PAD]", "[UNK]")
    ids = [old.vocab[token] for token in new.vocab.to_list()]
    assert np.array_equal(new.vectors, old.vectors[ids].astype(np.float16).astype(np.float32))
    assert new.manifest is not None
    source = new.manifest.source
    assert source is not None
    assert (source.name, source.license, source.url) == ("glove", "PDDL-1.0", "https://example.org/glove")
    assert new.manifest.key == "embeddings.word_embeddings.weight"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_bundle_of_itself_is_itself(dtype: str, glove: Path, tmp_path: Path, kernel: str) -> None:
    vec2emb.convert(glove, tmp_path / "a", dtype=dtype)
    vec2emb.convert(tmp_path / "a", tmp_path / "b.safetensors", dtype=dtype)
    vec2emb.convert(tmp_path / "b.safetensors", tmp_path / "c", dtype=dtype)
    vec2emb.convert(tmp_path / "a", tmp_path / "a", dtype=dtype, if_exists="replace")  # upon itself
    for name in ("model.safetensors", "vocab.txt"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "c" / name).read_bytes()
    assert vec2emb.verify(tmp_path / "a").ok
    found = vec2emb.verify(tmp_path / "c", source=tmp_path / "b.safetensors", rebuild=tmp_path / "b.safetensors")
    assert found.ok, str(found)
    assert found.identical_digest


def test_what_does_not_come_along(glove: Path, tmp_path: Path) -> None:
    options: Any = {"positions": "learned", "max_positions": 4, "freeze": True, "scale": "match-positions"}
    vec2emb.convert(glove, tmp_path / "with", tied_head="head", **options)
    report, warned = collected(lambda: vec2emb.convert(tmp_path / "with", tmp_path / "without"))
    assert [warning.code for warning in warned] == ["left-behind"]
    assert str(warned[0]).endswith(
        "what the bundle records beside its rows does not come along: the position table, the scale, the tied head"
    )
    assert report.warnings == warned
    assert report.train == "none"


def test_what_comes_along(tmp_path: Path) -> None:
    """Lookup, training, tokenizer, licence and the record of each row; other ids and another type change none of it."""
    (tmp_path / "corpus.txt").write_text("The price is £1 . the qqq\n")
    collected(
        lambda: vec2emb.convert(
            FIXTURES / "glove.6B.50d.sample.txt", tmp_path / "a", corpus=tmp_path / "corpus.txt", tokenizer="bert",
            lowercase=True, seed=3, specials=["[X]=uniform"], train_rows="new", license="PDDL-1.0",
        )
    )  # fmt: skip
    collected(lambda: vec2emb.convert(tmp_path / "a", tmp_path / "b", dtype="float16", specials_at="end"))
    collected(lambda: vec2emb.convert(tmp_path / "b", tmp_path / "c", only=["qqq", "the", "[X]"]))
    one = vec2emb.load(tmp_path / "a")
    for name in ("b", "c"):
        other = vec2emb.load(tmp_path / name)
        assert one.manifest is not None
        assert other.manifest is not None
        assert (other.manifest.lookup, other.manifest.tokenizer) == ("lower", ("bert", True))
        assert other.vocab.encode(["The"]) == [other.vocab["the"]]
        assert other.manifest.source is not None
        assert other.manifest.source.license == "PDDL-1.0"
        for token in other.vocab:
            before, after = one.explain(token), other.explain(token)
            assert (after.origin, after.text.replace(", rounded to float16", "")) == (before.origin, before.text)
        new = other.manifest.provenance.new_rows()
        assert {other.vocab.tokens[row] for row in new.rows()} == {
            token for token in other.vocab if one.vocab[token] in one.manifest.provenance.new_rows()
        }
        assert (other.manifest.training.kind, other.manifest.training.rows) == ("new", new)
        source = tmp_path / {"b": "a", "c": "b"}[name]
        assert vec2emb.verify(tmp_path / name, source=source, rebuild=source).ok
    assert vec2emb.load(tmp_path / "b").explain("the").text.endswith("lower-cased, rounded to float16")
    table = vec2emb.read_vectors(tmp_path / "c")
    assert table.explain("qqq").text == one.explain("qqq").text
    assert (
        vec2emb.audit(tmp_path / "b", corpus=tmp_path / "corpus.txt").to_dict()["sources"][0]["coverage"]
        == (vec2emb.audit(tmp_path / "a", corpus=tmp_path / "corpus.txt").to_dict()["sources"][0]["coverage"])
    )


def test_a_bundle_that_is_damaged(glove: Path, tmp_path: Path) -> None:
    (glove / "vocab.txt").write_bytes((glove / "vocab.txt").read_bytes().replace(b"time", b"emit"))
    with pytest.raises(InputError) as caught:
        vec2emb.convert(glove, tmp_path / "o")
    assert caught.value.code == "vocabulary-changed"
    (glove / "vec2emb.json").unlink()
    with pytest.raises(InputError) as caught:
        vec2emb.convert(glove, tmp_path / "o")
    assert caught.value.code == "bundle-incomplete"
    assert not (tmp_path / "o").exists()


# NumPy archives.


def test_npz_names_its_special_rows(tmp_path: Path, block: str) -> None:
    words = ["<none>", "?", "a", "b"]
    vectors = np.array([[0, 0], [7, 7], [1, 2], [3, 4]], np.float32)
    for name, given in (("lines", blob(words)), ("strings", np.array(words))):
        path = archive(
            tmp_path / f"{name}.npz", weight=vectors, vocab=given, padding_idx=np.int64(0), unk_idx=np.int64(1)
        )
        collected(lambda: vec2emb.convert(path, tmp_path / name))  # noqa: B023
        table = vec2emb.load(tmp_path / name)
        assert table.vocab.to_list() == words
        assert (table.vocab.padding_idx, table.vocab.unk_idx) == (0, 1)
        assert bits(table.vectors) == bits(vectors)


def test_npz_of_several_arrays(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", a=VECTORS, b=VECTORS * 2, words=np.array(WORDS), count=np.arange(8))
    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(path)
    assert caught.value.code == "npz-vectors"
    assert "found a float32[8, 5], b float32[8, 5]; --member NAME says which" in str(caught.value)
    for member in ("b", "b.npy"):
        table, _ = collected(lambda: vec2emb.read_vectors(path, member=member))  # noqa: B023
        assert bits(table.vectors) == bits(VECTORS * 2)
    with pytest.raises(InputError, match="there is no such array of vectors"):
        vec2emb.read_vectors(path, member="count")


def objects(words: list[str]) -> Any:
    return np.array([*words, None], object)[:-1]


@pytest.mark.parametrize(
    ("arrays", "code", "words"),
    [
        ({"v": VECTORS, "w": objects(WORDS)}, "npz-objects", "w is an array of Python objects, which is a pickle"),
        ({"v": np.array([[None]], object), "w": np.array(["a"])}, "npz-objects", "v is an array of Python objects"),
        ({"v": VECTORS, "w": np.array(WORDS[:3])}, "npz-words", "expected an array of 8 strings"),
        ({"v": VECTORS, "w": np.array(WORDS), "x": np.array(WORDS)}, "npz-words", "not one array of the words of v"),
        ({"v": VECTORS, "w": blob(WORDS[:3])}, "npz-words", "there are fewer words than rows"),
        ({"v": VECTORS, "w": blob([*WORDS, "more"])}, "npz-words", "there are more words than rows"),
        ({"w": np.array(WORDS)}, "npz-vectors", "there is not one array of vectors: expected one array [V, D]"),
        ({"v": VECTORS.astype(complex), "w": np.array(WORDS)}, "vector-type", "no real numbers"),
        ({"weight": VECTORS, "vocab": blob(WORDS), "unk_idx": np.int64(8)}, "npz-words", "unk_idx is no row"),
        ({"v": np.ones((0, 3)), "w": np.array([], "U1")}, "no-rows", "no rows"),
    ],
)
def test_npz_that_is_no_table(arrays: dict[str, Any], code: str, words: str, tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(path)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_npz_that_is_damaged(tmp_path: Path, block: str) -> None:
    """Cut or changed anywhere: an error, and never other numbers."""
    whole = archive(tmp_path / "a.npz", v=VECTORS, w=np.array([f"w{i}" for i in range(8)])).read_bytes()
    path = tmp_path / "b.npz"
    for size in range(0, len(whole), 97):
        path.write_bytes(whole[:size])
        with pytest.raises(Vec2embError):
            vec2emb.read_vectors(path)
    at = whole.index(VECTORS.tobytes())
    path.write_bytes(whole[: at + 9] + b"\xff" + whole[at + 10 :])
    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(path)
    assert caught.value.code == "npz-damaged"
    assert "Bad CRC-32" in str(caught.value)


def test_npz_that_promises_too_much(tmp_path: Path) -> None:
    """Shapes beyond what is there allocate nothing, and no header is evaluated as code."""
    words = io.BytesIO()
    np.save(words, np.array(["a"]))
    heads = (
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 99999999999)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': __import__('os').abort()}",
        "{'descr': '<f4'}",
        "",
    )
    for head in heads:
        text = head.encode().ljust(118) + b"\n"
        with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
            file.writestr("v.npy", b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 8)
            file.writestr("w.npy", words.getvalue())
        with pytest.raises(InputError) as caught:
            vec2emb.read_vectors(tmp_path / "a.npz")
        assert caught.value.code == "npz-damaged"


def test_npz_bomb(tmp_path: Path) -> None:
    """A small file that says it is a large array of one row is read no further than it is asked."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f4", "fortran_order": False, "shape": (1 << 16, 256)})
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("v.npy", head.getvalue() + bytes(1 << 26))
        file.writestr(
            "w.npy",
            b"\x93NUMPY\x01\x00"
            + b"v\0"
            + b"{'descr': '|u1', 'fortran_order': False, 'shape': (2,), }".ljust(117)
            + b"\na\n",
        )
    assert (tmp_path / "a.npz").stat().st_size < 100_000
    with pytest.raises(InputError, match="there are fewer words than rows"):
        vec2emb.read_vectors(tmp_path / "a.npz")


# The command line.


def test_on_the_command_line(tmp_path: Path, glove: Path) -> None:
    words = np.array(["w0", "w1", "w2"])
    path = archive(tmp_path / "a.npz", v=np.eye(3, dtype=np.float32), w=words)
    done = run("convert", path, "-o", tmp_path / "o", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["format"] == "npz"
    done = run("inspect", path, "--count", "--json")
    found = json.loads(done.stdout)
    assert (found["rows"], found["dim"], found["format"], found["duplicates"]) == (3, 3, "npz", 0)
    assert run("verify", tmp_path / "o", "--source", path, "--rebuild", path).returncode == 0
    audited = json.loads(run("audit", path, "--json", "--quiet").stdout)["sources"][0]
    assert (audited["kind"], audited["format"], audited["health"]["rows"]) == ("vectors", "npz", 3)
    done = run("convert", glove, "-o", tmp_path / "few", "--limit", "10", "--dtype", "bfloat16", "--quiet")
    assert done.returncode == 0, done.stderr
    done = run("convert", tmp_path, "-o", tmp_path / "no")
    assert done.returncode == 1
    assert b"error[is-a-folder]" in done.stderr


def test_checksums(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.npz", v=np.eye(2), w=np.array(["a", "b"]))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(vec2emb.read_vectors(path, sha256=digest)) == 2
    with pytest.raises(Vec2embError) as caught:
        vec2emb.read_vectors(path, sha256="0" * 64)
    assert caught.value.code == "source-sha256"
    with pytest.raises(UsageError) as usage:
        vec2emb.read_vectors((VECTORS, WORDS), sha256=digest)
    assert usage.value.code == "sha256-without-file"
