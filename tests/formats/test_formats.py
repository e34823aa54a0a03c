"""Kinds of odd and broken files; what must come out is worked out by hand from the grammar of rows."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import pickle
import random
import struct
import sys
import tarfile
import time
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import bits, collected, run, ways
from safetensors.numpy import save as safetensors_of

import vec2emb
from vec2emb.errors import FormatError, InputError, RowError, SourceError, UsageError

BOM = b"\xef\xbb\xbf"
THE, OF, AND = b"the 0.5 -1.25 2\n", b"of 1 0.25 -0.75\n", b"and -0.5 0.125 0.0625\n"
V = {"the": [0.5, -1.25, 2], "of": [1, 0.25, -0.75], "and": [-0.5, 0.125, 0.0625]}


def read(data: bytes, **options: Any) -> Any:
    return vec2emb.read_vectors(io.BytesIO(data), **options)


def named(*tokens: str) -> dict[str, list[float]]:
    """Tokens with the vectors of `the`, `of` and `and`."""
    return dict(zip(tokens, V.values(), strict=False))


W2V = {"format": "word2vec"}
GLOVE = {"format": "glove"}
RECORD = struct.pack("<3f", 0.5, -1.25, 2) + b"\n"

# name: (bytes, arguments, tokens and vectors, warnings as (code, count, line))
GOOD: dict[str, tuple[bytes, dict[str, Any], dict[str, list[float]], list[tuple[str, int, int | None]]]] = {
    # Headers.
    "header leading zeros": (b"0002 03\n" + THE + OF, {}, named("the", "of"), []),
    "header trailing space": (b"2 3 \n" + THE + OF, {}, named("the", "of"), []),
    "header trailing tabs": (b"2 3\t\t\n" + THE + OF, {}, named("the", "of"), []),
    "header CR": (b"2 3\r\n" + THE + OF, {}, named("the", "of"), []),
    "header space CR": (b"2 3 \r\n" + THE + OF, {}, named("the", "of"), []),
    "header tab": (b"2\t3\n" + THE + OF, {}, named("the", "of"), []),
    "header spaces": (b"2   3\n" + THE + OF, {}, named("the", "of"), []),
    "header indented": (b" 2 3\n" + THE + OF, {}, named("the", "of"), []),
    "header BOM": (BOM + b"2 3\n" + THE + OF, {}, named("the", "of"), []),
    "header blank line": (b"2 3\n\n" + THE + OF, {}, named("the", "of"), [("blank-line", 1, 2)]),
    "header one row": (b"1 3\n" + THE, {}, named("the"), []),
    "header one row without LF": (b"1 3\n" + THE[:-1], {}, named("the"), [("missing-last-lf", 1, 2)]),
    "header dim 1": (b"2 1\nthe 5\nof 6\n", W2V, {"the": [5], "of": [6]}, []),
    "header dim 1 auto": (b"2 1\nnew york 5\nof 6\n", {}, {"new york": [5], "of": [6]}, []),
    "header is a row": (b"7 1\n8 2\n", GLOVE, {"7": [1], "8": [2]}, []),
    "header and dim": (b"2 3\n" + THE + OF, {"dim": 3}, named("the", "of"), []),
    "header limit": (b"9 3\n" + THE + OF + b"x y\n", {"limit": 2}, named("the", "of"), []),
    "header limit above": (b"2 3\n" + THE + OF, {"limit": 5}, named("the", "of"), []),
    "header unk": (b"2 3\n" + THE + OF + b"<unk> 1 2 3\n", {}, {**named("the", "of"), "<unk>": [1, 2, 3]},
                   [("extra-unk-row", 1, 4)]),
    "header counts unk": (b"2 3\n" + THE + b"<unk> 1 2 3\n", {}, {**named("the"), "<unk>": [1, 2, 3]}, []),
    "header counts blank lines not": (b"2 3\n" + THE + b"\n" + OF + b"\n\n", {}, named("the", "of"),
                                      [("blank-line", 1, 3)]),
    "header counts duplicates": (b"3 3\n" + THE + OF + THE, {}, named("the", "of"), [("duplicate-tokens", 1, 4)]),
    "header counts skipped rows": (b"3 3\n" + THE + b"x y z w\n" + OF, {"bad_rows": "skip"}, named("the", "of"),
                                   [("bad-rows", 1, 3)]),
    "header-like token": (b"2 3\n2 3 1 2 3\n" + THE, {}, {"2 3": [1, 2, 3], **named("the")},
                          [("numeral-ended-token", 1, 2)]),
    # Tokens.
    "digits": (b"7 1 2 3\n1e5 4 5 6\n-1 7 8 9\n", {}, {"7": [1, 2, 3], "1e5": [4, 5, 6], "-1": [7, 8, 9]}, []),
    "digits with header": (b"2 3\n7 1 2 3\n8 4 5 6\n", {}, {"7": [1, 2, 3], "8": [4, 5, 6]}, []),
    # The same look as something else, and yet vectors.
    "node ids": (b"1 0.5 -1.25 2\n17 1 0.25 -0.75\n2 -0.5 0.125 0.0625\n", {},
                 {"1": [0.5, -1.25, 2], "17": [1, 0.25, -0.75], "2": [-0.5, 0.125, 0.0625]}, []),
    "numerals among words": (b"0.5 1 2\nthe 3 4\n", {}, {"0.5": [1, 2], "the": [3, 4]}, []),
    "matrix, the dimension said": (b"0.5 1 2\n1.5 3 4\n", {"dim": 2}, {"0.5": [1, 2], "1.5": [3, 4]}, []),
    "counts, the dimension said": (b"the 12\nof 3\n", {"dim": 1}, {"the": [12], "of": [3]}, []),
    "one value a word": (b"the 0.5\nof -1.25\n", {}, {"the": [0.5], "of": [-1.25]}, []),
    "item ids": (b"item:17 0.5 1\nitem:3 1 2\n", {}, {"item:17": [0.5, 1], "item:3": [1, 2]}, []),
    "brackets of every kind": (b"[ 0.5 1\n] 1 2\n[0.5 3 4\n", {}, {"[": [0.5, 1], "]": [1, 2], "[0.5": [3, 4]}, []),
    "phrases": (b"new york 0.5 1\nlos angeles 1 2\n", {}, {"new york": [0.5, 1], "los angeles": [1, 2]}, []),
    "spaces": (b"New York 0.5 -1.25 2\n" + b"a  b c 1 0.25 -0.75\n" + AND, {}, named("New York", "a  b c", "and"), []),
    "spaces and digits": (b"at 2 0.5 -1.25 2\n" + OF + AND, {}, named("at 2", "of", "and"),
                          [("numeral-ended-token", 1, 1)]),
    "one value too many": (THE + b"of 9 1 0.25 -0.75\n" + AND, {}, named("the", "of 9", "and"),
                           [("numeral-ended-token", 1, 2)]),
    "space": (b"  0.5 -1.25 2\n" + OF, {}, named(" ", "of"), []),
    "three spaces": (b"    0.5 -1.25 2\n" + OF, {}, named("   ", "of"), []),
    "tab": (b"\t 0.5 -1.25 2\n" + OF, {}, named("\t", "of"), []),
    "space before tab": (b" \t0.5\t-1.25\t2\n" + OF, {}, named(" ", "of"), []),
    "tab tab": (b"\t\t0.5 -1.25 2\n" + OF, {}, named("\t", "of"), []),
    "leading space": (b" the 0.5 -1.25 2\n" + OF, {}, named(" the", "of"), []),
    "odd spaces": ("\u00a0 0.5 -1.25 2\n\u3000 1 0.25 -0.75\n\u0085 -0.5 0.125 0.0625\n".encode(), {},
                   named("\u00a0", "\u3000", "\u0085"), []),
    "odd line ends": ("\u2028 0.5 -1.25 2\n\u2029 1 0.25 -0.75\n\x0b\x0c\x1c -0.5 0.125 0.0625\n".encode(), {},
                      named("\u2028", "\u2029", "\x0b\x0c\x1c"), []),
    "odd spaces inside": ("a\u00a0b 0.5 -1.25 2\n\u3000c\u0085 1 0.25 -0.75\n".encode(), {},
                          named("a\u00a0b", "\u3000c\u0085"), []),
    "BOM": (BOM + THE + OF, {}, named("the", "of"), []),
    "BOM is the token": (BOM + b" 0.5 -1.25 2\n" + OF, {}, named("\ufeff", "of"), []),
    "BOM is the token, tabs": (BOM + b"\t0.5\t-1.25\t2\n" + OF, {}, named("\ufeff", "of"), []),
    "BOM twice": (BOM + BOM + b" 0.5 -1.25 2\n" + OF, {}, named("\ufeff", "of"), []),
    "BOM later": (THE + BOM + b" 1 0.25 -0.75\n" + BOM + b"and -0.5 0.125 0.0625\n", {},
                  named("the", "\ufeff", "\ufeffand"), []),
    "BOM in a row after the header": (b"2 3\n" + BOM + THE + OF, {}, named("\ufeffthe", "of"), []),
    "highest characters": ("\U0010ffff 0.5 -1.25 2\n\ufffe\uffff 1 0.25 -0.75\n\x7f\x01 -0.5 0.125 0.0625\n".encode(),
                           {}, named("\U0010ffff", "\ufffe\uffff", "\x7f\x01"), []),
    "normal forms are not merged": ("é 0.5 -1.25 2\ne\u0301 1 0.25 -0.75\n".encode(), {}, named("é", "e\u0301"), []),
    "long token": (b"x" * 70_000 + b" 0.5 -1.25 2\n" + OF, {}, named("x" * 70_000, "of"), []),
    "magic words": (b"GGUF 0.5 -1.25 2\nPAR1 1 0.25 -0.75\n<html> -0.5 0.125 0.0625\n", {},
                    named("GGUF", "PAR1", "<html>"), []),
    "a page's first word": (b"<html> 0.5 -1.25 2\n" + OF, {}, named("<html>", "of"), []),
    "brackets": (b"[ 0.5 -1.25 2\n{\" 1 0.25 -0.75\n( -0.5 0.125 0.0625\n", {}, named("[", '{"', "("), []),
    "commas": (b",5 0.5 -1.25 2\n1:2 1 0.25 -0.75\n;1 -0.5 0.125 0.0625\n", {}, named(",5", "1:2", ";1"), []),
    # Separators and line ends.
    "tabs": (b"the\t0.5\t-1.25\t2\nof\t1\t0.25\t-0.75\n", {}, named("the", "of"), []),
    "tab, then spaces": (b"ENTITY/New York\t0.5 -1.25 2\nof\t1 0.25 -0.75\n", {}, named("ENTITY/New York", "of"), []),
    "tab in a token": (b"a\tb 0.5 -1.25 2\n" + OF, {}, named("a\tb", "of"), []),
    "mixed": (b"the 0.5\t-1.25 \t2\n" + OF, {}, named("the", "of"), []),
    "excess": (b"the  0.5 -1.25 2\nof \t1 0.25 -0.75\n" + AND, {}, named("the", "of", "and"),
               [("excess-separators", 2, 1)]),
    "runs between values": (b"the 0.5   -1.25\t\t2\n" + OF, {}, named("the", "of"), []),
    "CRLF": ((b"2 3\n" + THE + OF).replace(b"\n", b"\r\n"), {}, named("the", "of"), []),
    "trailing": (b"the 0.5 -1.25 2 \nof 1 0.25 -0.75\t \nand -0.5 0.125 0.0625  \t\r\n", {}, V, []),
    "CR inside": (b"a\rb 0.5 -1.25 2\n\r 1 0.25 -0.75\n" + AND, {}, named("a\rb", "\r", "and"),
                  [("cr-in-token", 2, 1)]),
    "CR of a duplicate": (b"\r 0.5 -1.25 2\n\r 1 0.25 -0.75\n", {}, named("\r"),
                          [("cr-in-token", 1, 1), ("duplicate-tokens", 1, 2)]),
    "no last LF": (THE + OF[:-1], {}, named("the", "of"), [("missing-last-lf", 1, 2)]),
    "CR, no LF at the end": (b"the 0.5 -1.25 2\r\nof 1 0.25 -0.75\r", {}, named("the", "of"),
                             [("missing-last-lf", 1, 2)]),
    "blank first": (b"\n \n" + THE + OF, {}, named("the", "of"), [("blank-line", 2, 1)]),
    "blank in the middle": (THE + b"\r\n\t\n" + OF + b"\n" + AND, {}, V, [("blank-line", 3, 2)]),
    "blank last": (THE + OF + b"\n \n\r\n", {}, named("the", "of"), []),
    # Dimension.
    "dim": (THE + OF, {"dim": 3}, named("the", "of"), []),
    "dim settles a tie": (b"the 0.5 -1.25\nof 1 0.25 -0.75\n", {"dim": 2}, {"the": [0.5, -1.25], "of 1": [0.25, -0.75]},
                          [("numeral-ended-token", 1, 2)]),
    "dim of the most": (b"a b c\nx 1\n" + THE + OF, {"bad_rows": "skip"}, named("the", "of"), [("bad-rows", 2, 1)]),
    # Duplicates.
    "first": (THE + OF + b"the 9 9 9\n", {}, named("the", "of"), [("duplicate-tokens", 1, 3)]),
    "last": (THE + OF + b"the 7 8 9\nof 4 5 6\nthe 1 2 3\n", {"duplicates": "last"}, {"the": [1, 2, 3],
             "of": [4, 5, 6]},
             [("duplicate-tokens", 3, 3)]),
    "a duplicate's numbers are not read": (THE + OF + b"the x y z\n", {}, named("the", "of"),
                                           [("duplicate-tokens", 1, 3)]),
    "first good one": (b"the x y z\n" + OF + b"the 0.5 -1.25 2\n" + AND, {"bad_rows": "skip"},
                       {"of": V["of"], "the": V["the"], "and": V["and"]}, [("bad-rows", 1, 1)]),
    "last good one": (THE + OF + b"the x y z\n", {"bad_rows": "skip", "duplicates": "last"}, named("the", "of"),
                      [("duplicate-tokens", 1, 3)]),
    "last of three": (THE + OF + b"the x y z\nthe 1 2 3\nthe nan 1 1\n", {"bad_rows": "skip", "duplicates": "last"},
                      {"the": [1, 2, 3], "of": V["of"]}, [("duplicate-tokens", 3, 3)]),
    "no error about a skipped duplicate": (b"the x y z\n" + THE + OF, {"bad_rows": "skip", "duplicates": "error"},
                                           named("the", "of"), [("bad-rows", 1, 1)]),
    # Skipping.
    "skip bad rows": (THE + b"x 1 2\n 1 2 3\n\xff 1 2 3\nx a 1 2\nx 1e39 1 2\nx nan 1 2\n400 3\n" + OF,
                      {"bad_rows": "skip"}, named("the", "of"), [("bad-rows", 7, 2)]),
    "limit counts skipped rows": (THE + b"x y z w\n" + OF + AND, {"bad_rows": "skip", "limit": 3}, named("the", "of"),
                                  [("bad-rows", 1, 2)]),
    "limit before a fault": (THE + OF + b"x 1\n" + AND, {"limit": 2}, named("the", "of"), []),
    "limit before the end without LF": (THE + OF + AND[:-1], {"limit": 2}, named("the", "of"), []),
    "limit before a duplicate": (THE + OF + THE, {"limit": 2}, named("the", "of"), []),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_good(name: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, options, rows, warnings = GOOD[name]
    for threads in ways(monkeypatch, ("16", ""), (3,)):
        table, found = collected(lambda: read(data, threads=threads, **options))  # noqa: B023
        assert table.vocab.to_list() == list(rows)
        assert bits(table.vectors) == bits(list(rows.values()))
        assert sorted((w.code, w.count, w.line) for w in found) == sorted(warnings)
    if warnings:
        with pytest.raises(InputError) as strict:
            read(data, strict=True, **options)
        assert strict.value.code in [code for code, _, _ in warnings]
        assert "--strict" in str(strict.value)


# name: (bytes, arguments, code, line, words of the message)
BAD: dict[str, tuple[bytes, dict[str, Any], str, int | None, str]] = {
    # Headers.
    "too few": (b"3 3\n" + THE + OF, {}, "header-too-few-rows", None, "expected 3 rows, found 2"),
    "too many": (b"1 3\n" + THE + OF, {}, "header-too-many-rows", None, "expected 1 rows, found 2"),
    "unk not last": (b"2 3\n" + THE + b"<unk> 1 2 3\n" + OF, {}, "header-too-many-rows", None,
                     "expected 2 rows, found 3"),
    "two more than promised": (b"1 3\n" + THE + OF + b"<unk> 1 2 3\n", {}, "header-too-many-rows", None, "found 3"),
    "limit short of a cut file": (b"9 3\n" + THE + OF, {"limit": 5}, "header-too-few-rows", None, "expected 9 rows"),
    "skipping does not hide a cut": (b"9 3\n" + THE + b"x\n", {"bad_rows": "skip"}, "header-too-few-rows", None,
                                     "expected 9 rows, found 2"),
    "huge count": (b"9" * 26 + b" 3\n" + THE, {}, "header-too-few-rows", None, "found 1"),
    "absurd count": (b"9" * 5000 + b" 3\n" + THE + OF, {}, "header-in-glove", 1, "looks like a Word2Vec header"),
    "absurd count as word2vec": (b"9" * 5000 + b" 3\n" + THE, W2V, "header-missing", 1, "two numbers"),
    "huge dim": (b"1 99999999999\n" + THE, {}, "header-dim-range", 1, "'1 99999999999'"),
    "large dim": (b"1 4000000\n" + THE, {}, "row-width", 2,
                  "expected 4000000 after the token (from the header), found 3"),
    "dim 0": (b"2 0\nthe\nof\n", {}, "header-dim-range", 1, "'2 0'"),
    "dim 0 with rows": (b"2 0\n" + THE + OF, {}, "header-dim-range", 1, "'2 0'"),
    "0 0": (b"0 0\n" + THE, {}, "header-zero-rows", 1, "'0 0'"),
    "zero rows": (b"0 3\n" + THE, {}, "header-zero-rows", 1, "but rows follow"),
    "header alone": (b"5 3\n", {}, "header-alone", 1, "expected 5 rows, found none"),
    "header alone without LF": (b"5 3", {}, "header-alone", 1, "expected 5 rows, found none"),
    "header alone, blank lines": (b"5 3\r\n\n \n", {}, "header-alone", 1, "expected 5 rows, found none"),
    "zero header alone": (b"0 3\n", {}, "header-alone", 1, "expected rows, found none"),
    "swapped": (b"3 2\n" + THE + OF, {}, "header-swapped", 1, "should read: 2 3"),
    "swapped the other way": (b"2 3\nthe 1 2\nof 3 4\nand 5 6\n", {}, "header-swapped", 1, "should read: 3 2"),
    "negative": (b"-2 3\n" + THE + OF, {}, "row-width", 1, "found 1 in '-2 3'"),
    "float": (b"2.0 3.0\n" + THE + OF, {}, "row-width", 1, "found 1 in '2.0 3.0'"),
    "three numbers": (b"2 3 4\n" + THE + OF, {}, "row-width", 1, "found 2 in '2 3 4'"),
    "one number": (b"2\n" + THE + OF, {}, "row-width", 1, "found 0 in '2'"),
    "full-width header": ("２ ３\n".encode() + THE + OF, {}, "row-width", 1, "expected 3"),
    "no header": (THE + OF, W2V, "header-missing", 1, "use --format glove"),
    "blank line before the header": (b"\n2 3\n" + THE + OF, {}, "second-header", 2, "a header stands on line 1 only"),
    "second header": (b"2 3\n" + THE + b"1 3\n" + OF, {}, "second-header", 3, "looks like a header"),
    "second header without a first": (THE + OF + b"1 3\n" + AND, {}, "second-header", 3, "looks like a header"),
    "header as GloVe": (b"2 3\n" + THE + OF, GLOVE, "header-in-glove", 1, "use --format word2vec"),
    "ambiguous header": (b"2 1\nthe 5\nof 6\n", {}, "ambiguous-header", 1, "--format glove"),
    "dim against header": (b"2 3\n" + THE + OF, {"dim": 2}, "dim-mismatch", 1, "expected --dim 2, found '2 3'"),
    "header too small": (b"2 2\n" + THE + OF, {}, "dim-too-small", None, "several values a word too many"),
    "header too small by far": (b"2 1\nthe 1 2 3 4\nof 1 2 3 4\n", {}, "dim-too-small", None, "-model"),
    "header too large": (b"2 4\n" + THE + OF, {}, "row-width", 2,
                         "expected 4 after the token (from the header), found 3"),
    # Dimension.
    "tie": (b"the 0.5 -1.25\n" + OF, {}, "ambiguous-dim", None, "--dim 3"),
    "tie of three": (b"a 1\nb 1 2\nc 1 2 3\n", {}, "ambiguous-dim", None, "rows of 1, 2, 3 values"),
    "dim too large": (THE + OF, {"dim": 4}, "row-width", 1, "expected 4 after the token (from --dim), found 3"),
    "dim too small": (THE + OF, {"dim": 2}, "dim-too-small", None,
                      "expected 2 from --dim, found 3 values in most rows"),
    "GloVe model 0": (b"a 1 2 3 4 5 6 7 8\nb 1 2 3 4 5 6 7 8\n", {"dim": 3}, "dim-too-small", None, "-model 1"),
    "GloVe model 0 with header": (b"2 3\na 1 2 3 4 5 6 7 8\nb 1 2 3 4 5 6 7 8\n", {}, "dim-too-small", None,
                                  "-model 1"),
    "most rows wider": (b"".join(b"w%d" % i + b" 1" * n + b"\n" for i, n in enumerate([3, 3, 3, 4, 4, 5, 5])), {},
                        "dim-too-small", None, "expected 3, the commonest number"),
    # Rows.
    "short first": (b"the 0.5 -1.25\n" + OF + AND, {}, "row-width", 1, "found 2 in 'the 0.5 -1.25'"),
    "short middle": (THE + b"x 1 2\n" + OF + AND, {}, "row-width", 2, "expected 3 after the token (as in most rows)"),
    "short last": (THE + OF + b"and -0.5 0.125", {}, "row-width", 3, "found 2"),
    "word alone": (THE + b"word\n" + OF, {}, "row-width", 2, "found 0 in 'word'"),
    "empty token": (THE + OF + b" 1 2 3\n", {}, "empty-token", 3, "starts with its separator"),
    "line feed in a token": (THE + b"a\nb 1 2 3\n" + OF, {}, "row-width", 2, "found 0 in 'a'"),
    "CR twice": (b"2 3\n" + THE + b"of 1 2 3\r\r\n", {}, "not-a-numeral", 3, r"found '3\r'"),
    "space after CR": (b"2 3\n" + THE + b"of 1 2 3\r \n", {}, "not-a-numeral", 3, r"found '3\r'"),
    "CR for LF": (b"the 0.5 -1.25 2\rof 1 0.25 -0.75\r", {}, "cr-line-ends", 1, "CR alone"),
    "CR for LF with header": (b"2 3\rthe 0.5 -1.25 2\rof 1 0.25 -0.75", {}, "cr-line-ends", 1, "CR alone"),
    "CR for LF but the last": (b"2 3\rthe 0.5 -1.25 2\rof 1 0.25 -0.75\n", W2V, "cr-line-ends", 1, "expected LF"),
    "first fault": (THE + b"a 1 2\n\xff 1 2 3\nb x 1 1\n" + OF, {}, "row-width", 2, "too few"),
    "a number before a width": (THE + b"b x 1 1\na 1 2\n" + OF + AND, {}, "not-a-numeral", 2, "found 'x'"),
    "nan before a width": (THE + OF + b"b nan 1 1\nc nan 1 1\na 1 2\n", {}, "non-finite", 3, "2 rows"),
    "all skipped": (b"a x y z\nb x y z\nc 1 2 w\n", {"bad_rows": "skip", "dim": 3}, "all-rows-skipped", None,
                    "all 3 rows"),
    "duplicate": (THE + OF + AND + OF + THE, {"duplicates": "error"}, "duplicate-token", 4, "on lines 2 and 4"),
    "duplicate after blank lines": (b"\n" + THE + b"\n" + THE, {"duplicates": "error"}, "duplicate-token", 4,
                                    "lines 2 and 4"),
    "fault before a duplicate": (THE + b"x y z w\n" + THE, {"duplicates": "error", "dim": 3}, "not-a-numeral", 2,
                                 "'y'"),
    "duplicate before a fault": (THE + THE + b"x y z w\n", {"duplicates": "error"}, "duplicate-token", 2,
                                 "lines 1 and 2"),
    # Encodings.
    "Latin-1": (THE + b"caf\xe9 1 2 3\n", {}, "invalid-utf8", 2, "63 61 66 e9"),
    "overlong": (THE + b"\xc0\xaf 1 2 3\n", {}, "invalid-utf8", 2, "c0 af"),
    "surrogate": (THE + b"\xed\xa0\x80 1 2 3\n", {}, "invalid-utf8", 2, "ed a0 80"),
    "beyond Unicode": (THE + b"\xf4\x90\x80\x80 1 2 3\n", {}, "invalid-utf8", 2, "f4 90 80 80"),
    "cut character": (THE + b"\xe4\xb8 1 2 3\n", {}, "invalid-utf8", 2, "e4 b8"),
    "lone continuation": (THE + b"a\x80 1 2 3\n", {}, "invalid-utf8", 2, "61 80"),
    "NUL in the head": (THE + b"a\0b 1 2 3\n", {}, "nul-bytes", 2, "NUL"),
    "UTF-16 with mark": ("2 3\nthe 1 2 3\n".encode("utf-16"), {}, "is-utf-16", None, "iconv -f UTF-16"),
    "UTF-16 big with mark": (b"\xfe\xff" + "the 1 2 3\n".encode("utf-16-be"), {}, "is-utf-16", None, "UTF-16"),
    "UTF-16LE": ("2 3\nthe 1 2 3\nof 1 2 3\n".encode("utf-16-le"), {}, "is-utf-16", None, "iconv -f UTF-16LE"),
    "UTF-16BE": ("中国 1 2 3\n日本 1 2 3\n".encode("utf-16-be"), {}, "is-utf-16", None, "iconv -f UTF-16BE"),
    "UTF-32": ("the 1 2 3\n".encode("utf-32"), {}, "is-utf-32", None, "UTF-32"),
    # Something else.
    "empty": (b"", {}, "empty-file", None, "the file is empty"),
    "blank": (b"\n \r\n\t\n", {}, "no-rows", None, "nothing but blank lines"),
    "BOM alone": (BOM, {}, "no-rows", None, "nothing but blank lines"),
    "BOM and LF": (BOM + b"\n", {}, "no-rows", None, "nothing but blank lines"),
    "prose without numbers": (b"the best of times,\nthe worst of times.\n", {}, "no-values", 1, "end in no numbers"),
    "word list": (b"cat\ndog\npig\n", {}, "no-values", 1, "found 'cat'"),
    "one long line": (b"word " * 1_000_000, {}, "row-too-long", None, "does not end within 4 MiB"),
    "one long line after a header": (b"1 3\n" + b"word " * 1_000_000, {}, "row-too-long", None, "does not end"),
    "commas": (b"the,0.5,-1.25,2\nof,1,0.25,-0.75\n", {}, "is-commas", 1, "commas"),
    "commas and spaces": (b"the, 0.5, -1.25, 2\nof, 1, 0.25, -0.75\n", {}, "is-commas", 1, "commas"),
    "commas with column names": (b"word,d0,d1\nthe,0.5,2\nof,1,2\n", {}, "is-commas", 1, "commas"),
    "semicolons": (b"the;0.5;-1.25;2\nof;1;0.25;-0.75\n", {}, "is-semicolons", 1, "semicolons"),
    "commas after a header": (b"2 3\nthe,0.5,-1.25,2\n", {}, "row-width", 2, "fields separated by commas"),
    "decimal commas": (b"the 0,5 -1,25 2\nof 1 0,25 -0,75\n", {}, "is-decimal-comma", 1, "decimal commas"),
    "decimal commas after a header": (b"1 3\nthe 0,5 -1,25 2,0\n", {}, "not-a-numeral", 2, "decimal commas"),
    "sparse": (b"the 1:0.5 7:-1.25\nof 2:1\n", {}, "is-sparse", 1, "index:value"),
    "sparse after a header": (b"1 2\nthe 1:0.5 7:-1.25\n", {}, "not-a-numeral", 2, "index:value"),
    "printed lists": (b"the [0.5, -1.25, 2]\nof [1, 0.25, -0.75]\n", {}, "is-printed-array", 1, "printed arrays"),
    "printed over lines": (b"the [ 0.1  0.2\n  0.3  0.4\n  0.5 -0.4]\n" * 9, {}, "is-printed-array", 1, "printed"),
    "printed over lines, without words": (b"[[ 0.1 0.2\n 0.3 0.4]\n" * 9, {}, "is-printed-array", 1, "printed arrays"),
    "matrix with tabs": (b"0.5\t1\t-2\n-1e-3\t4\t5\n", {}, "is-matrix", 1, "rows of 3 numbers without words"),
    "matrix of zeros and ones": (b"0 1 0\n1 0 0\n0 1 1\n1 1 0\n", {}, "is-matrix", 1, "without words"),
    "matrix of signed whole numbers": (b"3 1 0\n-7 0 0\n4 1 1\n-5 1 0\n", {}, "is-matrix", 1, "without words"),
    "matrix said to be glove": (b"0.5 1 -2\n-0.25 4 5\n", GLOVE, "is-matrix", 1, "without words"),
    "counts": (b"</s> 0\nthe 1061396\nof 593677\n", {}, "is-word-counts", 1, "words with their counts"),
    "counts with tabs": (b"the\t12\nof\t3\n", {}, "is-word-counts", 1, "--vocab"),
    "log": (b"epoch 1 loss 0.52 0.3\nepoch 2 loss 0.41 0.2\n", {}, "is-text-with-numbers", 1, "--dim 2"),
    "prose": (b"we were 7\nthey were 12 of 3.5\nit was 9\n", {}, "is-text-with-numbers", 1, "--dim 1"),
    "glued with a comma": (b"the,0.5 1 2\nof,1e-2 4 5\n", {}, "is-glued-value", 1, "add --dim 2"),
    "glued after a header": (b"2 2\nthe:-.5 1 2\nof:1.25 4 5\n", {}, "is-glued-value", 2, "add --dim 2"),
    "row index with tabs": (b"0\tthe\t0.5\t1\n1\tof\t2\t3\n", {}, "is-row-index", 1, "row number"),
    "row index under names": (b"x word 0 1\n0 the 0.5 1\n1 of 2 3\n2 to 4 5\n", {}, "is-row-index", 1, "row number"),
    "row index after a header": (b"2 2\n7 the 0.5 1\n8 of 2 3\n", W2V, "is-row-index", 2, "row number"),
    "printed tensors": (b"the tensor([0.5, -1.25])\nof tensor([1., 0.25])\n", {}, "is-printed-array", 1, "printed"),
    "floret": (b"5 3 4 5 2 2166136261 < >\n0 1 2 3\n", {}, "is-floret", None, "floret"),
    "page": (b"<html><head></head></html>\n", {}, "is-html", None, "HTML page"),
    "page with BOM": (BOM + b"<!DOCTYPE html>\n", {}, "is-html", None, "HTML page"),
    "page after blank lines": (b"\r\n\n  <HTML lang='en'>\n", {}, "is-html", None, "HTML page"),
    "page after a comment": (b"<!-- saved from -->\n<html>\n", {}, "is-html", None, "HTML page"),
    "page in one line": (b"<html><body>Error 404", {}, "is-html", None, "HTML page"),
    "page as word2vec": (b"<!doctype HTML PUBLIC '-//W3C'>\n", W2V, "is-html", None, "HTML page"),
    "XML": (b"<?xml version='1.0'?><Error>AccessDenied</Error>", {}, "is-xml", None, "XML"),
    "JSON object": (json.dumps({"the": [0.5, -1.25]}).encode(), {}, "is-json", None, "JSON"),
    "JSON lines": (b'{"word": "the", "vector": [1, 2]}\n', {}, "is-json", None, "JSON"),
    "JSON list": (b"[\n  [0.5, 2],\n", {}, "is-json", None, "JSON"),
    "LFS": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n", {}, "is-git-lfs", None,
            "git lfs pull"),
    "fastText model": (b"\xba\x16\x4f\x2f" + bytes(40), {}, "is-fasttext-bin", None, "fastText model"),
    "Parquet": (b"PAR1\x15\x04\x15" + bytes(20) + b"PAR1", {}, "is-parquet", None, "Parquet"),
    "HDF5": (b"\x89HDF\r\n\x1a\n" + bytes(20), {}, "is-hdf5", None, "HDF5"),
    "binary, huge count": (b"9" * 26 + b" 3\n</s> " + RECORD, {}, "binary-cut", None, "record 2"),
    "binary goes on": (b"1 3\n</s> " + RECORD + b"a " + RECORD, {}, "binary-trailing-bytes", None, "found more bytes"),
    "bytes": (bytes(range(256)), {}, "nul-bytes", 1, "NUL"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad(name: str, kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data, options, code, line, words = BAD[name]
    for threads in ways(monkeypatch, ("16", ""), (3,)):
        with pytest.raises(InputError) as caught:
            read(data, threads=threads, **options)
        error = caught.value
        assert (error.code, error.line, error.path) == (code, line, "<stream>")
        assert words in str(error)
        if isinstance(error, RowError):
            assert line is not None
            assert str(error).startswith(f"<stream>, line {line}: ")
            if code != "duplicate-token":
                assert error.offset is not None
                assert data[: error.offset].count(b"\n") == line - 1


NUMERALS = [
    *"+1 -1 .5 -.5 5. +5. 1. 0 -0 +0 -0.0 00001 1e5 1E5 1e+5 1e-5 1e05 1.e3 .5e1 1e-400 -1e-400 1e0".split(),  # noqa: SIM905
    *"1e22 1e23 1e-22 3.4028235e38 3.4028235677973362e38 -3.4028235e38 1.17549435e-38 1e-45 7e-46 8e-46".split(),  # noqa: SIM905
    *"0.1 0.30000001192092896 16777217 16777219 9007199254740993 123456789012345678901234567890".split(),  # noqa: SIM905
    *"1.0000000596046448 1.00000005960464477540 1.000000178813934326171875 8.5899345919999999e9".split(),  # noqa: SIM905
    *["0.000000000000000000000000000001", "2.2250738585072011e-308", "1" * 38, "0." + "0" * 60 + "1"],
    *["0" * 400 + "1.5", "1." + "0" * 400 + "1", "0.5" + "0" * 400],
]


def test_numerals(kernel: str) -> None:
    """Each is the nearest float64, rounded to float32: numpy's two steps are the oracle."""
    rows = "".join(f"w{i} 0 {text} {text}\n" for i, text in enumerate(NUMERALS))
    table = read(f"{len(NUMERALS)} 3\n{rows}".encode())
    expected = [[0, np.float32(float(text)), np.float32(float(text))] for text in NUMERALS]
    assert bits(table.vectors) == bits(expected)


