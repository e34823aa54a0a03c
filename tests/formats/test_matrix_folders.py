"""Folders of sentence-transformers and model2vec, and files that gensim saved."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import bits, collected, run
from safetensors.torch import save_file

import vec2emb
from vec2emb.errors import InputError, UsageError

gensim = pytest.importorskip("gensim")
DATA = Path(gensim.__file__).parent / "test" / "test_data"

WORDS = ["[PAD]", "[UNK]", "the", "##ing", "naïve"]
VECTORS = np.array([[0, 0], [9, 9], [1, 2], [3, 4], [0.1, -5]], np.float32)


def tokenizer(folder: Path, words: list[str] = WORDS) -> None:
    added = [
        {"id": id, "content": words[id], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": True} for id in (0, 1)
    ]  # fmt: skip
    content = {
        "version": "1.0", "truncation": None, "added_tokens": added,
        "padding": {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                    "pad_type_id": 0, "pad_token": "[PAD]"},
        "normalizer": None, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: id for id, word in enumerate(words)}, "unk_token": "[UNK]"},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(content))


def model2vec(folder: Path, **tensors: Any) -> Path:
    folder.mkdir(exist_ok=True)
    save_file({name: torch.as_tensor(tensor) for name, tensor in tensors.items()}, folder / "model.safetensors")
    tokenizer(folder)
    (folder / "config.json").write_text('{"model_type": "model2vec"}')
    return folder


def static(folder: Path, kind: str, place: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "modules.json").write_text(
        json.dumps([{"idx": 0, "name": "0", "path": place, "type": f"sentence_transformers.models.{kind}"}])
    )
    inner = folder / place
    inner.mkdir(exist_ok=True)
    if kind == "WordEmbeddings":
        save_file({"emb_layer.weight": torch.from_numpy(VECTORS)}, inner / "model.safetensors")
        (inner / "whitespacetokenizer_config.json").write_text(json.dumps({"vocab": ["PADDING_TOKEN", *WORDS[1:]]}))
    else:
        save_file({"embedding.weight": torch.from_numpy(VECTORS)}, inner / "model.safetensors")
        tokenizer(inner)
    return folder


def test_every_layout(tmp_path: Path, kernel: str, block: str) -> None:
    words = {"words": ["PADDING_TOKEN", *WORDS[1:]]}
    halves = {kind: torch.from_numpy(VECTORS).to(kind) for kind in (torch.float16, torch.bfloat16, torch.float64)}
    for name, folder, format in (
        ("model2vec", model2vec(tmp_path / "m", embeddings=VECTORS), "model2vec"),
        ("static", static(tmp_path / "s", "StaticEmbedding"), "sentence-transformers"),
        ("nested", static(tmp_path / "n", "StaticEmbedding", "0_StaticEmbedding"), "sentence-transformers"),
        ("words", static(tmp_path / "w", "WordEmbeddings", "0_WordEmbeddings"), "sentence-transformers"),
    ):
        table = vec2emb.read_vectors(folder)
        assert table.vocab.to_list() == words.get(name, WORDS)
        assert bits(table.vectors) == bits(VECTORS)
        assert table.report is not None
        assert table.report.format == format
    for kind, tensor in halves.items():
        folder = model2vec(tmp_path / str(kind), embeddings=tensor)
        assert bits(vec2emb.read_vectors(folder).vectors) == bits(tensor.float())


def test_mapping_and_weights(tmp_path: Path, kernel: str) -> None:
    """Tokens that share rows, each with a weight of its own, as model2vec multiplies them."""
    mapping, weights = np.array([0, 1, 1, 2, 1]), np.array([1, 2, 0.5, -1, 0.1], np.float32)
    folder = model2vec(tmp_path / "m", embeddings=VECTORS[:3], mapping=mapping, weights=weights)
    expected = VECTORS[mapping] * weights[:, None]
    assert bits(vec2emb.read_vectors(folder).vectors) == bits(expected)
    vec2emb.convert(folder, tmp_path / "o", vocab=["naïve", "##ing"], unk=None, pad=None)
    assert bits(vec2emb.load(tmp_path / "o").vectors) == bits(expected[[4, 3]])


def test_as_model2vec_itself(tmp_path: Path) -> None:
    model = pytest.importorskip("model2vec")
    folder = model2vec(tmp_path / "m", embeddings=VECTORS, weights=np.array([1, 2, 0.5, 3, 0.1], np.float32))
    theirs = model.StaticModel.from_pretrained(str(folder), normalize=False)
    ours = vec2emb.read_vectors(folder)
    for word in ("the", "naïve"):
        assert bits([ours[word]]) == bits([theirs.encode(word)])


def test_special_tokens_are_those_of_the_tokenizer(tmp_path: Path) -> None:
    folder = static(tmp_path / "s", "StaticEmbedding")
    _, warned = collected(lambda: vec2emb.convert(folder, tmp_path / "o"))
    table = vec2emb.load(tmp_path / "o")
    assert table.vocab.to_list() == WORDS
    assert (table.vocab.pad_token, table.vocab.unk_token) == ("[PAD]", "[UNK]")
    assert bits(table.vectors) == bits(VECTORS)
    assert warned == []


@pytest.mark.parametrize("kind", ["StaticEmbedding", "model2vec"])
def test_the_padding_row_of_a_model_stays_unless_zero_is_asked_for(tmp_path: Path, kernel: str, kind: str) -> None:
    vectors = VECTORS + np.float32(0.25)
    folder = model2vec(tmp_path / "m", embeddings=vectors) if kind == "model2vec" else static(tmp_path / "m", kind)
    if kind != "model2vec":
        save_file({"embedding.weight": torch.from_numpy(vectors)}, folder / "model.safetensors")
    _, warned = collected(lambda: vec2emb.convert(folder, tmp_path / "kept"))
    table = vec2emb.load(tmp_path / "kept")
    assert warned == []
    assert table.padding_idx == 0
    assert bits(table.vectors) == bits(vectors)
    assert vec2emb.verify(tmp_path / "kept", source=folder, rebuild=folder).ok
    assert vec2emb.inspect(tmp_path / "kept").ok
    table.save(tmp_path / "saved")
    vec2emb.convert(tmp_path / "kept", tmp_path / "again")
    for copy in ("saved", "again"):
        assert bits(vec2emb.load(tmp_path / copy).vectors) == bits(vectors)
        assert vec2emb.verify(tmp_path / copy).ok
    vec2emb.convert(folder, tmp_path / "zeroed", zero_padding=True)
    zeroed = vec2emb.load(tmp_path / "zeroed").vectors
    assert not zeroed[0].any()
    assert bits(zeroed[1:]) == bits(vectors[1:])
    assert vec2emb.verify(tmp_path / "zeroed", rebuild=folder).ok


@pytest.mark.parametrize("to", ["huggingface", "model2vec", "npz"])
def test_there_and_back(to: str, tmp_path: Path) -> None:
    """What `export` writes is a source, and gives the same bundle."""
    vec2emb.save(tmp_path / "b", WORDS, VECTORS, pad_token="[PAD]", unk_token="[UNK]")
    target = tmp_path / ("b.npz" if to == "npz" else "folder")
    collected(lambda: vec2emb.export(tmp_path / "b", to, target))
    collected(lambda: vec2emb.convert(target, tmp_path / "back"))
    table = vec2emb.load(tmp_path / "back")
    assert table.vocab.to_list() == WORDS
    assert (table.vocab.padding_idx, table.vocab.unk_idx) == (0, 1)
    assert bits(table.vectors) == bits(VECTORS)


def test_folders_that_are_no_source(tmp_path: Path) -> None:
    def broken(name: str) -> Path:
        return static(tmp_path / name, "StaticEmbedding")

    lacking = broken("lacking")
    (lacking / "tokenizer.json").unlink()
    pickled = broken("pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    fewer = broken("fewer")
    tokenizer(fewer, WORDS[:4])
    contextual = static(tmp_path / "contextual", "Transformer")
    other = broken("other")
    save_file({"layer.weight": torch.ones(2, 2)}, other / "model.safetensors")
    outside = broken("outside")
    (outside / "modules.json").write_text('[{"type": "a.StaticEmbedding", "path": "../s"}]')
    odd = broken("odd")
    (odd / "modules.json").write_text("[]")
    mapped = model2vec(tmp_path / "mapped", embeddings=VECTORS, mapping=np.array([0, 1, 2, 3, 5]))
    weighed = model2vec(tmp_path / "weighed", embeddings=VECTORS, weights=np.ones((5, 2), np.float32))
    cut = broken("cut")
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:-1])
    for folder, code, words in (
        (tmp_path, "is-a-folder", "a bundle, or a folder of sentence-transformers or model2vec, would do"),
        (lacking, "folder-incomplete", "expected tokenizer.json"),
        (pickled, "folder-incomplete", "found pytorch_model.bin, a pickle; load the model and save it again"),
        (fewer, "folder-words", "expected 5 words, found 4"),
        (contextual, "is-contextual", "no word has one of its own"),
        (other, "folder-table", "found layer.weight F32[2, 2]"),
        (outside, "folder-modules", "lies outside of the folder: found '../s'"),
        (odd, "folder-modules", "the first module is not described"),
        (mapped, "folder-table", "the mapping names rows that are not there"),
        (weighed, "folder-table", "weights is not one number a word"),
        (cut, "file-cut", "the file ends early"),
    ):
        with pytest.raises(InputError) as caught:
            vec2emb.read_vectors(folder)
        assert caught.value.code == code, folder
        assert words in str(caught.value)


# gensim.


def keyed(words: list[str], vectors: Any) -> Any:
    made = gensim.models.KeyedVectors(vector_size=vectors.shape[1])
    made.add_vectors(words, vectors)
    return made


def test_objects_of_gensim(kernel: str, block: str) -> None:
    sentences = [["one", "two", "three"], ["two", "three", "four"]] * 5
    for model in (
        gensim.models.Word2Vec(sentences, vector_size=4, min_count=1, workers=1),
        gensim.models.FastText(sentences, vector_size=4, min_count=1, bucket=50, workers=1),
        keyed(WORDS, VECTORS),
        keyed(WORDS, VECTORS.astype(np.float64)),
    ):
        vectors = getattr(model, "wv", model)
        for source in (model, vectors):
            table = vec2emb.read_vectors(source)
            assert table.vocab.to_list() == vectors.index_to_key
            assert bits(table.vectors) == bits(vectors.vectors)


def test_room_that_gensim_made_in_advance() -> None:
    made = gensim.models.KeyedVectors(vector_size=2, count=10)
    made.add_vector("a", np.array([1, 2], np.float32))
    assert vec2emb.read_vectors(made).vectors.tolist() == [[1, 2]]


def test_objects_of_gensim_without_words() -> None:
    model = gensim.models.TfidfModel([[(0, 1)]])
    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(model)
    assert str(caught.value) == (
        "<TfidfModel>: the object has no word vectors: expected KeyedVectors, or a model with them as wv, "
        "found TfidfModel"
    )


def test_files_of_gensim(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    words = [f"w{i}" for i in range(50)]
    vectors = rng.standard_normal((50, 4)).astype(np.float32)
    model = keyed(words, vectors)
    model.save(str(tmp_path / "small.kv"))
    model.save(str(tmp_path / "large.kv"), sep_limit=0)  # as arrays of many megabytes are stored
    assert (tmp_path / "large.kv.vectors.npy").exists()
    gensim.models.Word2Vec([["a", "b"]] * 9, vector_size=3, min_count=1).save(str(tmp_path / "w2v.model"))
    for name in ("small.kv", "large.kv"):
        table = vec2emb.read_vectors(tmp_path / name, allow_pickle=True)
        assert table.vocab.to_list() == words
        assert bits(table.vectors) == bits(vectors)
    report = vec2emb.convert(tmp_path / "large.kv", tmp_path / "o", allow_pickle=True, only=["w3", "w40"])
    assert bits(vec2emb.load(tmp_path / "o").vectors[2:]) == bits(vectors[[3, 40]])
    assert report.manifest.to_dict()["source"]["name"] == "large.kv"
    assert "allow_pickle" not in report.manifest.to_dict()["replay"]["options"]
    assert vec2emb.verify(tmp_path / "o", source=tmp_path / "large.kv", allow_pickle=True).ok
    assert not vec2emb.verify(tmp_path / "o", source=tmp_path / "large.kv").ok  # a bundle gives no leave
    vec2emb.convert(tmp_path / "large.kv", "memory://kv/o", allow_pickle=True, only=["w3", "w40"])
    assert vec2emb.verify("memory://kv/o", source=tmp_path / "large.kv", allow_pickle=True).ok  # downloaded first
    vec2emb.extend(tmp_path / "o", tmp_path / "p", tokens=["w5"], source=tmp_path / "large.kv", allow_pickle=True)
    assert vec2emb.load(tmp_path / "p")["w5"].tobytes() == model["w5"].tobytes()
    with pytest.raises(InputError) as refused:
        vec2emb.extend(tmp_path / "o", tmp_path / "q", tokens=["w5"], source=tmp_path / "large.kv")
    assert refused.value.code == "is-pickle"
    assert vec2emb.read_vectors(tmp_path / "w2v.model", allow_pickle=True).dim == 3
    (tmp_path / "large.kv.vectors.npy").unlink()
    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(tmp_path / "large.kv", allow_pickle=True)
    assert caught.value.code == "gensim-incomplete"
    assert "large.kv.vectors.npy" in str(caught.value)


def test_arrays_beside_a_pickle_are_not_pinned(tmp_path: Path) -> None:
    """gensim itself puts large arrays beside the pickle: the pickle's checksum says nothing of them."""
    vectors = gensim.models.KeyedVectors(2)
    vectors.add_vectors(["a", "b"], np.eye(2, dtype=np.float32))
    for name, limit in (("one.kv", 1 << 30), ("two.kv", 1)):
        vectors.save(str(tmp_path / name), sep_limit=limit)
    digests = {name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("one.kv", "two.kv")}
    one = vec2emb.read_vectors(tmp_path / "one.kv", allow_pickle=True, sha256=digests["one.kv"])
    assert one.vectors.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(UsageError) as caught:
        vec2emb.read_vectors(tmp_path / "two.kv", allow_pickle=True, sha256=digests["two.kv"])
    assert caught.value.code == "sha256-without-file"
    assert "found two.kv.vectors.npy beside it" in str(caught.value)


