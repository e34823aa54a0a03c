"""`vec2emb positions`, and what `convert` has for positions and training, as people type it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FIXTURES, run
from safetensors.numpy import load_file, save_file

import vec2emb
from vec2emb import positions
from vec2emb.bundle.publication import CONFIG, MODEL

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"
CASES = FIXTURES / "cases"


def ok(*words: object) -> str:
    done = run(*words)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def as_json(*words: object) -> dict[str, Any]:
    return json.loads(ok(*words, "--json"))  # type: ignore[no-any-return]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    vec2emb.convert(SAMPLE, tmp_path / "glove")
    return tmp_path / "glove"


def test_convert_with_positions_says_how_long_both_are(tmp_path: Path) -> None:
    out = ok(
        "convert", SAMPLE, "-o", tmp_path / "a", "--positions", "sinusoidal", "--max-positions", 64,
        "--position-preset", "marian", "--train-positions", "--scale", "match-positions", "--train-rows", "new",
        "--key-style", "bert", "--tied-head", "head.weight",
    )  # fmt: skip
    assert "  64 sinusoidal positions, they train, words times 0.9408 (match-positions)\n" in out
    assert "  length of words 5.315, of positions 5; scaled words : positions = 1\n" in out
    assert "  trains: the new ones, 1 in all; recorded, not part of a state dict\n" in out
    assert out.endswith(
        "import vec2emb\nfrom vec2emb.torch import load_text_embedding\n"
        f"embedding = load_text_embedding('{tmp_path}/a')\nvocab = vec2emb.load('{tmp_path}/a').vocab\n"
    )
    config = json.loads((tmp_path / "a" / CONFIG).read_bytes())
    assert (config["positions"]["trains"], config["tied_head"]) == (True, "head.weight")
    state = load_file(tmp_path / "a" / MODEL)
    np.testing.assert_array_equal(
        state["embeddings.position_embeddings.weight"], positions.sinusoidal(64, 50, preset="marian")
    )
    exec(compile(out[out.index("import vec2emb") :], "summary", "exec"), {})


def test_convert_says_what_drowns_and_how_to_train(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("the\nof\n")
    done = run(
        "convert", SAMPLE, "-o", tmp_path / "a", "--positions", "learned", "--max-positions", 8, "--freeze-positions",
        "--train-rows", words,
    )  # fmt: skip
    assert done.returncode == 0
    assert b"8 learned positions, they are fixed" in done.stdout
    assert b"trains: those of the list, 2 in all" in done.stdout
    assert b"warning[scale-mismatch]: " in done.stderr
    report = as_json("convert", SAMPLE, "-o", tmp_path / "b", "--word-key", "a.weight", "--scale", "2")
    assert (report["keys"], report["scale"]) == (["a.weight"], {"kind": "factor", "factor": 2.0})
    done = run("convert", SAMPLE, "-o", tmp_path / "c", "--max-positions", 8)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error[positions-missing]: max_positions is for a position table; add --positions\n")


def test_attach(bundle: Path) -> None:
    out = ok(
        "positions", "attach", bundle, "--kind", "sinusoidal", "--max-positions", 20, "--layout", "cos-sin",
        "--base", 50, "--frequencies", "t2t", "--start", 1, "--offset", 3, "--padding", 2,
    )  # fmt: skip
    assert out.startswith(f"{bundle}: word_embeddings.weight, position_embeddings.weight\n")
    assert "20 sinusoidal positions from row 3 on, they are fixed" in out
    np.testing.assert_array_equal(
        vec2emb.load(bundle).positions,
        positions.sinusoidal(20, 50, layout="cos-sin", base=50, frequencies="t2t", start=1, offset=3, padding_idx=2),
    )
    done = as_json(
        "positions", "attach", bundle, "--kind", "learned", "--max-positions", 8, "--init", "trunc-normal",
        "--std", 2, "--seed", 9, "--key-style", "gpt2", "--freeze-positions", "--scale", "sqrt-dim",
    )  # fmt: skip
    assert done["keys"] == ["wte.weight", "wpe.weight"]
    assert (done["positions"]["trains"], done["scale"]["kind"], done["warnings"]) == (False, "sqrt-dim", [])
    np.testing.assert_array_equal(
        vec2emb.load(bundle).positions, positions.learned(8, 50, init="trunc-normal", std=2, seed=9)
    )
    assert ok("positions", "attach", bundle, "--kind", "sinusoidal", "--max-positions", 3, "--quiet") == ""
    assert run("positions", "attach", bundle, "--kind", "sinusoidal").returncode == 2
    done_wrong = run("positions", "attach", bundle.parent, "--kind", "learned", "--max-positions", 3)
    assert done_wrong.returncode == 1
    assert b"error[not-a-bundle]" in done_wrong.stderr


def test_resize_a_bundle(bundle: Path, tmp_path: Path) -> None:
    vec2emb.attach_positions(bundle, "learned", 8, std=1)
    before = vec2emb.load(bundle).positions
    assert before is not None
    out = ok(
        "positions", "resize", bundle, "--to", 13, "--method", "hierarchical", "--alpha", 0.3, "-o", tmp_path / "b"
    )
    assert "13 learned positions, they train" in out
    expected = positions.resize(before, 13, method="hierarchical", alpha=0.3)
    np.testing.assert_array_equal(vec2emb.load(tmp_path / "b").positions, expected)
    again = run("positions", "resize", bundle, "--to", 13, "--method", "tile", "-o", tmp_path / "b")
    assert (again.returncode, again.stderr.startswith(b"error[target-exists]")) == (1, True)
    ok("positions", "resize", bundle, "--to", 13, "--method", "tile", "-o", bundle, "--if-exists", "replace")
    np.testing.assert_array_equal(vec2emb.load(bundle).positions, positions.resize(before, 13, method="tile"))


def test_resize_a_checkpoint(tmp_path: Path) -> None:
    """Public cases: a BERT with its buffer of position_ids, and a RoBERTa, whose first position is row 2."""
    out = ok(
        "positions", "resize", CASES / "P01a" / "bert-positions.safetensors", "--to", 6, "--method", "repeat-last",
        "-o", tmp_path / "bert.safetensors",
    )  # fmt: skip
    assert "4 positions to 6" in out
    assert "note: embeddings.position_ids was left out: models make it themselves" in out
    done = as_json(
        "positions", "resize", CASES / "P03a" / "roberta-positions.safetensors", "--to", 8, "--method", "tile",
        "--offset", 2, "-o", tmp_path / "roberta.safetensors",
    )  # fmt: skip
    (table,) = done["tables"]
    assert (table["offset"], table["before"], table["after"]) == (2, 4, 8)
    folder = tmp_path / "two"
    folder.mkdir()
    keys = [f"{side}.embed_positions.weight" for side in ("encoder", "decoder")]
    save_file({key: np.ones((6, 2), np.float32) for key in keys}, folder / "model.safetensors")
    (folder / "config.json").write_text('{"max_position_embeddings": 4}')
    out = ok(
        "positions", "resize", folder, "--to", 2, "--method", "truncate", "--key", keys[1], "-o", tmp_path / "one",
        "--if-exists", "replace",
    )  # fmt: skip
    assert [load_file(tmp_path / "one" / "model.safetensors")[key].shape for key in keys] == [(6, 2), (4, 2)]


def test_show(bundle: Path) -> None:
    vec2emb.attach_positions(bundle, "sinusoidal", 30, position_preset="fairseq")
    out = ok("positions", "show", bundle)
    assert out.startswith(
        "position_embeddings.weight: 31 x 50 float32, 30 positions from row 1 on\n  sinusoidal, as fairseq"
    )
    assert "  lengths 5 to 5, median 5\n  rows of zeros: 1, with nan or inf: 0\n" in out
    assert out.endswith("  recorded: sinusoidal, fixed\n")
    shown = as_json("positions", "show", CASES / "P03a" / "roberta-positions.safetensors")
    (table,) = shown["tables"]
    assert (table["offset"], table["usable"], table["facts"]["kind"], table["recorded"]) == (2, 4, "learned", None)
    assert "note: " in ok("positions", "show", CASES / "P01a" / "bert-positions.safetensors")


def test_help_stands_under_headings() -> None:
    text = ok("convert", "--help")
    for heading in ("Positions:", "Training:", "Output:"):
        assert f"\n{heading}\n" in text
    for command, headings in {
        "attach": ("Positions:", "Sinusoidal table:", "Learned table:", "Names:", "Output:", "Machine:"),
        "resize": ("Method:", "Checkpoint:", "Output:", "Machine:"),
        "show": ("Checkpoint:", "Machine:"),
    }.items():
        text = ok("positions", command, "--help")
        assert all(f"\n{heading}\n" in text for heading in headings)
        assert "Example:" in text
