"""What is stored when an object is created, updated or bound, and what is refused."""

from __future__ import annotations

import copy
import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksched.errors import Refused
from ksched.sandbox.clock import Clock
from ksched.sandbox.defaults import bind, drop_nulls, prepare_create, prepare_update
from ksched.sandbox.ledger import Ledger
from ksched.sandbox.revisions import Revisions
from ksched.sandbox.verbs import Verbs

Json = dict[str, Any]

NOW = "2026-12-01T02:21:04Z"
LATER = "2026-12-01T03:00:00Z"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

CLASSES: dict[str, Json] = {
    "gold": {"metadata": {"name": "gold"}, "value": 1000, "preemptionPolicy": "Never"},
    "silver": {"metadata": {"name": "silver"}, "value": 10},
}


def lookup(kind: str, namespace: str, name: str) -> Json | None:
    return CLASSES.get(name) if kind == "PriorityClass" else None


def with_global_default(kind: str, namespace: str, name: str) -> Json | None:
    return lookup(kind, namespace, name or "silver")


def create(kind: str, obj: Json, find: Any = lookup) -> Json:
    return prepare_create(kind, copy.deepcopy(obj), find, NOW, rng=random.Random(1))


def pod(spec: Json | None = None, container: Json | None = None, **metadata: Any) -> Json:
    containers = [{"name": "main", "image": "nginx:1.27", **(container or {})}]
    return {
        "metadata": {"name": "web", "namespace": "default", **metadata},
        "spec": {"containers": containers, **(spec or {})},
    }


def stored_pod(spec: Json | None = None, **metadata: Any) -> Json:
    return create("Pod", pod(spec, **metadata))


def workload(spec: Json | None = None) -> Json:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": selector, "template": template, **(spec or {})},
    }


def at(obj: Any, path: str) -> Any:
    for step in path.split("."):
        obj = obj[int(step)] if isinstance(obj, list) else obj.get(step)
    return obj


# ---- create: pods

ANTI_AFFINITY = {
    "podAntiAffinity": {
        REQUIRED: [
            {
                "topologyKey": "zone",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "matchLabelKeys": ["version", "absent"],
                "mismatchLabelKeys": ["tenant"],
            },
            {"topologyKey": "zone", "matchLabelKeys": ["version"]},
        ]
    }
}
SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {},
    "matchLabelKeys": ["version"],
}


