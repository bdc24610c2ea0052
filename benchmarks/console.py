"""The console that benchmarks print to: tables are wide, and without a terminal there is no reason to squeeze them."""

from __future__ import annotations

from rich.console import Console

WIDTH = 160


def wide_console() -> Console:
    """A terminal as wide as it is; a file or pipe of `WIDTH` columns."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)
