"""Ranges, provenance and the manifest, held against sets of rows and plain loops."""

from __future__ import annotations

import inspect
import random
from pathlib import Path
from typing import Any

import pytest
from helpers import FIXTURES, collected, manifest_of

import vec2emb
from vec2emb.bundle.manifest import Manifest, Replay, Step
from vec2emb.bundle.manifest_parser import parse_manifest
from vec2emb.bundle.provenance import Generated, Provenance, SpecialToken, Spellings
from vec2emb.bundle.ranges import Ranges
from vec2emb.conversion import recording
from vec2emb.conversion.reading_pass import ReadOptions
from vec2emb.editing import attaching
from vec2emb.errors import BundleError, UsageError

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"


def rows(count: int, seed: random.Random) -> set[int]:
    return {row for row in range(count) if seed.random() < 0.5}


def test_ranges_are_sets_of_rows() -> None:
    seed = random.Random(0)
    for _ in range(500):
        count = seed.randint(0, 12)
        a, b = rows(count, seed), rows(count, seed)
        one, other = Ranges.read(Ranges.of_rows(sorted(a)).text, "$", "f"), Ranges.of_rows(sorted(b))
        for result, expected in (
            (one, a), (one | other, a | b), (one & other, a & b), (one - other, a - b),
            (one.complement(count), set(range(count)) - a), (one.moved(lambda row: 2 * row if row % 3 else None),
                                                             {2 * row for row in a if row % 3}),
        ):  # fmt: skip
            assert list(result.rows()) == sorted(expected)
            assert result == Ranges.of_rows(sorted(expected))
            assert (len(result), bool(result)) == (len(expected), bool(expected))
            assert result.end == max(expected, default=-1) + 1
        assert [row in one for row in range(count + 1)] == [row in a for row in range(count + 1)]


@pytest.mark.parametrize(
    "text",
    [
        "x", "5", "1:2:3", "1 2", "1:2 ", " 1:2", "1:2  3:4", "+1:2", "-1:2", "1_0:20", "\uff12:5", "3:3", "5:2", "1:",
        "1:2 2:3", "3:4 1:2", "1:2\n3:4", "1:2,3:4", "1:9999999999999999999999",
    ],
)  # fmt: skip
def test_ranges_have_one_spelling(text: str) -> None:
    with pytest.raises(BundleError, match=r"file: \$\.x must be rising ranges") as caught:
        Ranges.read(text, "$.x", "file").rows()
    assert caught.value.code == "bundle-config"


@pytest.mark.parametrize("seed", range(20))
def test_provenance_says_of_each_row_what_a_list_says(seed: int) -> None:
    """The list has an entry a row: kind, and whether the row was added or trained."""
    drawn = random.Random(seed)
    count = 20
    kinds = [drawn.choice(["file", "special", "spelling", "zeros", "normal", "given"]) for _ in range(count)]
    kinds[drawn.randrange(count)] = "padding"
    trained, added = rows(count, drawn), rows(count, drawn)

    def of(*named: str) -> list[int]:
        return [row for row, kind in enumerate(kinds) if kind in named]

    provenance = Provenance(
        count,
        (
            *(SpecialToken(f"s{row}", row, "special", drawn.choice(["mean", "token:a"])) for row in of("special")),
            *(SpecialToken("<pad>", row, "padding", "zeros") for row in of("padding")),
        ),
        (Generated("zeros", None, Ranges.of_rows(of("zeros"))), Generated("normal", 3, Ranges.of_rows(of("normal")))),
        Spellings.of_pairs((row, f"w{row}") for row in of("spelling")),
        Ranges.of_rows(of("given")),
        ((0, Ranges.of_rows(sorted(added))),),
        trained=Ranges.of_rows(sorted(trained)),
    )
    manifest = Manifest(provenance, 3, "float32", steps=(Step("extend", Replay(1, {})),))
    read = parse_manifest(manifest.encode(), "vec2emb.json")
    assert read == manifest
    assert read.encode() == manifest.encode()
    order = list(range(count))
    drawn.shuffle(order)
    kept = {row: new for new, row in enumerate(order[: drawn.randint(1, count)])}
    moved = read.provenance.moved(len(kept), kept.get)
    for found, number in ((read.provenance, {row: row for row in range(count)}), (moved, kept)):
        for row, new in number.items():
            origin = found.origin(new)
            kind = {"padding": "special", "zeros": "generated", "normal": "generated"}.get(kinds[row], kinds[row])
            assert (origin.kind, origin.trained) == (kind, row in trained)
            assert origin.step == (0 if row in added else None)
            assert origin.spelling == (f"w{row}" if kind == "spelling" else None)
            assert (origin.generated and origin.generated.init) == (kinds[row] if kind == "generated" else None)

        def expected(*named: str, number: dict[int, int] = number) -> list[int]:
            return sorted(number[row] for row in of(*named) if row in number)

        assert list(found.new_rows().rows()) == expected("special", "zeros", "normal")
        assert list(found.made_rows().rows()) == expected("special", "zeros", "normal", "padding")
        assert list(found.rows_of_file().rows()) == expected("file", "given", "spelling")
        assert list(found.borrowed_rows().rows()) == expected("spelling")


def test_a_manifest_that_was_read_is_written_as_it_was(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "vocab": ["the", "The", "zyzzyva"], "case_fallback": True, "positions": "learned", "max_positions": 3,
        "scale": "match-positions", "train_rows": "new", "specials": ["[X]", ("[Y]", "uniform")], "seed": 3,
    }  # fmt: skip
    collected(lambda: vec2emb.convert(SAMPLE, tmp_path / "a", **options))
    collected(lambda: vec2emb.extend(tmp_path / "a", tmp_path / "b", tokens=["of", "qq"], source=SAMPLE))
    collected(lambda: vec2emb.attach_positions(tmp_path / "b", "sinusoidal", 7))
    for name in ("a", "b"):
        assert manifest_of(tmp_path / name).encode() == (tmp_path / name / "vec2emb.json").read_bytes()
    assert [step.kind for step in manifest_of(tmp_path / "b").steps] == ["extend", "attach-positions"]
    assert vec2emb.verify(tmp_path / "a", rebuild=SAMPLE).ok


def test_each_option_that_changes_rows_is_recorded() -> None:
    """A name in the record stays when an argument is renamed: only the table of names changes then."""
    not_recorded = {"threads", "progress", "sha256", "allow_pickle"}
    assert set(recording.READING.values()) | not_recorded == set(ReadOptions._fields)
    for names, function in (
        ({**recording.READING, **recording.TABLE}, vec2emb.convert),
        (attaching.ATTACHING, vec2emb.attach_positions),
        (attaching.RESIZING, vec2emb.resize_positions),
    ):
        assert set(names.values()) <= inspect.signature(function).parameters.keys()


def test_records_of_another_version_are_not_repeated() -> None:
    known = {"colour": "color"}
    assert recording.arguments_of(Replay(1, {"colour": "red"}), known, "b") == {"color": "red"}
    for replay in (Replay(2, {"colour": "red"}), Replay(1, {"color": "red"})):
        with pytest.raises(UsageError) as caught:
            recording.arguments_of(replay, known, "b")
        assert caught.value.code == "not-rebuildable"
