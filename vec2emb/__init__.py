"""vec2emb: pretrained word vectors to a PyTorch embedding, exact and row for row with its vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .auditing.auditor import audit as audit
    from .bundle.table import Table as Table
    from .bundle.table import load as load
    from .bundle.table import save as save
    from .checking.inspection import inspect as inspect
    from .checking.verification import verify as verify
    from .conversion.pipeline import convert as convert
    from .conversion.reading import iter_vectors as iter_vectors
    from .conversion.reading import read_vectors as read_vectors
    from .conversion.report import Report as Report
    from .corpus import TokenCounts as TokenCounts
    from .corpus import build_vocab as build_vocab
    from .corpus import count_tokens as count_tokens
    from .editing.attaching import attach_positions as attach_positions
    from .editing.attaching import describe_positions as describe_positions
    from .editing.attaching import resize_positions as resize_positions
    from .editing.extending import extend as extend
    from .errors import Vec2embError as Vec2embError
    from .errors import Vec2embWarning as Vec2embWarning
    from .exporting.exporter import export as export
    from .querying.evaluation import evaluate as evaluate
    from .querying.neighbours import similar as similar
    from .trimming import trim as trim
    from .version import __version__ as __version__
    from .words.vocabulary import Vocabulary as Vocabulary

# Names are looked up when they are used, so that `import vec2emb` loads nothing.
_HOME = {
    "Report": "conversion.report",
    "Table": "bundle.table",
    "TokenCounts": "corpus",
    "Vec2embError": "errors",
    "Vec2embWarning": "errors",
    "Vocabulary": "words.vocabulary",
    "__version__": "version",
    "attach_positions": "editing.attaching",
    "audit": "auditing.auditor",
    "build_vocab": "corpus",
    "convert": "conversion.pipeline",
    "count_tokens": "corpus",
    "describe_positions": "editing.attaching",
    "evaluate": "querying.evaluation",
    "export": "exporting.exporter",
    "extend": "editing.extending",
    "inspect": "checking.inspection",
    "iter_vectors": "conversion.reading",
    "load": "bundle.table",
    "read_vectors": "conversion.reading",
    "resize_positions": "editing.attaching",
    "save": "bundle.table",
    "similar": "querying.neighbours",
    "trim": "trimming",
    "verify": "checking.verification",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
