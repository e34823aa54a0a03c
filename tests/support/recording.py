"""What the program gives for a long list of command lines, recorded, so that a later version can be held against it.

    python tests/support/recording.py --write      run everything and write fixtures/recorded.json
    python tests/support/recording.py --compare    run everything and print what differs; exit code 1 if bytes do

Every run is a `vec2emb` command line with `--json`, in a temporary folder with copies of the fixtures and files derived
from them. Each kernel runs the list in one process of its own. Of a run are recorded:

- `exit`, `error`: exit code and error code,
- `files`: SHA-256 of each file it wrote, but for the settings of a bundle,
- `settings`: SHA-256 of each `vec2emb.json`, where there is one,
- `json`: what it printed, without seconds and versions, floats to 6 digits; if it is long, its SHA-256.

A difference in the first two is a failure. Settings and printed texts may change: they are listed.
Where both kernels give the same, one record serves both; else each has its own, under its name.

Rows that are drawn, and tables of sines, go through numpy's log, cos and sin, whose last bits differ between machines.
Runs that have such rows are marked `drawn`, and so are those that read their output. The record holds a digest of these
functions at fixed points (`probe`). On a machine where that digest differs, files of `drawn` runs are compared by name
only, except `vocab.txt`; exit and error codes are compared as ever.
"""

from __future__ import annotations

import argparse
import bz2
import contextlib
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

KERNELS = ("native", "reference")
NO_QUIET = ("explain", "similar", "positions show")  # commands without --quiet
LONGEST = 1400  # characters of printed JSON that are kept as they are
UNSTEADY = {"seconds", "vec2emb_version", "python", "numpy", "platform"}
FIXTURES = next(folder / "fixtures" for folder in Path(__file__).resolve().parents if (folder / "fixtures").is_dir())
RECORD = FIXTURES / "recorded.json"

Record = dict[str, Any]


class Run(NamedTuple):
    """One command line.

    `{out}` in it is where the run writes, `{of:NAME}` what the run NAME wrote, whose `{out}` was a folder.
    """

    name: str
    words: tuple[str, ...]
    drawn: bool = False

    @property
    def needs(self) -> list[str]:
        """The runs whose output this one reads."""
        return re.findall(r"\{of:([^}]*)\}", " ".join(self.words))


GLOVE, FRENCH, FASTTEXT = "glove.6B.50d.sample.txt", "fr.fasttext.sample.vec", "fasttext"
# The options that a case needs to be read at all.
CASE_OPTIONS = {"V05a": "--limit 2", "C03b": "--member glove.3d.txt", "E03b": "--encoding gb18030"}
CASE_FORMATS = {"auto": "auto", "glove": "glove", "word2vec-text": "word2vec", "word2vec-binary": "word2vec-binary"}