def test_random_numerals(kernel: str) -> None:
    """Digits of every length and power, some close to half-way between two float32."""
    draw = random.Random(7)
    texts = []
    for _ in range(400):
        digits = "".join(draw.choice("0123456789") for _ in range(draw.randint(1, 25)))
        point = draw.randint(0, len(digits))
        texts.append(f"{digits[:point]}.{digits[point:]}e{draw.randint(-50, 12)}")
        x = struct.unpack("<f", struct.pack("<I", draw.randint(0x00000001, 0x7F000000)))[0]
        half = (x + np.nextafter(np.float32(x), np.float32(np.inf))) / 2
        texts += [repr(float(x)), repr(float(half)), f"{x:.6g}", f"{half:.25g}"]
    table = read(f"{len(texts)} 1\n".encode() + "".join(f"w{i} {t}\n" for i, t in enumerate(texts)).encode(), **W2V)
    assert bits(table.vectors) == bits([[np.float32(float(text))] for text in texts])


WORDS = [
    *"1_0 0x10 0x1p3 0b1 0o7 1.2.3 . - + -. +. e5 .e5 1e 1e+ 1e- 1e5.5 1f 1.5f 1d5 1l 1L --1 +-1 1- 1+1 1,5".split(),  # noqa: SIM905
    *"1'000 $1 1% nan(1) nan(ind) -nan(ind) nan0 1.#IND 1.#INF infin infi infinit infinityy in na none None".split(),  # noqa: SIM905
    *["NULL", "null", "true", "#N/A", "１", "٣", "½", "²", "∞", "−1", "1\u00a0", "\u00a01", "1e400x", "x"],
]


