"""Which workloads are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import WorkloadError
from benchmarks.scheduler_perf.cases import Workload
from benchmarks.scheduler_perf.cli import overrides
from benchmarks.scheduler_perf.selection import accepts, by_name


def workload(topic: str, case: str, name: str) -> Workload:
    return Workload(topic, case, name, frozenset(), {}, {}, Path(), [])


@pytest.mark.parametrize(
    ("label_filter", "labels", "accepted"),
    [
        pytest.param("", set(), True, id="an empty filter takes everything"),
        pytest.param("performance", {"performance", "short"}, True, id="a label must be there"),
        pytest.param("performance", {"short"}, False, id="and is missed"),
        pytest.param("+performance", {"performance"}, True, id="a plus says the same"),
        pytest.param("integration-test,-performance", {"integration-test"}, True, id="a minus must not be there"),
        pytest.param("integration-test,-performance", {"integration-test", "performance"}, False, id="and is noticed"),
        pytest.param("performance,+short", {"performance"}, False, id="all terms count"),
    ],
)
def test_label_filters(label_filter: str, labels: set[str], accepted: bool) -> None:
    assert accepts(label_filter, labels) is accepted


KNOWN = [
    workload("misc", "Basic", "5Nodes"),
    workload("misc", "Unschedulable", "5Nodes/1Init/10Pods"),
    workload("a", "Twice", "x"),
    workload("b", "Twice", "x"),
]


def test_names_are_exact_and_may_have_slashes() -> None:
    assert by_name(KNOWN, ["Unschedulable/5Nodes/1Init/10Pods", "Basic/5Nodes"]) == [KNOWN[1], KNOWN[0]]


def test_a_topic_tells_two_of_a_name_apart() -> None:
    assert by_name(KNOWN, ["b/Twice/x"]) == [KNOWN[3]]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        pytest.param("Basic/5Node", "no such workload among 4; near: Basic/5Nodes", id="a part of a name is no name"),
        pytest.param("Twice/x", "there are several: a/Twice/x, b/Twice/x", id="a name that two have"),
    ],
)
def test_other_names_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(WorkloadError, match=complaint):
        by_name(KNOWN, [name])


def test_overrides_are_typed_as_yaml_types_them() -> None:
    assert overrides(["a=5", "b=true", "c=10s", "d=1.5"]) == {"a": 5, "b": True, "c": "10s", "d": 1.5}


@pytest.mark.parametrize("written", ["a", "=5", "a=[1]"])
def test_an_override_that_is_none_is_refused(written: str) -> None:
    with pytest.raises(WorkloadError, match="--param"):
        overrides([written])
