"""The program gives what it gave when fixtures/recorded.json was written; recording.py says how that is compared."""

from __future__ import annotations

import copy

import pytest
import recording


def check(kernel: str, names: list[str]) -> None:
    if kernel == "native":
        pytest.importorskip("vec2emb._kernel._native", exc_type=ImportError)
    failures, listed = recording.compare(kernel, recording.record(kernel, names))
    print("\n".join(listed))  # shown if the test fails
    assert failures == []


def test_sample() -> None:
    check("native", recording.everyday())


@pytest.mark.slow
@pytest.mark.parametrize("kernel", recording.KERNELS)
def test_every_run(kernel: str) -> None:
    check(kernel, [])


def test_record_has_every_run() -> None:
    assert set(recording.read()[1]) == {run.name for run in recording.runs()}


def test_other_bytes_are_found() -> None:
    """Another digest, file, exit code or error is a failure; other settings and texts are listed."""
    recorded = {name: kernels["native"] for name, kernels in recording.read()[1].items()}
    now = copy.deepcopy({name: recorded[name] for name in ("glove", "float16", "bad-rows", "inspect-source")})
    assert recording.compare("native", now) == ([], [])
    now["glove"]["files"]["out/model.safetensors"] = "0" * 64
    now["float16"]["files"]["out/more.txt"] = "0" * 64
    now["bad-rows"]["error"] = "another"
    now["glove"]["settings"]["out/vec2emb.json"] = "0" * 64
    now["inspect-source"]["json"] = {}
    failures, listed = recording.compare("native", now)
    assert [line.split(": ")[0] for line in failures] == ["native glove", "native float16", "native bad-rows"]
    assert {line.split(": ")[0] for line in listed} == {"native glove", "native inspect-source"}


def test_drawn_rows_on_other_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where numpy's functions differ in their last bits, the bytes of drawn rows are not compared, all others are."""
    recorded = {name: kernels["native"] for name, kernels in recording.read()[1].items()}
    now = copy.deepcopy({name: recorded[name] for name in ("glove", "vocab-normal")})
    for name in now:
        now[name]["files"]["out/model.safetensors"] = "0" * 64
    assert len(recording.compare("native", now).failures) == 2
    monkeypatch.setattr(recording, "probe", lambda: "another")
    assert [line.split(": ")[0] for line in recording.compare("native", now).failures] == ["native glove"]
