"""Trimmed models of eight kinds: transformers loads them, and texts of kept tokens give the same hidden states."""

from __future__ import annotations

import csv
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from donors import DONORS, encodings, sentences, texts
from safetensors.numpy import load_file

from vec2emb import trim
from vec2emb.trimming import Trimmed

pytest.importorskip("tokenizers")
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

KINDS = [*DONORS, "sentences"]
SEQ2SEQ = ("t5", "bart")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Makes a donor and what is trimmed of it, each once."""
    root, lines = tmp_path_factory.mktemp("donors"), texts()
    corpus = root / "corpus.txt"
    corpus.write_text("\n".join(lines[:150]) + "\n", "utf-8")

    @functools.cache
    def make(kind: str) -> tuple[Path, Path, Trimmed]:
        donor, out = root / kind, root / f"{kind}-cut"
        DONORS.get(kind, sentences)(donor, lines)
        # Texts that are not in the corpus are tried as well, so that the kept tokens have to be closed.
        return donor, out, trim(donor, out, corpus=corpus, min_count=2, pad_to_multiple_of=8)

    return make


def mapping(out: Path) -> dict[int, tuple[int | None, int, str]]:
    """Of each old id in the mapping file its new id, its count and its token."""
    with open(out / "vec2emb_trim.tsv", encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {
            int(row["old_id"]): (
                int(row["new_id"]) if row["new_id"] else None,
                int(row["count"]),
                json.loads(row["token"]),
            )
            for row in rows
        }


def tensors(folder: Path) -> dict[str, Any]:
    """All tensors of a folder, as raw 2-byte or 4-byte integers."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*.safetensors")):
        try:
            found |= load_file(path)
        except (KeyError, TypeError):  # numpy has no bfloat16
            from safetensors.torch import load_file as load_torch

            found |= {key: value.view(torch.int16).numpy() for key, value in load_torch(path).items()}
    return found


def loaded(folder: Path) -> Any:
    return transformers.AutoModel.from_pretrained(folder, dtype="auto").eval()


def hidden(kind: str, model: Any, ids: list[int]) -> Any:
    row = torch.tensor([ids[:500]])
    more = {"decoder_input_ids": row} if kind in SEQ2SEQ else {}
    with torch.no_grad():
        return model(input_ids=row, **more).last_hidden_state


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_kept_tokens_give_the_same_hidden_states(kind: str, made: Any, pytestconfig: pytest.Config) -> None:
    """Everyday on 20 texts, with --slow on 500."""
    donor, out, done = made(kind)
    wanted = 500 if pytestconfig.getoption("--slow") else 20
    # Few lines have kept tokens only; their parts do more often.
    words = [line.split(" ") for line in texts()]
    lengths = (2, 4, 8) if wanted == 500 else (4,)
    lines = [" ".join(line[at : at + n]) for n in lengths for line in words for at in range(0, len(line), n)]
    lines = list(dict.fromkeys(lines))[: 60 * wanted]
    new = {old: now for old, (now, _, _) in mapping(out).items() if now is not None}
    before, after, tried = loaded(donor), loaded(out), 0
    for old, now in zip(encodings(donor, lines), encodings(out, lines), strict=True):
        if not set(old) <= new.keys():
            continue
        assert [new[id] for id in old] == now
        assert torch.equal(hidden(kind, before, old), hidden(kind, after, now))
        tried += 1
        if tried == wanted:
            break
    assert tried == wanted
    assert done.proof.whole == done.proof.identical > 0


@pytest.mark.parametrize("kind", KINDS)
def test_texts_with_lost_tokens_still_encode(kind: str, made: Any) -> None:
    donor, out, done = made(kind)
    lines = [*texts()[:200], "💡 ünïcödé 𝔘 \u0000 漢字", ""]
    new = {old: now for old, (now, _, _) in mapping(out).items()}
    unknown = {now for now, _, token in mapping(out).values() if token == "<unk>"}
    lost = 0
    for old, now in zip(encodings(donor, lines), encodings(out, lines), strict=True):
        lost += any(new.get(id) is None for id in old)
        assert max(now, default=0) < done.tokens[1]
        if kind in ("roberta", "gpt2", "llama", "bart"):  # they have all bytes
            assert unknown.isdisjoint(now)
    assert lost > 20
    assert done.proof.unknown_before == done.proof.unknown_after


