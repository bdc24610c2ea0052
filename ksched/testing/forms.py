"""A plugin's two forms, one verdict: the per-node form is the rule, the array form must say the same of every node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet

import numpy as np

from ksched.cache.cluster import Cluster
from ksched.cache.node_info import NodeInfo
from ksched.cache.shapes import PodInfo
from ksched.framework.plugin import (
    ArrayFilterPlugin,
    ArrayScorePlugin,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from ksched.framework.state import CycleState
from ksched.framework.status import Code, Status
from ksched.model.pod import Pod
from ksched.testing.pods import PodBuilder

MOST_SHOWN = 5
"""Nodes that a message names, when the forms differ on more."""


def assert_forms_agree(plugin: Plugin, cluster: Cluster, pods: Iterable[PodBuilder | Pod | PodInfo]) -> None:
    """Run both forms of `plugin` for every pod over every node; AssertionError says where they differ.

    Verdicts are compared by code and reasons, raw scores by value on the nodes that pass the plugin's own filter. A
    form that the plugin does not have is not compared; a plugin without two forms of anything is a TypeError.
    """
    filters = isinstance(plugin, FilterPlugin) and isinstance(plugin, ArrayFilterPlugin)
    scores = isinstance(plugin, ScorePlugin) and isinstance(plugin, ArrayScorePlugin)
    if not filters and not scores:
        raise TypeError(f"expected a plugin with a per-node form and an array form, {plugin.name} has not both of any")
    cluster.begin_cycle()
    for one in pods:
        pod = _info(one, cluster)
        state = CycleState()
        nodes = _candidates(plugin, state, pod, cluster)
        if filters and nodes and plugin.name not in state.skip_filter:
            nodes = _same_verdicts(plugin, state, pod, cluster, nodes)
        if scores and nodes and _pre_score(plugin, state, pod, cluster, nodes):
            _same_scores(plugin, state, pod, cluster, nodes)


def _info(pod: PodBuilder | Pod | PodInfo, cluster: Cluster) -> PodInfo:
    if isinstance(pod, PodInfo):
        return pod
    return cluster.shapes.info(pod.build() if isinstance(pod, PodBuilder) else pod)


def _candidates(plugin: Plugin, state: CycleState, pod: PodInfo, cluster: Cluster) -> list[NodeInfo]:
    """The nodes that the plugin's PreFilter leaves; none if it turns the pod down."""
    nodes = list(cluster.nodes())
    if not isinstance(plugin, PreFilterPlugin):
        return nodes
    answer = plugin.pre_filter(state, pod, cluster.table)
    if isinstance(answer, AbstractSet):
        return [node for node in nodes if node.name in answer]
    if isinstance(answer, Status) and answer.code is Code.SKIP:
        state.skip_filter.add(plugin.name)
    return nodes if answer is None or answer.code is Code.SKIP else []


def _same_verdicts(
    plugin: Plugin, state: CycleState, pod: PodInfo, cluster: Cluster, nodes: list[NodeInfo]
) -> list[NodeInfo]:
    """Compare the verdicts on `nodes`; the nodes that both forms keep."""
    assert isinstance(plugin, FilterPlugin)
    assert isinstance(plugin, ArrayFilterPlugin)
    _mark_alive(cluster, nodes)
    answer = plugin.filter_array(state, pod, cluster.table)
    codes = None if answer is None else answer[: cluster.table.size].tolist()
    kept: list[NodeInfo] = []
    differences: list[str] = []
    for node in nodes:
        plain = plugin.filter(state, pod, node)
        code = 0 if codes is None else codes[node.slot]
        array = plugin.explain(state, pod, code) if code else None
        if _outcome(plain) != _outcome(array):
            differences.append(f"on {node.name} the per-node form says {_shown(plain)}, the array form {_shown(array)}")
        elif plain is None:
            kept.append(node)
    _report(plugin, "verdicts", pod, differences)
    return kept


def _pre_score(plugin: Plugin, state: CycleState, pod: PodInfo, cluster: Cluster, nodes: list[NodeInfo]) -> bool:
    """Let the plugin prepare scoring of `nodes`; whether it scores this pod at all."""
    _mark_alive(cluster, nodes)
    return not isinstance(plugin, PreScorePlugin) or plugin.pre_score(state, pod, cluster.table) is None


def _mark_alive(cluster: Cluster, nodes: list[NodeInfo]) -> None:
    """Let the table say, as in a cycle, that these nodes are left."""
    alive = cluster.table.alive
    alive[: cluster.table.size] = 0
    alive[np.fromiter((node.slot for node in nodes), dtype=np.int64, count=len(nodes))] = 1


def _same_scores(plugin: Plugin, state: CycleState, pod: PodInfo, cluster: Cluster, nodes: list[NodeInfo]) -> None:
    assert isinstance(plugin, ScorePlugin)
    assert isinstance(plugin, ArrayScorePlugin)
    scores = plugin.score_array(state, pod, cluster.table)[: cluster.table.size].tolist()
    _report(plugin, "scores", pod, _score_differences(plugin, state, pod, nodes, scores))


def _score_differences(
    plugin: ScorePlugin, state: CycleState, pod: PodInfo, nodes: list[NodeInfo], array: list[int]
) -> Iterator[str]:
    for node in nodes:
        plain = plugin.score(state, pod, node)
        if plain != array[node.slot]:
            yield f"on {node.name} the per-node form gives {plain}, the array form {array[node.slot]}"


def _report(plugin: Plugin, what: str, pod: PodInfo, found: Iterable[str]) -> None:
    differences = list(found)
    if not differences:
        return
    shown = "\n  ".join(differences[:MOST_SHOWN])
    more = f"\n  and {len(differences) - MOST_SHOWN} more" if len(differences) > MOST_SHOWN else ""
    raise AssertionError(f"{plugin.name}: the forms differ in {what} for pod {pod.key}:\n  {shown}{more}")


def _outcome(status: Status | None) -> tuple[Code, tuple[str, ...]] | None:
    return None if status is None or status.code is Code.SUCCESS else (status.code, status.reasons)


def _shown(status: Status | None) -> str:
    return "it fits" if status is None else f"{status.code} ({', '.join(status.reasons)})"
