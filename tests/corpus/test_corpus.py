"""Counting a corpus on this machine: inputs, formats, tokenizers, memory. The oracles are plain loops over the text."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tokenizers
import zstandard
from corpora import check, lee, zipf_text
from helpers import collected
from hypothesis import given, settings
from hypothesis import strategies as st

from vec2emb import count_tokens
from vec2emb.corpus import inputs as inputs_module
from vec2emb.corpus import local, reading
from vec2emb.corpus.inputs import Piece, cut, find_inputs
from vec2emb.corpus.merging import Spill
from vec2emb.corpus.settings import Settings
from vec2emb.corpus.splitting import splitter_of
from vec2emb.errors import (
    InputError,
    MissingPackageError,
    SourceError,
    UsageError,
    Vec2embError,
    VocabularyError,
)
from vec2emb.options.sizes import parse_size

TEXT = "the cat\tsat\non  the\r\nmat .\v the naïve café\u00a0x\x1cy\n".encode()
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture(scope="module")
def zipf(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    data = zipf_text(3_000_000, 20_000)
    path = tmp_path_factory.mktemp("zipf") / "zipf.txt"
    path.write_bytes(data)
    return path, data


def fault(call: Callable[[], object], kind: type[Vec2embError], code: str, text: str) -> None:
    """The call raises this error, word for word."""
    with pytest.raises(kind) as caught:
        call()
    assert (caught.value.code, str(caught.value)) == (code, text)


# --- white space ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_equals_counter_on_a_zipf_corpus(zipf: tuple[Path, bytes], threads: int) -> None:
    path, data = zipf
    check(count_tokens(path, threads=threads), data.split())


def test_equals_counter_on_lee() -> None:
    counts = count_tokens(lee())
    check(counts, lee().read_bytes().split())
    assert counts.most_common(3) == [("the", 3523), ("to", 1674), ("of", 1531)]


def test_both_kernels_and_any_blocks(kernel: str, block: str, threads: int, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT * 20)
    (tmp_path / "b.txt").write_bytes(b"no-end " + "€".encode() * 30)
    counts = count_tokens([tmp_path / "a.txt", tmp_path / "b.txt"], threads=threads)
    check(counts, [*(TEXT * 20).split(), b"no-end", "€".encode() * 30])


@pytest.mark.slow
def test_equals_counter_on_200_mb(tmp_path: Path) -> None:
    data = zipf_text(200_000_000, 1_000_000)
    (tmp_path / "zipf.txt").write_bytes(data)
    tokens = data.split()
    check(count_tokens(tmp_path), tokens)
    check(count_tokens(tmp_path, memory="30MB"), tokens)


def test_files_do_not_run_into_each_other(tmp_path: Path) -> None:
    for name, text in (("a", "one"), ("b", "two"), ("c", ""), ("d", " three")):
        (tmp_path / name).write_text(text)
    check(count_tokens(tmp_path), ["one", "two", "three"])


def test_a_token_that_is_longer_than_a_block(tmp_path: Path) -> None:
    long = b"x" * (reading.BLOCK * 3 + 5)
    (tmp_path / "a").write_bytes(b"a " + long + b" b")
    check(count_tokens(tmp_path), [b"a", long, b"b"])


def test_a_token_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LIMIT", 1 << 20)
    path = tmp_path / "a"
    path.write_bytes(b"a " + b"\0" * (5 << 20))
    fault(lambda: count_tokens(path), SourceError, "token-too-long",
          f"{path}, byte 2: a token is longer than 1 MiB; is this text?")  # fmt: skip


def test_empty_corpus_counts_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\n \n")
    counts = count_tokens(tmp_path)
    assert (counts.distinct, counts.total, list(counts.tokens), bytes(counts.blob)) == (0, 0, [], b"")


# --- little memory ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"lowercase": True}, {"tokenizer": "bert"}], ids=str)
def test_spilling_changes_nothing(
    zipf: tuple[Path, bytes], settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(local, "LEAST_SHARE", 1)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    spilled: list[int] = []
    add = Spill.add

    def note(self: Spill, counter: Any) -> None:
        spilled.append(len(counter))
        add(self, counter)

    monkeypatch.setattr(Spill, "add", note)
    whole = count_tokens(zipf[0], **settings)
    assert not spilled
    little = count_tokens(zipf[0], memory=7_000_000, threads=2, **settings)
    assert len(spilled) > 2
    assert little == whole
    assert not list(tmp_path.iterdir())
    assert (little.tokenizer, little.lowercase) == (whole.tokenizer, whole.lowercase)


def test_spilling_sorts_odd_bytes_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = ["a", "a\0", "a\0b", "ab", "\0", "\x7f", "é", "\uffff", "\U00010000", "'", '"', "%", "z" * 300]
    (tmp_path / "a.txt").write_text(" ".join(tokens * 3), newline="")
    monkeypatch.setattr(local, "LEAST_SHARE", 1)
    check(count_tokens(tmp_path / "a.txt", memory=1), tokens * 3)


@pytest.mark.parametrize(
    ("text", "size"),
    [("1", 1), (5, 5), ("2 KiB", 2048), ("1.5GB", 1_500_000_000), ("64mb", 64_000_000), ("2TiB", 2 << 40)],
)
def test_memory(text: int | str, size: int) -> None:
    assert parse_size("memory", text) == size


@pytest.mark.parametrize("text", ["", "0", "-1", "1 PB", "much", "inf", "nan", "B"])
def test_memory_that_is_none(text: str) -> None:
    fault(lambda: parse_size("memory", text), UsageError, "memory-range",
          f"memory cannot be so: expected such as 512MB or 2GiB, found {text!r}")  # fmt: skip


# --- which files ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.txt", "a.txt", "sub/deep/c.txt", "sub/d.jsonl", ".hidden", ".git/e.txt", "x[1].txt", "x1.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"{name}\n")
    return tmp_path


def names(tree: Path, *paths: object) -> list[str]:
    return [os.path.relpath(one.path, tree) for one in find_inputs([str(path) for path in paths])]


def test_folders_patterns_and_names(tree: Path) -> None:
    everything = ["a.txt", "b.txt", "x1.txt", "x[1].txt", "sub/d.jsonl", "sub/deep/c.txt"]
    assert names(tree, tree) == everything
    assert names(tree, tree / "b.txt", tree / "a.txt", tree / "b.txt") == ["b.txt", "a.txt", "b.txt"]
    assert names(tree, tree / "*.txt") == ["a.txt", "b.txt", "x1.txt", "x[1].txt"]
    assert names(tree, tree / "**" / "*.txt") == ["a.txt", "b.txt", "sub/deep/c.txt", "x1.txt", "x[1].txt"]
    assert names(tree, tree / "x[1].txt") == ["x[1].txt"], "there is a file of that very name"
    assert names(tree, tree / "x[0-9].txt") == ["x1.txt"]
    assert [one.kind for one in find_inputs(tree / "sub")] == ["json", "text"]


def test_what_is_not_there(tmp_path: Path) -> None:
    gone, empty = tmp_path / "gone.txt", tmp_path / "empty"
    empty.mkdir()
    fault(lambda: count_tokens(gone), InputError, "not-found", f"{gone}: there is no such file")
    fault(lambda: count_tokens(empty), InputError, "empty-corpus", f"{empty}: no file is there to count in")
    fault(lambda: count_tokens(tmp_path / "*.txt"), InputError, "empty-corpus",
          f"{tmp_path}/*.txt: no file is there to count in")  # fmt: skip
    fault(lambda: count_tokens([]), UsageError, "no-corpus", "no file is given to count in")


def test_urls() -> None:
    import fsspec

    system = fsspec.filesystem("memory")
    for name, data in {"a.txt": b"a b", "z/b.txt.gz": gzip.compress(b"b c"), "z/.h": b"no"}.items():
        system.pipe(f"/corpus/{name}", data)
    try:
        check(count_tokens("memory://corpus/a.txt"), ["a", "b"])
        check(count_tokens("memory://corpus"), ["a", "b", "b", "c"])
        check(count_tokens("memory://corpus/**/*.gz"), ["b", "c"])
        fault(lambda: count_tokens("memory://corpus/gone"), InputError, "not-found",
              "memory://corpus/gone: there is no such file")  # fmt: skip
        system.pipe("/corpus/z/b.txt.gz", gzip.compress(b"b c" * 99)[:-5])
        with pytest.raises(SourceError, match=r"^memory:///corpus/z/b\.txt\.gz, byte"):
            count_tokens("memory://corpus/z")
    finally:
        system.rm("/corpus", recursive=True)


def test_urls_need_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    with pytest.raises(UsageError, match="the URL cannot be read"):
        count_tokens("nonsense://a/b")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    fault(lambda: count_tokens("memory://a"), MissingPackageError, "missing-package",
          "reading a URL needs fsspec; install it with: pip install 'vec2emb[remote]'")  # fmt: skip


# --- formats ----------------------------------------------------------------------------------------------------------


def parquet(values: Any, column: str = "text", **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": range(len(values)), column: values}), sink, **options)
    return sink.getvalue()


RECORDS: list[Any] = ["the cat sat", "the\nmat\u2028x", None, "", ["the list", "of texts"], "naïve"]
WORDS = [word for value in RECORDS for text in ([value] if isinstance(value, str) else value or [])
         for word in text.encode().split()]  # fmt: skip


@pytest.mark.parametrize("suffix", PACKERS)
def test_every_format_compressed_or_not(suffix: str, tmp_path: Path) -> None:
    pack = PACKERS[suffix]
    (tmp_path / f"a.txt{suffix}").write_bytes(pack(TEXT * 9))
    check(count_tokens(tmp_path), (TEXT * 9).split())
    (tmp_path / f"a.txt{suffix}").unlink()
    lines = "".join(json.dumps({"id": 1, "text": value}) + "\n" for value in RECORDS).encode()
    (tmp_path / f"b.jsonl{suffix}").write_bytes(pack(lines))
    check(count_tokens(tmp_path), WORDS)
    column = pa.array([[text] if isinstance(text, str) else text for text in RECORDS])
    (tmp_path / f"c.parquet{suffix}").write_bytes(pack(parquet(column)))
    check(count_tokens(tmp_path), WORDS * 2)


def test_json_by_blocks_and_threads(block: str, threads: int, tmp_path: Path) -> None:
    texts = [f"doc{i % 7} says\twords\n{'x' * (i % 40)}" for i in range(60)]
    ends = ["\n", "\r\n", "\n\n", " \n"]
    lines = [json.dumps({"body": text}, ensure_ascii=i % 2 == 0) + ends[i % 4] for i, text in enumerate(texts)]
    (tmp_path / "a.ndjson").write_bytes("".join(lines).encode().rstrip())
    check(count_tokens(tmp_path, field="body", threads=threads), [w for text in texts for w in text.encode().split()])


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ('{"text": "x"', "bad-json", "the line is no JSON (Expecting ',' delimiter: line 1 column 13 (char 12))"),
        ('{"body": "x"}', "field-missing", "the line has no field 'text': found 'body'; "
         "name the one that holds text with field= or --field"),
        ("[1]", "field-missing", "the line has no field 'text': found list; "
         "name the one that holds text with field= or --field"),
        ('{"text": 5}', "field-type",
         "the field 'text' holds no text: expected a string, a list of strings, or null, found '5'"),
        ('{"text": ["a", null]}', "field-type",
         "the field 'text' holds no text: expected a string, a list of strings, or null, found '['a', None]'"),
    ],
)  # fmt: skip
def test_a_line_of_json_that_is_at_fault(
    line: str, code: str, text: str, block: str, threads: int, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    good = '{"text": "a b c"}\n'
    path.write_text(good * 30 + "\n" + line + "\n" + good * 30 + "{\n")
    with pytest.raises(InputError) as caught:
        count_tokens(path, threads=threads)
    assert (caught.value.code, str(caught.value)) == (code, f"{path}, line 32: {text}")
    assert caught.value.offset == 30 * len(good) + 1


def test_half_a_surrogate_pair_in_json(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a \\ud800b"}\n')
    for tokenizer in ("whitespace", "regex:[^ ]+"):
        fault(lambda t=tokenizer: count_tokens(path, tokenizer=t), InputError, "invalid-utf8",  # type: ignore[misc]
              f"{path}: a text holds half a surrogate pair")  # fmt: skip
        check(count_tokens(path, tokenizer=tokenizer, encoding_errors="replace"), ["a", "\ufffd\ufffd\ufffdb"])


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["a b", None, "c"], pa.large_string()),
        pa.array(["a b", None, "c"]).dictionary_encode(),
        pa.array([b"a b", None, b"c"], pa.binary()),
        pa.array([["a"], None, ["b", "c"]], pa.list_(pa.string())),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_of_parquet(column: Any, tmp_path: Path) -> None:
    path = tmp_path / "named-anyhow"
    path.write_bytes(parquet(column, "body"))
    check(count_tokens(path, field="body"), ["a", "b", "c"])


def test_parquet_that_is_at_fault(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(parquet(["a"], "body"))
    text = f"{path}: there is no column 'text': found id, body; name the one that holds text with field= or --field"
    fault(lambda: count_tokens(path), InputError, "field-missing", text)
    text = f"{path}, record 1: the field 'id' holds no text: expected a string, a list of strings, or null, found '0'"
    fault(lambda: count_tokens(path, field="id"), InputError, "field-type", text)
    path.write_bytes(parquet([b"a", b"\xff"], "text"))
    with pytest.raises(InputError, match=re.escape(f"{path}, record 2: the text is not UTF-8")):
        count_tokens(path)
    path.write_bytes(parquet(["a" * 1000] * 1000)[:-20])
    with pytest.raises(InputError, match=re.escape(f"{path}: the file is no whole Parquet file (")):
        count_tokens(path)


# --- bytes that are no UTF-8 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokenizer", ["whitespace", "bert", "regex:[^ ]+"])
def test_the_first_byte_that_is_no_utf8(tokenizer: str, block: str, threads: int, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good words\n" * 40 + b"ab\xe9t\xe9 x\n" + b"y\xff\n" * 500)
    with pytest.raises(InputError) as caught:
        count_tokens(path, tokenizer=tokenizer, threads=threads)
    error = caught.value
    assert (error.code, error.line, error.offset, error.found) == ("invalid-utf8", 41, 442, "bytes e9")
    assert str(error) == (
        f"{path}, line 41: the text is not UTF-8: found bytes e9; replace or escape such bytes with encoding_errors= "
        "or --encoding-errors, or convert the file, as with: iconv -f latin1 -t utf-8"
    )


@pytest.mark.parametrize("policy", ["replace", "escape"])
@pytest.mark.parametrize("tokenizer", ["whitespace", "bert", "regex:[^ ]+"])
def test_what_is_done_about_it(policy: str, tokenizer: str, block: str, tmp_path: Path) -> None:
    lines = [b"caf\xe9 \xff caf\xc3\xa9", b"caf\xe9 \xe2\x82 \xe2\x82\xac", b"caf\xef\xbf\xbd"]
    (tmp_path / "a.txt").write_bytes(b"\n".join(lines * 5))
    handler = {"replace": "replace", "escape": "backslashreplace"}[policy]
    words = [word.decode("utf-8", handler) for line in lines * 5 for word in line.split()]
    if tokenizer == "bert":
        split = tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str
        words = [piece for word in words for piece, _ in split(word)]
    check(count_tokens(tmp_path, tokenizer=tokenizer, encoding_errors=policy), words)


# --- tokenizers -------------------------------------------------------------------------------------------------------

PROSE = (
    "Don't panic: the U.S. isn't—as they say—«naïve».\r\n"
    "  ΑΣ ΑΣ. İstanbul\u00a0ΟΔΟΣ'  中文字 e\u0301a 12,000$ <unk> [MASK]\t##x\n\n"
    "a\u3000b \u2028 x\x1cy ___ :-) 😀😀 end"
)


def lines_of(text: str) -> list[str]:
    return [line.removesuffix("\r") for line in text.split("\n")]


@pytest.fixture
def prose(tmp_path: Path) -> Path:
    path = tmp_path / "prose.txt"
    path.write_bytes((PROSE + "\n").encode() * 30)
    return path


@pytest.mark.parametrize("lowercase", [False, True])
def test_bert(prose: Path, block: str, threads: int, lowercase: bool) -> None:
    split = tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    tokens = [token for line in lines_of(PROSE) for token, _ in split(line)] * 30
    tokens = [token.lower() for token in tokens] if lowercase else tokens
    check(count_tokens(prose, tokenizer="bert", lowercase=lowercase, threads=threads), tokens)


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("pattern", [r"\w+", r"[^\s.]+ ?", r"\p{L}+|\p{N}", "a|b"])
def test_regex(prose: Path, pattern: str, lowercase: bool, block: str) -> None:
    split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "removed", invert=True).pre_tokenize_str
    tokens = [token for line in lines_of(PROSE) for token, _ in split(line)] * 30
    if pattern in (r"\w+", "a|b"):
        plain = [token for line in lines_of(PROSE) for token in re.findall(pattern, line)] * 30
        assert pattern != "a|b" or tokens == plain
    tokens = [token.lower() for token in tokens] if lowercase else tokens
    check(count_tokens(prose, tokenizer=f"regex:{pattern}", lowercase=lowercase), tokens)


@pytest.fixture
def tokenizer_file(tmp_path: Path) -> Path:
    """A tokenizer that splits words, adds special tokens, cuts and pads."""
    whole = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    whole.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=60, special_tokens=["[UNK]", "[CLS]", "[PAD]"])
    whole.train_from_iterator([PROSE], trainer)
    whole.post_processor = tokenizers.processors.TemplateProcessing("[CLS] $A", special_tokens=[("[CLS]", 1)])
    whole.enable_truncation(3)
    whole.enable_padding(length=5, pad_token="[PAD]")
    path = tmp_path / "tokenizer.json"
    whole.save(str(path))
    return path


def test_hf(prose: Path, tokenizer_file: Path, block: str, threads: int) -> None:
    whole = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    whole.no_truncation()
    whole.no_padding()
    tokens = [t for line in lines_of(PROSE) for t in whole.encode(line, add_special_tokens=False).tokens] * 30
    counts = count_tokens(prose, tokenizer=f"hf:{tokenizer_file}", threads=threads)
    check(counts, tokens)
    assert counts.tokenizer == "hf:tokenizer.json"


@settings(max_examples=150, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=30))
def test_bert_needs_no_more_than_the_piece_between_white_space(text: str) -> None:
    """What lets it split different pieces only: the pieces of a line are split as the line is."""
    spread = splitter_of(Settings("bert")).spread
    assert spread is not None
    pieces = [piece for word in text.encode().split() for piece in spread(word.decode())]
    assert pieces == spread(text)
    assert all(spread(word) == [word] for word in text.split() if word.isalnum())


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), max_size=8)))
def test_lower_casing_many_tokens_at_once(tokens: list[str]) -> None:
    assert "\n".join([*tokens, ""]).lower() == "\n".join([*(token.lower() for token in tokens), ""])


def test_a_token_cannot_hold_lf(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a\\nb"}\n')
    check(count_tokens(path, tokenizer=r"regex:\w+"), ["a", "b"])
    text = f"{path}: a token cannot hold LF: found 'a\\nb'; take a tokenizer that splits at the end of a line"
    fault(lambda: count_tokens(path, tokenizer=r"regex:[^ ]+"), VocabularyError, "line-feed", text)


@pytest.mark.parametrize("name", ["", "words", "whitespace:x", "regex:", "hf", "hf:", "bert:"])
def test_no_such_tokenizer(name: str) -> None:
    text = f"there is no such tokenizer: expected whitespace, bert, regex:PATTERN or hf:FILE, found {name!r}"
    fault(lambda: count_tokens("-", tokenizer=name), UsageError, "unknown-tokenizer", text)


def test_tokenizers_that_cannot_be_made(tmp_path: Path, prose: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"^the pattern is none \(Oniguruma error.*\): found '\('$"):
        count_tokens(prose, tokenizer="regex:(")
    with pytest.raises(InputError, match=r"^prose\.txt: the file is no tokenizer\.json"):
        count_tokens(prose, tokenizer=f"hf:{prose}")
    fault(lambda: count_tokens(prose, tokenizer=f"hf:{tmp_path}/x"), InputError, "not-found",
          f"{tmp_path}/x: there is no such file")  # fmt: skip
    monkeypatch.setitem(__import__("sys").modules, "tokenizers", None)
    splitter_of.cache_clear()
    fault(lambda: count_tokens(prose, tokenizer="bert"), MissingPackageError, "missing-package",
          "the tokenizer bert needs tokenizers; install it with: pip install 'vec2emb[corpus]'")  # fmt: skip


# --- pieces -----------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    text=st.lists(st.sampled_from([b"a", b"bc", b"def" * 4, b" ", b"\n", b"\t", b"  "]), max_size=60).map(b"".join),
    size=st.integers(1, 40),
    by_line=st.booleans(),
)
def test_ranges_cut_no_token_and_lose_none(
    text: bytes, size: int, by_line: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("cut") / "a.txt"
    path.write_bytes(text)
    settings = Settings("regex:[^\n]+" if by_line else "whitespace")
    pieces = list(cut(find_inputs(path), size))
    found: list[bytes] = []
    buffer = bytearray()
    for piece in pieces:
        reader = reading.open_piece(piece, settings)
        while (block := reader.read(buffer)) is not None:
            data = bytes(buffer[: block.size])
            assert text[block.offset : block.offset + 1] in (b"", data[:1]) or not piece.is_whole
            found += [line for line in data.split(b"\n") if line] if by_line else data.split()
        reader.close()
    assert found == ([line for line in text.split(b"\n") if line] if by_line else text.split())
    assert [piece.start for piece in pieces] == list(range(0, len(text), size)) or len(pieces) == 1


def test_what_can_be_cut(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"x " * 50)
    (tmp_path / "b.txt").write_bytes(gzip.compress(np.random.default_rng(0).bytes(90)))
    (tmp_path / "c.txt.gz").write_bytes(gzip.compress(np.random.default_rng(0).bytes(90)))
    (tmp_path / "d").write_bytes(parquet(["some text here"] * 100, row_group_size=10))
    (tmp_path / "e.jsonl").write_bytes(b'{"text": "x"}\n')
    pieces = [(os.path.basename(p.path), p.kind, p.start, p.stop) for p in cut(find_inputs(tmp_path), 40)]
    assert pieces[:6] == [
        ("a.txt", "text", 0, 40),
        ("a.txt", "text", 40, 80),
        ("a.txt", "text", 80, 100),
        ("b.txt", "text", 0, None),
        ("c.txt.gz", "text", 0, None),
        ("d", "parquet", 0, 1),
    ]
    assert pieces[-1] == ("e.jsonl", "json", 0, None)
    assert [start for name, _, start, _ in pieces if name == "d"] == list(range(10))


def test_offsets_of_a_range_are_those_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"abc def ghi jkl")
    reader = reading.open_piece(Piece(str(path), "text", 5, 9), Settings())
    buffer = bytearray()
    block = reader.read(buffer)
    reader.close()
    assert block is not None
    assert (bytes(buffer[: block.size]), block.line) == (b"ghi ", None)
    assert block.offset == 8


# --- around it --------------------------------------------------------------------------------------------------------


def test_progress_goes_to_the_end(zipf: tuple[Path, bytes]) -> None:
    seen: list[tuple[int, int | None]] = []
    count_tokens(zipf[0], progress=lambda done, total: seen.append((done, total)))
    size = zipf[0].stat().st_size
    assert seen
    assert {total for _, total in seen} == {size}
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] <= size


def test_no_thread_outlives_an_interrupt(zipf: tuple[Path, bytes]) -> None:
    def stop(done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        count_tokens([zipf[0]] * 20, progress=stop, threads=3)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("vec2emb")]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"engine": "spark"}, "unknown-engine"),
        ({"scheduler": "threads"}, "scheduler-alone"),
        ({"parts": "x"}, "scheduler-alone"),
        ({"threads": 0}, "threads-range"),
        ({"threads": True}, "threads-range"),
        ({"encoding_errors": "ignore"}, "encoding-errors"),
        ({"memory": "none"}, "memory-range"),
    ],
)
def test_arguments_that_cannot_be(arguments: dict[str, Any], code: str, prose: Path) -> None:
    with pytest.raises(UsageError) as caught:
        count_tokens(prose, **arguments)
    assert caught.value.code == code


def test_white_space_needs_no_package(prose: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "duckdb", "tokenizers", "fsspec", "dask"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    check(count_tokens(prose), prose.read_bytes().split())
    fault(lambda: count_tokens(prose, engine="dask"), MissingPackageError, "missing-package",
          "reading and writing Parquet needs pyarrow; install it with: pip install 'vec2emb[corpus]'")  # fmt: skip
    assert inputs_module.PARQUET == b"PAR1"


@pytest.mark.parametrize("given", ["", "*", "**/*"])
def test_pipes_and_devices_of_a_folder_are_left_out(given: str, tmp_path: Path) -> None:
    """They may never end; named, they are read."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.txt").write_text("a b\n")
    (tmp_path / "sub" / "b.txt").write_text("a\n")
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "sub" / "pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    counts, found = collected(lambda: count_tokens(tmp_path / given if given else tmp_path))
    assert list(counts.tokens) == ["a", "b"]
    assert {warning.code for warning in found} == {"corpus-no-file"}
    assert sum(warning.count for warning in found) == (2 if given == "*" else 3)


def test_a_folder_of_pipes_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no file is there to count in"):
        count_tokens(tmp_path)
