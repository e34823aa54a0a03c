"""How each line is measured: first that the result is right, then its time beside a peer's.

A function a group: it takes the bench and gives what each of its lines came to.
"""

from __future__ import annotations

import itertools
import json
import sys
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import compiled
import peers
from inputs import Input, Inputs, sha256
from machine import cores, vec2emb_command
from startup import code_of, modules_of
from targets import LINES, Measured
from timing import Contender, Figure, Runs, alternate, remove, run, timed

HERE = Path(__file__).resolve().parent
FAST_READERS = ("pandas", "pyarrow", "polars")
OPEN_SECONDS = 0.050
OPEN_BYTES, PEAK_BYTES, BYTES_A_ROW = 8_000_000, 80_000_000, 40
THREADS = (1, 2, 16)
START = "start-up"


@dataclass
class Bench:
    """Where and how often is measured, and what has been so far.

    Attributes:
        folder: where results are written, and removed again.
        runs: of each contender.
        record: what every process took, for those who want to look closer.
        differences: of a peer's result from ours, by input and peer.
    """

    inputs: Inputs
    folder: Path
    runs: int
    say: Callable[[str], None]
    record: dict[str, dict[str, Runs]] = field(default_factory=dict)
    differences: dict[str, str] = field(default_factory=dict)

    def convert(self, source: Path, *options: str, name: str = "timed") -> Contender:
        """A conversion as a contender."""
        target = self.folder / name
        return Contender([*vec2emb_command(), "convert", str(source), "-o", str(target), "--quiet", *options], target)

    def peer(self, name: str, source: Path) -> Contender:
        """Another reader as a contender."""
        target = self.folder / f"timed-{name}"
        return Contender([sys.executable, str(HERE / "peers.py"), name, str(source), str(target)], target)

    def start_up(self, source: Input, *options: str) -> Contender:
        """`vec2emb --version` with the imports of such a conversion."""
        tiny = self.folder / "tiny"
        arguments = ["convert", str(self.inputs.tiny(source)), "-o", str(tiny), "--quiet", *options]
        code = code_of(modules_of(arguments, self.folder))
        remove(tiny)
        return Contender([sys.executable, "-c", code])

    def result_of(self, contender: Contender) -> Path:
        """What a contender writes, untimed."""
        assert contender.target is not None, contender.command
        run(contender.command, self.folder)
        return contender.target

    def prove(self, how: str, *arguments: Path) -> str:
        """Run `proof.py`; what it prints."""
        return run([sys.executable, str(HERE / "proof.py"), how, *map(str, arguments)], self.folder).strip()

    def proven(self, how: str, source: Input, *options: str, words: Path | None = None) -> Path:
        """The bundle of a conversion, compared with its input by a slow loop."""
        bundle = self.result_of(self.convert(source.path, *options, name=f"proven-{how}-{source.dim}"))
        self.prove(how, source.path, bundle, *([] if words is None else [words]))
        return bundle

    def compare(self, name: str, source: Input, bundle: Path) -> None:
        """Run another reader and note what its result differs in from ours."""
        result = self.result_of(self.peer(name, source.path))
        self.differences[f"{source.path.name}, {name}"] = self.prove("same", bundle, result)
        remove(result)

    def side_by_side(self, name: str, contenders: Mapping[str, Contender], times: int = 1) -> dict[str, Runs]:
        """Time contenders by turns; `times` more often if they are quick."""
        self.say(f"{name}: {', '.join(contenders)}")
        found = alternate(contenders, self.runs * times, self.folder)
        self.record[name] = found
        return found

    def note(self, source: Input, name: str) -> str:
        """Whether a peer's result is ours."""
        found = self.differences[f"{source.path.name}, {name}"]
        return f"differs in {found}" if found else "equal, bit for bit"


Measurements = dict[str, Measured]


def missing(*names: str) -> Measured:
    """Of a line whose peers are not there."""
    return Measured(note=f"not judged: {' or '.join(names)} is not installed")