@pytest.mark.parametrize(
    ("obj", "path", "value"),
    [
        pytest.param(pod(), "spec.schedulerName", "default-scheduler", id="a pod has a scheduler"),
        pytest.param(pod(), "spec.restartPolicy", "Always", id="a pod restarts its containers"),
        pytest.param(pod(), "spec.terminationGracePeriodSeconds", 30, id="a pod has 30 s to end"),
        pytest.param(
            pod({"terminationGracePeriodSeconds": 0}),
            "spec.terminationGracePeriodSeconds",
            0,
            id="or none, if it says so",
        ),
        pytest.param(pod(), "spec.dnsPolicy", "ClusterFirst", id="a pod asks the cluster for names"),
        pytest.param(pod(), "spec.enableServiceLinks", True, id="a pod gets service links"),
        pytest.param(pod(), "spec.serviceAccountName", "default", id="a pod has a service account"),
        pytest.param(pod(), "spec.containers.0.imagePullPolicy", "IfNotPresent", id="a fixed tag is pulled once"),
        pytest.param(
            pod(container={"image": "reg:5000/a/b"}),
            "spec.containers.0.imagePullPolicy",
            "Always",
            id="no tag is pulled always",
        ),
        pytest.param(
            pod(container={"image": "a@sha256:1"}),
            "spec.containers.0.imagePullPolicy",
            "IfNotPresent",
            id="a digest is pulled once",
        ),
        pytest.param(
            pod(container={"image": "a:latest"}),
            "spec.containers.0.imagePullPolicy",
            "Always",
            id="latest is pulled always",
        ),
        pytest.param(
            pod(container={"ports": [{"containerPort": 80}]}),
            "spec.containers.0.ports.0.protocol",
            "TCP",
            id="ports are TCP",
        ),
        pytest.param(
            pod({"hostNetwork": True}, {"ports": [{"containerPort": 80}]}),
            "spec.containers.0.ports.0.hostPort",
            80,
            id="a host network pod has host ports",
        ),
        pytest.param(
            pod(container={"ports": [{"containerPort": 80}]}),
            "spec.containers.0.ports.0.hostPort",
            None,
            id="other pods do not",
        ),
        pytest.param(
            pod(container={"resources": {"limits": {"cpu": "2"}}}),
            "spec.containers.0.resources.requests",
            {"cpu": "2"},
            id="requests come from limits",
        ),
        pytest.param(
            pod(container={"resources": {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}}}),
            "spec.containers.0.resources.requests",
            {"cpu": "1", "memory": "1Gi"},
            id="resource by resource",
        ),
        pytest.param(
            pod({"resources": {"limits": {"cpu": "4"}}}, {"resources": {"requests": {"cpu": "1500m"}}}),
            "spec.resources.requests",
            {"cpu": "1500m"},
            id="pod-level requests are what the containers ask together",
        ),
        pytest.param(
            pod({"resources": {"limits": {"cpu": "4", "memory": "1Gi"}}}),
            "spec.resources.requests",
            {"cpu": "4", "memory": "1Gi"},
            id="and the pod-level limits where no container asks",
        ),
        pytest.param(pod(), "spec.priority", 0, id="a pod without a class has priority 0"),
        pytest.param(pod({"priorityClassName": "gold"}), "spec.priority", 1000, id="a class gives the priority"),
        pytest.param(
            pod({"priorityClassName": "gold"}), "spec.preemptionPolicy", "Never", id="and the preemption policy"
        ),
        pytest.param(pod({"priority": 7}), "spec.priority", 7, id="a number without a class is kept"),
        pytest.param(
            pod({"priorityClassName": "system-node-critical"}),
            "spec.priority",
            2000001000,
            id="system classes always exist",
        ),
        pytest.param(pod(), "status.phase", "Pending", id="a new pod is pending"),
        pytest.param(
            pod() | {"status": {"phase": "Running"}}, "status.phase", "Pending", id="whatever the client says"
        ),
        pytest.param(pod(), "status.conditions", None, id="nobody has looked at it yet"),
        pytest.param(
            pod({"schedulingGates": [{"name": "quota"}]}),
            "status.conditions.0.reason",
            "SchedulingGated",
            id="a gated pod says so",
        ),
        pytest.param(pod(), "metadata.generation", 1, id="generations start at 1"),
        pytest.param(pod(), "metadata.creationTimestamp", NOW, id="a pod is created now"),
        pytest.param(pod({"nodeSelector": None}), "spec.nodeSelector", None, id="a null field was not written"),
        pytest.param(
            pod({"affinity": ANTI_AFFINITY}, labels={"version": "2", "tenant": "a"}),
            f"spec.affinity.podAntiAffinity.{REQUIRED}.0.labelSelector.matchExpressions",
            [
                {"key": "version", "operator": "In", "values": ["2"]},
                {"key": "tenant", "operator": "NotIn", "values": ["a"]},
            ],
            id="label keys of affinity terms become expressions",
        ),
        pytest.param(
            pod({"affinity": ANTI_AFFINITY}, labels={"version": "2"}),
            f"spec.affinity.podAntiAffinity.{REQUIRED}.1.labelSelector",
            None,
            id="a term without a selector stays without",
        ),
        pytest.param(
            pod({"topologySpreadConstraints": [SPREAD]}, labels={"version": "2"}),
            "spec.topologySpreadConstraints.0.labelSelector.matchExpressions",
            [{"key": "version", "operator": "In", "values": ["2"]}],
            id="so do those of spread constraints",
        ),
    ],
)
def test_new_pod(obj: Json, path: str, value: Any) -> None:
    assert at(create("Pod", obj), path) == value


