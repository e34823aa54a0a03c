"""The others: what a process does that stands beside vec2emb.

    python benchmarks/peers.py PEER SOURCE [TARGET]

Readers turn SOURCE into words and float32[V, D] and save both with the safetensors package. Decompressors read SOURCE
and throw its bytes away. `--check` makes a decompressor print the size and CRC of what it read, `--idle` makes it end
before it reads, which shows what its start costs.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable
from typing import Any

MODEL, VOCAB = "model.safetensors", "vocab.txt"
BUFFER = 1 << 18  # bytes; 128 KB and 1 MB were both slower with isal


# Readers of GloVe text.


def width_of(source: str) -> int:
    """D, by the first row."""
    with open(source, "rb") as file:
        return file.readline().rstrip().count(b" ")


def read_with_pandas(source: str) -> tuple[list[str], Any]:
    """pandas' C reader, told all that makes it fast: no quotes, no missing values, float32 from the start."""
    import csv

    import numpy as np
    import pandas as pd

    dim = width_of(source)
    kinds: Any = {0: str, **dict.fromkeys(range(1, dim + 1), np.float32)}
    frame = pd.read_csv(
        source, sep=" ", header=None, quoting=csv.QUOTE_NONE, na_filter=False, dtype=kinds, engine="c",
        encoding="utf-8", lineterminator="\n",
    )  # fmt: skip
    return frame[0].tolist(), frame.iloc[:, 1:].to_numpy(np.float32)


def read_with_polars(source: str) -> tuple[list[str], Any]:
    """polars' CSV reader, with as many threads as it likes."""
    import polars as pl

    schema: Any = {"0": pl.String, **{str(i): pl.Float32 for i in range(1, width_of(source) + 1)}}
    frame = pl.read_csv(source, separator=" ", has_header=False, quote_char=None, schema=schema)
    return frame["0"].to_list(), frame[:, 1:].to_numpy(order="c")


def read_with_pyarrow(source: str) -> tuple[list[str], Any]:
    """pyarrow's CSV reader, with as many threads as it likes."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import csv

    dim = width_of(source)
    names = [str(i) for i in range(dim + 1)]
    kinds = {"0": pa.string(), **dict.fromkeys(names[1:], pa.float32())}
    table = csv.read_csv(
        source,
        csv.ReadOptions(column_names=names),
        csv.ParseOptions(delimiter=" ", quote_char=False),
        csv.ConvertOptions(column_types=kinds, null_values=[]),
    )
    vectors = np.empty((len(table), dim), np.float32)
    for i in range(dim):
        vectors[:, i] = table.column(i + 1).to_numpy()
    return table.column(0).to_pylist(), vectors


def read_with_gensim(source: str) -> tuple[list[str], Any]:
    """gensim's loader of Word2Vec files, which reads GloVe too."""
    from gensim.models import KeyedVectors

    binary = source.endswith(".bin")
    vectors = KeyedVectors.load_word2vec_format(source, binary=binary, no_header=not binary)
    return vectors.index_to_key, vectors.vectors


READERS: dict[str, Callable[[str], tuple[list[str], Any]]] = {
    "pandas": read_with_pandas,
    "polars": read_with_polars,
    "pyarrow": read_with_pyarrow,
    "gensim": read_with_gensim,
}


def read_and_save(peer: str, source: str, target: str) -> None:
    """All of what a reader's process does; safetensors' own writer does not wait for the disk."""
    import numpy as np
    from safetensors.numpy import save_file

    words, vectors = READERS[peer](source)
    os.makedirs(target)
    save_file({"weight": np.ascontiguousarray(vectors, np.float32)}, os.path.join(target, MODEL))
    with open(os.path.join(target, VOCAB), "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{word}\n" for word in words)


# Decompressors.


def open_with_isal(source: str) -> Any:
    from isal import igzip

    module: Any = igzip  # has no types
    return module.open(source, "rb")


def open_with_zlib_ng(source: str) -> Any:
    from zlib_ng import gzip_ng

    module: Any = gzip_ng  # nor has this one
    return module.open(source, "rb")


DECOMPRESSORS: dict[str, Callable[[str], Any]] = {"isal": open_with_isal, "zlib_ng": open_with_zlib_ng}


def decompress(peer: str, source: str, how: str) -> None:
    """All of what a decompressor's process does."""
    buffer = bytearray(BUFFER)
    with DECOMPRESSORS[peer](source) as file, memoryview(buffer) as view:
        if how == "--check":
            import zlib

            size = check = 0
            while count := file.readinto(buffer):
                size, check = size + count, zlib.crc32(view[:count], check)
            print(size, check)
        elif how != "--idle":
            while file.readinto(buffer):
                pass


def is_there(peer: str) -> bool:
    """Whether a peer's package is installed."""
    return importlib.util.find_spec(peer) is not None


def main() -> None:
    peer, source, *rest = sys.argv[1:]
    if peer in READERS:
        read_and_save(peer, source, rest[0])
    else:
        decompress(peer, source, *(rest or [""]))


if __name__ == "__main__":
    main()
