"""Counting the tokens of a text, beside DuckDB, Polars and a Counter: seconds and peak memory of whole processes.

    python benchmarks/counting.py [CORPUS.txt] [--megabytes 200] [--runs 3] [--json FILE]

Without a file a text of words with Zipf's frequencies is made. Each case runs in a process of its own, from its start
to the counts in order (by falling count, then bytes), written as Parquet; its peak memory is what the system says of
it. A case whose counts are not those of `collections.Counter(data.split())`, in that order, is no result: nothing is
printed. DuckDB and Polars split at the six characters of ASCII white space, as bytes.split() does. Reported is the
fastest of the runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from importlib import metadata
from typing import Any

SPACES = r"[ \t\n\x0b\x0c\r]+"
CASES = {
    "vec2emb": "threads, one a core",
    "vec2emb-1": "one thread",
    "vec2emb-spill": "64 MB, through Parquet and DuckDB",
    "duckdb": "string_split_regex, unnest, GROUP BY",
    "polars": "lazy, streaming, str.split",
    "counter": "one pass, data.split()",
}


def with_vec2emb(corpus: str, out: str, **options: Any) -> None:
    import vec2emb

    vec2emb.count_tokens(corpus, **options).save(out)


def with_duckdb(corpus: str, out: str) -> None:
    import duckdb

    # Lines are read as one column: neither a delimiter nor a quote can stand in text.
    duckdb.sql(
        f"""COPY (
            SELECT token, count(*)::BIGINT AS count FROM (
                SELECT unnest(string_split_regex(line, '{SPACES}')) AS token
                FROM read_csv('{corpus}', columns={{'line': 'VARCHAR'}}, delim='\x01', quote='', escape='',
                              header=false, auto_detect=false, new_line='\\n', max_line_size=100000000))
            WHERE token <> '' GROUP BY token ORDER BY count DESC, encode(token))
        TO '{out}' (FORMAT parquet)"""
    )


def with_polars(corpus: str, out: str) -> None:
    import polars as pl

    lines = pl.scan_csv(corpus, has_header=False, separator="\x01", quote_char=None, new_columns=["line"])
    tokens = lines.select(pl.col("line").str.replace_all(r"[\t\x0b\x0c\r]", " ").str.split(" ").alias("token"))
    tokens = tokens.explode("token").filter(pl.col("token").str.len_bytes() > 0)
    counts = tokens.group_by("token").agg(pl.len().cast(pl.Int64).alias("count"))
    counts.sort(["count", "token"], descending=[True, False]).collect(engine="streaming").write_parquet(out)


def with_counter(corpus: str, out: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    with open(corpus, "rb") as file:
        counts = sorted(Counter(file.read().split()).items(), key=lambda item: (-item[1], item[0]))
    tokens = pa.array([token for token, _ in counts], pa.binary()).cast(pa.string())
    pyarrow.parquet.write_table(pa.table({"token": tokens, "count": [count for _, count in counts]}), out)


def run_case(name: str, corpus: str, out: str) -> None:
    if name == "duckdb":
        with_duckdb(corpus, out)
    elif name == "polars":
        with_polars(corpus, out)
    elif name == "counter":
        with_counter(corpus, out)
    else:
        options: dict[str, dict[str, Any]] = {"vec2emb-1": {"threads": 1}, "vec2emb-spill": {"memory": "64MB"}}
        with_vec2emb(corpus, out, **options.get(name, {}))


def digest_of(path: str) -> str:
    """Of all tokens and counts in their order, however the file has packed them."""
    import pyarrow.parquet

    digest = hashlib.sha256()
    for batch in pyarrow.parquet.ParquetFile(path).iter_batches(columns=["token", "count"]):
        for token, count in zip(batch["token"].to_pylist(), batch["count"].to_pylist(), strict=True):
            digest.update(f"{token}\n{count}\n".encode())
    return digest.hexdigest()


def measure(name: str, corpus: str, folder: str) -> tuple[float, float, str]:
    """Seconds, peak memory in MB, and what came out."""
    out = os.path.join(folder, f"{name}.parquet")
    if os.path.exists(out):
        os.unlink(out)  # of the run before
    command = [sys.executable, __file__, corpus, "--case", name, out]
    begun = time.perf_counter()
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - begun
    return seconds, int(done.stdout) / 1024, digest_of(out)


def make_corpus(path: str, size: int) -> None:
    """Words of random letters, the more frequent the shorter; 20 a line."""
    import numpy as np

    rng = np.random.default_rng(0)
    count = 1_000_000
    sizes = np.clip(rng.normal(2 + np.log2(np.arange(count) + 1) / 2.2, 1.5), 1, 20).astype(int)
    letters = np.frombuffer(b"etaoinshrdlucmfwypvbgkjqxz", np.uint8)
    words = np.array([letters[rng.integers(0, 26, n)].tobytes() for n in sizes.tolist()], object)
    with open(path, "wb") as file:
        while file.tell() < size:
            ranks = rng.zipf(1.1, 2_000_000) - 1
            chosen = words[ranks[ranks < count]].tolist()
            for start in range(0, len(chosen), 20):
                file.write(b" ".join(chosen[start : start + 20]) + b"\n")


def main() -> None:
    """Run every case and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="?", help="a text; one is made without it")
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--case", nargs=2, metavar=("NAME", "OUT"), help="one case in this process")
    options = parser.parse_args()
    if options.case:
        run_case(options.case[0], options.corpus, options.case[1])
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
        return
    with tempfile.TemporaryDirectory() as folder:
        corpus = options.corpus
        if corpus is None:
            corpus = os.path.join(folder, "zipf.txt")
            make_corpus(corpus, options.megabytes * 1_000_000)
        expected = measure("counter", corpus, folder)[2]  # and the file is in the system's cache
        results: dict[str, dict[str, float]] = {}
        for name in options.only:
            runs = [measure(name, corpus, folder) for _ in range(options.runs)]
            if {run[2] for run in runs} != {expected}:
                raise SystemExit(f"{name} counts otherwise than Counter: nothing to report")
            results[name] = {"seconds": min(run[0] for run in runs), "megabytes": max(run[1] for run in runs)}
        size = os.path.getsize(corpus)
        import pyarrow.parquet

        rows = pyarrow.parquet.ParquetFile(os.path.join(folder, "counter.parquet")).metadata.num_rows
    packages = {name: metadata.version(name) for name in ("vec2emb", "duckdb", "polars", "pyarrow")}
    machine = (
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    )
    print(f"{size / 1e6:,.0f} MB, {rows:,} different tokens; all counts equal; best of {options.runs}\n{machine}")
    print(", ".join(f"{name} {version}" for name, version in packages.items()) + "\n")
    print(f"{'':15}{'s':>8}{'MB/s':>8}{'peak MB':>10}   how")
    for name, result in results.items():
        rate = size / 1e6 / result["seconds"]
        print(f"{name:15}{result['seconds']:8.2f}{rate:8.0f}{result['megabytes']:10.0f}   {CASES[name]}")
    if options.json:
        facts = {"bytes": size, "distinct": rows, "machine": machine, "versions": packages, "results": results}
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(facts, file, indent=2)


if __name__ == "__main__":
    main()