@pytest.mark.parametrize(
    ("tolerations", "added"),
    [
        pytest.param([], [NOT_READY, UNREACHABLE], id="a pod stays 300 s on a node that is gone"),
        pytest.param([{"operator": "Exists"}], [], id="one that tolerates everything stays for ever"),
        pytest.param(
            [{"operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE], id="NoSchedule is not NoExecute"
        ),
        pytest.param([{"key": NOT_READY, "operator": "Exists"}], [UNREACHABLE], id="its own words stand"),
    ],
)
def test_tolerations_that_every_pod_gets(tolerations: list[Json], added: list[str]) -> None:
    found = create("Pod", pod({"tolerations": tolerations}))["spec"]["tolerations"]
    assert [toleration["key"] for toleration in found[len(tolerations) :]] == added
    assert all(toleration["tolerationSeconds"] == 300 for toleration in found[len(tolerations) :])


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        pytest.param({}, "BestEffort", id="who asks for nothing is best effort"),
        pytest.param({"requests": {"cpu": "0"}}, "BestEffort", id="zero is nothing"),
        pytest.param(
            {"requests": {"example.com/gpu": 1}, "limits": {"example.com/gpu": 1}},
            "BestEffort",
            id="devices do not count",
        ),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="requests make burstable"),
        pytest.param({"limits": {"cpu": "1"}}, "Burstable", id="a limit of one resource as well"),
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="both limits guarantee"),
        pytest.param(
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}},
            "Guaranteed",
            id="amounts are compared, not texts",
        ),
        pytest.param(
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}},
            "Burstable",
            id="less than the limit",
        ),
    ],
)
def test_quality_of_service(resources: Json, quality: str) -> None:
    assert create("Pod", pod(container={"resources": resources}))["status"]["qosClass"] == quality