def measure_text(bench: Bench) -> Measurements:
    found: Measurements = {}
    for width, source in (("50", bench.inputs.glove), ("300", bench.inputs.wide())):
        bundle = bench.proven("text", source)
        there = [name for name in ("gensim", *FAST_READERS) if peers.is_there(name)]
        for name in there:
            bench.compare(name, source, bundle)
        remove(bundle)
        contenders = {name: bench.peer(name, source.path) for name in there}
        runs = bench.side_by_side(f"text-{width}", {"vec2emb": bench.convert(source.path), **contenders})
        ours = runs["vec2emb"].figure
        gensim, fast = f"text-{width}-gensim", [name for name in there if name in FAST_READERS]
        if "gensim" in there:
            found[gensim] = Measured(ours, runs["gensim"].figure, "gensim", note=bench.note(source, "gensim"))
        else:
            found[gensim] = missing("gensim")
        if fast:
            best = min(fast, key=lambda name: runs[name].figure.median)
            notes = [f"{name} {bench.note(source, name)}" for name in fast]
            notes += [f"no {name}" for name in FAST_READERS if name not in fast]
            found[f"text-{width}-csv"] = Measured(ours, runs[best].figure, best, note="; ".join(notes))
        else:
            found[f"text-{width}-csv"] = missing(*FAST_READERS)
    return found


def measure_numbers(bench: Bench) -> Measurements:
    if compiled.compiler() is None:
        return dict.fromkeys(("numbers-50", "numbers-300"), Measured(note="not judged: there is no C++ compiler"))
    bench.say("numbers: compiling")
    program = compiled.build(bench.folder)
    found: Measurements = {}
    for width, source in (("50", bench.inputs.glove), ("300", bench.inputs.wide())):
        bench.say(f"numbers-{width}: kernel, from_chars")
        said = json.loads(run([str(program), str(source.path), str(source.dim), str(bench.runs)], bench.folder))
        if not said["equal"] or said["numbers"] != source.rows * source.dim:
            raise SystemExit(f"{source.path}: the kernel and from_chars do not agree")
        names = ("kernel", "from_chars")
        bench.record[f"numbers-{width}"] = {name: Runs(said[name]) for name in names}
        ours, theirs = (Figure.of(said[name]) for name in names)
        each = f"{1e9 * ours.median / said['numbers']:.1f} ns a number"
        found[f"numbers-{width}"] = Measured(ours, theirs, "from_chars", note=f"equal, bit for bit; {each}")
    return found


def measure_binary(bench: Bench) -> Measurements:
    source = bench.inputs.binary()
    bundle = bench.proven("binary", source)
    has_gensim = peers.is_there("gensim")
    if has_gensim:
        bench.compare("gensim", source, bundle)
    remove(bundle)
    copy = bench.folder / "copy"
    contenders = {
        "vec2emb": bench.convert(source.path),
        START: bench.start_up(source),
        "cp": Contender(["sh", "-c", 'cp "$0" "$1" && sync "$1"', str(source.path), str(copy)], copy),
    }
    if has_gensim:
        contenders["gensim"] = bench.peer("gensim", source.path)
    runs = bench.side_by_side("binary", contenders)
    ours = runs["vec2emb"].figure
    return {
        "binary-cp": Measured(ours - runs[START].figure, runs["cp"].figure, "cp and sync"),
        "binary-gensim": Measured(ours, runs["gensim"].figure, "gensim", note=bench.note(source, "gensim"))
        if has_gensim
        else missing("gensim"),
    }


def measure_words(bench: Bench) -> Measurements:
    source, words = bench.inputs.glove, bench.inputs.words()
    found: Measurements = {}
    for name, how in (("vocab", "some"), ("only", "only")):
        options = (f"--{name}", str(words))
        remove(bench.proven(how, source, *options, words=words))
        tiny = bench.folder / "tiny-words"
        tiny.write_bytes(b"a\n")
        runs = bench.side_by_side(
            f"words-{name}",
            {
                "vec2emb": bench.convert(source.path, *options),
                START: bench.start_up(source, f"--{name}", str(tiny)),
                "wc": Contender(["wc", "-l", str(source.path)]),
            },
        )
        found[f"words-{name}"] = Measured(runs["vec2emb"].figure - runs[START].figure, runs["wc"].figure, "wc -l")
    return found


