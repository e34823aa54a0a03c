"""Folders and files that other libraries load: what they make of them is what numpy gives from the table."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import random
import re
import shutil
import subprocess
import tracemalloc
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from gensim.models import KeyedVectors
from helpers import FIXTURES, collected, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file
from tokenizers import Tokenizer

import vec2emb
from vec2emb.errors import InputError, OutputError, UsageError
from vec2emb.exporting.result import Export

GLOVE = FIXTURES / "glove.6B.50d.sample.txt"
FASTTEXT = FIXTURES / "fr.fasttext.sample.vec"
FOLDERS = ("huggingface", "model2vec")

# What Unicode calls White_Space.
SPACES = [
    chr(i) for a, b in ((9, 13), (0x20, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
                        (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000))
    for i in range(a, b + 1)
]  # fmt: skip


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "1")
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "false")  # a test that forks later would be warned of it


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("glove") / "b"
    vec2emb.convert(GLOVE, path, license="PDDL-1.0", source_url="https://nlp.stanford.edu/projects/glove")
    return path


def bundle_of(tokens: list[str], path: Path, **options: Any) -> Path:
    vectors = np.random.default_rng(len(tokens)).standard_normal((len(tokens), 4)).astype(np.float32)
    vectors[[i for i, token in enumerate(tokens) if token == options.get("pad_token")]] = 0
    vec2emb.save(path, tokens, vectors, **options)
    return path


def export(bundle: Path, to: str, path: Path, **options: Any) -> Export:
    done, _ = collected(lambda: vec2emb.export(bundle, to, path, **options))
    return done


def stored(bundle: Path) -> tuple[list[str], NDArray[np.float32]]:
    """Tokens and rows of a bundle, read without vec2emb."""
    tokens = (bundle / "vocab.txt").read_bytes().decode().split("\n")[:-1]
    return tokens, load_file(bundle / "model.safetensors")["weight"].float().numpy()


class Expected:
    """What texts are worth, by numpy and a slow loop."""

    def __init__(self, bundle: Path, *, lower: bool = True, unk: str = "<unk>") -> None:
        self.tokens, self.rows = stored(bundle)
        self.ids = {token: i for i, token in enumerate(self.tokens)}
        self.unk, self.lower = self.ids[unk], lower

    def ids_of(self, text: str) -> list[int]:
        words = re.split(f"[{''.join(SPACES)}]+", text)
        return [self.ids.get("".join(c.lower() for c in w) if self.lower else w, self.unk) for w in words if w]

    def means(self, texts: Iterable[str], *, unknown: bool, normalize: bool = False) -> NDArray[np.float64]:
        """float64[n, D]: the mean row of each text; `unknown` says whether words without a row count."""
        out = np.zeros((len(list(texts)), self.rows.shape[1]))
        for at, text in enumerate(texts):
            ids = [id for id in self.ids_of(text) if unknown or id != self.unk]
            if ids:
                out[at] = self.rows[ids].astype(np.float64).mean(axis=0)
            if normalize and out[at].any():
                out[at] /= np.linalg.norm(out[at])
        return out


def sentences(tokens: list[str], count: int, longest: int = 20) -> list[str]:
    """Texts of words of a table and of others, in any case, with any white space, some of them empty."""
    rng = random.Random(7)
    known = [token for token in tokens if not any(space in token for space in SPACES)]
    texts = ["", "  ", "zyzzyva", "<unk>", "<pad>"]
    while len(texts) < count:
        words = rng.choices(known, k=rng.randint(1, longest))
        words = [rng.choice([w, w, w, w.upper(), w.title(), "zyzzyva", f"{w}qx"]) for w in words]
        texts.append("".join(f"{word}{rng.choice([' ', ' ', ' ', *SPACES])}" for word in words))
    return texts[:count]


# Folders, in the libraries that they are for.


SUMMED = 3e-5  # what float32 loses when a thousand rows are summed one after the other


def close(theirs: Any, ours: NDArray[np.float64], tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(np.asarray(theirs, np.float64), ours, rtol=0, atol=tolerance)


@pytest.mark.parametrize("to", FOLDERS)
@pytest.mark.parametrize("normalize", [False, True])
def test_model2vec(bundle: Path, tmp_path: Path, to: str, normalize: bool) -> None:
    from model2vec import StaticModel

    export(bundle, to, tmp_path / "m", normalize_module=normalize)
    expected = Expected(bundle)
    texts = sentences(expected.tokens, 1000)
    model = StaticModel.from_pretrained(tmp_path / "m")
    assert model.normalize is normalize
    close(model.encode(texts), expected.means(texts, unknown=False, normalize=normalize))
    assert model.tokenize(texts) == [[i for i in expected.ids_of(t) if i != 1] for t in texts]


def test_model2vec_reads_512_words(bundle: Path, tmp_path: Path) -> None:
    from model2vec import StaticModel

    export(bundle, "huggingface", tmp_path / "m")
    model = StaticModel.from_pretrained(tmp_path / "m")
    long = "a " * 512 + "time " * 500
    close(model.encode([long]), Expected(bundle).means(["a"], unknown=False), SUMMED)
    close(model.encode([long], max_length=None), Expected(bundle).means([long], unknown=False), SUMMED)


def test_sentence_transformers(bundle: Path, tmp_path: Path) -> None:
    """All of it in one test, as importing the library takes seconds."""
    from sentence_transformers import SentenceTransformer

    expected = Expected(bundle)
    texts = sentences(expected.tokens, 1000)
    for to in FOLDERS:
        for normalize in (False, True):
            folder = tmp_path / f"{to}{normalize}"
            export(bundle, to, folder, normalize_module=normalize, model_card=True)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                model = SentenceTransformer(str(folder), device="cpu")
            assert [type(module).__name__ for module in model] == ["StaticEmbedding", "Normalize"][: 1 + normalize]
            close(model.encode(texts), expected.means(texts, unknown=True, normalize=normalize))
            assert model.similarity_fn_name == ("cosine" if to == "huggingface" else model.similarity_fn_name)
    long = "a " * 600 + "time " * 600
    close(model.encode([long]), expected.means([long], unknown=True, normalize=True), SUMMED)
    # Trained and saved by it, the folder is no export of ours any more: it is not replaced.
    model.save(str(tmp_path / "trained"))
    with pytest.raises(OutputError, match="the folder holds other files than an earlier export"):
        vec2emb.export(bundle, "huggingface", tmp_path / "trained", if_exists="replace")
    half = tmp_path / "half"
    vec2emb.convert(GLOVE, half, dtype="float16")
    export(half, "huggingface", tmp_path / "m16")
    encoded = SentenceTransformer(str(tmp_path / "m16"), device="cpu").encode(texts)
    assert encoded.dtype == np.float16
    close(encoded, Expected(half).means(texts, unknown=True), 4e-3)


def test_transformers(bundle: Path, tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    export(bundle, "huggingface", tmp_path / "m")
    expected = Expected(bundle)
    texts = sentences(expected.tokens, 1000)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "m")
    assert tokenizer(texts)["input_ids"] == [expected.ids_of(text) for text in texts]
    assert (tokenizer.pad_token, tokenizer.unk_token, len(tokenizer)) == ("<pad>", "<unk>", 252)
    assert tokenizer.model_max_length > 10**20
    batch = tokenizer(["the time", "of"], padding=True)
    assert batch["input_ids"] == [[2, 81], [5, 0]]
    assert batch["attention_mask"] == [[1, 1], [1, 0]]
    assert tokenizer.get_vocab() == expected.ids


@pytest.mark.parametrize("to", FOLDERS)
def test_what_stands_in_the_folder(bundle: Path, tmp_path: Path, to: str) -> None:
    folder = tmp_path / "m"
    done = export(bundle, to, folder, model_card=True)
    config = "config_sentence_transformers.json" if to == "huggingface" else "config.json"
    names = ["README.md", config, "model.safetensors", "modules.json", "tokenizer.json", "tokenizer_config.json"]
    assert sorted(os.listdir(folder)) == sorted(names)
    assert {name: facts["bytes"] for name, facts in done.files.items()} == {
        name: (folder / name).stat().st_size for name in names
    }
    assert done.bytes == sum((folder / name).stat().st_size for name in names)
    assert (done.rows, done.dim, done.dtype, done.sha256, done.read_back) == (252, 50, "float32", None, False)
    with safe_open(folder / "model.safetensors", "numpy") as file:
        [key] = file.keys()
        assert key == ("embedding.weight" if to == "huggingface" else "embeddings")
        assert file.get_tensor(key).tobytes() == stored(bundle)[1].tobytes()
        assert file.metadata()["format"] == "pt"
    assert json.loads((folder / "modules.json").read_text()) == [
        {"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"}
    ]
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    assert list(tokenizer) == [
        "version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder",
        "model",
    ]  # fmt: skip
    assert tokenizer["padding"] is None  # model2vec 0.8 would average padding in
    assert [(entry["id"], entry["content"]) for entry in tokenizer["added_tokens"]] == [(0, "<pad>"), (1, "<unk>")]
    again = tmp_path / "again"
    export(bundle, to, again, model_card=True)
    for name in names:
        one, other = (folder / name).read_bytes(), (again / name).read_bytes()
        assert one == other.replace(b"again", b"m") if name == "README.md" else one == other


def test_dtypes(tmp_path: Path) -> None:
    for dtype, kind in (("float16", "F16"), ("bfloat16", "F32")):
        vec2emb.convert(GLOVE, tmp_path / dtype, dtype=dtype)
        done = export(tmp_path / dtype, "huggingface", tmp_path / f"m{dtype}")
        with safe_open(tmp_path / f"m{dtype}" / "model.safetensors", "numpy") as file:
            assert file.get_slice("embedding.weight").get_dtype() == kind
            rows = file.get_tensor("embedding.weight").astype(np.float32)
        assert rows.tobytes() == stored(tmp_path / dtype)[1].tobytes()
        assert any("bfloat16 is written as the float32" in note for note in done.notes) == (dtype == "bfloat16")


# The tokenizer.


def test_case_counts_where_the_table_has_capitals(tmp_path: Path) -> None:
    bundle = bundle_of(["<pad>", "<unk>", "Paris", "paris"], tmp_path / "b", pad_token="<pad>", unk_token="<unk>")
    done = export(bundle, "huggingface", tmp_path / "m")
    tokenizer = Tokenizer.from_file(str(tmp_path / "m" / "tokenizer.json"))
    assert tokenizer.encode("Paris paris PARIS").ids == [2, 3, 1]
    assert "case counts" in str(done)


def test_special_tokens(tmp_path: Path) -> None:
    """Found as they are written, with capitals and white space in them, but not inside of a word."""
    from transformers import AutoTokenizer

    specials = ["[MASK]=zeros", "two words=zeros"]
    collected(lambda: vec2emb.convert(GLOVE, tmp_path / "b", unk="unk", pad="[PAD]", specials=specials))
    done = export(tmp_path / "b", "huggingface", tmp_path / "m")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "m")
    ids = {token: i for i, token in enumerate(stored(tmp_path / "b")[0])}
    assert list(ids)[:4] == ["[PAD]", "unk", "[MASK]", "two words"]
    assert tokenizer("The [MASK] of junk two words [PAD]")["input_ids"] == [ids["the"], 2, ids["of"], 1, 3, 0]
    assert tokenizer("the[MASK]of")["input_ids"] == [1]
    assert (tokenizer.pad_token, tokenizer.unk_token) == ("[PAD]", "unk")
    assert {"[MASK]", "two words"} <= set(tokenizer.all_special_tokens)
    assert tokenizer.decode([2, ids["the"]], skip_special_tokens=True) == "the"
    assert "made lower-case" in str(done)  # of special tokens the case does not matter


ODD = ["<pad>", "<unk>", "a b", "a\u00a0b", "\u3000", "\u2028", "c\rd", "e\x1ff", "\x00", "g\x00", "\x7f", "\x85",
       "\ufeff", '"', "\\", "\\n", "{", "\U0001f600", "e\u0301", "\u00e9", "/", "\u200b", "x<unk>y", "İ"]  # fmt: skip


def test_odd_tokens_keep_their_ids(tmp_path: Path) -> None:
    bundle = bundle_of(ODD, tmp_path / "b", pad_token="<pad>", unk_token="<unk>")
    done, warned = collected(lambda: vec2emb.export(bundle, "huggingface", tmp_path / "m"))
    tokenizer = Tokenizer.from_file(str(tmp_path / "m" / "tokenizer.json"))
    assert tokenizer.get_vocab() == {token: i for i, token in enumerate(ODD)}
    lost = [token for i, token in enumerate(ODD) if tokenizer.encode(token).ids != [i]]
    assert lost == ["a b", "a\u00a0b", "\u3000", "\u2028", "c\rd", "\x85"]
    [warning] = warned
    assert (warning.code, warning.count) == ("unmatched-tokens", 7)  # and x<unk>y, which text may cut apart
    assert str(warning).endswith(
        r": 7 tokens that no text gives, as it is cut at white space and at special tokens: "
        r"'a b', 'a\xa0b', '\u3000', '\u2028', 'c\rd', .."
    )
    assert done.warnings == [warning]


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=6), unique=True))
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_token_is_found_or_counted(tmp_path: Path, drawn: list[str]) -> None:
    shutil.rmtree(tmp_path / "b", ignore_errors=True)
    tokens = ["<unk>", *(token for token in drawn if "<unk>" not in token)]
    bundle = bundle_of(tokens, tmp_path / "b", unk_token="<unk>")
    shutil.rmtree(tmp_path / "m", ignore_errors=True)
    done = export(bundle, "huggingface", tmp_path / "m")
    tokenizer = Tokenizer.from_file(str(tmp_path / "m" / "tokenizer.json"))
    lost = [token for i, token in enumerate(tokens) if tokenizer.encode(token).ids != [i]]
    assert sum(warning.count for warning in done.warnings) == len(lost), lost


def test_without_padding_or_unknown(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    bundle = bundle_of(["<unk>", "a"], tmp_path / "b", unk_token="<unk>")
    done = export(bundle, "huggingface", tmp_path / "m")
    assert "there is no padding token: transformers cannot pad a batch" in done.notes
    with pytest.raises(ValueError, match="does not have a padding token"):
        AutoTokenizer.from_pretrained(tmp_path / "m")(["a", "a a"], padding=True)
    none = bundle_of(["a", "b"], tmp_path / "none")
    for to in FOLDERS:
        with pytest.raises(OutputError) as caught:
            vec2emb.export(none, to, tmp_path / "n")
        assert str(caught.value) == (
            f"{none}: {to} needs an unknown token: without one, an unknown word is an error; convert with one, or "
            "add one: vec2emb extend BUNDLE --unk '<unk>' -o NEW"
        )
    assert not (tmp_path / "n").exists()


def test_an_empty_padding_token(tmp_path: Path) -> None:
    """Some libraries pad with the empty string; no text gives it, and it names no role."""
    from transformers import AutoTokenizer

    bundle = bundle_of(["", "<unk>", "a"], tmp_path / "b", pad_token="", unk_token="<unk>")
    export(bundle, "huggingface", tmp_path / "m")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "m")
    assert tokenizer("a zz a")["input_ids"] == [2, 1, 2]
    assert tokenizer.pad_token is None


def test_what_is_left_behind_is_said(tmp_path: Path) -> None:
    options: dict[str, Any] = {"positions": "sinusoidal", "max_positions": 4, "scale": 2.0, "case_fallback": True}
    collected(lambda: vec2emb.convert(GLOVE, tmp_path / "b", vocab=["The"], **options))
    done = export(tmp_path / "b", "huggingface", tmp_path / "m")
    assert done.notes[-3:] == [
        "the bundle's lookup, case-fallback, is not part of it: a word is looked up as it stands",
        "the bundle's positions are not part of it",
        "the bundle's scale is not part of it",
    ]


# Vocabularies and arrays.


def test_every_exported_vocabulary_gives_the_same_table(tmp_path: Path) -> None:
    source = tmp_path / "b"
    vec2emb.convert(GLOVE, source, limit=100, unk="[UNK]", pad="[PAD]", unk_init="zeros")
    lists = {"vocab.txt": source / "vocab.txt"}
    for to, name in (("vocab-json", "v.json"), ("huggingface", "hf"), ("model2vec", "m2v")):
        export(source, to, tmp_path / name)
        lists[to] = tmp_path / name / "tokenizer.json" if to in FOLDERS else tmp_path / name
    archive = np.load(export(source, "npz", tmp_path / "a.npz").path)
    lists["npz"] = archive["vocab"].tobytes().decode().split("\n")[:-1]
    for i, (to, words) in enumerate(lists.items()):
        own: dict[str, Any] = {} if to in FOLDERS else {"unk": "[UNK]", "pad": "[PAD]"}  # a tokenizer names its own
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", vec2emb.Vec2embWarning)
            vec2emb.convert(GLOVE, tmp_path / f"of-{i}", vocab=words, unk_init="zeros", **own)
        for name in ("model.safetensors", "vocab.txt"):
            assert (tmp_path / f"of-{i}" / name).read_bytes() == (source / name).read_bytes(), to


def test_vocab_json_compressed(bundle: Path, tmp_path: Path) -> None:
    readers: dict[str, Callable[[bytes], bytes]] = {
        ".gz": gzip.decompress,
        ".bz2": bz2.decompress,
        ".xz": lzma.decompress,
        ".zst": zstandard.ZstdDecompressor().decompressobj().decompress,
    }
    export(bundle, "vocab-json", tmp_path / "v.json")
    for suffix, read in readers.items():
        export(bundle, "vocab-json", tmp_path / f"v.json{suffix}")
        assert read((tmp_path / f"v.json{suffix}").read_bytes()) == (tmp_path / "v.json").read_bytes()


def test_vocab_json(bundle: Path, tmp_path: Path) -> None:
    done = export(bundle, "vocab-json", tmp_path / "v.json")
    tokens = stored(bundle)[0]
    text = (tmp_path / "v.json").read_text("utf-8")
    assert json.loads(text) == {token: i for i, token in enumerate(tokens)}
    assert text.startswith('{\n"<pad>": 0,\n"<unk>": 1,\n"the": 2,\n')
    assert str(done) == f"{tmp_path / 'v.json'}: vocab-json, 252 tokens"
    dropped = export(bundle, "vocab-json", tmp_path / "d.json.gz", specials="drop")
    assert json.loads(gzip.decompress((tmp_path / "d.json.gz").read_bytes())) == {
        t: i for i, t in enumerate(tokens[2:])
    }
    assert str(dropped) == f"{tmp_path / 'd.json.gz'}: vocab-json, gzip, 250 tokens, 2 special tokens left out"


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_npz(tmp_path: Path, dtype: str) -> None:
    tokens = [*ODD, "", "NUL\x00\x00"]
    bundle = bundle_of(tokens, tmp_path / "b", pad_token="<pad>", unk_token="<unk>", dtype=dtype)
    done = export(bundle, "npz", tmp_path / "a.npz")
    kind = "float16" if dtype == "float16" else "float32"
    assert (done.dtype, done.bytes) == (kind, (tmp_path / "a.npz").stat().st_size)
    with np.load(tmp_path / "a.npz", allow_pickle=False) as archive:
        assert set(archive) == {"weight", "vocab", "padding_idx", "unk_idx"}
        assert archive["vocab"].tobytes().decode().split("\n")[:-1] == tokens
        assert archive["weight"].dtype == kind
        assert archive["weight"].astype(np.float32).tobytes() == stored(bundle)[1].tobytes()
        assert (int(archive["padding_idx"]), int(archive["unk_idx"])) == (0, 1)
    first = (tmp_path / "a.npz").read_bytes()
    export(bundle, "npz", tmp_path / "a.npz", if_exists="replace")
    assert (tmp_path / "a.npz").read_bytes() == first
    export(bundle, "npz", tmp_path / "d.npz", specials="drop")
    with np.load(tmp_path / "d.npz", allow_pickle=False) as archive:
        assert set(archive) == {"weight", "vocab"}
        assert archive["vocab"].tobytes() == "".join(f"{token}\n" for token in tokens[2:]).encode()
        assert archive["weight"].shape == (len(tokens) - 2, 4)


# fastText.


def read_as_fasttext(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """`FastText::loadVectors`, as its stream reads: fields between ASCII white space, and nothing of lines."""
    fields = path.read_bytes().split()
    rows, dim = int(fields[0]), int(fields[1])
    body = fields[2:]
    assert len(body) == rows * (dim + 1)
    vectors = [[float(value) for value in body[i + 1 : i + 1 + dim]] for i in range(0, len(body), dim + 1)]
    return [word.decode() for word in body[:: dim + 1]], np.array(vectors, np.float64).astype(np.float32)


@pytest.mark.parametrize("source", [GLOVE, FASTTEXT], ids=["glove", "fasttext"])
def test_fasttext_vec(tmp_path: Path, source: Path) -> None:
    collected(lambda: vec2emb.convert(source, tmp_path / "b"))
    done = export(tmp_path / "b", "fasttext-vec", tmp_path / "v.vec")
    tokens, rows = stored(tmp_path / "b")
    words, vectors = read_as_fasttext(tmp_path / "v.vec")
    assert words == tokens
    assert vectors.tobytes() == rows.tobytes()
    assert all(line.endswith(b" ") for line in (tmp_path / "v.vec").read_bytes().split(b"\n")[1:-1])
    assert done.read_back
    if source == GLOVE:  # gensim strips the odd white space of the other's tokens
        theirs = KeyedVectors.load_word2vec_format(str(tmp_path / "v.vec"))
        assert theirs.index_to_key == tokens
        assert theirs.vectors.astype(np.float32).tobytes() == rows.tobytes()


@pytest.mark.parametrize("token", ["a b", "a\tb", "a\rb", "a\x0bb", "a\x0cb", " "])
def test_fasttext_vec_refuses_white_space(tmp_path: Path, token: str) -> None:
    bundle = bundle_of(["x", token], tmp_path / "b")
    with pytest.raises(
        OutputError, match=r"fasttext-vec cannot hold the token of row 1, .*: it holds white space"
    ) as c:
        vec2emb.export(bundle, "fasttext-vec", tmp_path / "v.vec")
    assert c.value.code == "token-not-exportable"
    assert [path.name for path in tmp_path.iterdir()] == ["b"]


def test_fasttext_vec_refuses_nan(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("a 1 2\nb nan 3\n")
    vec2emb.convert(tmp_path / "v.txt", tmp_path / "b", nonfinite="keep", unk_init="zeros")
    with pytest.raises(OutputError, match="holds finite numbers only, and row 3, 'b', has others; --to word2vec can"):
        vec2emb.export(tmp_path / "b", "fasttext-vec", tmp_path / "v.vec")
    export(tmp_path / "b", "word2vec", tmp_path / "v.vec")


@pytest.mark.slow
def test_fasttext_itself_reads_it(bundle: Path, tmp_path: Path) -> None:
    """Of no epoch, what it trains is what it was given."""
    program = shutil.which("fasttext")
    if program is None:
        pytest.skip("there is no fasttext; on Debian: apt-get install fasttext")
    export(bundle, "fasttext-vec", tmp_path / "v.vec")
    tokens, rows = stored(bundle)
    (tmp_path / "text.txt").write_text(" ".join(tokens), "utf-8")
    subprocess.run(
        [program, "skipgram", "-input", "text.txt", "-output", "model", "-dim", "50", "-epoch", "0", "-minCount", "1",
         "-maxn", "0", "-thread", "1", "-pretrainedVectors", "v.vec"],
        cwd=tmp_path, check=True, capture_output=True,
    )  # fmt: skip
    words, vectors = read_as_fasttext(tmp_path / "model.vec")
    given = dict(zip(tokens, rows, strict=True))
    assert set(words) - {"</s>"} == set(tokens)
    for word, vector in zip(words, vectors, strict=True):
        if word != "</s>":
            np.testing.assert_allclose(vector, given[word], rtol=1e-4)  # it prints five digits


# The model card.


def card_of(folder: Path) -> tuple[Any, str]:
    from huggingface_hub import ModelCard

    card = ModelCard.load(folder / "README.md")
    return card.data, card.content


def test_the_card(bundle: Path, tmp_path: Path) -> None:
    done = export(bundle, "huggingface", tmp_path / "glove", model_card=True)
    data, text = card_of(tmp_path / "glove")
    assert (data.license, data.library_name) == ("pddl", "sentence-transformers")
    assert done.warnings == []
    for part in (
        "# glove\n",
        "252 word vectors of 50 dimensions. A text is split at white space and made lower-case",
        'SentenceTransformer("glove")',
        "| `<unk>` | 1 | unknown |",
        "- file: `glove.6B.50d.sample.txt` (glove, 250 rows)",
        "- from: <https://nlp.stanford.edu/projects/glove>",
        "- licence: PDDL-1.0",
    ):
        assert part in text
    export(bundle, "model2vec", tmp_path / "m2v", model_card=True)
    data, text = card_of(tmp_path / "m2v")
    assert data.library_name == "model2vec"
    assert "SentenceTransformer(" not in text


@pytest.mark.parametrize(
    ("license", "id", "name"),
    [
        ("Apache-2.0", "apache-2.0", None),
        ("CC-BY-SA-3.0", "cc-by-sa-3.0", None),
        ("GPL-3.0-or-later", "gpl-3.0", None),
        ("LicenseRef-Ours: \"x\"\n---", "other", "LicenseRef-Ours: \"x\"\n---"),
        (None, None, None),
    ],
)  # fmt: skip
def test_licences(tmp_path: Path, license: str | None, id: str | None, name: str | None) -> None:
    vec2emb.convert(GLOVE, tmp_path / "b", license=license)
    done = export(tmp_path / "b", "huggingface", tmp_path / "m", model_card=True)
    data, _ = card_of(tmp_path / "m")
    assert (data.license, data.get("license_name")) == (id, name)
    assert [warning.code for warning in done.warnings] == ([] if license else ["card-without-license"])


def test_a_card_of_hostile_names(tmp_path: Path) -> None:
    source = tmp_path / "`<script>alert(1)<script>`|\n# x\x1b[31m.txt"
    shutil.copy(GLOVE, source)
    vec2emb.convert(source, tmp_path / "b", pad="`|<b>", source_url="https://x/> <script>")
    export(tmp_path / "b", "huggingface", tmp_path / "a*_[x]<b>", model_card=True)
    text = (tmp_path / "a*_[x]<b>" / "README.md").read_text("utf-8")
    assert r"# a\*\_\[x\]&lt;b>" in text
    assert r"| `` `\|<b> `` | 0 | padding |" in text
    assert "\x1b" not in text
    assert "\n# x" not in text
    assert "<https://x/%3E%20&lt;script%3E>" in text
    lines = [line for line in text.split("\n") if "script" in line and not line.startswith("- from")]
    assert lines == [r"- file: `` `<script>alert(1)<script>`\| # x\x1b[31m.txt `` (glove, 250 rows)"]


# What stands there already.


def test_an_earlier_export_is_replaced(bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    export(bundle, "model2vec", folder)
    with pytest.raises(OutputError, match="an export is there already; --if-exists replace writes it anew"):
        vec2emb.export(bundle, "huggingface", folder)
    (folder / "README.md").write_text("mine")
    (folder / ".gitattributes").write_text("*.safetensors filter=lfs")
    export(bundle, "huggingface", folder, if_exists="replace")
    assert not (folder / "config.json").exists()  # model2vec would take the folder for one of its own
    assert (folder / "README.md").read_text() == "mine"
    assert (folder / ".gitattributes").read_text() == "*.safetensors filter=lfs"
    export(bundle, "huggingface", folder, if_exists="replace", model_card=True)
    assert (folder / "README.md").read_text("utf-8").startswith("---\n")
    assert sorted(os.listdir(tmp_path)) == ["m"]


@pytest.mark.parametrize("if_exists", ["error", "replace"])
def test_other_folders_are_not(bundle: Path, tmp_path: Path, if_exists: str) -> None:
    def refused(folder: Path, found: str) -> None:
        before = sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*"))
        with pytest.raises(OutputError) as caught:
            vec2emb.export(bundle, "huggingface", folder, if_exists=if_exists)
        assert (caught.value.code, caught.value.found) == ("target-not-an-export", found)
        assert sorted((path, path.stat().st_mtime_ns) for path in folder.rglob("*")) == before

    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("mine")
    refused(tmp_path / "home", "thesis.txt")
    export(bundle, "huggingface", tmp_path / "m")
    (tmp_path / "m" / ".git").mkdir()
    refused(tmp_path / "m", ".git")
    (tmp_path / "bert").mkdir()
    shutil.copy(bundle / "model.safetensors", tmp_path / "bert")
    (tmp_path / "bert" / "vocab.txt").write_text("x")
    refused(tmp_path / "bert", "vocab.txt")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "model.safetensors").write_bytes(b"not one")
    refused(tmp_path / "foreign", "model.safetensors")
    (tmp_path / "card").mkdir()
    (tmp_path / "card" / "README.md").write_text("mine")
    refused(tmp_path / "card", "no model.safetensors")


def test_targets(bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="this is the folder of the bundle itself"):
        vec2emb.export(bundle, "huggingface", bundle, if_exists="replace")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="no folder stands there, but something else"):
        vec2emb.export(bundle, "huggingface", tmp_path / "file", if_exists="replace")
    (tmp_path / "empty").mkdir()
    export(bundle, "huggingface", tmp_path / "empty")
    export(bundle, "huggingface", tmp_path / "new" / "er" / "folder")
    assert (tmp_path / "new" / "er" / "folder" / "tokenizer.json").exists()


def test_a_failure_leaves_nothing(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    export(bundle, "huggingface", tmp_path / "m")
    before = {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}
    monkeypatch.setattr("vec2emb.exporting.words.tokenizer_config", fail)
    for name in ("m", "n"):
        with pytest.raises(KeyboardInterrupt):
            vec2emb.export(bundle, "model2vec", tmp_path / name, if_exists="replace")
    assert sorted(os.listdir(tmp_path)) == ["m"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"to": "huggingface", "specials": "drop"}, "specials-needed"),
        ({"to": "npz", "normalize_module": True}, "folder-option"),
        ({"to": "glove", "model_card": True}, "folder-option"),
        ({"to": "npz", "path": "a.npz.gz"}, "compression-suffix"),
        ({"to": "vocab-json", "path": "a.zip"}, "compression-suffix"),
    ],
)
def test_usage(bundle: Path, tmp_path: Path, arguments: dict[str, Any], code: str) -> None:
    usual: dict[str, Any] = {"path": tmp_path / "out"}
    with pytest.raises(UsageError) as caught:
        vec2emb.export(bundle, **{**usual, **arguments})
    assert caught.value.code == code
    assert not list(tmp_path.iterdir())


def test_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such bundle"):
        vec2emb.export(tmp_path / "none", "huggingface", tmp_path / "m")


@pytest.mark.parametrize("to", [*FOLDERS, "npz", "vocab-json"])
def test_memory_stays_flat(tmp_path: Path, to: str) -> None:
    rows, dim = 30_000, 128  # 15 MB of rows
    vectors = np.random.default_rng(0).standard_normal((rows, dim)).astype(np.float32)
    vec2emb.save(tmp_path / "b", ["<unk>", *(f"w{i}" for i in range(1, rows))], vectors, unk_token="<unk>")
    del vectors
    tracemalloc.start()
    vec2emb.export(tmp_path / "b", to, tmp_path / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 7 << 20


# The command.


def test_the_command(bundle: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    done = run("export", bundle, "--to", "huggingface", "-o", out, "--model-card", "--normalize-module")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines() == [
        f"{out}: huggingface, 252 rows x 50",
        "  loads in sentence-transformers, model2vec (0.8 and newer) and transformers' AutoTokenizer",
        "  a text is split at white space and made lower-case, and its vector is the mean of its words' rows, scaled "
        "to length 1",
        "  a word without a row: sentence-transformers takes the unknown token's row into the mean, model2vec leaves "
        "the word out",
        "  model2vec reads no more than the first 512 words of a text, unless told otherwise: max_length=None",
    ]
    told = json.loads(run("export", bundle, "--to", "npz", "-o", tmp_path / "a.npz", "--json").stdout)
    assert (told["format"], told["rows"], told["dtype"], told["files"]) == ("npz", 252, "float32", {})
    assert run("export", bundle, "--to", "npz", "-o", tmp_path / "b.npz", "--model-card").returncode == 2
    refused = run("export", bundle, "--to", "huggingface", "-o", bundle)
    assert (refused.returncode, refused.stderr[:28]) == (1, b"error[target-is-the-bundle]:")
