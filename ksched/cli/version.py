"""`ksched version`: which ksched this is, and whose behaviour it has."""

from __future__ import annotations

import platform

import click

from ksched import __version__

BEHAVIOUR = "v1.36"
"""The Kubernetes release whose scheduler ksched behaves like."""


@click.command("version")
def command() -> None:
    """Print ksched's version, and the Kubernetes release whose scheduler it behaves like."""
    click.echo(f"ksched {__version__} (behaves like kube-scheduler {BEHAVIOUR}; Python {platform.python_version()})")
