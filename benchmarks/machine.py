"""What figures were measured on, and with."""

from __future__ import annotations

import compileall
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path
from typing import Any

from timing import run

PACKAGES = ("click", "numpy", "safetensors", "gensim", "pandas", "polars", "pyarrow", "isal", "zlib-ng")


def vec2emb_command() -> list[str]:
    """The command as users have it; beside this Python, else as a module."""
    script = shutil.which("vec2emb", path=os.pathsep.join([os.path.dirname(sys.executable), scripts_folder()]))
    return [script] if script else [sys.executable, "-m", "vec2emb"]


def scripts_folder() -> str:
    return sysconfig.get_path("scripts")


def compile_package() -> None:
    """Compile the package's modules, as installing it does."""
    spec = importlib.util.find_spec("vec2emb")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("vec2emb is not installed for this Python")
    for folder in spec.submodule_search_locations:
        compileall.compile_dir(folder, quiet=1)


def describe(folder: Path) -> dict[str, Any]:
    """Machine, system and versions.

    Raises:
        SystemExit: the package runs without its native kernel, so that there is nothing to measure.
    """
    kernel = run([*vec2emb_command(), "--version"], folder).strip()
    if "native" not in kernel:
        raise SystemExit(f"{kernel}: only the native one is measured; install vec2emb with a compiler at hand")
    simd = run([sys.executable, "-c", "from vec2emb._kernel import _native; print(_native.simd())"], folder).strip()
    return {
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": cores(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": platform.platform(),
        "filesystem": _filesystem(folder),
        "python": platform.python_version(),
        "vec2emb": f"{kernel} ({simd})",
        "installed": "editable" if _is_editable() else "as a wheel",
        "commit": _commit(),
        "versions": _versions(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _filesystem(folder: Path) -> str:
    """The type of the file system that a folder is on."""
    found = ("", "unknown")
    if os.path.exists("/proc/mounts"):
        with open("/proc/mounts") as file:
            for line in file:
                _, mount, kind, *_ = line.split()
                if folder.resolve().is_relative_to(mount) and len(mount) >= len(found[0]):
                    found = (mount, kind)
    return found[1]


def _is_editable() -> bool:
    text = importlib.metadata.distribution("vec2emb").read_text("direct_url.json") or ""
    return '"editable": true' in text


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return done.stdout.strip() or "unknown"


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
