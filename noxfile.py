"""What developers run: `nox` lints and tests, `nox --list` names the rest.

`nox -s test -- tests/cli/test_cli.py` runs a part of the tests.

With `nox --no-venv` a session runs in the environment that is active. CI runs `bash .ci/run`.
"""

from __future__ import annotations

import nox

nox.options.sessions = ["lint", "test"]
nox.options.reuse_existing_virtualenvs = True


def install(session: nox.Session, extras: str, *more: str) -> None:
    """The package as it stands here, with its kernel; packages at the versions that CI has."""
    if session.venv_backend != "none":
        session.env["VEC2EMB_REQUIRE_NATIVE"] = "1"
        session.install("-q", "-c", "constraints.txt", "-e", f".[{extras}]", *more)


@nox.session
def lint(session: nox.Session) -> None:
    """Style, types, the kernel's stub, and who imports whom."""
    install(session, "test,lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("lint-imports", "--no-cache", "--no-logo")
    session.run("mypy")
    session.run("stubtest", "vec2emb._kernel._native", "--allowlist", ".ci/stubtest.txt")


@nox.session
def test(session: nox.Session) -> None:
    """The everyday suite, on two cores; arguments go to pytest."""
    install(session, "test")
    session.run("pytest", *(session.posargs or ["-n", "2"]))


@nox.session
def coverage(session: nox.Session) -> None:
    """Which lines no test reaches, commands in processes of their own included; arguments go to pytest."""
    install(session, "test", "coverage>=7.10")
    session.run("coverage", "erase")
    session.run("coverage", "run", "-m", "pytest", *(session.posargs or ["-q", "-n", "2"]))
    session.run("coverage", "combine", "--quiet")
    session.run("coverage", "report")


@nox.session
def docs(session: nox.Session) -> None:
    """The site in `site/`, and whether the reference is as help texts say; `-- serve` shows it while you write."""
    install(session, "test")
    session.env["NO_MKDOCS_2_WARNING"] = "1"
    session.run("python", "docs/make/reference.py", "--check")
    session.run("mkdocs", *(session.posargs or ["build", "--strict", "--quiet"]))


@nox.session
def bench(session: nox.Session) -> None:
    """The lines of docs/performance.md, on small inputs to see that it works; `-- --folder DIR` measures in earnest."""
    install(session, "test,bench")
    session.run("python", "benchmarks/run.py", *(session.posargs or ["--small", "--runs", "1"]))


@nox.session
def fuzz(session: nox.Session) -> None:
    """The tests that make up their inputs, each with many more of them than every day."""
    install(session, "test")
    session.run("pytest", *(session.posargs or ["--slow", "-k", "fuzz or properties"]))
