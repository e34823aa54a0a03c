"""The header of a safetensors file, read with suspicion and written by rule; the data are left where they are.

    file   = length header data
    length = the bytes of the header, 8 bytes, little-endian, at most 100,000,000
    header = a JSON object in UTF-8, filled up with spaces:
             {"__metadata__": {"key": "string", ..},
              "NAME": {"dtype": "F32", "shape": [V, D], "data_offsets": [START, STOP]}, ..}
    data   = the tensors, row-major and little-endian, which cover it without a gap; START and STOP count from its start

The `safetensors` package forgives duplicate keys, and writes only what is in memory. This module reads the header
alone, so that tensors of many gigabytes can be copied in pieces, and refuses all that the format does not allow.
https://github.com/huggingface/safetensors#format
"""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..errors import InputError, UsageError, shown
from ..io.filesystem import Identity, identity

HEADER_LIMIT = 100_000_000
METADATA = "__metadata__"
PIECE = 1 << 20  # bytes copied at a time

_LENGTH_BYTES = 8
_LARGEST = (1 << 64) - 1  # what the length of a tensor is counted in elsewhere

BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
"""Bits of one element, by the name of its type."""


class TensorInfo(NamedTuple):
    """Where a tensor stands: bytes `start` to `stop` of the data, which begin at `Header.data_start`."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


class Header(NamedTuple):
    """What a file holds: its metadata, its tensors in the order of the header, and the byte where the data begin."""

    metadata: dict[str, str]
    tensors: dict[str, TensorInfo]
    data_start: int


def byte_count(dtype: str, shape: tuple[int, ...]) -> int:
    """The bytes of a tensor.

    Raises:
        ValueError: the type is unknown, an extent is negative, the count is out of range or no whole number of bytes.
    """
    if dtype not in BITS:
        raise ValueError(f"the type {shown(dtype)} is not known")
    bits = BITS[dtype]
    for extent in shape:
        bits *= extent
        # Stops here rather than at the end: a product of hostile extents grows without bound.
        if not 0 <= bits <= _LARGEST:
            raise ValueError("the shape is out of range")
    if bits % 8:
        raise ValueError(f"{bits} bits are no whole number of bytes")
    return bits // 8


def read_header(source: str | os.PathLike[str] | int, *, path: str | None = None) -> Header:
    """The checked header of a file; of its data not a byte is read.

    Args:
        source: the file, or the descriptor of an open one (read with `pread`: its position stays).
        path: the name for messages, where `source` is a descriptor.

    Raises:
        InputError: the file cannot be opened, or is not a well-formed safetensors file.
    """
    if isinstance(source, int):
        return _read(source, path)
    path = os.fspath(source) if path is None else path
    with reading(os.fspath(source), label=path) as descriptor:
        return _read(descriptor, path)


def encode_header(
    tensors: Mapping[str, TensorInfo], metadata: Mapping[str, str] | None = None, *, align: int = 8
) -> bytes:
    """Length and header of a file, filled up with spaces so that the data begin at a multiple of `align` bytes.

    The same tensors and metadata in the same order always give the same bytes.

    Raises:
        UsageError: the metadata are not all strings, a name is reserved or no text, or the header would be too long.
    """
    entries: dict[str, Any] = {}
    if metadata:
        for key, value in metadata.items():
            if not isinstance(key, str) or not isinstance(value, str):
                raise UsageError(
                    "metadata-not-text",
                    "metadata of a safetensors file are strings",
                    expected="a string",
                    found=f"{key!r}: {value!r}",
                    hint="encode other values, for example with json.dumps",
                )
        entries[METADATA] = dict(metadata)
    for name, tensor in tensors.items():
        if name == METADATA:
            raise UsageError("tensor-name", f"a tensor cannot be called {METADATA}", hint="choose another key")
        entries[name] = {
            "dtype": tensor.dtype,
            "shape": list(tensor.shape),
            "data_offsets": [tensor.start, tensor.stop],
        }
    try:
        text = json.dumps(entries, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError as error:
        raise UsageError("tensor-name", "a key holds what UTF-8 cannot", found=shown(str(error.object))) from error
    text += b" " * (-(_LENGTH_BYTES + len(text)) % align)
    if len(text) > HEADER_LIMIT:
        raise UsageError(
            "header-too-long",
            "no reader accepts a safetensors header of this length",
            expected=f"at most {HEADER_LIMIT} bytes",
            found=str(len(text)),
            hint="keep large metadata in a file of their own",
        )
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


@contextlib.contextmanager
def reading(path: str, unchanged_since: Identity | None = None, *, label: str | None = None) -> Iterator[int]:
    """The descriptor of a file that must not change while it is open, nor since it had the given `identity`.

    Raises:
        InputError: the file cannot be opened, or has changed.
    """
    label = path if label is None else label
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except FileNotFoundError as error:
        raise InputError("not-found", "there is no such file", path=label) from error
    except OSError as error:
        raise InputError("cannot-open", f"the file cannot be opened ({error.strerror})", path=label) from error
    try:
        # A bundle may be given a name, or lose one, while it is opened: whoever publishes it does that.
        before = unchanged_since or identity(descriptor, links_may_change=True)
        yield descriptor
        if identity(descriptor, links_may_change=unchanged_since is None) != before:
            raise InputError("source-changed", "the file changed while it was read", path=label, hint="run it again")
    finally:
        os.close(descriptor)


def pieces(descriptor: int, start: int, stop: int, *, path: str | None = None) -> Iterator[bytes]:
    """Bytes `start` to `stop` of an open file, at most 1 MiB at a time.

    Raises:
        InputError: the file has become shorter, or reading fails.
    """
    while start < stop:
        try:
            piece = os.pread(descriptor, min(PIECE, stop - start), start)
        except OSError as error:
            raise InputError("read-failed", f"reading failed ({error.strerror})", path=path, offset=start) from error
        if not piece:
            raise InputError("file-cut", "the file ends early", path=path, expected=f"{stop} bytes", found=str(start))
        yield piece
        start += len(piece)


def _read(descriptor: int, path: str | None) -> Header:
    size = os.fstat(descriptor).st_size

    def fault(code: str, message: str, **details: Any) -> InputError:
        return InputError(code, message, path=path, **details)

    if size < _LENGTH_BYTES:
        raise fault("not-safetensors", "too short for a safetensors file", expected="8 bytes at least", found=str(size))
    length = int.from_bytes(b"".join(pieces(descriptor, 0, _LENGTH_BYTES, path=path)), "little")
    data_start = _LENGTH_BYTES + length
    if length > HEADER_LIMIT:
        raise fault(
            "header-too-long",
            "the first 8 bytes are not the length of a safetensors header",
            offset=0,
            expected=f"at most {HEADER_LIMIT}",
            found=str(length),
            hint="is it another kind of file?",
        )
    if data_start > size:
        raise fault(
            "file-cut", "the file ends inside its header", expected=f"{data_start} bytes at least", found=str(size)
        )
    entries = _parse(b"".join(pieces(descriptor, _LENGTH_BYTES, data_start, path=path)), fault)
    metadata = _metadata(entries.pop(METADATA, {}), fault)
    tensors = {name: _tensor(name, entry, fault) for name, entry in entries.items()}
    _check_cover(tensors, size - data_start, fault)
    return Header(metadata, tensors, data_start)


def _parse(text: bytes, fault: Any) -> dict[str, Any]:
    """The JSON of a header: an object without duplicate keys at any level."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise fault(
                    "header-duplicate-key",
                    "a key stands in the header twice",
                    found=shown(key),
                    hint="nobody can say which of the two is meant",
                )
            seen.add(key)
        return dict(pairs)

    def constant(name: str) -> None:
        raise ValueError(f"{name} is not JSON")

    if not text.startswith(b"{"):
        raise fault("not-safetensors", "no safetensors header", offset=8, expected="'{'", found=shown(text[:1]))
    try:
        entries = json.loads(text.decode(), object_pairs_hook=unique, parse_constant=constant)
    except InputError:
        raise
    # Bad JSON or UTF-8, a numeral of over 4,300 digits, or thousands of nested brackets.
    except (ValueError, RecursionError) as error:
        raise fault("header-not-json", f"the header is not JSON ({shown(str(error), 100)})", offset=8) from error
    return entries  # type: ignore[no-any-return]  # it starts with a brace


