"""Resized checkpoints: real models load them, every other byte is as it was, and no half of one is ever seen."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import safe_open
from safetensors.numpy import save_file
from tiny_models import tiny

from vec2emb.editing import checkpoints
from vec2emb.editing.checkpoints import Change, ResizedTable, bfloat16_bits, resize_positions
from vec2emb.errors import InputError, OutputError, TryAgainError, UsageError
from vec2emb.positions import resize, sinusoidal
from vec2emb.safetensors_files.header import TensorInfo, encode_header, read_header

ROOT = Path(__file__).parents[2]
CASES = ROOT / "fixtures" / "cases"
BERT_KEY = "embeddings.position_embeddings.weight"


def tensors(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Type, shape and bytes of everything in a file or folder, as the `safetensors` package can open it."""
    found = {}
    for file in sorted(path.glob("*.safetensors")) if path.is_dir() else [path]:
        header, content = read_header(file), file.read_bytes()
        with safe_open(file, framework="numpy") as opened:
            assert set(opened.keys()) == set(header.tensors)
        for key, t in header.tensors.items():
            found[key] = t.dtype, t.shape, content[header.data_start + t.start : header.data_start + t.stop]
    return found


def table(path: Path, key: str) -> Any:
    dtype, shape, data = tensors(path)[key]
    return np.frombuffer(data, {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2"}[dtype]).reshape(shape)


def small(path: Path, rows: int = 6, *, key: str = BERT_KEY, dtype: Any = np.float32, **more: Any) -> Any:
    """A checkpoint of one file with a position table and a few others; the table."""
    positions = np.random.default_rng(1).normal(size=(rows, 3)).astype(dtype)
    others = {"embeddings.word_embeddings.weight": np.ones((5, 3), dtype), "step": np.array([7]), **more}
    path.parent.mkdir(exist_ok=True)
    save_file({key: positions, **others}, path, metadata={"format": "pt"})
    return positions


def folder(path: Path, config: dict[str, Any], **options: Any) -> Any:
    positions = small(path / "model.safetensors", **options)
    (path / "config.json").write_text(json.dumps(config))
    return positions


def listing(path: Path) -> list[str]:
    return sorted(os.path.relpath(os.path.join(root, name), path) for root, _, names in os.walk(path) for name in names)


# Real models.


@pytest.mark.parametrize(
    ("name", "to", "method", "offset", "field", "configured", "longest"),
    [
        ("BertModel", 1024, "hierarchical", 0, "max_position_embeddings", 1024, 1000),
        ("BertForMaskedLM", 700, "linear", 0, "max_position_embeddings", 700, 700),
        ("RobertaModel", 1024, "tile", 2, "max_position_embeddings", 1026, 1000),
        ("GPT2LMHeadModel", 1100, "linear", 0, "n_positions", 1100, 1100),
        ("BartModel", 1100, "cubic", 2, "max_position_embeddings", 1100, 1100),
        ("OPTForCausalLM", 100, "truncate", 2, "max_position_embeddings", 100, 100),
        ("LEDModel", 1500, "tile", 0, "max_encoder_position_embeddings", 1500, None),
        ("CLIPTextModel", 248, "stretch", 0, "max_position_embeddings", 248, 248),
    ],
)
def test_a_real_model_loads_what_was_resized(
    tmp_path: Path, name: str, to: int, method: str, offset: int, field: str, configured: int, longest: int | None
) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    old, new = tmp_path / "old", tmp_path / "new"
    tiny(name).save_pretrained(old)
    report = resize_positions(old, new, to=to, method=method)
    assert not report.notes
    assert json.loads((new / "config.json").read_text())[field] == configured
    assert all(found.offset == offset and found.after == to for found in report.tables)
    assert len(report.tables) == (2 if name in ("BartModel", "LEDModel") else 1)

    before, after = tensors(old), tensors(new)
    assert list(before) == list(after)
    resized = {found.key for found in report.tables}
    for key in before:
        if key in resized:
            expected = resize(table(old, key), to, method=method, offset=offset)
            assert after[key] == ("F32", (to + offset, 16), expected.tobytes())
        else:
            assert after[key] == before[key], f"{key} is as it was, to the bit"

    model, info = getattr(transformers, name).from_pretrained(new, output_loading_info=True)
    assert {kind: list(info[kind]) for kind in ("missing_keys", "unexpected_keys", "mismatched_keys")} == {
        "missing_keys": [],
        "unexpected_keys": [],
        "mismatched_keys": [],
    }
    if longest is not None:
        with torch.no_grad():
            output = model(input_ids=torch.full((1, longest), 5))
        assert torch.isfinite(output[0]).all()
        assert output[0].shape[1] == longest


def test_a_sharded_bart(tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    old, new = tmp_path / "old", tmp_path / "new"
    model = tiny("BartModel")
    model.save_pretrained(old, max_shard_size="70KB")
    assert len(list(old.glob("*.safetensors"))) > 2
    report = resize_positions(old / "model.safetensors.index.json", new, to=1500, method="linear")
    assert sorted(os.listdir(old)) == sorted(os.listdir(new))
    assert {found.file for found in report.tables}.isdisjoint(report.copied)
    before, after = tensors(old), tensors(new)
    resized = {found.key for found in report.tables}
    assert len(resized) == 2
    assert all(after[key] == before[key] for key in before.keys() - resized)
    index = json.loads((new / "model.safetensors.index.json").read_text())
    assert index["metadata"]["total_size"] == sum(len(data) for _, _, data in after.values())
    grown, info = transformers.BartModel.from_pretrained(new, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    assert index["metadata"].get("total_parameters", grown.num_parameters()) == grown.num_parameters()
    with torch.no_grad():
        assert grown(input_ids=torch.full((1, 1400), 5))[0].shape == (1, 1400, 16)


def test_clip_leaves_the_patches_of_images_alone(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    tiny("CLIPModel").save_pretrained(tmp_path / "old")
    report = resize_positions(tmp_path / "old", tmp_path / "new", to=248, method="stretch")
    assert [found.key for found in report.tables] == ["text_model.embeddings.position_embedding.weight"]
    assert report.changes == (Change("config.json", "text_config.max_position_embeddings", 77, 248),)
    _, info = transformers.CLIPModel.from_pretrained(tmp_path / "new", output_loading_info=True)
    assert not info["mismatched_keys"]


def test_a_computed_table_is_noted(tmp_path: Path) -> None:
    tiny("PegasusModel").save_pretrained(tmp_path / "old")
    report = resize_positions(tmp_path / "old", tmp_path / "new", to=2000, method="linear")
    assert "decoder.embed_positions.weight is a sinusoidal table (marian)" in report.notes[0]
    assert report.tables[0].offset == 0


# Single files, types, and what else a checkpoint holds.


def test_case_p01a_position_ids_are_dropped(tmp_path: Path) -> None:
    source, out = CASES / "P01a" / "bert-positions.safetensors", tmp_path / "out.safetensors"
    report = resize_positions(source, out, to=7, method="linear", align_corners=True)
    assert report.tables == (ResizedTable(BERT_KEY, source.name, "F32", 0, 4, 7),)
    assert report.dropped == ("embeddings.position_ids",)
    assert "embeddings.position_ids was left out: models make it themselves" in report.notes
    assert list(tensors(out)) == [BERT_KEY]
    np.testing.assert_allclose(table(out, BERT_KEY)[:, 0], np.arange(0, 9.1, 1.5))
    assert read_header(out).metadata == {"format": "pt"}


def test_case_p03a_reserved_rows_stay(tmp_path: Path) -> None:
    source, out = CASES / "P03a" / "roberta-positions.safetensors", tmp_path / "out.safetensors"
    report = resize_positions(source, out, to=8, method="tile")
    assert (report.tables[0].offset, report.tables[0].before, report.tables[0].after) == (2, 4, 8)
    assert "2 rows in front of the first position, as its metadata say" in report.notes[0]
    old, new = table(source, "embed_positions.weight"), table(out, "embed_positions.weight")
    np.testing.assert_array_equal(old[2], [0, 1, 2], "position 0")
    np.testing.assert_array_equal(new, np.concatenate([old, old[2:]]))


@pytest.mark.parametrize(
    ("key", "config", "offset", "why"),
    [
        (BERT_KEY, {}, 0, "as models with this key have it"),
        (f"bert.{BERT_KEY}", {}, 0, "as models with this key have it"),
        (f"roberta.{BERT_KEY}", {}, 2, "as its keys suggest"),
        ("model.decoder.embed_positions.weight", {}, 2, "as models with this key have it"),
        ("wpe.weight", {}, 0, "as models with this key have it"),
        (BERT_KEY, {"model_type": "roberta"}, 2, None),
        (BERT_KEY, {"model_type": "xlm-roberta", "pad_token_id": 0, "max_position_embeddings": 6}, 1, None),
        (BERT_KEY, {"model_type": "bert", "max_position_embeddings": 6}, 0, None),
        ("decoder.embed_positions.weight", {"model_type": "blenderbot", "max_position_embeddings": 6}, 0, None),
        ("decoder.embed_positions.weight", {"model_type": "mbart", "max_position_embeddings": 4}, 2, None),
    ],
)
def test_rows_in_front(tmp_path: Path, key: str, config: dict[str, Any], offset: int, why: str | None) -> None:
    folder(tmp_path / "old", config, key=key)
    report = resize_positions(tmp_path / "old", tmp_path / "new", to=9, method="tile")
    assert (report.tables[0].offset, report.tables[0].before) == (offset, 6 - offset)
    if why is None:
        assert not report.notes
    else:
        assert why in report.notes[0]
    if limit := config.get("max_position_embeddings"):
        grown = limit + 9 - (6 - offset)
        assert report.changes == (Change("config.json", "max_position_embeddings", limit, grown),)


def test_a_zero_row_tells_of_padding(tmp_path: Path) -> None:
    positions = small(tmp_path / "x.safetensors")
    positions[1] = 0
    save_file({BERT_KEY: positions}, tmp_path / "x.safetensors")
    report = resize_positions(tmp_path / "x.safetensors", tmp_path / "y.safetensors", to=9, method="tile")
    assert report.tables[0].offset == 2
    assert "because row 1 is zero" in report.notes[0]
    told = resize_positions(tmp_path / "x.safetensors", tmp_path / "z.safetensors", to=9, method="tile", offset=0)
    assert told.tables[0].offset == 0


def test_a_single_file_says_what_its_configuration_needs(tmp_path: Path) -> None:
    folder(tmp_path / "old", {"max_position_embeddings": 6})
    out = tmp_path / "new.safetensors"
    report = resize_positions(tmp_path / "old" / "model.safetensors", out, to=9, method="tile")
    assert report.notes == ("max_position_embeddings of the model's config.json has to become 9",)
    assert out.is_file()
    assert report.changes == ()
    assert json.loads((tmp_path / "old" / "config.json").read_text()) == {"max_position_embeddings": 6}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_types_of_tables(tmp_path: Path, dtype: Any) -> None:
    positions = small(tmp_path / "x.safetensors", dtype=dtype)
    resize_positions(tmp_path / "x.safetensors", tmp_path / "y.safetensors", to=11, method="cubic")
    new = table(tmp_path / "y.safetensors", BERT_KEY)
    assert new.dtype == dtype
    exact = resize(positions.astype(np.float64), 11, method="cubic")
    np.testing.assert_array_equal(new, exact.astype(dtype))


def test_bfloat16_tables(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from safetensors.torch import load_file
    from safetensors.torch import save_file as save_torch

    torch.manual_seed(0)
    positions = torch.randn(6, 8, dtype=torch.bfloat16)
    save_torch({BERT_KEY: positions}, tmp_path / "x.safetensors")
    resize_positions(tmp_path / "x.safetensors", tmp_path / "y.safetensors", to=13, method="hierarchical")
    new = load_file(tmp_path / "y.safetensors")[BERT_KEY]
    assert new.dtype == torch.bfloat16
    assert torch.equal(new[:6], positions)
    exact = torch.from_numpy(resize(positions.double().numpy(), 13, method="hierarchical"))
    # torch goes through float32; where that ends between two bfloat16, it may round a second time the wrong way.
    settled = (exact.float().view(torch.int32) & 0xFFFF) != 0x8000
    assert settled.sum() > 80
    assert torch.equal(new[settled], exact.to(torch.bfloat16)[settled])


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_bfloat16_of_a_float32_is_torchs(value: float) -> None:
    torch = pytest.importorskip("torch")
    expected = torch.tensor(value, dtype=torch.float32).to(torch.bfloat16).view(torch.uint16).item()
    assert bfloat16_bits(np.array([value]))[0] == expected


@settings(deadline=None)
@given(
    st.floats(-1e30, 1e30, allow_subnormal=False) | st.integers(0, 255).map(lambda i: 1 + (2 * i + 1) / 256 + 2**-45)
)
def test_bfloat16_of_a_float64_is_the_nearest(value: float) -> None:
    """By exact fractions: neither neighbour is nearer."""

    def exact(bits: int) -> Fraction:
        return Fraction(float(np.array([bits << 16], np.uint32).view(np.float32)[0]))

    bits = int(bfloat16_bits(np.array([value]))[0])
    error = abs(exact(bits) - Fraction(value))
    neighbours = [b for b in (bits - 1, bits + 1) if b & 0x7FFF not in (0x7FFF, 0x7F80)] if bits & 0x7FFF else []
    assert all(error <= abs(exact(b) - Fraction(value)) for b in neighbours)


def test_bfloat16_of_what_is_no_number() -> None:
    values = np.array([np.inf, -np.inf, np.nan, 3.5e38, -0.0])
    assert bfloat16_bits(values).tolist() == [0x7F80, 0xFF80, 0x7FC0, 0x7F80, 0x8000]


def test_a_changed_length_leaves_every_tensor_aligned(tmp_path: Path) -> None:
    """A file whose wide tensor follows a narrow one, which other writers avoid."""
    source, out = tmp_path / "x.safetensors", tmp_path / "y.safetensors"
    header = encode_header({"wpe.weight": TensorInfo("F16", (4, 1), 0, 8), "step": TensorInfo("I64", (1,), 8, 16)})
    source.write_bytes(header + bytes(8) + (7).to_bytes(8, "little"))
    resize_positions(source, out, to=5, method="tile", offset=0)
    found = read_header(out)
    assert (found.tensors["step"].start, found.tensors["wpe.weight"].start) == (0, 8)
    assert tensors(out)["step"] == ("I64", (1,), (7).to_bytes(8, "little"))


def test_the_other_files_of_a_folder(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    folder(old, {"max_position_embeddings": 6, "eps": 1e-12})
    (old / "tokenizer_config.json").write_text('{"model_max_length": 6, "note": "\\ud83d"}')
    (old / "vocab.txt").write_bytes(b"a\r\nb\n")
    (old / "pytorch_model.bin").write_bytes(b"old")
    (old / "1_Pooling").mkdir()
    (old / "1_Pooling" / "config.json").write_text('{"max_position_embeddings": 6}')
    (old / ".git").mkdir()
    (old / ".git" / "objects").write_bytes(b"large")
    (old / "link.txt").symlink_to("vocab.txt")
    (old / "broken").symlink_to("nowhere")
    report = resize_positions(old, new, to=9, method="tile")
    assert listing(new) == [
        "1_Pooling/config.json",
        "config.json",
        "link.txt",
        "model.safetensors",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    assert (new / "link.txt").read_bytes() == (new / "vocab.txt").read_bytes() == b"a\r\nb\n"
    assert not (new / "link.txt").is_symlink()
    assert json.loads((new / "config.json").read_text()) == {"max_position_embeddings": 9, "eps": 1e-12}
    assert json.loads((new / "tokenizer_config.json").read_text()) == {"model_max_length": 9, "note": "\ud83d"}
    assert json.loads((new / "1_Pooling" / "config.json").read_text()) == {"max_position_embeddings": 6}
    assert Change("tokenizer_config.json", "model_max_length", 6, 9) in report.changes
    assert report.copied == ("link.txt", "vocab.txt", "1_Pooling/config.json")
    assert "pytorch_model.bin was left out: it has the old table" in report.notes
    assert "broken was left out: it is no file" in report.notes


def test_a_tokenizer_without_a_limit_keeps_none(tmp_path: Path) -> None:
    folder(tmp_path / "old", {})
    text = '{"model_max_length": 1000000000000000019884624838656}'
    (tmp_path / "old" / "tokenizer_config.json").write_text(text)
    resize_positions(tmp_path / "old", tmp_path / "new", to=9, method="tile")
    assert (tmp_path / "new" / "tokenizer_config.json").read_text() == text


def test_the_same_length_changes_nothing(tmp_path: Path) -> None:
    folder(tmp_path / "old", {"max_position_embeddings": 6})
    report = resize_positions(tmp_path / "old", tmp_path / "new", to=6)
    assert report.changes == ()
    assert tensors(tmp_path / "old") == tensors(tmp_path / "new")
    assert "config.json" in report.copied


def test_gpt2_has_its_length_twice(tmp_path: Path) -> None:
    folder(tmp_path / "old", {"model_type": "gpt2", "n_positions": 6, "n_ctx": 6}, key="wpe.weight")
    report = resize_positions(tmp_path / "old", tmp_path / "new", to=9, method="tile")
    assert [(change.field, change.after) for change in report.changes] == [("n_positions", 9), ("n_ctx", 9)]


def test_one_of_two_tables(tmp_path: Path) -> None:
    key, other = "model.decoder.embed_positions.weight", "model.encoder.embed_positions.weight"
    folder(tmp_path / "old", {"max_position_embeddings": 4}, key=key, **{other: np.ones((6, 3), np.float32)})
    report = resize_positions(tmp_path / "old", tmp_path / "new", to=9, method="tile", key=key)
    assert [found.key for found in report.tables] == [key]
    assert report.notes == (f"{other} keeps its length, though config.json has one number for both",)
    assert tensors(tmp_path / "new")[other] == tensors(tmp_path / "old")[other]


def test_a_key_of_any_name(tmp_path: Path) -> None:
    small(tmp_path / "x.safetensors", key="my.table")
    report = resize_positions(
        tmp_path / "x.safetensors", tmp_path / "y.safetensors", to=9, method="tile", key="my.table"
    )
    assert report.tables[0].offset == 0


def test_parts_of_an_index(tmp_path: Path) -> None:
    """position_ids leave the index as well, and a shard may end up empty."""
    old = tmp_path / "old"
    positions = small(old / "a.safetensors")
    save_file({"embeddings.position_ids": np.arange(6)[None]}, old / "b.safetensors")
    names = dict.fromkeys(tensors(old / "a.safetensors"), "a.safetensors") | {
        "embeddings.position_ids": "b.safetensors"
    }
    index = {"metadata": {"total_size": 72 + 60 + 8 + 48}, "weight_map": names}
    (old / "model.safetensors.index.json").write_text(json.dumps(index))
    report = resize_positions(old, tmp_path / "new", to=6)
    found = json.loads((tmp_path / "new" / "model.safetensors.index.json").read_text())
    assert found["metadata"]["total_size"] == 72 + 60 + 8
    assert set(found["weight_map"]) == set(tensors(tmp_path / "new")) == {*names} - {"embeddings.position_ids"}
    assert Change("model.safetensors.index.json", "metadata.total_size", 188, 140) in report.changes
    assert table(tmp_path / "new", BERT_KEY).tobytes() == positions.tobytes()


# Checkpoints that are refused.


def refusal(code: str, message: str, *arguments: Any, **options: Any) -> None:
    with pytest.raises((InputError, UsageError, OutputError)) as caught:
        resize_positions(*arguments, **options)
    assert caught.value.code == code
    assert message in str(caught.value)


def test_checkpoints_that_are_refused(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    file = old / "model.safetensors"
    refusal("not-found", "there is no such file", old, new, to=9)
    old.mkdir()
    refusal("no-checkpoint", "there is no safetensors file: expected model.safetensors", old, new, to=9)
    folder(old, {"max_position_embeddings": 5})
    refusal("length-mismatch", "expected 5 rows, or 2 more, found 6; --offset says", old, new, to=9, method="tile")
    refusal("no-resize-method", f"{BERT_KEY}: 6 positions to 9 needs a method", file, new, to=9, offset=0)
    refusal("num-range", "expected at most 36", file, new, to=99, method="hierarchical", offset=0)
    refusal("no-position-table", "there is no tensor 'x'; --key names one; perhaps 'emb", old, new, to=9, key="x")
    refusal("not-a-table", "found I64 of shape [1]", old, new, to=9, key="step")
    (old / "config.json").write_text("{")
    refusal("json-invalid", "this is not JSON", old, new, to=9)
    (old / "config.json").write_text("[]")
    refusal("json-invalid", "this is no JSON object: found list", old, new, to=9)
    (old / "config.json").unlink()
    file.rename(old / "a.safetensors")
    small(old / "b.safetensors")
    refusal("checkpoint-unclear", "found a.safetensors, b.safetensors; name the file", old, new, to=9)
    save_file({"weight": np.ones((3, 2))}, old / "model.safetensors")
    refusal("no-position-table", "there is no position table with a known name", old, new, to=9)
    (old / "vec2emb.json").write_text("{}")
    refusal("is-a-bundle", "this is a bundle", old, new, to=9)
    assert os.listdir(tmp_path) == ["old"]


@pytest.mark.parametrize(
    ("index", "code", "message"),
    [
        ({}, "index-invalid", "expected a weight_map of keys to file names"),
        ({"weight_map": {}}, "index-invalid", "this is no index"),
        ({"weight_map": {BERT_KEY: "../a.safetensors"}}, "index-invalid", "this is no index"),
        ({"weight_map": {BERT_KEY: ["a.safetensors"]}}, "index-invalid", "this is no index"),
        ({"weight_map": {BERT_KEY: "b.safetensors"}}, "not-found", "there is no such file"),
        ({"weight_map": {"other": "a.safetensors"}}, "tensor-missing", "expected a.safetensors, found nowhere"),
        ({"weight_map": {BERT_KEY: "a.safetensors", "k": "c.safetensors"}}, "tensor-twice", "'step' is in two files"),
    ],
)
def test_indexes_that_are_refused(tmp_path: Path, index: Any, code: str, message: str) -> None:
    small(tmp_path / "old" / "a.safetensors")
    save_file({"step": np.array([1])}, tmp_path / "old" / "c.safetensors")
    (tmp_path / "old" / "model.safetensors.index.json").write_text(json.dumps(index))
    refusal(code, message, tmp_path / "old", tmp_path / "new", to=9, method="tile")


# The output.


def test_targets_that_are_refused(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    folder(old, {})
    options: dict[str, Any] = {"to": 9, "method": "tile"}
    refusal("output-inside", "the output is inside the checkpoint", old, old / "new", **options)
    refusal("target-exists", "something is there already", old, old, **options)
    new.mkdir()
    (new / "thesis.txt").write_text("precious")
    refusal("target-exists", "something is there already", old, new, **options)
    refusal("target-not-replaceable", "found 'thesis.txt' there", old, new, replace=True, **options)
    refusal("target-exists", "something is there already", old / "model.safetensors", new / "thesis.txt", **options)
    refusal(
        "target-not-replaceable",
        "only a checkpoint",
        old / "model.safetensors",
        new / "thesis.txt",
        replace=True,
        **options,
    )
    assert (new / "thesis.txt").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["new", "old"]


def test_replacing(tmp_path: Path) -> None:
    old, new, file = tmp_path / "old", tmp_path / "new", tmp_path / "file.safetensors"
    folder(old, {"max_position_embeddings": 6})
    for to in (9, 12):
        resize_positions(old, new, to=to, method="tile", replace=True)
        resize_positions(old / "model.safetensors", file, to=to, method="tile", replace=True)
        assert len(table(new, BERT_KEY)) == len(table(file, BERT_KEY)) == to
    resize_positions(old, old, to=8, method="tile", replace=True)
    assert len(table(old, BERT_KEY)) == 8
    assert json.loads((old / "config.json").read_text()) == {"max_position_embeddings": 8}
    assert sorted(os.listdir(tmp_path)) == ["file.safetensors", "new", "old"]
    (new / "notes.txt").write_text("mine")
    refusal("target-not-replaceable", "found 'notes.txt' there", old, new, to=9, method="tile", replace=True)


def test_an_empty_folder_is_free_and_parents_are_made(tmp_path: Path) -> None:
    folder(tmp_path / "old", {})
    (tmp_path / "empty").mkdir()
    resize_positions(tmp_path / "old", tmp_path / "empty", to=9, method="tile")
    resize_positions(tmp_path / "old", tmp_path / "runs" / "7" / "new", to=9, method="tile")
    assert listing(tmp_path / "empty") == listing(tmp_path / "runs" / "7" / "new") == listing(tmp_path / "old")


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    folder(tmp_path / "old", {})
    monkeypatch.setattr(checkpoints, "copy_file", full)
    (tmp_path / "old" / "vocab.txt").write_text("a")
    refusal("disk-full", "No space left", tmp_path / "old", tmp_path / "a" / "b" / "new", to=9, method="tile")
    assert os.listdir(tmp_path) == ["old"]


def test_two_runs_to_one_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(tmp_path / "old", {"max_position_embeddings": 6})
    write = checkpoints.write_shard
    inner: list[str] = []

    def meanwhile(*arguments: Any) -> None:
        monkeypatch.setattr(checkpoints, "write_shard", write)
        with pytest.raises(TryAgainError, match="another run is writing there") as caught:
            resize_positions(tmp_path / "old", tmp_path / "new", to=7, method="tile")
        inner.append(caught.value.code)
        write(*arguments)

    monkeypatch.setattr(checkpoints, "write_shard", meanwhile)
    resize_positions(tmp_path / "old", tmp_path / "new", to=9, method="tile")
    assert inner == ["target-busy"]
    assert len(table(tmp_path / "new", BERT_KEY)) == 9


KILLED = """
import os, shutil, sys
from vec2emb.editing import checkpoints
from vec2emb.io import atomic

def die(*arguments):
    os.kill(os.getpid(), 9)

where, old, new, to = sys.argv[1:]
if where == "writing":
    checkpoints.copy_file = die
elif where == "exchanged":
    shutil.rmtree = die
elif where == "aside":
    atomic.exchange = lambda a, b: False
    rename = os.rename
    os.rename = lambda a, b: die() if a.endswith(".tmp") else rename(a, b)
checkpoints.resize_positions(old, new, to=int(to), method="tile", replace=True)
"""


@pytest.mark.parametrize("where", ["writing", "exchanged", "aside"])
def test_killed_at_the_worst_moment(tmp_path: Path, where: str) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    folder(old, {"max_position_embeddings": 6})
    (old / "vocab.txt").write_text("a")

    def run(where: str, to: int) -> int:
        return subprocess.run(
            [sys.executable, "-c", KILLED, where, old, new, str(to)], cwd=ROOT, check=False
        ).returncode

    if where == "writing":
        assert run(where, 9) == -9
        assert not new.exists()
    assert run("", 8) == 0
    assert run(where, 9) == -9
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")], "something hidden is left"
    if where == "aside":
        assert not new.exists()
    else:
        assert len(table(new, BERT_KEY)) == (9 if where == "exchanged" else 8)
        assert listing(new) == ["config.json", "model.safetensors", "vocab.txt"]
    assert run("", 10) == 0
    assert sorted(os.listdir(tmp_path)) == ["new", "old"]
    assert len(table(new, BERT_KEY)) == 10


def test_memory_does_not_grow_with_the_checkpoint(tmp_path: Path) -> None:
    rows = 1 << 16
    shape = TensorInfo("F32", (rows, 1024), 0, rows * 4096)  # 256 MiB, of which no block is ever allocated
    tail = TensorInfo("F32", (6, 3), shape.stop, shape.stop + 72)
    with open(tmp_path / "x.safetensors", "wb") as file:
        file.write(encode_header({"words": shape, "wpe.weight": tail}))
        file.truncate(file.tell() + tail.stop)
    code = """
import resource, sys
import vec2emb.editing.checkpoints as c
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
c.resize_positions("x.safetensors", "y.safetensors", to=9, method="tile", offset=0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    run = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    grown = int(subprocess.run(run, cwd=tmp_path, env=environment, check=True, capture_output=True).stdout)
    assert grown < 16 << 10, "KiB"
    assert read_header(tmp_path / "y.safetensors").tensors["words"] == shape
    for path in tmp_path.iterdir():
        path.unlink()


def test_a_sinusoidal_table_in_a_checkpoint(tmp_path: Path) -> None:
    save_file({"position_embeddings.weight": sinusoidal(10, 8)}, tmp_path / "x.safetensors")
    report = resize_positions(tmp_path / "x.safetensors", tmp_path / "y.safetensors", to=5, method="truncate")
    assert "position_embeddings.weight is a sinusoidal table (vaswani)" in report.notes[1]
    np.testing.assert_array_equal(table(tmp_path / "y.safetensors", "position_embeddings.weight"), sinusoidal(5, 8))
