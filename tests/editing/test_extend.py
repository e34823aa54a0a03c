"""A bundle that grows: old ids and rows stay, new rows are what their source or policy says, and they alone train."""

from __future__ import annotations

import errno
import inspect
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from helpers import FIXTURES, collected, manifest_of, run
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import load_file

import vec2emb
from vec2emb.bundle.ranges import Ranges
from vec2emb.cli.extend import extend as command
from vec2emb.errors import InputError, OutputError, UsageError, Vec2embError
from vec2emb.torch import PartlyFrozenEmbedding, load_embedding, load_text_embedding

GLOVE = FIXTURES / "glove.6B.50d.sample.txt"
LINES = GLOVE.read_bytes().split(b"\n")[:-1]
WORDS = [line.split(b" ", 1)[0].decode() for line in LINES]
NARROW = (np.ones((2, 3)), ["the", "of"])
FILE_ROWS = np.array([[float(v) for v in line.split(b" ")[1:]] for line in LINES]).astype(np.float32)


@pytest.fixture
def half(tmp_path: Path) -> Path:
    """A bundle of the first 100 rows of the sample."""
    vec2emb.convert(GLOVE, tmp_path / "half", limit=100)
    return tmp_path / "half"


def words(bundle: Path) -> list[str]:
    return (bundle / "vocab.txt").read_bytes().decode().split("\n")[:-1]


def config_of(bundle: Path) -> dict[str, Any]:
    config: dict[str, Any] = json.loads((bundle / "vec2emb.json").read_bytes())
    return config


def tensor(bundle: Path, key: str = "weight") -> NDArray[Any]:
    """The bits of a tensor."""
    with safe_open(bundle / "model.safetensors", "pt") as file:
        bits: NDArray[Any] = file.get_tensor(key).contiguous().view(torch.uint8).numpy()
    return bits


def extend(bundle: Path, output: Path, **options: Any) -> tuple[Any, list[str]]:
    done, warned = collected(lambda: vec2emb.extend(bundle, output, **options))
    return done, [warning.code for warning in warned]


def check(bundle: Path, **options: Any) -> None:
    assert vec2emb.verify(bundle, **options).ok, str(vec2emb.verify(bundle, **options))


# Rows.


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_old_rows_keep_their_bits_and_new_ones_come_from_the_source(tmp_path: Path, kernel: str, dtype: str) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    vec2emb.convert(GLOVE, old, limit=100, dtype=dtype)
    wanted = [WORDS[200], WORDS[3], "zyzzyva", WORDS[120]]
    done, warned = extend(old, new, vocab=wanted, source=GLOVE, missing="zeros")
    assert words(new) == [*words(old), WORDS[200], "zyzzyva", WORDS[120]]
    assert tensor(new)[:102].tobytes() == tensor(old).tobytes()
    kind = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}[dtype]
    expected = torch.tensor(np.stack([FILE_ROWS[200], np.zeros(50, np.float32), FILE_ROWS[120]])).to(kind)
    assert tensor(new)[102:].tobytes() == expected.view(torch.uint8).numpy().tobytes()
    assert (done.rows, done.first, done.added, done.present, done.from_source, done.missing) == (105, 102, 3, 1, 2, 1)
    assert (done.missing_init, done.first_missing, warned) == ("zeros", ["zyzzyva"], ["missing-words"])
    check(new)
    check(new, source=GLOVE)
    before, after = config_of(old), config_of(new)
    assert after["source"] == before["source"]
    assert after["replay"] == before["replay"]
    [step] = after["steps"]
    assert (step["kind"], step["source"]["name"], step["source"]["rows"]) == ("extend", GLOVE.name, 250)
    assert after["provenance"]["added"] == [{"step": 0, "rows": "102:105"}]
    assert after["provenance"]["generated"] == [{"init": "zeros", "seed": None, "rows": "103:104"}]
    again, _ = extend(old, tmp_path / "again", vocab=wanted, source=GLOVE, missing="zeros", threads=3)
    assert again.rows == 105
    for name in ("model.safetensors", "vocab.txt", "vec2emb.json"):
        assert (tmp_path / "again" / name).read_bytes() == (new / name).read_bytes()


