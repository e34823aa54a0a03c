"""fastText models: against what fastText itself prints, a slow and obvious reading, and gensim.

`fixtures/fasttext` holds models that Debian's fasttext 0.9.2 trained, and what its `print-word-vectors` gave for words
that they have and words that they do not.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FIXTURES, bits, collected, run

import vec2emb
from vec2emb.errors import InputError, UsageError, Vec2embError
from vec2emb.formats.matrix.subwords import Subwords, mean_rows, subword_rows

MODELS = FIXTURES / "fasttext"
NAMES = ("skipgram", "cbow", "whole-words")


def printed(name: str) -> dict[str, list[str]]:
    """The words that fastText was asked, and the numerals that it gave."""
    lines = (MODELS / f"{name}.printed.txt").read_text(encoding="utf-8").split("\n")[:-1]
    return {fields[0]: fields[1:-1] for fields in (line.split(" ") for line in lines)}


def as_printed(vector: Any) -> list[str]:
    """As C++ streams print a float: five significant digits here, as fastText asks for."""
    return [f"{value:.5g}" for value in vector.tolist()]


class Plain:
    """A model read and its vectors made by the plainest means: struct, a loop over n-grams, numpy float32."""

    def __init__(self, data: bytes) -> None:
        self.dim, self.bucket, self.minn, self.maxn = (
            struct.unpack_from("<i", data, 8 + 4 * i)[0] for i in (0, 8, 9, 10)
        )
        count = struct.unpack_from("<i", data, 64)[0]
        at = 92
        self.words: list[bytes] = []
        for _ in range(count):
            end = data.index(b"\0", at)
            self.words.append(data[at:end])
            at = end + 10
        rows, columns = struct.unpack_from("<2q", data, at + 1)
        self.matrix = np.frombuffer(data, "<f4", rows * columns, at + 17).reshape(rows, columns)

    def ngrams(self, word: bytes) -> list[int]:
        text = f"<{word.decode()}>"
        found = []
        for start in range(len(text)):
            for length in range(max(1, self.minn), self.maxn + 1):
                piece = text[start : start + length]
                if len(piece) == length and not (length == 1 and piece in "<>" and start in (0, len(text) - 1)):
                    value = 2166136261
                    for byte in piece.encode():
                        value = ((value ^ (byte if byte < 128 else byte | 0xFFFFFF00)) * 16777619) % 2**32
                    found.append(len(self.words) + value % self.bucket)
        return found

    def vector(self, word: bytes) -> Any:
        rows = [self.words.index(word)] if word in self.words else []
        if word != b"</s>" and self.bucket:
            rows += self.ngrams(word)
        total = np.zeros(self.dim, np.float32)
        for row in rows:
            total += self.matrix[row]
        return total * np.float32(1 / len(rows)) if rows else total


@pytest.mark.parametrize("name", NAMES)
def test_known_words(name: str, kernel: str, block: str, threads: int) -> None:
    table = vec2emb.read_vectors(MODELS / f"{name}.bin", threads=threads)
    plain = Plain((MODELS / f"{name}.bin").read_bytes())
    assert [word.encode() for word in table.vocab] == plain.words
    assert bits(table.vectors) == bits([plain.vector(word) for word in plain.words])
    known = [word for word in printed(name) if word in table]
    assert known == ["</s>", "the", "naïve", "вода", "river"]
    for word in known:
        assert as_printed(table[word]) == printed(name)[word]


@pytest.mark.parametrize("name", ["skipgram", "cbow"])
def test_unseen_words(name: str, tmp_path: Path, kernel: str, block: str) -> None:
    asked = list(printed(name))
    plain = Plain((MODELS / f"{name}.bin").read_bytes())
    report, warned = collected(
        lambda: vec2emb.convert(MODELS / f"{name}.bin", tmp_path / "o", vocab=asked, missing="subword")
    )
    table = vec2emb.load(tmp_path / "o")
    for word, numerals in printed(name).items():
        assert as_printed(table[word]) == numerals, word
        assert bits([table[word]]) == bits([plain.vector(word.encode())]), word
    assert (report.missing, report.missing_init) == (8, "subword")
    assert warned == []
    assert str(table.explain("unseen")).endswith("composed of its character n-grams by the source's model")
    found = vec2emb.verify(tmp_path / "o", source=MODELS / f"{name}.bin", rebuild=MODELS / f"{name}.bin")
    assert found.ok, str(found)
    assert found.identical_digest


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("fasttext") is None, reason="there is no program fasttext here")
def test_whatever_fasttext_prints_here() -> None:
    """The fixtures are what the program prints, where there is one."""
    for name in NAMES:
        words = "".join(word + "\n" for word in printed(name))
        command = ["fasttext", "print-word-vectors", str(MODELS / f"{name}.bin")]
        done = subprocess.run(command, input=words.encode(), capture_output=True, check=True)
        assert [line.split()[1:] for line in done.stdout.decode().splitlines()] == list(printed(name).values())


def test_short_words_have_no_subwords(tmp_path: Path) -> None:
    """A word of one letter is `<a>`: too short for n-grams of five, so fastText gives zeros."""
    data = bytearray((MODELS / "skipgram.bin").read_bytes())
    struct.pack_into("<i", data, 8 + 4 * 9, 5)
    (tmp_path / "five.bin").write_bytes(data)
    _, warned = collected(
        lambda: vec2emb.convert(
            tmp_path / "five.bin", tmp_path / "o", vocab=["a", "hereby"], missing="subword", unk=None
        )
    )
    table = vec2emb.load(tmp_path / "o")
    assert not table["a"].any()
    assert table["hereby"].any()
    assert [warning.code for warning in warned] == ["words-without-subwords"]
    assert str(warned[0]).endswith("1 missing words are too short to have subwords; their rows are zero")


def test_policies_go_for_composed_rows(tmp_path: Path) -> None:
    path = MODELS / "skipgram.bin"
    collected(
        lambda: vec2emb.convert(path, tmp_path / "o", vocab=["unseen", "river"], missing="subword", unit_norm=True)
    )
    for word in ("unseen", "river"):
        assert np.linalg.norm(vec2emb.load(tmp_path / "o")[word].astype(np.float64)) == pytest.approx(1, abs=1e-6)
    data = bytearray(path.read_bytes())
    struct.pack_into("<f", data, len(data) - 33 * 16 - 17 - 4, np.inf)  # the last bucket
    (tmp_path / "inf.bin").write_bytes(data)
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefgh", k=8)) for _ in range(50)]
    with pytest.raises(InputError, match=r"composed of its subwords, does not fit float32 or is not finite"):
        vec2emb.convert(tmp_path / "inf.bin", tmp_path / "p", vocab=words, missing="subword", unk=None)
    collected(
        lambda: vec2emb.convert(
            tmp_path / "inf.bin", tmp_path / "q", vocab=words, missing="subword", nonfinite="zero", unk=None
        )
    )
    assert np.isfinite(vec2emb.load(tmp_path / "q").vectors).all()


def test_no_subwords_to_compose_of(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        vec2emb.convert(MODELS / "whole-words.bin", tmp_path / "o", vocab=["q"], missing="subword")
    assert caught.value.code == "no-subwords"
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("seed", range(20))
def test_any_words_at_once(seed: int) -> None:
    """All words of a block are cut at once; each of them alone, by the plain loop, gives the same."""
    rng = random.Random(seed)
    plain = Plain((MODELS / "cbow.bin").read_bytes())
    plain.minn, plain.maxn, plain.bucket = rng.choice(
        [(1, 1, 7), (1, 4, 1000), (3, 6, 2**31 - 1), (0, 2, 3), (5, 5, 99)]
    )
    alphabet = "ab<>é水😀\u00a0\ud7ff"
    words = ["".join(rng.choices(alphabet, k=rng.randrange(9))).encode() for _ in range(rng.randrange(1, 30))]
    cut = Subwords(plain.minn, plain.maxn, plain.bucket, len(plain.words))
    rows, counts = subword_rows(words, cut)
    expected = [plain.ngrams(word) for word in words]
    assert counts.tolist() == [len(one) for one in expected]
    assert rows.tolist() == [row for one in expected for row in one]


def test_mean_of_rows_in_order() -> None:
    """Sums are in float32 and in the order of the n-grams, so that the last bit is fastText's."""
    rng = np.random.default_rng(3)
    matrix = (rng.standard_normal((50, 3)) * 10.0 ** rng.integers(-3, 4, (50, 1))).astype(np.float32)
    counts = np.array([3, 0, 9, 1, 0, 4])
    rows, own = rng.integers(0, 50, counts.sum()), rng.integers(0, 50, 6)
    made = mean_rows(matrix.view(np.uint8), own, rows, counts)
    at = 0
    for word, count in enumerate(counts):
        total = np.zeros(3, np.float32)
        for row in [own[word], *rows[at : at + count]]:
            total = total + matrix[row]
        at += count
        assert bits([made[word]]) == bits([total * np.float32(1 / (count + 1))])