@pytest.mark.parametrize("policy", ["error", "keep"])
def test_words_are_no_numerals(policy: str, kernel: str) -> None:
    for word in WORDS:
        for row in (f"w {word} 1", f"w 1 {word}"):
            with pytest.raises(RowError) as caught:
                read(f"2 2\nthe 1 2\n{row}\n".encode(), nonfinite=policy)
            assert (caught.value.code, caught.value.line) == ("not-a-numeral", 3)


@pytest.mark.parametrize(
    "text", ["1e39", "-1e39", "1e400", "-1e400", "3.4028235677973366e38", "9" * 400, "1e99999999999999999999"]
)
def test_out_of_range(text: str, kernel: str) -> None:
    for policy in ("error", "keep", "zero"):
        with pytest.raises(RowError, match="does not fit float32") as caught:
            read(f"the 1 2\nof 1 {text}\nand 1 2\n".encode(), nonfinite=policy)
        assert (caught.value.code, caught.value.line) == ("out-of-range", 2)


NONFINITE = ["nan", "NaN", "NAN", "+nan", "-nan", "inf", "Inf", "+INF", "-inf", "infinity", "-Infinity"]


def test_nonfinite(kernel: str, block: str) -> None:
    """`nan` and `inf` in every spelling of C: an error that counts them, or kept, or zero."""
    rows = b"the 1 2\n" + b"".join(b"w%d 1 %s\n" % (i, text.encode()) for i, text in enumerate(NONFINITE))
    with pytest.raises(RowError, match="11 rows with such values") as caught:
        read(rows, threads=3)
    assert (caught.value.code, caught.value.line, caught.value.found) == ("non-finite", 2, "'nan'")
    kept = read(rows, nonfinite="keep", threads=3)
    values = [float(text) for text in NONFINITE]
    assert [math.isnan(v) for v in kept.vectors[1:, 1]] == [math.isnan(v) for v in values]
    assert [math.copysign(1, v) for v in kept.vectors[1:, 1]] == [math.copysign(1, v) for v in values]
    zeroed = read(rows, nonfinite="zero", threads=3)
    assert bits(zeroed.vectors) == bits([[1, 2], *([1, 0] for _ in NONFINITE)])
    assert kept.report.nonfinite == zeroed.report.nonfinite == 11
    one = read(rows, nonfinite="keep", limit=4)
    assert one.report.nonfinite == 3


