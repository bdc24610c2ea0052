"""Requests of pods: what is added up, what is replaced, and that both ways of adding agree."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.errors import QuantityError
from ksched.model.pod import Pod
from ksched.model.requests import (
    NON_ZERO_DEFAULTS,
    TO_SCORE,
    RequestOptions,
    RequestRules,
    balance_requests,
    counted_requests,
    fit_requests,
    pod_limits,
    pod_requests,
    requested,
    to_balance,
    to_count,
    to_fit,
)

RULES = RequestRules()
MEBI = 1024 * 1024
DEFAULT_MEMORY = 200 * MEBI


def made(
    *containers: dict[str, Any],
    init: tuple[dict[str, Any], ...] = (),
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> Pod:
    """A pod of `containers`, named c0, c1, ... and i0, i1, ..., with further fields of its spec."""
    named = [{"name": f"c{index}", **container} for index, container in enumerate(containers)]
    starting = [{"name": f"i{index}", **container} for index, container in enumerate(init)]
    written = {"metadata": {"name": "pod", "namespace": "default"}, "status": status or {}}
    return msgspec.convert({**written, "spec": {"containers": named, "initContainers": starting, **spec}}, Pod)


def asks(**requests: str | int) -> dict[str, Any]:
    return {"resources": {"requests": requests}}


def sidecar(**requests: str | int) -> dict[str, Any]:
    return {**asks(**requests), "restartPolicy": "Always"}


def given_to(name: str, allocated: dict[str, str], actual: dict[str, str]) -> dict[str, Any]:
    return {"name": name, "allocatedResources": allocated, "resources": {"requests": actual}}


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


@pytest.mark.parametrize(
    ("pod", "milli_cpu"),
    [
        pytest.param(made(), 0, id="a pod without containers needs nothing"),
        pytest.param(made({}), 0, id="nor does a container without requests"),
        pytest.param(made(asks(cpu="250m")), 250, id="one container"),
        pytest.param(made(asks(cpu="1"), asks(cpu="250m")), 1250, id="containers add up"),
        pytest.param(made(asks(cpu="0.4m"), asks(cpu="0.4m")), 1, id="fractions add up before they are rounded"),
        pytest.param(made(asks(cpu=2)), 2000, id="numbers count like text"),
        pytest.param(made(asks(cpu="1"), init=(asks(cpu="3"),)), 3000, id="a large init container counts alone"),
        pytest.param(made(asks(cpu="1"), init=(asks(cpu="500m"),)), 1000, id="a small one does not"),
        pytest.param(made(asks(cpu="1"), init=(sidecar(cpu="500m"),)), 1500, id="a sidecar adds to the containers"),
        pytest.param(
            made(asks(cpu="1"), init=(sidecar(cpu="500m"), asks(cpu="2"), sidecar(cpu="300m"))),
            2500,
            id="an init container runs with the sidecars before it, not with those after",
        ),
        pytest.param(made(asks(cpu="1"), overhead={"cpu": "100m"}), 1100, id="overhead is added"),
        pytest.param(made(asks(cpu="1"), resources={"requests": {"cpu": "3"}}), 3000, id="pod-level requests replace"),
        pytest.param(
            made(asks(cpu="1"), resources={"requests": {"cpu": "500m"}}, overhead={"cpu": "100m"}),
            600,
            id="even by less, and before overhead",
        ),
        pytest.param(made(asks(cpu="1"), resources={"limits": {"cpu": "3"}}), 1000, id="pod-level limits do not"),
        pytest.param(
            made(asks(cpu="1"), status={"containerStatuses": [given_to("c0", {"cpu": "2"}, {"cpu": "3"})]}),
            1000,
            id="a waiting pod's status does not count",
        ),
        pytest.param(made(asks(cpu="-1")), 0, id="nothing is negative"),
        pytest.param(made(asks(cpu="16Ei")), 0, id="what overflows to a negative number is nothing"),
    ],
)
def test_what_must_fit(pod: Pod, milli_cpu: int) -> None:
    assert fit_requests(pod, RULES).milli_cpu == milli_cpu


def test_amounts_by_kind_of_resource() -> None:
    requests = {
        "cpu": "1",
        "memory": "100.5",
        "ephemeral-storage": "1Ki",
        "example.com/gpu": "2",
        "example.com/none": "0",
        "hugepages-2Mi": "4Mi",
        "storage": "1Gi",
        "pods": "1",
    }
    amounts = fit_requests(made(asks(**requests)), RULES)
    assert (amounts.milli_cpu, amounts.memory, amounts.ephemeral_storage) == (1000, 101, 1024)
    assert amounts.scalars == {"example.com/gpu": 2, "example.com/none": 0, "hugepages-2Mi": 4 * MEBI}


def test_only_cpu_memory_and_huge_pages_may_be_given_for_a_pod_as_a_whole() -> None:
    pod_level = {"requests": {"memory": "1Gi", "hugepages-2Mi": "2Mi", "example.com/gpu": "8"}}
    pod = made(asks(**{"cpu": "1", "memory": "2Gi", "example.com/gpu": "1"}), resources=pod_level)
    assert requested(pod, to_fit(RULES)) == {
        "cpu": 1000,
        "memory": 1024 * MEBI,
        "hugepages-2Mi": 2 * MEBI,
        "example.com/gpu": 1,
    }
    gate_off = to_fit(RequestRules(pod_level_resources=False))
    assert requested(pod, gate_off) == {"cpu": 1000, "memory": 2048 * MEBI, "example.com/gpu": 1}


def resizing(*conditions: dict[str, str]) -> Pod:
    status = {"containerStatuses": [given_to("c0", {"cpu": "2"}, {"cpu": "3"})], "conditions": list(conditions)}
    return made(asks(cpu="4", memory="1Mi"), status=status)


@pytest.mark.parametrize(
    ("pod", "rules", "taken"),
    [
        pytest.param(resizing(), RULES, {"cpu": 4000, "memory": MEBI}, id="the largest of spec and status counts"),
        pytest.param(resizing(DEFERRED), RULES, {"cpu": 4000, "memory": MEBI}, id="also while a resize is deferred"),
        pytest.param(resizing(INFEASIBLE), RULES, {"cpu": 3000}, id="of an infeasible one only what the status has"),
        pytest.param(
            resizing(DEFERRED, INFEASIBLE),
            RULES,
            {"cpu": 4000, "memory": MEBI},
            id="the first such condition counts",
        ),
        pytest.param(
            resizing(INFEASIBLE),
            RequestRules(in_place_resize=False),
            {"cpu": 4000, "memory": MEBI},
            id="without the gate the spec alone counts",
        ),
        pytest.param(
            made(asks(cpu="1"), status={"containerStatuses": [{"name": "c0", "allocatedResources": {"cpu": "2"}}]}),
            RULES,
            {"cpu": 1000},
            id="a status without resources in effect does not count",
        ),
        pytest.param(
            made(
                asks(cpu="1"),
                init=(asks(cpu="2"), sidecar(cpu="1")),
                status={
                    "initContainerStatuses": [
                        given_to("i0", {"cpu": "9"}, {"cpu": "9"}),
                        given_to("i1", {"cpu": "3"}, {"cpu": "2"}),
                    ]
                },
            ),
            RULES,
            {"cpu": 4000},
            id="of init containers only sidecars are resized",
        ),
        pytest.param(
            made(
                asks(cpu="1"),
                resources={"requests": {"cpu": "2"}},
                status={"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "3"}},
            ),
            RULES,
            {"cpu": 5000},
            id="pod-level requests are resized too",
        ),
        pytest.param(
            made(
                asks(cpu="1"),
                resources={"requests": {"cpu": "2"}},
                status={"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "3"}},
            ),
            RequestRules(in_place_pod_level_resize=False),
            {"cpu": 2000},
            id="but not without their gate",
        ),
    ],
)
def test_what_a_pod_takes_from_its_node(pod: Pod, rules: RequestRules, taken: dict[str, int]) -> None:
    assert requested(pod, to_count(rules)) == taken
    counted = counted_requests(pod, rules).amounts
    assert (counted.milli_cpu, counted.memory) == (taken.get("cpu", 0), taken.get("memory", 0))


@pytest.mark.parametrize(
    ("pod", "rules", "non_zero"),
    [
        pytest.param(made(asks(cpu="1", memory="1Mi")), RULES, (1000, MEBI), id="what is written counts"),
        pytest.param(made(asks(cpu="0", memory="0")), RULES, (0, 0), id="a written zero is a zero"),
        pytest.param(made({}), RULES, (100, DEFAULT_MEMORY), id="defaults stand in for what is missing"),
        pytest.param(made({}, asks(cpu="1")), RULES, (1100, 2 * DEFAULT_MEMORY), id="container by container"),
        pytest.param(
            made(asks(cpu="1", memory="1Mi"), init=({},)), RULES, (1000, DEFAULT_MEMORY), id="init containers as well"
        ),
        pytest.param(made(), RULES, (0, 0), id="no containers, no defaults"),
        pytest.param(
            made({}, resources={"requests": {"cpu": "1"}}),
            RULES,
            (1000, DEFAULT_MEMORY),
            id="pod-level requests leave the default to what they do not give",
        ),
        pytest.param(
            made(asks(memory="1Mi"), {}, resources={"requests": {"cpu": "1"}}),
            RULES,
            (1000, MEBI),
            id="and to what no container gives either",
        ),
        pytest.param(
            made({}, resources={"requests": {"cpu": "1"}}),
            RequestRules(pod_level_resources=False),
            (100, DEFAULT_MEMORY),
            id="without their gate they are not there",
        ),
        pytest.param(
            resizing(INFEASIBLE), RULES, (3000, DEFAULT_MEMORY), id="memory of an infeasible resize is missing"
        ),
    ],
)
def test_non_zero_amounts(pod: Pod, rules: RequestRules, non_zero: tuple[int, int]) -> None:
    counted = counted_requests(pod, rules)
    assert (counted.non_zero_milli_cpu, counted.non_zero_memory) == non_zero


def test_fit_scores_a_waiting_pod_by_its_containers_alone() -> None:
    pod = made(asks(cpu="1"), {}, resources={"requests": {"cpu": "8", "memory": "8Gi"}})
    assert requested(pod, TO_SCORE) == {"cpu": 1100, "memory": 2 * DEFAULT_MEMORY}


def test_balance_takes_a_waiting_pod_as_it_would_count() -> None:
    assert to_balance(RULES) == to_count(RULES)
    assert requested(resizing(INFEASIBLE), to_balance(RULES)) == {"cpu": 3000}


@pytest.mark.parametrize(
    ("pod_level", "taken"),
    [
        pytest.param({"cpu": "2", "memory": "3Gi"}, {"cpu": 2100, "memory": 3073 * MEBI}, id="short numbers: once"),
        pytest.param({"memory": "2.5Gi"}, {"cpu": 1100, "memory": 2563 * MEBI}, id="decimals: once more for each step"),
    ],
)
def test_balance_adds_overhead_to_pod_level_decimals_as_often_as_upstream_adds_up_the_pod(
    pod_level: dict[str, str], taken: dict[str, int]
) -> None:
    pod = made(asks(cpu="1"), resources={"requests": pod_level}, overhead={"cpu": "100m", "memory": "1Mi"})
    assert balance_requests(pod, RULES, ("cpu", "memory")) == taken


def test_limits_add_up_and_overhead_joins_those_that_there_are() -> None:
    pod = made(
        {"resources": {"limits": {"cpu": "1", "memory": "1Gi"}}},
        {"resources": {"limits": {"cpu": "500m"}}},
        init=({"resources": {"limits": {"memory": "3Gi"}}},),
        overhead={"cpu": "100m", "ephemeral-storage": "1Gi"},
    )
    assert {name: str(limit) for name, limit in pod_limits(pod, to_count(RULES)).items()} == {
        "cpu": "1600m",
        "memory": "3Gi",
    }


def test_pod_level_limits_replace_those_of_containers() -> None:
    pod = made({"resources": {"limits": {"cpu": "1"}}}, resources={"limits": {"cpu": "3", "example.com/gpu": "1"}})
    assert {name: str(limit) for name, limit in pod_limits(pod, to_count(RULES)).items()} == {"cpu": "3"}


def test_totals_keep_the_format_of_what_was_written() -> None:
    pod = made(asks(cpu="1500m", memory="512Mi"), asks(memory="1.5Gi"))
    assert {name: str(total) for name, total in pod_requests(pod, to_fit(RULES)).items()} == {
        "cpu": "1500m",
        "memory": "2Gi",
    }


@pytest.mark.parametrize(
    ("requests", "amount"),
    [
        pytest.param(("9223372036854775807", "1"), -(2**63), id="a sum of many digits beyond int64 wraps around"),
        pytest.param(("8E", "8E"), 0, id="one of few digits is nothing"),
        pytest.param(("10E",), 0, id="so is a single number"),
        pytest.param(("-1.5", "1"), -1, id="a negative fraction goes away from zero"),
    ],
)
def test_enormous_and_negative_amounts_are_what_kubernetes_makes_of_them(
    requests: tuple[str, ...], amount: int
) -> None:
    pod = made(*(asks(memory=written) for written in requests))
    assert requested(pod, to_fit(RULES)) == {"memory": amount}


@pytest.mark.parametrize(
    ("pod", "path"),
    [
        pytest.param(made(asks(cpu="1"), asks(cpu="lots")), "spec.containers[c1].resources.requests[cpu]: ", id="one"),
        pytest.param(made(asks(memory="1K")), "spec.containers[c0].resources.requests[memory]: ", id="the only one"),
        pytest.param(
            made(init=(asks(cpu="1e"),)), "spec.initContainers[i0].resources.requests[cpu]: ", id="an init container"
        ),
        pytest.param(made(overhead={"cpu": ""}), "spec.overhead[cpu]: ", id="overhead"),
        pytest.param(
            made({}, resources={"requests": {"memory": "x"}}), "spec.resources.requests[memory]: ", id="pod-level"
        ),
        pytest.param(
            made({}, status={"containerStatuses": [given_to("c0", {}, {"cpu": "?"})]}),
            "status.containerStatuses[c0].resources.requests[cpu]: ",
            id="a status",
        ),
        pytest.param(
            made(
                {},
                resources={"requests": {"cpu": "1"}},
                status={"resources": {}, "allocatedResources": {"cpu": "?"}},
            ),
            "status.allocatedResources[cpu]: ",
            id="the pod's status",
        ),
    ],
)
def test_a_bad_quantity_is_named_with_its_path(pod: Pod, path: str) -> None:
    for total in (counted_requests, lambda pod, rules: pod_requests(pod, to_count(rules))):
        with pytest.raises(QuantityError) as caught:
            total(pod, RULES)
        assert str(caught.value).startswith(path)


def test_a_bad_limit_is_named_with_its_path() -> None:
    pod = made({"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "some"}}})
    with pytest.raises(QuantityError, match=r"^spec\.containers\[c0\]\.resources\.limits\[cpu\]: "):
        pod_limits(pod, to_count(RULES))
    assert requested(pod, to_count(RULES)) == {"cpu": 1000}


AMOUNTS = st.sampled_from(
    ["0", "1", "250m", "0.4m", "1.5", "100.1Mi", "2Gi", "1e3", "7n", "-1", "-0.0005", "9E", "16Ei"]
)
LISTS = st.dictionaries(st.sampled_from(["cpu", "memory", "example.com/gpu", "hugepages-2Mi"]), AMOUNTS, max_size=3)


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    """Pods with all that counts: sidecars, pod-level requests, overhead, statuses and odd amounts."""
    containers = [asks(**requests) for requests in draw(st.lists(LISTS, max_size=3))]
    init = tuple(
        sidecar(**requests) if restarts else asks(**requests)
        for requests, restarts in draw(st.lists(st.tuples(LISTS, st.booleans()), max_size=3))
    )
    names = [f"c{index}" for index in range(len(containers))] + [f"i{index}" for index in range(len(init))]
    statuses = [given_to(name, draw(LISTS), draw(LISTS)) for name in names if draw(st.booleans())]
    status = {"containerStatuses": statuses, "conditions": draw(st.sampled_from([[], [INFEASIBLE], [DEFERRED]]))}
    if draw(st.booleans()):
        status |= {"resources": {"requests": draw(LISTS)}, "allocatedResources": draw(LISTS)}
    spec: dict[str, Any] = {"overhead": draw(LISTS)}
    if draw(st.booleans()):
        spec["resources"] = {"requests": draw(LISTS)}
    return made(*containers, init=init, status=status, **spec)


@given(
    pods(),
    st.builds(
        RequestOptions, st.booleans(), st.booleans(), st.booleans(), st.sampled_from([{}, dict(NON_ZERO_DEFAULTS)])
    ),
)
def test_numbers_and_quantities_add_up_to_the_same(pod: Pod, options: RequestOptions) -> None:
    exact = pod_requests(pod, options)
    assert requested(pod, options) == {
        name: total.milli_value() if name == "cpu" else total.value() for name, total in exact.items()
    }