# name: source and options of `convert`.
CONVERSIONS = {
    "glove": f"{GLOVE}",
    "glove-format": f"{GLOVE} --format glove --dim 50",
    "glove-as-word2vec": f"{GLOVE} --format word2vec",
    "glove-wrong-dim": f"{GLOVE} --dim 49",
    "french": f"{FRENCH}",
    "headlines": "glove.6B.50d.headlines.txt.gz",
    "headlines-float16": "glove.6B.50d.headlines.txt.gz --dtype float16",
    "cbow": f"{FASTTEXT}/cbow.bin",
    "skipgram": f"{FASTTEXT}/skipgram.bin",
    "whole-words": f"{FASTTEXT}/whole-words.bin",
    "supervised": f"{FASTTEXT}/supervised.bin",
    "printed": f"{FASTTEXT}/cbow.printed.txt",
    "word2vec-text": "made/glove.vec",
    "word2vec-crlf": "made/crlf.vec",
    "word2vec-binary": "made/glove.bin",
    "word2vec-binary-lf": "made/glove-lf.bin",
    "word2vec-binary-forced": "made/glove-lf.bin --format word2vec-binary --binary-dtype float32 --byte-order little",
    "word2vec-binary-float16": "made/half.bin --format word2vec-binary --binary-dtype float16",
    "word2vec-binary-float64": "made/double.bin --format word2vec-binary --binary-dtype float64",
    "word2vec-binary-big": "made/big.bin --format word2vec-binary --byte-order big",
    "gz": "made/glove.vec.gz",
    "bz2": "made/glove.txt.bz2",
    "xz": "made/glove.bin.xz",
    "zip": "made/two.zip --member french.vec",
    "zip-dim": "made/two.zip --dim 50",
    "zip-undecided": "made/two.zip",
    "npz": "{of:export-npz-glove}.npz",
    "bundle": "{of:glove}",
    "bundle-float16": "{of:float16} --dtype float32",
    "bundle-shards": "{of:shards}",
    "model2vec": "{of:export-model2vec-glove}",
    "sentence-transformers": "{of:export-huggingface-glove}",
    "limit": f"{GLOVE} --limit 100",
    "limit-one": f"{FRENCH} --limit 1",
    "only": f"{GLOVE} --only made/words.txt",
    "only-fallback": f"{GLOVE} --only made/words.txt --case-fallback",
    "vocab-zeros": f"{GLOVE} --vocab made/words.txt --missing zeros",
    "vocab-mean": f"{GLOVE} --vocab made/words.txt --missing mean",
    "vocab-error": f"{GLOVE} --vocab made/words.txt --missing error",
    "vocab-subword": f"{FASTTEXT}/cbow.bin --vocab made/words.txt --missing subword",
    "vocab-subword-refused": f"{GLOVE} --vocab made/words.txt --missing subword",
    "vocab-json": f"{GLOVE} --vocab made/vocab.json --missing zeros",
    "vocab-fallback": f"{GLOVE} --vocab made/words.txt --missing zeros --case-fallback",
    "vocab-report": f"{GLOVE} --vocab made/words.txt --missing zeros --case-fallback --row-report {{out}}.jsonl",
    "lowercase": "made/cased.txt --lowercase",
    "lowercase-fallback": "made/cased.txt --lowercase --vocab made/words.txt --missing zeros --case-fallback",
    "lowercase-words": "made/cased.txt --lowercase --vocab made/some.txt --missing zeros",
    "lowercase-vocab": "made/cased.txt --lowercase --vocab made/words.txt --missing zeros",
    "duplicates-first": "made/twice.txt --duplicates first",
    "duplicates-last": "made/twice.txt --duplicates last",
    "duplicates-error": "made/twice.txt --duplicates error",
    "strict": "made/twice.txt --strict",
    "float16": f"{GLOVE} --dtype float16",
    "bfloat16": f"{GLOVE} --dtype bfloat16",
    "float16-overflow": "made/large.txt --dtype float16",
    "unit-norm": f"{GLOVE} --unit-norm",
    "unit-norm-bfloat16": f"{FRENCH} --unit-norm --dtype bfloat16",
    "no-specials": f"{GLOVE} --no-pad --no-unk",
    "no-pad": f"{GLOVE} --no-pad",
    "no-unk": f"{GLOVE} --no-unk",
    "pad-unk": f"{GLOVE} --pad [PAD] --unk [UNK] --unk-init zeros",
    "unk-token": f"{GLOVE} --unk-init token:the",
    "unk-in-file": f"{GLOVE} --unk the",
    "pad-twice": f"{GLOVE} --pad x --unk x",
    "specials-end": f"{GLOVE} --specials-at end --special [CLS]=zeros",
    "specials-inits": f"{GLOVE} --special [CLS]=mean --special [SEP]=token:of --special of",
    "bad-rows": "made/faulty.txt",
    "bad-rows-skip": "made/faulty.txt --bad-rows skip",
    "nonfinite": "made/nonfinite.txt",
    "nonfinite-keep": "made/nonfinite.txt --nonfinite keep",
    "nonfinite-zero": "made/nonfinite.txt --nonfinite zero",
    "nonfinite-skip": "made/nonfinite.txt --bad-rows skip",
    "encoding": "made/latin1.vec --encoding latin-1",
    "encoding-error": "made/latin1.vec",
    "encoding-replace": "made/latin1.vec --encoding-errors replace",
    "encoding-escape": "made/latin1.vec --encoding-errors escape",
    **{f"key-style-{style}": f"{GLOVE} --limit 9 --key-style {style} --max-positions 8 --positions sinusoidal"
       for style in ("plain", "bert", "gpt2", "clip")},
    **{f"key-style-alone-{style}": f"{GLOVE} --limit 9 --key-style {style}"
       for style in ("bert", "roberta", "gpt2", "bart", "fairseq", "clip")},
    "word-key": f"{GLOVE} --word-key emb.weight --tied-head head.weight",
    "scale-number": f"{GLOVE} --scale 2.5",
    "scale-sqrt": f"{GLOVE} --scale sqrt-dim",
    "scale-rms": f"{GLOVE} --scale unit-rms",
    "train-none": f"{GLOVE} --freeze",
    "train-file": f"{GLOVE} --train-rows made/some.txt",
    "train-file-missing": f"{GLOVE} --train-rows made/words.txt",
    "train-new": f"{GLOVE} --vocab made/words.txt --missing zeros --train-rows new",
    "shards": f"{GLOVE} --shard-size 20KB",
    "corpus": f"{GLOVE} --corpus made/text.txt --missing zeros",
    "corpus-options": f"{GLOVE} --corpus made/text.txt --missing mean --min-count 2 --max-size 12 --lowercase "
    "--tokenizer bert",
    "corpus-jsonl": f"{GLOVE} --corpus made/text.jsonl --field body --missing zeros --tokenizer regex:[a-z]+",
    "licence": f"{GLOVE} --license PDDL-1.0 --source-url https://example.org/glove",
    "expect-wrong": f"{GLOVE} --expect rows=3",
    "sha256-wrong": f"{GLOVE} --sha256 {'0' * 64}",
    "dry-run": f"{GLOVE} --dry-run",
    "absent": "made/absent.txt",
}  # fmt: skip
# The same, with rows that are drawn or tables of sines.
DRAWN = {
    "vocab-normal": f"{GLOVE} --vocab made/words.txt",
    "vocab-seed": f"{GLOVE} --vocab made/words.txt --seed 7",
    "vocab-uniform": f"{GLOVE} --vocab made/words.txt --missing uniform",
    "vocab-normal-float16": f"{GLOVE} --vocab made/words.txt --dtype float16 --train-rows new",
    "vocab-subword-fallback": f"{FASTTEXT}/skipgram.bin --vocab made/words.txt --case-fallback",
    "special-normal": f"{GLOVE} --special [MASK] --special [CLS]=uniform --unk-init normal",
    "learned": f"{GLOVE} --limit 20 --positions learned --max-positions 12",
    "learned-roberta": f"{GLOVE} --limit 20 --positions learned --max-positions 12 --key-style roberta",
    "learned-bart": f"{GLOVE} --limit 20 --positions learned --max-positions 12 --key-style bart --scale sqrt-dim",
    "learned-fairseq": f"{GLOVE} --limit 20 --positions learned --max-positions 12 --key-style fairseq --seed 3",
    "learned-frozen": f"{GLOVE} --limit 20 --positions learned --max-positions 12 --freeze-positions --dtype bfloat16",
    "scale-match": f"{GLOVE} --limit 20 --positions sinusoidal --max-positions 12 --scale match-positions",
    **{
        f"sinusoidal-{preset}": f"{GLOVE} --limit 20 --positions sinusoidal --max-positions 12 "
        f"--position-preset {preset}"
        for preset in ("vaswani", "xlm", "marian", "t2t", "fairseq", "whisper", "musicgen")
    },
}
EXPORTS = {
    "word2vec": ".vec", "word2vec-binary": ".bin", "glove": ".txt", "fasttext-vec": ".vec", "vocab-json": ".json",
    "npz": ".npz", "huggingface": "", "model2vec": "", "shards": "",
}  # fmt: skip
OTHERS = {
    "single-file": f"convert {GLOVE} --dtype float16 -o {{out}}.safetensors",
    "convert-unk-alone": f"convert {GLOVE} --no-pad --unk-init zeros -o {{out}}.safetensors",
    "export-drop": "export {of:glove} --to glove --specials drop -o {out}.txt",
    "export-card": "export {of:licence} --to huggingface --model-card --normalize-module -o {out}",
    "export-small-shards": "export {of:glove} --to shards --shard-size 9KB -o {out}",
    "export-unknown": "export {of:glove} --to parquet -o {out}",
    "extend-tokens": "extend {of:glove} --tokens covid,brexit --missing zeros -o {out}",
    "extend-mean": "extend {of:glove} --vocab made/words.txt --missing mean -o {out}",
    "extend-from": f"extend {{of:limit}} --vocab made/words.txt --from {GLOVE} --missing zeros -o {{out}}",
    "extend-special": "extend {of:glove} --special [MASK]=mean --missing zeros -o {out} --train-rows all",
    "extend-error": f"extend {{of:limit}} --vocab made/words.txt --from {GLOVE} --missing error -o {{out}}",
    "extend-in-pad": "extend {of:no-specials} --pad [PAD] --unk [UNK] -o {out}",
    "attach-zeros": "positions attach {of:glove} --kind learned --init zeros --max-positions 9 -o {out}",
    "attach-nothing": "positions attach {of:glove} --kind learned -o {out}",
    "resize-same": "positions resize {of:attach-zeros} --to 5 --method truncate -o {out}",
    "vocab": "vocab made/text.txt -o {out}.txt --save-counts {out}.tsv",
    "vocab-bert": "vocab made/text.txt made/text.jsonl --field body --tokenizer bert --lowercase --min-count 2 "
    "-o {out}.txt",
    "inspect-source": f"inspect {GLOVE} --count",
    "inspect-french": f"inspect {FRENCH} --count",
    "inspect-binary": "inspect made/glove-lf.bin --count",
    "inspect-fasttext": f"inspect {FASTTEXT}/cbow.bin",
    "inspect-supervised": f"inspect {FASTTEXT}/supervised.bin",
    "inspect-faulty": "inspect made/faulty.txt --count",
    "inspect-zip": "inspect made/two.zip --member french.vec",
    "inspect-bundle": "inspect {of:vocab-zeros}",
    "inspect-shards": "inspect {of:shards}",
    "inspect-folder": "inspect {of:export-huggingface-glove}",
    "inspect-safetensors": "inspect cases/S03a/int-metadata.safetensors",
    "inspect-safetensors-whole": "inspect cases/S04a/pad-row.safetensors",
    "inspect-absent": "inspect made/absent.txt",
    "explain": "explain {of:vocab-fallback} the Paris zzz <unk> THE <pad>",
    "explain-float16": "explain {of:float16} the of nan",
    "audit": f"audit {GLOVE}",
    "audit-corpus": f"audit {GLOVE} --corpus made/text.txt --examples 1 --missing-words {{out}}.tsv",
    "audit-gate": f"audit {GLOVE} --corpus made/text.txt --min coverage.tokens=0.99",
    "audit-faulty": "audit made/faulty.txt",
    "audit-twice": "audit made/twice.txt",
    "audit-bundle": "audit {of:vocab-mean}",
    "verify": "verify {of:glove}",
    "verify-source": f"verify {{of:unit-norm}} --source {GLOVE}",
    "verify-rebuild": f"verify {{of:float16}} --rebuild {GLOVE}",
    "verify-other-source": f"verify {{of:glove}} --source {FRENCH}",
    "verify-vocab": f"verify {{of:vocab-zeros}} --rebuild {GLOVE}",
    "verify-shards": "verify {of:shards}",
    "verify-absent": "verify made/absent",
    "similar": "similar {of:glove} the of --top 3",
    "similar-unknown": "similar {of:glove} zzzz",
    "show-bert": "positions show cases/P01a/bert-positions.safetensors",
    "show-roberta": "positions show cases/P03a/roberta-positions.safetensors",
    "usage": "convert",
    "usage-option": f"convert {GLOVE} -o {{out}} --dtype float8",
}
OTHERS_DRAWN = {
    "extend-normal": "extend {of:glove} --tokens covid,brexit --missing normal --seed 5 -o {out}",
    "attach-learned": "positions attach {of:limit} --kind learned --max-positions 9 --init trunc-normal --std 0.1 "
    "-o {out}",
    "attach-sinusoidal": "positions attach {of:limit} --kind sinusoidal --max-positions 9 --layout cos-sin --base 500 "
    "--start 1 --key-style bert -o {out}",
    "show-sinusoidal": "positions show {of:sinusoidal-fairseq}",
    "resize-random": "positions resize {of:learned} --to 20 --method random --seed 4 -o {out}",
    **{
        f"resize-{method}": f"positions resize {{of:learned}} --to {to} --method {method} -o {{out}}"
        for method, to in {
            "truncate": 8, "repeat-last": 20, "tile": 30, "hierarchical": 60, "linear": 20, "cubic": 20,
        }.items()
    },
    "resize-stretch": "positions resize {of:learned} --to 20 --method stretch --keep 2 -o {out}",
    "resize-formula": "positions resize {of:sinusoidal-vaswani} --to 20 -o {out}",
}  # fmt: skip


