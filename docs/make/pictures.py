"""Draw the pictures of the concepts, each for light and for dark pages.

python docs/make/pictures.py [FOLDER]    by default docs/concepts/pictures
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from numpy.typing import NDArray

from vec2emb import positions

matplotlib.use("svg")
from matplotlib import pyplot
from matplotlib.figure import Figure

FOLDER = Path(__file__).parents[1] / "concepts" / "pictures"
INK = {"light": "#424242", "dark": "#c8cad4"}  # of axes and letters
COLOURS = {"light": ["#3f51b5", "#c2410c", "#00796b"], "dark": ["#8c9eff", "#ffab6b", "#4db6ac"]}
STEPS = 5000


def sinusoids() -> Figure:
    """The table itself."""
    figure, axes = pyplot.subplots(figsize=(7, 3.4))
    image = axes.imshow(
        positions.sinusoidal(100, 128), cmap="RdBu", vmin=-1, vmax=1, aspect="auto", interpolation="none"
    )
    axes.set(xlabel="column", ylabel="position")
    bar = figure.colorbar(image, ax=axes, ticks=[-1, 0, 1], pad=0.02)
    bar.outline.set_visible(False)
    return figure


def dot_products() -> Figure:
    """How much position 256 has in common with its neighbours."""
    figure, axes = pyplot.subplots(figsize=(7, 3))
    distance = np.arange(-100, 101)
    for d in (64, 512):
        table = positions.sinusoidal(512, d, dtype=np.float64)
        axes.plot(distance, table[256 + distance] @ table[256] / (d / 2), label=f"d = {d}")
    axes.set(xlabel="distance", ylabel="dot product, as part of its maximum", xlim=(-100, 100))
    axes.legend(frameon=False)
    return figure


def resized() -> Figure:
    """One column of a table of 64 rows, made up for the picture, at 128 rows."""
    column = np.random.default_rng(3).normal(size=(64, 1)).cumsum(0) / 8
    methods = ("repeat-last", "tile", "hierarchical", "linear", "random")
    figure, every = pyplot.subplots(1, len(methods), figsize=(9, 2.3), sharey=True)
    for axes, method in zip(every, methods, strict=True):
        new = positions.resize(column, 128, method=method)
        axes.plot(new, lw=1.2)
        axes.plot(column, lw=2.4, color=axes.xaxis.label.get_color(), alpha=0.4)
        axes.set(title=method, xticks=[0, 64, 128])
    every[0].set_ylabel("value of one column")
    every[2].set_xlabel("position (thick: the 64 rows that were there)")
    return figure


def weight_decay() -> Figure:
    """How long a row stays that has a zero gradient, measured."""
    figure, axes = pyplot.subplots(figsize=(7, 3))
    axes.plot(_lengths(masked=False, decay=0.1), label="frozen rows in a buffer, any decay")
    axes.plot(_lengths(masked=True, decay=0.01), label="mask on the gradient, decay 0.01 (default)")
    axes.plot(_lengths(masked=True, decay=0.1), label="mask on the gradient, decay 0.1")
    axes.set(xlabel="steps of AdamW, learning rate 0.001", ylabel="length of a “frozen” row", ylim=(0.5, 1.05))
    axes.legend(frameon=False, loc="lower left")
    return figure


def _lengths(masked: bool, decay: float) -> NDArray[Any]:
    """Lengths of row 0 over the steps, as part of the first; row 1 is the one that trains."""
    import torch

    from vec2emb.torch import PartlyFrozenEmbedding

    weight = torch.full((2, 4), 0.5)
    table = torch.nn.Embedding(2, 4, _weight=weight.clone()) if masked else PartlyFrozenEmbedding(weight, [1])
    if masked:
        mask = torch.tensor([[0.0], [1.0]])
        table.weight.register_hook(lambda gradient: gradient * mask)  # type: ignore[no-untyped-call]
    optimizer = torch.optim.AdamW(table.parameters(), lr=1e-3, weight_decay=decay)
    lengths = np.empty(STEPS)
    for step in range(STEPS):
        lengths[step] = table.weight[0].detach().norm()
        optimizer.zero_grad()
        table(torch.tensor([0, 1])).square().sum().backward()
        optimizer.step()
    return lengths


PICTURES: dict[str, Callable[[], Figure]] = {
    "sinusoids": sinusoids,
    "dot-products": dot_products,
    "resized": resized,
    "weight-decay": weight_decay,
}


def draw(folder: Path) -> Iterator[Path]:
    """Draw them all; yields what was written."""
    folder.mkdir(parents=True, exist_ok=True)
    for mode, ink in INK.items():
        style: dict[str, Any] = {
            **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), ink),
            "axes.prop_cycle": cycler(color=COLOURS[mode]),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "figure.constrained_layout.use": True,
            "font.family": "DejaVu Sans",  # the one that matplotlib brings
            "font.size": 9,
            "svg.hashsalt": "vec2emb",
        }
        for name, picture in PICTURES.items():
            with matplotlib.rc_context(style):  # type: ignore[arg-type]
                path = folder / f"{name}-{mode}.svg"
                figure = picture()
                figure.savefig(path, transparent=True, metadata={"Date": None})
                pyplot.close(figure)
                yield path


if __name__ == "__main__":
    for written in draw(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER):
        print(written)
