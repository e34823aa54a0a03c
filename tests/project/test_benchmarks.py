"""The benchmarks: what they compute is right, they refuse a wrong result, and the page has every line of theirs."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import compiled
import inputs
import lines
import numpy as np
import peers
import proof
import pytest
import report
import run
import timing
from helpers import FIXTURES, ROOT
from targets import GROUPS, LINES, Line, Measured, met, ratio
from timing import Contender, Figure

import vec2emb
from vec2emb import _kernel

BENCHMARKS = ROOT / "benchmarks"
SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"
FASTER = Line("a-b", "a", "what", "beside", 2.0, True, "at least 2x faster")
WITHIN = Line("a-b", "a", "what", "beside", 2.0, False, "at most 2x its time")


def program(name: str, *arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run one of them in a shell that keeps Python from compiling, as some do."""
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, str(BENCHMARKS / name), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 or not check, done.stderr
    return done


# Figures.


def test_a_figure_is_the_median_and_the_minimum() -> None:
    assert Figure.of([3.0, 1.0, 10.0]) == Figure(3.0, 1.0)
    assert Figure.of([4.0, 2.0]) == Figure(3.0, 2.0)
    assert Figure(3.0, 1.0) - Figure(0.5, 0.25) == Figure(2.5, 0.75)


@pytest.mark.parametrize(
    ("line", "ours", "peer", "expected", "reached"),
    [
        (FASTER, Figure(1, 1), Figure(3, 2), Figure(3, 2), True),
        (FASTER, Figure(2, 1), Figure(3, 2), Figure(1.5, 2), False),
        (WITHIN, Figure(3, 2), Figure(2, 1), Figure(1.5, 2), True),
        (WITHIN, Figure(5, 1), Figure(2, 1), Figure(2.5, 1), False),
    ],
)
def test_the_ratio_of_the_medians_decides(
    line: Line, ours: Figure, peer: Figure, expected: Figure, reached: bool
) -> None:
    assert ratio(line, Measured(ours, peer)) == expected
    assert met(line, Measured(ours, peer)) is reached


def test_what_was_not_measured_is_not_judged() -> None:
    assert met(FASTER, Measured(note="not judged: gensim is not installed")) is None
    assert met(WITHIN, Measured(Figure(-0.001, -0.002), Figure(1, 1))) is None  # less than the start-up: noise


def test_contenders_take_turns(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    order: list[str] = []

    def fake(command: list[str], folder: Path) -> tuple[float, int]:
        order.append(command[0])
        return {"a": 1.0, "b": 2.0, "slow": 60.0}[command[0]], 7

    monkeypatch.setattr(timing, "timed", fake)
    runs = timing.alternate({name: Contender([name]) for name in ("a", "b")}, 3, tmp_path)
    assert order == ["a", "b", "b", "a", "a", "b"]
    assert (runs["b"].seconds, runs["b"].peaks, runs["b"].figure) == ([2.0] * 3, [7] * 3, Figure(2.0, 2.0))

    order.clear()
    runs = timing.alternate({name: Contender([name]) for name in ("a", "slow")}, 9, tmp_path)
    assert len(runs["a"].seconds) == 9
    assert "".join(name[0] for name in order) == "asaasaaaasaa"  # a third of the rounds


def test_a_process_is_timed_with_its_peak(tmp_path: Path) -> None:
    code = "import time; block = bytearray(100_000_000); time.sleep(0.2)"
    seconds, peak = timing.timed([sys.executable, "-c", code], tmp_path)
    assert seconds >= 0.2
    assert peak >= 100_000_000
    with pytest.raises(SystemExit, match=r"(?s)ended with 3: .*oh"):
        timing.timed([sys.executable, "-c", "import sys; print('oh'); sys.exit(3)"], tmp_path)


def test_children_are_not_kept_from_their_compiled_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("VEC2EMB_BLOCK_BYTES", "16")
    assert not {"PYTHONDONTWRITEBYTECODE", "VEC2EMB_BLOCK_BYTES"} & timing.child_environment().keys()
    assert "PATH" in timing.child_environment()


# Inputs.


def test_made_numbers_look_like_gloves() -> None:
    made = inputs.numbers(random.Random(1), 20_000)
    real = [number for line in SAMPLE.read_text(encoding="utf-8").splitlines() for number in line.split(" ")[1:]]
    assert abs(np.mean([len(n) for n in made]) - np.mean([len(n) for n in real])) < 0.1
    assert abs(np.mean([n[0] == "-" for n in made]) - np.mean([n[0] == "-" for n in real])) < 0.05
    assert all("%.5g" % float(n) == n for n in made)  # noqa: UP031  # that is how GloVe's were written


def test_made_text_is_the_same_every_time_and_no_token_comes_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "POOL", 1000)
    rows = list(inputs.text_rows(500, 7))
    assert rows == list(inputs.text_rows(500, 7))
    assert all(len(row.split(b" ")) == 8 for row in rows)
    assert len({row.split(b" ")[0] for row in rows}) == 500


