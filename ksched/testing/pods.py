"""Pods in few words.

`request`, `limit`, `image` and `port` speak of the container that was named last; a pod starts with one, called `main`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import msgspec

from ksched.model.objects import QuantityText
from ksched.model.pod import Pod
from ksched.testing.objects import Expression, Json, ObjectBuilder, requirement, resources

_REQUIRED_TERMS = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
_PREFERRED_TERMS = "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"


def pod(name: str = "pod", namespace: str = "default") -> PodBuilder:
    """A pod with one container that asks for nothing.

    >>> pod("web").request(cpu="1").container("proxy").request(cpu="100m").to_dict()["spec"]["containers"][1]["name"]
    'proxy'
    """
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    return PodBuilder(
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [{"name": "main"}]}}
    )


class PodBuilder(ObjectBuilder):
    """A pod in the making; see `pod`."""

    __slots__ = ("_container",)

    def __init__(self, body: Json) -> None:
        super().__init__(body)
        self._container = ("containers", 0)

    def build(self) -> Pod:
        """The pod as ksched knows it."""
        return msgspec.convert(self._body, Pod)

    # -- containers

    def container(self, name: str, **fields: Any) -> Self:
        """Add a container and speak of it from now on."""
        return self._with_container("containers", {"name": name, **fields})

    def init_container(self, name: str, **fields: Any) -> Self:
        """Add an init container and speak of it from now on."""
        return self._with_container("initContainers", {"name": name, **fields})

    def sidecar(self, name: str, **fields: Any) -> Self:
        """Add an init container that keeps running, and speak of it from now on."""
        return self.init_container(name, restartPolicy="Always", **fields)

    def request(self, amounts: Mapping[str, QuantityText] | None = None, /, **more: QuantityText) -> Self:
        """What the container asks for: `request(cpu="500m", memory="1Gi")`, `request({"example.com/gpu": 1})`."""
        return self._with_resources("requests", resources(amounts, more))

    def limit(self, amounts: Mapping[str, QuantityText] | None = None, /, **more: QuantityText) -> Self:
        """What the container may use at most. Unlike an API server this sets no requests."""
        return self._with_resources("limits", resources(amounts, more))

    def image(self, name: str) -> Self:
        """The container's image."""
        twin = self._copy()
        twin._current["image"] = name
        return twin

    def port(self, host_port: int, *, protocol: str = "TCP", host_ip: str = "") -> Self:
        """Take a port of the host for the container."""
        twin = self._copy()
        wanted = {"containerPort": host_port, "hostPort": host_port, "protocol": protocol}
        twin._current.setdefault("ports", []).append(wanted | ({"hostIP": host_ip} if host_ip else {}))
        return twin

    # -- the whole pod

    def pod_request(self, amounts: Mapping[str, QuantityText] | None = None, /, **more: QuantityText) -> Self:
        """Requests of the pod as a whole (`spec.resources`)."""
        return self._merged("spec.resources.requests", resources(amounts, more))

    def overhead(self, amounts: Mapping[str, QuantityText] | None = None, /, **more: QuantityText) -> Self:
        """What running the pod takes on top of its containers."""
        return self._merged("spec.overhead", resources(amounts, more))

    def priority(self, priority: int) -> Self:
        """The pod's priority."""
        return self.spec(priority=priority)

    def scheduler(self, name: str) -> Self:
        """The scheduler that is to place the pod."""
        return self.spec(schedulerName=name)

    def gate(self, *names: str) -> Self:
        """Add scheduling gates."""
        return self._appended("spec.schedulingGates", *({"name": name} for name in names))

    def volume(self, name: str, **source: Any) -> Self:
        """Add a volume: `volume("data", persistentVolumeClaim={"claimName": "data"})`."""
        return self._appended("spec.volumes", {"name": name, **source})

    def owner(self, kind: str, name: str, api_version: str = "apps/v1") -> Self:
        """Let the pod be controlled by an object."""
        reference = {
            "apiVersion": api_version,
            "kind": kind,
            "name": name,
            "uid": f"uid-{kind}-{name}",
            "controller": True,
        }
        return self._appended("metadata.ownerReferences", reference)

    # -- where it may go

    def tolerate(self, key: str = "", value: str | None = None, *, effect: str = "", operator: str = "") -> Self:
        """Accept taints: `tolerate("gpu")` whatever the value, `tolerate("gpu", "a100")` this one, `tolerate()` all."""
        toleration = {"operator": operator or ("Exists" if value is None else "Equal"), "key": key, "effect": effect}
        if value is not None:
            toleration["value"] = value
        return self._appended("spec.tolerations", {name: text for name, text in toleration.items() if text})

    def node_selector(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Only nodes with these labels."""
        return self._merged("spec.nodeSelector", {**(labels or {}), **more})

    def require_node(self, *expressions: Expression, fields: tuple[Expression, ...] = ()) -> Self:
        """Only nodes that meet all these requirements; of several calls one must be met.

        >>> web = pod("web").require_node(("zone", "In", "a", "b"), ("disk", "Exists"))
        >>> web.build().spec.affinity.node_affinity.required.node_selector_terms[0].match_expressions[0].values
        ['a', 'b']
        """
        return self._appended(_REQUIRED_TERMS, _term(expressions, fields))

    def prefer_node(self, weight: int, *expressions: Expression) -> Self:
        """Rather nodes that meet all these requirements."""
        return self._appended(_PREFERRED_TERMS, {"weight": weight, "preference": _term(expressions, ())})

    def on(self, node_name: str) -> Self:
        """The pod runs on this node."""
        return self.spec(nodeName=node_name)

    def nominated(self, node_name: str) -> Self:
        """Preemption has made, or is making, room for the pod on this node."""
        return self.status(nominatedNodeName=node_name)

    # -- how

    @property
    def _current(self) -> Json:
        kind, index = self._container
        container: Json = self._body["spec"][kind][index]
        return container

    def _copy(self) -> Self:
        twin = super()._copy()
        twin._container = self._container
        return twin

    def _with_container(self, kind: str, container: Json) -> Self:
        twin = self._appended(f"spec.{kind}", container)
        twin._container = (kind, len(twin._body["spec"][kind]) - 1)
        return twin

    def _with_resources(self, kind: str, amounts: Mapping[str, QuantityText]) -> Self:
        twin = self._copy()
        twin._current.setdefault("resources", {}).setdefault(kind, {}).update(amounts)
        return twin


def _term(expressions: tuple[Expression, ...], fields: tuple[Expression, ...]) -> Json:
    term: Json = {}
    if expressions:
        term["matchExpressions"] = [requirement(expression) for expression in expressions]
    if fields:
        term["matchFields"] = [requirement(field) for field in fields]
    return term
