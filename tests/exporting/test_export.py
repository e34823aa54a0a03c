"""From a bundle back to a file of vectors: exact, read by others, refused where something would be lost."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import json
import lzma
import shutil
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from helpers import FIXTURES, bits, collected, run
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import vec2emb
from vec2emb import Vec2embWarning
from vec2emb.bundle.manifest import Manifest
from vec2emb.bundle.provenance import Provenance
from vec2emb.bundle.publication import Publication, Target
from vec2emb.bundle.writer import BundleWriter
from vec2emb.errors import BundleError, InputError, OutputError, UsageError
from vec2emb.exporting.result import Export
from vec2emb.options.choices import EXPORTS

GLOVE = FIXTURES / "glove.6B.50d.sample.txt"
FASTTEXT = FIXTURES / "fr.fasttext.sample.vec"
FORMATS = ("word2vec", "word2vec-binary", "glove")
EXACT: dict[str, Any] = {"pad": None, "unk": None, "nonfinite": "keep"}  # convert adds no row and changes none


def bundle_of(tokens: list[str], vectors: Any, path: Path) -> Path:
    """A bundle of any tokens and any floats; `save` refuses those that are not finite, so it is put together here."""
    rows = np.asarray(vectors, np.float32)
    shutil.rmtree(path, ignore_errors=True)
    with Publication(Target(path)) as publication, BundleWriter(publication, rows.shape[1], "float32") as writer:
        writer.rows.write(0, rows.tobytes())
        writer.write_vocabulary(["".join(token + "\n" for token in tokens).encode()])
        writer.finish(Manifest(Provenance(len(tokens)), rows.shape[1], "float32"))
        publication.publish()
    return path


def export(bundle: Path, to: str, path: Path, **options: Any) -> tuple[Export, list[Vec2embWarning]]:
    path.unlink(missing_ok=True)
    return collected(lambda: vec2emb.export(bundle, to, path, **options))


def alike(first: Path, second: Path) -> bool:
    """Whether tokens and vectors are the same; NaN as far as its sign."""
    one, other = vec2emb.load(first), vec2emb.load(second)
    return one.vocab.to_list() == other.vocab.to_list() and bits(one.vectors) == bits(other.vectors)


def same(first: Path, second: Path) -> bool:
    return all(
        (first / name).read_bytes() == (second / name).read_bytes() for name in ("model.safetensors", "vocab.txt")
    )


@pytest.mark.parametrize("to", EXPORTS)
def test_damage_is_not_carried_on(tmp_path: Path, to: str) -> None:
    """One bit of a number; a list of words has none."""
    vec2emb.convert(GLOVE, tmp_path / "b")
    data = bytearray((tmp_path / "b" / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "b" / "model.safetensors").write_bytes(data)
    if to == "vocab-json":
        assert vec2emb.export(tmp_path / "b", to, tmp_path / "out").rows == 252
        return
    with pytest.raises(BundleError, match="the tensors are not those that were written") as caught:
        vec2emb.export(tmp_path / "b", to, tmp_path / "out")
    assert caught.value.code == "bundle-damaged"
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_damage_is_not_carried_on_by_other_copies(tmp_path: Path) -> None:
    vec2emb.convert(GLOVE, tmp_path / "b")
    table = vec2emb.load(tmp_path / "b")
    data = bytearray((tmp_path / "b" / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (tmp_path / "b" / "model.safetensors").write_bytes(data)
    for copy in (
        lambda: vec2emb.load(tmp_path / "b").save(tmp_path / "out"),
        lambda: vec2emb.convert(tmp_path / "b", tmp_path / "out"),
    ):
        with pytest.raises(BundleError, match="the tensors are not those that were written"):
            copy()
    del table
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


# There and back.


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("source", [GLOVE, FASTTEXT], ids=["glove", "fasttext"])
def test_export_then_convert_gives_the_same_bytes(tmp_path: Path, source: Path, to: str, kernel: str) -> None:
    collected(lambda: vec2emb.convert(source, tmp_path / "b"))
    done, warned = export(tmp_path / "b", to, tmp_path / "out")
    assert (done.format, done.compression, done.options, warned) == (to, "none", {}, [])
    collected(lambda: vec2emb.convert(tmp_path / "out", tmp_path / "again"))
    assert same(tmp_path / "b", tmp_path / "again")


def test_glove_comes_out_as_stanford_wrote_it(tmp_path: Path, kernel: str) -> None:
    vec2emb.convert(GLOVE, tmp_path / "b")
    done, _ = export(tmp_path / "b", "glove", tmp_path / "out.txt", specials="drop")
    assert (tmp_path / "out.txt").read_bytes() == GLOVE.read_bytes()
    assert (done.rows, done.dim, done.dropped) == (250, 50, 2)
    assert (done.bytes, done.sha256) == (GLOVE.stat().st_size, hashlib.sha256(GLOVE.read_bytes()).hexdigest())


def test_golden_bytes(tmp_path: Path, kernel: str) -> None:
    vec2emb.save(
        tmp_path / "b", ["<pad>", "a", "é b"], np.array([[0, 0], [0.5, -1e-7], [16777216, 0.1]]), pad_token="<pad>"
    )
    export(tmp_path / "b", "word2vec", tmp_path / "v")
    assert (tmp_path / "v").read_bytes() == "3 2\n<pad> 0 0\na 0.5 -1e-07\né b 16777216 0.1\n".encode()
    export(tmp_path / "b", "glove", tmp_path / "g", specials="drop")
    assert (tmp_path / "g").read_bytes() == "a 0.5 -1e-07\né b 16777216 0.1\n".encode()
    vec2emb.save(tmp_path / "c", ["a", "é"], np.array([[0.5, -2], [1, 0]]))
    export(tmp_path / "c", "word2vec-binary", tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == b"2 2\na " + struct.pack("<2f", 0.5, -2) + "é ".encode() + struct.pack(
        "<2f", 1, 0
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("to", FORMATS)
def test_other_types_are_exported_as_the_float32_they_stand_for(tmp_path: Path, dtype: str, to: str) -> None:
    vec2emb.convert(GLOVE, tmp_path / "b", dtype=dtype)
    export(tmp_path / "b", to, tmp_path / "out")
    assert bits(vec2emb.read_vectors(tmp_path / "out").vectors) == bits(vec2emb.load(tmp_path / "b").vectors)
    collected(lambda: vec2emb.convert(tmp_path / "out", tmp_path / "again", dtype=dtype))
    assert same(tmp_path / "b", tmp_path / "again")


floats = st.floats(width=32, allow_nan=False) | st.sampled_from(
    [float("nan"), 0.0, -0.0, 3.4028234663852886e38, 1e-45, 7.038531e-26]
)
tokens = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0"), min_size=1).filter(
    lambda t: not (t[-1] in " \t" and t.strip(" \t"))
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], list[list[float]]]:
    dim = draw(st.integers(1, 4))
    names = draw(st.lists(tokens, min_size=1, max_size=8, unique=True))
    return names, [draw(st.lists(floats, min_size=dim, max_size=dim)) for _ in names]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(table=tables(), to=st.sampled_from(FORMATS))
@example(table=(["1"], [[1.0]]), to="glove")
@example(table=(["\ufeffa", "\ufeff"], [[1.0], [2.0]]), to="glove")
@example(table=(["\ufeff"], [[1.0, 2.0]]), to="glove")
@example(table=(["1 1\r2 2"], [[1.0]]), to="glove")
@example(table=(["a\r"], [[1.0, 2.0]]), to="word2vec")
@example(table=([" ", "\t", " \t"], [[1.0], [2.0], [3.0]]), to="glove")
@example(table=(["a 1", "b 2", "c 3"], [[1.0], [2.0], [3.0]]), to="glove")
@example(table=(["\u00a0", "\u2028", "\u3000"], [[1.0], [2.0], [3.0]]), to="glove")
@example(table=(["\x01"], [[float("nan")]]), to="word2vec")
@example(table=(["a"], [[1e-45]]), to="word2vec-binary")
def test_whatever_the_table_it_comes_back_or_is_refused(
    tmp_path: Path, table: tuple[list[str], list[list[float]]], to: str
) -> None:
    bundle = bundle_of(*table, tmp_path / "b")
    try:
        done, warned = export(bundle, to, tmp_path / "out")
    except OutputError:  # which tokens and why, other tests say
        assert not (tmp_path / "out").exists()
        return
    assert [warning.code for warning in warned] == (["needs-options"] if done.options else [])
    shutil.rmtree(tmp_path / "again", ignore_errors=True)
    collected(lambda: vec2emb.convert(tmp_path / "out", tmp_path / "again", **EXACT, **done.options))
    assert alike(bundle, tmp_path / "again")


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("step", [1, 0x10001])
def test_floats_of_every_size_survive(tmp_path: Path, to: str, step: int) -> None:
    """All exponents: around every power of two, where the next float is nearer below than above; and at random."""
    if step == 1:
        patterns = np.array([(e << 23) + k & 0xFFFFFFFF for e in range(256) for k in (-2, -1, 0, 1, 2)], np.uint32)
    else:
        patterns = np.random.default_rng(0).integers(0, 1 << 32, 20_000, np.uint64).astype(np.uint32)
    values = patterns.view(np.float32)
    values = np.where(np.isnan(values), np.copysign(np.float32(np.nan), values), values)[
        : len(values) // 8 * 8
    ].reshape(-1, 8)
    bundle = bundle_of([f"w{i}" for i in range(len(values))], values, tmp_path / "b")
    export(bundle, to, tmp_path / "out")
    collected(lambda: vec2emb.convert(tmp_path / "out", tmp_path / "again", **EXACT))
    assert alike(bundle, tmp_path / "again")


# Others read it.


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # gensim leaves GloVe files open
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("to", FORMATS)
def test_gensim_reads_every_export_and_agrees_to_the_bit(tmp_path: Path, to: str, suffix: str) -> None:
    models = pytest.importorskip("gensim.models")
    vec2emb.convert(GLOVE, tmp_path / "b", unk_init="normal")
    path = tmp_path / f"out{suffix}"
    export(tmp_path / "b", to, path)
    table = vec2emb.load(tmp_path / "b")
    theirs = models.KeyedVectors.load_word2vec_format(
        str(path), binary=to == "word2vec-binary", no_header=to == "glove"
    )
    assert theirs.index_to_key == table.vocab.to_list()
    assert bits(theirs.vectors) == bits(table.vectors)


# The numerals, in both kernels.


def numeral(kernel: str, *values: float) -> list[str]:
    from vec2emb.formats import text_writer

    rows = np.array(values, np.float32).tobytes()
    return text_writer.encode(b"w\n", rows, len(values)).decode().split()[1:]


def test_numerals_by_hand(kernel: str) -> None:
    assert numeral(kernel, 0.0, -0.0, 1, -7, 0.1, 0.25, 100, 123456.5) == [
        "0",
        "-0",
        "1",
        "-7",
        "0.1",
        "0.25",
        "100",
        "123456.5",
    ]
    # Fixed from 1e-4 up to 1e16, as Python's repr has it.
    assert numeral(kernel, 1e-4, 9.9e-5, 1e15, 1e16, 2e-10) == [
        "0.0001",
        "9.9e-05",
        "1000000000000000",
        "1e+16",
        "2e-10",
    ]
    assert numeral(kernel, np.nan, np.inf, -np.inf) == ["nan", "inf", "-inf"]
    # The smallest and largest of float32, the smallest normal, and the integers from which on steps are two.
    assert numeral(kernel, 1e-45, 3.4028234663852886e38, 1.1754943508222875e-38, 16777216, 16777218) == [
        "1e-45", "3.4028235e+38", "1.1754944e-38", "16777216", "16777218",
    ]  # fmt: skip


def test_the_one_numeral_that_does_not_survive_float64(kernel: str) -> None:
    """7.038531e-26 is nearest to this float32, yet as float64 it is the half-way point to the next one."""
    value = np.array([0x15AE43FD], np.uint32).view(np.float32)[0]
    assert np.format_float_scientific(value) == "7.038531e-26"
    assert np.float32(float("7.038531e-26")) != value
    assert numeral(kernel, value, -value) == ["7.0385307e-26", "-7.0385307e-26"]
    assert np.float32(float("7.0385307e-26")) == value


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_numerals_are_as_short_as_numpys(kernel: str, value: float) -> None:
    (text,) = numeral(kernel, value)
    exact = np.float32(value)
    assert np.float32(float(text)).tobytes() == exact.tobytes()
    assert float(text) == float(np.format_float_scientific(exact)) or "7.0385307e-26" in text


def test_both_kernels_write_the_same() -> None:
    native = pytest.importorskip("vec2emb._kernel._native", exc_type=ImportError)
    from vec2emb._kernel import reference

    patterns = np.random.default_rng(1).integers(0, 1 << 32, 3_000, np.uint64).astype(np.uint32)
    ties = (np.arange(1_000) * 128 + 1_000_000_000).astype(np.float32)  # halfway between two decimals
    for values in (patterns.view(np.float32), ties):
        rows = values.reshape(-1, 5).tobytes()
        lines = b"".join(b"t%d\n" % i for i in range(len(values) // 5))
        assert native.format_rows(lines, rows, 5) == reference.format_rows(lines, rows, 5)


def test_tokens_and_rows_must_be_as_many(kernel: str) -> None:
    from vec2emb.formats import text_writer

    for tokens, rows, dim in ((b"a\n", bytes(4), 2), (b"a\nb\n", bytes(8), 2), (b"a", bytes(8), 2), (b"", bytes(8), 2)):
        with pytest.raises(ValueError, match="there are not as many tokens as rows"):
            text_writer.encode(tokens, rows, dim)
    assert text_writer.encode(b"", b"", 2) == b""
    with pytest.raises(ValueError, match="dim is 0, expected at least 1"):
        text_writer.encode(b"", b"", 0)


# What cannot be exported.


@pytest.mark.parametrize(
    ("to", "token", "why", "hint"),
    [
        ("word2vec", "", "it is empty", "no format of word vectors can"),
        ("word2vec", "a\t", "it ends in a space or tab", "--to word2vec-binary can"),
        ("glove", "a ", "it ends in a space or tab", "no format of word vectors can"),
        ("glove", "a\0b", "it holds NUL", "no format of word vectors can"),
        ("glove", "\ufeffa", "it starts with U+FEFF", "--to word2vec-binary can"),
        ("word2vec-binary", "a b", "it holds a space, which ends a token", "--to word2vec or glove can"),
        ("word2vec-binary", "", "it is empty", "no format of word vectors can"),
        ("word2vec-binary", "a\0", "it holds NUL", "no format of word vectors can"),
    ],
)
def test_tokens_that_a_format_cannot_hold(tmp_path: Path, to: str, token: str, why: str, hint: str) -> None:
    vec2emb.save(tmp_path / "b", [token, "other"], [[1, 2], [3, 4]])
    with pytest.raises(OutputError) as caught:
        vec2emb.export(tmp_path / "b", to, tmp_path / "out")
    assert caught.value.code == "token-not-exportable"
    assert f"{to} cannot hold the token of row 0, " in str(caught.value)
    assert why in str(caught.value)
    assert hint in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]


def test_special_tokens_that_do_not_fit_can_be_dropped(tmp_path: Path) -> None:
    vec2emb.save(tmp_path / "b", ["", "a", "b"], [[0, 0], [1, 2], [3, 4]], pad_token="")
    with pytest.raises(OutputError, match="leave special tokens out with --specials drop"):
        vec2emb.export(tmp_path / "b", "word2vec", tmp_path / "out")
    done = vec2emb.export(tmp_path / "b", "word2vec", tmp_path / "out", specials="drop")
    assert (done.rows, done.dropped) == (2, 1)
    assert (tmp_path / "out").read_bytes() == b"2 2\na 1 2\nb 3 4\n"
    vec2emb.save(tmp_path / "c", ["<pad>"], [[0, 0]], pad_token="<pad>")
    with pytest.raises(InputError, match="no row is left"):
        vec2emb.export(tmp_path / "c", "word2vec", tmp_path / "none", specials="drop")


def test_specials_in_the_middle_are_dropped_too(tmp_path: Path) -> None:
    words = ["the", "<pad>", "of", "<unk>", "and"]
    collected(lambda: vec2emb.convert(GLOVE, tmp_path / "b", vocab=words))
    vec2emb.export(tmp_path / "b", "word2vec", tmp_path / "out", specials="drop")
    out = vec2emb.read_vectors(tmp_path / "out")
    assert out.vocab.to_list() == ["the", "of", "and"]
    table = vec2emb.load(tmp_path / "b")
    assert bits(out.vectors) == bits(table.vectors[[0, 2, 4]])


def test_what_auto_would_not_recognise_needs_options_and_says_so(tmp_path: Path) -> None:
    vec2emb.save(tmp_path / "b", ["5", "a"], [[3], [4]])  # its first row reads like a header
    done, warned = export(tmp_path / "b", "glove", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"5 3\na 4\n"
    assert done.options == {"format": "glove", "dim": 1}
    assert str(warned[0]).endswith("to read it: convert --format glove --dim 1")


def test_what_would_be_misread_without_a_word_is_refused(tmp_path: Path) -> None:
    vec2emb.save(tmp_path / "b", ["2 2", "a", "b", "c"], [[2, 2], [1, 2], [3, 4], [5, 6]])
    done, _ = export(tmp_path / "b", "glove", tmp_path / "out")  # a row of four fields is no header
    assert done.options == {}
    vec2emb.save(tmp_path / "c", ["3", "a b", "c d", "e f"], [[1], [2], [3], [4]])
    with pytest.raises(OutputError) as caught:  # '3 1' counts the rows that follow, and their values
        vec2emb.export(tmp_path / "c", "glove", tmp_path / "none")
    assert caught.value.code == "export-misread"
    assert "another format" in str(caught.value)
    assert not (tmp_path / "none").exists()


# The file.


@pytest.mark.parametrize(
    ("suffix", "compression", "read"),
    [
        ("", "none", bytes),
        (".gz", "gzip", gzip.decompress),
        (".bz2", "bzip2", bz2.decompress),
        (".xz", "xz", lzma.decompress),
        (".zst", "zstd", lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data)),
    ],
)
def test_compressed_files_are_the_same_each_time(tmp_path: Path, suffix: str, compression: str, read: Any) -> None:
    vec2emb.convert(GLOVE, tmp_path / "b")
    contents = []
    for name in ("one", "two"):
        done, _ = export(tmp_path / "b", "glove", tmp_path / f"{name}.txt{suffix}", specials="drop")
        contents.append((tmp_path / f"{name}.txt{suffix}").read_bytes())
        assert done.compression == compression
    assert contents[0] == contents[1]
    assert read(contents[0]) == GLOVE.read_bytes()


def test_files_that_are_there_are_kept_unless_replaced(tmp_path: Path) -> None:
    vec2emb.convert(GLOVE, tmp_path / "b")
    path = tmp_path / "out.txt"
    path.write_bytes(b"mine")
    with pytest.raises(OutputError, match="the file is there already") as caught:
        vec2emb.export(tmp_path / "b", "glove", path)
    assert (caught.value.code, path.read_bytes()) == ("target-exists", b"mine")
    vec2emb.export(tmp_path / "b", "glove", path, if_exists="replace", specials="drop")
    assert path.read_bytes() == GLOVE.read_bytes()
    with pytest.raises(OutputError, match="this is a file of a bundle"):
        vec2emb.export(tmp_path / "b", "glove", tmp_path / "b" / "vocab.txt", if_exists="replace")
    with pytest.raises(OutputError, match="this is a folder"):
        vec2emb.export(tmp_path / "b", "glove", tmp_path / "b", if_exists="replace")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "out.txt"]


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vec2emb.convert(GLOVE, tmp_path / "b")

    def fail(*_: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr("vec2emb.exporting.vectors._reads_back", fail)
    with pytest.raises(KeyboardInterrupt):
        vec2emb.export(tmp_path / "b", "word2vec", tmp_path / "new" / "out.gz")
    assert [p.name for p in tmp_path.iterdir()] == ["b"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"to": "csv"}, "export-format"),
        ({"specials": "some"}, "specials"),
        ({"if_exists": "keep"}, "if-exists"),
        ({"path": "out.zip"}, "compression-suffix"),
        ({"path": "-"}, "output-name"),
    ],
)
def test_usage(tmp_path: Path, arguments: dict[str, Any], code: str) -> None:
    vec2emb.convert(GLOVE, tmp_path / "b")
    usual: dict[str, Any] = {"to": "glove", "path": tmp_path / "out"}
    with pytest.raises(UsageError) as caught:
        vec2emb.export(tmp_path / "b", **{**usual, **arguments})
    assert caught.value.code == code


def test_memory_stays_flat(tmp_path: Path) -> None:
    rows, dim = 40_000, 100  # 16 MB
    vectors = np.random.default_rng(0).standard_normal((rows, dim)).astype(np.float32)
    vec2emb.save(tmp_path / "b", [f"w{i}" for i in range(rows)], vectors, dtype="float16")
    del vectors
    tracemalloc.start()
    vec2emb.export(tmp_path / "b", "word2vec-binary", tmp_path / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12 << 20


def test_the_command(tmp_path: Path) -> None:
    vec2emb.convert(GLOVE, tmp_path / "b")
    out = tmp_path / "out.bin.gz"
    done = run("export", tmp_path / "b", "--to", "word2vec-binary", "-o", out, "--specials", "drop")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == (
        f"{out}: word2vec-binary, gzip, 250 rows x 50, 2 special tokens left out; read back, the same to the bit\n"
    )
    again = run("export", tmp_path / "b", "--to", "word2vec-binary", "-o", out)
    assert (again.returncode, again.stdout) == (1, b"")
    assert again.stderr.startswith(b"error[target-exists]: ")
    told = json.loads(run("export", tmp_path / "b", "--to", "glove", "-o", tmp_path / "g", "--json").stdout)
    assert (told["rows"], told["dim"], told["format"], told["options"]) == (252, 50, "glove", {})
    assert run("export", tmp_path / "b", "--to", "glove").returncode == 2
