"""`--expect`: what a conversion must give, or it gives nothing."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import CheckError, UsageError
from .report import Report

ExpectLike = str | Mapping[str, int | str]
_KEYS = ("rows", "dim", "sha256")


class Expectations:
    """Facts that must hold of the table: its rows, its dimension, the sha256 of its model.safetensors."""

    def __init__(self, facts: dict[str, int | str]) -> None:
        self._facts = facts

    @classmethod
    def parse(cls, expect: ExpectLike | None) -> Expectations:
        """Of a mapping, or of `rows=N,dim=N,sha256=H`.

        Raises:
            UsageError: it is neither.
        """
        if expect is None:
            return cls({})
        pairs = [tuple(p.partition("=")[::2]) for p in expect.split(",")] if isinstance(expect, str) else expect.items()
        facts: dict[str, int | str] = {}
        for key, value in pairs:
            text = str(value).strip()
            if key == "sha256" and len(text) == 64 and all(c in "0123456789abcdefABCDEF" for c in text):
                facts[key] = text.lower()
            elif key in ("rows", "dim") and text.isdecimal():
                facts[key] = int(text)
            else:
                raise UsageError(
                    "expect-form",
                    "this is no expectation",
                    expected="rows=N, dim=N or sha256=H (64 hexadecimal digits), separated by commas",
                    found=f"{key}={text}",
                )
        return cls(facts)

    def check(self, report: Report, sha256: str | None) -> None:
        """Compare with what came out; `sha256` is None while it is not known.

        Raises:
            CheckError: something is different.
        """
        found: dict[str, int | str] = {"rows": report.rows, "dim": report.dim}
        if sha256 is not None:
            found["sha256"] = sha256
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
