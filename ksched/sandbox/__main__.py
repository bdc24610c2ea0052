"""`python -m ksched.sandbox`: the sandbox's own command, which `ksched sandbox` offers too."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable

import click

from ksched.errors import SandboxError
from ksched.sandbox.server import SandboxOptions, main

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


@click.command("sandbox")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="Port; 0 takes a free one.")
@click.option("--tls", is_flag=True, help="Speak HTTPS, with certificates made for the occasion.")
@click.option("--kubeconfig-out", metavar="FILE", help="Where to write the kubeconfig.  [default: a temporary file]")
@click.option("--nodes", default=0, show_default=True, type=click.IntRange(0), help="Plain nodes to start with.")
@click.option("--agent/--no-agent", default=True, show_default=True, help="Run bound pods and taint nodes.")
@click.option("--deployments/--no-deployments", default=True, show_default=True, help="Run the deployment controller.")
@click.option("--history", default=50_000, show_default=True, type=click.IntRange(1), help="Changes kept per kind.")
@click.option("--bookmark-seconds", default=60.0, show_default=True, help="Time between bookmarks of a watch.")
@click.option("--event-seconds", default=3600.0, show_default=True, help="How long events are kept.")
@click.option("--seed", default=0, show_default=True, help="Seed of everything random.")
@click.option("--data-dir", metavar="DIR", help="Keep objects here across restarts.")
@click.option("--token", metavar="TOKEN", help="A bearer token that every request must carry.")
@click.pass_obj
def command(loop_factory: LoopFactory | None, /, **options: object) -> None:
    """Run an embedded Kubernetes API server until it is stopped."""
    try:
        main(SandboxOptions(**options), loop_factory=loop_factory)  # type: ignore[arg-type]
    except SandboxError as error:
        click.echo(f"ksched sandbox: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    command()
