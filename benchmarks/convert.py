"""A file of GloVe text to safetensors and a vocabulary: vec2emb beside other readers, as whole processes, in one run.

    python benchmarks/convert.py glove.6B.50d.txt --repetitions 5 --json convert.json

Every contender is a process of its own that reads the file and writes `weight` and the words, in float32; what others
read is saved with the safetensors package. vec2emb does the whole of `vec2emb convert`: rows for padding and unknown
words, checksums, and all flushed to the disk, which no other does. Before anything is timed each result is compared
with that of vec2emb, word for word and bit for bit; a contender whose table differs is reported so and still timed.
The runs alternate, so that a busy moment falls on all. Times are of the wall; memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PEERS = ("vec2emb", "pandas", "polars", "pyarrow", "gensim")
PACKAGES = ("vec2emb", "numpy", "safetensors", "pandas", "polars", "pyarrow", "gensim")
MODEL, VOCAB = "model.safetensors", "vocab.txt"


# The contenders: each reads GloVe text into its words and float32[V, D].


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
    """gensim's loader of Word2Vec text, which reads GloVe too."""
    from gensim.models import KeyedVectors

    vectors = KeyedVectors.load_word2vec_format(source, no_header=True)
    return vectors.index_to_key, vectors.vectors


READERS: dict[str, Callable[[str], tuple[list[str], Any]]] = {
    "pandas": read_with_pandas,
    "polars": read_with_polars,
    "pyarrow": read_with_pyarrow,
    "gensim": read_with_gensim,
}


def width_of(source: str) -> int:
    """D, by the first row."""
    with open(source, "rb") as file:
        return file.readline().rstrip().count(b" ")


def read_and_save(peer: str, source: str, target: str) -> None:
    """What a contender's process does."""
    import numpy as np
    from safetensors.numpy import save_file

    words, vectors = READERS[peer](source)
    os.makedirs(target)
    save_file({"weight": np.ascontiguousarray(vectors, np.float32)}, os.path.join(target, MODEL))
    with open(os.path.join(target, VOCAB), "w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{word}\n" for word in words)


# The comparison.


def command_of(peer: str, source: str, target: str) -> list[str]:
    if peer == "vec2emb":
        return [sys.executable, "-m", "vec2emb", "convert", source, "-o", target, "--quiet"]
    return [sys.executable, __file__, source, "--as", peer, "--to", target]


def timed(command: list[str]) -> tuple[float, int]:
    """Seconds of a process, and bytes of its peak memory."""
    begun = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def difference(ours: Path, theirs: Path) -> str:
    """What two tables differ in; nothing if all is equal. Ours begins with padding and unknown."""
    import numpy as np
    from safetensors.numpy import load_file

    words, other_words = (((path / VOCAB).read_bytes().decode().split("\n")[:-1]) for path in (ours, theirs))
    rows, other_rows = (load_file(path / MODEL)["weight"] for path in (ours, theirs))
    words, rows = words[2:], rows[2:]
    if rows.shape != other_rows.shape:
        return f"{other_rows.shape[0]} rows x {other_rows.shape[1]} for {rows.shape[0]} x {rows.shape[1]}"
    found = []
    if count := sum(a != b for a, b in zip(words, other_words, strict=True)):
        found.append(f"{count} words")
    if count := int((rows.view(np.uint32) != other_rows.view(np.uint32)).sum()):
        found.append(f"{count} of {rows.size} values")
    return ", ".join(found)


def checked(peers: list[str], source: str, place: Path) -> dict[str, str]:
    """Run each contender once, untimed, and compare: its differences from vec2emb."""
    subprocess.run(command_of("vec2emb", source, str(place / "vec2emb")), check=True)
    found = {"vec2emb": ""}
    for peer in [peer for peer in peers if peer != "vec2emb"]:
        subprocess.run(command_of(peer, source, str(place / peer)), check=True)
        script = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import convert; from pathlib import Path"
        )
        script += f"; print(convert.difference(Path({str(place / 'vec2emb')!r}), Path({str(place / peer)!r})))"
        # In a process of its own: memory of this one would be counted to the contenders.
        done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        found[peer] = done.stdout.strip()
        shutil.rmtree(place / peer)
    return found


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    processor = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            processor = next(
                (line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), processor
            )
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": processor, "cores": cores, "system": platform.platform(), "python": platform.python_version(),
        "load_before": round(load, 2), "versions": versions,
    }  # fmt: skip


def kernel() -> str:
    done = subprocess.run([sys.executable, "-m", "vec2emb", "--version"], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def compare(source: str, peers: list[str], repetitions: int, folder: str | None) -> dict[str, Any]:
    """Check, then time."""
    about = {**machine(), "kernel": kernel(), "source": os.path.basename(source), "bytes": os.path.getsize(source)}
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        differences = checked(peers, source, place)  # it also warms the cache of the system
        runs: dict[str, list[tuple[float, int]]] = {peer: [] for peer in peers}
        for _ in range(repetitions):
            for peer in peers:
                target = place / "timed"
                runs[peer].append(timed(command_of(peer, source, str(target))))
                shutil.rmtree(target)
    results = {
        peer: {
            "seconds": [round(seconds, 3) for seconds, _ in timings],
            "median": round(statistics.median(seconds for seconds, _ in timings), 3),
            "peak_bytes": max(peak for _, peak in timings),
            "differs_in": differences[peer],
        }
        for peer, timings in runs.items()
    }
    return {"about": about, "repetitions": repetitions, "results": results}


def shown(measured: dict[str, Any]) -> str:
    """The table."""
    about, results = measured["about"], measured["results"]
    ours = results["vec2emb"]["median"]
    lines = [
        f"{about['source']}, {about['bytes'] / 1e6:,.1f} MB, to safetensors and vocabulary, whole processes,"
        f" {measured['repetitions']} runs each, alternating",
        f"{about['processor']}, {about['cores']} cores, load {about['load_before']}; {about['system']}",
        f"Python {about['python']}; " + ", ".join(f"{name} {version}" for name, version in about["versions"].items()),
        about["kernel"],
        "",
        f"{'reader':10} {'median s':>9} {'fastest':>9} {'slowest':>9} {'times ours':>11} {'peak MB':>8}  result",
    ]
    for peer, facts in results.items():
        result = f"differs in {facts['differs_in']}" if facts["differs_in"] else "equal, bit for bit"
        lines.append(
            f"{peer:10} {facts['median']:9.2f} {min(facts['seconds']):9.2f} {max(facts['seconds']):9.2f}"
            f" {facts['median'] / ours:11.1f} {facts['peak_bytes'] / 1e6:8.0f}  {result}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("source", help="GloVe text")
    parser.add_argument("--repetitions", type=int, default=5, metavar="N", help="runs of each [default: 5]")
    parser.add_argument("--peers", default=",".join(PEERS), help="which, with commas [default: all]")
    parser.add_argument("--json", metavar="FILE", help="write the figures there too")
    parser.add_argument("--folder", help="where to write the results of the runs [default: the system's]")
    parser.add_argument("--as", dest="peer", choices=[*READERS], help=argparse.SUPPRESS)
    parser.add_argument("--to", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        read_and_save(options.peer, options.source, options.to)
        return
    peers = ["vec2emb", *(peer for peer in options.peers.split(",") if peer != "vec2emb")]
    if unknown := set(peers) - set(PEERS):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    measured = compare(os.path.abspath(options.source), peers, options.repetitions, options.folder)
    print(shown(measured))
    if options.json:
        Path(options.json).write_text(json.dumps(measured, indent=2) + "\n")


if __name__ == "__main__":
    main()
