"""NodeResourcesFit: a node must have room for what the pod asks for; nodes with room are scored by how full they are.

The verdict names every resource that is short, and whether even the empty node would be too small (then preemption
cannot help). Kernels: `_kernels/resources.pxi`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ksched import _core
from ksched.cache.table import NONZERO_CPU, NONZERO_MEMORY, Amounts, Codes, column
from ksched.config.args import NodeResourcesFitArgs, ResourceSpec
from ksched.config.args_validation import fit_args_problems
from ksched.config.problems import aggregated
from ksched.errors import ConfigurationError
from ksched.framework import (
    ArrayFilterPlugin,
    ArrayScorePlugin,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    PodInfo,
    PreScorePlugin,
    Scope,
    ScorePlugin,
    Status,
    Table,
)
from ksched.framework.status import Code
from ksched.model.int64 import divided, wrapped
from ksched.model.requests import TO_SCORE, requested
from ksched.model.resource_names import is_extended, is_scalar

TOO_MANY_PODS = "Too many pods"
INSUFFICIENT = "Insufficient {}"

_TOO_MANY_PODS_BIT = 1
_UNRESOLVABLE_BIT = 1 << 22
_MOST_ASKED = 21
"""Resources of one pod that a code has bits for; a pod with more is looked at node by node."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a pod shape asks for, without ignored resources: names, rows and amounts in the order of the reasons."""

    names: tuple[str, ...]
    rows: Codes
    amounts: Amounts


