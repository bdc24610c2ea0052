"""What people type: kubectl itself, unmodified, against a sandbox with its controllers.

It is taken from KSCHED_KUBECTL or from PATH; where there is none these tests are skipped and say so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ksched.sandbox.server import Sandbox, SandboxOptions

from .conftest import running
from .wire import NODES, PODS, Client, binding

KUBECTL = os.environ.get("KSCHED_KUBECTL") or shutil.which("kubectl")

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is neither in KSCHED_KUBECTL nor on PATH")

TIMEOUT_SECONDS = 60

POD = """
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  labels: {{app: {name}}}
spec:
  containers:
    - name: main
      image: registry.example/app:1
      resources: {{requests: {{cpu: 100m, memory: 64Mi}}}}
"""


class Kubectl:
    """kubectl with the kubeconfig of one sandbox."""

    def __init__(self, sandbox: Sandbox, home: Path) -> None:
        self.client = Client(sandbox.url)
        self.home = home
        home.mkdir(exist_ok=True)
        self.environment = {**os.environ, "KUBECONFIG": str(sandbox.kubeconfig), "HOME": str(home)}

    def __call__(self, *arguments: str, given: str | None = None, code: int = 0) -> str:
        """What `kubectl ARGUMENTS` prints; fails the test unless it ends with `code`."""
        done = subprocess.run(
            [str(KUBECTL), *arguments],
            input=given,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            env=self.environment,
            check=False,
        )
        assert done.returncode == code, f"kubectl {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout + (done.stderr if code else "")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """`kubectl ARGUMENTS`, left running."""
        return subprocess.Popen([str(KUBECTL), *arguments], stdout=subprocess.PIPE, text=True, env=self.environment)

    def create(self, name: str) -> None:
        """Create a pod."""
        self("create", "-f", "-", given=POD.format(name=name))

    def bind(self, name: str, node: str = "node-000000") -> None:
        """Do the scheduler's part for one pod."""
        self.client.post(f"{PODS}/{name}/binding", binding(name, node))

    def bind_all(self) -> None:
        """Do the scheduler's part for every pod that waits."""
        for pod in self.client.get(PODS, fieldSelector="spec.nodeName=")["items"]:
            self.bind(pod["metadata"]["name"])

    def json(self, *arguments: str) -> Any:
        """What kubectl prints with `-o json`."""
        return json.loads(self(*arguments, "-o", "json"))


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with running(SandboxOptions(nodes=3)) as started:
        yield started