@pytest.mark.parametrize(
    ("dtype", "fits", "too_large"),
    [("float16", "65519.99", "65520"), ("bfloat16", "3.396177e38", "3.396178e38"), ("float16", "-65519", "-1e5")],
)
def test_range_of_the_dtype(dtype: str, fits: str, too_large: str, kernel: str, tmp_path: Path) -> None:
    source = tmp_path / "v.txt"
    source.write_text(f"the 1 2\nof 1 {fits}\n")
    vec2emb.convert(source, tmp_path / "out", dtype=dtype, unk_init="zeros")
    assert np.isfinite(vec2emb.load(tmp_path / "out").vectors).all()
    source.write_text(f"the 1 2\nof 1 {too_large}\n")
    with pytest.raises(RowError, match=f"does not fit {dtype}") as caught:
        vec2emb.convert(source, tmp_path / "two", dtype=dtype)
    assert (caught.value.code, caught.value.line) == ("out-of-range", 2)
    assert sorted(os.listdir(tmp_path)) == ["out", "v.txt"]


MANY = b"".join(b"w%d %d 1 2\n" % (i, i) for i in range(2000))


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (b"a\0b 1 2 3", "nul-byte"),
        (b"ab 1 2 3\0", "not-a-numeral"),
        (b"\0\0\0\0", "row-width"),
        (b"\xff 1 2 3", "invalid-utf8"),
    ],
)
def test_deep_in_the_file(row: bytes, code: str, kernel: str) -> None:
    """Behind the rows that detection looks at, bytes that are no text are the fault of their row."""
    head = b"".join(b"%d%s 1 2 3\n" % (i, b"x" * 150) for i in range(2000))
    with pytest.raises(RowError) as caught:
        read(head + row + b"\n" + MANY, threads=3)
    assert (caught.value.code, caught.value.line) == (code, 2001)
    table, found = collected(lambda: read(head + row + b"\nlast 1 2 3\n", bad_rows="skip", threads=3))
    assert len(table) == 2001
    assert [(w.code, w.count, w.line) for w in found] == [("bad-rows", 1, 2001)]


