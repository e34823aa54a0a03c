"""`vec2emb trim`: which tokens stay, which files follow, what is refused, and what a gate does."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import run
from safetensors.numpy import load_file, save_file

import vec2emb
from vec2emb import trim
from vec2emb.errors import CheckError, OutputError, TryAgainError, UsageError, Vec2embError
from vec2emb.trimming import counts as counting
from vec2emb.trimming import worker
from vec2emb.trimming.id_fields import IdChange, Sizes, named_ids, with_new_ids
from vec2emb.trimming.rewriting import rewrite

pytest.importorskip("tokenizers")

LETTERS = "abcdefghij"
TOKENS = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    *LETTERS,
    *(f"##{c}" for c in LETTERS),
    "bad",
    "cab",
    "##bed",
    "face",
    "fed",
]
CORPUS = "bad face bad cabbed\nface bad fed\n\nface j\n"  # bad 3, face 3, cab 1, ##bed 1, fed 1, j 1
WORD = "embeddings.word_embeddings.weight"


def tokenizer() -> dict[str, Any]:
    added = [
        {"id": id, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": True}
        for id, token in enumerate(TOKENS[:4])
    ]  # fmt: skip
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]},
        "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100, "vocab": {token: id for id, token in enumerate(TOKENS)}},
    }  # fmt: skip


def donor(folder: Path, **changes: Any) -> Path:
    """A model of 29 tokens; `changes` replaces or adds files: tensors, JSON, bytes, or None for no file."""
    rows = np.arange(len(TOKENS) * 3, dtype=np.float16).reshape(-1, 3)
    files: dict[str, Any] = {
        "model.safetensors": {WORD: rows, "pooler.dense.weight": np.ones((3, 3), np.float16)},
        "config.json": {"model_type": "bert", "vocab_size": len(TOKENS), "pad_token_id": 0},
        "tokenizer.json": tokenizer(),
        **changes,
    }
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".safetensors") and content is not None:
            save_file(content, path)
        elif content is not None:
            path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder


@pytest.fixture
def apart() -> None:
    """What loads a tokenizer runs in a process of its own, as it does for callers."""


@pytest.fixture(autouse=True)
def near(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `apart` it runs here, which takes less time."""

    def run_here(job: str, arguments: dict[str, Any], threads: int | None, show: Any) -> worker.Done:
        module, _, name = worker.JOBS[job].partition(":")
        function = getattr(importlib.import_module(module), name)
        return worker.Done(function(**arguments, show=show or (lambda *done: None)), 0)

    if "apart" not in request.fixturenames:
        monkeypatch.setattr("vec2emb.trimming.trimmer.run_apart", run_here)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return donor(tmp_path / "model")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(CORPUS)
    return path


def kept(out: Path) -> list[str]:
    content = json.loads((out / "tokenizer.json").read_text("utf-8"))["model"]["vocab"]
    return sorted(content, key=content.__getitem__)


ALWAYS = TOKENS[:24]


# Which tokens stay.


@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, ["bad", "cab", "##bed", "face", "fed"]),
        ({"min_count": 2}, ["bad", "face"]),
        ({"min_count": 2, "keep": ["fed"]}, ["bad", "face", "fed"]),
        ({"max_size": 27}, ["bad", "cab", "face"]),  # of those that come once, the first
        ({"max_size": 26, "keep": ["fed", "fed"]}, ["bad", "fed"]),
        ({"min_count": 4}, []),
    ],
    ids=str,
)
def test_which_tokens_stay(options: dict[str, Any], more: list[str], model: Path, corpus: Path, tmp_path: Path) -> None:
    done = trim(model, tmp_path / "out", corpus=corpus, **options)
    assert kept(tmp_path / "out") == ALWAYS + more
    assert done.tokens == (29, 24 + len(more))
    rows = load_file(tmp_path / "out" / "model.safetensors")[WORD]
    ids = [TOKENS.index(token) for token in ALWAYS + more]
    assert rows.tobytes() == load_file(model / "model.safetensors")[WORD][ids].tobytes()
    counts = {"bad": 3, "face": 3, "cab": 1, "##bed": 1, "fed": 1, "j": 1}
    share = sum(count for token, count in counts.items() if token in ALWAYS + more) / 10
    assert done.coverage == pytest.approx(share)
    # A text is as before if none of its tokens is gone: three texts, the empty line is none.
    texts = [{"bad", "face", "cab", "##bed"}, {"face", "bad", "fed"}, {"face", "j"}]
    assert done.proof.texts == 3
    assert done.proof.identical == done.proof.whole == sum(text <= {*ALWAYS, *more} for text in texts)