def test_the_policies_are_fitted_to_the_rows_of_the_file(tmp_path: Path, half: Path) -> None:
    rows = FILE_ROWS[:100].astype(np.float64)
    mean, deviation = rows.mean(axis=0), rows.std(axis=0)
    extend(half, tmp_path / "mean", tokens=["x"], missing="mean")
    assert load_file(tmp_path / "mean" / "model.safetensors")["weight"][102].numpy().tobytes() == (
        mean.astype(np.float32).tobytes()
    )
    many = [f"w{i}" for i in range(2000)]
    for missing in ("normal", "uniform"):
        extend(half, tmp_path / missing, tokens=many, missing=missing, seed=3)
        drawn = load_file(tmp_path / missing / "model.safetensors")["weight"][102:].numpy().astype(np.float64)
        np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=6 * deviation.max() / np.sqrt(2000))
        np.testing.assert_allclose(drawn.std(axis=0), deviation, rtol=0.1)
        if missing == "uniform":
            assert (np.abs(drawn - mean) <= np.sqrt(3) * deviation * (1 + 1e-6)).all()
    # A random row depends on seed and word alone: as a conversion with the same words gives it.
    vec2emb.convert(GLOVE, tmp_path / "other", limit=100, seed=3, specials=["w7=normal"])
    same = vec2emb.load(tmp_path / "other")["w7"]
    assert same.tobytes() == vec2emb.load(tmp_path / "normal")["w7"].tobytes()


def test_rows_set_in_two_ways_are_told_apart(tmp_path: Path) -> None:
    """The first conversion, a first and a second extension each have a policy and a seed of their own."""
    collected(lambda: vec2emb.convert(GLOVE, tmp_path / "b", vocab=["the", "xa"], missing="uniform", seed=1))
    generated = [{"init": "uniform", "seed": 1, "rows": "3:4"}]
    assert config_of(tmp_path / "b")["provenance"]["generated"] == generated
    more = [
        (
            {"tokens": ["xb"], "specials": ["[A]", "[B]=token:the"], "missing": "uniform", "seed": 2},
            ("uniform", 2, "6:7"),
        ),
        ({"tokens": ["xc"], "specials": ["[C]=uniform"], "missing": "zeros", "seed": 3}, ("zeros", None, "8:9")),
        ({"specials": ["[D]"], "seed": 4}, None),
    ]
    for options, gained in more:
        extend(tmp_path / "b", tmp_path / "b", if_exists="replace", **options)
        generated += [dict(zip(("init", "seed", "rows"), gained, strict=True))] if gained else []
        assert config_of(tmp_path / "b")["provenance"]["generated"] == generated
    table = vec2emb.load(tmp_path / "b")
    spread, normal = "drawn evenly over the spread of the file's rows", "drawn from the normal distribution"
    assert {word: table.explain(word).text for word in table.vocab.tokens[3:]} == {
        "xa": f"not in the file; {spread}, seed 1",
        "[A]": f"a special token, added; {normal} of the file's rows, seed 2",
        "[B]": "a special token, added; the row of 'the'",
        "xb": f"added; {spread}, seed 2",
        "[C]": f"a special token, added; {spread}, seed 3",
        "xc": "added; zeros",
        "[D]": f"a special token, added; {normal} of the file's rows, seed 4",
    }
    check(tmp_path / "b", source=GLOVE)


def test_twice_and_in_place(tmp_path: Path, half: Path) -> None:
    extend(half, half, tokens=["covid", "brexit"], missing="normal", if_exists="replace")
    first = tensor(half)
    done, _ = extend(half, half, tokens=["zyzzyva"], missing="zeros", if_exists="replace")
    assert words(half)[102:] == ["covid", "brexit", "zyzzyva"]
    assert tensor(half)[:104].tobytes() == first.tobytes()
    config = config_of(half)
    assert [step["rows"] for step in config["provenance"]["added"]] == ["102:104", "104:105"]
    assert [one["rows"] for one in config["provenance"]["generated"]] == ["102:104", "104:105"]
    assert (config["train"], config["train_rows"], done.training_rows) == ("rows", "104:105", 1)
    table = vec2emb.load(half)
    assert table.explain("covid").text == "added; drawn from the normal distribution of the file's rows, seed 0"
    assert table.explain("zyzzyva").text == "added; zeros"
    check(half)