def runs() -> list[Run]:
    """All runs, those that others read in front of them."""
    found = []
    for case in json.loads((FIXTURES / "cases" / "cases.json").read_bytes()):
        if case["file"] is not None:
            more = f"--format {CASE_FORMATS.get(case['format'], 'auto')} {CASE_OPTIONS.get(case['id'], '')}"
            words = f"convert cases/{case['file']} -o {{out}} {more}"
            found.append(Run(f"case-{case['id']}", tuple(words.split())))
    for table, drawn in ((CONVERSIONS, False), (DRAWN, True)):
        for name, words in table.items():
            sines = drawn or "--positions sinusoidal" in words
            found.append(Run(name, ("convert", *words.split(), "-o", "{out}"), sines))
    for source in ("glove", "vocab-zeros"):
        for layout, suffix in EXPORTS.items():
            words = f"export {{of:{source}}} --to {layout} -o {{out}}{suffix}"
            found.append(Run(f"export-{layout}-{source}", tuple(words.split())))
    for table, drawn in ((OTHERS, False), (OTHERS_DRAWN, True)):
        found += [Run(name, tuple(words.split()), drawn) for name, words in table.items()]
    return _ordered({run.name: run for run in found})


def _ordered(named: Mapping[str, Run]) -> list[Run]:
    done: dict[str, Run] = {}

    def add(run: Run) -> Run:
        if run.name not in done:
            drawn = run.drawn
            for name in run.needs:
                drawn = add(named[name]).drawn or drawn
            done[run.name] = run._replace(drawn=drawn)
        return done[run.name]

    for run in named.values():
        add(run)
    return list(done.values())