def test_tokens_of_a_file_and_counts_made_before(model: Path, corpus: Path, tmp_path: Path) -> None:
    """Counts of `vec2emb vocab` give what the corpus gives; the corpus then serves the proof alone."""
    other = tmp_path / "other.txt"
    other.write_text("fed fed\n")
    (tmp_path / "keep.txt").write_bytes(b"fed\r\n##bed\n")
    counted = vec2emb.count_tokens(corpus, tokenizer=f"hf:{model / 'tokenizer.json'}")
    for name in ("counts.tsv", "counts.parquet"):
        counted.save(tmp_path / name)
        out = tmp_path / f"out-{name}"
        done = trim(model, out, counts=tmp_path / name, corpus=other, keep=tmp_path / "keep.txt", min_count=2)
        assert kept(out) == [*ALWAYS, "bad", "##bed", "face", "fed"]
        assert (done.proof.texts, done.proof.identical, done.memory) == (1, 1, 0)
    alone = trim(model, tmp_path / "alone", counts=tmp_path / "counts.tsv", min_count=2)
    assert (alone.proof.texts, alone.identical) == (0, None)
    assert kept(tmp_path / "alone") == [*ALWAYS, "bad", "face"]


def test_the_mapping_and_what_lost_tokens_became(model: Path, corpus: Path, tmp_path: Path, apart: None) -> None:
    done = trim(model, tmp_path / "out", corpus=corpus, min_count=2)
    lines = (tmp_path / "out" / "vec2emb_trim.tsv").read_text("utf-8").split("\n")
    assert lines[0] == "old_id\tnew_id\tcount\ttoken"
    assert lines[1] == '0\t0\t0\t"[PAD]"'
    assert lines[-6:] == [
        '24\t24\t3\t"bad"',
        '25\t\t1\t"cab"',
        '26\t\t1\t"##bed"',
        '27\t25\t3\t"face"',
        '28\t\t1\t"fed"',
        "",
    ]
    assert {one.token: (one.uses, one.text, one.now) for one in done.proof.lost} == {
        "cab": (1, "cab", ("c", "##a", "##b")),
        "##bed": (1, "bed", ("##b", "##e", "##d")),
        "fed": (1, "fed", ("f", "##e", "##d")),
    }
    assert done.lost == 3
    assert (done.proof.tokens_before, done.proof.tokens_after) == (16, 22)
    assert done.proof.memory > 0
    assert done.memory > 0


def test_rows_without_a_token_and_rows_that_fill_up(tmp_path: Path, corpus: Path) -> None:
    """Two rows have no token; the configuration names one of them, so it stays, behind the tokens."""
    rows = np.arange(31 * 3, dtype=np.float16).reshape(-1, 3)
    config = {"model_type": "bert", "vocab_size": 31, "pad_token_id": 0, "decoder_start_token_id": 30}
    model = donor(tmp_path / "model", **{"model.safetensors": {WORD: rows}, "config.json": config})
    done = trim(model, tmp_path / "out", corpus=corpus, min_count=2, pad_to_multiple_of=16)
    expected = rows[[*range(24), 24, 27, 30, *[23] * 5]]  # 23 is the last of those that the corpus lacks
    assert load_file(tmp_path / "out" / "model.safetensors")[WORD].tobytes() == expected.tobytes()
    assert (done.tokens, done.rows) == ((29, 26), (31, 32))
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["vocab_size"], config["decoder_start_token_id"]) == (32, 26)


# Files.