def test_words_that_are_there_keep_their_rows(tmp_path: Path, half: Path) -> None:
    done, warned = extend(half, tmp_path / "new", tokens=["the", "of"], missing="zeros")
    assert (done.added, done.present, warned) == (0, 2, ["nothing-new"])
    for name in ("model.safetensors", "vocab.txt"):
        assert (tmp_path / "new" / name).read_bytes() == (half / name).read_bytes()
    with pytest.raises(InputError, match="the bundle has all of the words already; nothing was added"):
        vec2emb.extend(half, tmp_path / "strict", tokens=["the"], missing="zeros", strict=True)
    assert not (tmp_path / "strict").exists()


def test_a_vocabulary_of_a_tokenizer(tmp_path: Path, half: Path) -> None:
    vec2emb.convert(GLOVE, tmp_path / "all")
    vec2emb.export(tmp_path / "all", "huggingface", tmp_path / "hf")
    done, warned = extend(half, tmp_path / "new", vocab=tmp_path / "hf" / "tokenizer.json", source=GLOVE)
    assert (done.added, done.present, warned) == (150, 102, [])
    assert words(tmp_path / "new") == words(tmp_path / "all")
    assert tensor(tmp_path / "new")[2:].tobytes() == tensor(tmp_path / "all")[2:].tobytes()


def test_positions_scale_and_names_stay(tmp_path: Path) -> None:
    old, new = tmp_path / "old.safetensors", tmp_path / "new"
    vec2emb.convert(
        GLOVE, old, limit=50, dtype="float16", positions="learned", max_positions=8, scale="match-positions",
        key_style="bert", specials_at="end",
    )  # fmt: skip
    extend(old, new, tokens=["x"], missing="zeros")
    key, positions = "embeddings.word_embeddings.weight", "embeddings.position_embeddings.weight"
    with safe_open(old, "np") as a, safe_open(new / "model.safetensors", "np") as b:
        assert set(a.keys()) == set(b.keys()) == {key, positions}
        assert a.get_tensor(positions).tobytes() == b.get_tensor(positions).tobytes()
        assert a.get_tensor(key).tobytes() == b.get_tensor(key)[:52].tobytes()
    before = json.loads((tmp_path / "old.vec2emb.json").read_bytes())
    after = config_of(new)
    for name in ("positions", "scale", "key", "key_style", "padding_idx", "unk_idx", "specials", "lookup", "dtype"):
        assert after[name] == before[name]
    assert load_text_embedding(new)(torch.tensor([[52, 0]])).shape == (1, 2, 50)
    vec2emb.attach_positions(new, "sinusoidal", 4)
    assert config_of(new)["steps"][:1] == after["steps"]
    assert config_of(new)["provenance"] == after["provenance"]
    check(new)


# Special tokens.


def test_special_tokens(tmp_path: Path, half: Path) -> None:
    done, _ = extend(
        half, tmp_path / "new", specials=["[MASK]=mean", "[CLS]=token:of", "[SEP]"], tokens=["x"], missing="zeros"
    )
    new = tmp_path / "new"
    assert words(new)[102:] == ["[MASK]", "[CLS]", "[SEP]", "x"]
    table = vec2emb.load(new)
    assert table["[CLS]"].tobytes() == table["of"].tobytes()
    assert table["[MASK]"].tobytes() == FILE_ROWS[:100].mean(axis=0, dtype=np.float64).astype(np.float32).tobytes()
    assert [(s["token"], s["id"], s["role"], s["init"]) for s in config_of(new)["specials"]][2:] == [
        ("[MASK]", 102, "special", "mean"), ("[CLS]", 103, "special", "token:of"), ("[SEP]", 104, "special", "normal"),
    ]  # fmt: skip
    assert done.specials == manifest_of(new).specials[2:]
    assert config_of(new)["all_lowercase"]  # of special tokens the case does not matter
    check(new, source=GLOVE)
    with pytest.raises(InputError, match="is to be that of a word that the bundle does not have"):
        vec2emb.extend(half, tmp_path / "no", specials=["y=token:zyzzyva"])
    extend(half, tmp_path / "capital", tokens=["X"], missing="zeros")
    assert not config_of(tmp_path / "capital")["all_lowercase"]