def with_needs(names: Iterable[str]) -> list[Run]:
    """The runs of these names and those whose output they read, in order."""
    every = {run.name: run for run in runs()}
    wanted: set[str] = set()

    def add(name: str) -> None:
        wanted.add(name)
        for need in every[name].needs:
            add(need)

    for name in names:
        add(name)
    return [run for run in every.values() if run.name in wanted]


def everyday() -> list[str]:
    """The names of a sample: every sixth run."""
    return [run.name for run in runs()][::6]


def make_sources(folder: Path) -> None:
    """Put the fixtures and what is derived from them into a folder, by other means than the program's own."""
    shutil.copytree(FIXTURES, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(RECORD.name))
    made = folder / "made"
    made.mkdir()
    text = (FIXTURES / GLOVE).read_bytes()
    rows = [line.split(b" ") for line in text.splitlines()]
    header = b"%d 50\n" % len(rows)

    def binary(dtype: str, end: bytes = b"") -> bytes:
        return header + b"".join(row[0] + b" " + np.array(row[1:], "f8").astype(dtype).tobytes() + end for row in rows)

    def text_of(*lines: str) -> bytes:
        return "".join(line + "\n" for line in lines).encode()

    words = ["the", "The", "PARIS", "Paris", "of", "zzz", "covid", "nan", "naïve", "中", "king", "and", "NATO", "1990s"]
    files = {
        "glove.vec": header + text,
        "crlf.vec": (header + text).replace(b"\n", b"\r\n"),
        "glove.bin": binary("<f4"),
        "glove-lf.bin": binary("<f4", b"\n"),
        "half.bin": binary("<f2"),
        "double.bin": binary("<f8", b"\n"),
        "big.bin": binary(">f4"),
        "glove.vec.gz": gzip.compress(header + text, mtime=0),
        "glove.txt.bz2": bz2.compress(text),
        "glove.bin.xz": lzma.compress(binary("<f4", b"\n")),
        "words.txt": text_of(*words),
        "some.txt": text_of("the", "of", "nan"),
        "vocab.json": json.dumps({word: id for id, word in enumerate(words)}).encode(),
        "cased.txt": text_of("The 1 2", "the 3 4", "Paris 5 6", "ÀB 7 8", "of 0.5 -0.25"),
        "twice.txt": text_of("the 1 2", "of 3 4", "the 5 6", "and 7 8", "of 9 10"),
        "large.txt": text_of("the 1 2", "of 70000 -1e-9"),
        "faulty.txt": text_of("the 1 2", "of 3", "and 4 x", "to 5 6", "in 7 8 9"),
        "nonfinite.txt": text_of("the 1 2", "of nan 3", "and inf -inf", "to 5 6"),
        "latin1.vec": "3 2\nthe 1 2\ncafé 3 4\nnaïve 5 6\n".encode("latin-1"),
        "text.txt": text_of(
            "the king of the sea", "The King, and the nation of Paris!", "zzz zzz naïve 中国 the of to"
        ),
        "text.jsonl": text_of('{"body": "the king of the sea"}', '{"body": "of the kings and zzz"}'),
    }
    for name, data in files.items():
        (made / name).write_bytes(data)
    with zipfile.ZipFile(made / "two.zip", "w") as archive:
        for name, data in {"french.vec": (FIXTURES / FRENCH).read_bytes(), "glove.50d.txt": text}.items():
            archive.writestr(zipfile.ZipInfo(name), data)


