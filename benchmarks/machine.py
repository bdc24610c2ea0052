"""The machine and the software that a figure belongs to."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata
from pathlib import Path

from ksched import __version__

_PACKAGES = ("uvloop", "msgspec", "numpy", "httptools", "orjson")


def describe() -> dict[str, object]:
    """What results record about where they were measured."""
    return {
        "cpu": _first("/proc/cpuinfo", "model name"),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": platform.release(),
        "python": sys.version.split()[0],
        "ksched": __version__,
        "packages": {name: metadata.version(name) for name in _PACKAGES},
        "load_average": list(os.getloadavg()),
    }


def _first(path: str, field: str) -> str:
    for line in Path(path).read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(field):
            return line.partition(":")[2].strip()
    return platform.machine()
