"""The loader of a budget, as a process: creates identical pods and ends. `python -m benchmarks.budget.load`."""

from __future__ import annotations

import argparse
import asyncio

import msgspec
import uvloop

from benchmarks.scheduler_perf.loader import WORKERS, Api
from ksched.api.client import Client

NAMESPACE = "budget"

_POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "pod-"},
    "spec": {
        "containers": [
            {
                "name": "pause",
                "image": "registry.k8s.io/pause:3.10.1",
                "ports": [{"containerPort": 80}],
                "resources": {
                    "limits": {"cpu": "1m", "memory": "1Mi"},
                    "requests": {"cpu": "1m", "memory": "1Mi"},
                },
            }
        ]
    },
}


async def create(kubeconfig: str, count: int) -> None:
    """Create the pods."""
    client = await Client.from_kubeconfig(kubeconfig, connections=WORKERS, user_agent="ksched-budget")
    try:
        api = Api(client)
        await api.ensure_namespace(NAMESPACE)
        body = msgspec.json.encode(_POD)
        await api.create_all(f"/api/v1/namespaces/{NAMESPACE}/pods", [body] * count, count)
    finally:
        await client.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--pods", type=int, required=True)
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(create(arguments.kubeconfig, arguments.pods))