def measure_gzip(bench: Bench) -> Measurements:
    source, plain = bench.inputs.gzipped(), bench.inputs.glove
    there = [name for name in peers.DECOMPRESSORS if peers.is_there(name)]
    if not there:
        return {"gzip": missing(*peers.DECOMPRESSORS)}
    bundle = bench.result_of(bench.convert(source.path))
    bench.prove("text", plain.path, bundle)
    remove(bundle)
    contenders = {"vec2emb": bench.convert(source.path), START: bench.start_up(source)}
    checks = set()
    for name in there:
        command = [sys.executable, str(HERE / "peers.py"), name, str(source.path)]
        checks.add(run([*command, "--check"], bench.folder))
        contenders[name] = Contender(command)
        contenders[f"{name} {START}"] = Contender([*command, "--idle"])
    if len(checks) != 1 or int(checks.pop().split()[0]) != plain.path.stat().st_size:
        raise SystemExit(f"{source.path}: the decompressors do not agree")
    runs = bench.side_by_side("gzip", contenders)
    alone = {name: runs[name].figure - runs[f"{name} {START}"].figure for name in there}
    best = min(there, key=lambda name: alone[name].median)
    notes = [f"no {name}" for name in peers.DECOMPRESSORS if name not in there]
    ours = runs["vec2emb"].figure - runs[START].figure
    return {"gzip": Measured(ours, alone[best], best.replace("_", "-"), note="; ".join(notes))}