class Canary:
    """An object whose pickle makes a folder when it is opened."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("name", ["a.kv", "a.model", "a.bin", "a.txt", "a.npz", "model.safetensors"])
@pytest.mark.parametrize("protocol", range(6))
def test_no_pickle_is_opened_by_itself(name: str, protocol: int, tmp_path: Path) -> None:
    """Whatever it is called, whatever is asked of it: refused, and nothing of it has run."""
    path, canary = tmp_path / name, tmp_path / "canary"
    path.write_bytes(pickle.dumps(Canary(canary), protocol))
    for call in (
        lambda: vec2emb.read_vectors(path),
        lambda: vec2emb.inspect(path),
        lambda: vec2emb.audit(path),
        lambda: vec2emb.convert(path, tmp_path / "o"),
        lambda: next(vec2emb.iter_vectors(path)),
    ):
        with pytest.raises(InputError):
            call()
    assert not canary.exists()
    if protocol >= 2 and name in ("a.kv", "a.model"):
        with pytest.raises(InputError) as caught:
            vec2emb.read_vectors(path)
        assert caught.value.code == "is-pickle"
        assert "--allow-pickle opens it" in str(caught.value)
        with pytest.raises(InputError, match="gensim cannot open it"):
            vec2emb.read_vectors(path, allow_pickle=True)
        assert canary.exists()  # with leave given, it is opened, and shows that the canary sings


def test_arrays_of_objects_are_not_opened(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    words = np.array([Canary(canary), None], object)
    np.savez(tmp_path / "a.npz", v=VECTORS[:2], w=words)
    with pytest.raises(InputError) as caught:
        vec2emb.read_vectors(tmp_path / "a.npz", allow_pickle=True)
    assert caught.value.code == "npz-objects"
    assert not canary.exists()


def test_on_the_command_line(tmp_path: Path) -> None:
    keyed(WORDS, VECTORS).save(str(tmp_path / "a.kv"))
    done = run("convert", tmp_path / "a.kv", "-o", tmp_path / "o")
    assert done.returncode == 1
    assert b"error[is-pickle]" in done.stderr
    assert b"--allow-pickle" in done.stderr
    done = run("convert", tmp_path / "a.kv", "-o", tmp_path / "o", "--allow-pickle", "--quiet")
    assert done.returncode == 0, done.stderr
    done = run("inspect", tmp_path / "a.kv", "--allow-pickle", "--json")
    assert json.loads(done.stdout)["format"] == "gensim"
    done = run("inspect", model2vec(tmp_path / "m", embeddings=VECTORS), "--json")
    assert json.loads(done.stdout)["format"] == "model2vec"
    assert run("audit", tmp_path / "m", tmp_path / "a.kv", "--allow-pickle", "--quiet").returncode == 0
