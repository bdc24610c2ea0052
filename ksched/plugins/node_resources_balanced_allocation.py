"""NodeResourcesBalancedAllocation: nodes on which the pod evens out how much of each resource is used.

The score compares the balance with the pod and without it, which is upstream's form since 1.35; 75 means that the pod
changes nothing. Floating-point steps are in upstream's order, because a total that differs in the last bit truncates to
another score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ksched import _core
from ksched.cache.table import Amounts, Codes, Flags, column
from ksched.config.args import NodeResourcesBalancedAllocationArgs
from ksched.framework import (
    ArrayScorePlugin,
    CycleState,
    Handle,
    NodeInfo,
    PodInfo,
    PreScorePlugin,
    Scope,
    ScorePlugin,
    Status,
    Table,
)
from ksched.model.int64 import divided, wrapped
from ksched.model.requests import balance_requests
from ksched.model.resource_names import is_scalar


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin, ArrayScorePlugin):
    """50 + (50 + balance with the pod - balance without it) / 2, where balance is 100 less the standard deviation of
    the used shares."""

    name = "NodeResourcesBalancedAllocation"
    scope = Scope.NODE
    shape_decides = True
    Args = NodeResourcesBalancedAllocationArgs

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._resources = tuple(spec.name for spec in args.resources)
        self._scores: Amounts = column(np.int64, handle.cluster.table.max_nodes)

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """Skip for a pod that asks for none of the configured resources."""
        asked: dict[str, int] | None = pod.shape.memo.get((self, "asked"))
        if asked is None:
            asked = pod.shape.memo[self, "asked"] = balance_requests(
                pod.pod, self.handle.cluster.shapes.rules, self._resources
            )
        if not any(asked.values()):
            return Status.skip()
        state[self] = asked
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
        """The rule for one node."""
        asked: dict[str, int] = state[self]
        present = [
            (name, room)
            for name in self._resources
            if (asked[name] or not is_scalar(name)) and (room := node.allocatable(name)) != 0
        ]
        with_pod = balance(
            [min(float(wrapped(node.requested(name) + asked[name])) / float(room), 1.0) for name, room in present]
        )
        without = balance([min(float(node.requested(name)) / float(room), 1.0) for name, room in present])
        return 50 + divided(50 + with_pod - without, 2)

    def score_rule(self, state: CycleState, pod: PodInfo, nodes: Table) -> _core.ScoreRule:
        """The native rule; a bypassed resource has no weight."""
        rows, amounts, bypassed = self._rows(pod, nodes, state[self])
        return _core.BalancedScore(nodes.resources, rows, amounts, 1 - bypassed.astype(np.int64))

    def score_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Amounts:
        """The same for all nodes in one native pass."""
        rows, amounts, bypassed = self._rows(pod, nodes, state[self])
        nodes.resources.score_balanced(rows, amounts, bypassed, self._scores, nodes.size)
        return self._scores

    def _rows(self, pod: PodInfo, nodes: Table, asked: dict[str, int]) -> tuple[Codes, Amounts, Flags]:
        known = pod.shape.memo.get((self, "rows"))
        if known is None or known[0] != len(nodes.rows):  # a resource that no node had may have come to be
            names = [name for name in self._resources if name in nodes.rows]
            rows = np.array([nodes.rows[name] for name in names], dtype=np.int32)
            amounts = np.array([asked[name] for name in names], dtype=np.int64)
            bypassed = np.array([not asked[name] and is_scalar(name) for name in names], dtype=np.uint8)
            known = pod.shape.memo[self, "rows"] = (len(nodes.rows), (rows, amounts, bypassed))
        found: tuple[Codes, Amounts, Flags] = known[1]
        return found


def balance(shares: Sequence[float]) -> int:
    """100 when all shares are the same, less the further they lie apart; truncated."""
    return int((1.0 - deviation(shares)) * 100.0)


def deviation(shares: Sequence[float]) -> float:
    """The standard deviation; two shares are subtracted, halved and made positive, more are added up from the left."""
    if len(shares) < 2:
        return 0.0
    if len(shares) == 2:
        return abs((shares[0] - shares[1]) / 2.0)
    total = 0.0
    for share in shares:
        total += share
    mean = total / len(shares)
    squares = 0.0
    for share in shares:
        squares += (share - mean) * (share - mean)
    return math.sqrt(squares / len(shares))
