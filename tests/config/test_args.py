"""Arguments of the in-tree plugins: what is filled in, and how they are written."""

from __future__ import annotations

import pytest

from ksched.config.args import (
    CPU_AND_MEMORY,
    KINDS,
    DynamicResourcesArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
    defaulted,
    from_written,
)
from ksched.config.gates import FeatureGates
from ksched.config.write import args_as_written

FALLING = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))
NO_FILTER_TIMEOUT = {"DRASchedulerFilterTimeout": False}
NO_BINDING_CONDITIONS = {"DRADeviceBindingConditions": False}


@pytest.mark.parametrize(
    ("gates", "args", "result"),
    [
        pytest.param(
            {},
            DynamicResourcesArgs(),
            DynamicResourcesArgs(filter_timeout="10s", binding_timeout="10m0s"),
            id="timeouts of devices",
        ),
        pytest.param(
            NO_FILTER_TIMEOUT,
            DynamicResourcesArgs(),
            DynamicResourcesArgs(binding_timeout="10m0s"),
            id="no limit on filtering without its gate",
        ),
        pytest.param(
            NO_BINDING_CONDITIONS,
            DynamicResourcesArgs(),
            DynamicResourcesArgs(filter_timeout="10s"),
            id="nor on binding without its gates",
        ),
        pytest.param(
            {},
            DynamicResourcesArgs(filter_timeout="0s", binding_timeout="2s"),
            DynamicResourcesArgs(filter_timeout="0s", binding_timeout="2s"),
            id="what is written is kept, even zero",
        ),
        pytest.param(
            {},
            NodeResourcesBalancedAllocationArgs(resources=()),
            NodeResourcesBalancedAllocationArgs(resources=CPU_AND_MEMORY),
            id="an empty list of resources is cpu and memory",
        ),
        pytest.param(
            {},
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(type="MostAllocated", resources=(ResourceSpec(name="cpu"),))
            ),
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(type="MostAllocated", resources=(ResourceSpec(name="cpu", weight=1),))
            ),
            id="a weight that is not given is 1",
        ),
        pytest.param(
            {}, PodTopologySpreadArgs(defaulting_type=""), PodTopologySpreadArgs(), id="the system's constraints"
        ),
        pytest.param(
            {},
            VolumeBindingArgs(),
            VolumeBindingArgs(bind_timeout_seconds=600, shape=None),
            id="free storage does not score",
        ),
        pytest.param(
            {"StorageCapacityScoring": True},
            VolumeBindingArgs(shape=()),
            VolumeBindingArgs(shape=FALLING),
            id="unless its gate is on",
        ),
    ],
)
def test_defaulted(gates: dict[str, bool], args: PluginArgs, result: PluginArgs) -> None:
    assert defaulted(args, FeatureGates(gates)) == result


@pytest.mark.parametrize("name", sorted(KINDS))
def test_what_is_written_reads_back(name: str) -> None:
    args = defaulted(KINDS[name](), FeatureGates({"StorageCapacityScoring": True}))
    written = args_as_written(args)
    assert (written["apiVersion"], written["kind"]) == ("kubescheduler.config.k8s.io/v1", f"{name}Args")
    assert from_written(name, written) == args


def test_timeouts_are_numbers_for_the_plugin() -> None:
    args = DynamicResourcesArgs(filter_timeout="1m30s")
    assert args.filter_timeout_seconds == 90
    assert args.binding_timeout_seconds is None
    assert DynamicResourcesArgs(binding_timeout="10m0s").binding_timeout_seconds == 600
    assert DynamicResourcesArgs().filter_timeout_seconds is None
