"""What PodTopologySpread has to say, worked out in the plainest way: every pod of every node is looked at each time.

Written from the rules, not from the plugin: nothing of its compiling, counting or caching is used here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ksched.cache.cluster import Cluster
from ksched.cache.node_info import NodeInfo
from ksched.cache.shapes import PodInfo
from ksched.model.pod import TopologySpreadConstraint
from ksched.model.selectors import (
    EVERYTHING,
    Selector,
    first_untolerated,
    label_selector,
    required_node_affinity,
    selector_of_labels,
)

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"

MISSING = (
    "UnschedulableAndUnresolvable",
    "node(s) didn't match pod topology spread constraints (missing required label)",
)
SKEWED = ("Unschedulable", "node(s) didn't match pod topology spread constraints")

SYSTEM = [
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable="ScheduleAnyway"),
]

Verdict = tuple[str, str] | None


@dataclass
class Rule:
    """A constraint and its selector."""

    written: TopologySpreadConstraint
    selector: Selector


def rules(
    pod: PodInfo, action: str, defaults: Sequence[TopologySpreadConstraint], default_selector: Selector
) -> list[Rule]:
    """The constraints with an action that hold for a pod."""
    if pod.spec.topology_spread_constraints:
        return [
            Rule(each, own_selector(each, pod))
            for each in pod.spec.topology_spread_constraints
            if each.when_unsatisfiable == action
        ]
    if default_selector == EVERYTHING:
        return []
    return [Rule(each, default_selector) for each in defaults if each.when_unsatisfiable == action]


def own_selector(constraint: TopologySpreadConstraint, pod: PodInfo) -> Selector:
    """The constraint's selector, narrowed to the pod's own values of `matchLabelKeys`."""
    selector = label_selector(constraint.label_selector)
    values = {key: pod.labels[key] for key in constraint.match_label_keys if key in pod.labels}
    if selector.selects_nothing or not values:
        return selector
    return Selector((*selector.requirements, *selector_of_labels(values).requirements))


def counts_on(node: NodeInfo, selector: Selector, namespace: str) -> int:
    """The pods of a node that count."""
    if selector.empty:
        return 0
    return sum(
        1
        for other in node.pods.values()
        if other.namespace == namespace
        and other.pod.metadata.deletion_timestamp is None
        and selector.matches(other.labels)
    )


def includes(rule: Rule, pod: PodInfo, node: NodeInfo) -> bool:
    """Whether the pods of a node count at all."""
    if rule.written.node_affinity_policy != "Ignore" and not required_node_affinity(pod.pod).matches(
        node.labels, node.name
    ):
        return False
    return (
        rule.written.node_taints_policy != "Honor"
        or first_untolerated(node.taints, pod.spec.tolerations, False) is None
    )


class Hard:
    """Filtering for one pod."""

    def __init__(self, here: Cluster, pod: PodInfo, found: list[Rule]) -> None:
        self.pod = pod
        self.rules = found
        self.counts: list[Counter[str]] = [Counter() for _ in found]
        for node in here.nodes():
            if self._has_all_keys(node):
                for rule, counts in zip(found, self.counts, strict=True):
                    if includes(rule, pod, node):
                        value = node.labels[rule.written.topology_key]
                        counts[value] += counts_on(node, rule.selector, pod.namespace)

    def change(self, other: PodInfo, node: NodeInfo, by: int) -> None:
        """AddPod and RemovePod."""
        if other.namespace != self.pod.namespace or not self._has_all_keys(node):
            return
        for rule, counts in zip(self.rules, self.counts, strict=True):
            if rule.selector.matches(other.labels) and includes(rule, self.pod, node):
                counts[node.labels[rule.written.topology_key]] += by

    def verdict(self, node: NodeInfo) -> Verdict:
        for rule, counts in zip(self.rules, self.counts, strict=True):
            value = node.labels.get(rule.written.topology_key)
            if value is None:
                return MISSING
            fewest = 0 if len(counts) < (rule.written.min_domains or 1) else min(counts.values(), default=0)
            itself = int(rule.selector.matches(self.pod.labels))
            if counts.get(value, 0) + itself - fewest > rule.written.max_skew:
                return SKEWED
        return None

    def _has_all_keys(self, node: NodeInfo) -> bool:
        return all(rule.written.topology_key in node.labels for rule in self.rules)


def raw_scores(
    here: Cluster, pod: PodInfo, found: list[Rule], feasible: Collection[NodeInfo], requires_all: bool
) -> tuple[dict[str, int], set[str]]:
    """Scores before normalisation by node name, and the names of the nodes that are ignored."""
    ignored = {
        node.name
        for node in feasible
        if requires_all and any(rule.written.topology_key not in node.labels for rule in found)
    }
    rated = [node for node in feasible if node.name not in ignored]
    registered = [{node.labels.get(rule.written.topology_key, "") for node in rated} for rule in found]
    counts: list[Counter[str]] = [Counter() for _ in found]
    for node in here.nodes():
        if requires_all and any(rule.written.topology_key not in node.labels for rule in found):
            continue
        for rule, values, sums in zip(found, registered, counts, strict=True):
            value = node.labels.get(rule.written.topology_key, "")
            if value in values and includes(rule, pod, node):
                sums[value] += counts_on(node, rule.selector, pod.namespace)
    scores = dict.fromkeys(ignored, 0)
    for node in rated:
        total = 0.0
        for rule, values, sums in zip(found, registered, counts, strict=True):
            key = rule.written.topology_key
            if key not in node.labels:
                continue
            host = key == HOSTNAME
            size = len(rated) if host else len(values)
            count = counts_on(node, rule.selector, pod.namespace) if host else sums[node.labels[key]]
            total = total + (float(count) * math.log(size + 2) + float(rule.written.max_skew - 1))
        scores[node.name] = math.floor(Fraction(total) + Fraction(1, 2))
    return scores, ignored


def normalized(scores: Mapping[str, int], ignored: Collection[str]) -> dict[str, int]:
    """Scores as 0..100."""
    rated = [score for name, score in scores.items() if name not in ignored]
    highest = max([0, *rated])
    return {
        name: 0 if name in ignored else 100 if highest == 0 else 100 * (highest + min(rated) - score) // highest
        for name, score in scores.items()
    }
