"""Whether a result is right, before it is timed: by a slow and obvious loop, or by comparing two results.

    python benchmarks/proof.py text SOURCE BUNDLE          every row is what Python's `float` gives, rounded to float32
    python benchmarks/proof.py binary SOURCE BUNDLE        every row has the bytes of the file
    python benchmarks/proof.py some SOURCE BUNDLE WORDS    the rows of these words, in the order of their list
    python benchmarks/proof.py only SOURCE BUNDLE WORDS    likewise, in the order of the file
    python benchmarks/proof.py same BUNDLE OTHER           what another reader's result differs in
    python benchmarks/proof.py digest BUNDLE               the sha256 of the rows that came from the file

The first four print nothing and end with 0, or say what is wrong and end with 1. A process of its own each, so that its
memory is not counted to what is measured.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import struct
import sys
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

MODEL, VOCAB = "model.safetensors", "vocab.txt"
SPECIAL = 2  # rows for padding and unknown words stand in front

Row = tuple[bytes, bytes]  # a token, and its vector as float32


def rows_of_text(source: Path) -> Iterator[Row]:
    """The rows of GloVe text, the slow way."""
    with open(source, "rb") as file:
        for line in file:
            token, *values = line.rstrip(b"\n").split(b" ")
            yield token, array("f", map(float, values)).tobytes()


def rows_of_binary(source: Path) -> Iterator[Row]:
    """The rows of Word2Vec binary without line feeds, the slow way."""
    data = source.read_bytes()
    at = data.index(b"\n") + 1
    rows, dim = map(int, data[:at].split())
    for _ in range(rows):
        space = data.index(b" ", at)
        yield data[at:space], data[space + 1 : space + 1 + 4 * dim]
        at = space + 1 + 4 * dim
    if at != len(data):
        raise SystemExit(f"{source}: {len(data) - at} bytes too many")


def some_rows(source: Path, words: Path) -> Iterator[Row]:
    """Rows of text in the order of a list of words."""
    wanted = words.read_bytes().split(b"\n")[:-1]
    found = dict(only_rows(source, words))
    return ((word, found[word]) for word in wanted)


def only_rows(source: Path, words: Path) -> Iterator[Row]:
    """Rows of text whose words are in a list, in the order of the file."""
    wanted = set(words.read_bytes().split(b"\n")[:-1])
    with open(source, "rb") as file:
        for line in file:
            token, _, values = line.rstrip(b"\n").partition(b" ")
            if token in wanted:
                yield token, array("f", map(float, values.split(b" "))).tobytes()


def rows_of_bundle(bundle: Path) -> Iterator[Row]:
    """What stands in a folder: the tensor `weight` by the layout of safetensors, and the lines of the vocabulary."""
    words = (bundle / VOCAB).read_bytes().split(b"\n")[:-1]
    with open(bundle / MODEL, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        entry = json.loads(file.read(size))["weight"]
        start, stop = entry["data_offsets"]
        if entry["dtype"] != "F32" or stop - start != 4 * entry["shape"][0] * entry["shape"][1]:
            raise SystemExit(f"{bundle}: {entry}")
        if entry["shape"][0] != len(words):
            raise SystemExit(f"{bundle}: {len(words)} words for {entry['shape'][0]} rows")
        file.seek(8 + size + start)
        for word in words:
            yield word, file.read(4 * entry["shape"][1])


def first_difference(rows: Iterator[Row], bundle: Path) -> str:
    """Where a bundle is not what it should be; nothing if it is."""
    ours = rows_of_bundle(bundle)
    special = [next(ours) for _ in range(SPECIAL)]
    if [token for token, _ in special] != [b"<pad>", b"<unk>"] or any(special[0][1]):
        return "the special rows are not in front"
    count = 0
    for count, (expected, found) in enumerate(itertools.zip_longest(rows, ours), 1):
        if expected is None or found is None:
            return f"it has {'more' if expected is None else 'fewer'} rows than the file"
        if expected != found:
            what = f"the vector of {expected[0]!r}" if expected[0] == found[0] else f"{found[0]!r} for {expected[0]!r}"
            return f"row {count + SPECIAL - 1}: {what}"
    return "" if count else "no rows"


def difference(ours: Path, theirs: Path) -> str:
    """What another reader's result differs in; nothing if all is equal."""
    import numpy as np
    from safetensors.numpy import load_file

    words, other_words = (((path / VOCAB).read_bytes().split(b"\n")[:-1]) for path in (ours, theirs))
    rows, other_rows = (load_file(path / MODEL)["weight"] for path in (ours, theirs))
    words, rows = words[SPECIAL:], rows[SPECIAL:]
    if rows.shape != other_rows.shape:
        return f"{other_rows.shape[0]} rows x {other_rows.shape[1]} for {rows.shape[0]} x {rows.shape[1]}"
    found = []
    if count := sum(a != b for a, b in zip(words, other_words, strict=True)):
        found.append(f"{count:,} words")
    if count := int((rows.view(np.uint32) != other_rows.view(np.uint32)).sum()):
        found.append(f"{count:,} of {rows.size:,} values")
    return ", ".join(found)


def main() -> None:
    what, *names = sys.argv[1:]
    paths = [Path(name) for name in names]
    if what == "same":
        print(difference(*paths))
        return
    if what == "digest":
        digest = hashlib.sha256()
        for _, vector in itertools.islice(rows_of_bundle(paths[0]), SPECIAL, None):
            digest.update(vector)
        print(digest.hexdigest())
        return
    source, bundle, *words = paths
    ways: dict[str, Callable[[], Iterator[Row]]] = {
        "text": lambda: rows_of_text(source),
        "binary": lambda: rows_of_binary(source),
        "some": lambda: some_rows(source, words[0]),
        "only": lambda: only_rows(source, words[0]),
    }
    if found := first_difference(iter(ways[what]()), bundle):
        sys.exit(f"{source}: {found}")


if __name__ == "__main__":
    main()
