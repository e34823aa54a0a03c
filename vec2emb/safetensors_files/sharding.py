"""Tables cut into shards of whole rows, by the convention of PyTorch's distributed checkpoint.

    folder = shard-00001-model-00001-of-00001.safetensors shard-00002-.. vocab.txt vec2emb.json
    header = {"__metadata__": {"format": "pt", "DCP_VERSION": "1.0", "DCP_SHARDING_INFO": INFO, ..}, "KEY": ..}
    INFO   = JSON as text: {"KEY": {"saved_offsets": [ROW, 0]}, ..}

Every shard gives the tensor its full name and says with which row its part begins; the last number of a file's name
counts models, not shards. `torch.distributed.checkpoint.HuggingFaceStorageReader` takes all `.safetensors` files of a
folder for parts of one checkpoint. All shards have the same number of rows, except the last, which may have fewer. A
position table is not cut: it stands in a shard of its own behind the others.
https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
"""

# Without `from __future__ import annotations`: NamedTuple would compile each annotation while a command starts.

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..errors import UsageError
from ..options.sizes import parse_size

SIZE = "5GB"  # of a shard, where no other is asked for
MOST = 99_999  # five digits

_NAME = r"shard-\d{5}-model-00001-of-00001\.safetensors"
_VERSION, _INFO, _OFFSETS = "DCP_VERSION", "DCP_SHARDING_INFO", "saved_offsets"


class FileRecord(NamedTuple):
    """A file of a bundle as vec2emb.json records it; `rows` is the part of the word table that a shard holds.

    `io.digest` says what a digest is.
    """

    bytes: int
    digest: str
    rows: tuple[int, int] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields by name; `rows` where there are some."""
        rows = {} if self.rows is None else {"rows": list(self.rows)}
        return {"bytes": self.bytes, "digest": self.digest, **rows}


def shard_name(number: int) -> str:
    """The name of a shard, counted from 1."""
    return f"shard-{number:05}-model-00001-of-00001.safetensors"


def is_shard_name(name: str) -> bool:
    """Whether a base name is that of a shard."""
    return name.startswith("shard-") and re.fullmatch(_NAME, name) is not None


def shards_of(config: Any) -> list[str]:
    """The names of the shards that a vec2emb.json lists, in order; none for a table in one file."""
    files = config.get("files") if isinstance(config, dict) else None
    return sorted(filter(is_shard_name, files)) if isinstance(files, dict) else []


def listing_sha256(sums: Mapping[str, str]) -> str:
    """One SHA-256 for all shards: what `sha256sum shard-* | sha256sum` prints in their folder.

    Args:
        sums: the plain SHA-256 of each file, by base name.
    """
    import hashlib

    lines = (f"{sums[name]}  {name}\n" for name in sorted(filter(is_shard_name, sums)))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def rows_each(shard_size: int | str, header_bytes: int, row_bytes: int) -> int:
    """The rows of a full shard, so that no file is larger than `shard_size`.

    Raises:
        UsageError: it is no size, or not one row fits in.
    """
    rows = (parse_size("shard_size", shard_size) - header_bytes) // row_bytes
    if rows < 1:
        raise UsageError(
            "shard-size-small", "a shard holds no row", expected=f"{header_bytes + row_bytes} bytes at least",
            found=str(shard_size),
        )  # fmt: skip
    return rows


def sharding_metadata(keys: Iterable[str], row: int) -> dict[str, str]:
    """What the metadata of a shard say of the convention; its tensors all begin with the same row of their table."""
    info = {key: {_OFFSETS: [row, 0]} for key in keys}
    # As it stands, not escaped: a key may be long, and the header has its size.
    return {_VERSION: "1.0", _INFO: json.dumps(info, ensure_ascii=False, separators=(",", ":"))}


def begins_with(metadata: dict[str, str], key: str) -> int | None:
    """The row with which a shard's part of a tensor begins; None where its metadata do not say."""
    try:
        row, column = json.loads(metadata[_INFO])[key][_OFFSETS]
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
    return row if type(row) is int and row >= 0 and column == 0 else None