# Files that are not as they should be.


def test_refused_by_kind(tmp_path: Path) -> None:
    data = (MODELS / "skipgram.bin").read_bytes()
    quantised = bytearray(data)
    at = 92 + sum(len(word) + 10 for word in Plain(data).words)
    quantised[at] = 1
    pruned = data[:84] + struct.pack("<q", 0) + data[92:]
    for content, code, words in (
        ((MODELS / "supervised.bin").read_bytes(), "fasttext-supervised", "the model is a classifier"),
        (bytes(quantised), "fasttext-quantised", "use the .bin that the .ftz was made of"),
        (pruned, "fasttext-quantised", "the vectors of the model were quantised"),
        (data[:4] + struct.pack("<i", 13) + data[8:], "fasttext-version", "expected 11 or 12, found 13"),
        (data + b"\0", "fasttext-trailing-bytes", "found 1 bytes more"),
    ):
        (tmp_path / "m.bin").write_bytes(content)
        with pytest.raises(InputError) as caught:
            vec2emb.read_vectors(tmp_path / "m.bin")
        assert caught.value.code == code
        assert words in str(caught.value)


def test_cut_anywhere(tmp_path: Path) -> None:
    data = (MODELS / "cbow.bin").read_bytes()
    codes = set()
    for size in range(4, len(data)):
        (tmp_path / "m.bin").write_bytes(data[:size])
        with pytest.raises(InputError) as caught:
            vec2emb.read_vectors(tmp_path / "m.bin")
        codes.add(caught.value.code)
    assert codes == {"fasttext-cut"}