def test_ids_in_fields() -> None:
    """Each kind of field, by hand: ids 0, 5 and 7 of 10 stay and become 0, 1 and 2."""
    content = {
        "vocab_size": 10,
        "pad_token_id": 0, "eos_token_id": [5, 7], "bos_token_id": None, "sep_token_id": -1, "cls_token_id": 11,
        "image_token_index": 7, "forced_decoder_ids": [[1, 5], [2, None]], "lang_to_id": {"de": 7},
        "suppress_tokens": [-1, 3, 5], "bad_words_ids": [[5, 7], [5, 3]], "sequence_bias": [[[5], -10], [[3], 1.5]],
        "text_config": {"vocab_size": 10, "eos_token_id": 7},
        "audio_config": {"vocab_size": 8, "eos_token_id": 7},
        "added_tokens_decoder": {"7": {"content": "x"}},
        "task_specific_params": {"translation": {"forced_bos_token_id": 5}},
        "hidden_size": 7, "token_type": 7, "type_vocab_size": 10,
    }  # fmt: skip
    assert named_ids(content, 10) == {0, 5, 7}
    assert named_ids({"added_tokens_decoder": {"3": {}, "12": {}}}, 10) == {3}
    changes: list[IdChange] = []
    after = with_new_ids(content, {0: 0, 5: 1, 7: 2}, Sizes((10, 4), (9, 3)), changes)
    assert after == {
        "vocab_size": 4,
        "pad_token_id": 0, "eos_token_id": [1, 2], "bos_token_id": None, "sep_token_id": -1, "cls_token_id": 11,
        "image_token_index": 2, "forced_decoder_ids": [[1, 1], [2, None]], "lang_to_id": {"de": 2},
        "suppress_tokens": [-1, 1], "bad_words_ids": [[1, 2]], "sequence_bias": [[[1], -10]],
        "text_config": {"vocab_size": 4, "eos_token_id": 2},
        "audio_config": {"vocab_size": 8, "eos_token_id": 7},
        "added_tokens_decoder": {"2": {"content": "x"}},
        "task_specific_params": {"translation": {"forced_bos_token_id": 1}},
        "hidden_size": 7, "token_type": 7, "type_vocab_size": 10,
    }  # fmt: skip
    assert IdChange("text_config.eos_token_id", 7, 2) in changes
    assert len(changes) == 12


def test_ids_that_the_configuration_leaves_to_its_family(tmp_path: Path) -> None:
    """A GPT-2 without bos and eos in its configuration takes id 50256, which is another one now."""
    words = ["<unk>", *(f"w{id}" for id in range(1, 50256)), "<|endoftext|>"]
    content = tokenizer() | {
        "added_tokens": [], "post_processor": None,
        "model": {"type": "WordLevel", "unk_token": "<unk>", "vocab": {word: id for id, word in enumerate(words)}},
    }  # fmt: skip
    rows = np.arange(50257, dtype=np.uint16).view(np.float16)[:, None]
    files = {"model.safetensors": {"wte.weight": rows}, "config.json": {"model_type": "gpt2"}}
    model = donor(tmp_path / "model", **files, **{"tokenizer.json": content})
    trim(model, tmp_path / "out", keep=["w7", "w9"])
    assert json.loads((tmp_path / "out" / "config.json").read_text()) == {
        "model_type": "gpt2", "vocab_size": 4, "bos_token_id": 3, "eos_token_id": 3,
    }  # fmt: skip
    table = load_file(tmp_path / "out" / "model.safetensors")["wte.weight"]
    assert table.view(np.uint16)[:, 0].tolist() == [0, 7, 9, 50256]


def test_special_tokens_that_the_tokenizer_does_not_list(tmp_path: Path, corpus: Path) -> None:
    """transformers would add them again, with an id beyond the table."""
    settings = {"mask_token": "fed", "tokenizer_class": "cab", "added_tokens_decoder": {"4": {"content": "a"}}}
    lists = {"additional_special_tokens": ["##bed", {"content": "face"}], "pad_token": {"content": "[PAD]"},
             "extra_special_tokens": {"image_token": "bad"}}  # fmt: skip
    model = donor(tmp_path / "model", **{"tokenizer_config.json": settings, "special_tokens_map.json": lists})
    trim(model, tmp_path / "out", corpus=corpus, min_count=9)
    assert kept(tmp_path / "out") == [*ALWAYS, "bad", "##bed", "face", "fed"]


