"""What is refused at create, in the API server's words, for pods and the other kinds."""

from __future__ import annotations

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ksched.errors import Refused
from ksched.sandbox.defaults import prepare_update

from .samples import (
    ANTI_AFFINITY,
    LATER,
    REQUIRED,
    SPREAD,
    create,
    pod,
    workload,
)

Json = dict[str, Any]


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
