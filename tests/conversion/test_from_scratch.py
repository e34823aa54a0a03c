"""Tables without a source: rows are compared with `nn.Embedding`'s statistics and with rows worked out by hand."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import collected
from numpy.random import Philox
from numpy.typing import NDArray

import vec2emb
from vec2emb.cli import run
from vec2emb.errors import UsageError

WORDS = ["the", "of", "and"]


def even(seed: int, token: str, count: int) -> NDArray[np.float64]:
    """Numbers from [0, 1) for a token, from the definition of the generator."""
    key = hashlib.sha256(f"{seed}\0{token}".encode()).digest()[:16]
    return (Philox(key=int.from_bytes(key, "little")).random_raw(count) >> 11) / 2.0**53


def by_hand(init: str, seed: int, token: str, dim: int) -> NDArray[np.float32]:
    """A row with mean 0 and standard deviation 1: of the method of Box and Muller, or evenly drawn."""
    if init == "uniform":
        return np.array([math.sqrt(3) * (2 * u - 1) for u in even(seed, token, dim)], np.float32)
    drawn: list[float] = []
    u = even(seed, token, dim + dim % 2).tolist()
    for one, other in zip(u[::2], u[1::2], strict=True):
        radius = math.sqrt(-2 * math.log(1 - one))
        drawn += [radius * math.cos(2 * math.pi * other), radius * math.sin(2 * math.pi * other)]
    return np.array(drawn[:dim], np.float32)


@pytest.mark.parametrize("init", ["normal", "uniform"])
def test_rows_depend_on_seed_and_token_alone(kernel: str, init: str, tmp_path: Path) -> None:
    target = tmp_path / "bundle"
    report, found = collected(
        lambda: vec2emb.convert(None, target, from_scratch=5, vocab=WORDS, missing=init, seed=7, strict=True)
    )
    table = vec2emb.load(target)
    assert not found
    assert table.vocab.to_list() == ["<pad>", "<unk>", *WORDS]
    assert not table.vectors[0].any()
    for token in ("<unk>", *WORDS):
        np.testing.assert_allclose(table[token], by_hand(init, 7, token, 5), rtol=1e-6)
    assert [(special.token, special.init) for special in report.specials] == [
        ("<pad>", "zeros"), ("<unk>", f"standard-{init}"),
    ]  # fmt: skip
    (generated,) = report.manifest.provenance.generated
    assert (generated.init, generated.seed, list(generated.rows.rows())) == (f"standard-{init}", 7, [2, 3, 4])
    assert report.manifest.source is None


def test_rows_are_those_of_missing_normal_scaled(kernel: str, tmp_path: Path) -> None:
    """A file whose columns have known mean and deviation: its missing word's row, standardized, is the row here."""
    file = tmp_path / "vectors.txt"
    file.write_text("a 1 10\nb 3 30\n")  # mean (2, 20), deviation (1, 10)
    collected(lambda: vec2emb.convert(file, tmp_path / "fitted", vocab=["a", "b", "zebra"], seed=3))
    vec2emb.convert(None, tmp_path / "scratch", from_scratch=2, vocab=["zebra"], seed=3)
    fitted = vec2emb.load(tmp_path / "fitted")["zebra"]
    scratch = vec2emb.load(tmp_path / "scratch")["zebra"]
    np.testing.assert_allclose(scratch, (fitted - [2, 20]) / [1, 10], atol=1e-6)


