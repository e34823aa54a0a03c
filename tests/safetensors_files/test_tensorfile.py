"""Safetensors headers: the `safetensors` package reads ours and we read its, and what no file may hold is refused."""

from __future__ import annotations

import json
import os
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError
from safetensors import deserialize as _deserialize
from safetensors.numpy import load, save_file

from vec2emb.errors import InputError, UsageError
from vec2emb.io.filesystem import identity
from vec2emb.safetensors_files.header import (
    BITS,
    HEADER_LIMIT,
    PIECE,
    Header,
    TensorInfo,
    byte_count,
    encode_header,
    pieces,
    read_header,
    reading,
)

deserialize: Any = _deserialize
CASES = Path(__file__).parents[2] / "fixtures" / "cases"


def raw(header: Any, data: bytes = b"") -> bytes:
    """A file with any header, however wrong."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def one(**changes: Any) -> dict[str, Any]:
    """A header with one good tensor of 8 bytes, changed."""
    return {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **changes}}


def test_reads_what_the_package_writes(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    arrays: dict[str, Any] = {
        "a": np.ones((3, 2), np.float32),
        "b": np.arange(5),
        "scalar": np.array(2.5),
        "none": np.zeros((0, 4)),
    }
    save_file(arrays, path, metadata={"format": "pt", "note": "ä"})
    header = read_header(path)
    assert header.metadata == {"format": "pt", "note": "ä"}
    assert {name: (t.dtype, t.shape) for name, t in header.tensors.items()} == {
        "a": ("F32", (3, 2)),
        "b": ("I64", (5,)),
        "scalar": ("F64", ()),
        "none": ("F64", (0, 4)),
    }
    content = path.read_bytes()
    for name, tensor in header.tensors.items():
        data = content[header.data_start + tensor.start : header.data_start + tensor.stop]
        assert data == arrays[name].tobytes()


@pytest.mark.parametrize("align", [8, 64, 4096])
def test_the_package_reads_what_we_write(align: int) -> None:
    tensors = {"word_embeddings.weight": TensorInfo("F32", (2, 3), 0, 24), "x": TensorInfo("I64", (1,), 24, 32)}
    text = encode_header(tensors, {"format": "pt", "dims": "[2, 3]"}, align=align)
    assert len(text) % align == 0
    assert len(text) - 8 == int.from_bytes(text[:8], "little")
    values = np.arange(6, dtype=np.float32)
    loaded = load(text + values.tobytes() + np.array([7]).tobytes())
    np.testing.assert_array_equal(loaded["word_embeddings.weight"], values.reshape(2, 3))
    np.testing.assert_array_equal(loaded["x"], [7])


def test_the_bytes_of_a_header_by_hand() -> None:
    text = encode_header({"w": TensorInfo("F16", (1, 2), 0, 4)}, {"format": "pt"})
    expected = b'{"__metadata__":{"format":"pt"},"w":{"dtype":"F16","shape":[1,2],"data_offsets":[0,4]}}'
    assert text == struct.pack("<Q", 88) + expected.ljust(88)
    assert encode_header({}) == struct.pack("<Q", 8) + b"{}      "


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file to write again and again."""
    return tmp_path_factory.mktemp("tensorfile") / "x"


names = st.text(st.characters(codec="utf-8"), max_size=20).filter(lambda name: name != "__metadata__")


shapes = st.tuples(st.sampled_from(sorted(BITS)), st.lists(st.integers(0, 3), max_size=3))


@settings(deadline=None, max_examples=60)
@given(
    st.dictionaries(names, shapes, max_size=5),
    st.dictionaries(names, st.text(st.characters(codec="utf-8"))),
    st.sampled_from([1, 8, 4096]),
)
def test_read_after_write_is_the_identity(path: Path, entries: Any, metadata: dict[str, str], align: int) -> None:
    tensors, end = {}, 0
    for name, (dtype, shape) in entries.items():
        if BITS[dtype] % 8:
            shape = [*shape, 4]  # a whole number of bytes
        size = byte_count(dtype, tuple(shape))
        tensors[name] = TensorInfo(dtype, tuple(shape), end, end + size)
        end += size
    text = encode_header(tensors, metadata, align=align)
    path.write_bytes(text + bytes(end))
    assert read_header(path) == Header(metadata, tensors, len(text))
    assert list(read_header(path).tensors) == list(tensors), "the order is kept"
    assert len(deserialize(text + bytes(end))) == len(tensors), "the package agrees"


