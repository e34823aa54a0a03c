"""Number of threads: what an option asks for, and what this machine has."""

from __future__ import annotations

import os

MAX_WORKERS = 16


def worker_count(wanted: int | None) -> int:
    """How many workers there will be: as many as wanted or, by default, as there are cores for this process."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(wanted or cores, MAX_WORKERS)