def measure_open(bench: Bench) -> Measurements:
    source = bench.inputs.glove
    bundle = bench.proven("text", source)
    small = bench.result_of(bench.convert(bench.inputs.tiny(source), name="small"))
    with open(source.path, "rb") as file:  # a row in the middle; all of them would make this process large
        token, *values = next(itertools.islice(file, source.rows // 2, None)).split()
    expected = array("f", map(float, values)).tobytes().hex()
    command = [sys.executable, str(HERE / "inside.py"), "open", str(bundle), str(small), token.decode()]
    bench.say("open: a process each")
    said = [json.loads(run(command, bench.folder)) for _ in range(bench.runs)]
    if any(one["vector"] != expected for one in said):
        raise SystemExit(f"{bundle}: another vector than the file's")
    allowed = OPEN_BYTES + (bundle / peers.VOCAB).stat().st_size + BYTES_A_ROW * source.rows
    table = (bundle / peers.MODEL).stat().st_size
    remove(bundle)
    remove(small)
    seconds = [one["seconds"] for one in said]
    bench.record["open"] = {"vec2emb": Runs(seconds, [one["grown"].get("VmRSS", 0) for one in said])}
    found = {"open-time": Measured(Figure.of(seconds), _single(OPEN_SECONDS), "allowed", note=f"{source.rows:,} rows")}
    grown = [one["grown"]["VmRSS"] for one in said if "VmRSS" in one["grown"]]
    if not grown:
        found["open-memory"] = Measured(note="not judged: the system does not say")
    else:
        note = f"the table has {table / 1e6:.0f} MB"
        found["open-memory"] = Measured(Figure.of(grown), _single(allowed), "allowed", "bytes", note)
    return found


def _single(value: float) -> Figure:
    """Of what is no statistic: a limit, the highest of all peaks."""
    return Figure(value, value)


def measure_help(bench: Bench) -> Measurements:
    if "convert" not in run([*vec2emb_command(), "--help"], bench.folder):
        raise SystemExit("vec2emb --help says nothing of convert")
    contenders = {
        "vec2emb": Contender([*vec2emb_command(), "--help"]),
        "click": Contender([sys.executable, "-c", "import click"]),
    }
    runs = bench.side_by_side("help", contenders, times=4)
    return {"help": Measured(runs["vec2emb"].figure, runs["click"].figure, "import click")}


def measure_threads(bench: Bench) -> Measurements:
    if cores() < 2:
        return dict.fromkeys(("threads-50", "threads-300"), Measured(note="not judged: this machine has one core"))
    found: Measurements = {}
    for width, source in (("50", bench.inputs.glove), ("300", bench.inputs.wide())):
        bench.say(f"threads-{width}: one thread, two threads")
        command = [sys.executable, str(HERE / "inside.py"), "parse", str(source.path), str(bench.runs)]
        said = json.loads(run(command, bench.folder))
        bundle = bench.proven("text", source)
        rows = bench.prove("digest", bundle)
        remove(bundle)
        if set(said["sha256"]) != {rows}:
            raise SystemExit(f"{source.path}: one thread, two threads and a conversion find different rows")
        bench.record[f"threads-{width}"] = {"one": Runs(said["one"]), "two": Runs(said["two"])}
        found[f"threads-{width}"] = Measured(Figure.of(said["two"]), Figure.of(said["one"]), "one thread")
    return found


def measure_memory(bench: Bench) -> Measurements:
    glove, words = bench.inputs.glove, bench.inputs.words()
    narrow, widest = bench.inputs.text("narrow", 1_000_000, 1), bench.inputs.text("widest", 10_000, 2000)
    wide, binary = bench.inputs.wide(), bench.inputs.binary()
    return {
        "memory-1": _peak(bench, "memory-1", narrow.path, ("text", narrow.path), "--format", "glove"),
        "memory-50": _peak(bench, "memory-50", glove.path, ("text", glove.path)),
        "memory-300": _peak(bench, "memory-300", wide.path, ("text", wide.path)),
        "memory-2000": _peak(bench, "memory-2000", widest.path, ("text", widest.path)),
        "memory-binary": _peak(bench, "memory-binary", binary.path, ("binary", binary.path)),
        "memory-gzip": _peak(bench, "memory-gzip", bench.inputs.gzipped().path, ("text", glove.path)),
        "memory-words": _peak(bench, "memory-words", glove.path, ("only", glove.path, words), "--only", str(words)),
    }


def _peak(bench: Bench, key: str, source: Path, proof: tuple[str, Path, *tuple[Path, ...]], *options: str) -> Measured:
    """The highest of all thread counts beside what is allowed; a peak is not averaged."""
    bench.say(f"{key}: {', '.join(map(str, THREADS))} threads")
    how, plain, *words = proof
    bundle = bench.result_of(bench.convert(source, *options))
    bench.prove(how, plain, bundle, *words)
    digest, rows = sha256(bundle / peers.MODEL), json.loads((bundle / "vec2emb.json").read_bytes())["rows"]
    allowed = PEAK_BYTES + (bundle / peers.VOCAB).stat().st_size + BYTES_A_ROW * rows
    remove(bundle)
    peaks = {}
    for threads in THREADS:
        contender = bench.convert(source, *options, "--threads", str(threads))
        of_runs = []
        for _ in range(min(bench.runs, 3)):
            of_runs.append(timed(contender.command, bench.folder)[1])
            if sha256(bundle / peers.MODEL) != digest:
                raise SystemExit(f"{source}: another result with {threads} threads")
            remove(bundle)
        peaks[threads] = max(of_runs)
        bench.record.setdefault(key, {})[f"{threads} threads"] = Runs([], of_runs)
    note = "threads and MB: " + ", ".join(f"{threads}: {peak / 1e6:.0f}" for threads, peak in peaks.items())
    return Measured(_single(max(peaks.values())), _single(allowed), "allowed", "bytes", note)


GROUPS: dict[str, Callable[[Bench], Measurements]] = {
    "text": measure_text,
    "numbers": measure_numbers,
    "binary": measure_binary,
    "words": measure_words,
    "gzip": measure_gzip,
    "open": measure_open,
    "help": measure_help,
    "threads": measure_threads,
    "memory": measure_memory,
}


def measure(bench: Bench, groups: list[str]) -> tuple[Measurements, dict[str, Any]]:
    """What the lines of these groups came to, and what each process took."""
    found: Measurements = {}
    for group in groups:
        measured = GROUPS[group](bench)
        assert measured.keys() == {line.key for line in LINES if line.group == group}
        found.update(measured)
    record = {
        name: {who: {"seconds": runs.seconds, "peak_bytes": runs.peaks} for who, runs in contenders.items()}
        for name, contenders in bench.record.items()
    }
    return found, {"runs": record, "differences": bench.differences}
