"""Feature gates: which behaviour is switched on.

A command line or configuration that was written for kube-scheduler may name any gate that Kubernetes knows, because
people share one `--feature-gates` between components. So all gates of Kubernetes 1.36 are accepted and checked here,
and the ones that ksched acts upon are listed first. Gates of other components are in `gates_elsewhere`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ksched.config.gates_elsewhere import DEPENDENCIES_ELSEWHERE, GATES_ELSEWHERE
from ksched.errors import ConfigurationError


class Gate(NamedTuple):
    """What Kubernetes 1.36 says about a gate; a locked one cannot be moved from its default."""

    stage: str
    default: bool
    locked: bool = False
    depends_on: tuple[str, ...] = ()


SCHEDULER_GATES: Mapping[str, Gate] = {
    "DRAAdminAccess": Gate("GA", True, locked=True, depends_on=("DynamicResourceAllocation",)),
    "DRAConsumableCapacity": Gate("BETA", True, depends_on=("DynamicResourceAllocation",)),
    "DRADeviceBindingConditions": Gate(
        "BETA", True, depends_on=("DRAResourceClaimDeviceStatus", "DynamicResourceAllocation")
    ),
    "DRADeviceTaintRules": Gate("BETA", False, depends_on=("DRADeviceTaints",)),
    "DRADeviceTaints": Gate("BETA", True, depends_on=("DynamicResourceAllocation",)),
    "DRAExtendedResource": Gate("BETA", True, depends_on=("DynamicResourceAllocation",)),
    "DRAListTypeAttributes": Gate("ALPHA", False, depends_on=("DynamicResourceAllocation",)),
    "DRANodeAllocatableResources": Gate("ALPHA", False, depends_on=("DynamicResourceAllocation",)),
    "DRAPartitionableDevices": Gate("BETA", True, depends_on=("DynamicResourceAllocation",)),
    "DRAPrioritizedList": Gate("GA", True, depends_on=("DynamicResourceAllocation",)),
    "DRAResourceClaimDeviceStatus": Gate("BETA", True),
    "DRASchedulerFilterTimeout": Gate("BETA", True, depends_on=("DynamicResourceAllocation",)),
    "DRAWorkloadResourceClaims": Gate("ALPHA", False, depends_on=("DynamicResourceAllocation", "GenericWorkload")),
    "DynamicResourceAllocation": Gate("GA", True, locked=True),
    "GangScheduling": Gate("ALPHA", False, depends_on=("GenericWorkload",)),
    "GenericWorkload": Gate("ALPHA", False),
    "InPlacePodLevelResourcesVerticalScaling": Gate(
        "BETA", True, depends_on=("InPlacePodVerticalScaling", "NodeDeclaredFeatures", "PodLevelResources")
    ),
    "InPlacePodVerticalScaling": Gate("GA", True, locked=True),
    "MatchLabelKeysInPodTopologySpread": Gate("BETA", True),
    "NodeDeclaredFeatures": Gate("BETA", True),
    "NodeInclusionPolicyInPodTopologySpread": Gate("GA", True, locked=True),
    "NominatedNodeNameForExpectation": Gate("BETA", True),
    "OpportunisticBatching": Gate("BETA", True),
    "PodLevelResources": Gate("BETA", True),
    "SchedulerAsyncAPICalls": Gate("BETA", False),
    "SchedulerAsyncPreemption": Gate("BETA", True),
    "SchedulerPopFromBackoffQ": Gate("BETA", True),
    "SchedulerQueueingHints": Gate("GA", True, locked=True),
    "SidecarContainers": Gate("GA", True, locked=True),
    "StorageCapacityScoring": Gate("ALPHA", False),
    "TaintTolerationComparisonOperators": Gate("ALPHA", False),
    "TopologyAwareWorkloadScheduling": Gate("ALPHA", False, depends_on=("GenericWorkload",)),
    "VolumeAttributesClass": Gate("GA", True, locked=True),
    "VolumeLimitScaling": Gate("ALPHA", False),
    "WorkloadAwarePreemption": Gate("ALPHA", False, depends_on=("GangScheduling",)),
}
"""The gates that change what a scheduler does."""

_GROUPS = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
"""Gates that stand for all gates of a stage which are not set by name."""


def _known_gates() -> Mapping[str, Gate]:
    elsewhere = {
        name: Gate(stage, default, locked, DEPENDENCIES_ELSEWHERE.get(name, ()))
        for (stage, default, locked), names in GATES_ELSEWHERE.items()
        for name in names.split()
    }
    return {**{name: Gate(stage, False) for name, stage in _GROUPS.items()}, **elsewhere, **SCHEDULER_GATES}


KNOWN_GATES: Mapping[str, Gate] = _known_gates()


class FeatureGates:
    """The gates of one scheduler, fixed once made: the defaults of Kubernetes 1.36 with what was asked for on top."""

    __slots__ = ("_enabled", "changed")

    def __init__(self, asked: Mapping[str, bool] | None = None) -> None:
        """Set the gates in `asked`; ConfigurationError for one that is unknown, locked, or lacks what it depends on."""
        self.changed: Mapping[str, bool] = dict(asked or {})
        """What was asked for by name, whether or not it differs from the default."""
        for name, wanted in self.changed.items():
            _check_can_be_set(name, wanted)
        self._enabled = {name: self._setting(name, gate) for name, gate in KNOWN_GATES.items()}
        _check_dependencies(self._enabled)

    def _setting(self, name: str, gate: Gate) -> bool:
        if name in self.changed:
            return self.changed[name]
        for group, stage in _GROUPS.items():
            if gate.stage == stage and group in self.changed and not gate.locked:
                return self.changed[group]
        return gate.default

    def enabled(self, name: str) -> bool:
        """Whether the gate `name` is on; KeyError for a name that Kubernetes does not know, a mistake of the caller."""
        return self._enabled[name]

    @classmethod
    def parse(cls, flags: Iterable[str]) -> FeatureGates:
        """The gates of `--feature-gates` flags such as "A=true,B=false"; the last setting of a gate wins."""
        asked: dict[str, bool] = {}
        for part in ",".join(flags).split(","):
            if part.strip():
                name, value = _setting_of(part.strip())
                asked[name] = value
        return cls(asked)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FeatureGates) and self._enabled == other._enabled

    def __hash__(self) -> int:
        return hash(frozenset(self._enabled.items()))

    def __repr__(self) -> str:
        return f"FeatureGates({dict(self.changed)!r})"


_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE = frozenset({"0", "f", "F", "false", "FALSE", "False"})


def _setting_of(part: str) -> tuple[str, bool]:
    """The gate and value in "Name=true" or "kube:Name=true"."""
    component, colon, rest = part.partition(":")
    if colon and component != "kube":
        raise ConfigurationError(f"component not registered: {component}")
    name, equals, value = (rest if colon else part).partition("=")
    if not equals:
        raise ConfigurationError(f"missing bool value for {name}")
    name, value = name.strip(), value.strip()
    if value not in _TRUE | _FALSE:
        raise ConfigurationError(
            f'invalid value of {name}={value}, err: strconv.ParseBool: parsing "{value}": invalid syntax'
        )
    return name, value in _TRUE


def _check_can_be_set(name: str, wanted: bool) -> None:
    gate = KNOWN_GATES.get(name)
    if gate is None:
        raise ConfigurationError(f"unrecognized feature gate: {name}")
    if gate.locked and wanted != gate.default:
        raise ConfigurationError(
            f"cannot set feature gate {name} to {str(wanted).lower()}, feature is locked to {str(gate.default).lower()}"
        )


def _check_dependencies(enabled: Mapping[str, bool]) -> None:
    problems = []
    for name in sorted(enabled):
        missing = [other for other in KNOWN_GATES[name].depends_on if not enabled[other]]
        if enabled[name] and missing:
            problems.append(f"{name} is enabled, but depends on features that are disabled: [{' '.join(missing)}]")
    if problems:
        raise ConfigurationError(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")
