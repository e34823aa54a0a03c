"""The files that are measured: made once into a folder, from fixed seeds, and found there again by the next run.

    python benchmarks/inputs.py KIND FILE [ARGUMENTS]      make one (in a process of its own, for its memory)

`glove` is Stanford's glove.6B.50d.txt where the caller has it, else a stand-in of the same shape. The numbers of made
text have the shapes of that file's numbers: sign, leading zeros, how many digits, exponents, each as often as there.
Which digits they are is drawn, from a pool large enough that no processor learns it by heart.
"""

from __future__ import annotations

import functools
import hashlib
import os
import random
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SEED = 20140601
SMALL = 100  # how many times fewer rows there are to try things out
POOL = 200_000

# How many of a million numbers of glove.6B.50d.txt (every twentieth row of it) look so; d is a digit. Digits in front
# of the first that is not zero stand as they are.
SHAPES = {
    "0.ddddd": 351092, "-0.ddddd": 324789, "d.dddd": 54878, "0.0ddddd": 53150, "-0.0ddddd": 52888, "-d.dddd": 51137,
    "0.dddd": 35248, "-0.dddd": 32375, "d.ddd": 5563, "-0.00ddddd": 5387, "0.00ddddd": 5371, "-d.ddd": 5331,
    "0.0dddd": 5305, "-0.0dddd": 5257, "0.ddd": 3506, "-0.ddd": 3222, "d.dd": 564, "0.0ddd": 543, "0.00dddd": 529,
    "-0.0ddd": 520, "-0.000ddddd": 515, "0.000ddddd": 508, "-d.dd": 477, "-0.00dddd": 476, "0.dd": 370, "-0.dd": 309,
    "0.00ddd": 61, "0.0dd": 60, "d.dddde-05": 58, "0.000dddd": 56, "-0.000dddd": 55, "-0.00ddd": 51, "-d.dddde-05": 51,
    "-0.0dd": 50, "d.d": 46, "0.d": 45, "-d.d": 42, "-0.d": 30, "-d": 12, "d": 10, "0.0d": 8, "d.dddde-06": 7,
    "-d.ddde-05": 7, "-0.00dd": 6, "0.00dd": 6, "-d.dddde-06": 6,
}  # fmt: skip
# Likewise of ten thousand tokens: how many have 1, 2, 3 .. bytes.
TOKEN_LENGTHS = (3, 36, 351, 827, 1561, 1492, 1563, 1231, 981, 738, 463, 310, 165, 105, 64, 37, 25, 18, 12, 7)


@dataclass(frozen=True)
class Input:
    """A file that is measured."""

    path: Path
    rows: int
    dim: int
    kind: str  # glove, word2vec-binary

    @property
    def megabytes(self) -> float:
        return self.path.stat().st_size / 1e6