def test_other_files(tmp_path: Path, corpus: Path) -> None:
    vocabulary = "\n".join([*TOKENS, ""]).encode()
    files = {
        "vocab.txt": vocabulary, "tokenizer.model": b"old", "pytorch_model.bin": b"old", "model.gguf": b"old",
        "onnx/model.onnx": b"old", "vocab.json": {"other": 0}, "README.md": b"---\nlicense: mit\n---\n",
        "consolidated.safetensors": {"tok_embeddings.weight": np.ones((29, 3), np.float16)},
        "special_tokens_map.json": {"pad_token": "[PAD]"}, "deep/notes.txt": b"notes",
    }  # fmt: skip
    out = tmp_path / "out"
    done = trim(donor(tmp_path / "model", **files), out, corpus=corpus, min_count=2)
    there = {os.path.relpath(os.path.join(at, name), out) for at, _, names in os.walk(out) for name in names}
    assert there == {
        "vocab.txt", "README.md", "special_tokens_map.json", "deep/notes.txt", "model.safetensors", "config.json",
        "tokenizer.json", "vec2emb_trim.json", "vec2emb_trim.tsv",
    }  # fmt: skip
    assert (out / "vocab.txt").read_text() == "\n".join([*ALWAYS, "bad", "face", ""])
    left = {note.split(" was left out")[0] for note in done.notes}
    assert left == {
        "tokenizer.model", "pytorch_model.bin", "model.gguf", "onnx/model.onnx", "vocab.json",
        "consolidated.safetensors",
    }  # fmt: skip


def test_a_trimmed_model_can_be_trimmed(model: Path, corpus: Path, tmp_path: Path) -> None:
    trim(model, tmp_path / "once", corpus=corpus)
    trim(tmp_path / "once", tmp_path / "twice", corpus=corpus, min_count=2)
    assert kept(tmp_path / "twice") == [*ALWAYS, "bad", "face"]
    record = json.loads((tmp_path / "twice" / "vec2emb_trim.json").read_text())
    assert [one["name"] for one in record["donors"]] == ["once", "model"]


def test_a_module_in_a_folder_of_its_own(tmp_path: Path, corpus: Path) -> None:
    """The layout of older sentence-transformers: the transformers model is in 0_Transformer."""
    root = tmp_path / "model"
    donor(root / "0_Transformer")
    modules = [
        {"idx": 0, "name": "0", "path": "0_Transformer", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "sentence_transformers.models.Dense"},
    ]
    (root / "modules.json").write_text(json.dumps(modules))
    (root / "1_Dense").mkdir()
    save_file({"linear.weight": np.ones((2, 3), np.float16)}, root / "1_Dense" / "model.safetensors")
    done = trim(root, tmp_path / "out", corpus=corpus, min_count=2)
    assert kept(tmp_path / "out" / "0_Transformer") == [*ALWAYS, "bad", "face"]
    assert "1_Dense/model.safetensors" in done.copied
    assert (tmp_path / "out" / "modules.json").read_bytes() == (root / "modules.json").read_bytes()
    again = trim(root, tmp_path / "out", corpus=corpus, if_exists="replace")
    assert again.tokens == (29, 29)
    save_file({"weight": np.ones(29, np.float16)}, root / "1_Dense" / "model.safetensors")
    with pytest.raises(Vec2embError, match="axis as long as the vocabulary") as caught:
        trim(root, tmp_path / "other", corpus=corpus)
    assert caught.value.code == "tensor-unlisted"


