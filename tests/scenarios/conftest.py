"""Control planes for the scenarios: the sandbox, anew for each test, and a real API server where its binaries are.

`make test-real` runs what is marked `real`. Tests that need the server to misbehave ask for `sandbox`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ksched.sandbox.process import SandboxProcess
from ksched.sandbox.server import SandboxOptions
from tests.scenarios.api import Api, Object
from tests.scenarios.processes import SchedulerProcess
from tests.scenarios.real import RealControlPlane, missing


@dataclass
class ControlPlane:
    """An API server without nodes and pods, and the means to run schedulers against it."""

    kubeconfig: Path
    api: Api
    directory: Path

    def scheduler(self, *options: str) -> SchedulerProcess:
        """A scheduler for this server, not started."""
        return SchedulerProcess(self.kubeconfig, self.directory / "scheduler.log", *options)


@dataclass
class SandboxPlane(ControlPlane):
    """A sandbox, which can be told to misbehave."""

    process: SandboxProcess

    def misbehave(self, **orders: Any) -> Object:
        """Give it orders, as its documentation has them."""
        return self.api.call("POST", "/sandbox/faults", orders)

    def behave(self) -> None:
        """No more disturbances."""
        self.api.call("DELETE", "/sandbox/faults")

    def audit(self) -> Object:
        """What its own books say of over-commitment and double bindings."""
        return self.api.call("GET", "/sandbox/audit")


@pytest.fixture
def sandbox(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SandboxPlane]:
    """A sandbox of the test's own that keeps its objects over a restart, without an agent: pods stay as they are."""
    data = tmp_path / "data"
    data.mkdir()
    options = SandboxOptions(agent=False, deployments=False, data_dir=str(data), **getattr(request, "param", {}))
    with SandboxProcess(options) as process:
        api = Api(process.kubeconfig)
        yield SandboxPlane(process.kubeconfig, api, tmp_path, process)
        api.close()


@pytest.fixture(scope="session")
def real_control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealControlPlane]:
    """One real API server for all tests; it takes seconds to start."""
    if reason := missing():
        pytest.skip(reason)
    with RealControlPlane(tmp_path_factory.mktemp("real")) as plane:
        yield plane


@pytest.fixture(params=["sandbox", pytest.param("real", marks=pytest.mark.real)])
def control_plane(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControlPlane]:
    """The sandbox, and in a second run of the test a real API server."""
    if request.param == "sandbox":
        yield request.getfixturevalue("sandbox")
        return
    plane: RealControlPlane = request.getfixturevalue("real_control_plane")
    api = Api(plane.kubeconfig)
    _empty(api)
    yield ControlPlane(plane.kubeconfig, api, tmp_path)
    api.close()


def _empty(api: Api) -> None:
    for pod in api.pods().values():
        api.delete({**pod, "kind": "Pod"})
    for node in api.nodes().values():
        api.delete({**node, "kind": "Node"})
    classes = api.call("GET", "/apis/scheduling.k8s.io/v1/priorityclasses")["items"]
    for made in classes:
        if not made["metadata"]["name"].startswith("system-"):
            api.delete({**made, "kind": "PriorityClass"})