@pytest.fixture
def kubectl(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    command = Kubectl(sandbox, tmp_path_factory.getbasetemp() / "kubectl-home")
    yield command
    command.client.delete("/apis/apps/v1/namespaces/default/deployments")
    command.client.delete(PODS, {"gracePeriodSeconds": 0})
    command.client.close()


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 15
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def row(table: str, name: str) -> list[str]:
    """The columns of the row that begins with `name`."""
    return next(line.split() for line in table.splitlines() if line.split()[0] == name)


def test_version(kubectl: Kubectl) -> None:
    assert kubectl.json("version")["serverVersion"]["major"] == "1"


def test_api_resources(kubectl: Kubectl) -> None:
    assert row(kubectl("api-resources"), "pods") == ["pods", "po", "v1", "true", "Pod"]
    assert row(kubectl("api-resources", "--api-group=apps"), "deployments")[1:] == [
        "deploy",
        "apps/v1",
        "true",
        "Deployment",
    ]


def test_get_prints_the_columns_of_a_kind(kubectl: Kubectl) -> None:
    kubectl.create("shown")
    table = kubectl("get", "pods")
    assert table.splitlines()[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row(table, "shown")[:4] == ["shown", "0/1", "Pending", "0"]
    assert row(kubectl("get", "nodes"), "node-000001")[1] == "Ready"


def test_get_wide_prints_the_node(kubectl: Kubectl) -> None:
    kubectl.create("wide")
    kubectl.bind("wide")
    assert "node-000000" in row(kubectl("get", "pods", "-o", "wide"), "wide")


def test_get_as_yaml_and_by_selector(kubectl: Kubectl) -> None:
    for name in ("one", "two"):
        kubectl.create(name)
    assert re.search(r"^  name: one$", kubectl("get", "pod", "one", "-o", "yaml"), re.MULTILINE)
    assert kubectl("get", "pods", "-l", "app=two", "-o", "name") == "pod/two\n"
    assert kubectl("get", "pods", "--field-selector", "metadata.name=one", "-o", "name") == "pod/one\n"


def test_get_of_what_is_not_there(kubectl: Kubectl) -> None:
    assert 'pods "nobody" not found' in kubectl("get", "pod", "nobody", code=1)


def test_get_watch_follows_a_pod(kubectl: Kubectl) -> None:
    kubectl.create("followed")
    with kubectl.start("get", "pods", "followed", "-w", "--no-headers", "--request-timeout=20s") as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().split()[:3] == ["followed", "0/1", "Pending"]
        # kubectl does not print the first event of its watch, so nothing may happen before that is open.
        until(lambda: kubectl.client.get("/sandbox/stats")["watchers"] == 1, "a watch")
        kubectl.bind("followed")
        while watching.stdout.readline().split()[2] != "Running":
            pass
        watching.terminate()


def test_describe_a_pod_with_its_events(kubectl: Kubectl) -> None:
    kubectl.create("described")
    uid = kubectl.json("get", "pod", "described")["metadata"]["uid"]
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "described.1", "namespace": "default"},
        "eventTime": "2026-12-01T02:21:04.716203Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "default-scheduler-host",
        "action": "Scheduling",
        "reason": "FailedScheduling",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": "described", "uid": uid},
        "note": "0/3 nodes are available: 3 Insufficient cpu.",
        "type": "Warning",
    }
    kubectl.client.post("/apis/events.k8s.io/v1/namespaces/default/events", event)
    described = kubectl("describe", "pod", "described")
    assert re.search(r"^Status: +Pending$", described, re.MULTILINE)
    assert "0/3 nodes are available: 3 Insufficient cpu." in described
    assert "0/3 nodes are available" in kubectl("get", "events")
    assert "FailedScheduling" in kubectl("events", "--for", "pod/described")


def test_describe_a_node_with_its_pods(kubectl: Kubectl) -> None:
    kubectl.create("housed")
    kubectl.bind("housed")
    described = kubectl("describe", "node", "node-000000")
    assert re.search(r"^Unschedulable: +false$", described, re.MULTILINE)
    assert re.search(r"^  default +housed +100m \(2%\)", described, re.MULTILINE)


def test_create_refuses_what_exists(kubectl: Kubectl) -> None:
    kubectl.create("twice")
    assert "already exists" in kubectl("create", "-f", "-", given=POD.format(name="twice"), code=1)


def test_create_with_a_server_side_dry_run_leaves_nothing(kubectl: Kubectl) -> None:
    kubectl("create", "--dry-run=server", "-f", "-", given=POD.format(name="dry"))
    assert kubectl("get", "pods", "-o", "name") == ""


