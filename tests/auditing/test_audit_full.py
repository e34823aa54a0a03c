"""The full glove.6B.50d.txt against gensim's Lee corpus: figures computed otherwise, and scores that must stay."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vec2emb

GLOVE = os.environ.get("VEC2EMB_GLOVE50", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.isfile(GLOVE), reason="VEC2EMB_GLOVE50 names no glove.6B.50d.txt"),
]


@pytest.fixture(scope="module")
def table() -> tuple[list[str], Any]:
    tokens, rows = [], np.empty((400_000, 50), np.float32)
    with open(GLOVE, encoding="utf-8", newline="\n") as file:
        for i, line in enumerate(file):
            token, *values = line.rstrip("\n").split(" ")
            tokens.append(token)
            rows[i] = [float(value) for value in values]
    return tokens, rows


@pytest.fixture(scope="module")
def lee() -> str:
    datapath = pytest.importorskip("gensim.test.utils").datapath
    return str(datapath("lee_background.cor"))


def test_health_and_coverage(table: tuple[list[str], Any], lee: str) -> None:
    tokens, rows = table
    source = vec2emb.audit(GLOVE, corpus=lee).sources[0]
    health, coverage = source.health, source.coverage
    assert (health.rows, health.dim, health.faulty, health.duplicates) == (400_000, 50, 0, 0)
    wide = rows.astype(np.float64)
    norms = np.linalg.norm(wide, axis=1)
    wanted = [norms.min(), *np.quantile(norms, [0.01, 0.5, 0.99]), norms.max()]
    found = [health.norms.min, health.norms.p01, health.norms.median, health.norms.p99, health.norms.max]
    assert found == pytest.approx(wanted, rel=1e-8)
    assert health.dimensions.mean == pytest.approx(wide.mean(axis=0).tolist(), abs=1e-8)
    assert health.dimensions.spread == pytest.approx(wide.std(axis=0).tolist(), rel=1e-7)
    units = wide / norms[:, None]
    total = np.linalg.norm(units.sum(axis=0)) ** 2
    assert health.mean_cosine == pytest.approx((total - 400_000) / (400_000 * 399_999), rel=1e-7)
    pairs = np.random.default_rng(0).integers(0, 400_000, (200_000, 2))
    cosines = np.einsum("nd,nd->n", units[pairs[:, 0]], units[pairs[:, 1]])
    assert health.mean_cosine == pytest.approx(float(cosines.mean()), abs=5 * cosines.std() / np.sqrt(len(cosines)))
    assert health.case_twins == 400_000 - len({token.casefold() for token in tokens})
    assert health.identical_vectors == 400_000 - len({row.tobytes() for row in rows})
    assert (health.zero_rows, health.nan_rows) == (0, 0)

    assert coverage is not None
    counts = Counter(Path(lee).read_text("utf-8").split())
    known = set(tokens)
    types = {word for word in counts if word in known}
    assert (coverage.types_found, coverage.types_missing) == (len(types), len(counts) - len(types))
    assert coverage.tokens_found == sum(counts[word] for word in types)
    assert coverage.used_rows == len(types)
    lowered = next(remedy for remedy in coverage.remedies if remedy.name == "lowercase")
    assert lowered.types == sum(word.lower() in known for word in counts) / len(counts)


def test_scores_of_the_bundle_are_those_of_the_file(table: tuple[list[str], Any], tmp_path: Path) -> None:
    """Padding, and the unknown token that was made, take no part."""
    models = pytest.importorskip("gensim.models")
    datapath = pytest.importorskip("gensim.test.utils").datapath
    keyed = models.KeyedVectors(vector_size=50)
    keyed.add_vectors(*table)
    vec2emb.convert(GLOVE, tmp_path / "glove")
    names = {"wordsim353": "wordsim353.tsv", "simlex999": "simlex999.txt"}
    for score in vec2emb.evaluate(tmp_path / "glove"):
        pearson, spearman, left_out = keyed.evaluate_word_pairs(datapath(names[score.name]))
        assert (score.pearson, score.spearman) == (float(pearson[0]), float(spearman[0]))
        assert 100 * score.left_out / (score.used + score.left_out) == pytest.approx(left_out)