def test_the_files_are_there_whole_and_not_made_twice(tmp_path: Path) -> None:
    made = inputs.Inputs(tmp_path, SAMPLE, small=True)
    assert (made.glove.rows, made.glove.dim) == (250, 50)
    words = made.words()
    tokens = [line.split(b" ")[0] for line in SAMPLE.read_bytes().split(b"\n")[:-1]]
    assert sorted(words.read_bytes().split(b"\n")[:-1]) == sorted(tokens)
    stamp = words.stat().st_mtime_ns
    assert made.words().stat().st_mtime_ns == stamp
    assert not list(tmp_path.rglob("*.part"))


# Proofs.


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    vec2emb.convert(SAMPLE, tmp_path / "bundle")
    return tmp_path / "bundle"


def changed(bundle: Path, name: str, at: int) -> None:
    data = bytearray((bundle / name).read_bytes())
    data[at] ^= 1
    (bundle / name).write_bytes(data)


def text_proof(bundle: Path) -> str:
    return proof.first_difference(proof.rows_of_text(SAMPLE), bundle)


def test_a_right_bundle_is_proven(bundle: Path) -> None:
    assert text_proof(bundle) == ""


def test_one_wrong_bit_is_found(bundle: Path) -> None:
    changed(bundle, "model.safetensors", -4 * 50 * 10)  # in the first value of the tenth row from the end
    token = SAMPLE.read_bytes().split(b"\n")[-11].split(b" ")[0]
    assert text_proof(bundle) == f"row 242: the vector of {token!r}"


def test_a_wrong_word_is_found(bundle: Path) -> None:
    changed(bundle, "vocab.txt", -2)
    assert re.fullmatch(r"row 251: b'.*' for b'.*'", text_proof(bundle))


def test_a_row_too_few_or_too_many_is_found(bundle: Path) -> None:
    rows = list(proof.rows_of_text(SAMPLE))
    assert proof.first_difference(iter(rows[:-1]), bundle) == "it has more rows than the file"
    assert proof.first_difference(iter([*rows, rows[0]]), bundle) == "it has fewer rows than the file"