@pytest.mark.parametrize(
    ("at", "form", "value"),
    [
        (8, "<i", 2**31 - 1), (8, "<i", 0), (8, "<i", -1), (36, "<i", 9), (36, "<i", 0), (40, "<i", 2**31 - 1),
        (40, "<i", -5), (44, "<i", 7), (48, "<i", 2**31 - 1), (64, "<i", 2**31 - 1), (68, "<i", 2**31 - 1),
        (64, "<i", -1), (72, "<i", 2**31 - 1), (84, "<q", 2**62), (84, "<q", -7),
    ],
)  # fmt: skip
def test_absurd_settings_allocate_nothing(at: int, form: str, value: int, tmp_path: Path) -> None:
    data = bytearray((MODELS / "skipgram.bin").read_bytes())
    struct.pack_into(form, data, at, value)
    (tmp_path / "m.bin").write_bytes(data)
    if (at, value) == (84, -7):  # as -1: fastText asks only whether it is negative
        assert len(vec2emb.read_vectors(tmp_path / "m.bin")) == 33
        return
    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(tmp_path / "m.bin")
    assert caught.value.code in ("fasttext-damaged", "fasttext-cut", "fasttext-supervised", "fasttext-quantised")


def test_absurd_sizes_of_matrices(tmp_path: Path) -> None:
    data = (MODELS / "skipgram.bin").read_bytes()
    at = 93 + sum(len(word) + 10 for word in Plain(data).words)
    for rows, columns in ((2**62, 4), (2**40, 2**40), (-1, 4), (73, 0), (72, 4), (73, 5)):
        (tmp_path / "m.bin").write_bytes(data[:at] + struct.pack("<2q", rows, columns) + data[at + 16 :])
        with pytest.raises(InputError) as caught:
            vec2emb.read_vectors(tmp_path / "m.bin")
        assert caught.value.code in ("fasttext-damaged", "fasttext-cut")


def test_a_label_among_the_words(tmp_path: Path) -> None:
    data = bytearray((MODELS / "skipgram.bin").read_bytes())
    at = data.index(b"\0", 92) + 9
    data[at] = 1
    (tmp_path / "m.bin").write_bytes(data)
    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(tmp_path / "m.bin")
    assert str(caught.value).endswith("m.bin, record 1: an entry of the dictionary is no word: found '</s>'")