class NodeResourcesFit(FilterPlugin, ArrayFilterPlugin, PreScorePlugin, ScorePlugin, ArrayScorePlugin):
    """Room for pods, CPU, memory, ephemeral storage and every scalar resource; LeastAllocated, MostAllocated or
    RequestedToCapacityRatio."""

    name = "NodeResourcesFit"
    scope = Scope.NODE
    shape_decides = True
    Args = NodeResourcesFitArgs

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        problems = fit_args_problems(args)
        if problems:
            raise ConfigurationError(aggregated([str(problem) for problem in problems]))
        self._strategy = args.scoring_strategy
        shape = self._strategy.requested_to_capacity_ratio.shape if self._strategy.requested_to_capacity_ratio else ()
        self._utilization = np.array([point.utilization for point in shape], dtype=np.int64)
        self._shape_scores = np.array([point.score * 10 for point in shape], dtype=np.int64)
        self._codes: Codes = column(np.int32, handle.cluster.table.max_nodes)
        self._scores: Amounts = column(np.int64, handle.cluster.table.max_nodes)

    # -- filter

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Every reason why the node is too full, in upstream's order."""
        reasons = [TOO_MANY_PODS] if node.pod_count + 1 > node.allowed_pods else []
        unresolvable = False
        asked = self._asked(pod, self.handle.cluster.table)
        for name, amount in zip(asked.names, asked.amounts.tolist(), strict=True):
            room = node.allocatable(name)
            if room <= 0 and self._is_delegated(name):
                continue
            if amount > wrapped(room - node.requested(name)):
                reasons.append(INSUFFICIENT.format(name))
                unresolvable = unresolvable or amount > room
        if not reasons:
            return None
        return Status.unresolvable(*reasons) if unresolvable else Status.unschedulable(*reasons)

    def filter_rule(self, state: CycleState, pod: PodInfo, nodes: Table) -> _core.FilterRule | None:
        """The native rule, for pods that a code has bits for."""
        asked = self._asked(pod, nodes)
        if self._needs_plain_form(asked):
            return None
        return _core.FitFilter(nodes.resources, asked.rows, asked.amounts)

    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Codes:
        """One code per node: which of the pod's resources are short, and whether for good."""
        asked = self._asked(pod, nodes)
        if self._needs_plain_form(asked):
            return self._one_by_one(state, pod, nodes)
        nodes.resources.fit(asked.rows, asked.amounts, nodes.alive, self._codes, nodes.size)
        return self._codes

    def explain(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        """The reasons behind a code."""
        spelled: list[Status] | None = state.get((self, "spelled"))
        if spelled is not None:
            return spelled[code - 1]
        reasons = [TOO_MANY_PODS] if code & _TOO_MANY_PODS_BIT else []
        reasons += [
            INSUFFICIENT.format(name)
            for bit, name in enumerate(self._asked(pod, self.handle.cluster.table).names, start=1)
            if code >> bit & 1
        ]
        return Status(Code.UNRESOLVABLE if code & _UNRESOLVABLE_BIT else Code.UNSCHEDULABLE, tuple(reasons))

    def _asked(self, pod: PodInfo, nodes: Table) -> _Asked:
        known: _Asked | None = pod.shape.memo.get((self, "asked"))
        if known is None:
            amounts = pod.shape.asked
            fixed = (
                ("cpu", amounts.milli_cpu),
                ("memory", amounts.memory),
                ("ephemeral-storage", amounts.ephemeral_storage),
            )
            pairs = [
                (name, amount)
                for name, amount in (*fixed, *amounts.scalars.items())
                if amount > 0 and not self._ignores(name)
            ]
            rows = np.array([nodes.row(name) for name, _ in pairs], dtype=np.int32)
            known = _Asked(
                tuple(name for name, _ in pairs), rows, np.array([amount for _, amount in pairs], dtype=np.int64)
            )
            pod.shape.memo[self, "asked"] = known
        return known

    def _needs_plain_form(self, asked: _Asked) -> bool:
        return len(asked.names) > _MOST_ASKED or any(map(self._is_delegated, asked.names))

    def _is_delegated(self, name: str) -> bool:
        """Whether a node that does not offer the resource may have devices for it, as DynamicResources finds out."""
        cluster = self.handle.cluster
        return cluster.is_device_resource(name) and self.handle.gates.enabled("DRAExtendedResource")

    def _ignores(self, name: str) -> bool:
        """Only extended resources can be ignored, by name or by what stands before the first slash."""
        if not is_extended(name):
            return False
        return name in self.args.ignored_resources or name.split("/", 1)[0] in self.args.ignored_resource_groups

    def _one_by_one(self, state: CycleState, pod: PodInfo, nodes: Table) -> Codes:
        """The per-node form, with its statuses numbered."""
        spelled: list[Status] = []
        codes = np.zeros(nodes.size, dtype=np.int32)
        for slot in np.flatnonzero(nodes.alive[: nodes.size]).tolist():
            status = self.filter(state, pod, self.handle.cluster.at(slot))
            if status is not None:
                if status not in spelled:
                    spelled.append(status)
                codes[slot] = spelled.index(status) + 1
        state[self, "spelled"] = spelled
        return codes

    # -- score

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """What the pod counts as in scores: 100 m and 200 MiB for a container that asks for nothing, and never the
        pod-level requests (as upstream)."""
        counted: dict[str, int] | None = pod.shape.memo.get((self, "counted"))
        if counted is None:
            counted = pod.shape.memo[self, "counted"] = requested(pod.pod, TO_SCORE)
        state[self] = counted
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
        """How full the node would be, by the configured strategy."""
        counted: dict[str, int] = state[self]
        cpu, memory = node.nonzero_requested
        used = {"cpu": cpu, "memory": memory}
        entries = [
            (room, wrapped(used.get(spec.name, node.requested(spec.name)) + counted.get(spec.name, 0)), spec.weight)
            for spec in self._strategy.resources
            if counts(spec.name, counted) and (room := node.allocatable(spec.name)) != 0
        ]
        if self._strategy.type == "RequestedToCapacityRatio":
            return self._ratio(entries)
        share = most_allocated_share if self._strategy.type == "MostAllocated" else least_allocated_share
        weight = sum(weight for _, _, weight in entries)
        return sum(weight * share(wanted, room) for room, wanted, weight in entries) // weight if weight else 0

    def score_rule(self, state: CycleState, pod: PodInfo, nodes: Table) -> _core.ScoreRule:
        """The strategy's native rule."""
        rows, asked, weights = self._scored_rows(pod, nodes, state[self])
        if self._strategy.type == "RequestedToCapacityRatio":
            return _core.RatioScore(nodes.resources, rows, asked, weights, self._utilization, self._shape_scores)
        if self._strategy.type == "MostAllocated":
            return _core.MostAllocatedScore(nodes.resources, rows, asked, weights)
        return _core.LeastAllocatedScore(nodes.resources, rows, asked, weights)

    def score_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Amounts:
        """The same for all nodes in one native pass."""
        rows, asked, weights = self._scored_rows(pod, nodes, state[self])
        if self._strategy.type == "RequestedToCapacityRatio":
            nodes.resources.score_ratio(
                rows, asked, weights, self._utilization, self._shape_scores, self._scores, nodes.size
            )
        elif self._strategy.type == "MostAllocated":
            nodes.resources.score_most(rows, asked, weights, self._scores, nodes.size)
        else:
            nodes.resources.score_least(rows, asked, weights, self._scores, nodes.size)
        return self._scores

    def _scored_rows(self, pod: PodInfo, nodes: Table, counted: dict[str, int]) -> tuple[Codes, Amounts, Amounts]:
        known = pod.shape.memo.get((self, "rows"))
        if known is None or known[0] != len(nodes.rows):  # a resource that no node had may have come to be
            specs = [
                spec for spec in self._strategy.resources if counts(spec.name, counted) and spec.name in nodes.rows
            ]
            known = pod.shape.memo[self, "rows"] = (len(nodes.rows), scored_rows(specs, nodes, counted))
        found: tuple[Codes, Amounts, Amounts] = known[1]
        return found

    def _ratio(self, entries: Sequence[tuple[int, int, int]]) -> int:
        total = weights = 0
        for room, wanted, weight in entries:
            score = broken_linear(
                self._utilization.tolist(),
                self._shape_scores.tolist(),
                100 if wanted > room else divided(wrapped(wanted * 100), room),
            )
            if score > 0:
                total += weight * score
                weights += weight
        return int(total / weights + 0.5) if weights else 0


def scored_rows(specs: Sequence[ResourceSpec], nodes: Table, counted: dict[str, int]) -> tuple[Codes, Amounts, Amounts]:
    """Rows (the non-zero ones for CPU and memory), amounts and weights of the resources to score."""
    rows = {"cpu": NONZERO_CPU, "memory": NONZERO_MEMORY}
    return (
        np.array([rows.get(spec.name, nodes.rows[spec.name]) for spec in specs], dtype=np.int32),
        np.array([counted.get(spec.name, 0) for spec in specs], dtype=np.int64),
        np.array([spec.weight for spec in specs], dtype=np.int64),
    )


def counts(resource: str, counted: dict[str, int]) -> bool:
    """Whether a resource takes part in the score: a scalar that the pod does not ask for does not."""
    return counted.get(resource, 0) != 0 or not is_scalar(resource)


def least_allocated_share(wanted: int, room: int) -> int:
    """The free share in per cent, 0 when over-committed."""
    return 0 if wanted > room else divided(wrapped(wrapped(room - wanted) * 100), room)


def most_allocated_share(wanted: int, room: int) -> int:
    """The used share in per cent, at most 100."""
    return divided(wrapped(min(wanted, room) * 100), room)


def broken_linear(utilization: Sequence[int], scores: Sequence[int], at: int) -> int:
    """The score at a utilization, linear between the points, truncated towards zero, multiplication before division."""
    for i, reached in enumerate(utilization):
        if at <= reached:
            if i == 0:
                return scores[0]
            rise = (scores[i] - scores[i - 1]) * (at - utilization[i - 1])
            run = reached - utilization[i - 1]
            return scores[i - 1] + divided(rise, run)
    return scores[-1]