def test_create_deployment_scale_and_roll_out(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=registry.example/web:1", "--replicas=2")

    def pods() -> int:
        return len(kubectl.client.get(PODS, labelSelector="app=web")["items"])

    until(lambda: pods() == 2, "two pods")
    kubectl("scale", "deployment", "web", "--replicas=3")
    until(lambda: pods() == 3, "three pods")
    kubectl.bind_all()
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/web", "--timeout=15s")
    assert row(kubectl("get", "deployments"), "web")[1:4] == ["3/3", "3", "3"]
    kubectl("set", "image", "deployment/web", "web=registry.example/web:2")
    with kubectl.start("rollout", "status", "deployment/web", "--timeout=30s") as rolling:
        deadline = time.monotonic() + 30
        while rolling.poll() is None:
            assert time.monotonic() < deadline
            kubectl.bind_all()
            time.sleep(0.05)
        assert rolling.returncode == 0
    images = {
        pod["spec"]["containers"][0]["image"] for pod in kubectl.client.get(PODS, labelSelector="app=web")["items"]
    }
    assert images == {"registry.example/web:2"}
    kubectl("delete", "deployment", "web")
    until(lambda: pods() == 0, "no pods")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["namespace", "made"], id="namespace"),
        pytest.param(["configmap", "made", "--from-literal=a=b"], id="config map"),
        pytest.param(["secret", "generic", "made", "--from-literal=a=b"], id="secret"),
        pytest.param(["serviceaccount", "made"], id="service account"),
        pytest.param(["priorityclass", "made", "--value=100", "--description=high"], id="priority class"),
        pytest.param(
            ["poddisruptionbudget", "made", "--selector=app=made", "--min-available=1"], id="disruption budget"
        ),
        pytest.param(["job", "made", "--image=registry.example/job:1"], id="job"),
        pytest.param(["service", "clusterip", "made", "--tcp=80:8080"], id="service"),
    ],
)
def test_create_by_command(kubectl: Kubectl, arguments: list[str]) -> None:
    kubectl("create", *arguments)
    kind = arguments[0]
    assert kubectl.json("get", kind, "made")["metadata"]["name"] == "made"
    kubectl("delete", kind, "made")


def test_apply_creates_changes_and_leaves_alone(kubectl: Kubectl) -> None:
    manifest = POD.format(name="applied")
    assert kubectl("apply", "-f", "-", given=manifest) == "pod/applied created\n"
    assert kubectl("apply", "-f", "-", given=manifest) == "pod/applied unchanged\n"
    changed = manifest.replace("app: applied", "app: applied, tier: front")
    assert kubectl("apply", "-f", "-", given=changed) == "pod/applied configured\n"
    assert kubectl("apply", "-f", "-", given=manifest) == "pod/applied configured\n"
    assert kubectl.json("get", "pod", "applied")["metadata"]["labels"] == {"app": "applied"}


def test_apply_server_side(kubectl: Kubectl) -> None:
    manifest = POD.format(name="owned")
    for text in (manifest, manifest.replace("app: owned", "app: owned, tier: front"), manifest):
        assert kubectl("apply", "--server-side", "-f", "-", given=text) == "pod/owned serverside-applied\n"
    assert kubectl.json("get", "pod", "owned")["metadata"]["labels"] == {"app": "owned"}
    other = manifest.replace("app: owned", "app: taken")
    command = ("apply", "--server-side", "--field-manager=other", "-f", "-")
    assert "conflict" in kubectl(*command, given=other, code=1)
    kubectl(*command, "--force-conflicts", given=other)
    assert kubectl.json("get", "pod", "owned")["metadata"]["labels"] == {"app": "taken"}


def test_label_and_annotate(kubectl: Kubectl) -> None:
    kubectl.create("marked")
    kubectl("label", "pod", "marked", "tier=front")
    kubectl("annotate", "pod", "marked", "example.com/note=seen")
    metadata = kubectl.json("get", "pod", "marked")["metadata"]
    assert (metadata["labels"]["tier"], metadata["annotations"]["example.com/note"]) == ("front", "seen")
    kubectl("label", "pod", "marked", "tier-")
    assert "tier" not in kubectl.json("get", "pod", "marked")["metadata"]["labels"]


def test_patch_and_replace(kubectl: Kubectl) -> None:
    kubectl.create("patched")
    for kind, body in (
        ("strategic", '{"metadata":{"labels":{"a":"1"}}}'),
        ("merge", '{"metadata":{"labels":{"b":"2"}}}'),
        ("json", '[{"op":"add","path":"/metadata/labels/c","value":"3"}]'),
    ):
        kubectl("patch", "pod", "patched", f"--type={kind}", "-p", body)
    pod = kubectl.json("get", "pod", "patched")
    assert pod["metadata"]["labels"] == {"app": "patched", "a": "1", "b": "2", "c": "3"}
    pod["metadata"]["labels"] = {"app": "replaced"}
    kubectl("replace", "-f", "-", given=json.dumps(pod))
    assert kubectl.json("get", "pod", "patched")["metadata"]["labels"] == {"app": "replaced"}


