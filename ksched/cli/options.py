"""Flags that more than one command has, and values as kube-scheduler's command line takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ksched.cli import VERBOSITY

Command = TypeVar("Command", bound=Callable[..., Any])


class Level(click.IntRange):
    """A log level; Go's way of writing it, `-v=2`, reaches us as "=2" and is understood."""

    name = "level"

    def __init__(self) -> None:
        super().__init__(min=0)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number, or wrong usage."""
        text: Any = value.removeprefix("=") if isinstance(value, str) else value
        level: int = super().convert(text, param, ctx)
        return level


def _remember(ctx: click.Context, param: click.Parameter, value: int) -> int:
    ctx.meta[VERBOSITY] = value
    return value


def verbosity_option(command: Command) -> Command:
    """Add `-v`, which also decides whether a fault comes with its traceback."""
    option = click.option(
        "-v",
        "--v",
        "verbosity",
        type=Level(),
        default=0,
        show_default=True,
        metavar="LEVEL",
        is_eager=True,
        callback=_remember,
        help="How much to log: from 1 with tracebacks, from 2 in detail.",
    )
    return option(command)
