"""`vec2emb vocab`, `build_vocab`, and the vocabulary of a corpus in a conversion."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from corpora import expected, lee
from helpers import FIXTURES, collected, run

import vec2emb
from vec2emb import TokenCounts, Vec2embWarning, Vocabulary, build_vocab, convert, count_tokens
from vec2emb.errors import InputError, OutputError, UsageError, Vec2embError, VocabularyError

GLOVE = FIXTURES / "glove.6B.50d.sample.txt"
TEXT = "the cat , the time of The cat <unk> zyzzyva <pad> the\n"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(TEXT)
    return path


# --- the function -----------------------------------------------------------------------------------------------------


def test_build_vocab(tmp_path: Path) -> None:
    report = build_vocab(lee(), tmp_path / "v.txt", min_count=5, max_size=300, save_counts=tmp_path / "c.parquet")
    counts = expected(lee().read_bytes().split())
    kept = [pair for pair in counts if pair[1] >= 5][:300]
    data = (tmp_path / "v.txt").read_bytes()
    assert data.decode().split("\n")[:-1] == [token for token, _ in kept]
    assert list(TokenCounts.load(tmp_path / "c.parquet").items()) == counts
    total = sum(count for _, count in counts)
    assert report.to_dict() == {
        "path": str(tmp_path / "v.txt"), "tokens": 300, "distinct": len(counts), "total": total,
        "covered": sum(count for _, count in kept), "sha256": hashlib.sha256(data).hexdigest(),
        "counts_path": str(tmp_path / "c.parquet"), "seconds": report.seconds,
    }  # fmt: skip
    assert list(Vocabulary.from_file(tmp_path / "v.txt")) == [token for token, _ in kept]


def test_targets_are_looked_at_first(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "there.txt").write_text("mine")
    gone = tmp_path / "gone.txt"
    cases: list[tuple[dict[str, Any], type[Vec2embError], str]] = [
        ({"output": "there.txt"}, OutputError, "the file is there already; --if-exists replace writes it anew"),
        ({"output": "v.txt", "save_counts": "c.csv"}, UsageError, "counts are a .parquet or a .tsv file"),
        ({"output": "no/v.txt"}, OutputError, "no/v.txt: there is no such folder to write in"),
        ({"output": "."}, OutputError, "this is a folder"),
        ({"output": "v.txt", "min_count": 0}, UsageError, "min_count cannot be so: expected a whole number from 1"),
        ({"output": "v.txt", "if_exists": "keep"}, UsageError, "if_exists cannot be so: expected error or replace"),
    ]
    for arguments, kind, text in cases:
        names = dict(arguments)
        for name in ("output", "save_counts"):
            if name in names:
                names[name] = tmp_path / names[name]
        with pytest.raises(kind) as caught:
            build_vocab(gone, **names)
        assert text in str(caught.value)
    assert build_vocab(corpus, tmp_path / "there.txt", if_exists="replace").tokens == 9
    with pytest.raises(VocabularyError, match="no token comes often enough"):
        build_vocab(corpus, tmp_path / "v.txt", min_count=9)
    assert not (tmp_path / "v.txt").exists()


# --- the command ------------------------------------------------------------------------------------------------------


def test_command(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "v.txt"
    done = run("vocab", corpus, corpus, "-o", out, "--min-count", 3, "--save-counts", tmp_path / "c.tsv")
    assert done.stderr == b""
    assert done.returncode == 0
    lines = done.stdout.decode().splitlines()
    assert lines[0].startswith(f"{out}: 2 tokens, written in ")
    assert lines[1:] == [
        "  of 9 different ones in a corpus of 24, of which they are 41.67%",
        f"  all counts: {tmp_path}/c.tsv",
    ]
    assert out.read_bytes() == b"the\ncat\n"
    rest = [",", "<pad>", "<unk>", "The", "of", "time", "zyzzyva"]
    assert (tmp_path / "c.tsv").read_text() == "the\t6\ncat\t4\n" + "".join(f"{token}\t2\n" for token in rest)


def test_command_reads_standard_input_and_speaks_json(tmp_path: Path) -> None:
    done = run("vocab", "-", "-o", tmp_path / "v.txt", "--tokenizer", r"regex:\w+", "--lowercase", "--json",
               stdin=b"A b! B\n")  # fmt: skip
    found = json.loads(done.stdout)
    assert (found["tokens"], found["total"], found["covered"]) == (2, 3, 3)
    assert (tmp_path / "v.txt").read_bytes() == b"b\na\n"


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["gone.txt"], 1, "error[not-found]: gone.txt: there is no such file"),
        (["-", "--tokenizer", "words"], 2, "error[unknown-tokenizer]"),
        (["-", "--scheduler", "threads"], 2, "error[scheduler-alone]"),
        ([], 2, "Missing argument 'CORPUS...'"),
    ],
)
def test_command_fails(words: list[str], code: int, text: str, tmp_path: Path) -> None:
    done = run("vocab", *words, "-o", tmp_path / "v.txt")
    assert done.returncode == code
    assert text in done.stderr.decode()
    assert not list(tmp_path.iterdir())


def test_command_on_dask_writes_the_same(tmp_path: Path) -> None:
    for engine in ("local", "dask"):
        done = run("vocab", lee(), "-o", tmp_path / engine, "--engine", engine, "--quiet",
                   "--save-counts", tmp_path / f"{engine}.parquet")  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "local").read_bytes() == (tmp_path / "dask").read_bytes()
    assert (tmp_path / "local.parquet").read_bytes() == (tmp_path / "dask.parquet").read_bytes()


# --- in a conversion --------------------------------------------------------------------------------------------------


def tokens(path: Path) -> list[str]:
    return (path / "vocab.txt").read_bytes().decode().split("\n")[:-1]


def test_convert_as_with_that_list(corpus: Path, tmp_path: Path) -> None:
    """Special tokens of the corpus are left out of the list, since they get rows anyway."""
    words = ["the", "cat", ",", "The", "of", "time", "zyzzyva"]
    report, _ = collected(lambda: convert(GLOVE, tmp_path / "a", corpus=corpus))
    collected(lambda: convert(GLOVE, tmp_path / "b", vocab=words))
    assert tokens(tmp_path / "a") == ["<pad>", "<unk>", *words]
    for name in ("vocab.txt", "model.safetensors"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert report.missing == 3
    assert report.manifest.to_dict()["replay"]["vocab"]["corpus"] == {
        "names": ["corpus.txt"], "tokenizer": "whitespace", "lowercase": False, "field": None, "min_count": 1,
        "max_size": None, "distinct": 9, "total": 12,
    }  # fmt: skip


def test_convert_with_all_that_is_to_be_chosen(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "more.jsonl").write_text('{"body": "Time, of"}\n')
    collected(
        lambda: convert(
            GLOVE, tmp_path / "a", corpus=[corpus, tmp_path / "more.jsonl"], field="body", tokenizer="bert",
            lowercase=True, min_count=2, max_size=4, unk="<oov>", specials=["of=zeros"],
        )
    )  # fmt: skip
    assert tokens(tmp_path / "a")[:3] == ["<pad>", "<oov>", "of"]
    assert tokens(tmp_path / "a")[3:] == ["the", ",", "<", ">"]


def test_convert_takes_counts(corpus: Path, tmp_path: Path) -> None:
    counts = count_tokens(corpus)
    collected(lambda: convert(GLOVE, tmp_path / "a", corpus=counts, min_count=2))
    assert tokens(tmp_path / "a") == ["<pad>", "<unk>", "the", "cat"]
    with pytest.raises(UsageError, match="counts that are made already have their tokenizer"):
        convert(GLOVE, tmp_path / "b", corpus=counts, tokenizer="bert")


def test_convert_on_the_command_line(corpus: Path, tmp_path: Path) -> None:
    done = run(
        "convert", GLOVE, "-o", tmp_path / "a", "--corpus", corpus, "--corpus", corpus, "--min-count", 3, "--json"
    )
    assert done.returncode == 0
    assert tokens(tmp_path / "a") == ["<pad>", "<unk>", "the", "cat"]
    done = run("verify", tmp_path / "a", "--rebuild", GLOVE)
    assert done.returncode == 0, done.stdout
    done = run("convert", GLOVE, "-o", tmp_path / "b", "--min-count", 3)
    assert done.returncode == 2
    assert done.stderr.startswith(b"error[corpus-missing]: only a corpus is counted; add corpus= or --corpus PATH\n")


def test_what_excludes_each_other(corpus: Path, tmp_path: Path) -> None:
    for other in ({"vocab": ["a"]}, {"only": ["a"]}):
        with pytest.raises(UsageError, match="rows follow a corpus, a vocabulary, or a list of words to keep"):
            convert(GLOVE, tmp_path / "a", corpus=corpus, **other)  # type: ignore[arg-type]


def test_a_target_that_is_there_is_refused_before_counting(corpus: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Vec2embWarning)
        convert(GLOVE, tmp_path / "a")
    with pytest.raises(OutputError, match="a bundle is there already"):
        convert(GLOVE, tmp_path / "a", corpus=tmp_path / "gone")
    with pytest.raises(InputError, match="there is no such file"):
        convert(GLOVE, tmp_path / "a", corpus=tmp_path / "gone", if_exists="replace")
    assert vec2emb.inspect(tmp_path / "a").ok
    report, _ = collected(lambda: convert(GLOVE, None, corpus=corpus, dry_run=True))
    assert report.rows == 9
