"""Feature gates: defaults, flags, and what may not be set."""

from __future__ import annotations

import pytest

from ksched.config.gates import KNOWN_GATES, SCHEDULER_GATES, FeatureGates
from ksched.errors import ConfigurationError


@pytest.mark.parametrize(
    ("flags", "gate", "enabled"),
    [
        pytest.param([], "NodeDeclaredFeatures", True, id="a beta gate is on by default"),
        pytest.param([], "TaintTolerationComparisonOperators", False, id="an alpha gate is off by default"),
        pytest.param([], "SchedulerAsyncAPICalls", False, id="a beta gate may be off by default"),
        pytest.param(["VolumeLimitScaling=true"], "VolumeLimitScaling", True, id="a flag turns a gate on"),
        pytest.param([""], "GangScheduling", False, id="an empty flag changes nothing"),
        pytest.param(["kube:VolumeLimitScaling=T"], "VolumeLimitScaling", True, id="the component may be named"),
        pytest.param(
            ["VolumeLimitScaling=true", "VolumeLimitScaling=false"],
            "VolumeLimitScaling",
            False,
            id="the last flag wins",
        ),
        pytest.param(["AllAlpha=true"], "VolumeLimitScaling", True, id="AllAlpha turns every alpha gate on"),
        pytest.param(
            ["AllAlpha=true,VolumeLimitScaling=false"],
            "VolumeLimitScaling",
            False,
            id="a gate's own setting beats its group",
        ),
        pytest.param(["AllBeta=false"], "SchedulerAsyncPreemption", False, id="AllBeta turns every beta gate off"),
        pytest.param(["AllBeta=false"], "DynamicResourceAllocation", True, id="AllBeta leaves stable gates alone"),
        pytest.param(["ContextualLogging=false"], "ContextualLogging", False, id="other components' gates are known"),
        pytest.param(
            ["DynamicResourceAllocation=true"],
            "DynamicResourceAllocation",
            True,
            id="a locked gate may be set to its default",
        ),
    ],
)
def test_enabled(flags: list[str], gate: str, enabled: bool) -> None:
    assert FeatureGates.parse(flags).enabled(gate) is enabled


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        pytest.param("Nope=true", "unrecognized feature gate: Nope", id="a gate that does not exist"),
        pytest.param(
            "DynamicResourceAllocation=false",
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
            id="a locked gate",
        ),
        pytest.param(
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
            id="a gate whose dependency is off",
        ),
        pytest.param(
            "GangScheduling=maybe",
            'invalid value of GangScheduling=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax',
            id="a value that is not a boolean",
        ),
        pytest.param("GangScheduling", "missing bool value for GangScheduling", id="a gate without a value"),
        pytest.param("other:GangScheduling=true", "component not registered: other", id="an unknown component"),
    ],
)
def test_what_may_not_be_set(flag: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        FeatureGates.parse([flag])
    assert str(raised.value) == message


def test_several_missing_dependencies_are_told_together() -> None:
    off = {"NodeDeclaredFeatures": False, "PodLevelResources": False}
    with pytest.raises(ConfigurationError) as raised:
        FeatureGates(off)
    assert str(raised.value).startswith("[")
    assert (
        "InPlacePodLevelResourcesVerticalScaling is enabled, but depends on features that are disabled: "
        "[NodeDeclaredFeatures PodLevelResources]"
    ) in str(raised.value)


def test_asking_for_an_unknown_gate_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(KeyError, match="Nope"):
        FeatureGates().enabled("Nope")


def test_gates_with_equal_settings_are_equal() -> None:
    assert FeatureGates() == FeatureGates({"NodeDeclaredFeatures": True})
    assert hash(FeatureGates()) == hash(FeatureGates({"NodeDeclaredFeatures": True}))
    assert FeatureGates() != FeatureGates({"VolumeLimitScaling": True})


def test_every_dependency_is_a_known_gate() -> None:
    assert {name for gate in KNOWN_GATES.values() for name in gate.depends_on} <= set(KNOWN_GATES)
    assert set(SCHEDULER_GATES) <= set(KNOWN_GATES)
