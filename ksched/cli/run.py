"""`ksched run`: the scheduler against a cluster, until a signal stops it.

The order is kube-scheduler's: feature gates, log, configuration, client, scheduler. Whatever is wrong is said
in one line before anything is scheduled.
"""

from __future__ import annotations

import asyncio
import logging
import random
from dataclasses import dataclass
from pathlib import Path

import click

from ksched import __version__
from ksched.api.client import Client
from ksched.cli import logs
from ksched.cli.options import verbosity_option
from ksched.cli.processes import end_with_parent
from ksched.cli.serving import run_until_stopped
from ksched.config import Configuration, FeatureGates, load
from ksched.engine.scheduler import Scheduler
from ksched.errors import ConfigurationError

log = logging.getLogger("ksched.run")

_HELP = """Schedule the pods of a cluster until stopped.

Pods are served whose spec.schedulerName is the name of a profile; without a configuration file there is one profile,
default-scheduler, with the plugins that kube-scheduler enables by default.

\b
Examples:
  ksched run                                        in a pod, with its service account
  ksched run --kubeconfig ~/.kube/config            from outside of the cluster
  ksched run --config scheduler.yaml --v=2          with profiles of your own, and a line for each pod
  ksched run --master http://127.0.0.1:8001         through kubectl proxy
  ksched run --feature-gates TaintTolerationComparisonOperators=true

The first SIGTERM or SIGINT stops cleanly: no pod is taken up any more, and binds in flight are finished. The second
ends the process at once. The exit code is 0 after a clean stop, 1 after a failure, 2 for wrong usage."""


@dataclass(frozen=True, slots=True)
class Access:
    """Where the API server is, as far as the command line says."""

    kubeconfig: str | None
    master: str | None


@click.command("run", help=_HELP)
@click.option(
    "--config",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="KubeSchedulerConfiguration (kubescheduler.config.k8s.io/v1), YAML or JSON.",
)
@click.option(
    "--kubeconfig",
    metavar="FILE",
    help="How to reach the API server.  [default: what --config names, else the pod's service account]",
)
@click.option("--master", metavar="URL", help="Address of the API server; overrides the one in the kubeconfig.")
@click.option(
    "--feature-gates",
    metavar="NAME=BOOL,...",
    multiple=True,
    help="Switch features on or off, by Kubernetes' names. May be repeated.",
)
@click.option(
    "--seed",
    type=int,
    metavar="NUMBER",
    help="Choose between equally good nodes reproducibly.  [default: differently each time]",
)
@click.option(
    "--logging-format",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="How log lines look: klog's text, or one JSON object each.",
)
@click.option("--parent", type=int, hidden=True, help="Stop when the process with this id does.")
@verbosity_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    config: Path | None,
    kubeconfig: str | None,
    master: str | None,
    feature_gates: tuple[str, ...],
    seed: int | None,
    logging_format: logs.Format,
    parent: int | None,
    verbosity: int,
) -> None:
    """Set up, schedule until stopped, and exit."""
    if parent is not None:
        end_with_parent(parent)
    gates = _gates(feature_gates)
    logs.set_up(verbosity, logging_format)
    configuration = Configuration.default(gates) if config is None else load(config, gates)
    _refuse_what_is_missing(configuration)
    access = Access(kubeconfig or configuration.client_connection.kubeconfig or None, master)
    rng = random.Random(seed)
    ctx.exit(run_until_stopped(lambda stop: schedule(access, configuration, gates, rng, stop)))


def _gates(flags: tuple[str, ...]) -> FeatureGates:
    try:
        return FeatureGates.parse(flags)
    except ConfigurationError as fault:
        raise click.BadParameter(str(fault), param_hint="--feature-gates") from fault


def _refuse_what_is_missing(configuration: Configuration) -> None:
    """Raise for what would change decisions if it were ignored."""
    if configuration.extenders:
        raise ConfigurationError(
            f"extenders: ksched has none yet, expected no entry, got {len(configuration.extenders)}"
        )


async def schedule(
    access: Access, configuration: Configuration, gates: FeatureGates, rng: random.Random, stop: asyncio.Event
) -> int:
    """Run a scheduler until `stop` is set, then stop it cleanly. What makes it impossible to go on is raised."""
    connection = configuration.client_connection
    client = await Client.from_kubeconfig(
        access.kubeconfig, master=access.master, qps=connection.qps, burst=connection.burst
    )
    try:
        version = await client.check()
        log.info("API server address=%s version=%s", client.access.server, version["gitVersion"])
        scheduler = Scheduler(client, configuration, gates, rng=rng)
        log.info("starting version=%s profiles=%s", __version__, ",".join(scheduler.profiles))
        if configuration.leader_election.leader_elect:
            log.info("leader election is not there yet, let one replica run at a time")
        running = asyncio.create_task(scheduler.run())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                log.info("requested to terminate")
                await scheduler.stop()
            await running
        finally:
            running.cancel()
            stopping.cancel()
            await asyncio.gather(running, stopping, return_exceptions=True)
    finally:
        await client.close()
    log.info("stopped")
    return 0
