"""`--expect`: what a conversion must give, or it gives nothing."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import CheckError, UsageError
from .report import Report

ExpectLike = str | Mapping[str, int | str]
_SUMS = ("digest", "sha256")
_BOUNDS = ("missing", "absent")  # how many words at most
_KEYS = ("rows", "dim", *_SUMS, *_BOUNDS)


class Expectations:
    """Facts that must hold of the table.

    `rows`, `dim`, and `digest` and `sha256` (of model.safetensors) must be equal; `missing` and `absent` are the most
    words allowed.
    """

    def __init__(self, facts: dict[str, int | str]) -> None:
        self._facts = facts

    @classmethod
    def parse(cls, expect: ExpectLike | None) -> Expectations:
        """Of a mapping, or of `rows=N,dim=N,digest=H,sha256=H,missing<=N,absent<=N`; a mapping has the names alone.

        Raises:
            UsageError: it is neither.
        """
        if expect is None:
            return cls({})
        pairs = map(_pair, expect.split(",")) if isinstance(expect, str) else expect.items()
        facts: dict[str, int | str] = {}
        for key, value in pairs:
            text = str(value).strip()
            if key in _SUMS and len(text) == 64 and all(c in "0123456789abcdefABCDEF" for c in text):
                facts[key] = text.lower()
            elif key in _KEYS and key not in _SUMS and text.isdecimal():
                facts[key] = int(text)
            else:
                raise UsageError(
                    "expect-form",
                    "this is no expectation",
                    expected="rows=N, dim=N, digest=H or sha256=H (64 hexadecimal digits), missing<=N or absent<=N, "
                    "separated by commas",
                    found=f"{key}={text}" if isinstance(expect, Mapping) else expect,
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
        facts: dict[str, int | str] = {"rows": report.rows, "dim": report.dim, **(sums or {})}
        facts |= {key: getattr(report, key) for key in _BOUNDS}
        for key, expected in self._facts.items():
            if key not in facts:
                continue
            value = facts[key]
            if not (int(value) <= int(expected) if key in _BOUNDS else value == expected):
                raise CheckError(
                    f"expected-{key}",
                    "the table is not the one expected",
                    path=report.source,
                    expected=f"{key}{'<=' if key in _BOUNDS else '='}{expected}",
                    found=f"{key}={value}",
                    hint="nothing was written",
                )


def _pair(text: str) -> tuple[str, str]:
    """Name and value; a bound with `=` in the place of `<=` has no name that is known."""
    name, sign, value = text.partition("=")
    is_bound, name = name.endswith("<"), name.removesuffix("<").strip()
    return (name if is_bound == (name in _BOUNDS) and sign else text, value)