def test_first_fault_whatever_the_blocks(kernel: str, block: str) -> None:
    """Of many faults the first in the file is raised, and what stands after it changes nothing."""
    faults = {700: b"a 1 2", 701: b"\xff 1 2 3", 900: b"x y z w", 1400: b" 1 2 3", 1999: b"b nan 1 2"}
    rows = MANY.splitlines()
    for drop in range(len(faults)):
        left = dict(list(faults.items())[drop:])
        data = b"\n".join(left.get(i, row) for i, row in enumerate(rows)) + b"\n"
        with pytest.raises(RowError) as caught:
            read(data, threads=3 if drop % 2 else 1)
        assert caught.value.line == min(left) + 1


# Compression.

PLAIN = b"3 3\n" + THE + OF + AND
GZ = gzip.compress(PLAIN, mtime=0)


def gz(*members: bytes) -> bytes:
    return b"".join(gzip.compress(member, mtime=0) for member in members)


@pytest.mark.parametrize(
    "data",
    [
        GZ,
        gz(PLAIN[:9], PLAIN[9:]),
        gz(*(PLAIN[i : i + 1] for i in range(len(PLAIN)))),
        gz(b"", PLAIN, b""),
        GZ + bytes(1000),
        gz(PLAIN[:9]) + bytes(512) + gz(PLAIN[9:]),
        gzip.compress(PLAIN, compresslevel=0),
    ],
    ids=["one", "two", "many", "empty members", "padded", "padded between", "stored"],
)
def test_gzip(data: bytes, kernel: str, block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        table = read(data, threads=3)
        assert table.vocab.to_list() == list(V)
        assert bits(table.vectors) == bits(list(V.values()))
        assert table.report.compression == "gzip"
        monkeypatch.setitem(sys.modules, "isal", None)  # and with the standard library


@pytest.mark.parametrize("library", ["isal", "zlib"])
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (GZ[:-1], "compressed-data-cut"),
        (GZ[:-8], "compressed-data-cut"),
        (GZ[:20], "compressed-data-cut"),
        (GZ[:10], "compressed-data-cut"),
        (GZ[:3], "compressed-data-cut"),
        (GZ[:2], "compressed-data-cut"),
        (GZ[:-8] + b"\0\0\0\0" + GZ[-4:], "compressed-data-corrupt"),
        (GZ[:-4] + b"\0\0\0\0", "compressed-data-corrupt"),
        (GZ[:14] + b"\xff\xff\xff\xff" + GZ[18:], "compressed-data-corrupt"),
        (GZ + b"garbage", "compressed-data-corrupt"),
        (GZ + b"\x1f", "compressed-data-corrupt"),
        (GZ + GZ[:15], "compressed-data-cut"),
        (gz(b""), "empty-file"),
        (gz(b"\n\n"), "no-rows"),
        (gz(GZ), "is-gzip-twice"),
        (b"\x1f\x8b\x07" + GZ[3:], "compressed-data-corrupt"),
    ],
)
def test_bad_gzip(data: bytes, code: str, library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if library == "zlib":
        monkeypatch.setitem(sys.modules, "isal", None)
    source = tmp_path / "v.vec.gz"
    source.write_bytes(data)
    with pytest.raises(InputError) as caught:
        vec2emb.convert(source, tmp_path / "out")
    assert caught.value.code == code
    assert caught.value.path == str(source)
    assert os.listdir(tmp_path) == ["v.vec.gz"]


def test_gzip_cut_anywhere(kernel: str) -> None:
    """Wherever a compressed file without a header is cut, it never passes for a shorter one."""
    data = gz(MANY[:3000], MANY[3000:6000])
    for size in [*range(2, len(data), 97), len(data) - 1]:
        with pytest.raises(SourceError) as caught:
            read(data[:size])
        if size != len(gz(MANY[:3000])):
            assert caught.value.code == "compressed-data-cut"


def test_a_fault_before_a_cut(kernel: str, block: str) -> None:
    """The first fault in the order of the file: a row in front of the place where the data end."""
    noise = random.Random(1).randbytes(100_000).hex().encode()
    data = gz(THE + OF + b"x y z w\n" + b"".join(b"%s 1 2 3\n" % noise[i : i + 100] for i in range(0, 200_000, 100)))
    with pytest.raises(RowError) as caught:
        read(data[: len(data) // 2], threads=3)
    assert (caught.value.code, caught.value.line) == ("not-a-numeral", 3)
    assert read(data[: len(data) // 2], limit=2).vocab.to_list() == ["the", "of"]


@pytest.mark.parametrize(("name", "data"), [("v.txt", GZ), ("v.gz", PLAIN), ("v.bin", PLAIN), ("noname", GZ)])
def test_the_name_says_nothing(name: str, data: bytes, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_bytes(data)
    assert vec2emb.read_vectors(source).vocab.to_list() == list(V)


# Other kinds of files, made by those who make them.


def _pickles() -> dict[str, bytes]:
    words = {"the": [0.5, -1.25], "of": [1.0, 0.25]}
    made = {f"dict, protocol {p}": pickle.dumps(words, p) for p in range(6)}
    made |= {f"list, protocol {p}": pickle.dumps(["the", 0.5], p) for p in range(6)}
    made |= {f"array, protocol {p}": pickle.dumps(np.zeros(3), p) for p in range(6)}
    return made | {f"object, protocol {p}": pickle.dumps(Path("x"), p) for p in range(6)}


@pytest.mark.parametrize(("name", "data"), _pickles().items(), ids=_pickles())
def test_pickles_are_not_opened(name: str, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("a pickle was opened")

    monkeypatch.setattr(pickle, "load", never)
    monkeypatch.setattr(pickle, "loads", never)
    for format in ("auto", "word2vec", "glove"):
        with pytest.raises(FormatError, match="a Python pickle, which can run any code") as caught:
            read(data, format=format)
        assert caught.value.code == "is-pickle"


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.eye(3, dtype=np.float32))
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (_npy(), "is-numpy"),
        (safetensors_of({"weight": np.eye(3, dtype=np.float32)}), "is-safetensors"),
        (safetensors_of({"weight": np.eye(3, dtype=np.float32)}, {"format": "pt"}), "is-safetensors"),
        (zlib.compress(PLAIN), "is-zlib"),
        (zlib.compress(PLAIN, 9), "is-zlib"),
    ],
)
def test_other_files(data: bytes, code: str) -> None:
    with pytest.raises(FormatError) as caught:
        read(data)
    assert caught.value.code == code


def test_parquet_and_arrow() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"word": ["the", "of"], "x": [0.5, 1.0]})
    file = io.BytesIO()
    parquet.write_table(table, file)
    with pytest.raises(FormatError, match="a Parquet file"):
        read(file.getvalue())
    file = io.BytesIO()
    with pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(FormatError, match="an Arrow file"):
        read(file.getvalue())


def test_sqlite(tmp_path: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(tmp_path / "v.db")
    connection.execute("create table vectors (word text, x real)")
    connection.commit()
    connection.close()
    with pytest.raises(FormatError, match="an SQLite database"):
        vec2emb.read_vectors(tmp_path / "v.db")


# Where the bytes come from.


def test_pipes_and_files_give_the_same(kernel: str, tmp_path: Path) -> None:
    source = tmp_path / "v.txt"
    source.write_bytes(MANY)
    expected = vec2emb.read_vectors(source)
    for data in (MANY, gzip.compress(MANY)):
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:  # a writer that is slow at first
            os.close(reading)
            for i in range(0, len(data), 1000):
                os.write(writing, data[i : i + 1000])
                time.sleep(0.01 if i < 5000 else 0)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            table = vec2emb.read_vectors(pipe, threads=3)
        os.waitpid(pid, 0)
        assert table.vocab.to_list() == expected.vocab.to_list()
        assert bits(table.vectors) == bits(expected.vectors)


def test_what_python_read_ahead_of_a_pipe_is_not_lost() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a line for the caller\n" + PLAIN)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert pipe.readline() == b"a line for the caller\n"
        assert vec2emb.read_vectors(pipe).vocab.to_list() == list(V)


def test_a_pipe_that_does_not_block() -> None:
    """A reader that finds nothing yet does not take that for the end."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        for piece in (b"3 3\nthe 0.5 -1", b".25 2\nof 1 0.25 -0.75\n", AND):
            time.sleep(0.05)
            os.write(writing, piece)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        assert vec2emb.read_vectors(pipe).vocab.to_list() == list(V)
    os.waitpid(pid, 0)


def test_a_file_that_gives_nothing_yet() -> None:
    class Unready(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> None:
            return None

    with pytest.raises(SourceError, match="open it in blocking mode"):
        vec2emb.read_vectors(Unready())  # type: ignore[arg-type]


def test_files_that_give_little_at_a_time(kernel: str) -> None:
    class Slow(io.BytesIO):
        def readinto(self, buffer: Any) -> int:
            return super().readinto(memoryview(buffer)[:3])

    assert read(PLAIN).vocab.to_list() == vec2emb.read_vectors(Slow(PLAIN)).vocab.to_list() == list(V)
    assert vec2emb.read_vectors(Slow(GZ)).vocab.to_list() == list(V)


class _OnlyRead:
    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def read(self, size: int) -> bytes:
        return self._file.read(size)


def test_files_that_can_only_read() -> None:
    assert vec2emb.read_vectors(_OnlyRead(PLAIN)).vocab.to_list() == list(V)  # type: ignore[arg-type]


def test_an_open_file_is_read_from_where_it_stands(tmp_path: Path) -> None:
    source = tmp_path / "v.txt"
    source.write_bytes(b"junk" + PLAIN)
    with open(source, "rb") as file:
        file.seek(4)
        assert vec2emb.read_vectors(file).vocab.to_list() == list(V)
        assert not file.closed


def test_sources_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    text = tmp_path / "text"
    text.write_text("the 1 2\n")
    for source, code in (
        (tmp_path / "none", "not-found"),
        (tmp_path / "folder", "is-a-folder"),
        (text / "below", "cannot-open"),
        ("nul\0", "cannot-open"),
    ):
        with pytest.raises(InputError) as caught:
            vec2emb.convert(source, tmp_path / "out")
        assert (caught.value.code, caught.value.path) == (code, str(source))
    with open(text) as file, open(tmp_path / "text", "ab") as unreadable, open(text, "rb") as closed:
        closed.close()
        for wrong in (b"bytes", 5, None, file, unreadable, closed):
            with pytest.raises(UsageError) as usage:
                vec2emb.read_vectors(wrong)  # type: ignore[arg-type]
            assert usage.value.code == "source-type"
    assert sorted(os.listdir(tmp_path)) == ["folder", "text"]


@pytest.mark.parametrize("dim", [0, -1, 2.5, "3", True, 1 << 40])
def test_dims_that_cannot_be(dim: Any) -> None:
    with pytest.raises(UsageError) as caught:
        read(PLAIN, dim=dim)
    assert caught.value.code == "dim-range"


def test_archives_of_one_table(tmp_path: Path) -> None:
    for name in ("v.tar", "v.tar.gz"):
        with tarfile.open(tmp_path / name, "w:gz" if name.endswith("gz") else "w") as archive:
            member = tarfile.TarInfo("glove.txt")
            member.size = len(PLAIN)
            archive.addfile(member, io.BytesIO(PLAIN))
    with zipfile.ZipFile(tmp_path / "v.zip", "w") as zipped:
        zipped.writestr("glove.txt", PLAIN)
    for name in ("v.tar", "v.tar.gz", "v.zip"):
        assert vec2emb.read_vectors(tmp_path / name).vocab.to_list() == list(V)


def test_explaining_a_long_row_takes_no_time(kernel: str) -> None:
    """Neither many digits nor many commas may make the search for an explanation slow."""
    for row in (
        b"a" + b",12345" * 50_000 + b",x",
        b"a " + b"12345 " * 50_000 + b"x",
        b"a " + b"1:12345 " * 50_000 + b"x",
    ):
        begun = time.monotonic()
        with pytest.raises(InputError):
            read(b"1 3\n" + row + b"\n")
        with pytest.raises(InputError):
            read(row + b"\n")
        assert time.monotonic() - begun < 5


def test_a_header_sizes_nothing(tmp_path: Path) -> None:
    """A header that promises 10^11 rows of 300 costs no memory: a limit of the address space would tell."""
    source = tmp_path / "huge.vec"
    source.write_bytes(b"99999999999 300\na" + b" 0.5" * 300 + b"\n")
    done = run(
        "convert", source, "-o", tmp_path / "out", "--threads", "2", module=("tests_limited",), env=_limited(tmp_path)
    )
    assert done.returncode == 1
    assert b"header-too-few-rows" in done.stderr


def _limited(folder: Path) -> dict[str, str]:
    (folder / "tests_limited.py").write_text(
        "import resource, sys\n"
        "from vec2emb.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "main(sys.argv[1:])\n"
    )
    return {"PYTHONPATH": str(folder)}