@pytest.mark.parametrize("init", ["normal", "uniform"])
def test_statistics_are_those_of_nn_embedding(init: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    words = [f"w{number}" for number in range(2000)]
    vec2emb.convert(output=tmp_path / "bundle", from_scratch=50, vocab=words, missing=init, unk=None, pad=None)
    torch.manual_seed(0)
    rows, oracle = vec2emb.load(tmp_path / "bundle").vectors, torch.nn.Embedding(2000, 50).weight.detach().numpy()
    assert rows.shape == oracle.shape
    assert abs(rows.mean() - oracle.mean()) < 0.02
    assert abs(rows.std() - oracle.std()) < 0.02
    assert np.abs(rows.mean(axis=0)).max() < 0.12  # 5 deviations of a mean of 2,000


def test_zeros_and_the_words_of_a_corpus(kernel: str, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be to\n")
    vec2emb.convert(None, tmp_path / "bundle", from_scratch=3, corpus=text, min_count=2, missing="zeros")
    table = vec2emb.load(tmp_path / "bundle")
    assert table.vocab.to_list() == ["<pad>", "<unk>", "to", "be"]
    assert not table.vectors.any()
    assert vec2emb.verify(tmp_path / "bundle", rebuild=True).ok


def test_every_function_tells_the_truth(kernel: str, tmp_path: Path) -> None:
    target = tmp_path / "bundle"
    vec2emb.convert(
        None, target, from_scratch=4, vocab=WORDS, train_rows="new", positions="learned", max_positions=6,
        scale="match-positions", specials=["[SEP]=uniform", "[CLS]"], dtype="float16",
    )  # fmt: skip
    explained = vec2emb.load(target).explain("of")
    assert (explained.origin, explained.text) == ("initialised", "drawn from N(0, 1), seed 0")
    assert vec2emb.load(target).explain("<unk>").text == "the unknown token; drawn from N(0, 1), seed 0"
    assert vec2emb.inspect(target).ok
    assert vec2emb.verify(target).ok
    rebuilt = vec2emb.verify(target, rebuild=True)
    assert rebuilt.ok
    assert rebuilt.identical_digest is not None
    copied, _ = collected(lambda: vec2emb.convert(target, tmp_path / "copy"))
    (generated,) = copied.manifest.provenance.generated
    assert (generated.init, generated.seed) == ("standard-normal", 0)
    assert vec2emb.load(tmp_path / "copy").explain("of").text == "drawn from N(0, 1), seed 0"
    torch = pytest.importorskip("torch")
    from vec2emb.torch import load_embedding

    vec2emb.convert(None, tmp_path / "plain", from_scratch=4, vocab=WORDS, train_rows="new")
    embedding = load_embedding(tmp_path / "plain")
    embedding(torch.arange(5)).sum().backward()
    assert sum(parameter.numel() for parameter in embedding.parameters() if parameter.requires_grad) >= 4 * 4


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"source": "vectors.txt", "vocab": WORDS}, "from-scratch-source"),
        ({}, "from-scratch-words"),
        ({"only": WORDS}, "from-scratch-words"),
        ({"vocab": WORDS, "missing": "mean"}, "from-scratch-init"),
        ({"vocab": WORDS, "missing": "subword"}, "from-scratch-init"),
        ({"vocab": WORDS, "missing": "error"}, "from-scratch-init"),
        ({"vocab": WORDS, "unk_init": "mean"}, "from-scratch-init"),
        ({"vocab": WORDS, "specials": [("[CLS]", "token:the")]}, "from-scratch-init"),
        ({"vocab": WORDS, "dim": 4}, "from-scratch-option"),
        ({"vocab": WORDS, "limit": 4}, "from-scratch-option"),
        ({"vocab": WORDS, "case_fallback": True}, "from-scratch-option"),
        ({"vocab": WORDS, "license": "MIT"}, "from-scratch-option"),
        ({"vocab": WORDS, "from_scratch": 0}, "dim-range"),
        ({"vocab": WORDS, "from_scratch": None}, "source-missing"),
    ],
)
def test_what_has_no_meaning_is_refused(options: dict[str, Any], code: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        vec2emb.convert(output=tmp_path / "bundle", **{"from_scratch": 4, **options})
    assert caught.value.code == code
    assert not (tmp_path / "bundle").exists()


def test_a_source_to_verify_against(tmp_path: Path) -> None:
    file = tmp_path / "vectors.txt"
    file.write_text("the 1 2\n")
    vec2emb.convert(None, tmp_path / "bundle", from_scratch=2, vocab=WORDS)
    collected(lambda: vec2emb.convert(file, tmp_path / "of-file"))
    for bundle, options, code in (
        ("bundle", {"source": file}, "from-scratch-source"),
        ("bundle", {"rebuild": file}, "rebuild-source"),
        ("of-file", {"rebuild": True}, "rebuild-source"),
    ):
        with pytest.raises(UsageError) as caught:
            vec2emb.verify(tmp_path / bundle, **options)
        assert caught.value.code == code


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words, target = tmp_path / "words.txt", str(tmp_path / "bundle")
    words.write_text("the\nof\n")
    assert run(["convert", "--from-scratch", "3", "--vocab", str(words), "-o", target, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["rows"], report["dim"], report["format"], report["warnings"]) == (4, 3, "from-scratch", [])
    assert run(["verify", target, "--rebuild"]) == 0
    assert "identical" in capsys.readouterr().out
