"""Where the time of a conversion goes, stage by stage.

    python benchmarks/stages.py SOURCE [--threads 1,2] [--runs 5] [--folder DIR] [OPTIONS OF CONVERT]

The functions that are the stages are wrapped by clocks; each run is a process of its own, and the median is told. Time
that a stage spends in another one is counted there. Of several threads the walls are added up: two seconds in the same
second. The processor's time is that of the thread, so that a wall which is much longer is waiting: for the disk, for a
turn, for the interpreter's lock, or for a core. The main thread waits in `the rest` for those that do the work.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from clocks import Times
from machine import compile_package
from report import seconds
from staged import POINTS
from startup import modules_of
from timing import child_environment, remove

STAGES = tuple(
    dict.fromkeys(["start of Python", "imports", *(point[0] for point in POINTS), "the rest", "end of Python"])
)
STAGED = Path(__file__).with_name("staged.py")


def run_once(source: Path, threads: int, folder: Path, options: list[str]) -> tuple[Times, float]:
    """The times of a process of its own, and its seconds in all."""
    target, modules, result = (folder / name for name in ("out", "modules", "result"))
    arguments = [str(source), "-o", str(target), "--threads", str(threads), *options]
    if not modules.exists():
        modules.write_text("\n".join(modules_of(["convert", *arguments, "--quiet"], folder)))
        remove(target)
    begun = time.perf_counter()
    command = [sys.executable, str(STAGED), repr(begun), str(modules), str(result), *arguments]
    process = subprocess.Popen(command, cwd=folder, env=child_environment(), stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    ended = time.perf_counter()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(process.returncode)
    remove(target)
    content = json.loads(result.read_bytes())
    times: Times = content["times"]
    processor = usage.ru_utime + usage.ru_stime
    times["end of Python"] = [ended - content["ended"], processor - content["processor"]]
    return times, ended - begun


def table(measured: dict[int, list[tuple[Times, float]]]) -> str:
    """Stage by stage, for each number of threads: wall and processor."""
    names = [f"{threads} thread{'' if threads == 1 else 's'}" for threads in measured]
    lines = [" " * 22 + "".join(f"{name:>22}" for name in names)]
    lines.append(" " * 22 + f"{'wall':>11}{'processor':>11}" * len(names))
    for stage in STAGES:
        shown = ""
        for runs in measured.values():
            for kind in (0, 1):
                values = [times[stage][kind] for times, _ in runs if stage in times]
                shown += f"{seconds(max(statistics.median(values), 0.0)) if values else '':>11}"
        if shown.strip():
            lines.append(f"{stage:22}{shown}")
    totals = (seconds(statistics.median(total for _, total in runs)) for runs in measured.values())
    lines.append(f"{'in all':22}" + "".join(f"{total:>11}{'':11}" for total in totals).rstrip())
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n")[0], epilog="Any other option is one of `vec2emb convert`."
    )
    parser.add_argument("source", type=Path, help="a file of word vectors")
    parser.add_argument("--threads", default="1,2", metavar="N,..", help="how many threads [default: 1,2]")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="of each [default: 5]")
    parser.add_argument("--folder", metavar="DIR", help="where to write the results [default: the system's]")
    options, more = parser.parse_known_args()
    compile_package()
    measured: dict[int, list[tuple[Times, float]]] = {int(threads): [] for threads in options.threads.split(",")}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        source = options.source.resolve()
        for threads in measured:
            run_once(source, threads, Path(folder), more)  # it warms the cache of the system
        for _ in range(options.runs):
            for threads, runs in measured.items():
                runs.append(run_once(source, threads, Path(folder), more))
    print(table(measured))


if __name__ == "__main__":
    main()
