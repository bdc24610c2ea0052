"""How long a burst delays a pod that is more urgent: `python -m benchmarks.fairness`.

A burst of pods waits when the scheduler starts. While it is being worked off, urgent pods are created one after the
other; then as many again while nothing else waits. What the burst costs an urgent pod is the difference of the two, by
the server's clock from creation to binding.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from pathlib import Path
from typing import Any

import click
import orjson
import uvloop

from ksched.api.client import Client
from ksched.cli.demo.load import create_all
from ksched.cli.processes import KschedProcess
from ksched.sandbox.process import SandboxProcess
from ksched.sandbox.server import SandboxOptions

BURST, URGENT = "default", "urgent"
"""The namespaces of the two."""

PAUSE_SECONDS = 0.02
"""Between two urgent pods."""

PODS = "/api/v1/namespaces/{namespace}/pods"


def pod(name: str, namespace: str, priority: int) -> dict[str, Any]:
    """A pod that fits nearly everywhere."""
    requests = {"cpu": "1m", "memory": "1Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "priority": priority,
            "containers": [{"name": "main", "image": "pause:1", "resources": {"requests": requests}}],
        },
    }


async def latencies(client: Client, names: set[str]) -> list[float]:
    """Milliseconds from creation to binding of the urgent pods `names`, waiting until all are bound."""
    while True:
        answer = await client.json("GET", f"/sandbox/times?namespace={URGENT}")
        times = [bound - created for name, _, created, bound in answer["pods"] if name in names and bound]
        if len(times) == len(names):
            return sorted(nanoseconds / 1e6 for nanoseconds in times)
        await asyncio.sleep(0.05)


async def urgent_pods(client: Client, prefix: str, count: int) -> set[str]:
    """Create urgent pods, one after the other."""
    names = [f"{prefix}-{i}" for i in range(count)]
    for name in names:
        await create_all(client, PODS, [pod(name, URGENT, 1000)])
        await asyncio.sleep(PAUSE_SECONDS)
    return set(names)


async def measure(kubeconfig: Path, burst: int, urgent: int, log: Path) -> dict[str, Any]:
    """Both latencies, in milliseconds, and how much of the burst was left when the last urgent pod was created."""
    client = await Client.from_kubeconfig(str(kubeconfig))
    try:
        await client.json("POST", "/api/v1/namespaces", body=orjson.dumps({"metadata": {"name": URGENT}}))
        await create_all(client, PODS, [pod(f"burst-{i}", BURST, 0) for i in range(burst)])
        scheduler = KschedProcess(["run", "--kubeconfig", str(kubeconfig)], log)
        try:
            while (await bound(client)) == 0:  # noqa: ASYNC110 - the server has to be asked
                await asyncio.sleep(0.01)
            during = await urgent_pods(client, "during", urgent)
            left = burst + urgent - await bound(client)
            within = await latencies(client, during)
            while (await bound(client)) < burst + urgent:  # noqa: ASYNC110 - the server has to be asked
                await asyncio.sleep(0.1)
            alone = await latencies(client, await urgent_pods(client, "alone", urgent))
        finally:
            scheduler.stop()
    finally:
        await client.close()
    return {"burst_left": left, "during": summary(within), "alone": summary(alone)}


async def bound(client: Client) -> int:
    """How many pods the server has bound."""
    count: int = (await client.json("GET", "/sandbox/timeline"))["bound"]
    return count


def summary(milliseconds: list[float]) -> dict[str, float]:
    """Median, 99th percentile and maximum."""
    return {
        "p50": statistics.median(milliseconds),
        "p99": milliseconds[min(len(milliseconds) - 1, round(len(milliseconds) * 0.99))],
        "max": milliseconds[-1],
    }


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--nodes", default=5000, show_default=True, help="Nodes of the cluster.")
@click.option("--burst", default=10_000, show_default=True, help="Pods that wait when the scheduler starts.")
@click.option("--urgent", default=50, show_default=True, help="Urgent pods, during the burst and again after it.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the result here.")
def main(nodes: int, burst: int, urgent: int, json_path: Path | None) -> None:
    """Measure what a burst of pods costs a more urgent one."""
    with (
        tempfile.TemporaryDirectory(prefix="ksched-fairness-") as folder,
        SandboxProcess(SandboxOptions(nodes=nodes, agent=False)) as sandbox,
    ):
        result = uvloop.run(measure(sandbox.kubeconfig, burst, urgent, Path(folder, "scheduler.log")))
    click.echo(f"{'':24}{'p50 ms':>10}{'p99 ms':>10}{'max ms':>10}")
    for name, title in (("alone", "nothing else waits"), ("during", f"burst of {burst:,}")):
        click.echo(f"{title:24}" + "".join(f"{result[name][figure]:10.1f}" for figure in ("p50", "p99", "max")))
    cost = {figure: result["during"][figure] - result["alone"][figure] for figure in ("p50", "p99", "max")}
    click.echo(f"{'what the burst costs':24}" + "".join(f"{cost[figure]:10.1f}" for figure in ("p50", "p99", "max")))
    click.echo(f"{result['burst_left']:,} pods of the burst were left when the last urgent pod was created")
    if json_path is not None:
        json_path.write_bytes(orjson.dumps(result, option=orjson.OPT_INDENT_2))


if __name__ == "__main__":
    main()
