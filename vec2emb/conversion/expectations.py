"""`--expect`: what a conversion must give, or it gives nothing."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import CheckError, UsageError
from .report import Report

ExpectLike = str | Mapping[str, int | str]
_SUMS = ("digest", "sha256")
_KEYS = ("rows", "dim", *_SUMS)


class Expectations:
    """Facts that must hold of the table: its rows, its dimension, the digest or the sha256 of its model.safetensors."""

    def __init__(self, facts: dict[str, int | str]) -> None:
        self._facts = facts

    @classmethod
    def parse(cls, expect: ExpectLike | None) -> Expectations:
        """Of a mapping, or of `rows=N,dim=N,digest=H,sha256=H`.

        Raises:
            UsageError: it is neither.
        """
        if expect is None:
            return cls({})
        pairs = [tuple(p.partition("=")[::2]) for p in expect.split(",")] if isinstance(expect, str) else expect.items()
        facts: dict[str, int | str] = {}
        for key, value in pairs:
            text = str(value).strip()
            if key in _SUMS and len(text) == 64 and all(c in "0123456789abcdefABCDEF" for c in text):
                facts[key] = text.lower()
            elif key in ("rows", "dim") and text.isdecimal():
                facts[key] = int(text)
            else:
                raise UsageError(
                    "expect-form",
                    "this is no expectation",
                    expected="rows=N, dim=N, digest=H or sha256=H (64 hexadecimal digits), separated by commas",
                    found=f"{key}={text}",
                )
        return cls(facts)

    @property
    def needs_sha256(self) -> bool:
        """Whether the plain SHA-256 of the table must be computed."""
        return "sha256" in self._facts

    def check(self, report: Report, sums: Mapping[str, str] | None = None) -> None:
        """Compare with what came out; `sums` are the table's `digest` and `sha256`, as far as they are known.

        Raises:
            CheckError: something is different.
        """
        found: dict[str, int | str] = {"rows": report.rows, "dim": report.dim, **(sums or {})}
        for key in _KEYS:
            if key in self._facts and key in found and self._facts[key] != found[key]:
                raise CheckError(
                    f"expected-{key}",
                    "the table is not the one expected",
                    path=report.source,
                    expected=f"{key}={self._facts[key]}",
                    found=f"{key}={found[key]}",
                    hint="nothing was written",
                )
