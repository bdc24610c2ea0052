"""Topology spread constraints, compiled: whose pods count, on which nodes, and how uneven they may be.

What a pod writes is compiled once per shape; `matchLabelKeys` and default constraints add what its labels and the
cluster's services say. How constraints are applied is `pod_topology_spread`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
from msgspec import Struct

from ksched.cache.cluster import Cluster
from ksched.cache.domains import NodeSet
from ksched.cache.node_info import NodeInfo
from ksched.cache.shapes import PodInfo
from ksched.cache.table import Flags
from ksched.model.pod import Toleration, TopologySpreadConstraint
from ksched.model.selectors import (
    NOTHING,
    Labels,
    RequiredNodeAffinity,
    Selector,
    first_untolerated,
    label_selector,
    required_node_affinity,
    selector_of_labels,
)
from ksched.plugins.node_masks import required_mask, untainted_mask

HOSTNAME: Final = "kubernetes.io/hostname"

HARD: Final = "DoNotSchedule"
SOFT: Final = "ScheduleAnyway"

SYSTEM_DEFAULTS: Final = (
    TopologySpreadConstraint(topology_key=HOSTNAME, when_unsatisfiable=SOFT, max_skew=3),
    TopologySpreadConstraint(topology_key="topology.kubernetes.io/zone", when_unsatisfiable=SOFT, max_skew=5),
)

ANYWHERE: Final = RequiredNodeAffinity()

MOST_NODE_SETS = 1_000
"""Distinct sets of nodes that are remembered; beyond that remembering starts afresh."""

MOST_PER_SHAPE = 64
"""Compiled constraints that a shape remembers, one for each set of values of its `matchLabelKeys`."""


class Inclusion(Struct, frozen=True):
    """Which nodes' pods a constraint counts: those that the pod may run on by its affinity, and by its tolerations;
    None where that does not matter."""

    required: RequiredNodeAffinity | None
    tolerations: tuple[Toleration, ...] | None

    def accepts(self, node: NodeInfo, comparison_operators: bool) -> bool:
        """Whether a node's pods count."""
        if self.required is not None and not self.required.matches(node.labels, node.name):
            return False
        return (
            self.tolerations is None or first_untolerated(node.taints, self.tolerations, comparison_operators) is None
        )


class Constraint(Struct, frozen=True, eq=False):
    """One constraint. `counted` selects the pods that are counted when a node is looked at anew: none for a selector
    that selects everything, as upstream. `nodes` are those whose pods count."""

    topology_key: str
    max_skew: int
    min_domains: int
    selector: Selector
    counted: Selector
    inclusion: Inclusion
    nodes: NodeSet