def test_a_descriptor_keeps_its_position(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(raw(one(), bytes(8)))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.lseek(descriptor, 3, os.SEEK_SET)
        assert read_header(descriptor, path="x") == read_header(path)
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 3
    finally:
        os.close(descriptor)


# What must be refused, and what the message must say.

OVERLAP = {**one(), "b": {"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}}
GAP = {**one(), "b": {"dtype": "U8", "shape": [4], "data_offsets": [9, 13]}}
TWICE = b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'

REFUSED = {
    "empty file": (b"", "not-safetensors", "too short"),
    "seven bytes": (b"\x02" + bytes(6), "not-safetensors", "expected 8 bytes at least, found 7"),
    "text file": (b"the 0.418 0.24968 -0.41242\n", "header-too-long", "is it another kind of file?"),
    "huge length": (struct.pack("<Q", HEADER_LIMIT + 1) + b"{}", "header-too-long", "expected at most 100000000"),
    "cut in header": (struct.pack("<Q", HEADER_LIMIT) + b"{}", "file-cut", "the file ends inside its header"),
    "no brace": (raw(b" {}"), "not-safetensors", "byte 8: no safetensors header: expected '{', found ' '"),
    "no json": (raw(b"{'a': 1}"), "header-not-json", "the header is not JSON"),
    "bad utf-8": (raw(b'{"\xff": 1}'), "header-not-json", "the header is not JSON"),
    "two objects": (raw(b"{}{}"), "header-not-json", "Extra data"),
    "NaN": (raw(b'{"__metadata__": NaN}'), "header-not-json", "NaN is not JSON"),
    "deep": (raw(b'{"a":' + b"[" * 200_000), "header-not-json", "the header is not JSON"),
    "long numeral": (raw(b'{"a":' + b"9" * 5000 + b"}"), "header-not-json", "the header is not JSON"),
    "duplicate tensor": (raw(TWICE, b"x"), "header-duplicate-key", "found 'a'"),
    "duplicate metadata": (raw(b'{"__metadata__":{"k":"1","k":"2"}}'), "header-duplicate-key", "found 'k'"),
    "metadata is a list": (raw({"__metadata__": []}), "metadata-not-text", "__metadata__ is not an object"),
    "metadata is a number": (raw({"__metadata__": {"k": 1}}), "metadata-not-text", "expected a string, found 'k': '1'"),
    "metadata is null": (raw({"__metadata__": {"k": None}}), "metadata-not-text", "'null'"),
    "no dict": (raw({"a": [1]}), "header-tensor", "tensor 'a': needs dtype, shape and data_offsets"),
    "no shape": (raw({"a": {"dtype": "F32", "data_offsets": [0, 4]}}), "header-tensor", "needs dtype, shape"),
    "unknown type": (raw(one(dtype="F33"), bytes(8)), "header-tensor", "the type 'F33' is not known"),
    "type no string": (raw(one(dtype=4), bytes(8)), "header-tensor", "dtype is not a string"),
    "negative extent": (raw(one(shape=[-2]), bytes(8)), "header-tensor", "shape is not a list of counts"),
    "float extent": (raw(one(shape=[2.0]), bytes(8)), "header-tensor", "shape is not a list of counts"),
    "true extent": (raw(one(shape=[True, 2]), bytes(8)), "header-tensor", "shape is not a list of counts"),
    "shape overflow": (raw(one(shape=[1 << 40, 1 << 40])), "header-tensor", "the shape is out of range"),
    "shape overflow hidden by zero": (raw(one(shape=[1 << 40, 1 << 40, 0])), "header-tensor", "out of range"),
    "half a byte": (raw(one(dtype="F4", shape=[3]), bytes(8)), "header-tensor", "12 bits are no whole number of bytes"),
    "negative offset": (raw(one(data_offsets=[-8, 0])), "header-tensor", "data_offsets are not a start and a stop"),
    "offsets backwards": (raw(one(data_offsets=[8, 0]), bytes(8)), "header-tensor", "not a start and a stop"),
    "three offsets": (raw(one(data_offsets=[0, 4, 8]), bytes(8)), "header-tensor", "not a start and a stop"),
    "wrong size": (raw(one(shape=[3]), bytes(8)), "header-tensor", "'[3]' does not fill its place: expected 12 bytes"),
    "overlap": (raw(OVERLAP, bytes(8)), "header-tensor", "'b' overlaps the tensor before it: expected a start at 8"),
    "gap": (raw(GAP, bytes(13)), "header-tensor", "'b' leaves a gap before it: expected a start at 8, found 9"),
    "out of range": (raw(one(), bytes(7)), "file-cut", "expected 8 bytes of data, found 7"),
    "trailing bytes": (raw(one(), bytes(9)), "trailing-bytes", "expected 8 bytes of data, found 9"),
}
# The package forgives these; two tensors of one name, or a header that is not at byte 8, are still no file to trust.
FORGIVEN = {"no brace", "duplicate tensor", "duplicate metadata"}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, tmp_path: Path) -> None:
    content, code, message = REFUSED[name]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_header(path)
    assert caught.value.code == code
    assert message in str(caught.value)
    assert str(path) in str(caught.value)
    if name not in FORGIVEN:
        with pytest.raises(SafetensorError):
            deserialize(content)


def test_case_s03a_metadata_that_is_no_string() -> None:
    path = CASES / "S03a" / "int-metadata.safetensors"
    with pytest.raises(InputError, match="metadata of a safetensors file are strings") as caught:
        read_header(path)
    assert caught.value.code == "metadata-not-text"
    assert "'padding_idx': '0'" in str(caught.value)


def test_cases_p01a_and_p03a_read() -> None:
    bert = read_header(CASES / "P01a" / "bert-positions.safetensors")
    assert bert.tensors["embeddings.position_embeddings.weight"].shape == (4, 3)
    assert bert.tensors["embeddings.position_ids"].dtype == "I64"
    assert read_header(CASES / "P03a" / "roberta-positions.safetensors").metadata["padding_idx"] == "1"


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file") as caught:
        read_header(tmp_path / "nothing")
    assert caught.value.code == "not-found"
    with pytest.raises(InputError):
        read_header(tmp_path)


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_a_damaged_file_is_refused_or_read_and_never_crashes(path: Path, data: st.DataObject) -> None:
    content = bytearray(raw({"__metadata__": {"format": "pt"}, **one()}, bytes(8)))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))] if data.draw(st.booleans()) else content)
    try:
        header = read_header(path)
    except InputError:
        return
    assert sum(t.stop - t.start for t in header.tensors.values()) == path.stat().st_size - header.data_start
    deserialize(path.read_bytes())


