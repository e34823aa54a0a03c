"""`vec2emb audit` in a process of its own: exit codes, gates, schema, what is on which stream."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from helpers import FIXTURES, ROOT, run
from test_audit_health import faulty

import vec2emb
from vec2emb.auditing.gates import parse_gates
from vec2emb.auditing.results import Source
from vec2emb.auditing.schema import figures, json_schema
from vec2emb.auditing.terminal import LINES
from vec2emb.errors import UsageError

SAMPLE = FIXTURES / "glove.6B.50d.sample.txt"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("the The of <script>alert(1)</script> time zyzzyva\n" * 4, encoding="utf-8")
    (folder / "b.txt").write_text("of and in\n")
    return folder


def audited(*words: object) -> tuple[int, dict[str, Any], str]:
    done = run("audit", *words, "--json")
    return done.returncode, json.loads(done.stdout), done.stderr.decode()


def test_gates_that_are_kept(corpus: Path) -> None:
    code, found, said = audited(
        SAMPLE, "--corpus", corpus, "--min", "coverage.tokens=0.5", "--max", "health.duplicates=0"
    )
    assert (code, said) == (0, "")
    assert [gate["ok"] for gate in found["gates"]] == [True, True]
    assert found["gates_missed"] == 0


def test_gates_that_are_missed(corpus: Path) -> None:
    code, found, said = audited(
        SAMPLE, "--corpus", corpus, "--min", "coverage.tokens=0.95", "--min", "health.rows=251",
        "--max", "health.duplicates=0", "--max", "health.norms.max=1e3",
    )  # fmt: skip
    assert code == 3
    assert said.splitlines() == [
        f"missed: {SAMPLE}: coverage.tokens is {found['gates'][0]['found']:.9g}, expected >= 0.95",
        f"missed: {SAMPLE}: health.rows is 250, expected >= 251",
    ]
    assert [gate["ok"] for gate in found["gates"]] == [False, False, True, True]


def test_each_source_must_pass(tmp_path: Path) -> None:
    code, found, said = audited(SAMPLE, faulty(tmp_path), "--max", "health.faults.row-width.count=0")
    assert code == 3
    assert [gate["found"] for gate in found["gates"]] == [0, 1]
    assert said == f"missed: {tmp_path / 'faulty.txt'}: health.faults.row-width.count is 1, expected <= 0\n"


def test_a_bound_is_met_by_the_figure_itself() -> None:
    tokens = vec2emb.audit(SAMPLE, counts={"the": 2, "xyzzy": 1}).sources[0].coverage
    assert tokens is not None
    exact = repr(tokens.tokens)
    for bounds in ({"min": [f"coverage.tokens={exact}"]}, {"max": {"coverage.tokens": tokens.tokens}}):
        assert vec2emb.audit(SAMPLE, counts={"the": 2, "xyzzy": 1}, **bounds).ok


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--max", "health.duplicate=0"], 2, "did you mean health.duplicates"),
        (["--min", "coverage.tokens=0.9"], 2, "--corpus FILES or --counts FILE"),
        (["--min", "health.rows"], 2, "--min PATH=NUMBER"),
        (["--missing-words", "w.tsv"], 2, "no word can be missing"),
        (["--no-such"], 2, "No such option"),
    ],
)
def test_usage(words: list[str], code: int, said: str) -> None:
    done = run("audit", SAMPLE, *words)
    assert done.returncode == code
    assert said in done.stderr.decode()
    assert done.stdout == b""


def test_faults_of_the_input_are_1(tmp_path: Path) -> None:
    done = run("audit", tmp_path / "none.txt")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith("error[not-found]: ")
    (tmp_path / "cut.bin").write_bytes(b"3 2\na \0\0\x80?\0\0\x80?b \0\0")
    assert run("audit", tmp_path / "cut.bin").returncode == 1


def test_a_pattern_that_the_shell_spread_out(corpus: Path) -> None:
    done = run("audit", SAMPLE, "--corpus", corpus / "a.txt", corpus / "b.txt")
    assert done.returncode == 1
    assert "quote its pattern, as the shell spreads it out: --corpus '*.txt'" in done.stderr.decode()
    assert run("audit", SAMPLE, "--corpus", corpus / "*.txt").returncode == 0


def test_the_json_is_what_its_schema_says(corpus: Path, tmp_path: Path) -> None:
    printed = run("audit", "--schema")
    assert (printed.returncode, printed.stderr) == (0, b"")
    schema = json.loads(printed.stdout)
    assert schema == json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    vec2emb.convert(SAMPLE, tmp_path / "b")
    for words in (
        [faulty(tmp_path)],
        [SAMPLE, tmp_path / "b", "--corpus", corpus, "--examples", "1", "--min", "coverage.tokens=1"],
    ):
        _, found, _ = audited(*words)
        jsonschema.validate(found, schema)
        assert found["schema"] == "vec2emb-audit"
        assert found["schema_version"] == 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found, "schema_version": 2}, schema)


def test_the_schema_in_the_docs_is_this_one() -> None:
    assert json.loads((ROOT / "docs" / "audit.schema.json").read_text("utf-8")) == json_schema()


def test_every_field_is_described() -> None:
    schema = json_schema()
    for name, kind in {"": schema, **schema["$defs"]}.items():
        for field, facts in kind["properties"].items():
            assert facts["description"], f"{name}.{field}"


def test_every_figure_can_be_a_gate() -> None:
    paths = set(figures(Source))
    assert {"coverage.tokens", "health.duplicates", "health.norms.median", "health.kinds.*"} <= paths
    for path in paths:
        list(parse_gates("max", {path.replace("*", "control").replace("#", "0"): 1}))
    with pytest.raises(UsageError):
        list(parse_gates("max", {"health": 1}))


def test_a_kind_that_is_not_there_is_none_of_it() -> None:
    found = vec2emb.audit(SAMPLE, max={"health.scripts.Thai": 0})
    assert (found.ok, found.gates[0].found) == (True, 0)


def test_json_is_one_line_and_the_same_each_time(corpus: Path) -> None:
    first, second = (run("audit", SAMPLE, "--corpus", corpus, "--json") for _ in range(2))
    assert first.stdout == second.stdout
    assert first.stdout.count(b"\n") == 1
    assert first.stdout.isascii()


def test_standard_input_and_quiet() -> None:
    done = run("audit", "-", "--json", stdin=SAMPLE.read_bytes())
    [file] = json.loads(done.stdout)["sources"][0]["files"]
    assert file == {"name": "<stdin>", "bytes": None, "sha256": None}
    assert run("audit", SAMPLE, "--quiet").stdout == b""


# The page of a terminal.


def test_the_page_has_at_most_40_lines(corpus: Path, tmp_path: Path) -> None:
    path = faulty(tmp_path)
    one = vec2emb.audit(path, corpus=corpus, examples=3, min={"coverage.tokens": 1}, max={"health.faulty": 0})
    six = vec2emb.audit(*[path, SAMPLE] * 3, corpus=corpus, min={"coverage.tokens": 1})
    for audit in (one, six, vec2emb.audit(SAMPLE)):
        for colour in (False, True):
            for width in (40, 80, 200):
                lines = audit.page(width=width, colour=colour).split("\n")
                assert len(lines) <= LINES
                plain = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in lines]
                assert colour or max(map(len, plain)) <= max(width, 28 + 12 * len(audit.sources))


def test_the_page_says_what_matters(corpus: Path, tmp_path: Path) -> None:
    done = run("audit", faulty(tmp_path), "--corpus", corpus, "--examples", "1")
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    for said in ("48, 3 faulty", "4 (", "1 row with NaN: 'nanrow'", "--lowercase", "what would find more", "as in"):
        assert said in text
    assert "\x1b" not in text, "neither colours nor what a token holds"


def test_colours_only_where_a_terminal_is() -> None:
    audit = vec2emb.audit(SAMPLE)
    assert "\x1b[" in audit.page(colour=True)
    assert str(audit) == audit.page()
    assert "\x1b[" not in str(audit)


def test_markup_in_a_token_is_text(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("[red]x[/red] 1 2\n[/] 1 2\nb 3 4\n")
    text = re.sub(r"\x1b\[[0-9;]*m", "", vec2emb.audit(path).page(colour=True, width=150))
    assert "'[/]' (same as '[red]x[/red]')" in text


def test_files_are_written_whole_or_not_at_all(corpus: Path, tmp_path: Path) -> None:
    missing = tmp_path / "words.tsv"
    assert run("audit", SAMPLE, "--corpus", corpus, "--missing-words", missing, "--quiet").returncode == 0
    assert missing.read_text().splitlines()[1] == "<script>alert(1)</script>\t4\t"
    done = run("audit", SAMPLE, "--corpus", corpus, "--missing-words", tmp_path / "no" / "words.tsv")
    assert done.returncode == 1
    assert done.stderr.decode().startswith("error[cannot-write]: ")


def test_a_wide_table_of_numbers(tmp_path: Path) -> None:
    """An odd shape goes all the way to the page: one row of 3,000 values."""
    path = tmp_path / "v.txt"
    path.write_text("a " + " ".join(map(str, np.arange(3000))) + "\n")
    assert "1 of 3000" not in str(vec2emb.audit(path))
    assert len(str(vec2emb.audit(path)).split("\n")) <= LINES