def test_unknown_and_padding_for_a_bundle_without(tmp_path: Path) -> None:
    from tokenizers import Tokenizer

    old, new = tmp_path / "old", tmp_path / "new"
    vec2emb.convert(GLOVE, old, limit=20, pad=None, unk=None)
    extend(old, new, pad="<pad>", unk="<unk>")
    assert words(new) == [*WORDS[:20], "<pad>", "<unk>"]
    vocab = vec2emb.load(new).vocab
    assert (vocab.padding_idx, vocab.unk_idx, vocab["zyzzyva"]) == (20, 21, 21)
    rows = load_file(new / "model.safetensors")["weight"].numpy()
    assert not rows[20].any()
    assert rows[21].tobytes() == FILE_ROWS[:20].mean(axis=0, dtype=np.float64).astype(np.float32).tobytes()
    assert config_of(new)["train_rows"] == "21:22"  # padding never trains
    check(new)
    vec2emb.export(new, "huggingface", tmp_path / "hf")
    tokenizer = Tokenizer.from_file(str(tmp_path / "hf" / "tokenizer.json"))
    assert tokenizer.encode("The zyzzyva").ids == [0, 21]
    with pytest.raises(UsageError, match="the bundle has its unknown token: found '<unk>'"):
        vec2emb.extend(new, tmp_path / "no", unk="[UNK]")
    with pytest.raises(UsageError, match="would be a word that has a row already: found 'the', row 0"):
        vec2emb.extend(old, tmp_path / "no", unk="the")


# Training.


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_only_the_new_rows_train(tmp_path: Path, dtype: str) -> None:
    """Under AdamW with weight decay, which shrinks every parameter, whatever its gradient."""
    vec2emb.convert(GLOVE, tmp_path / "old", limit=100, dtype=dtype)
    extend(tmp_path / "old", tmp_path / "new", tokens=["covid", "brexit"], missing="normal")
    module = load_embedding(tmp_path / "new")
    assert isinstance(module, PartlyFrozenEmbedding)
    assert module.rows.tolist() == [102, 103]
    before = module.weight.clone()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.1, weight_decay=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        module(torch.arange(104)).square().sum().backward()
        optimizer.step()
    after = module.weight
    assert torch.equal(before[:102].view(torch.uint8), after[:102].view(torch.uint8))
    assert (before[102:] != after[102:]).all(dim=1).all()


@pytest.mark.parametrize(
    ("recorded", "asked", "train", "ranges"),
    [
        ("all", "added", "rows", "102:104"),
        ("none", "added", "rows", "102:104"),
        ("all", "keep", "all", None),
        ("none", "keep", "none", None),
        ("new", "keep", "new", "1:2 102:104"),
        (["the", "of"], "keep", "rows", "2:3 5:6"),
        ("none", "new", "new", "1:2 102:104"),
        ("none", "all", "all", None),
        ("all", ["x", "of"], "rows", "5:6 102:103"),
        ("all", [0, 103], "rows", "103:104"),
        ("all", "frozen", "none", None),
    ],
)
def test_plans_of_training(tmp_path: Path, recorded: Any, asked: Any, train: str, ranges: Any) -> None:
    before: dict[str, Any] = {"freeze": True} if recorded == "none" else {"train_rows": recorded}
    vec2emb.convert(GLOVE, tmp_path / "old", limit=100, **before)
    plan: dict[str, Any] = {"freeze": True} if asked == "frozen" else {"train_rows": asked}
    done, _ = extend(tmp_path / "old", tmp_path / "new", tokens=["x", "y"], missing="zeros", **plan)
    config = config_of(tmp_path / "new")
    assert (config["train"], config["train_rows"], done.train) == (train, ranges, train)
    expected = {"all": 103, "none": 0}.get(train, len(Ranges.read(ranges or "", "", "")))
    assert done.training_rows == expected
    load_embedding(tmp_path / "new")