def _metadata(entries: Any, fault: Any) -> dict[str, str]:
    if not isinstance(entries, dict):
        raise fault("metadata-not-text", f"{METADATA} is not an object", found=shown(json.dumps(entries)))
    for key, value in entries.items():
        if not isinstance(value, str):
            raise fault(
                "metadata-not-text",
                "metadata of a safetensors file are strings",
                expected="a string",
                found=f"{shown(key)}: {shown(json.dumps(value))}",
                hint="have the writer quote the value; other readers refuse this file as well",
            )
    return entries


def _tensor(name: str, entry: Any, fault: Any) -> TensorInfo:
    def natural(value: Any) -> bool:
        return type(value) is int and 0 <= value <= _LARGEST  # a bool is an int too, but no count

    def bad(message: str, found: Any) -> InputError:
        return fault("header-tensor", f"tensor {shown(name)}: {message}", found=shown(json.dumps(found)))  # type: ignore[no-any-return]

    if not isinstance(entry, dict) or not {"dtype", "shape", "data_offsets"} <= entry.keys():
        raise bad("needs dtype, shape and data_offsets", entry)
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str):
        raise bad("dtype is not a string", dtype)
    if not isinstance(shape, list) or not all(map(natural, shape)):
        raise bad("shape is not a list of counts", shape)
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(natural, offsets)) or offsets[0] > offsets[1]:
        raise bad("data_offsets are not a start and a stop", offsets)
    start, stop = offsets
    try:
        expected = byte_count(dtype, tuple(shape))
    except ValueError as error:
        raise bad(str(error), entry) from error
    if stop - start != expected:
        raise fault(
            "header-tensor",
            f"tensor {shown(name)}: {dtype} of shape {shown(str(shape))} does not fill its place",
            expected=f"{expected} bytes",
            found=str(stop - start),
        )
    return TensorInfo(dtype, tuple(shape), start, stop)


def _check_cover(tensors: Mapping[str, TensorInfo], size: int, fault: Any) -> None:
    """Tensors follow each other without a gap, and the data end with the last: what all readers ask for."""
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (item[1].start, item[1].stop)):
        if tensor.start != end:
            kind = "overlaps the tensor before it" if tensor.start < end else "leaves a gap before it"
            raise fault(
                "header-tensor",
                f"tensor {shown(name)} {kind}",
                expected=f"a start at {end}",
                found=str(tensor.start),
            )
        end = tensor.stop
    if end > size:
        raise fault("file-cut", "the file ends early", expected=f"{end} bytes of data", found=str(size))
    if end < size:
        raise fault("trailing-bytes", "bytes follow the last tensor", expected=f"{end} bytes of data", found=str(size))
