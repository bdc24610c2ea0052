"""InterPodAffinity: pods near to, or away from, other pods.

Three things count per topology pair (a label key of nodes and a value of it): placed pods that the pod wants near,
placed pods that it wants away, and placed pods that want this one away. Up to date counts are kept in `cache.counts`
(by selector) and `cache.terms` (by the terms of placed pods); a what-if keeps its changes in the cycle's state. The
per-node forms work the same out by looking at every placed pod.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from msgspec import Struct

from ksched import _core
from ksched.cache.cluster import Cluster
from ksched.cache.counts import Namespaces
from ksched.cache.domains import Domains
from ksched.cache.shapes import PodInfo
from ksched.cache.table import Amounts, Flags
from ksched.cache.terms import has_pods, terms_of
from ksched.config.args import InterPodAffinityArgs
from ksched.framework import (
    ArrayFilterPlugin,
    ArrayScorePlugin,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Normalization,
    PreFilterPlugin,
    PreScorePlugin,
    Scope,
    ScorePlugin,
    Status,
    Table,
)
from ksched.model.pod_affinity import Term, Weighted, match_all
from ksched.model.selectors import NOTHING, Labels, Selector

AFFINITY = Status.unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY = Status.unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = Status.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

Pair = tuple[str, str]
"""A topology key and a value of it."""


class InterPodAffinity(PreFilterPlugin, FilterPlugin, ArrayFilterPlugin, PreScorePlugin, ScorePlugin, ArrayScorePlugin):
    """Turn down nodes whose topology domains have the wrong pods; prefer those whose domains have the right ones."""

    name = "InterPodAffinity"
    scope = Scope.CLUSTER
    Args = InterPodAffinityArgs
    normalization = Normalization.CUSTOM
    reasons = (AFFINITY, ANTI_AFFINITY, EXISTING_ANTI_AFFINITY)

    def key(self, pod: PodInfo) -> Hashable | None:
        """Nothing for a pod that is not about others, nor others about it; the answers for any other are as good as the
        last placement."""
        if not terms_of(pod).none:
            return None
        said = self.handle.cluster.terms.towards(pod.namespace, pod.labels)
        if said.required_anti:
            return None
        scored = said.preferred or (said.required and self.args.hard_pod_affinity_weight > 0)
        return None if scored and not self.args.ignore_preferred_terms_of_existing_pods else ()

    # -- filter

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """Count what matters; Skip where nothing does."""
        terms = terms_of(pod)
        if terms.error:
            return Status.unresolvable(f"parsing pod: {terms.error}")
        met = self._counted(pod)
        state[self, "counted"] = met
        if not self.native:
            met = self._scanned(pod)
        if not terms.required and not terms.required_anti and met.existing.empty:
            return Status.skip()
        state[self] = met
        return None

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Another pod would be on the node."""
        met: Met = state[self]
        met.change(other, node, 1)

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """Another pod would be gone from the node."""
        met: Met = state[self]
        met.change(other, node, -1)

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """The pod's affinity first, then its anti-affinity, then the anti-affinity of placed pods."""
        met: Met = state[self]
        labels = node.labels
        if any(term.topology_key not in labels for term in met.own.required):
            return AFFINITY
        near = all(met.near.count(term.topology_key, labels[term.topology_key]) > 0 for term in met.own.required)
        if not near and not met.may_be_first:
            return AFFINITY
        for term in met.own.required_anti:
            value = labels.get(term.topology_key)
            if value is not None and met.away.count(term.topology_key, value) > 0:
                return ANTI_AFFINITY
        if any(met.existing.count(key, value) > 0 for key, value in labels.items()):
            return EXISTING_ANTI_AFFINITY
        return None

    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Flags:
        """1: affinity. 2: anti-affinity. 3: anti-affinity of placed pods."""
        met: Met = state[self, "counted"]
        codes: Flags = np.zeros(nodes.size, dtype=np.uint8)
        least = 0 if met.own.required and met.may_be_first else 1
        for _, domains in met.near.sources:
            _core.require_domains(domains.label.slots, domains.counts, least, 1, codes, nodes.size)
        for code, pairs in ((2, met.away), (3, met.existing)):
            for _, domains in pairs.sources:
                _core.avoid_domains(domains.label.slots, domains.counts, code, codes, nodes.size)
        return codes

    # -- score

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """Add up the weights of terms per topology pair; Skip where there are none."""
        if self.args.ignore_preferred_terms_of_existing_pods and not _prefers(pod):
            return Status.skip()
        terms = terms_of(pod)
        if terms.error:
            return Status.error(f"failed to parse pod: {terms.error}")
        weighed = PairCounts(self._weighed(pod))
        state[self, "weighed"] = weighed
        if not self.native:
            weighed = PairCounts((), self._weighed_by_scan(pod))
        if not weighed.sources and not weighed.changes:
            return Status.skip()
        state[self, "score"] = weighed
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
        """The weights of the node's topology pairs."""
        weighed: PairCounts = state[self, "score"]
        return sum(weighed.count(key, value) for key, value in node.labels.items())

    def score_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Amounts:
        """The same, term by term."""
        weighed: PairCounts = state[self, "weighed"]
        scores: Amounts = np.zeros(nodes.size, dtype=np.int64)
        for weight, domains in weighed.sources:
            _core.add_affinity_scores(domains.label.slots, domains.counts, weight, scores, nodes.size)
        return scores

    def normalize(self, state: CycleState, pod: PodInfo, scores: Amounts) -> Amounts:
        """0..100 between the lowest and the highest score."""
        return np.array(normal(scores.tolist()), dtype=np.int64)

    def normalize_array(self, state: CycleState, pod: PodInfo, scores: Amounts, nodes: Table) -> Amounts:
        """The same over all slots."""
        out: Amounts = np.empty(nodes.size, dtype=np.int64)
        _core.normalize_between(scores, nodes.alive, out, nodes.size)
        return out

    # -- from counts that are kept up to date

    def _counted(self, pod: PodInfo) -> Met:
        cluster = self.handle.cluster
        own = self._own(pod)
        said = cluster.terms.towards(pod.namespace, pod.labels)
        return Met(
            pod,
            own,
            cluster.namespaces.get(pod.namespace, {}),
            PairCounts([(1, asked.domains(cluster)) for asked in own.near]),
            PairCounts([(1, asked.domains(cluster)) for asked in own.away]),
            PairCounts([(1, column.domains) for column in said.required_anti]),
        )

    def _weighed(self, pod: PodInfo) -> list[tuple[int, Domains]]:
        """Weights and the counts that they are multiplied with; without those that have no pod."""
        cluster = self.handle.cluster
        said = cluster.terms.towards(pod.namespace, pod.labels)
        hard: int = self.args.hard_pod_affinity_weight
        found = [(weight, asked.domains(cluster)) for weight, asked in self._own(pod).liked]
        if hard > 0:
            found += [(hard, column.domains) for column in said.required]
        found += [(column.weight, column.domains) for column in said.preferred]
        return [(weight, domains) for weight, domains in found if has_pods(domains)]

    def _own(self, pod: PodInfo) -> Own:
        """The pod's terms, given the namespaces there are; worked out once for all its copies."""
        cluster = self.handle.cluster
        known: tuple[int, Own] | None = pod.shape.memo.get((self, pod.namespace))
        if known is None or known[0] != cluster.namespace_version:
            terms = terms_of(pod)
            own = own_terms(
                [term.among(cluster.namespaces) for term in terms.required],
                [term.among(cluster.namespaces) for term in terms.required_anti],
                [(weight, term.among(cluster.namespaces)) for weight, term in terms.preferred],
            )
            known = pod.shape.memo[self, pod.namespace] = cluster.namespace_version, own
        return known[1]

    # -- from every placed pod

    def _scanned(self, pod: PodInfo) -> Met:
        cluster = self.handle.cluster
        labels = cluster.namespaces.get(pod.namespace, {})
        met = Met(pod, self._own(pod), labels, PairCounts(()), PairCounts(()), PairCounts(()))
        for node in cluster.nodes():
            for other in node.pods.values():
                met.change(other, node, 1)
        return met

    def _weighed_by_scan(self, pod: PodInfo) -> dict[Pair, int]:
        """Pairs stay in it that come to 0."""
        cluster = self.handle.cluster
        own, labels = self._own(pod), cluster.namespaces.get(pod.namespace, {})
        hard: int = self.args.hard_pod_affinity_weight
        sums: dict[Pair, int] = {}
        for node in cluster.nodes():
            for other in node.pods.values():
                theirs = terms_of(other)
                found = [each for each in own.preferred if each[1].matches(other.namespace, other.labels, {})]
                meant = [*((hard, term) for term in theirs.required if hard > 0), *theirs.preferred]
                found += [each for each in meant if each[1].matches(pod.namespace, pod.labels, labels)]
                for weight, term in found:
                    if term.topology_key in node.labels:
                        pair = term.topology_key, node.labels[term.topology_key]
                        sums[pair] = sums.get(pair, 0) + weight
        return sums


