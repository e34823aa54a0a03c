"""What a vocabulary costs in DataLoader workers, forked and spawned, beside a plain dict.

    python benchmarks/vocabulary_workers.py [VOCAB.TXT] [--words 400000] [--workers 8]

Each case runs in a process of its own: it loads the vocabulary, starts the workers and encodes every batch in them.
Reported are the seconds to load, the seconds from `iter(loader)` to the first batch, and the memory of the process and
its workers while all of them live, after the last batch: the sum of PSS in /proc/PID/smaps_rollup, which counts a page
that n processes share as 1/n each. Pages of files (libraries, a mapped vocab.txt) are shared with whatever else runs,
so that PSS moves with it; its anonymous part does not, and "above none" is of that part. The case `none` has no
vocabulary (its batches are zeros): what Python, torch and the texts cost alone. Batches are compared before anything is
printed: the two vocabularies have to give the same bytes. Linux only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
import warnings
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

import vec2emb
from vec2emb._kernel import NAME
from vec2emb.words.vocabulary import Vocabulary

DOCS, LENGTH, BATCH = 25_600, 100, 64  # so that the workers together look up 2.56 million tokens


class Texts(Dataset[str]):
    """Text i is a line of a file, which is mapped: it costs every case the same."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.ends = np.load(path + ".npy")

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, i: int) -> str:
        with open(self.path, "rb") as file:
            return os.pread(file.fileno(), self.ends[i + 1] - self.ends[i], self.ends[i]).decode()


class Collate:
    """Texts to ids, int64[B, T]: in the workers."""

    def __init__(self, vocab: Vocabulary | dict[str, int] | None) -> None:
        self.vocab = vocab

    def __call__(self, texts: list[str]) -> torch.Tensor:
        docs = [text.rstrip("\n").split(" ") for text in texts]
        if isinstance(self.vocab, Vocabulary):
            return torch.from_numpy(self.vocab.encode_batch(docs)[0])
        longest = max(map(len, docs))
        if self.vocab is None:
            return torch.zeros(len(docs), longest, dtype=torch.int64)
        get, unknown = self.vocab.get, self.vocab["<unk>"]
        return torch.tensor([[get(t, unknown) for t in doc] + [0] * (longest - len(doc)) for doc in docs])


def pss(pids: list[int]) -> tuple[int, int]:
    """The sums of the proportional set sizes and of their anonymous parts, in bytes."""
    sizes = {"Pss:": 0, "Pss_Anon:": 0}
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            for line in file:
                name, *rest = line.split()
                if name in sizes:
                    sizes[name] += int(rest[0]) * 1024
    return sizes["Pss:"], sizes["Pss_Anon:"]


def measure(kind: str, method: str, workers: int, folder: str) -> dict[str, Any]:
    """One case, in this process."""
    path = os.path.join(folder, "vocab.txt")
    start = time.perf_counter()
    vocab: Vocabulary | dict[str, int] | None = None
    if kind == "Vocabulary":
        vocab = Vocabulary.map_file(path, padding_idx=0, unk_idx=1)
    elif kind == "dict":
        with open(path, "rb") as file:
            vocab = {token: i for i, token in enumerate(file.read().decode().split("\n")[:-1])}
    load = time.perf_counter() - start
    warnings.filterwarnings("ignore", message="This DataLoader will create")  # more workers than cores: on purpose
    loader = DataLoader(
        Texts(os.path.join(folder, "texts.txt")),
        batch_size=BATCH,
        num_workers=workers,
        collate_fn=Collate(vocab),
        multiprocessing_context=method,
        persistent_workers=True,
    )
    digest = hashlib.sha256()
    start = time.perf_counter()
    first = 0.0
    for batch in loader:
        first = first or time.perf_counter() - start
        digest.update(batch.numpy().tobytes())
    total = time.perf_counter() - start
    children = [child.pid for child in multiprocessing.active_children() if child.pid is not None]
    memory, anonymous = pss([os.getpid(), *children])
    return {
        "load": load,
        "first": first,
        "total": total,
        "pss": memory,
        "anonymous": anonymous,
        "workers": len(children),
        "digest": digest.hexdigest(),
    }


def prepare(folder: str, given: str | None, count: int) -> int:
    """Write vocab.txt (padding, unknown, words) and the texts; returns the number of tokens."""
    rng = random.Random(0)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    if given is None:
        distinct: dict[str, None] = {}
        while len(distinct) < count:
            distinct["".join(rng.choices(letters, k=rng.randint(3, 12)))] = None
        words = list(distinct)
    else:
        words = [w for w in Vocabulary.from_file(given, pad_token=None, unk_token=None) if w not in ("<pad>", "<unk>")]
    vocab = Vocabulary(["<pad>", "<unk>", *words], pad_token="<pad>", unk_token="<unk>")
    vocab.to_file(os.path.join(folder, "vocab.txt"))
    plain = [word for word in words if " " not in word and word]
    ends = [0]
    with open(os.path.join(folder, "texts.txt"), "wb") as file:
        for _ in range(DOCS):
            doc = rng.choices(plain, k=rng.randint(LENGTH // 2, LENGTH * 3 // 2))
            doc[0] = "no-such-word-" + doc[0]
            ends.append(ends[-1] + file.write((" ".join(doc) + "\n").encode()))
    np.save(os.path.join(folder, "texts.txt.npy"), np.array(ends))
    return len(vocab)


def main() -> None:
    """Run every case and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vocab", nargs="?", help="a vocabulary file; words are generated without one")
    parser.add_argument("--words", type=int, default=400_000)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--case", nargs=3, metavar=("KIND", "METHOD", "FOLDER"), help="one case, as JSON")
    options = parser.parse_args()
    if options.case:
        kind, method, folder = options.case
        print(json.dumps(measure(kind, method, options.workers, folder)))
        return
    with tempfile.TemporaryDirectory() as folder:
        count = prepare(folder, options.vocab, options.words)
        results = {}
        for method in ("fork", "spawn"):
            for kind in ("none", "dict", "Vocabulary"):
                command = [sys.executable, __file__, "--workers", str(options.workers), "--case", kind, method, folder]
                run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                results[method, kind] = json.loads(run.stdout)
    digests = {result["digest"] for (_, kind), result in results.items() if kind != "none"}
    if len(digests) != 1 or any(result["workers"] != options.workers for result in results.values()):
        raise SystemExit("the cases disagree, or a worker ended early: nothing to report")
    print(
        f"{count:,} tokens, {options.workers} workers, {DOCS:,} texts of about {LENGTH} tokens; all batches equal\n"
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, torch {torch.__version__}, vec2emb {vec2emb.__version__} ({NAME})\n"
    )
    print(
        f"{'workers':8}{'vocabulary':12}{'load s':>8}{'first batch s':>15}{'all s':>8}"
        f"{'PSS MB':>9}{'anonymous':>11}{'above none':>12}"
    )
    for (method, kind), result in results.items():
        above = (result["anonymous"] - results[method, "none"]["anonymous"]) / 1e6
        print(
            f"{method:8}{kind:12}{result['load']:8.3f}{result['first']:15.2f}{result['total']:8.2f}"
            f"{result['pss'] / 1e6:9.0f}{result['anonymous'] / 1e6:11.0f}{above:12.0f}"
        )


if __name__ == "__main__":
    main()
