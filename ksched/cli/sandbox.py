"""`ksched sandbox`: the embedded API server in this process, on the fast event loop.

The server itself is `ksched.sandbox.server`; what is here is its flags and what they mean to a person.
"""

from __future__ import annotations

import click
import uvloop

from ksched.cli import logs
from ksched.cli.options import verbosity_option
from ksched.cli.processes import end_with_parent
from ksched.sandbox.server import SandboxOptions, main

_HELP = """Run an embedded Kubernetes API server until it is stopped.

It answers kubectl, kube-scheduler and ksched as a real API server would, keeps everything in memory, and needs
nothing but this process: no etcd, no containers. There are no kubelets: an agent marks bound pods as running.

\b
Examples:
  ksched sandbox --nodes 10 --port 8001 --kubeconfig-out sandbox.yaml
  kubectl --kubeconfig sandbox.yaml get nodes
  ksched run --kubeconfig sandbox.yaml
  kubectl --kubeconfig sandbox.yaml create deployment web --image=nginx --replicas=5
  kubectl --kubeconfig sandbox.yaml get pods -o wide

How to make it misbehave (latency, refusals, cut watches) and read its statistics is in docs/sandbox.md."""


@click.command("sandbox", help=_HELP)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="Port to listen on; 0 takes a free one."
)
@click.option("--tls", is_flag=True, help="Speak HTTPS; the kubeconfig carries the certificates that were made for it.")
@click.option(
    "--kubeconfig-out",
    metavar="FILE",
    help="Where to write the kubeconfig.  [default: a temporary file, which is named]",
)
@click.option(
    "--nodes", default=0, show_default=True, type=click.IntRange(0), help="How many nodes exist from the start."
)
@click.option(
    "--agent/--no-agent",
    default=True,
    show_default=True,
    help="Mark bound pods as running, finish deletions, and taint nodes that are cordoned or not ready.",
)
@click.option(
    "--deployments/--no-deployments",
    default=True,
    show_default=True,
    help="Make the pods of deployments and replica sets.",
)
@click.option("--data-dir", metavar="DIR", help="Keep objects here, so that they survive a restart.  [default: memory]")
@click.option(
    "--token", metavar="TOKEN", help="A bearer token that every request must carry.  [default: none is asked for]"
)
@click.option(
    "--history",
    default=50_000,
    show_default=True,
    type=click.IntRange(1),
    help="Changes remembered per kind; a watch from before is answered 410 Gone.",
)
@click.option(
    "--bookmark-seconds",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Time between the bookmarks of a watch.",
)
@click.option(
    "--event-seconds",
    default=3600.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="How long Event objects are kept.",
)
@click.option("--seed", default=0, show_default=True, type=int, help="Seed of all that is random, faults included.")
@click.option("--parent", type=int, hidden=True, help="Stop when the process with this id does.")
@verbosity_option
def command(*, parent: int | None, verbosity: int, **options: object) -> None:
    """Serve until SIGTERM or SIGINT."""
    if parent is not None:
        end_with_parent(parent)
    logs.set_up(verbosity, "text")
    main(SandboxOptions(**options), loop_factory=uvloop.new_event_loop)  # type: ignore[arg-type]  # click made them
