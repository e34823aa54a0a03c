"""Measure what docs/performance.md tells: every line of its table, beside a peer, in one run.

    python benchmarks/run.py --folder DIR --glove glove.6B.50d.txt --json speed.json
    python benchmarks/run.py --from speed.json --write-docs

The first takes about half an hour on two cores, most of it gensim's. Inputs are made in DIR on first use and stay
there; results are written beside them and removed. Without --glove a file of the same shape stands in for Stanford's.
Each result is proven right before anything is timed. Peers come with the extra `bench`; a line whose peer is missing is
not judged. Run it on a machine that does nothing else, with the package installed as a wheel.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

import report
from inputs import Inputs
from lines import Bench, measure
from machine import compile_package, describe
from targets import GROUPS, LINES, met
from timing import Disturbance

BUSY = 0.05  # of the processors: more than that in others' hands, and figures are worth little


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """The options; wrong ones end the process."""
    description, _, more = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=description, epilog=more, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, metavar="DIR", help="keep inputs there [default: a temporary folder]")
    parser.add_argument("--glove", type=Path, metavar="FILE", help="glove.6B.50d.txt")
    parser.add_argument("--only", metavar="NAME,..", help=f"some of {', '.join(GROUPS)}")
    parser.add_argument("--runs", type=int, metavar="N", help="of each contender [default: 7]")
    parser.add_argument(
        "--small", action="store_true", help="a hundredth of the rows that are made, to see that all works"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures, and those of every run, there")
    parser.add_argument("--from", type=Path, metavar="FILE", dest="earlier", help="measure nothing: take such a file")
    parser.add_argument(
        "--write-docs", nargs="?", type=Path, const=report.PAGE, metavar="PAGE",
        help="put the table into a page [default: docs/performance.md]",
    )  # fmt: skip
    options = parser.parse_args(arguments)
    options.groups = list(dict.fromkeys(options.only.split(","))) if options.only else list(GROUPS)
    if unknown := [group for group in options.groups if group not in GROUPS]:
        parser.error(f"--only {', '.join(unknown)}: there are {', '.join(GROUPS)}")
    measuring = (options.folder, options.glove, options.only, options.runs, options.json, options.small or None)
    if options.earlier and any(option is not None for option in measuring):
        parser.error("--from measures nothing; beside it there is only --write-docs")
    options.runs = 7 if options.runs is None else options.runs
    if options.runs < 1:
        parser.error("--runs N: at least 1")
    if options.write_docs and (options.small or options.only):
        parser.error("--write-docs needs all lines at their full size: neither --small nor --only")
    for name, path in (("--glove", options.glove), ("--from", options.earlier), ("--write-docs", options.write_docs)):
        if path and not path.is_file():
            parser.error(f"{name} {path}: there is no such file")
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"--json {options.json}: there is no such folder")
    return options


def main() -> None:
    options = parsed()
    if options.earlier:
        content = json.loads(options.earlier.read_text(encoding="utf-8"))
    else:
        with tempfile.TemporaryDirectory(prefix="vec2emb-bench-") as temporary:
            content = measured_in(options, (options.folder or Path(temporary)).resolve())
    about, measured = report.from_json(content)
    print(report.as_text(about, measured))
    if options.json:
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    if options.write_docs:
        if about["small"] or len(measured) < len(LINES):
            raise SystemExit("nothing is written: these are not all lines at their full size")
        report.write_into(options.write_docs, report.as_markdown(about, measured))
    missed = [line.key for line in LINES if line.key in measured and met(line, measured[line.key]) is False]
    if missed:
        print(f"missed: {', '.join(missed)}", file=sys.stderr)


def measured_in(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Measure in a folder, which is made if need be."""
    folder.mkdir(parents=True, exist_ok=True)
    compile_package()
    about = {**describe(folder), "runs": options.runs, "small": options.small}
    inputs = Inputs(folder, options.glove and options.glove.resolve(), options.small)
    with tempfile.TemporaryDirectory(prefix="results-", dir=folder) as results, Disturbance() as disturbance:
        bench = Bench(inputs, Path(results), options.runs, say=lambda text: print(text, file=sys.stderr, flush=True))
        measured, record = measure(bench, options.groups)
    about |= {"load_after": round(os.getloadavg()[0], 2), "others_share": disturbance.share}
    if disturbance.share is not None and disturbance.share > BUSY:
        busy = f"others used {100 * disturbance.share:.0f}% of the processors"
        print(f"{busy}: measure again when they rest", file=sys.stderr)
    return report.as_json(about, measured, record)


if __name__ == "__main__":
    main()
