"""vec2emb: pretrained word vectors to a PyTorch embedding, exact and row for row with its vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attaching import attach_positions as attach_positions
    from .attaching import describe_positions as describe_positions
    from .attaching import resize_positions as resize_positions
    from .auditing.auditor import audit as audit
    from .corpus import TokenCounts as TokenCounts
    from .corpus import build_vocab as build_vocab
    from .corpus import count_tokens as count_tokens
    from .errors import Vec2embError as Vec2embError
    from .errors import Vec2embWarning as Vec2embWarning
    from .evaluation import evaluate as evaluate
    from .exporting import export as export
    from .extending import extend as extend
    from .inspection import inspect as inspect
    from .neighbours import similar as similar
    from .pipeline import convert as convert
    from .reading import iter_vectors as iter_vectors
    from .reading import read_vectors as read_vectors
    from .report import Report as Report
    from .table import Table as Table
    from .table import load as load
    from .table import save as save
    from .trimming import trim as trim
    from .verification import verify as verify
    from .version import __version__ as __version__
    from .vocabulary import Vocabulary as Vocabulary

# Names are looked up when they are used, so that `import vec2emb` loads nothing.
_HOME = {
    "Report": "report",
    "Table": "table",
    "TokenCounts": "corpus",
    "Vec2embError": "errors",
    "Vec2embWarning": "errors",
    "Vocabulary": "vocabulary",
    "__version__": "version",
    "attach_positions": "attaching",
    "audit": "auditing.auditor",
    "build_vocab": "corpus",
    "convert": "pipeline",
    "count_tokens": "corpus",
    "describe_positions": "attaching",
    "evaluate": "evaluation",
    "export": "exporting",
    "extend": "extending",
    "inspect": "inspection",
    "iter_vectors": "reading",
    "load": "table",
    "read_vectors": "reading",
    "resize_positions": "attaching",
    "save": "table",
    "similar": "neighbours",
    "trim": "trimming",
    "verify": "verification",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from importlib import import_module

        return getattr(import_module(f".{_HOME[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