class Constraints:
    """Compiles constraints, and remembers the sets of nodes that they speak of."""

    def __init__(self, cluster: Cluster, *, comparison_operators: bool, match_label_keys: bool) -> None:
        self.comparison_operators = comparison_operators
        self._cluster = cluster
        self._match_label_keys = match_label_keys
        self._node_sets: dict[bytes, NodeSet] = {}
        self._encode = msgspec.msgpack.Encoder().encode

    def of(self, pod: PodInfo, action: str) -> tuple[Constraint, ...]:
        """The pod's own constraints with one action. Raises SelectorError."""
        written = pod.spec.topology_spread_constraints
        if not any(constraint.when_unsatisfiable == action for constraint in written):
            return ()
        return self._remembered(
            pod,
            (action, self._own_values(pod, written)),
            lambda: self._compile(pod, written, action, None, requires_all=True),
        )

    def by_default(
        self, pod: PodInfo, written: Sequence[TopologySpreadConstraint], action: str, *, requires_all: bool
    ) -> tuple[Constraint, ...]:
        """The profile's constraints with one action, for a pod that has none of its own and belongs to something."""
        if not any(constraint.when_unsatisfiable == action for constraint in written):
            return ()
        selector = self._cluster.selector_sources.default_selector(pod.pod)
        if selector.empty:
            return ()
        return self._remembered(
            pod,
            (action, selector),
            lambda: self._compile(pod, written, action, selector, requires_all=requires_all),
        )

    def _remembered(
        self, pod: PodInfo, key: object, compiled: Callable[[], tuple[Constraint, ...]]
    ) -> tuple[Constraint, ...]:
        if pod.pinned:
            return compiled()  # the nodes that such a pod names are not part of its shape
        known: dict[object, tuple[Constraint, ...]] = pod.shape.memo.setdefault(self, {})
        found = known.get(key)
        if found is None:
            if len(known) >= MOST_PER_SHAPE:
                known.clear()
            found = known[key] = compiled()
        return found

    def _own_values(self, pod: PodInfo, written: Iterable[TopologySpreadConstraint]) -> tuple[str | None, ...]:
        """What the pod's labels add to its constraints by `matchLabelKeys`."""
        if not self._match_label_keys:
            return ()
        return tuple(pod.labels.get(key) for constraint in written for key in constraint.match_label_keys)

    def _compile(
        self,
        pod: PodInfo,
        written: Iterable[TopologySpreadConstraint],
        action: str,
        selector: Selector | None,
        *,
        requires_all: bool,
    ) -> tuple[Constraint, ...]:
        wanted = [constraint for constraint in written if constraint.when_unsatisfiable == action]
        keys = tuple(sorted({constraint.topology_key for constraint in wanted})) if requires_all else ()
        required: RequiredNodeAffinity | None = required_node_affinity(pod.pod)
        if required == ANYWHERE:
            required = None
        tolerations = tuple(pod.spec.tolerations)
        compiled = []
        for constraint in wanted:
            selects = self._selector(constraint, pod.labels) if selector is None else selector
            inclusion = Inclusion(
                required if constraint.node_affinity_policy in (None, "Honor") else None,
                tolerations if constraint.node_taints_policy == "Honor" else None,
            )
            compiled.append(
                Constraint(
                    topology_key=constraint.topology_key,
                    max_skew=constraint.max_skew,
                    min_domains=1 if constraint.min_domains is None else constraint.min_domains,
                    selector=selects,
                    counted=NOTHING if selects.empty else selects,
                    inclusion=inclusion,
                    nodes=self._node_set(keys, pod, inclusion),
                )
            )
        return tuple(compiled)

    def _selector(self, constraint: TopologySpreadConstraint, labels: Labels) -> Selector:
        selector = label_selector(constraint.label_selector)
        if not self._match_label_keys or selector.selects_nothing:
            return selector
        own = {key: labels[key] for key in constraint.match_label_keys if key in labels}
        if not own:
            return selector
        return Selector(tuple(dict.fromkeys((*selector_of_labels(own).requirements, *selector.requirements))))

    # -- sets of nodes

    def _node_set(self, keys: tuple[str, ...], pod: PodInfo, inclusion: Inclusion) -> NodeSet:
        """The nodes that have all keys and that the inclusion accepts; the same object for the same question."""
        question = self._encode(
            (
                keys,
                _written_affinity(pod) if inclusion.required is not None else None,
                inclusion.tolerations,
            )
        )
        found = self._node_sets.get(question)
        if found is None:
            if len(self._node_sets) >= MOST_NODE_SETS:
                self._node_sets.clear()
            found = self._node_sets[question] = NodeSet(lambda: self._flags(keys, inclusion))
        return found

    def _flags(self, keys: tuple[str, ...], inclusion: Inclusion) -> Flags:
        table = self._cluster.table
        included = table.present[: table.size] != 0
        for key in keys:
            included &= table.label(key).slots[: table.size] >= 0
        if inclusion.required is not None:
            included &= required_mask(inclusion.required, self._cluster)
        if inclusion.tolerations is not None:
            included &= untainted_mask(inclusion.tolerations, self.comparison_operators, self._cluster)
        flags: Flags = included.view(np.uint8)
        return flags


def _written_affinity(pod: PodInfo) -> tuple[object, object]:
    affinity = pod.spec.affinity
    node_affinity = None if affinity is None else affinity.node_affinity
    return pod.spec.node_selector, None if node_affinity is None else node_affinity.required