# Sources.


def test_vectors_of_another_space_are_noticed(tmp_path: Path, half: Path) -> None:
    lines = [f"{word} {' '.join(map(str, row))}" for word, row in zip(WORDS, FILE_ROWS[::-1].tolist(), strict=True)]
    (tmp_path / "other.txt").write_text("\n".join([*lines, ""]), "utf-8")
    done, warned = extend(half, tmp_path / "new", tokens=[WORDS[150]], source=tmp_path / "other.txt")
    assert warned == ["other-vectors"]
    assert str(done.warnings[0]) == (
        f"{tmp_path / 'other.txt'}: of 100 words of the bundle that were met there, 100 have other vectors; vectors of "
        "different files do not go together"
    )
    with pytest.raises(InputError, match="--strict makes such a warning an error"):
        vec2emb.extend(half, tmp_path / "no", tokens=[WORDS[150]], source=tmp_path / "other.txt", strict=True)


def test_the_source_is_treated_as_the_bundles_was(tmp_path: Path) -> None:
    vec2emb.convert(GLOVE, tmp_path / "old", limit=100, unit_norm=True)
    done, warned = extend(tmp_path / "old", tmp_path / "new", tokens=[WORDS[150]], source=GLOVE)
    assert warned == []
    row = load_file(tmp_path / "new" / "model.safetensors")["weight"][102].numpy()
    np.testing.assert_allclose(row, FILE_ROWS[150] / np.linalg.norm(FILE_ROWS[150].astype(np.float64)), rtol=1e-6)
    assert done.source.name == GLOVE.name
    (tmp_path / "v.txt").write_text("Paris 1 2\nparis 3 4\nBerlin 5 6\n")
    collected(lambda: vec2emb.convert(tmp_path / "v.txt", tmp_path / "low", only=["paris"], lowercase=True))
    extend(tmp_path / "low", tmp_path / "lower", tokens=["berlin"], source=tmp_path / "v.txt")
    assert vec2emb.load(tmp_path / "lower")["Berlin"].tolist() == [5, 6]
    with pytest.raises(InputError, match="the bundle's tokens were lower-cased, but 1 of the words are not"):
        vec2emb.extend(tmp_path / "low", tmp_path / "no", tokens=["Rome"], missing="zeros")


def test_a_source_of_another_width(tmp_path: Path, half: Path) -> None:
    (tmp_path / "v.txt").write_text("a 1 2\nb 3 4\n")
    with pytest.raises(
        InputError, match="rows of another width than the bundle: expected 50 values, found 2"
    ) as caught:
        vec2emb.extend(half, tmp_path / "no", tokens=["zyzzyva"], source=tmp_path / "v.txt")
    assert caught.value.code == "other-dim"


def test_missing_words_can_be_an_error(tmp_path: Path, half: Path) -> None:
    with pytest.raises(InputError, match="the source lacks 1 of the new words: found 'zyzzyva'; --missing normal"):
        vec2emb.extend(half, tmp_path / "no", tokens=["zyzzyva", WORDS[150]], source=GLOVE, missing="error")


def test_values_that_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_text("a 1 2\nb 3 4\nbig 1e6 1\n")
    vec2emb.convert(tmp_path / "v.txt", tmp_path / "old", limit=2, dtype="float16")
    with pytest.raises(InputError, match="1e6") as caught:
        vec2emb.extend(tmp_path / "old", tmp_path / "no", tokens=["big"], source=tmp_path / "v.txt")
    assert caught.value.code == "out-of-range"


