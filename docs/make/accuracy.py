"""Write the table of docs/tutorials/classifier.md anew, with the program that stands on that page.

python docs/make/accuracy.py    takes a minute or two
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import statistics
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tutorials" / "classifier.md"
VECTORS = ROOT / "fixtures" / "glove.6B.50d.headlines.txt.gz"
LABELS = (50, 200, 1000)
WAYS = {"random": "random rows", "tuned": "GloVe, fine-tuned", "frozen": "GloVe, frozen"}
SEEDS = range(5)

_TABLE = re.compile(r"<!-- accuracy.*?-->\n(.*?)<!-- end of accuracy -->\n", re.DOTALL)


def program() -> str:
    """The program of the page."""
    found = re.search(r'^```python title="headlines.py"\n(.*?)^```$', PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def digest() -> str:
    """Of all that the table depends on and that may change without notice: the program and the vectors."""
    return hashlib.sha256(program().encode() + VECTORS.read_bytes()).hexdigest()[:16]


def table() -> str:
    """The table in Markdown, below a remark with the digest and the version of torch."""
    import torch

    names: dict[str, Any] = {"__name__": "headlines"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("fixtures").symlink_to(ROOT / "fixtures")
        exec(program(), names)
        rows = [f"| labels | {' | '.join(WAYS.values())} |", "|---:|" + "---:|" * len(WAYS)]
        for labels in LABELS:
            cells = []
            for how in WAYS:
                scores = [100 * names["accuracy"](how, labels, seed) for seed in SEEDS]
                cells.append(f"{statistics.mean(scores):.1f}% ± {statistics.stdev(scores):.1f}")
                print(labels, how, cells[-1], file=sys.stderr)
            rows.append(f"| {labels:,} | {' | '.join(cells)} |")
    return f"<!-- accuracy: of {digest()}, torch {torch.__version__} -->\n" + "\n".join(rows) + "\n"


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"
    page = PAGE.read_text("utf-8")
    PAGE.write_text(_TABLE.sub(lambda _: table() + "<!-- end of accuracy -->\n", page), "utf-8")