def test_noise_is_an_error_or_a_table(tmp_path: Path) -> None:
    """Bytes changed at random end in our own errors, or in another table."""
    data, rng = (MODELS / "cbow.bin").read_bytes(), random.Random(5)
    for _ in range(150):
        noisy = bytearray(data)
        for _ in range(rng.randrange(1, 4)):
            noisy[rng.randrange(8, len(data))] = rng.randrange(256)
        (tmp_path / "m.bin").write_bytes(noisy)
        try:
            table, _ = collected(lambda: vec2emb.read_vectors(tmp_path / "m.bin", bad_rows="skip"))
        except Vec2embError:
            continue
        assert table.dim == 3


def test_packed_or_piped_it_is_refused(tmp_path: Path) -> None:
    import gzip

    (tmp_path / "m.bin.gz").write_bytes(gzip.compress((MODELS / "cbow.bin").read_bytes()))
    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(tmp_path / "m.bin.gz")
    assert caught.value.code == "is-fasttext-bin"
    assert "give the path of the .bin itself, unpacked" in str(caught.value)
    with (MODELS / "cbow.bin").open("rb") as file, pytest.raises(InputError, match="a fastText model"):
        vec2emb.read_vectors(file)
    with pytest.raises(InputError, match="unpacked and as --format auto"):
        vec2emb.read_vectors(MODELS / "cbow.bin", format="word2vec")


# gensim's own files and objects.

gensim = pytest.importorskip("gensim")
DATA = Path(gensim.__file__).parent / "test" / "test_data"
ENCODINGS = {"cp852_fasttext.bin": "cp852"}


@pytest.mark.parametrize(
    "name",
    ["crime-and-punishment.bin", "lee_fasttext.bin", "lee_fasttext_new.bin", "non_ascii_fasttext.bin", "toy-model.bin",
     "cp852_fasttext.bin"],
)  # fmt: skip
def test_gensims_models(name: str) -> None:
    """gensim divides where fastText multiplies by the reciprocal: the last bit may differ, no more.

    It gives `</s>` subwords, and cuts the UTF-8 of a word whose file is in another encoding: not so fastText.
    """
    encoding = ENCODINGS.get(name, "utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = gensim.models.fasttext.load_facebook_vectors(str(DATA / name), encoding=encoding)
    ours = vec2emb.read_vectors(DATA / name, encoding=encoding)
    assert ours.vocab.to_list() == theirs.index_to_key
    comparable = [
        row for row, word in enumerate(ours.vocab) if word != "</s>" and (encoding == "utf-8" or word.isascii())
    ]
    assert len(comparable) > 20
    np.testing.assert_array_max_ulp(ours.vectors[comparable], theirs.vectors[comparable], maxulp=1)


def test_gensims_model_composes_the_same(tmp_path: Path) -> None:
    path = DATA / "crime-and-punishment.bin"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = gensim.models.fasttext.load_facebook_vectors(str(path))
    words = ["unseen", "naïve", "рыба", "преступления", "x", "水"]
    asked: Any = {"vocab": words, "missing": "subword", "unk": None}
    collected(lambda: vec2emb.convert(path, tmp_path / "file", **asked))
    collected(lambda: vec2emb.convert(theirs, tmp_path / "object", **asked))
    file, memory = vec2emb.load(tmp_path / "file"), vec2emb.load(tmp_path / "object")
    for word in words:
        assert word not in theirs.key_to_index
        assert bits([memory[word]]) == bits([theirs.get_vector(word)])
        np.testing.assert_array_max_ulp(file[word], theirs.get_vector(word), maxulp=1)


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("pang_lee_polarity_fasttext.bin", "fasttext-supervised", "the model is a classifier"),
        ("toy-model-pretrained.bin", "empty-token", "record 23: the word is empty"),
        ("cp852_fasttext.bin", "invalid-utf8", "--encoding NAME reads another encoding"),
    ],
)
def test_gensims_models_that_are_refused(name: str, code: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(DATA / name)
    assert caught.value.code == code
    assert words in str(caught.value)


def test_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("river\nunseen\n")
    done = run(
        "convert", MODELS / "skipgram.bin", "-o", tmp_path / "o", "--vocab", tmp_path / "words.txt", "--missing",
        "subword", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["missing_init"] == "subword"
    found = json.loads(run("inspect", MODELS / "skipgram.bin", "--json").stdout)
    facts = ("format", "rows", "dim", "model", "subwords", "buckets")
    assert [found[name] for name in facts] == ["fasttext", 33, 4, "skipgram", "3 to 6 characters", 40]
    assert run("audit", MODELS / "skipgram.bin", "--quiet").returncode == 0