class PairCounts:
    """A number per topology pair: weighted counts that are kept elsewhere, and what is known beside."""

    __slots__ = ("changes", "sources")

    def __init__(self, sources: Sequence[tuple[int, Domains]], changes: dict[Pair, int] | None = None) -> None:
        self.sources = sources
        self.changes: dict[Pair, int] = {} if changes is None else changes

    def clone(self) -> PairCounts:
        """A copy for a what-if."""
        return PairCounts(self.sources, dict(self.changes))

    def count(self, key: str, value: str) -> int:
        """The number of a pair."""
        total = self.changes.get((key, value), 0)
        for weight, domains in self.sources:
            if domains.label.key == key:
                domain = domains.label.values.ids.get(value)
                total += 0 if domain is None else weight * int(domains.counts[domain])
        return total

    def add(self, key: str, value: str, by: int) -> None:
        """Change the number of a pair."""
        changed = self.changes.get((key, value), 0) + by
        if changed:
            self.changes[key, value] = changed
        else:
            del self.changes[key, value]

    @property
    def empty(self) -> bool:
        """Whether every number is 0."""
        if not self.changes:
            return not any(has_pods(domains) for _, domains in self.sources)
        return not any(self.count(key, value) for key, value in {*self.changes, *self._counted_pairs()})

    def _counted_pairs(self) -> Iterable[Pair]:
        for _, domains in self.sources:
            values = domains.label.values.values
            for domain in np.flatnonzero(domains.counts[: len(values)]).tolist():
                yield domains.label.key, values[domain]


