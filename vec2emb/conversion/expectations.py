"""`--expect`: what a conversion must give, or it gives nothing."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import CheckError, UsageError
from .report import Report

ExpectLike = str | Mapping[str, int | str]
_BOUNDS = ("missing", "absent")  # how many words at most
_KEYS = ("rows", "dim", "sha256", *_BOUNDS)


class Expectations:
    """Facts that must hold of the table.

    `rows`, `dim` and `sha256` (of model.safetensors) must be equal; `missing` and `absent` are the most words allowed.
    """

    def __init__(self, facts: dict[str, int | str]) -> None:
        self._facts = facts

    @classmethod
    def parse(cls, expect: ExpectLike | None) -> Expectations:
        """Of a mapping, or of `rows=N,dim=N,sha256=H,missing<=N,absent<=N`; the keys of a mapping are the names alone.

        Raises:
            UsageError: it is neither.
        """
        if expect is None:
            return cls({})
        pairs = map(_pair, expect.split(",")) if isinstance(expect, str) else expect.items()
        facts: dict[str, int | str] = {}
        for key, value in pairs:
            text = str(value).strip()
            if key == "sha256" and len(text) == 64 and all(c in "0123456789abcdefABCDEF" for c in text):
                facts[key] = text.lower()
            elif key in _KEYS and key != "sha256" and text.isdecimal():
                facts[key] = int(text)
            else:
                raise UsageError(
                    "expect-form",
                    "this is no expectation",
                    expected="rows=N, dim=N, sha256=H (64 hexadecimal digits), missing<=N or absent<=N, separated by "
                    "commas",
                    found=f"{key}={text}" if isinstance(expect, Mapping) else expect,
                )
        return cls(facts)

    def check(self, report: Report, sha256: str | None) -> None:
        """Compare with what came out; `sha256` is None while it is not known.

        Raises:
            CheckError: something is different.
        """
        for key, expected in self._facts.items():
            value = sha256 if key == "sha256" else getattr(report, key)
            if value is None:
                continue
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