# Refusals.


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({}, "nothing-to-add"),
        ({"tokens": ["x"]}, "rows-from-where"),
        ({"tokens": ["x"], "vocab": ["y"], "missing": "zeros"}, "two-word-lists"),
        ({"tokens": ["x"], "missing": "nothing"}, "missing-policy"),
        ({"tokens": ["x"], "missing": "subword"}, "missing-policy"),
        ({"tokens": ["x"], "missing": "subword", "source": GLOVE}, "missing-policy"),
        ({"specials": ["[MASK]"], "source": GLOVE}, "source-without-words"),
        ({"unk": "[UNK]", "source": "typo.txt"}, "source-without-words"),
        ({"tokens": ["the"], "source": "typo.txt"}, "not-found"),
        ({"tokens": ["the"], "specials": ["[MASK]"], "source": "typo.txt"}, "not-found"),
        ({"tokens": ["the"], "source": NARROW}, "other-dim"),
        ({"tokens": ["x"], "missing": "zeros", "seed": 0.5}, "seed-range"),
        ({"tokens": ["x"], "missing": "zeros", "train_rows": [999]}, "train-rows"),
        ({"tokens": ["x", "x"], "missing": "zeros"}, "duplicate-token"),
        ({"tokens": ["a\nb"], "missing": "zeros"}, "line-feed"),
        ({"tokens": ["x"], "missing": "zeros", "output": "half"}, "target-exists"),
    ],
)
def test_refusals(tmp_path: Path, half: Path, arguments: dict[str, Any], code: str) -> None:
    arguments = {"output": "no", **arguments}
    output = tmp_path / arguments.pop("output")
    with pytest.raises(Vec2embError) as caught:
        vec2emb.extend(half, output, **arguments)
    assert caught.value.code == code
    assert sorted(path.name for path in tmp_path.iterdir()) == ["half"]


def test_damage_is_not_carried_on(tmp_path: Path, half: Path) -> None:
    data = bytearray((half / "model.safetensors").read_bytes())
    data[-1] ^= 1
    (half / "model.safetensors").write_bytes(data)
    with pytest.raises(InputError, match="the tensors are not those that were written"):
        vec2emb.extend(half, tmp_path / "no", tokens=["x"], missing="zeros")
    with pytest.raises(InputError, match="there is no such bundle"):
        vec2emb.extend(tmp_path / "none", tmp_path / "no", tokens=["x"], missing="zeros")
    assert not (tmp_path / "no").exists()


def test_a_rebuild_says_what_it_needs(tmp_path: Path, half: Path) -> None:
    extend(half, tmp_path / "new", tokens=[WORDS[150]], source=GLOVE)
    with pytest.raises(UsageError) as caught:
        vec2emb.verify(tmp_path / "new", rebuild=GLOVE)
    assert str(caught.value) == (
        f"{tmp_path / 'new'}: rows were added since the bundle was converted: found 1 extension, from "
        f"'{GLOVE.name}'; rebuild the bundle that was extended; --source compares the rows that it had"
    )
    found = vec2emb.verify(tmp_path / "new", source=GLOVE)
    assert "1 rows were added since by vec2emb extend, and not compared" in found.notes


def test_keep(tmp_path: Path, half: Path) -> None:
    options: dict[str, Any] = {"tokens": ["x"], "missing": "zeros", "if_exists": "keep"}
    assert not extend(half, tmp_path / "new", **options)[0].kept_existing
    assert extend(half, tmp_path / "new", **options)[0].kept_existing
    with pytest.raises(OutputError, match="is not the one this conversion gives"):
        vec2emb.extend(half, tmp_path / "new", **{**options, "tokens": ["y"]})


def test_saved_and_trained_bundles_grow(tmp_path: Path) -> None:
    vec2emb.save(
        tmp_path / "old", ["<pad>", "a", "b"], np.eye(3, dtype=np.float32) * [[0], [1], [2]], pad_token="<pad>"
    )
    extend(tmp_path / "old", tmp_path / "new", tokens=["c"], missing="mean")
    rows = load_file(tmp_path / "new" / "model.safetensors")["weight"].numpy()
    assert rows.tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 2], [0, 0.5, 1]]
    vec2emb.torch.save_embedding(load_embedding(tmp_path / "new"), tmp_path / "trained")
    extend(tmp_path / "trained", tmp_path / "more", tokens=["d"], missing="zeros")
    assert words(tmp_path / "more") == ["<pad>", "a", "b", "c", "d"]
    assert [rows.text for _, rows in manifest_of(tmp_path / "more").provenance.added] == ["3:4", "4:5"]
    assert tensor(tmp_path / "more")[:4].tobytes() == tensor(tmp_path / "trained").tobytes()
    check(tmp_path / "more")