def test_a_module_with_a_value_per_token(tmp_path: Path, corpus: Path) -> None:
    """SPLADE: the output of the pooling is as long as the vocabulary."""
    modules = [
        {"path": "", "type": "sentence_transformers.sparse_encoder.models.MLMTransformer"},
        {"path": "1_SpladePooling", "type": "sentence_transformers.sparse_encoder.models.SpladePooling"},
    ]
    pooling = {"pooling_strategy": "max", "word_embedding_dimension": 29}
    files = {"modules.json": modules, "1_SpladePooling/config.json": pooling}
    trim(donor(tmp_path / "model", **files), tmp_path / "out", corpus=corpus, min_count=2, pad_to_multiple_of=4)
    after = json.loads((tmp_path / "out" / "1_SpladePooling" / "config.json").read_text())
    assert after == {"pooling_strategy": "max", "word_embedding_dimension": 28}


# What is refused.


def shapes(**tensors: tuple[int, ...]) -> dict[str, Any]:
    return {"model.safetensors": {key: np.ones(shape, np.float16) for key, shape in {WORD: (29, 3), **tensors}.items()}}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no folder": ({"model": "nothing"}, "not-a-model-folder"),
    "a file": ({"model": "model/model.safetensors"}, "not-a-model-folder"),
    "no weights": ({"files": {"model.safetensors": None}}, "no-checkpoint"),
    "no tokenizer": ({"files": {"tokenizer.json": None}}, "no-tokenizer-json"),
    "no configuration": ({"files": {"config.json": None}}, "family-unknown"),
    "an unknown family": ({"files": {"config.json": {"model_type": "other"}}}, "family-unknown"),
    "a bundle": ({"files": {"vec2emb.json": {}}}, "is-a-bundle"),
    "no embedding": ({"files": {"model.safetensors": {"a": np.ones(2)}}}, "no-vocabulary-tensor"),
    "two sizes": ({"files": shapes(**{"cls.predictions.bias": (30,)})}, "vocabulary-sizes"),
    "an unlisted axis": ({"files": shapes(**{"head.weight": (2, 29)})}, "tensor-unlisted"),
    "a configuration of another size": (
        {"files": {"config.json": {"model_type": "bert", "vocab_size": 30}}}, "vocabulary-sizes",
    ),
    "more ids than rows": (
        {"files": {**shapes(**{WORD: (28, 3)}), "config.json": {"model_type": "bert"}}}, "vocabulary-sizes",
    ),
    "modules that are no list": ({"files": {"modules.json": {}}}, "json-invalid"),
    "no Transformer": ({"files": {"modules.json": [{"type": "a.Router", "path": ""}]}}, "no-transformer-module"),
    "nothing to keep": ({"corpus": None}, "nothing-to-keep"),
    "standard input": ({"corpus": "-"}, "corpus-read-twice"),
    "a device": ({"corpus": os.devnull}, "corpus-read-twice"),
    "an output at a URL": ({"output": "s3://bucket/out"}, "local-only"),
    "a model at a URL": ({"model": "hf://org/model"}, "local-only"),
    "no corpus": ({"corpus": "nothing.txt"}, "not-found"),
    "a corpus without text": ({"corpus": "empty.txt"}, "empty-corpus"),
    "no token": ({"keep": ["nothing"]}, "not-a-token"),
    "a file with no token": ({"keep": "empty.txt"}, "not-a-token"),
    "words instead of tokens": ({"counts": "words.tsv"}, "counts-of-other-tokens"),
    "counts of another tokenizer": ({"counts": "words.parquet"}, "counts-of-other-tokens"),
    "too small": ({"max_size": 23}, "max-size-small"),
    "too small for what is kept": ({"max_size": 24, "keep": ["bad"]}, "max-size-small"),
    "no size": ({"max_size": 0}, "max-size-range"),
    "no count": ({"min_count": 0}, "min-count-range"),
    "no multiple": ({"pad_to_multiple_of": 0}, "pad-to-multiple-of-range"),
    "no sample": ({"sample": 1.5}, "sample-range"),
    "no threads": ({"threads": -1}, "threads-range"),
    "no policy": ({"if_exists": "keep"}, "if-exists"),
    "no handler": ({"encoding_errors": "ignore"}, "encoding-errors"),
    "a gate of no figure": ({"min": ["other=1"]}, "gate-path"),
    "a gate of no number": ({"min": {"identical": "much"}}, "gate-number"),
    "a gate that is none": ({"min": 5}, "gate-form"),
    "a gate without a corpus": ({"corpus": None, "keep": ["bad"], "min": ["identical=1"]}, "gate-without-corpus"),
    "coverage without a corpus": (
        {"corpus": None, "keep": ["bad"], "min": ["coverage=1"]}, "gate-without-corpus",
    ),
    "into itself": ({"output": "model"}, "output-inside"),
    "inside itself": ({"output": "model/out"}, "output-inside"),
    "an argument of a wrong type": ({"keep": 5}, "argument-type"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes, code = REFUSED[name]
    monkeypatch.chdir(tmp_path)
    Path("empty.txt").write_text("\n")
    Path("words.tsv").write_text("house\t5\n")
    vec2emb.TokenCounts.of({"bad": 5}).save("bad.parquet")
    vec2emb.count_tokens(corpus).save("words.parquet")
    donor(Path("model"), **changes.get("files", {}))
    options = {"model": "model", "output": "out", "corpus": corpus, **changes}
    options.pop("files", None)
    before = {str(path): path.stat().st_mtime_ns for path in Path("model").rglob("*")}
    with pytest.raises(Vec2embError) as caught:
        trim(**options)
    assert caught.value.code == code, caught.value
    assert not Path("out").exists()
    assert before == {str(path): path.stat().st_mtime_ns for path in Path("model").rglob("*")}
    assert not list(Path().rglob(".vec2emb*"))


def test_what_is_there_is_replaced_only_if_it_is_a_result(model: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    trim(model, out, corpus=corpus)
    with pytest.raises(OutputError) as caught:
        trim(model, out, corpus=corpus)
    assert caught.value.code == "target-exists"
    trim(model, out, corpus=corpus, min_count=2, if_exists="replace")
    assert kept(out) == [*ALWAYS, "bad", "face"]
    (out / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"mine\.txt") as caught:
        trim(model, out, corpus=corpus, if_exists="replace")
    assert caught.value.code == "target-not-replaceable"
    shutil.rmtree(out)
    shutil.copytree(model, out)
    with pytest.raises(OutputError) as caught:
        trim(model, out, corpus=corpus, if_exists="replace")
    assert caught.value.code == "target-not-replaceable"


# The proof and its process.


def test_a_missed_gate_writes_nothing(model: Path, corpus: Path, tmp_path: Path) -> None:
    for gate, found in (("identical=0.5", "0.333333"), ("coverage=0.8", "0.7")):
        with pytest.raises(CheckError, match=f"found {found}") as caught:
            trim(model, tmp_path / "out", corpus=corpus, min_count=2, min=[gate])
        assert (caught.value.code, caught.value.exit_code) == ("gate-missed", 3)
        assert not (tmp_path / "out").exists()
    trim(model, tmp_path / "out", corpus=corpus, min_count=2, min={"identical": 0.333, "coverage": 0.7})


def test_a_tokenizer_that_breaks_a_text_is_not_written(
    model: Path, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a rule of the cut were wrong, the proof would show it: here the limit for the length of words is lost."""

    def wrong(*arguments: Any) -> Any:
        result = rewrite(*arguments)
        result.contents["tokenizer.json"]["model"]["max_input_chars_per_word"] = 3
        return result

    monkeypatch.setattr("vec2emb.trimming.trimmer.rewrite", wrong)
    with pytest.raises(CheckError, match="bad face bad cabbed") as caught:
        trim(model, tmp_path / "out", corpus=corpus)
    assert caught.value.code == "trim-not-exact"
    assert not (tmp_path / "out").exists()


def test_ids_that_the_tokenizers_package_sees_otherwise(tmp_path: Path, corpus: Path) -> None:
    """An added token beyond a gap gets the next id from the package, whatever the file says."""
    content = tokenizer()
    content["added_tokens"].append({**content["added_tokens"][0], "id": 30, "content": "<mask>"})
    rows = {WORD: np.ones((31, 3), np.float16)}
    config = {"model_type": "bert", "vocab_size": 31}
    model = donor(tmp_path / "model", **{"tokenizer.json": content, "model.safetensors": rows, "config.json": config})
    with pytest.raises(Vec2embError) as caught:
        trim(model, tmp_path / "out", corpus=corpus)
    assert caught.value.code == "tokenizer-ids"


def test_the_sample_is_of_the_whole_corpus(model: Path, tmp_path: Path) -> None:
    (tmp_path / "corpus.jsonl").write_text("".join(json.dumps({"body": "bad " * n}) + "\n" for n in range(1, 400)))
    done = trim(model, tmp_path / "out", corpus=[tmp_path / "corpus.jsonl"], field="body", sample=50)
    assert done.proof.texts == 50
    # Texts of 1 to 399 tokens, each as likely: 50 of them have about 50 * 200, and never those of the first 50 alone.
    assert 5_000 < done.proof.tokens_before < 15_000


def test_errors_of_the_other_process_reach_the_caller(model: Path, tmp_path: Path, apart: None) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"good\nbad \xff\n")
    with pytest.raises(Vec2embError) as caught:
        trim(model, tmp_path / "out", corpus=bad)
    assert (caught.value.code, caught.value.line, caught.value.path) == ("invalid-utf8", 2, str(bad))
    assert trim(model, tmp_path / "out", corpus=bad, encoding_errors="replace").proof.texts == 2


def test_a_process_that_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_PROGRAM", "import sys; sys.exit(7)")
    with pytest.raises(TryAgainError, match="exit code 7"):
        worker.run_apart("count", {}, None, None)


def test_progress_is_of_bytes(model: Path, corpus: Path, tmp_path: Path, apart: None) -> None:
    seen: list[tuple[int, int | None]] = []
    trim(model, tmp_path / "out", corpus=corpus, progress=lambda *done: seen.append(done), threads=1)
    assert seen[-1] == (len(CORPUS), len(CORPUS))


def test_counts_of_a_unigram_model_have_the_text_of_unknown_tokens(tmp_path: Path) -> None:
    from vec2emb.trimming.tokenizer_json import TokenizerJson

    model = {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["a", -1.0]]}
    (tmp_path / "counts.tsv").write_text("a\t5\n漢\t2\n")
    read = counting.read_counts(tmp_path / "counts.tsv", TokenizerJson({"model": model}, "tokenizer.json"))
    assert read.tolist() == [2, 5]


def test_without_the_tokenizers_package(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "tokenizers" else find(name))
    with pytest.raises(Vec2embError, match=r"pip install 'vec2emb\[corpus\]'"):
        trim(model, "out", keep=["bad"])


# The command.


def test_the_command(model: Path, corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = run("trim", model, "-o", out, "--corpus", corpus, "--min-count", 2)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith(f"{out}: 26 of 29 tokens")
    assert any("1 of 3 sampled texts are encoded as before (33.3333%)" in line for line in lines)
    assert any("cab (1 times): now c ##a ##b" in line for line in lines)
    done = run("trim", model, "-o", out, "--corpus", corpus, "--json", "--if-exists", "replace", "--quiet")
    content = json.loads(done.stdout)
    assert content["tokens"] == [29, 29]
    assert content["identical"] == 1.0
    assert content["proof"]["lost"] == []
    assert content["tensors"] == [{"key": WORD, "file": "model.safetensors", "axis": 0}]


def test_the_exit_code_of_a_missed_gate(model: Path, corpus: Path, tmp_path: Path) -> None:
    done = run(
        "trim",
        model,
        "-o",
        tmp_path / "out",
        "--corpus",
        corpus,
        "--min-count",
        2,
        "--min",
        "identical=0.999",
        "--json",
    )
    assert done.returncode == 3
    assert json.loads(done.stdout)["error"]["code"] == "gate-missed"
    assert b"error[gate-missed]" in done.stderr
    assert not (tmp_path / "out").exists()


def test_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        trim(tmp_path / "nothing", tmp_path / "out", keep=["a"])
    assert run("trim", "model").returncode == 2
