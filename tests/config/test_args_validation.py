"""What may stand in the arguments of the in-tree plugins."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.config.args import KINDS, NodeAffinityArgs, NodeResourcesFitArgs, defaulted
from ksched.config.args_validation import args_problems, check_args
from ksched.config.decode import decode_struct
from ksched.config.gates import FeatureGates
from ksched.errors import ConfigurationError

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def ratio(*shape: tuple[int, int]) -> dict[str, Any]:
    points = [{"utilization": utilization, "score": score} for utilization, score in shape]
    return {"scoringStrategy": {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": points}}}


def constraint(**fields: Any) -> dict[str, Any]:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}


def spread(*constraints: dict[str, Any]) -> dict[str, Any]:
    return {"defaultingType": "List", "defaultConstraints": list(constraints)}


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"addedAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


@pytest.mark.parametrize(
    ("name", "written", "problems"),
    [
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0},
            [],
            id="one of the numbers of candidates may be zero",
        ),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            [
                (
                    "minCandidateNodesPercentage: Invalid value: 0: cannot be zero at the same time as "
                    "minCandidateNodesAbsolute"
                ),
                (
                    "minCandidateNodesAbsolute: Invalid value: 0: cannot be zero at the same time as "
                    "minCandidateNodesPercentage"
                ),
            ],
            id="both may not",
        ),
        pytest.param(
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101, "minCandidateNodesAbsolute": -1},
            [
                "minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
                "minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
            ],
            id="numbers of candidates out of range",
        ),
        pytest.param(
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            ["hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
            id="a weight out of range",
        ),
        pytest.param(
            "DynamicResources",
            {"filterTimeout": "-1s", "bindingTimeout": "999ms"},
            [
                'filterTimeout: Invalid value: "-1s": must be zero or positive',
                'bindingTimeout: Invalid value: "999ms": must be at least 1 second',
            ],
            id="timeouts out of range",
        ),
        pytest.param(
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}, {"name": "cpu"}]},
            ["resources[0].weight: Invalid value: 2: must be 1", 'resources[1].name: Duplicate value: "cpu"'],
            id="resources to balance have no weights and come once",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"ignoredResources": ["a b"], "ignoredResourceGroups": ["example.com/x"]},
            [
                f'ignoredResources[0]: Invalid value: "a b": {NAME_RULE}',
                "ignoredResourceGroups[0]: Invalid value: \"example.com/x\": resource group name can't contain '/'",
            ],
            id="ignored resources are names, groups are domains",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 101}]}},
            [
                (
                    'scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", '
                    '"MostAllocated", "RequestedToCapacityRatio"'
                ),
                (
                    "scoringStrategy.resources[0].weight: Invalid value: 101: resource weight of cpu not in "
                    "valid range (0, 100]"
                ),
            ],
            id="a strategy has a type, and weights up to 100",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            [
                (
                    "scoringStrategy.requestedToCapacityRatio: Required value: must be specified when type is "
                    "RequestedToCapacityRatio"
                )
            ],
            id="a ratio needs its function",
        ),
        pytest.param(
            "NodeResourcesFit",
            {"scoringStrategy": {**ratio((0, 0))["scoringStrategy"], "type": "MostAllocated"}},
            [
                (
                    "scoringStrategy.requestedToCapacityRatio: Forbidden: must be nil when type is not "
                    "RequestedToCapacityRatio"
                )
            ],
            id="other strategies have none",
        ),
        pytest.param(
            "NodeResourcesFit",
            ratio(),
            ["scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified"],
            id="a function without points",
        ),
        pytest.param("NodeResourcesFit", ratio((0, 10), (100, 0)), [], id="a function may fall"),
        pytest.param(
            "NodeResourcesFit",
            ratio((50, 0), (50, 11), (20, -1)),
            [
                (
                    "scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 50: values "
                    "must be sorted in increasing order"
                ),
                (
                    "scoringStrategy.requestedToCapacityRatio.shape[1].score: Invalid value: 11: not in valid "
                    "range [0, 10]"
                ),
                (
                    "scoringStrategy.requestedToCapacityRatio.shape[2].score: Invalid value: -1: not in valid "
                    "range [0, 10]"
                ),
            ],
            id="points rise, only the first that does not is told, and scores go to 10",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultingType": "X"},
            ['defaultingType: Unsupported value: "X": supported values: "System", "List"'],
            id="an unknown source of constraints",
        ),
        pytest.param(
            "PodTopologySpread",
            {"defaultConstraints": [constraint(maxSkew=0)]},
            ['defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
            id="constraints of one's own beside the system's",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(constraint(maxSkew=0, topologyKey="", whenUnsatisfiable="")),
            [
                "defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                "defaultConstraints[0].topologyKey: Required value: can not be empty",
                "defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
            ],
            id="a constraint without its fields",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(constraint(topologyKey="a b", whenUnsatisfiable="X", labelSelector={})),
            [
                f'defaultConstraints[0].topologyKey: Invalid value: "a b": {NAME_RULE}',
                (
                    'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "X": supported values: '
                    '"DoNotSchedule", "ScheduleAnyway"'
                ),
                (
                    "defaultConstraints[0].labelSelector: Forbidden: constraint must not define a selector, as "
                    "they deduced for each pod"
                ),
            ],
            id="a constraint with fields that it cannot have",
        ),
        pytest.param(
            "PodTopologySpread",
            spread(constraint(), constraint(whenUnsatisfiable="ScheduleAnyway"), constraint(maxSkew=2)),
            ['defaultConstraints[2]: Duplicate value: "{zone, DoNotSchedule}"'],
            id="a constraint twice",
        ),
        pytest.param(
            "VolumeBinding",
            {"bindTimeoutSeconds": -1},
            ["bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"],
            id="a negative timeout",
        ),
        pytest.param(
            "VolumeBinding",
            {"shape": [{"utilization": 1, "score": 2}]},
            [
                (
                    'shape: Invalid value: [{"Utilization":1,"Score":2}]: unexpected field `shape`, remove it '
                    "or turn on the feature gate StorageCapacityScoring"
                )
            ],
            id="a shape without its gate",
        ),
        pytest.param(
            "NodeAffinity",
            required({}, {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}),
            [
                (
                    f"addedAffinity.{REQUIRED}.nodeSelectorTerms[1].matchExpressions[0].values: Invalid value: "
                    f'["x"]: values set must be empty for exists and does not exist'
                )
            ],
            id="a wrong term, and an empty one that counts",
        ),
        pytest.param(
            "NodeAffinity",
            {
                "addedAffinity": {
                    PREFERRED: [
                        {"weight": 0, "preference": {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}},
                        {"weight": 1, "preference": {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}},
                    ]
                }
            },
            [f'addedAffinity.{PREFERRED}[1].matchExpressions[0].key: Invalid value: "a b": {NAME_RULE}'],
            id="a wrong preference, and one without a weight that nobody looks at",
        ),
    ],
)
def test_problems(name: str, written: dict[str, Any], problems: list[str]) -> None:
    gates = FeatureGates()
    args, complaints = decode_struct(written, KINDS[name])
    assert complaints == []
    assert [str(problem) for problem in args_problems(defaulted(args, gates), gates)] == problems


@pytest.mark.parametrize(
    ("gates", "name", "written", "problems"),
    [
        pytest.param(
            {"DRASchedulerFilterTimeout": False},
            "DynamicResources",
            {"filterTimeout": "1s"},
            ["filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled"],
            id="a limit on filtering",
        ),
        pytest.param(
            {"DRADeviceBindingConditions": False},
            "DynamicResources",
            {"bindingTimeout": "1s"},
            [
                (
                    "bindingTimeout: Forbidden: DRADeviceBindingConditions or DRAResourceClaimDeviceStatus "
                    "feature gate is disabled"
                )
            ],
            id="a limit on binding",
        ),
        pytest.param(
            {"StorageCapacityScoring": True},
            "VolumeBinding",
            {"shape": [{"utilization": 5, "score": 30}]},
            ["shape[0].score: Invalid value: 30: not in valid range [0, 10]"],
            id="a shape is looked at with its gate",
        ),
    ],
)
def test_gates_decide(gates: dict[str, bool], name: str, written: dict[str, Any], problems: list[str]) -> None:
    args, _ = decode_struct(written, KINDS[name])
    assert [
        str(problem) for problem in args_problems(defaulted(args, FeatureGates(gates)), FeatureGates(gates))
    ] == problems


@pytest.mark.parametrize("name", sorted(KINDS))
def test_the_defaults_are_right(name: str) -> None:
    check_args(name, defaulted(KINDS[name](), FeatureGates()), FeatureGates())


def test_a_plugin_that_is_made_refuses_wrong_arguments() -> None:
    wrong, _ = decode_struct({"scoringStrategy": {"type": "RequestedToCapacityRatio"}}, NodeResourcesFitArgs)
    with pytest.raises(ConfigurationError, match=r"^scoringStrategy.requestedToCapacityRatio: Required value: must be"):
        check_args("NodeResourcesFit", wrong, FeatureGates())
    with pytest.raises(ConfigurationError, match="want args to be of type NodeResourcesFitArgs, got NodeAffinityArgs"):
        check_args("NodeResourcesFit", NodeAffinityArgs(), FeatureGates())
