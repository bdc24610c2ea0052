"""Defaults, first statuses and checks of the kinds other than pods, one function per kind.

Only what schedulers, kubectl and the controllers of `controllers.py` look at. `DEFAULTS` finds the function of
a kind; one that is not there has none.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from ksched.sandbox.pod_defaults import default_pod_spec
from ksched.sandbox.pod_validation import check_label_selector, check_pod_spec
from ksched.sandbox.validation import Findings, check_labels, label_key_fault, quantity

Json = dict[str, Any]

_TAINT_EFFECTS: Final = frozenset({"NoSchedule", "PreferNoSchedule", "NoExecute"})
_SERVICE_TYPES: Final = frozenset({"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"})
_JOB_RESTART_POLICIES: Final = frozenset({"OnFailure", "Never"})
_SYSTEM_PRIORITY: Final = 1_000_000_000
_SYSTEM_PREFIX: Final = "system-"
_SYSTEM_CLASSES: Final = frozenset({"system-cluster-critical", "system-node-critical"})
# The range that kubeadm clusters give to services, without the network's own and the API server's address.
_SERVICE_NETWORK: Final = (10, 96)
_NODE_PORTS: Final = range(30000, 32768)


def default_node(node: Json, findings: Findings, rng: random.Random) -> None:
    """Allocatable is what the node has, unless it says otherwise."""
    spec = node.setdefault("spec", {})
    status = node.setdefault("status", {})
    if status.get("allocatable") is None and status.get("capacity") is not None:
        status["allocatable"] = dict(status["capacity"])
    for field in ("capacity", "allocatable"):
        for name, amount in (status.get(field) or {}).items():
            if quantity(str(amount), "Node").sign < 0:
                findings.invalid(f"status.{field}[{name}]", str(amount), "must be greater than or equal to 0")
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(spec.get("taints") or ()):
        key, effect = taint.get("key") or "", taint.get("effect")
        fault = label_key_fault(key)
        if fault:
            findings.invalid(f"spec.taints[{index}].key", key, fault)
        if not effect:
            findings.required(f"spec.taints[{index}].effect")
        elif effect not in _TAINT_EFFECTS:
            findings.unsupported(f"spec.taints[{index}].effect", effect, _TAINT_EFFECTS)
        if (key, effect) in seen:
            findings.duplicate(f"spec.taints[{index}]", taint)
        seen.add((key, str(effect)))


def default_namespace(namespace: Json, findings: Findings, rng: random.Random) -> None:
    """Active, with its name as a label, and a finalizer that a deletion waits for."""
    labels = namespace["metadata"].get("labels") or {}
    namespace["metadata"]["labels"] = {**labels, "kubernetes.io/metadata.name": namespace["metadata"]["name"]}
    namespace.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    namespace.setdefault("status", {}).setdefault("phase", "Active")


def default_deployment(deployment: Json, findings: Findings, rng: random.Random) -> None:
    """One replica, rolled out a quarter at a time."""
    spec = deployment["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    strategy = spec.setdefault("strategy", {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    elif strategy["type"] != "Recreate":
        findings.unsupported("spec.strategy.type", strategy["type"], ("Recreate", "RollingUpdate"))
    elif "rollingUpdate" in strategy:
        findings.forbidden("spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'")
    _default_workload(deployment, findings)


def default_replica_set(replica_set: Json, findings: Findings, rng: random.Random) -> None:
    """One replica."""
    replica_set["spec"].setdefault("replicas", 1)
    _default_workload(replica_set, findings)


def default_stateful_set(stateful_set: Json, findings: Findings, rng: random.Random) -> None:
    """One replica, started and replaced in order."""
    spec = stateful_set["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}})
    spec.setdefault("persistentVolumeClaimRetentionPolicy", {"whenDeleted": "Retain", "whenScaled": "Retain"})
    for template in spec.get("volumeClaimTemplates") or ():
        template.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    _default_workload(stateful_set, findings)


def default_daemon_set(daemon_set: Json, findings: Findings, rng: random.Random) -> None:
    """Replaced one node at a time."""
    spec = daemon_set["spec"]
    spec.setdefault("revisionHistoryLimit", 10)
    rolling = {"maxUnavailable": 1, "maxSurge": 0}
    spec.setdefault("updateStrategy", {"type": "RollingUpdate", "rollingUpdate": rolling})
    _default_workload(daemon_set, findings)


def default_job(job: Json, findings: Findings, rng: random.Random) -> None:
    """One completion, with a selector made from the job's uid."""
    spec = job["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "TerminatingOrFailed")
    uid = job["metadata"]["uid"]
    if not spec["manualSelector"]:
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
        metadata = spec["template"].setdefault("metadata", {})
        own = {"controller-uid": uid, "job-name": job["metadata"]["name"]}
        prefixed = {f"batch.kubernetes.io/{key}": value for key, value in own.items()}
        metadata["labels"] = {**(metadata.get("labels") or {}), **own, **prefixed}
    policy = spec["template"].get("spec", {}).get("restartPolicy")
    if not policy:
        findings.required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy not in _JOB_RESTART_POLICIES:
        findings.unsupported("spec.template.spec.restartPolicy", policy, _JOB_RESTART_POLICIES)
    _default_template(spec, findings)


def default_replication_controller(controller: Json, findings: Findings, rng: random.Random) -> None:
    """One replica; the selector is the template's labels unless it is given."""
    spec = controller["spec"]
    spec.setdefault("replicas", 1)
    if not spec.get("selector"):
        spec["selector"] = dict((spec.get("template") or {}).get("metadata", {}).get("labels") or {})
    if spec.get("template"):
        _default_template(spec, findings)


def _default_workload(workload: Json, findings: Findings) -> None:
    """The template's defaults, and the rule that a workload selects the pods that it makes."""
    spec = workload["spec"]
    replicas = spec.get("replicas", 0)
    if replicas < 0:
        findings.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
    selector = spec.get("selector")
    if not selector:
        findings.required("spec.selector")
    elif not selector.get("matchLabels") and not selector.get("matchExpressions"):
        findings.invalid("spec.selector", selector, "empty selector is invalid for deployment")
    else:
        check_label_selector(findings, selector, "spec.selector")
    _default_template(spec, findings)
    labels = (spec.get("template") or {}).get("metadata", {}).get("labels") or {}
    wanted = (selector or {}).get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        findings.invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")


def _default_template(spec: Json, findings: Findings) -> None:
    template = spec.setdefault("template", {})
    metadata = template.setdefault("metadata", {})
    check_labels(findings, metadata.get("labels") or {}, "spec.template.labels")
    pod_spec = template.setdefault("spec", {})
    default_pod_spec(pod_spec)
    check_pod_spec(findings, pod_spec, "spec.template.spec", template=True)


def default_service(service: Json, findings: Findings, rng: random.Random) -> None:
    """A cluster address of its own, and complete ports."""
    spec = service.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    if spec["type"] not in _SERVICE_TYPES:
        findings.unsupported("spec.type", spec["type"], _SERVICE_TYPES)
        return
    if spec["type"] != "ExternalName":
        if not spec.get("clusterIP"):
            spec["clusterIP"] = _cluster_address(rng)
        spec.setdefault("clusterIPs", [spec["clusterIP"]])
        spec.setdefault("ipFamilies", ["IPv4"])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("internalTrafficPolicy", "Cluster")
    exposed = spec["type"] in {"NodePort", "LoadBalancer"}
    if exposed:
        spec.setdefault("externalTrafficPolicy", "Cluster")
    portless = spec["type"] == "ExternalName" or spec.get("clusterIP") == "None"
    if not spec.get("ports") and not portless:
        findings.required("spec.ports")
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        port.setdefault("targetPort", port.get("port"))
        if exposed and not port.get("nodePort"):
            port["nodePort"] = rng.choice(_NODE_PORTS)
    service.setdefault("status", {}).setdefault("loadBalancer", {})


def _cluster_address(rng: random.Random) -> str:
    host = rng.randrange(256, 1 << 16)
    return ".".join(map(str, (*_SERVICE_NETWORK, host >> 8, host & 255)))


def default_claim(claim: Json, findings: Findings, rng: random.Random) -> None:
    """A file system, waiting for a volume."""
    spec = claim["spec"]
    spec.setdefault("volumeMode", "Filesystem")
    claim.setdefault("status", {}).setdefault("phase", "Pending")
    if not spec.get("accessModes"):
        findings.required("spec.accessModes", "at least 1 access mode is required")
    if "storage" not in ((spec.get("resources") or {}).get("requests") or {}):
        findings.required("spec.resources[storage]")


def default_volume(volume: Json, findings: Findings, rng: random.Random) -> None:
    """A file system that is kept when its claim goes."""
    spec = volume["spec"]
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    volume.setdefault("status", {}).setdefault("phase", "Pending")


def default_storage_class(storage_class: Json, findings: Findings, rng: random.Random) -> None:
    """Volumes are bound at once and deleted with their claims."""
    storage_class.setdefault("reclaimPolicy", "Delete")
    storage_class.setdefault("volumeBindingMode", "Immediate")
    if not storage_class.get("provisioner"):
        findings.required("provisioner")


def default_csi_driver(driver: Json, findings: Findings, rng: random.Random) -> None:
    """What a driver that says nothing is taken for; volume limits depend on `attachRequired`."""
    spec = driver.setdefault("spec", {})
    defaults: Json = {
        "attachRequired": True,
        "podInfoOnMount": False,
        "storageCapacity": False,
        "requiresRepublish": False,
        "seLinuxMount": False,
        "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "volumeLifecycleModes": ["Persistent"],
    }
    for field, value in defaults.items():
        spec.setdefault(field, value)


def default_priority_class(priority_class: Json, findings: Findings, rng: random.Random) -> None:
    """Preempting, and below the system's own classes."""
    priority_class.setdefault("value", 0)
    priority_class.setdefault("preemptionPolicy", "PreemptLowerPriority")
    name, value = priority_class["metadata"]["name"], priority_class["value"]
    if name in _SYSTEM_CLASSES:
        return
    if name.startswith(_SYSTEM_PREFIX):
        why = "priority class names with 'system-' prefix are reserved for system use only"
        findings.forbidden("metadata.name", why)
    if value > _SYSTEM_PRIORITY:
        why = f"maximum allowed value of a user defined priority is {_SYSTEM_PRIORITY}"
        findings.forbidden("value", why)


def default_disruption_budget(budget: Json, findings: Findings, rng: random.Random) -> None:
    """Nothing may be disrupted until a controller has counted."""
    spec = budget.setdefault("spec", {})
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        findings.invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set")
    for field in ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods"):
        budget.setdefault("status", {}).setdefault(field, 0)


def default_resource_claim(claim: Json, findings: Findings, rng: random.Random) -> None:
    """A request is for one device unless it says how many."""
    _default_device_requests(claim["spec"])


def default_claim_template(template: Json, findings: Findings, rng: random.Random) -> None:
    """The claims of a template have the defaults of claims."""
    _default_device_requests(template["spec"]["spec"])


def _default_device_requests(spec: Json) -> None:
    for request in (spec.get("devices") or {}).get("requests") or ():
        for exact in [request.get("exactly"), *(request.get("firstAvailable") or ())]:
            if exact is None:
                continue
            exact.setdefault("allocationMode", "ExactCount")
            if exact["allocationMode"] == "ExactCount":
                exact.setdefault("count", 1)


def default_secret(secret: Json, findings: Findings, rng: random.Random) -> None:
    """An opaque secret."""
    secret.setdefault("type", "Opaque")


Defaulter = Callable[[Json, Findings, random.Random], None]

DEFAULTS: Final[dict[str, Defaulter]] = {
    "CSIDriver": default_csi_driver,
    "DaemonSet": default_daemon_set,
    "Deployment": default_deployment,
    "Job": default_job,
    "Namespace": default_namespace,
    "Node": default_node,
    "PersistentVolume": default_volume,
    "PersistentVolumeClaim": default_claim,
    "PodDisruptionBudget": default_disruption_budget,
    "PriorityClass": default_priority_class,
    "ReplicaSet": default_replica_set,
    "ReplicationController": default_replication_controller,
    "ResourceClaim": default_resource_claim,
    "ResourceClaimTemplate": default_claim_template,
    "Secret": default_secret,
    "Service": default_service,
    "StatefulSet": default_stateful_set,
    "StorageClass": default_storage_class,
}