def test_what_is_there_is_counted_once(tmp_path: Path, half: Path) -> None:
    arguments: list[tuple[dict[str, Any], int, int]] = [
        ({"specials": ["[MASK]"], "tokens": ["[MASK]", "x"]}, 2, 0),
        ({"specials": ["the"], "tokens": ["the", "of", "x"]}, 1, 2),
        ({"specials": ["[MASK]", "of"], "tokens": ["the"]}, 1, 2),
    ]
    for number, (options, added, present) in enumerate(arguments):
        done, _ = extend(half, tmp_path / str(number), missing="zeros", **options)
        assert (done.added, done.present) == (added, present)


def test_a_source_that_no_word_needs_is_opened_and_not_recorded(tmp_path: Path, half: Path) -> None:
    done, warned = extend(half, tmp_path / "new", tokens=["the"], specials=["[MASK]"], source=GLOVE)
    assert (done.added, done.present, done.source, warned) == (1, 1, None, [])
    assert config_of(tmp_path / "new")["steps"][0]["source"] is None


def test_an_error_of_writing_names_the_output(tmp_path: Path, half: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OutputError) as caught:
        vec2emb.extend(half, tmp_path / "new", tokens=[WORDS[150]], source=GLOVE)
    assert (caught.value.code, caught.value.path) == ("disk-full", str(tmp_path / "new"))


# The command.


def test_the_command_has_every_argument() -> None:
    """What an error tells to give, the command takes."""
    options = {parameter.name for parameter in command.params}
    assert options - {"with_json", "quiet", "help"} == inspect.signature(vec2emb.extend).parameters.keys() - {
        "progress"
    }


def test_the_command_reads_other_encodings(tmp_path: Path, half: Path) -> None:
    line = "caf\u00e9 " + " ".join(["0.5"] * 50) + "\n"
    (tmp_path / "v.txt").write_bytes(line.encode("latin-1"))
    words = ("extend", half, "--tokens", "caf\u00e9", "--from", tmp_path / "v.txt", "-o", tmp_path / "new", "--quiet")
    done = run(*words, "--encoding", "latin-1")
    assert (done.returncode, done.stderr) == (0, b"")
    assert vec2emb.load(tmp_path / "new")["caf\u00e9"].tolist() == [0.5] * 50


def test_the_command(tmp_path: Path, half: Path) -> None:
    out = tmp_path / "new"
    done = run(
        "extend", half, "--tokens", f"the,{WORDS[150]},zyzzyva", "--from", GLOVE, "--special", "[MASK]", "-o", out
    )
    assert done.returncode == 0
    assert done.stderr.decode() == (
        f"warning[missing-words]: {GLOVE}: 1 word of the vocabulary not in the file: 'zyzzyva'\n"
    )
    assert done.stdout.decode().splitlines() == [
        f"{out}: 105 rows x 50, 3 of them new, from row 102 on",
        "  row 102: [MASK] (special, normal)",
        f"  1 from {GLOVE.name}",
        "  1 set by normal",
        "  1 of the words were there already and keep their rows",
        "  trains: 3 rows; recorded, not part of a state dict",
    ]
    (tmp_path / "w.txt").write_text("x\ny\n")
    told = run("extend", half, "--vocab", tmp_path / "w.txt", "--missing", "zeros", "-o", tmp_path / "j", "--json")
    assert json.loads(told.stdout)["added"] == 2
    refused = run("extend", half, "--tokens", "x", "-o", tmp_path / "no")
    assert (refused.returncode, refused.stderr[:22]) == (2, b"error[rows-from-where]")
    refused = run("extend", half, "--tokens", "x,,y", "--missing", "zeros", "-o", tmp_path / "no")
    assert refused.stderr.startswith(
        b"error[tokens-form]: a word between commas is empty: found 'x,,y'; words with commas"
    )