@pytest.mark.parametrize(
    ("tensors", "metadata", "code", "message"),
    [
        ({}, {"dims": 3}, "metadata-not-text", "expected a string, found 'dims': 3"),
        ({}, {"dims": None}, "metadata-not-text", "json.dumps"),
        ({"__metadata__": TensorInfo("U8", (1,), 0, 1)}, {}, "tensor-name", "cannot be called __metadata__"),
        ({"\ud800": TensorInfo("U8", (1,), 0, 1)}, {}, "tensor-name", "a key holds what UTF-8 cannot"),
        ({}, {"vocabulary": "x" * 1000}, "header-too-long", "keep large metadata in a file of their own"),
    ],
)
def test_headers_that_are_not_written(
    tensors: Any, metadata: Any, code: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vec2emb.safetensors_files.header.HEADER_LIMIT", 1000)
    with pytest.raises(UsageError) as caught:
        encode_header(tensors, metadata)
    assert caught.value.code == code
    assert message in str(caught.value)


def test_pieces(tmp_path: Path) -> None:
    path = tmp_path / "x"
    content = os.urandom(2 * PIECE + 100)
    path.write_bytes(content)
    with reading(str(path)) as descriptor:
        found = list(pieces(descriptor, 50, len(content)))
        assert b"".join(found) == content[50:]
        assert max(map(len, found)) == PIECE
        assert list(pieces(descriptor, 7, 7)) == []
        with pytest.raises(InputError, match="the file ends early") as caught:
            list(pieces(descriptor, 0, len(content) + 1))
    assert caught.value.code == "file-cut"


@pytest.mark.parametrize("now", [b"afterwards", b"before"], ids=["longer", "of-the-old-time"])
def test_a_file_that_changes_is_noticed(tmp_path: Path, now: bytes) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"before")
    with reading(str(path)) as descriptor:
        before = identity(descriptor)
    status = path.stat()
    time.sleep(0.02)  # the system's clock for files is coarse
    path.write_bytes(now)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(InputError, match="the file changed while it was read"), reading(str(path), before):
        pass


def test_numpy_is_not_needed() -> None:
    import subprocess
    import sys

    modules = "vec2emb.safetensors_files.header, vec2emb.positions.key_styles"
    code = f"import sys, {modules}; assert not {{'numpy', 'torch', 'dataclasses'}} & {{*sys.modules}}"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