def probe() -> str:
    """A digest of numpy's log, cos and sin at fixed points: machines that agree on it draw the same rows."""
    points = np.arange(1, 1 << 14) / (1 << 14)
    angles = np.outer(points * 64, [1.0, 2 * np.pi]).reshape(-1)
    values = [np.log(points), np.log1p(-points), np.cos(angles), np.sin(angles), np.exp(-9 * points), 10000.0**-points]
    return _sha256(b"".join(value.tobytes() for value in values))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _steady(value: Any, folder: str) -> Any:
    """A value of JSON without what differs between two runs of one program."""
    if isinstance(value, dict):
        return {key: _steady(one, folder) for key, one in value.items() if key not in UNSTEADY}
    if isinstance(value, list):
        return [_steady(one, folder) for one in value]
    if isinstance(value, str):
        return value.replace(folder + os.sep, "").replace(folder, ".")
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _printed(text: str, folder: str) -> tuple[Any, str | None]:
    """What a run printed, as it is recorded, and the code of its error."""
    try:
        value = _steady(json.loads(text), folder)
    except ValueError:
        value = _steady(text, folder)
    error = value.get("error") if isinstance(value, dict) else None
    code = error["code"] if isinstance(error, dict) else None
    return value, code


def _shorter(value: Any) -> Any:
    canonical = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return value if len(canonical) <= LONGEST else {"sha256": _sha256(canonical.encode())}