def test_taint_and_untaint(kubectl: Kubectl) -> None:
    kubectl("taint", "node", "node-000001", "dedicated=db:NoSchedule")
    taint = {"key": "dedicated", "value": "db", "effect": "NoSchedule"}
    assert kubectl.json("get", "node", "node-000001")["spec"]["taints"] == [taint]
    kubectl("taint", "node", "node-000001", "dedicated:NoSchedule-")
    assert kubectl.json("get", "node", "node-000001")["spec"].get("taints", []) == []


def test_cordon_taints_the_node_and_uncordon_takes_the_taint_away(kubectl: Kubectl) -> None:
    def taints() -> list[str]:
        node = kubectl.client.get(f"{NODES}/node-000001")
        return [taint["key"] for taint in node["spec"].get("taints") or []]

    kubectl("cordon", "node-000001")
    until(lambda: taints() == ["node.kubernetes.io/unschedulable"], "the taint")
    assert "SchedulingDisabled" in row(kubectl("get", "nodes"), "node-000001")[1]
    kubectl("uncordon", "node-000001")
    until(lambda: taints() == [], "no taint")


def test_drain_evicts_and_waits_until_the_pods_are_gone(kubectl: Kubectl) -> None:
    for name in ("guest-1", "guest-2"):
        kubectl.create(name)
        kubectl.bind(name, "node-000002")
    kubectl.create("elsewhere")
    kubectl.bind("elsewhere")
    printed = kubectl("drain", "node-000002", "--force", "--timeout=30s")
    assert "node/node-000002 drained" in printed
    assert kubectl("get", "pods", "-o", "name") == "pod/elsewhere\n"
    kubectl("uncordon", "node-000002")


def test_wait_for_a_condition_and_for_deletion(kubectl: Kubectl) -> None:
    kubectl.create("awaited")
    with kubectl.start("wait", "--for=condition=Ready", "pod/awaited", "--timeout=15s") as waiting:
        kubectl.bind("awaited")
        assert waiting.wait(20) == 0
    with kubectl.start("wait", "--for=delete", "pod/awaited", "--timeout=15s") as waiting:
        kubectl("delete", "pod", "awaited", "--wait=false")
        assert waiting.wait(20) == 0


def test_delete_waits_until_the_pod_is_gone(kubectl: Kubectl) -> None:
    kubectl.create("running")
    kubectl.bind("running")
    assert 'pod "running" deleted' in kubectl("delete", "pod", "running", "--timeout=20s")
    assert kubectl.client.request("GET", f"{PODS}/running").code == 404


def test_delete_by_selector_and_by_force(kubectl: Kubectl) -> None:
    for name in ("first", "second"):
        kubectl.create(name)
        kubectl.bind(name)
    kubectl("delete", "pods", "-l", "app=first")
    kubectl("delete", "pod", "second", "--grace-period=0", "--force")
    assert kubectl("get", "pods", "-o", "name") == ""


def test_get_across_namespaces_and_delete_a_namespace(kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "other")
    kubectl("create", "-n", "other", "-f", "-", given=POD.format(name="far"))
    assert row(kubectl("get", "pods", "-A"), "other")[1] == "far"
    kubectl("delete", "namespace", "other")
    assert kubectl("get", "pods", "-A", "-o", "name") == ""


def test_over_https_with_a_client_certificate_and_a_token(tmp_path: Path) -> None:
    with running(SandboxOptions(nodes=1, tls=True, token="secret")) as sandbox:
        kubectl = Kubectl(sandbox, tmp_path / "home")
        assert row(kubectl("get", "nodes"), "node-000000")[1] == "Ready"
        kubectl("create", "-f", "-", given=POD.format(name="sealed"))
        with kubectl.start("get", "pods", "--watch-only", "-o", "name", "--request-timeout=20s") as watching:
            assert watching.stdout is not None
            until(lambda: len(sandbox.control.watches.active) == 1, "a watch")
            kubectl("label", "pod", "sealed", "tier=front")
            assert watching.stdout.readline() == "pod/sealed\n"
            watching.terminate()


def test_auth_can_i(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "pods") == "yes\n"