def test_a_peer_that_differs_is_told(bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = vec2emb.load(bundle).vectors[2:].copy()
    words = vec2emb.load(bundle).vocab.to_list()[2:]
    monkeypatch.setitem(peers.READERS, "gensim", lambda source: (words, vectors))
    peers.read_and_save("gensim", "", str(tmp_path / "same"))
    vectors[3, 4] += 1
    vectors[3, 5] += 1
    peers.read_and_save("gensim", "", str(tmp_path / "other"))
    words[0] = "another"
    peers.read_and_save("gensim", "", str(tmp_path / "words"))
    assert proof.difference(bundle, tmp_path / "same") == ""
    assert proof.difference(bundle, tmp_path / "other") == "2 of 12,500 values"
    assert proof.difference(bundle, tmp_path / "words") == "1 words, 2 of 12,500 values"


@pytest.mark.slow
def test_gensims_table_is_ours(bundle: Path, tmp_path: Path) -> None:
    program("peers.py", "gensim", SAMPLE, tmp_path / "theirs")
    assert proof.difference(bundle, tmp_path / "theirs") == ""


# The C++ side.


def test_from_chars_and_the_kernel_agree(tmp_path: Path) -> None:
    if compiled.compiler() is None:
        pytest.skip("there is no C++ compiler")
    assert {"-O3", "-ffp-contract=off", "-std=c++20"} <= set(compiled.flags())
    done = timing.run([str(compiled.build(tmp_path, ["-O0"])), str(SAMPLE), "50", "2"], tmp_path)
    said = json.loads(done)
    assert (said["numbers"], said["equal"]) == (12_500, True)
    assert len(said["kernel"]) == len(said["from_chars"]) == 2


# The report.


def measured_lines() -> dict[str, Measured]:
    return {line.key: Measured(Figure(1.0, 0.5), Figure(4.0, 3.0), "peer", note="so") for line in LINES}


ABOUT: dict[str, Any] = {
    "date": "2026-01-02", "processor": "a processor", "cores": 2, "memory_bytes": 2**34, "system": "a system",
    "filesystem": "ext4", "python": "3.11", "vec2emb": "vec2emb 9", "installed": "as a wheel", "commit": "abc",
    "versions": {"numpy": "2"}, "load_before": 0.1, "load_after": 1.5, "others_share": 0.01, "runs": 7, "small": False,
}  # fmt: skip


def rows_of(page: str) -> list[list[str]]:
    between = page.partition(report.BEGIN)[2].partition(report.END)[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in between.splitlines() if line.startswith("|")]


def test_json_and_back() -> None:
    measured = {**measured_lines(), "help": Measured(note="not judged: why")}
    content = json.loads(json.dumps(report.as_json(ABOUT, measured, {"runs": {}})))
    assert report.from_json(content) == (ABOUT, measured)
    assert {line["key"]: line["met"] for line in content["lines"]}["help"] is None
    assert content["lines"][0]["ratio"] == {"median": 4.0, "minimum": 6.0}


def test_the_table_goes_between_its_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
    for _ in range(2):  # again, too
        report.write_into(page, report.as_markdown(ABOUT, measured_lines()))
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{report.BEGIN}\n")
    assert text.endswith(f"{report.END}\nafter\n")
    assert "old" not in text
    first = rows_of(text)[2]
    assert first[2:] == ["1 s", "4 s, peer", "4x", "6x", "at least 100x faster", "no"]
    assert "others used 1% of the processors meanwhile" in text
    page.write_text("no marks", encoding="utf-8")
    with pytest.raises(SystemExit, match="there must be the lines"):
        report.write_into(page, "x")


def test_the_page_has_every_line() -> None:
    """Its figures are those of a run, or it says that there are none yet."""
    rows = rows_of(report.PAGE.read_text(encoding="utf-8"))
    assert rows[0] == list(report.COLUMNS)
    assert [(row[0], row[1], row[6]) for row in rows[2:]] == [(line.what, line.beside, line.says) for line in LINES]
    assert all(row[7] in (("yes", "no", "not judged") if row[2] != report.NOT_YET else ("",)) for row in rows[2:])


def test_every_line_belongs_to_a_measurement() -> None:
    assert set(GROUPS) == set(lines.GROUPS)
    assert len({line.key for line in LINES}) == len(LINES)


# The commands.


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--only", "text,nothing"], "--only nothing: there are text, numbers"),
        (["--runs", "0"], "--runs N: at least 1"),
        (["--write-docs", "--small"], "--write-docs needs all lines at their full size"),
        (["--from", "x.json", "--runs", "3"], "--from measures nothing"),
        (["--from", "x.json"], "--from x.json: there is no such file"),
        (["--json", "nowhere/x.json"], "--json nowhere/x.json: there is no such folder"),
        (["--glove", "nowhere.txt"], "--glove nowhere.txt: there is no such file"),
    ],
)
def test_wrong_options(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run.parsed(arguments)
    assert says in capsys.readouterr().err


def test_a_line_whose_peer_is_missing_is_not_judged(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(peers, "is_there", lambda peer: False)
    bench = lines.Bench(inputs.Inputs(tmp_path, SAMPLE, small=True), tmp_path, 1, say=lambda text: None)
    assert lines.measure_gzip(bench) == {"gzip": Measured(note="not judged: isal or zlib_ng is not installed")}
    monkeypatch.setattr(compiled, "compiler", lambda: None)
    assert {one.note for one in lines.measure_numbers(bench).values()} == {"not judged: there is no C++ compiler"}


def needs_native() -> None:
    if _kernel.NAME != "native":
        pytest.skip("only the native kernel is measured")


def measured_by(folder: Path, *options: str) -> dict[str, Any]:
    done = program("run.py", "--folder", folder, "--small", "--runs", "1", "--json", folder / "j.json", *options)
    content: dict[str, Any] = json.loads((folder / "j.json").read_bytes())
    for line in content["lines"]:
        assert line["what"] in done.stdout
    assert sorted(path.name for path in folder.iterdir()) == ["j.json", "small"]  # results are gone
    return content


def test_a_run_from_end_to_end(tmp_path: Path) -> None:
    needs_native()
    content = measured_by(tmp_path, "--glove", str(SAMPLE), "--only", "words")
    assert [line["key"] for line in content["lines"]] == ["words-vocab", "words-only"]
    assert content["runs"]["words-only"].keys() == {"vec2emb", "start-up", "wc"}
    assert all(line["peer"]["median"] > 0 for line in content["lines"])
    assert content["about"]["small"] is True
    page = tmp_path / "page.md"
    page.write_text(f"{report.BEGIN}\n{report.END}\n", encoding="utf-8")
    again = program("run.py", "--from", tmp_path / "j.json", "--write-docs", page, check=False)
    assert again.returncode == 1
    assert "nothing is written: these are not all lines at their full size" in again.stderr


@pytest.mark.slow
def test_all_lines_from_end_to_end(tmp_path: Path) -> None:
    needs_native()
    content = measured_by(tmp_path)
    assert [line["key"] for line in content["lines"]] == [line.key for line in LINES]


def test_the_stages_of_a_conversion(tmp_path: Path) -> None:
    done = program("stages.py", SAMPLE, "--threads", "1", "--runs", "1", "--folder", tmp_path)
    stages = [re.split(r" {2,}", line)[0] for line in done.stdout.splitlines()[2:]]
    expected = ["start of Python", "imports", "open and detect", "read", "scan", "select", "fill", "write", "mean"]
    assert [stage for stage in stages if stage in expected] == expected
    assert stages[-1] == "in all"
    assert not list(tmp_path.iterdir())