def perform(run: Run, folder: Path) -> Record:
    """Run one command line in the folder that `make_sources` made, which is the current one."""
    from vec2emb.cli import run as command_line

    home = Path("runs") / run.name
    home.mkdir(parents=True)
    words = [re.sub(r"\{of:([^}]*)\}", r"runs/\1/out", word.replace("{out}", f"{home}/out")) for word in run.words]
    quiet = [] if " ".join(words).startswith(NO_QUIET) else ["--quiet"]
    before = signal.getsignal(signal.SIGTERM)
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
        exit_code = command_line([*words, "--json", *quiet])
    signal.signal(signal.SIGTERM, before)
    printed, code = _printed(out.getvalue(), str(folder))
    found: Record = {"exit": exit_code, "files": {}, "settings": {}, "json": _shorter(printed)}
    if code is not None:
        found["error"] = code
    for path in sorted(home.rglob("*")):
        if path.is_file():
            kind = "settings" if path.name.endswith("vec2emb.json") else "files"
            found[kind][path.relative_to(home).as_posix()] = _sha256(path.read_bytes())
    return {key: value for key, value in found.items() if value != {}}


def perform_all(chosen: Sequence[Run]) -> dict[str, Record]:
    """Run these in this process, one after the other, under the kernel that VEC2EMB_KERNEL names."""
    from vec2emb.cli import run as command_line

    with contextlib.redirect_stdout(io.StringIO()) as version, contextlib.redirect_stderr(io.StringIO()):
        command_line(["--version"])
    if f"{os.environ['VEC2EMB_KERNEL']} kernel" not in version.getvalue():
        raise RuntimeError(f"VEC2EMB_KERNEL is not in use: {version.getvalue()}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        make_sources(folder)
        with contextlib.chdir(folder):
            return {run.name: perform(run, folder) for run in chosen}


def record(kernel: str, names: Sequence[str] = ()) -> dict[str, Record]:
    """Run everything, or the runs of these names and what they need, under one kernel in a process of its own."""
    command = [sys.executable, __file__, "--run", *names]
    done = subprocess.run(command, stdout=subprocess.PIPE, env={**os.environ, "VEC2EMB_KERNEL": kernel}, check=True)
    found: dict[str, Record] = json.loads(done.stdout)
    return found


def read() -> tuple[str, dict[str, dict[str, Record]]]:
    """The probe of the record, and its runs: of each name what each kernel gave."""
    lines = json.loads(RECORD.read_bytes())
    return lines["probe"], {
        name: {kernel: entry.get(kernel, entry) for kernel in KERNELS} for name, entry in lines["runs"].items()
    }


def write(found: Mapping[str, Mapping[str, Record]]) -> None:
    """Write what each kernel gave, a line a run."""
    lines = []
    for name in sorted(found[KERNELS[0]]):
        one, other = (found[kernel][name] for kernel in KERNELS)
        entry = one if one == other else {kernel: found[kernel][name] for kernel in KERNELS}
        text = json.dumps(entry, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        lines.append(f"{json.dumps(name)}:{text}")
    RECORD.write_text(f'{{"probe":"{probe()}","runs":{{\n' + ",\n".join(lines) + "\n}}\n", encoding="utf-8")


class Differences(NamedTuple):
    """Lines: what must not differ, and what may."""

    failures: list[str]
    listed: list[str]


def compare(kernel: str, found: Mapping[str, Record]) -> Differences:
    """Hold what a kernel gave against the record."""
    failures: list[str] = []
    listed: list[str] = []
    recorded_probe, recorded = read()
    drawn = {run.name for run in runs() if run.drawn} if recorded_probe != probe() else set()
    for name, now in found.items():
        if name not in recorded:
            failures.append(f"{kernel} {name}: not in the record; write it anew")
            continue
        before = recorded[name][kernel]
        if name in drawn:
            before, now = _unbound(before), _unbound(now)
        for kind, what, was, is_ in _unlike(before, now):
            lines = failures if kind in ("exit", "error", "files") else listed
            lines.append(f"{kernel} {name}: {what}: {was} -> {is_}")
    return Differences(failures, listed)


def _unbound(record: Record) -> Record:
    """A record without the digests of files whose last bits may differ, and of what depends on them."""
    files = {name: digest if name.endswith("vocab.txt") else "" for name, digest in record.get("files", {}).items()}
    return {**{key: value for key, value in record.items() if key in ("exit", "error")}, "files": files}


def _unlike(before: Record, now: Record) -> Iterator[tuple[str, str, str, str]]:
    for kind in ("exit", "error", "files", "settings", "json"):
        was, is_ = before.get(kind), now.get(kind)
        yield from ((kind, *line) for line in _paths(kind, was, is_))


def _paths(where: str, was: Any, is_: Any) -> Iterator[tuple[str, str, str]]:
    """Where two values of JSON differ, as deep as both are objects."""
    if isinstance(was, dict) and isinstance(is_, dict):
        for key in sorted(was.keys() | is_.keys()):
            yield from _paths(f"{where} {key}", was.get(key), is_.get(key))
    elif was != is_:
        yield where, json.dumps(was, ensure_ascii=False), json.dumps(is_, ensure_ascii=False)


def main() -> int:
    """The command line of this file."""
    parser = argparse.ArgumentParser(description="Record what the program gives, or compare it with the record.")
    which = parser.add_mutually_exclusive_group(required=True)
    which.add_argument("--write", action="store_true", help="write the record")
    which.add_argument("--compare", action="store_true", help="print what differs from it")
    which.add_argument("--run", action="store_true", help="print what the runs give under VEC2EMB_KERNEL, as JSON")
    parser.add_argument("names", nargs="*", help="the runs  [default: all]")
    options = parser.parse_args()
    if options.run:
        print(json.dumps(perform_all(with_needs(options.names) if options.names else runs())))
        return 0
    if options.write and options.names:
        parser.error("--write takes no names: it writes all runs")
    found = {kernel: record(kernel, options.names) for kernel in KERNELS}
    if options.write:
        write(found)
        return 0
    failed = False
    for kernel in KERNELS:
        failures, listed = compare(kernel, found[kernel])
        failed = failed or bool(failures)
        for line in failures:
            print(f"FAILED {line}")
        for line in listed:
            print(f"listed {line}")
        print(f"{kernel}: {len(found[kernel])} runs, {len(failures)} failures, {len(listed)} listed differences")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
