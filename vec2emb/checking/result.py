"""`Verification`: what was checked of a bundle, and what was found."""

from __future__ import annotations

from typing import Any

from ..errors import printable


class Verification:
    """What was checked.

    Attributes:
        path: the bundle, as the caller gave it.
        checks: each check with its name, `ok`, and what was found where it is not.
        notes: what could not be checked, or differs without being at fault.
        identical_digest: the digest of the table if a rebuilt bundle is the same; else None.
        sha256: the plain SHA-256 of each file by its name, if it was asked for; else None.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.checks: list[dict[str, Any]] = []
        self.notes: list[str] = []
        self.identical_digest: str | None = None
        self.sha256: dict[str, str] | None = None

    @property
    def ok(self) -> bool:
        """Whether no check failed."""
        return all(check["ok"] for check in self.checks)

    def check(self, name: str, ok: bool, found: str = "") -> bool:
        """Record a check; whether it is passed."""
        self.checks.append({"check": name, "ok": ok, "found": None if ok else found})
        return ok

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        return {**vars(self), "ok": self.ok}

    def __str__(self) -> str:
        lines = [
            f"ok: {check['check']}" if check["ok"] else f"FAILED: {check['check']}: {check['found']}"
            for check in self.checks
        ]
        lines += [f"note: {note}" for note in self.notes]
        if self.identical_digest is not None:
            lines.append(f"identical, digest {self.identical_digest}")
        lines += [f"{digest}  {name}" for name, digest in (self.sha256 or {}).items()]
        return printable("\n".join(lines))

    def __repr__(self) -> str:
        failed = sum(not check["ok"] for check in self.checks)
        return f"<Verification of {self.path}: {len(self.checks)} checks, {failed} failed>"
