"""Chains of operations on bundles: after each, `explain` says of every row what happened to it.

The test keeps a plain list of rows, which it changes as the operations are documented to do.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from helpers import FIXTURES, collected, manifest_of

import vec2emb
from vec2emb.torch import load_embedding, save_embedding

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"
FILE = [line.split(" ")[0] for line in SAMPLE.read_text(encoding="utf-8").splitlines()]
INITS = {"mean": "the mean of the file's rows", "zeros": "zeros", "normal": "drawn from the normal distribution"}


Step = Callable[[Path, Path, list["Row"], random.Random], list["Row"]]


@dataclass(frozen=True)
class Row:
    """A row as the test knows it: `kind` as `explain` names it, and a part of its text."""

    token: str
    kind: str
    text: str
    trained: bool = False


def drawn(init: str, seed: int) -> str:
    return f"{INITS[init]}{f' of the file{chr(39)}s rows, seed {seed}' if init == 'normal' else ''}"


def started(out: Path, dice: random.Random) -> list[Row]:
    missing, seed = dice.choice(list(INITS)), dice.randint(0, 9)
    words = [*dice.sample(FILE[:100], 6), "qqq", "Zebra-7", "The"]
    dice.shuffle(words)
    words = [word for word in words if word != "the"]
    plans: list[dict[str, Any]] = [{"train_rows": "all"}, {"train_rows": "new"}, {"freeze": True}]
    options: dict[str, Any] = {"missing": missing, "seed": seed, "case_fallback": True, **dice.choice(plans)}
    collected(lambda: vec2emb.convert(SAMPLE, out, vocab=words, **options))
    rows = [Row("<pad>", "special", "the padding token; zeros"), Row("<unk>", "special", INITS["mean"])]
    for word in words:
        if word == "The":
            rows.append(Row(word, "fallback", "the row of 'the'"))
        elif word in FILE:
            rows.append(Row(word, "file", "the row of the file"))
        else:
            rows.append(Row(word, "initialised", f"not in the file; {drawn(missing, seed)}"))
    return rows


def converted(old: Path, out: Path, rows: list[Row], dice: random.Random) -> list[Row]:
    options: dict[str, Any] = {"dtype": dice.choice(["float32", "float16", "bfloat16"])}
    special = sorted((row for row in rows if row.token in ("<pad>", "<unk>")), key=lambda row: row.token)
    words = [row for row in rows if row not in special]
    if dice.random() < 0.5:
        words = [row for row in words if dice.random() < 0.8] or words
        options["only"] = [row.token for row in words]
    at_end = dice.random() < 0.5
    collected(lambda: vec2emb.convert(old, out, specials_at="end" if at_end else "start", **options))
    return words + special if at_end else special + words


def extended(old: Path, out: Path, rows: list[Row], dice: random.Random) -> list[Row]:
    number = len(rows)
    missing, seed = dice.choice(list(INITS)), dice.randint(0, 9)
    there = {row.token for row in rows}
    words = [word for word in [*dice.sample(FILE[100:], 2), f"new{number}"] if word not in there]
    collected(lambda: vec2emb.extend(old, out, tokens=words, source=SAMPLE, missing=missing, seed=seed,
                                     specials=[f"[S{number}]"]))  # fmt: skip
    rows = [*rows, Row(f"[S{number}]", "special", f"a special token, added; {drawn('normal', seed)}")]
    for word in words:
        if word in FILE:
            rows.append(Row(word, "file", f"added; the row of '{SAMPLE.name}'"))
        else:
            rows.append(Row(word, "initialised", f"added; not in '{SAMPLE.name}'; {drawn(missing, seed)}"))
    return rows


def trained(old: Path, out: Path, rows: list[Row], dice: random.Random) -> list[Row]:
    padding = next(at for at, row in enumerate(rows) if "padding" in row.text)
    others = [at for at in range(len(rows)) if at != padding]
    chosen = dice.sample(others, dice.randint(1, len(others)))
    module = load_embedding(old, train_rows=chosen)
    with torch.no_grad():
        for parameter in (one for one in module.parameters() if one.requires_grad):
            parameter.add_(0.5)
            if parameter.shape[0] == len(rows):  # all rows but padding train: the table is one parameter
                parameter[padding] = 0
    save_embedding(module, out)
    return [replace(row, trained=True) if at in chosen else row for at, row in enumerate(rows)]


def positioned(old: Path, out: Path, rows: list[Row], dice: random.Random) -> list[Row]:
    collected(lambda: vec2emb.attach_positions(old, "sinusoidal", dice.randint(1, 9), output=out))
    return rows


def sharded(old: Path, out: Path, rows: list[Row], dice: random.Random) -> list[Row]:
    vec2emb.export(old, "shards", out, shard_size=4096 + 200 * dice.randint(1, 9))
    return rows


def check(bundle: Path, rows: list[Row]) -> None:
    table = vec2emb.load(bundle)
    assert table.vocab.tokens == [row.token for row in rows]
    for row in rows:
        found = table.explain(row.token)
        text = row.text.replace(", since", "")
        assert (found.origin, text in found.text, found.text.endswith("trained since")) == (
            row.kind, True, row.trained,
        ), (row, found.text)  # fmt: skip
    made = {at for at, row in enumerate(rows) if row.kind in ("special", "initialised") and not row.trained}
    assert set(manifest_of(bundle).provenance.made_rows().rows()) == made
    assert vec2emb.verify(bundle).ok


@pytest.mark.parametrize("seed", range(10))
def test_explain_says_what_happened(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    rows = started(tmp_path / "0", dice)
    check(tmp_path / "0", rows)
    for number in range(1, 6):
        old, out = tmp_path / str(number - 1), tmp_path / str(number)
        steps: list[Step] = [converted, converted, extended, trained, positioned, sharded]
        rows = dice.choice(steps)(old, out, rows, dice)
        check(out, rows)
        shutil.rmtree(old)
