"""What is timed inside one process, after its imports; results are printed as JSON.

python benchmarks/inside.py open BUNDLE SMALL WORD     opening a bundle and looking one word up
python benchmarks/inside.py parse SOURCE RUNS          one pass by one thread and by two, rows thrown away
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from typing import Any


def resident() -> dict[str, int]:
    """Bytes of this process in memory, all and those that are no file's. Linux only, else nothing."""
    found = {}
    try:
        with open("/proc/self/status") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name in ("VmRSS", "RssAnon"):
                    found[name] = 1024 * int(value.split()[0])
    except OSError:
        pass
    return found


def open_bundle(bundle: str, small: str, word: str) -> dict[str, Any]:
    """Seconds to load a bundle and find the vector of a word; another was opened before, to import all there is."""
    import vec2emb

    table = vec2emb.load(small)
    assert table[table.vocab.to_list()[2]] is not None
    before = resident()
    begun = time.perf_counter()
    vector = vec2emb.load(bundle)[word]
    seconds = time.perf_counter() - begun
    after = resident()
    grown = {name: after[name] - before[name] for name in before}
    return {"seconds": seconds, "grown": grown, "vector": vector.tobytes().hex()}


def parse(source: str, runs: int) -> dict[str, Any]:
    """Seconds of one pass for each number of threads, taking turns; and what rows each finds."""
    from vec2emb.conversion.parsed_rows import Collector, Sink, discard
    from vec2emb.conversion.reading_pass import ReadOptions, open_pass
    from vec2emb.conversion.selection import Selection

    def seconds_of(threads: int, sink: Sink) -> float:
        with open_pass(source, ReadOptions(threads=threads)) as opened:
            selection = Selection([], expected=opened.expected_rows)
            begun = time.perf_counter()
            opened.run(selection, sink)
            return time.perf_counter() - begun

    found = {}
    for threads in (1, 2):
        collector = Collector()
        seconds_of(threads, collector.take)
        digest = hashlib.sha256()
        for _, block in sorted(collector.runs):
            digest.update(block)
        found[threads] = digest.hexdigest()
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for number in range(runs):
        for threads in (1, 2) if number % 2 == 0 else (2, 1):
            seconds[threads].append(seconds_of(threads, discard))
    return {"sha256": [found[1], found[2]], "one": seconds[1], "two": seconds[2]}


def main() -> None:
    what, *arguments = sys.argv[1:]
    if what == "open":
        print(json.dumps(open_bundle(*arguments)))
    else:
        print(json.dumps(parse(arguments[0], int(arguments[1]))))


if __name__ == "__main__":
    main()