class Met:
    """What a pod that waits meets: counts of the pods that it wants near, of those that it wants away (once for each
    term), and of the terms of placed pods that want it away."""

    __slots__ = ("away", "existing", "namespace_labels", "near", "own", "pod")

    def __init__(
        self, pod: PodInfo, own: Own, namespace_labels: Labels, near: PairCounts, away: PairCounts, existing: PairCounts
    ) -> None:
        self.pod = pod
        self.own = own
        self.namespace_labels = namespace_labels
        self.near = near
        self.away = away
        self.existing = existing

    def clone(self) -> Met:
        """A copy for a what-if."""
        return Met(
            self.pod,
            self.own,
            self.namespace_labels,
            self.near.clone(),
            self.away.clone(),
            self.existing.clone(),
        )

    @property
    def may_be_first(self) -> bool:
        """Whether the pod may begin a group: nobody is there to be near to, and it would do itself."""
        return self.near.empty and match_all(self.own.required, self.pod.namespace, self.pod.labels)

    def change(self, other: PodInfo, node: NodeInfo, by: int) -> None:
        """Another pod comes to a node, or leaves it."""
        for term in terms_of(other).required_anti:
            if term.matches(self.pod.namespace, self.pod.labels, self.namespace_labels):
                _count(self.existing, term, node, by)
        if match_all(self.own.required, other.namespace, other.labels):
            for term in self.own.required:
                _count(self.near, term, node, by)
        for term in self.own.required_anti:
            if term.matches(other.namespace, other.labels, {}):
                _count(self.away, term, node, by)


def _count(pairs: PairCounts, term: Term, node: NodeInfo, by: int) -> None:
    value = node.labels.get(term.topology_key)
    if value is not None:
        pairs.add(term.topology_key, value, by)


class Asked(Struct, frozen=True):
    """Pods to be counted per value of a label."""

    topology_key: str
    namespaces: Namespaces
    selector: Selector

    def domains(self, cluster: Cluster) -> Domains:
        """Their counts, up to date."""
        column = cluster.counts.get(self.namespaces, self.selector)
        return cluster.counts.domains(column, self.topology_key, cluster.terms.labelled(self.topology_key))


class Own(Struct, frozen=True):
    """The terms of a pod that waits, and what has to be counted for them."""

    required: tuple[Term, ...]
    required_anti: tuple[Term, ...]
    preferred: tuple[Weighted, ...]
    near: tuple[Asked, ...]
    away: tuple[Asked, ...]
    liked: tuple[tuple[int, Asked], ...]


def own_terms(required: Sequence[Term], required_anti: Sequence[Term], preferred: Sequence[Weighted]) -> Own:
    """A pod that is wanted near must be meant by all required terms; each of the others counts for itself."""
    namespaces, selector = _all_of(required)
    return Own(
        tuple(required),
        tuple(required_anti),
        tuple(preferred),
        tuple(Asked(term.topology_key, namespaces, selector) for term in required),
        tuple(_asked(term) for term in required_anti),
        tuple((weight, _asked(term)) for weight, term in preferred),
    )


def _asked(term: Term) -> Asked:
    return Asked(term.topology_key, term.counted_namespaces, term.selector)


def _all_of(terms: Sequence[Term]) -> tuple[Namespaces, Selector]:
    """The namespaces and the selector of pods that all terms mean."""
    namespaces: Namespaces = None
    for named in (term.counted_namespaces for term in terms):
        namespaces = named if namespaces is None else namespaces if named is None else namespaces & named
    if any(term.selector.selects_nothing for term in terms):
        return namespaces, NOTHING
    requirements = dict.fromkeys(requirement for term in terms for requirement in term.selector.requirements)
    return namespaces, Selector(tuple(requirements))


def _prefers(pod: PodInfo) -> bool:
    """Whether the pod has preferences, be they malformed."""
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    return any(each is not None and each.preferred for each in (affinity.pod_affinity, affinity.pod_anti_affinity))


def normal(scores: Sequence[int]) -> list[int]:
    """Scores as 0..100. The division comes first, as in kube-scheduler: 29 of 100 is 28."""
    lowest, highest = min(scores, default=0), max(scores, default=0)
    if highest == lowest:
        return [0] * len(scores)
    return [int(100.0 * (float(score - lowest) / float(highest - lowest))) for score in scores]
