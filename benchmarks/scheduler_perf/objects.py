"""The objects that a workload is made of: its templates, and what is used where it names none.

Pods, nodes, namespaces and volumes are read by scheduler_perf into typed records, which takes field names in any case;
a server does not. So names of fields that begin with a capital are put right here (`NodeTaintsPolicy`), but not the
keys of maps, which are data.
"""

from __future__ import annotations

from typing import Any

import msgspec

from benchmarks.scheduler_perf.cases import Workload
from benchmarks.scheduler_perf.operations import CreateNodes, CreatePods
from benchmarks.scheduler_perf.templates import ObjectTemplate

Json = dict[str, Any]

_DATA = frozenset(
    {
        "labels",
        "annotations",
        "matchLabels",
        "nodeSelector",
        "selector",
        "requests",
        "limits",
        "capacity",
        "allocatable",
        "overhead",
        "data",
        "parameters",
    }
)
"""Fields whose value is a map with free keys."""

SAME_FIELDS = {"resource.k8s.io/v1beta2": "resource.k8s.io/v1"}
"""Versions whose objects are written alike, where only the newer one is sure to be served."""

_BASE_NODE = """\
apiVersion: v1
kind: Node
metadata: {{generateName: {prefix}}}
status:
  capacity: {{pods: "110", cpu: "4", memory: 32Gi}}
  phase: Running
  conditions: [{{type: Ready, status: "True"}}]
"""

_BASE_POD = """\
apiVersion: v1
kind: Pod
metadata: {generateName: pod-}
spec:
  containers:
  - name: pause
    image: registry.k8s.io/pause:3.10.1
    ports: [{containerPort: 80}]
    resources:
      limits: {cpu: 100m, memory: 500Mi}
      requests: {cpu: 100m, memory: 500Mi}
"""


class Templates:
    """The template files of one workload, each read once."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._read: dict[str, ObjectTemplate] = {}
        self._base_pod = ObjectTemplate(_BASE_POD, "the default pod")

    def named(self, path: str) -> ObjectTemplate:
        """The template at a path, which begins at the workload file's folder."""
        template = self._read.get(path)
        if template is None:
            template = self._read[path] = ObjectTemplate.from_file(self._workload.folder / path)
        return template

    def pod(self, operation: CreatePods) -> ObjectTemplate:
        """The pods of an operation."""
        path = operation.pod_template_path or self._workload.default_pod_template
        return self._base_pod if path is None else self.named(path)

    def node(self, operation: CreateNodes, index: int) -> ObjectTemplate:
        """The nodes of operation number `index`."""
        if operation.node_template_path is not None:
            return self.named(operation.node_template_path)
        return ObjectTemplate(_BASE_NODE.format(prefix=f"node-{index}-"), "the default node")


class Bodies:
    """The objects of one template as request bodies; those that are all alike are encoded once."""

    def __init__(self, template: ObjectTemplate, count: int) -> None:
        self._template = template
        self._count = count
        self._same: bytes | None = None
        if template.is_constant:
            self._same = msgspec.json.encode(typed(template.object(0, count)))

    def __getitem__(self, index: int) -> bytes:
        if self._same is not None:
            return self._same
        return msgspec.json.encode(typed(self._template.object(index, self._count)))


def typed(value: Any) -> Any:
    """An object with its field names as Kubernetes writes them."""
    if isinstance(value, dict):
        return {
            _field_name(key): (member if _field_name(key) in _DATA and _is_map(member) else typed(member))
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [typed(element) for element in value]
    return value


def served_version(api_version: str) -> str:
    """The version under which objects of `api_version` are sent."""
    return SAME_FIELDS.get(api_version, api_version)


def _field_name(key: str) -> str:
    return key[:1].lower() + key[1:] if key[1:2].islower() else key


def _is_map(value: Any) -> bool:
    """Whether a field that may be data is; a label selector under `selector`, for one, is not."""
    return isinstance(value, dict) and all(isinstance(member, str | int | float) for member in value.values())
