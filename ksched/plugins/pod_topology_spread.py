"""PodTopologySpread: keep the pods that belong together evenly spread over zones, nodes or other domains.

Hard constraints turn down nodes whose domain has too many pods already; soft ones, and the defaults of pods that belong
to a service or controller, prefer domains with few. Pods are counted per domain in `cache.domains`, up to date with the
cluster; a what-if keeps its changes in the cycle's state. What a constraint means is compiled in `spread_constraints`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from ksched import _core
from ksched.cache.domains import Domains
from ksched.cache.table import Amounts, Codes, Flags
from ksched.config.args import PodTopologySpreadArgs
from ksched.errors import SelectorError
from ksched.framework import (
    ArrayFilterPlugin,
    ArrayScorePlugin,
    CycleState,
    FilterPlugin,
    Handle,
    NodeInfo,
    Normalization,
    PodInfo,
    PreFilterPlugin,
    PreScorePlugin,
    Scope,
    ScorePlugin,
    Status,
    Table,
)
from ksched.framework.plugin import MAX_NODE_SCORE
from ksched.model.pod import TopologySpreadConstraint
from ksched.model.selectors import Selector
from ksched.plugins.spread_constraints import HARD, HOSTNAME, SOFT, SYSTEM_DEFAULTS, Constraint, Constraints

MISSING_LABEL = Status.unresolvable("node(s) didn't match pod topology spread constraints (missing required label)")
TOO_SKEWED = Status.unschedulable("node(s) didn't match pod topology spread constraints")


class HardConstraint:
    """A hard constraint of one pod in one cycle: how many pods each domain has, with what a what-if changed."""

    __slots__ = ("_changes", "_having", "constraint", "domains", "is_counted")

    def __init__(self, constraint: Constraint, domains: Domains, is_counted: bool) -> None:
        """`is_counted` says whether the constraint would count the pod itself."""
        self.constraint = constraint
        self.domains = domains
        self.is_counted = is_counted
        self._changes: dict[int, int] = {}
        self._having: dict[int, int] | None = None

    def clone(self) -> HardConstraint:
        """A copy to change."""
        copy = HardConstraint(self.constraint, self.domains, self.is_counted)
        copy._changes = dict(self._changes)
        copy._having = None if self._having is None else dict(self._having)
        return copy

    def change(self, value: str, by: int) -> None:
        """In a what-if, the domain has more pods, or fewer."""
        domain = self.domains.label.values.ids[value]
        before = self._count(domain)
        if self._having is None:
            self._having = dict(self.domains.having)
        _core.move_count(self._having, before, before + by)
        self._changes[domain] = self._changes.get(domain, 0) + by

    def count(self, value: str) -> int:
        """How many pods a domain has; none where no node of it is counted."""
        domain = self.domains.label.values.ids.get(value)
        return 0 if domain is None else self._count(domain)

    @property
    def most(self) -> int:
        """How many pods a domain may have before this one comes to it."""
        return self.constraint.max_skew + self.smallest - self.is_counted

    @property
    def smallest(self) -> int:
        """What domains are compared with: the lowest count, or 0 while there are fewer domains than there should be."""
        if self.domains.number < max(self.constraint.min_domains, 1):
            return 0
        return min(self.domains.having if self._having is None else self._having)

    def _count(self, domain: int) -> int:
        return int(self.domains.counts[domain]) + self._changes.get(domain, 0)


class HardConstraints:
    """The hard constraints of one pod in one cycle, in its order."""

    __slots__ = ("each",)

    def __init__(self, each: Iterable[HardConstraint]) -> None:
        self.each = tuple(each)

    def clone(self) -> HardConstraints:
        """A copy for a what-if."""
        return HardConstraints(hard.clone() for hard in self.each)

    def change(self, other: PodInfo, node: NodeInfo, by: int, comparison_operators: bool) -> None:
        """In a what-if, another pod of the same namespace comes to a node, or leaves it.

        Unlike the counts to begin with, this takes a pod that is being deleted, and a selector that selects everything,
        like any other.
        """
        if any(hard.constraint.topology_key not in node.labels for hard in self.each):
            return
        for hard in self.each:
            constraint = hard.constraint
            if constraint.selector.matches(other.labels) and constraint.inclusion.accepts(node, comparison_operators):
                hard.change(node.labels[constraint.topology_key], by)


class SoftConstraint:
    """A soft constraint of one pod in one cycle. `counts` are of domains, or, of a constraint on host names, of
    nodes."""

    __slots__ = ("constraint", "counts", "values", "weight")

    def __init__(self, constraint: Constraint, counts: Codes, values: dict[str, int], weight: float) -> None:
        self.constraint = constraint
        self.counts = counts
        self.values = values
        self.weight = weight

    @property
    def is_per_node(self) -> bool:
        """Whether each node is its own domain, and its pods are counted as they are."""
        return self.constraint.topology_key == HOSTNAME

    def count(self, node: NodeInfo, namespace: str) -> int:
        """How many pods the node's domain has."""
        if self.is_per_node:
            return count_pods(node, self.constraint.counted, namespace)
        return int(self.counts[self.values[node.labels[self.constraint.topology_key]]])


