"""Bundles that hold more than words: positions, names, a scale, and which rows train."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import collected
from safetensors import safe_open
from safetensors.numpy import load_file

import vec2emb
from vec2emb import positions
from vec2emb.bundle.manifest import canonical
from vec2emb.bundle.publication import CONFIG, MODEL, VOCAB
from vec2emb.bundle.ranges import Ranges
from vec2emb.editing.attaching import Attached
from vec2emb.errors import BundleError, InputError, OutputError, UsageError, VocabularyError
from vec2emb.positions.key_styles import STYLES

WORDS = [f"w{i}" for i in range(20)]
DIM = 6


@pytest.fixture
def vectors() -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).normal(size=(len(WORDS), DIM)).astype(np.float32)


@pytest.fixture
def source(tmp_path: Path, vectors: np.ndarray[Any, Any]) -> Path:
    path = tmp_path / "vectors.txt"
    rows = (f"{word} {' '.join(map(repr, map(float, row)))}\n" for word, row in zip(WORDS, vectors, strict=True))
    path.write_text("".join(rows))
    return path


def convert(source: Path, name: str = "out", **options: Any) -> tuple[Path, vec2emb.Report]:
    """The bundle and its report; a scale that does not fit is not the subject."""
    path = source.parent / name
    report, found = collected(lambda: vec2emb.convert(source, path, **options))
    assert {warning.code for warning in found} <= {"scale-mismatch", "missing-words", "special-in-file"}
    return path, report


def config(bundle: Path) -> dict[str, Any]:
    return json.loads((bundle / CONFIG).read_bytes())  # type: ignore[no-any-return]


def files(bundle: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(bundle.iterdir())}


# What is written.


def test_the_file_holds_both_tables_and_says_what_they_are(source: Path, vectors: np.ndarray[Any, Any]) -> None:
    bundle, report = convert(source, positions="sinusoidal", max_positions=8)
    state = load_file(bundle / MODEL)
    assert list(state) == ["word_embeddings.weight", "position_embeddings.weight"]
    np.testing.assert_array_equal(state["word_embeddings.weight"][2:], vectors)
    np.testing.assert_array_equal(state["position_embeddings.weight"], positions.sinusoidal(8, DIM))
    data = (bundle / MODEL).read_bytes()
    assert int.from_bytes(data[:8], "little") + 8 == 4096
    assert len(data) == report.bytes == 4096 + 4 * DIM * (22 + 8)
    with safe_open(bundle / MODEL, "numpy") as opened:
        text = opened.metadata()["vec2emb"]
    facts = json.loads(text)
    assert text == canonical(facts)
    assert facts["positions"] == {
        "kind": "sinusoidal", "num": 8, "offset": 0, "padding_idx": None, "preset": "vaswani", "trains": False
    }  # fmt: skip
    assert (facts["scale"], facts["train"]) == (None, "all")
    recorded = config(bundle)
    assert recorded["positions"] == {
        **facts["positions"], "layout": "interleaved", "frequencies": "paper", "base": 10000.0, "odd": "error",
        "start": 0, "keys": ["position_embeddings.weight"],
    }  # fmt: skip
    assert (recorded["key"], recorded["key_style"], recorded["tied_head"]) == ("word_embeddings.weight", "plain", None)
    assert report.manifest.to_dict() == recorded


def test_without_positions_the_only_key_is_weight_unless_a_style_says_otherwise(source: Path) -> None:
    for style, home in STYLES.items():
        bundle, report = convert(source, style, key_style=style)
        assert list(load_file(bundle / MODEL)) == [home.alone_key] == report.keys
        assert vec2emb.load(bundle).positions is None
        assert config(bundle)["tied_head"] == home.tied_head


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", ["learned", "sinusoidal"])
def test_load_gives_the_positions_and_save_keeps_them(source: Path, tmp_path: Path, dtype: str, kind: str) -> None:
    bundle, _ = convert(
        source, dtype=dtype, positions=kind, max_positions=5, scale="sqrt-dim", train_rows=["w3", "w4", "w9"],
        key_style="gpt2", tied_head="head.weight",
    )  # fmt: skip
    table = vec2emb.load(bundle)
    full = positions.sinusoidal(5, DIM) if kind == "sinusoidal" else positions.learned(5, DIM)
    expected = {
        "float32": full,
        "float16": full.astype(np.float16).astype(np.float32),
        "bfloat16": (((full.view("<u4") + 0x7FFF + (full.view("<u4") >> 16 & 1)) >> 16) << 16).view("<f4"),
    }[dtype]
    assert table.positions is not None
    np.testing.assert_array_equal(table.positions, expected)
    assert table.positions.dtype == np.float32
    assert not table.positions.flags.writeable
    table.save(tmp_path / "again")
    assert (tmp_path / "again" / MODEL).read_bytes() == (bundle / MODEL).read_bytes()
    assert {**config(tmp_path / "again"), "self_sha256": None} == {**config(bundle), "self_sha256": None}
    table.save(tmp_path / "frozen", freeze=True)
    assert (config(tmp_path / "frozen")["train"], config(tmp_path / "frozen")["train_rows"]) == ("none", None)
    assert vec2emb.inspect(tmp_path / "again").ok


def test_the_same_options_give_the_same_bytes_and_the_record_gives_them_again(source: Path) -> None:
    options: dict[str, Any] = {
        "positions": "learned", "max_positions": 9, "seed": 5, "scale": "match-positions", "key_style": "roberta",
        "train_rows": [4, 2, 3, 0], "vocab": ["<pad>", "<unk>", *WORDS, "new"],
    }  # fmt: skip
    first, _ = convert(source, "a", threads=1, **options)
    second, _ = convert(source, "b", threads=3, **options)
    assert files(first) == files(second)
    assert vec2emb.verify(first, rebuild=source).ok
    collected(lambda: vec2emb.attach_positions(first, "sinusoidal", 12, position_preset="fairseq", base=500.0))
    collected(lambda: vec2emb.resize_positions(first, first, to=30, if_exists="replace"))
    verified, warned = collected(lambda: vec2emb.verify(first, rebuild=source))
    assert (verified.ok, warned) == (True, [])


def test_a_rehearsal_knows_the_size(source: Path) -> None:
    _, real = convert(source, positions="learned", max_positions=9, key_style="bart", dtype="float16")
    report, _ = collected(
        lambda: vec2emb.convert(
            source, None, dry_run=True, positions="learned", max_positions=9, key_style="bart", dtype="float16"
        )
    )
    assert (report.bytes, report.keys, report.positions) == (real.bytes, real.keys, real.positions)
    assert real.bytes == (source.parent / "out" / MODEL).stat().st_size


# Names and rows in front.


@pytest.mark.parametrize(
    ("style", "preset", "offset", "padding"),
    [
        ("plain", None, 0, None),
        ("plain", "fairseq", 1, 0),
        ("bert", None, 0, None),
        ("roberta", None, 1, 0),
        ("bart", None, 2, None),
        ("bart", "fairseq", 2, 0),
        ("fairseq", "fairseq", 1, 0),
    ],
)
def test_rows_in_front_are_those_of_style_and_preset(
    source: Path, style: str, preset: str | None, offset: int, padding: int | None
) -> None:
    kind = "learned" if preset is None else "sinusoidal"
    bundle, _ = convert(source, positions=kind, position_preset=preset, max_positions=4, key_style=style)
    recorded = config(bundle)["positions"]
    assert (recorded["offset"], recorded["padding_idx"], recorded["num"]) == (offset, padding, 4)
    state = load_file(bundle / MODEL)
    assert set(state) == {STYLES[style].word_key, *STYLES[style].position_keys}
    for key in STYLES[style].position_keys:
        assert state[key].shape == (offset + 4, DIM)
        assert [row for row in range(offset + 4) if not state[key][row].any()] == ([] if padding is None else [padding])


def test_padding_of_positions_is_the_row_of_the_padding_token(source: Path) -> None:
    vocab = ["w1", "w2", "<pad>", "<unk>"]
    bundle, _ = convert(source, vocab=vocab, positions="learned", max_positions=3, key_style="roberta")
    assert (config(bundle)["positions"]["offset"], config(bundle)["positions"]["padding_idx"]) == (3, 2)


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"positions": "fixed", "max_positions": 4}, "positions-kind", "learned or sinusoidal"),
        ({"positions": "learned"}, "max-positions-missing", "--max-positions"),
        ({"max_positions": 4}, "positions-missing", "--positions"),
        ({"train_positions": True}, "positions-missing", "train_positions"),
        ({"positions": "learned", "max_positions": 4, "position_preset": "xlm"}, "positions-option", "preset"),
        ({"positions": "learned", "max_positions": 0}, "max-positions", "1 to 16,777,216"),
        ({"positions": "learned", "max_positions": 10**20}, "max-positions", "1 to 16,777,216"),
        ({"positions": "sinusoidal", "max_positions": 4, "position_preset": "x"}, "unknown-preset", "vaswani"),
        ({"positions": "learned", "max_positions": 4, "key_style": "roberta", "pad": None}, "padding-needed", "no pad"),
        (
            {"positions": "sinusoidal", "max_positions": 4, "position_preset": "fairseq", "pad": None},
            "padding-needed", "no pad",
        ),
        ({"key_style": "elmo"}, "key-style", "roberta"),
        ({"position_key": "p"}, "position-key-alone", "--positions"),
        ({"positions": "learned", "max_positions": 4, "word_key": "a", "position_key": "a"}, "tensor-key-twice", "a"),
        ({"word_key": "a\n"}, "tensor-key", "printable"),
        ({"word_key": "a" * 201}, "tensor-key", "200"),
        ({"word_key": "__metadata__"}, "tensor-key", "printable"),
        ({"scale": "big"}, "scale", "match-positions, or a number over 0"),
        ({"scale": -1.0}, "scale", "over 0"),
        ({"scale": "inf"}, "scale", "over 0"),
        ({"scale": "match-positions"}, "scale-alone", "--positions"),
        ({"train_rows": [22]}, "train-rows", "0 .. 21, found 22"),
        ({"train_rows": [1.5]}, "train-rows", "words, or ids"),
        ({"train_rows": "all", "freeze": True}, "freeze-and-train", "leave one"),
        ({"train_rows": ["w1", "absent"]}, "train-word-missing", "'absent'"),
        ({"train_rows": "no/such/file"}, "not-found", "no/such/file"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_and_nothing_is_left(
    source: Path, options: dict[str, Any], code: str, message: str
) -> None:
    with pytest.raises((UsageError, InputError), match=message) as caught:
        vec2emb.convert(source, source.parent / "out", **options)
    assert caught.value.code == code
    assert os.listdir(source.parent) == ["vectors.txt"]


def test_a_width_that_has_no_table_is_refused_before_the_rows_are_read(tmp_path: Path) -> None:
    (tmp_path / "odd.txt").write_text("1 3\na x x x\n")
    with pytest.raises(UsageError, match="width 3 is odd"):
        vec2emb.convert(tmp_path / "odd.txt", tmp_path / "out", positions="sinusoidal", max_positions=4)


def test_keys_of_the_greatest_length_leave_the_header_its_size(source: Path) -> None:
    keys = {name: "\N{GREEK SMALL LETTER ALPHA}" * 199 + name[0] for name in ("word_key", "position_key", "tied_head")}
    bundle, _ = convert(source, positions="learned", max_positions=4, **keys)
    with open(bundle / MODEL, "rb") as file:
        assert int.from_bytes(file.read(8), "little") + 8 == 4096
    assert set(load_file(bundle / MODEL)) == {keys["word_key"], keys["position_key"]}
    assert vec2emb.load(bundle).positions is not None


# Scale.


def norm(rows: np.ndarray[Any, Any]) -> float:
    return float(np.sqrt((rows.astype(np.float64) ** 2).sum(axis=1).mean()))


@pytest.mark.parametrize(
    ("scale", "factor"),
    [
        ("none", lambda words, places: None),
        ("sqrt-dim", lambda words, places: DIM**0.5),
        ("unit-rms", lambda words, places: DIM**0.5 / norm(words)),
        ("match-positions", lambda words, places: norm(places) / norm(words)),
        (2.5, lambda words, places: 2.5),
        ("0.5", lambda words, places: 0.5),
    ],
)
def test_scales(source: Path, vectors: np.ndarray[Any, Any], scale: Any, factor: Any) -> None:
    vocab = ["<pad>", "<unk>", *WORDS, "missing"]
    bundle, report = convert(source, vocab=vocab, positions="sinusoidal", max_positions=4, scale=scale)
    places = positions.sinusoidal(4, DIM)
    expected = factor(vectors, places)
    assert report.word_norm == pytest.approx(norm(vectors), rel=1e-14)  # of the file's rows alone
    assert report.position_norm == pytest.approx((DIM / 2) ** 0.5, rel=1e-7)
    recorded = config(bundle)["scale"]
    if expected is None:
        assert recorded is None
    else:
        assert recorded["factor"] == pytest.approx(expected, rel=1e-14)
        assert recorded["kind"] == (scale if scale in ("sqrt-dim", "unit-rms", "match-positions") else "factor")
        assert report.scale is not None
        assert report.scale._asdict() == recorded
    assert report.norm_ratio == pytest.approx(norm(vectors) * (expected or 1) / norm(places), rel=1e-7)
    np.testing.assert_array_equal(vec2emb.load(bundle).vectors[2:-1], vectors)  # what the file says


def test_what_drowns_is_warned_of(source: Path) -> None:
    loud: dict[str, Any] = {"positions": "learned", "max_positions": 4}
    report, found = collected(lambda: vec2emb.convert(source, source.parent / "a", **loud))
    assert [warning.code for warning in found] == ["scale-mismatch"] == [warning.code for warning in report.warnings]
    assert "the words drown the positions" in str(found[0])
    assert "--scale match-positions" in str(found[0])
    _, found = collected(lambda: vec2emb.convert(source, source.parent / "b", scale=1e-4, **loud))
    assert "the positions drown the words" in str(found[0])
    _, found = collected(lambda: vec2emb.convert(source, source.parent / "c", scale="match-positions", **loud))
    assert not found
    with pytest.raises(InputError, match="drown") as caught:
        vec2emb.convert(source, source.parent / "d", strict=True, **loud)
    assert caught.value.code == "scale-mismatch"
    assert not (source.parent / "d").exists()


def test_zeros_cannot_be_scaled(tmp_path: Path) -> None:
    (tmp_path / "zeros.txt").write_text("a 0 0\nb 0 0\n")
    with pytest.raises(InputError, match="words are all zero") as caught:
        vec2emb.convert(tmp_path / "zeros.txt", tmp_path / "out", scale="unit-rms")
    assert caught.value.code == "nothing-to-scale"


# Which rows train.


def size_of(ranges: str | None) -> int:
    """How many rows `START:STOP ..` are."""
    return sum(int(b) - int(a) for a, b in (pair.split(":") for pair in (ranges or "").split()))


def test_plans_of_rows_are_recorded_as_ranges(source: Path, tmp_path: Path) -> None:
    (tmp_path / "list").write_text("w5\nw0\nw1\n<pad>\n")
    vocab = ["x", "<pad>", *WORDS, "y", "z", "<unk>"]
    for plan, train, ranges in (
        ("all", "all", None),
        ("new", "new", "0:1 22:25"),
        (tmp_path / "list", "rows", "2:4 7:8"),
        (["w5", "w0"], "rows", "2:3 7:8"),
        ([3, 2, 1, 4], "rows", "2:5"),
        (np.array([3, 2]), "rows", "2:4"),
        ([], "rows", ""),
    ):
        bundle, report = convert(source, if_exists="replace", vocab=vocab, train_rows=plan)
        assert (config(bundle)["train"], config(bundle)["train_rows"]) == (train, ranges)
        expected = 24 if train == "all" else size_of(ranges)
        assert (report.training_rows, report.frozen) == (expected, False)


@pytest.mark.parametrize("at", ["start", "end"])
@pytest.mark.parametrize("case_fallback", [False, True])
def test_new_rows_are_found_wherever_they_stand(source: Path, at: str, case_fallback: bool) -> None:
    options: dict[str, Any] = {"specials": ["<s>=mean", "w3"], "specials_at": at, "train_rows": "new"}
    if case_fallback:
        options |= {"case_fallback": True, "only": [word.upper() for word in WORDS if word != "w3"]}
    bundle, _ = convert(source, **options)
    vocab = vec2emb.load(bundle).vocab
    rows = Ranges.read(config(bundle)["train_rows"], "", "").rows()
    assert vocab.decode(list(rows)) == ["<unk>", "<s>"]  # not w3, whose vector the file has


def test_a_frozen_table_is_recorded_as_one(source: Path) -> None:
    bundle, report = convert(source, "a", freeze=True)
    assert (config(bundle)["train"], config(bundle)["train_rows"]) == ("none", None)
    assert (report.training_rows, report.frozen) == (0, True)
    assert vec2emb.verify(bundle, rebuild=source).ok


# Attached to what exists.


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_attaching_gives_what_converting_gives(source: Path, dtype: str) -> None:
    whole, _ = convert(source, "whole", dtype=dtype, positions="learned", max_positions=7, key_style="bert")
    bundle, _ = convert(source, "bundle", dtype=dtype)
    done, found = collected(lambda: vec2emb.attach_positions(bundle, "learned", 7, key_style="bert"))
    assert isinstance(done, Attached)
    assert [warning.code for warning in found] == ["scale-mismatch"]
    assert (bundle / MODEL).read_bytes() == (whole / MODEL).read_bytes()
    assert config(bundle)["positions"] == config(whole)["positions"] == done.positions.to_dict()
    assert done.keys == (config(whole)["key"], *config(whole)["positions"]["keys"])
    assert vec2emb.verify(bundle).ok


def test_attaching_replaces_and_keeps_what_is_not_its_own(source: Path) -> None:
    bundle, _ = convert(source, positions="learned", max_positions=7, train_rows="new", word_key="mine", scale=2)
    (bundle / "tokenizer.json").write_text("{}")
    before = config(bundle)
    collected(lambda: vec2emb.attach_positions(
        bundle, "sinusoidal", 3, layout="cos-sin", frequencies="t2t", base=100.0, start=2.0, offset=2, padding_idx=1,
        train_positions=True,
    ))  # fmt: skip
    table = vec2emb.load(bundle)
    np.testing.assert_array_equal(
        table.positions,
        positions.sinusoidal(3, DIM, layout="cos-sin", frequencies="t2t", base=100, start=2, offset=2, padding_idx=1),
    )
    assert (bundle / "tokenizer.json").read_text() == "{}"
    now = config(bundle)
    assert (now["key"], now["train_rows"], now["scale"]) == ("mine", "1:2", {"kind": "factor", "factor": 2.0})
    assert now["positions"]["trains"] is True
    for name in ("specials", "provenance", "source", "replay", "lookup"):
        assert now[name] == before[name]
    assert sorted(os.listdir(source.parent)) == ["out", "vectors.txt"]


def test_attaching_to_another_place_and_to_a_stem(source: Path, tmp_path: Path) -> None:
    vec2emb.convert(source, tmp_path / "a.safetensors")
    before = (tmp_path / "a.safetensors").read_bytes()
    vec2emb.attach_positions(tmp_path / "a.safetensors", "sinusoidal", 3, output=tmp_path / "b")
    assert (tmp_path / "a.safetensors").read_bytes() == before
    with pytest.raises(OutputError, match="a bundle is there already"):
        vec2emb.attach_positions(tmp_path / "a.safetensors", "sinusoidal", 4, output=tmp_path / "b")
    vec2emb.attach_positions(tmp_path / "a.safetensors", "sinusoidal", 3, output=tmp_path / "b", if_exists="keep")
    vec2emb.attach_positions(tmp_path / "a.safetensors", "sinusoidal", 3)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b" / MODEL).read_bytes()


def test_a_scale_that_matches_follows_the_new_positions(source: Path) -> None:
    bundle, _ = convert(source, positions="sinusoidal", max_positions=4, scale="match-positions")
    first = config(bundle)["scale"]["factor"]
    done = vec2emb.attach_positions(bundle, "learned", 4, std=1.0)
    assert done.scale is not None
    assert done.norm_ratio == pytest.approx(1)
    assert done.scale.factor != first


def test_what_cannot_be_attached_leaves_the_bundle_alone(source: Path, tmp_path: Path) -> None:
    bundle, _ = convert(source)
    before = files(bundle)
    for options, code in (
        ({"std": 1.0}, "positions-option"),
        ({"base": 0.5}, "base-range"),
        ({"padding_idx": 2, "offset": 1}, "offset-range"),
        ({"key_style": "elmo"}, "key-style"),
    ):
        with pytest.raises(UsageError) as caught:
            vec2emb.attach_positions(bundle, "sinusoidal", 3, **options)
        assert caught.value.code == code
    half, _ = convert(source, "half", dtype="float16")
    with pytest.raises(InputError, match="not finite or does not fit float16"):
        vec2emb.attach_positions(half, "learned", 3, std=1e6)
    with pytest.raises(InputError, match="no such bundle"):
        vec2emb.attach_positions(tmp_path / "absent", "learned", 3)
    assert files(bundle) == before
    assert sorted(os.listdir(tmp_path)) == ["half", "out", "vectors.txt"]


def test_damage_is_not_carried_on(source: Path) -> None:
    bundle, _ = convert(source)
    data = bytearray((bundle / MODEL).read_bytes())
    data[-1] ^= 1
    (bundle / MODEL).write_bytes(data)
    with pytest.raises(BundleError, match="not those that were written"):
        vec2emb.attach_positions(bundle, "sinusoidal", 3)


# Resized.


def test_a_learned_table_is_resized_and_a_formula_followed(source: Path, tmp_path: Path) -> None:
    bundle, _ = convert(source, positions="learned", max_positions=7, key_style="bart", dtype="float16")
    before = vec2emb.load(bundle)
    collected(lambda: vec2emb.resize_positions(bundle, tmp_path / "longer", to=12, method="tile"))
    after = vec2emb.load(tmp_path / "longer")
    assert before.positions is not None
    np.testing.assert_array_equal(after.positions, positions.resize(before.positions, 12, method="tile", offset=2))
    np.testing.assert_array_equal(after.vectors, before.vectors)
    assert after.manifest is not None
    assert before.manifest is not None
    assert before.manifest.positions is not None
    assert after.manifest.positions == before.manifest.positions._replace(num=12)
    fixed, _ = convert(source, "fixed", positions="sinusoidal", max_positions=7)
    with pytest.raises(UsageError, match="follows its formula"):
        vec2emb.resize_positions(fixed, fixed, to=12, method="tile", if_exists="replace")
    vec2emb.resize_positions(fixed, fixed, to=12, if_exists="replace")
    np.testing.assert_array_equal(vec2emb.load(fixed).positions, positions.sinusoidal(12, DIM))


def test_what_cannot_be_resized(source: Path, tmp_path: Path) -> None:
    bundle, _ = convert(source)
    for options, code in (({}, "no-positions"), ({"key": "weight"}, "bundle-knows"), ({"offset": 1}, "bundle-knows")):
        with pytest.raises(UsageError) as caught:
            vec2emb.resize_positions(bundle, tmp_path / "b", to=4, **options)
        assert caught.value.code == code
    with pytest.raises(UsageError, match="the bundle has no positions"):
        vec2emb.describe_positions(bundle)
    learned, _ = convert(source, "learned", positions="learned", max_positions=4)
    with pytest.raises(UsageError, match="needs a method"):
        vec2emb.resize_positions(learned, tmp_path / "b", to=5)
    assert not (tmp_path / "b").exists()


def test_description(source: Path) -> None:
    bundle, _ = convert(source, positions="sinusoidal", max_positions=40, position_preset="fairseq")
    (shown,) = vec2emb.describe_positions(bundle)
    assert (shown.key, shown.offset, shown.usable) == ("position_embeddings.weight", 1, 40)
    assert (shown.facts.kind, shown.facts.presets[0]) == ("sinusoidal", "fairseq")
    assert shown.recorded is not None
    assert shown.recorded.to_dict() == config(bundle)["positions"]


# Loading refuses.


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"positions": None}, "bundle-damaged"),
        ({"positions": {}}, "bundle-config"),
        ({"positions.num": 5}, "bundle-damaged"),
        ({"positions.num": -1}, "bundle-config"),
        ({"positions.keys": ["nothing"]}, "bundle-damaged"),
        ({"positions.keys": ["word_embeddings.weight"]}, "bundle-damaged"),
        ({"positions.padding_idx": 4}, "bundle-config"),
        ({"scale.factor": 3.0}, "bundle-damaged"),
        ({"scale.factor": 0}, "bundle-config"),
        ({"train": "all"}, "bundle-config"),
        ({"train": "new"}, "bundle-damaged"),
        ({"train_rows": "2"}, "bundle-config"),
        ({"train_rows": "1:99"}, "bundle-damaged"),
        ({"train_rows": None}, "bundle-config"),
        ({"key_style": "elmo"}, "bundle-config"),
    ],
)
def test_settings_that_do_not_belong_to_the_tensors(source: Path, change: dict[str, Any], code: str) -> None:
    bundle, _ = convert(source, positions="learned", max_positions=4, scale=2.0, train_rows=[2, 3])
    content = config(bundle)
    for name, value in change.items():
        *parts, last = name.split(".")
        (content[parts[0]] if parts else content)[last] = value
    (bundle / CONFIG).write_text(json.dumps(content))
    with pytest.raises(BundleError) as caught:
        vec2emb.load(bundle)
    assert caught.value.code == code


def test_a_bundle_without_positions_keeps_its_three_files(source: Path) -> None:
    bundle, _ = convert(source)
    assert sorted(os.listdir(bundle)) == sorted((MODEL, VOCAB, CONFIG))
    assert issubclass(VocabularyError, InputError)