class Inputs:
    """The files in a folder; each is made when it is first asked for.

    Args:
        folder: where they stand.
        glove: glove.6B.50d.txt, or any other file of GloVe text; None for a stand-in.
        small: whether a hundredth of the rows will do.
    """

    def __init__(self, folder: Path, glove: Path | None, small: bool) -> None:
        self.folder = folder / ("small" if small else "full")
        self.folder.mkdir(parents=True, exist_ok=True)
        self._given = glove
        self._divisor = SMALL if small else 1

    @functools.cached_property
    def glove(self) -> Input:
        """400,000 rows of 50 values."""
        if self._given is None:
            return self.text("stand-in", 400_000, 50)
        with open(self._given, "rb") as file:
            dim = file.readline().rstrip().count(b" ")
            file.seek(0)
            rows = sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 20), b""))
        return Input(self._given, rows, dim, "glove")

    def text(self, name: str, rows: int, dim: int) -> Input:
        """GloVe text with made words and numbers."""
        rows //= self._divisor
        return Input(self._made("text", f"{name}-{rows}x{dim}.txt", rows, dim), rows, dim, "glove")

    def wide(self) -> Input:
        """100,000 rows of 300 values."""
        return self.text("made", 100_000, 300)

    def binary(self) -> Input:
        """Word2Vec binary of 300,000 rows of 300 values, as gensim and GoogleNews have it."""
        rows = 300_000 // self._divisor
        return Input(self._made("binary", f"made-{rows}x300.bin", rows, 300), rows, 300, "word2vec-binary")

    def gzipped(self) -> Input:
        """The GloVe text, compressed as `gzip` does it."""
        plain = self.glove
        stamp = f"{plain.path.stem}-{plain.path.stat().st_size}"
        return Input(self._made("gzip", f"{stamp}.txt.gz", plain.path), plain.rows, plain.dim, "glove")

    def words(self) -> Path:
        """30,000 words of the GloVe text, in any order."""
        plain = self.glove
        count = min(30_000 // self._divisor, plain.rows)
        stamp = f"{plain.path.stem}-{plain.path.stat().st_size}"
        return self._made("words", f"{stamp}-{count}-words.txt", plain.path, count)

    def tiny(self, like: Input) -> Path:
        """A file of that kind with two rows: converting it imports all that converting the large one does."""
        name = f"tiny-{like.kind}{'.gz' if like.path.suffix == '.gz' else ''}"
        path = self.folder / name
        if like.kind == "word2vec-binary":
            data = b"2 3\n" + b"".join(b"%s " % token + bytes([0, 0, 128, 63] * 3) for token in (b"a", b"b"))
        else:
            data = b"a 0.5 1.5 -2.5\nb -0.25 0.125 3\n"
        if path.suffix == ".gz":
            compressor = zlib.compressobj(wbits=31)
            data = compressor.compress(data) + compressor.flush()
        path.write_bytes(data)
        return path

    def _made(self, kind: str, name: str, *arguments: object) -> Path:
        path = self.folder / name
        if not path.exists():
            command = [sys.executable, __file__, kind, str(path), *map(str, arguments)]
            subprocess.run(command, check=True)
        return path


# Making them.


def numbers(generator: random.Random, count: int) -> list[str]:
    """`count` numbers with the shapes of GloVe's."""
    found = []
    for shape in generator.choices(list(SHAPES), weights=list(SHAPES.values()), k=count):
        body, exponent, power = shape.partition("e")
        first, last = body.index("d"), body.rindex("d")
        digits = [
            c if c != "d" else str(generator.randint(1 if i in (first, last) else 0, 9)) for i, c in enumerate(body)
        ]
        found.append("".join(digits) + exponent + power)
    return found


def tokens(generator: random.Random) -> Iterator[str]:
    """Endless different tokens with the lengths of GloVe's, but none so short that there are too few of them."""
    seen = set()
    lengths = range(1, len(TOKEN_LENGTHS) + 1)
    while True:
        for length in generator.choices(lengths, weights=TOKEN_LENGTHS, k=1000):
            token = "".join(generator.choices("etaoinshrdlucmfwypvbgkjqxz", k=max(length, 5)))
            if token not in seen:
                seen.add(token)
                yield token


def text_rows(rows: int, dim: int) -> Iterator[bytes]:
    """Rows of GloVe text."""
    generator = random.Random(SEED)
    pool = [number.encode() for number in numbers(generator, POOL)]
    words = tokens(random.Random(SEED + 1))
    for _ in range(rows):
        yield b" ".join([next(words).encode(), *generator.choices(pool, k=dim)]) + b"\n"


def binary_rows(rows: int, dim: int) -> Iterator[bytes]:
    """A file of Word2Vec binary in pieces: no line feed behind the vectors."""
    import numpy as np

    generator = np.random.default_rng(SEED)
    words = tokens(random.Random(SEED + 1))
    yield b"%d %d\n" % (rows, dim)
    for start in range(0, rows, 1000):
        vectors = generator.standard_normal((min(1000, rows - start), dim), np.float32) * np.float32(0.1)
        yield b"".join(next(words).encode() + b" " + vector.tobytes() for vector in vectors)


def compressed(source: Path) -> Iterator[bytes]:
    """A file as `gzip` compresses it."""
    compressor = zlib.compressobj(6, wbits=31)
    with open(source, "rb") as file:
        while block := file.read(1 << 20):
            yield compressor.compress(block)
    yield compressor.flush()


def some_words(source: Path, count: int) -> Iterator[bytes]:
    """Words of a file, one a line."""
    with open(source, "rb") as file:
        words = [line.split(b" ", 1)[0] for line in file]
    # Padding and unknown words would be taken for the special tokens that they are.
    words = [word for word in dict.fromkeys(words) if word not in (b"<pad>", b"<unk>", b"")]
    yield from (word + b"\n" for word in random.Random(SEED).sample(words, count))


def write(path: Path, pieces: Iterable[bytes]) -> None:
    """Write a file that is there whole or not at all."""
    part = path.with_name(path.name + f".{os.getpid()}.part")
    with open(part, "wb") as file:
        file.writelines(pieces)
        file.flush()
        os.fsync(file.fileno())
    part.rename(path)


def sha256(path: Path) -> str:
    """The digest of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main() -> None:
    kind, path, *rest = sys.argv[1:]
    makers: dict[str, Callable[[], Iterator[bytes]]] = {
        "text": lambda: text_rows(int(rest[0]), int(rest[1])),
        "binary": lambda: binary_rows(int(rest[0]), int(rest[1])),
        "gzip": lambda: compressed(Path(rest[0])),
        "words": lambda: some_words(Path(rest[0]), int(rest[1])),
    }
    write(Path(path), makers[kind]())


if __name__ == "__main__":
    main()