class SoftConstraints:
    """The soft constraints of one pod in one cycle. Nodes that are not `rated` lack a label: they get 0."""

    __slots__ = ("each", "rated")

    def __init__(self, each: Sequence[SoftConstraint], rated: Flags) -> None:
        self.each = each
        self.rated = rated


class PodTopologySpread(
    PreFilterPlugin, FilterPlugin, ArrayFilterPlugin, PreScorePlugin, ScorePlugin, ArrayScorePlugin
):
    """Turn down nodes in crowded domains; prefer those in empty ones."""

    name = "PodTopologySpread"
    scope = Scope.CLUSTER
    Args = PodTopologySpreadArgs
    normalization = Normalization.CUSTOM
    reasons = (MISSING_LABEL, TOO_SKEWED)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._by_system = args.defaulting_type == "System"
        self._defaults: tuple[TopologySpreadConstraint, ...] = (
            SYSTEM_DEFAULTS if self._by_system else args.default_constraints
        )
        self._constraints = Constraints(
            handle.cluster,
            comparison_operators=handle.gates.enabled("TaintTolerationComparisonOperators"),
            match_label_keys=handle.gates.enabled("MatchLabelKeysInPodTopologySpread"),
        )

    def key(self, pod: PodInfo) -> Hashable | None:
        """Nothing for a pod that is not spread; the answers for one that is are as good as the last placement."""
        if pod.spec.topology_spread_constraints:
            return None
        if not self._defaults or self.handle.cluster.selector_sources.default_selector(pod.pod).empty:
            return ()
        return None

    # -- filter

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """Skip for a pod without hard constraints; otherwise how many pods each domain has."""
        try:
            constraints = self._of(pod, HARD)
        except SelectorError as error:
            return Status.error(f"get constraints from pod: obtaining pod's hard topology spread constraints: {error}")
        if not constraints:
            return Status.skip()
        state[self] = HardConstraints(
            HardConstraint(each, self._domains(each, pod), each.selector.matches(pod.labels)) for each in constraints
        )
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Another pod would be on the node."""
        self._change(state, pod, other, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Another pod would be gone from the node."""
        self._change(state, pod, other, node, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """The first constraint that the node does not meet decides."""
        constraints: HardConstraints = state[self]
        for hard in constraints.each:
            value = node.labels.get(hard.constraint.topology_key)
            if value is None:
                return MISSING_LABEL
            if hard.count(value) > hard.most:
                return TOO_SKEWED
        return None

    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Flags:
        """1: no such label. 2: too many pods in the domain."""
        constraints: HardConstraints = state[self]
        codes: Flags = np.zeros(nodes.size, dtype=np.uint8)
        for hard in constraints.each:
            _core.judge_domains(hard.domains.label.slots, hard.domains.counts, hard.most, codes, nodes.size)
        return codes

    def _change(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo, by: int) -> None:
        if other.namespace == pod.namespace:
            constraints: HardConstraints = state[self]
            constraints.change(other, node, by, self._constraints.comparison_operators)

    # -- score

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """Skip for a pod without soft constraints; otherwise how many pods each domain has, and what one weighs: the
        more domains, the more."""
        try:
            constraints = self._of(pod, SOFT)
        except SelectorError as error:
            return Status.error(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {error}")
        if not constraints or not self.handle.cluster.node_count:
            return Status.skip()
        rated = nodes.alive[: nodes.size]
        requires_all = bool(pod.spec.topology_spread_constraints) or not self._by_system
        if requires_all:
            for key in dict.fromkeys(each.topology_key for each in constraints):
                rated = rated & (nodes.label(key).slots[: nodes.size] >= 0)
        soft = [self._soft(each, pod, rated, nodes, requires_all=requires_all) for each in constraints]
        state[self, "score"] = SoftConstraints(soft, rated)
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
        """The weighted counts of the node's domains: the lower, the better."""
        constraints: SoftConstraints = state[self, "score"]
        if not constraints.rated[node.slot]:
            return 0
        total = 0.0
        for soft in constraints.each:
            if soft.constraint.topology_key in node.labels:
                total += float(soft.count(node, pod.namespace)) * soft.weight + float(soft.constraint.max_skew - 1)
        return rounded(total)

    def score_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Amounts:
        """The same, constraint by constraint."""
        constraints: SoftConstraints = state[self, "score"]
        sums = np.zeros(nodes.size, dtype=np.float64)
        for soft in constraints.each:
            label = nodes.label(soft.constraint.topology_key)
            plus = float(soft.constraint.max_skew - 1)
            _core.add_spread_scores(label.slots, soft.counts, soft.is_per_node, soft.weight, plus, sums, nodes.size)
        scores: Amounts = np.empty(nodes.size, dtype=np.int64)
        _core.round_sums(sums, constraints.rated, scores, nodes.size)
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: Amounts) -> Amounts:
        """The lowest score becomes the best; nodes that lack a label get 0."""
        constraints: SoftConstraints = state[self, "score"]
        table = self.handle.cluster.table
        rated = constraints.rated[table.alive[: table.size] != 0] != 0
        return np.array(normal(scores.tolist(), rated.tolist()), dtype=np.int64)

    def normalize_array(self, state: CycleState, pod: PodInfo, scores: Amounts, nodes: Table) -> Amounts:
        """The same over all slots."""
        constraints: SoftConstraints = state[self, "score"]
        out: Amounts = np.empty(nodes.size, dtype=np.int64)
        _core.normalize_spread(scores, nodes.alive, constraints.rated, out, nodes.size)
        return out

    def _soft(
        self, constraint: Constraint, pod: PodInfo, rated: Flags, nodes: Table, *, requires_all: bool
    ) -> SoftConstraint:
        cluster = self.handle.cluster
        label = nodes.label(constraint.topology_key)
        if constraint.topology_key == HOSTNAME:
            column = cluster.counts.get(frozenset((pod.namespace,)), constraint.counted, live_only=True)
            counts, size = column.slots, int(np.count_nonzero(rated))
        else:
            domains = self._domains(constraint, pod)
            counts = domains.counts
            room: Flags = np.empty(len(counts) - requires_all, dtype=np.uint8)
            absent = -1 if requires_all else domains.absent
            size = _core.distinct_domains(label.slots, rated, room, absent, nodes.size)
        return SoftConstraint(constraint, counts, label.values.ids, math.log(size + 2))

    # -- constraints and counts

    def _of(self, pod: PodInfo, action: str) -> tuple[Constraint, ...]:
        """The pod's own constraints or, if it has none whatever, the profile's."""
        if pod.spec.topology_spread_constraints:
            return self._constraints.of(pod, action)
        requires_all = action == HARD or not self._by_system
        return self._constraints.by_default(pod, self._defaults, action, requires_all=requires_all)

    def _domains(self, constraint: Constraint, pod: PodInfo) -> Domains:
        counts = self.handle.cluster.counts
        column = counts.get(frozenset((pod.namespace,)), constraint.counted, live_only=True)
        return counts.domains(column, constraint.topology_key, constraint.nodes)


def count_pods(node: NodeInfo, selector: Selector, namespace: str) -> int:
    """How many pods of a namespace on a node are selected; those that are being deleted do not count."""
    return sum(
        pod.namespace == namespace and not pod.pod.is_terminating and selector.matches(pod.labels)
        for pod in node.pods.values()
    )


def rounded(value: float) -> int:
    """The nearest whole number, halves away from zero (Python's `round` takes halves to the even one)."""
    whole = int(value)
    rest = value - whole
    return whole + (rest >= 0.5) - (rest <= -0.5)


def normal(scores: Sequence[int], rated: Sequence[bool]) -> list[int]:
    """Scores as 0..100, the lowest the best; 0 for nodes that are not rated."""
    counted = [score for score, is_rated in zip(scores, rated, strict=True) if is_rated]
    highest, lowest = max([0, *counted]), min(counted, default=0)
    return [
        0 if not is_rated else MAX_NODE_SCORE * (highest + lowest - score) // highest if highest else MAX_NODE_SCORE
        for score, is_rated in zip(scores, rated, strict=True)
    ]
