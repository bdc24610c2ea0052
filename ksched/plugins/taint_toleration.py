"""TaintToleration: taints keep away the pods that do not tolerate them, or make their node less liked.

Nodes with the same list of taints share an id in the table, so the array forms ask once per distinct list and gather.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ksched.cache.table import Amounts, Flags
from ksched.framework import (
    ArrayFilterPlugin,
    ArrayScorePlugin,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Normalization,
    PodInfo,
    PreScorePlugin,
    Scope,
    ScorePlugin,
    Status,
    Table,
)
from ksched.model.node import Taint
from ksched.model.pod import Toleration
from ksched.model.selectors import first_untolerated, is_tolerated

REASON = Status.unresolvable("node(s) had untolerated taint(s)")

MAKES_LESS_LIKED = "PreferNoSchedule"


class TaintToleration(FilterPlugin, ArrayFilterPlugin, PreScorePlugin, ScorePlugin, ArrayScorePlugin):
    """Turn down nodes with a NoSchedule or NoExecute taint that is not tolerated; count PreferNoSchedule ones against
    the rest."""

    name = "TaintToleration"
    scope = Scope.STATIC
    shape_decides = True
    normalization = Normalization.REVERSED_MAX
    reasons = (REASON,)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Keep a node all of whose do-not-schedule taints are tolerated."""
        return None if self._admits(pod.spec.tolerations, node.taints) else REASON

    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Flags | None:
        """One answer per distinct list of taints."""
        answers = self._per_list(pod, nodes, "filter", lambda taints: not self._admits(pod.spec.tolerations, taints))
        if not answers.any():
            return None
        return answers.astype(np.uint8)[nodes.taint_set[: nodes.size]]

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """Only tolerations that may speak of PreferNoSchedule count; never Skip, as upstream."""
        state[self] = [toleration for toleration in pod.spec.tolerations if toleration.effect in ("", MAKES_LESS_LIKED)]
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
        """The number of PreferNoSchedule taints that are not tolerated."""
        return self._disliked(state[self], node.taints)

    def score_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Amounts:
        """One count per distinct list of taints."""
        tolerations: Sequence[Toleration] = state[self]
        counts = self._per_list(pod, nodes, "score", lambda taints: self._disliked(tolerations, taints))
        return counts[nodes.taint_set[: nodes.size]]

    def _admits(self, tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> bool:
        return first_untolerated(taints, tolerations, self._comparison) is None

    def _disliked(self, tolerations: Sequence[Toleration], taints: Sequence[Taint]) -> int:
        return sum(
            taint.effect == MAKES_LESS_LIKED and not is_tolerated(taint, tolerations, self._comparison)
            for taint in taints
        )

    @property
    def _comparison(self) -> bool:
        return self.handle.gates.enabled("TaintTolerationComparisonOperators")

    def _per_list(
        self, pod: PodInfo, nodes: Table, question: str, answer: Callable[[tuple[Taint, ...]], int]
    ) -> Amounts:
        """`answer` for every distinct list of taints; kept with the pod's shape, since tolerations are part of it, and
        lists only ever come to be."""
        known: Amounts = pod.shape.memo.get((self, question), np.zeros(0, dtype=np.int64))
        lists = nodes.taint_sets.values
        if len(known) < len(lists):
            new = np.array([answer(taints) for taints in lists[len(known) :]], dtype=np.int64)
            known = pod.shape.memo[self, question] = np.concatenate([known, new])
        return known