@pytest.mark.parametrize("kind", KINDS)
def test_rows_keep_their_bits_and_other_tensors_their_bytes(kind: str, made: Any) -> None:
    donor, out, done = made(kind)
    before, after, kept = tensors(donor), tensors(out), mapping(out)
    new = {old: now for old, (now, _, _) in kept.items() if now is not None}
    assert list(new.values()) == list(range(done.tokens[1]))  # in the order of the old ids
    rarest = max(new, key=lambda old: (-kept[old][1], old))
    rows = np.array([*new, *[rarest] * (done.rows[1] - len(new))])
    assert done.rows[1] % 8 == 0
    assert done.rows[1] - len(new) < 8
    axes = {tensor.key: tensor.axis for tensor in done.tensors}
    assert before.keys() == after.keys()
    assert axes
    for key, old in before.items():
        expected = old.take(rows, axis=axes[key]) if key in axes else old
        assert expected.dtype == after[key].dtype
        assert expected.tobytes() == after[key].tobytes()
        assert expected.shape == after[key].shape


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_says_the_new_ids(kind: str, made: Any) -> None:
    """transformers gives special tokens the same ids by its tokenizer and by its configuration as before, but new."""
    donor, out, done = made(kind)
    new = {old: now for old, (now, _, _) in mapping(out).items() if now is not None}
    [before, after] = [transformers.AutoTokenizer.from_pretrained(folder) for folder in (donor, out)]
    assert len(after) == done.tokens[1]
    assert before.all_special_tokens == after.all_special_tokens
    assert [new[id] for id in before.all_special_ids] == after.all_special_ids
    assert {id: str(token) for id, token in after.added_tokens_decoder.items()} == {
        new[id]: str(token) for id, token in before.added_tokens_decoder.items()
    }
    text = "a table of words"
    if set(before(text).input_ids) <= new.keys():
        assert [new[id] for id in before(text).input_ids] == after(text).input_ids
    [old, now] = [transformers.AutoConfig.from_pretrained(folder).to_dict() for folder in (donor, out)]
    assert now["vocab_size"] == done.rows[1]
    for name, id in old.items():
        if name.endswith("_token_id") and isinstance(id, int):
            assert now[name] == new[id], name


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "sentences"])
def test_files_of_slow_tokenizers_follow(kind: str, made: Any) -> None:
    """They make the same tokenizer as the tokenizer.json beside them."""
    from tokenizers import Tokenizer, models

    _, out, done = made(kind)
    content = json.loads((out / "tokenizer.json").read_text("utf-8"))
    names = {path.name for path in out.iterdir()}
    if kind == "bert":
        lines = (out / "vocab.txt").read_bytes().decode().split("\n")
        assert lines == [*sorted(content["model"]["vocab"], key=content["model"]["vocab"].__getitem__), ""]
    elif "vocab.json" in names:
        vocabulary, merges = models.BPE.read_file(str(out / "vocab.json"), str(out / "merges.txt"))
        assert vocabulary == content["model"]["vocab"]
        assert [list(pair) for pair in merges] == content["model"]["merges"]
    if kind == "xlm-roberta":
        assert "sentencepiece.bpe.model" not in names
        assert any(note.startswith("sentencepiece.bpe.model was left out") for note in done.notes)
    if "added_tokens.json" in names:
        tokenizer = Tokenizer.from_file(str(out / "tokenizer.json"))
        for token, id in json.loads((out / "added_tokens.json").read_text("utf-8")).items():
            assert tokenizer.token_to_id(token) == id


def test_sentence_transformers_loads_the_folder(made: Any) -> None:
    package = pytest.importorskip("sentence_transformers")
    donor, out, _ = made("sentences")
    new = {old: now for old, (now, _, _) in mapping(out).items() if now is not None}
    lines = [line for line, ids in zip(texts(), encodings(donor, texts()), strict=True) if set(ids) <= new.keys()][:20]
    before, after = (package.SentenceTransformer(str(folder), device="cpu") for folder in (donor, out))
    assert len(lines) > 5
    for line in lines:
        assert np.array_equal(before.encode(line), after.encode(line))


def test_shards_and_their_index(made: Any) -> None:
    donor, out, done = made("gpt2")
    old, new = (json.loads((folder / "model.safetensors.index.json").read_text()) for folder in (donor, out))
    assert old["weight_map"] == new["weight_map"]
    assert len(set(new["weight_map"].values())) > 1
    after = tensors(out)
    assert new["metadata"]["total_size"] == sum(value.nbytes for value in after.values()) == done.bytes[1]
    assert new["metadata"]["total_parameters"] == sum(value.size for value in after.values())


def test_the_license_the_card_and_the_donor(made: Any) -> None:
    import hashlib

    donor, out, done = made("bert")
    for name in ("README.md", "LICENSE"):
        assert (donor / name).read_bytes() == (out / name).read_bytes()
        assert name in done.copied
    record = json.loads((out / "vec2emb_trim.json").read_text("utf-8"))
    [origin] = record["donors"]
    assert origin["name"] == "bert"
    for name, identity in origin["files"].items():
        data = (donor / name).read_bytes()
        assert identity == {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert {"model.safetensors", "config.json", "tokenizer.json"} == origin["files"].keys()
    assert record["tokens"] == list(done.tokens)
    assert record["options"] == {"min_count": 2, "max_size": None, "pad_to_multiple_of": 8}
    assert str(donor.parent) not in json.dumps(record)
