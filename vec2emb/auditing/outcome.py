"""`Audit`: the whole of what an audit finds."""

from __future__ import annotations

from dataclasses import dataclass

from ..typed import JsonReport
from .results import Comparison, Corpus, GateResult, Source, plain


@dataclass(frozen=True)
class Audit:
    """All that an audit finds.

    Attributes:
        schema: `vec2emb-audit`.
        schema_version: rises when a field changes its meaning or goes; new fields may come at any time.
        vec2emb_version: what made it.
        sources: one entry a source.
        corpus: what coverage was measured on; null without one.
        comparisons: each pair of sources.
        gates: each bound with each source, in this order.
        gates_missed: how many of these are not kept.
    """

    schema: str
    schema_version: int
    vec2emb_version: str
    sources: list[Source]
    corpus: Corpus | None
    comparisons: list[Comparison]
    gates: list[GateResult]
    gates_missed: int

    @property
    def ok(self) -> bool:
        """Whether every gate is kept."""
        return not self.gates_missed

    def to_dict(self) -> JsonReport:
        """What `--json` prints."""
        return plain(self)  # type: ignore[no-any-return]

    def page(self, *, width: int | None = None, colour: bool = False) -> str:
        """The figures as text for a terminal, without the last LF.

        Args:
            width: columns to cut lines at; by default nothing is cut.
            colour: draw it with rich, in colour; without the package it is plain.
        """
        from .terminal import page

        return page(self.sources, self.corpus, self.comparisons, self.gates, width=width, colour=colour)

    def __str__(self) -> str:
        return self.page()

    def __repr__(self) -> str:
        return f"<Audit of {', '.join(source.name for source in self.sources)}>"
