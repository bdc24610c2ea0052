"""`ksched demo`: schedule a whole cluster on this machine, watch it, and read what the server counted.

story.py     the steps, and the processes that take part
plan.py      what is scheduled: a made-up cluster, or a recorded one
load.py      creates objects as fast as the server takes them
follow.py    asks the server how far things are
screen.py    shows it
report.py    what came of it, judged and written
"""

from __future__ import annotations

import os
from pathlib import Path

import click
from rich.console import Console

from ksched.cli import logs
from ksched.cli.demo.plan import Plan, made_up, recorded
from ksched.cli.demo.report import Report
from ksched.cli.demo.screen import Screen
from ksched.cli.demo.story import Settings, demonstrate
from ksched.cli.options import verbosity_option
from ksched.cli.serving import Stop, run_until_stopped
from ksched.errors import ClusterTooSmall

_HELP = """Schedule a made-up cluster on this machine, and report.

Starts an embedded API server and a scheduler, each a process of its own, creates nodes of several pools and pods of
several shapes over HTTP, and shows how they are scheduled. Some pods cannot fit, by construction; all others must be
bound, each once, and no node may be given more than it has: this is checked at the server, and the exit code is 1 if
it is not so. Ctrl-C before the end makes it 130.

\b
Examples:
  ksched demo                                       a small cluster, a few seconds
  ksched demo --nodes 5000 --pods 10000             a large one
  ksched demo --tls --unschedulable 20 --seed 7     over HTTPS, with more pods that cannot fit
  ksched demo --json report.json                    with a report for machines
  ksched demo --keep                                and then look around with kubectl
  ksched demo --trace alibaba DIR                   a recorded cluster: 1,523 nodes, 8,152 pods, GPUs

docs/demo.md describes the report."""

TRACES = ("alibaba",)


def _writable(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Refuse a file that cannot be made, before minutes go into what is to be written there."""
    if path is not None and not path.exists():
        folder = path.parent
        if not folder.is_dir():
            raise click.BadParameter(f"{path}: there is no folder {folder}")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise click.BadParameter(f"{path}: folder {folder} is not writable")
    return path


@click.command("demo", help=_HELP)
@click.option("--nodes", default=500, show_default=True, type=click.IntRange(1), help="How many nodes the cluster has.")
@click.option("--pods", default=3000, show_default=True, type=click.IntRange(0), help="How many pods are created.")
@click.option("--seed", default=1, show_default=True, type=int, help="The same seed makes the same cluster and pods.")
@click.option(
    "--unschedulable", default=5, show_default=True, type=click.IntRange(0), help="How many of the pods cannot fit."
)
@click.option(
    "--trace",
    nargs=2,
    type=(click.Choice(TRACES), click.Path(exists=True, file_okay=False, path_type=Path)),
    metavar="NAME DIR",
    help="Schedule the recorded cluster NAME (alibaba), whose files are in DIR, instead of a made-up one.",
)
@click.option("--backlog", is_flag=True, help="Create all pods first, and start the scheduler then.")
@click.option("--tls", is_flag=True, help="Speak HTTPS between all of them.")
@click.option(
    "--json",
    "json_path",
    metavar="FILE",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    callback=_writable,
    help="Write the report here too.",
)
@click.option("--keep", is_flag=True, help="Leave everything running after the summary, until Ctrl-C.")
@click.option(
    "--log-dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Keep the kubeconfig and the scheduler's log here.  [default: gone at the end]",
)
@verbosity_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    nodes: int,
    pods: int,
    seed: int,
    unschedulable: int,
    trace: tuple[str, Path] | None,
    backlog: bool,
    tls: bool,
    json_path: Path | None,
    keep: bool,
    log_dir: Path | None,
    verbosity: int,
) -> None:
    """Make the plan, run it, report."""
    logs.set_up(verbosity, "text")
    if trace is not None:
        _refuse_sizes(ctx)
        plan = recorded(*trace)
    elif unschedulable > pods:
        raise click.BadParameter(f"must be at most --pods, {pods}, got {unschedulable}", param_hint="--unschedulable")
    else:
        click.echo(f"making up {nodes:,} nodes and {pods:,} pods, of which {unschedulable} cannot fit (seed {seed})")
        try:
            plan = made_up(nodes, pods, seed, unschedulable)
        except ClusterTooSmall as fault:
            raise click.UsageError(f"{fault}; use more --nodes or fewer --pods") from fault
    settings = Settings(
        seed=seed, tls=tls, backlog=backlog, keep=keep, log_dir=log_dir, scheduler_flags=(f"--v={verbosity}",)
    )
    ctx.exit(run_until_stopped(lambda stop: show(plan, settings, json_path, stop)))


async def show(plan: Plan, settings: Settings, json_path: Path | None, stop: Stop) -> int:
    """Run the demo with a display, and return its exit code."""
    console = Console()
    failed = False

    def finished(report: Report) -> None:
        nonlocal failed
        failed = bool(report.faults())
        screen.end()
        report.show(console)
        if json_path is not None:
            report.write(json_path)
            screen.say(f"report written to {json_path}")

    screen = Screen(console)
    with screen:
        complete = await demonstrate(plan, settings, screen, stop, finished)
    if not complete:
        console.print("stopped before the end", style="yellow")
        return stop.exit_code
    return 1 if failed else 0


def _refuse_sizes(ctx: click.Context) -> None:
    """A recorded cluster has the size that it has."""
    for name in ("nodes", "pods", "unschedulable"):
        if ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            raise click.UsageError(f"--{name} and --trace do not go together: a recorded cluster has its own size")