def test_a_global_default_class_is_for_pods_without_a_class() -> None:
    spec = create("Pod", pod(), with_global_default)["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (10, "silver")


def test_of_several_global_defaults_the_lowest_counts() -> None:
    clock = Clock(lambda: 0, lambda: 0)
    verbs = Verbs(Revisions(), clock, Ledger(clock))
    verbs.create("Namespace", "", {"metadata": {"name": "default"}})
    for name, value, is_default in (("low", 5, True), ("high", 50, True), ("lowest", 1, False)):
        verbs.create("PriorityClass", "", {"metadata": {"name": name}, "value": value, "globalDefault": is_default})
    spec = verbs.create("Pod", "default", pod()).decode()["spec"]
    assert (spec["priority"], spec["priorityClassName"]) == (5, "low")


def test_a_generated_name_has_five_letters_more() -> None:
    created = create("Pod", {"metadata": {"generateName": "web-" * 20}, "spec": pod()["spec"]})
    assert len(created["metadata"]["name"]) == 63
    other = prepare_create("Pod", {"metadata": {"generateName": "web-"}, "spec": pod()["spec"]}, lookup, NOW)
    assert other["metadata"]["name"].startswith("web-")
    assert len(other["metadata"]["name"]) == len("web-") + 5


def test_uids_differ_and_repeat_with_the_seed() -> None:
    assert stored_pod()["metadata"]["uid"] == stored_pod()["metadata"]["uid"]
    first, second = (prepare_create("Pod", pod(), lookup, NOW)["metadata"]["uid"] for _ in range(2))
    assert first != second
    assert [len(part) for part in first.split("-")] == [8, 4, 4, 4, 12]


# ---- create: other kinds


@pytest.mark.parametrize(
    ("kind", "obj", "path", "value"),
    [
        pytest.param(
            "Node",
            {"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "4"}}},
            "status.allocatable",
            {"cpu": "4"},
            id="allocatable is the capacity",
        ),
        pytest.param(
            "Node",
            {"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}},
            "status.allocatable",
            {"cpu": "3"},
            id="unless the node says otherwise",
        ),
        pytest.param("Namespace", {"metadata": {"name": "a"}}, "status.phase", "Active", id="a namespace is active"),
        pytest.param(
            "Namespace",
            {"metadata": {"name": "a"}},
            "metadata.labels",
            {"kubernetes.io/metadata.name": "a"},
            id="and carries its name as a label",
        ),
        pytest.param("Deployment", workload(), "spec.replicas", 1, id="a deployment has one replica"),
        pytest.param("Deployment", workload({"replicas": 0}), "spec.replicas", 0, id="or none"),
        pytest.param("Deployment", workload(), "spec.strategy.rollingUpdate.maxSurge", "25%", id="it rolls"),
        pytest.param(
            "Deployment", workload(), "spec.template.spec.restartPolicy", "Always", id="templates are defaulted"
        ),
        pytest.param(
            "Deployment", workload(), "spec.template.spec.tolerations", None, id="without what admission gives to pods"
        ),
        pytest.param("Deployment", workload(), "status", None, id="nothing is rolled out yet"),
        pytest.param("ReplicaSet", workload(), "spec.replicas", 1, id="a replica set has one replica"),
        pytest.param(
            "DaemonSet", workload(), "spec.updateStrategy.rollingUpdate.maxUnavailable", 1, id="daemons, one by one"
        ),
        pytest.param(
            "StatefulSet", workload(), "spec.podManagementPolicy", "OrderedReady", id="stateful sets in order"
        ),
        pytest.param(
            "Service",
            {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}},
            "spec.ports.0",
            {"port": 80, "protocol": "TCP", "targetPort": 80},
            id="ports of services",
        ),
        pytest.param(
            "Service",
            {"metadata": {"name": "a"}, "spec": {"clusterIP": "None"}},
            "spec.clusterIPs",
            ["None"],
            id="a headless service has no address",
        ),
        pytest.param(
            "PersistentVolumeClaim",
            {
                "metadata": {"name": "a"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            },
            "status.phase",
            "Pending",
            id="a claim waits",
        ),
        pytest.param(
            "StorageClass",
            {"metadata": {"name": "a"}, "provisioner": "example.com/disk"},
            "volumeBindingMode",
            "Immediate",
            id="volumes are bound at once",
        ),
        pytest.param("CSIDriver", {"metadata": {"name": "a"}}, "spec.attachRequired", True, id="volumes are attached"),
        pytest.param(
            "ResourceClaim",
            {"metadata": {"name": "a"}, "spec": {"devices": {"requests": [{"name": "r", "exactly": {}}]}}},
            "spec.devices.requests.0.exactly",
            {"allocationMode": "ExactCount", "count": 1},
            id="a device request is for one",
        ),
    ],
)
def test_new_object(kind: str, obj: Json, path: str, value: Any) -> None:
    assert at(create(kind, obj), path) == value


def test_a_job_selects_the_pods_that_it_makes() -> None:
    job = workload()
    del job["spec"]["selector"]
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    created = create("Job", job)
    uid = created["metadata"]["uid"]
    assert created["spec"]["selector"]["matchLabels"] == {"batch.kubernetes.io/controller-uid": uid}
    assert created["spec"]["template"]["metadata"]["labels"]["batch.kubernetes.io/controller-uid"] == uid


# ---- create: refusals


@pytest.mark.parametrize(
    ("kind", "obj", "code", "text"),
    [
        pytest.param(
            "Pod",
            pod(name="Bad_Name"),
            422,
            'Pod "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": a lowercase RFC 1123 subdomain',
            id="a name that is none",
        ),
        pytest.param(
            "Pod",
            {"metadata": {}, "spec": {}},
            422,
            "metadata.name: Required value: name or generateName is required",
            id="no name",
        ),
        pytest.param(
            "Pod", {"metadata": {"name": "a"}, "spec": {}}, 422, "spec.containers: Required value", id="no containers"
        ),
        pytest.param("Pod", {"metadata": {"name": "a"}}, 422, "spec.containers: Required value", id="no spec"),
        pytest.param(
            "Pod", pod(container={"image": ""}), 422, "spec.containers[0].image: Required value", id="no image"
        ),
        pytest.param(
            "Pod",
            pod({"initContainers": [{"name": "main", "image": "a"}]}),
            422,
            'spec.initContainers[0].name: Duplicate value: "main"',
            id="two containers of one name",
        ),
        pytest.param(
            "Pod",
            pod(container={"resources": {"requests": {"cpu": "lots"}}}),
            400,
            "cannot be handled as a Pod: quantities must match the regular expression",
            id="a quantity that is none",
        ),
        pytest.param(
            "Pod",
            pod(container={"resources": {"requests": {"cpu": "-1"}}}),
            422,
            'spec.containers[0].resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0',
            id="a negative request",
        ),
        pytest.param(
            "Pod",
            pod(container={"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
            422,
            'spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1',
            id="a request above its limit",
        ),
        pytest.param(
            "Pod",
            pod(container={"resources": {"requests": {"nvidia.com/gpu": "1"}}}),
            422,
            "spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources",
            id="a device without a limit",
        ),
        pytest.param(
            "Pod",
            pod(container={"resources": {"limits": {"nvidia.com/gpu": "500m"}}}),
            422,
            "must be an integer",
            id="half a device",
        ),
        pytest.param(
            "Pod",
            pod({"restartPolicy": "Sometimes"}),
            422,
            'spec.restartPolicy: Unsupported value: "Sometimes"',
            id="no such policy",
        ),
        pytest.param(
            "Pod", pod(labels={"app": "not good"}), 422, "metadata.labels: Invalid value", id="a label that is none"
        ),
        pytest.param(
            "Pod",
            pod({"tolerations": [{"operator": "Equal", "value": "x"}]}),
            422,
            "operator must be Exists when `key` is empty",
            id="a toleration of nothing",
        ),
        pytest.param(
            "Pod",
            pod({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": []}}}}),
            422,
            "nodeSelectorTerms: Required value: must have at least one node selector term",
            id="node affinity without terms",
        ),
        pytest.param(
            "Pod",
            pod({"schedulingGates": [{"name": "a"}], "nodeName": "n"}),
            422,
            "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
            id="a gated pod on a node",
        ),
        pytest.param(
            "Pod",
            pod({"priorityClassName": "none"}),
            403,
            'pods "web" is forbidden: no PriorityClass with name none was found',
            id="a class that does not exist",
        ),
        pytest.param(
            "Pod",
            pod({"priorityClassName": "gold", "priority": 5}),
            403,
            "the integer value of priority (5) must not be provided in pod spec",
            id="a number that contradicts the class",
        ),
        pytest.param(
            "Pod",
            pod({"containers": {"name": "a"}}),
            400,
            "cannot be handled as a Pod",
            id="a map where a list should be",
        ),
        pytest.param("Pod", pod(labels=["a"]), 400, "cannot be handled as a Pod", id="a list where a map should be"),
        pytest.param(
            "Deployment",
            {"metadata": {"name": "a"}, "spec": {"template": workload()["spec"]["template"]}},
            422,
            'Deployment.apps "a" is invalid: spec.selector: Required value',
            id="a deployment without a selector",
        ),
        pytest.param(
            "Deployment",
            workload({"selector": {"matchLabels": {"app": "other"}}}),
            422,
            "`selector` does not match template `labels`",
            id="a deployment that does not select its pods",
        ),
        pytest.param(
            "Node",
            {"metadata": {"name": "a"}, "spec": {"taints": [{"key": "a", "effect": "Never"}]}},
            422,
            'spec.taints[0].effect: Unsupported value: "Never"',
            id="a taint without a known effect",
        ),
        pytest.param(
            "PriorityClass",
            {"metadata": {"name": "a"}, "value": 1000000001},
            422,
            "value: Forbidden: maximum allowed value of a user defined priority is 1000000000",
            id="a priority above the system's",
        ),
        pytest.param(
            "Service", {"metadata": {"name": "a"}}, 422, "spec.ports: Required value", id="a service without ports"
        ),
        pytest.param(
            "Service",
            {"metadata": {"name": "1a"}},
            422,
            "a DNS-1035 label must consist",
            id="services have names of their own",
        ),
    ],
)
def test_refused(kind: str, obj: Json, code: int, text: str) -> None:
    with pytest.raises(Refused) as refused:
        create(kind, obj)
    assert refused.value.code == code
    assert text in refused.value.message


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(Refused) as refused:
        create("Pod", pod({"restartPolicy": "No", "dnsPolicy": "No"}))
    assert [cause["field"] for cause in refused.value.causes] == ["spec.restartPolicy", "spec.dnsPolicy"]
    assert refused.value.reason == "Invalid"
    assert refused.value.details == {"name": "web", "group": "", "kind": "Pod"}


RICH = pod(
    {
        "affinity": ANTI_AFFINITY,
        "topologySpreadConstraints": [SPREAD],
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoSchedule"}],
        "schedulingGates": [{"name": "a"}],
        "initContainers": [{"name": "init", "image": "a", "resources": {"requests": {"cpu": 1}}}],
        "resources": {"limits": {"cpu": "3"}},
        "volumes": [{"name": "a"}],
        "nodeSelector": {"a": "b"},
    },
    {"ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}},
    labels={"a": "b"},
)
TAINTED = {
    "metadata": {"name": "a"},
    "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
    "status": {"capacity": {"cpu": "1"}},
}
ODD = st.sampled_from([None, True, -1, 1.5, "", "a b", [], [1], ["x"], [None], {}, {"": {}}, [[]], [{}]])


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every field and entry of an object."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for step, inner in steps for place in [(*way, step), *places(inner, (*way, step))]]


@settings(max_examples=300)
@given(st.sampled_from([("Pod", RICH), ("Node", TAINTED), ("Deployment", workload())]), ODD, st.data())
def test_whatever_its_shape_an_object_is_stored_or_refused(
    which: tuple[str, Json], odd: Any, data: st.DataObject
) -> None:
    kind, obj = which[0], copy.deepcopy(which[1])
    old = create(kind, which[1])
    *way, last = data.draw(st.sampled_from(places(obj)))
    for make in (lambda: create(kind, obj), lambda: prepare_update(kind, old, copy.deepcopy(obj), None, LATER)):
        holder = obj
        for step in way:
            holder = holder[step]
        holder[last] = copy.deepcopy(odd)
        with suppress(Refused):
            assert make()["metadata"]["uid"]


# ---- update


def changed(obj: Json, path: str, value: Any) -> Json:
    new = copy.deepcopy(obj)
    target = new
    *way, last = path.split(".")
    for step in way:
        target = target[int(step)] if isinstance(target, list) else target.setdefault(step, {})
    if value is None:
        del target[last]
    else:
        target[last] = value
    return new


@pytest.mark.parametrize(
    ("path", "value", "generation"),
    [
        pytest.param("metadata.labels", {"a": "b"}, 1, id="labels may change"),
        pytest.param("spec.containers.0.image", "nginx:2", 2, id="images may change, which is a new generation"),
        pytest.param("spec.tolerations", None, 1, id="tolerations of admission come back"),
        pytest.param("spec.priority", None, 1, id="so does the priority"),
        pytest.param("status.phase", "Running", 1, id="a status is not taken"),
        pytest.param("metadata.creationTimestamp", LATER, 1, id="times of the server stay"),
    ],
)
def test_update_of_a_pod(path: str, value: Any, generation: int) -> None:
    old = stored_pod()
    if path == "spec.tolerations":
        new = changed(old, "spec.tolerations", old["spec"]["tolerations"] + [{"key": "x", "operator": "Exists"}])
        generation = 2
    else:
        new = changed(old, path, value)
    before = copy.deepcopy(old)
    updated = prepare_update("Pod", old, new, None, LATER)
    assert old == before
    assert updated["metadata"]["generation"] == generation
    assert updated["metadata"]["creationTimestamp"] == NOW
    assert updated["status"] == old["status"]
    assert updated["spec"]["priority"] == 0


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        pytest.param(
            "spec.nodeName", "a", "pod updates may not change fields other than", id="only a binding sets the node"
        ),
        pytest.param("spec.nodeSelector", {"a": "b"}, "pod updates may not change", id="a pod without gates is frozen"),
        pytest.param(
            "spec.containers.0.resources",
            {"requests": {"cpu": "1"}},
            "pod updates may not",
            id="resources have a way of their own",
        ),
        pytest.param(
            "spec.tolerations", [], "existing toleration can not be modified", id="tolerations are only added"
        ),
        pytest.param(
            "spec.schedulingGates", [{"name": "x"}], "only deletion is allowed", id="gates are only taken away"
        ),
        pytest.param(
            "metadata.uid", "other", "Precondition failed: UID in precondition: other", id="another pod of the name"
        ),
    ],
)
def test_refused_update_of_a_pod(path: str, value: Any, text: str) -> None:
    old = stored_pod()
    with pytest.raises(Refused) as refused:
        prepare_update("Pod", old, changed(old, path, value), None, LATER)
    assert text in refused.value.message


@pytest.mark.parametrize(
    ("before", "after", "accepted"),
    [
        pytest.param({}, {"schedulingGates": []}, True, id="a gate goes"),
        pytest.param(
            {"nodeSelector": {"a": "b"}}, {"nodeSelector": {"a": "b", "c": "d"}}, True, id="a selector gets narrower"
        ),
        pytest.param(
            {"nodeSelector": {"a": "b"}}, {"nodeSelector": {"c": "d"}}, False, id="a selector may not get wider"
        ),
        pytest.param(
            {},
            {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": []}]}}}},
            True,
            id="affinity may be added",
        ),
        pytest.param({}, {"affinity": ANTI_AFFINITY}, False, id="but not pod affinity"),
    ],
)
def test_a_gated_pod_may_ask_for_fewer_nodes(before: Json, after: Json, accepted: bool) -> None:
    old = stored_pod({"schedulingGates": [{"name": "quota"}], **before})
    new = copy.deepcopy(old)
    new["spec"].update(copy.deepcopy(after))
    if accepted:
        assert prepare_update("Pod", old, new, None, LATER)["spec"] == new["spec"]
    else:
        with pytest.raises(Refused) as refused:
            prepare_update("Pod", old, new, None, LATER)
        assert refused.value.code == 422


def test_a_status_update_keeps_the_spec() -> None:
    old = stored_pod()
    new = changed(changed(old, "spec.nodeName", "a"), "status", {"phase": "Running"})
    updated = prepare_update("Pod", old, new, "status", LATER)
    assert updated["spec"] == old["spec"]
    assert updated["status"] == {"phase": "Running", "qosClass": "BestEffort"}
    assert updated["metadata"]["generation"] == 1


def test_a_resize_changes_resources_and_nothing_else() -> None:
    old = stored_pod()
    resized = prepare_update(
        "Pod", old, changed(old, "spec.containers.0.resources", {"requests": {"cpu": "2"}}), "resize", LATER
    )
    assert resized["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert resized["metadata"]["generation"] == 2
    with pytest.raises(Refused, match="only cpu and memory resources are mutable"):
        prepare_update("Pod", old, changed(old, "spec.containers.0.image", "other"), "resize", LATER)


@pytest.mark.parametrize(
    ("kind", "obj", "path", "value", "generation"),
    [
        pytest.param("Deployment", workload(), "spec.replicas", 3, 2, id="a scale is a new generation"),
        pytest.param(
            "Deployment", workload(), "metadata.annotations", {"a": "b"}, 2, id="annotations of deployments too"
        ),
        pytest.param(
            "ReplicaSet", workload(), "metadata.annotations", {"a": "b"}, 1, id="but not those of replica sets"
        ),
        pytest.param(
            "Node", {"metadata": {"name": "a"}}, "spec.unschedulable", True, None, id="nodes have no generation"
        ),
    ],
)
def test_generation(kind: str, obj: Json, path: str, value: Any, generation: int | None) -> None:
    old = create(kind, obj)
    updated = prepare_update(kind, old, changed(old, path, value), None, LATER)
    assert updated["metadata"].get("generation") == generation


@pytest.mark.parametrize(
    ("kind", "obj", "path", "value"),
    [
        pytest.param(
            "Deployment", workload(), "spec.selector", {"matchLabels": {"app": "x"}}, id="a deployment's selector"
        ),
        pytest.param("PriorityClass", {"metadata": {"name": "a"}, "value": 1}, "value", 2, id="a priority"),
        pytest.param(
            "StorageClass", {"metadata": {"name": "a"}, "provisioner": "p"}, "provisioner", "q", id="a provisioner"
        ),
        pytest.param(
            "ConfigMap",
            {"metadata": {"name": "a"}, "immutable": True, "data": {}},
            "data",
            {"a": "b"},
            id="sealed data",
        ),
    ],
)
def test_immutable(kind: str, obj: Json, path: str, value: Any) -> None:
    old = create(kind, obj)
    with pytest.raises(Refused) as refused:
        prepare_update(kind, old, changed(old, path, value), None, LATER)
    assert "immutable" in refused.value.message


def test_a_service_keeps_its_address() -> None:
    old = create("Service", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 80}]}})
    new = {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 81}]}}
    assert prepare_update("Service", old, new, None, LATER)["spec"]["clusterIP"] == old["spec"]["clusterIP"]


# ---- bind

NODE = {"metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "z", "kubernetes.io/arch": "amd64"}}}


def binding(**metadata: Any) -> Json:
    return {"metadata": {"name": "web", **metadata}, "target": {"kind": "Node", "name": "n"}}


def test_a_bound_pod_is_on_its_node_and_takes_the_zone() -> None:
    old = stored_pod({"schedulingGates": []}, labels={"app": "web"})
    old["status"]["nominatedNodeName"] = "n"
    old["status"]["conditions"] = [
        {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": NOW}
    ]
    before = copy.deepcopy(old)
    bound = bind(old, NODE, binding(uid=old["metadata"]["uid"], annotations={"a": "b"}), LATER)
    assert old == before
    assert bound["spec"]["nodeName"] == "n"
    assert bound["metadata"]["labels"] == {"app": "web", "topology.kubernetes.io/zone": "z"}
    assert bound["metadata"]["annotations"] == {"a": "b"}
    assert "nominatedNodeName" not in bound["status"]
    assert bound["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": LATER,
            "observedGeneration": 1,
        }
    ]


def test_a_pod_keeps_a_zone_of_its_own() -> None:
    old = stored_pod(labels={"topology.kubernetes.io/zone": "mine"})
    assert bind(old, NODE, binding(), LATER)["metadata"]["labels"] == {"topology.kubernetes.io/zone": "mine"}


@pytest.mark.parametrize(
    ("path", "value", "asked", "text"),
    [
        pytest.param(
            "spec.nodeName", "m", {}, 'on pods/binding "web": pod web is already assigned to node "m"', id="a bound pod"
        ),
        pytest.param("metadata.deletionTimestamp", NOW, {}, "pod web is being deleted", id="a pod that is leaving"),
        pytest.param("spec.schedulingGates", [{"name": "a"}], {}, "non-empty .spec.schedulingGates", id="a gated pod"),
        pytest.param(
            "metadata.labels", {}, {"uid": "other"}, "UID in precondition: other", id="another pod of the name"
        ),
    ],
)
def test_refused_binding(path: str, value: Any, asked: Json, text: str) -> None:
    with pytest.raises(Refused) as refused:
        bind(changed(stored_pod(), path, value), NODE, binding(**asked), LATER)
    assert (refused.value.code, refused.value.reason) == (409, "Conflict")
    assert text in refused.value.message


def test_a_binding_names_a_node() -> None:
    with pytest.raises(Refused, match=r"target\.name: Required value"):
        bind(stored_pod(), NODE, {"metadata": {"name": "web"}, "target": {}}, LATER)


def test_nulls_are_dropped_at_every_depth() -> None:
    obj = {"a": None, "b": {"c": None, "d": [{"e": None, "f": 1}, None]}}
    drop_nulls(obj)
    assert obj == {"b": {"d": [{"f": 1}, None]}}
