"""NodeAffinity: the nodes that a pod (or the profile, by `addedAffinity`) requires, and those that it prefers.

The array forms see terms as masks over all nodes (`node_masks`).
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np

from ksched.cache.table import Amounts, Flags
from ksched.config.args import NodeAffinityArgs
from ksched.errors import ConfigurationError, SelectorError
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
from ksched.model.objects import NodeSelector
from ksched.model.pod import NodeAffinity as NodeAffinityTerms
from ksched.model.selectors import (
    NODE_NAME_FIELD,
    NodeTerms,
    PreferredTerms,
    RequiredNodeAffinity,
    preferred_terms,
    required_node_affinity,
    strict_node_selector,
)
from ksched.plugins.node_masks import any_term_mask, required_mask, term_mask

ENFORCED = Status.unresolvable("node(s) didn't match scheduler-enforced node affinity")
REASON = Status.unresolvable("node(s) didn't match Pod's node affinity/selector")
CONFLICT = Status.unresolvable("pod affinity terms conflict")


class NodeAffinity(PreFilterPlugin, FilterPlugin, ArrayFilterPlugin, PreScorePlugin, ScorePlugin, ArrayScorePlugin):
    """Turn down nodes that `nodeSelector` or required affinity does not match; sum up the weights of the preferred
    terms that match."""

    name = "NodeAffinity"
    scope = Scope.STATIC
    Args = NodeAffinityArgs
    normalization = Normalization.MAX
    reasons = (ENFORCED, REASON)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        added: NodeAffinityTerms = args.added_affinity or NodeAffinityTerms()
        self._added_required: NodeTerms | None = None
        self._added_preferred: PreferredTerms | None = None
        try:
            where = "required"
            if added.required is not None:
                self._added_required = strict_node_selector(added.required)
            where = "preferred"
            if added.preferred is not None:
                self._added_preferred = preferred_terms(added.preferred)
        except SelectorError as error:
            raise ConfigurationError(
                f"parsing addedAffinity.{where}DuringSchedulingIgnoredDuringExecution: {error}"
            ) from error

    def key(self, pod: PodInfo) -> Hashable | None:
        """Nothing beyond the pod's shape, unless it names its nodes, which its shape does not."""
        return None if pod.pinned else ()

    # -- filter

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Table) -> frozenset[str] | Status | None:
        """Skip for a pod without requirements; narrow the search where every term names its nodes."""
        required = _required_of(pod)
        if required is None and self._added_required is None and pod.spec.node_selector is None:
            return Status.skip()
        state[self] = self._compiled(pod)
        if required is None or not required.node_selector_terms:
            return None
        names = named_nodes(required)
        if names is None:
            return None
        return names or CONFLICT

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """The profile's requirement first, then the pod's own."""
        if self._added_required is not None and not self._added_required.matches(node.labels, node.name):
            return ENFORCED
        required: RequiredNodeAffinity = state[self]
        return None if required.matches(node.labels, node.name) else REASON

    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Flags:
        """1: not what the profile enforces. 2: not what the pod requires."""
        required: RequiredNodeAffinity = state[self]
        codes = np.where(required_mask(required, self.handle.cluster), 0, 2).astype(np.uint8)
        if self._added_required is not None:
            codes[~any_term_mask(self._added_required, self.handle.cluster)] = 1
        return codes

    def _compiled(self, pod: PodInfo) -> RequiredNodeAffinity:
        if pod.pinned:
            return required_node_affinity(pod.pod)
        known: RequiredNodeAffinity | None = pod.shape.memo.get((self, "required"))
        if known is None:
            known = pod.shape.memo[self, "required"] = required_node_affinity(pod.pod)
        return known

    # -- score

    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """Skip where neither pod nor profile prefers anything; a malformed preference ends the cycle."""
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
        own = affinity.preferred if affinity is not None else None
        if own is None and self._added_preferred is None:
            return Status.skip()
        try:
            compiled = preferred_terms(own or ())
        except SelectorError as error:
            return Status.error(str(error))
        state[self, "preferred"] = [terms for terms in (self._added_preferred, compiled) if terms is not None]
        return None

    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
        """The weights of the matching terms."""
        preferred: list[PreferredTerms] = state[self, "preferred"]
        return sum(terms.score(node.labels, node.name) for terms in preferred)

    def score_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Amounts:
        """The same, term by term."""
        preferred: list[PreferredTerms] = state[self, "preferred"]
        scores = np.zeros(nodes.size, dtype=np.int64)
        for terms in preferred:
            for weight, term in terms.terms:
                scores[term_mask(term, self.handle.cluster)] += weight
        return scores


def named_nodes(required: NodeSelector) -> frozenset[str] | None:
    """The nodes that the terms name by `metadata.name In`, if every term does; None otherwise. Empty if no term can be
    met."""
    names: set[str] = set()
    for term in required.node_selector_terms:
        named: set[str] | None = None
        for requirement in term.match_fields:
            if requirement.key == NODE_NAME_FIELD and requirement.operator == "In":
                named = set(requirement.values) if named is None else named & set(requirement.values)
        if named is None:
            return None
        names |= named
    return frozenset(names)


def _required_of(pod: PodInfo) -> NodeSelector | None:
    affinity = pod.spec.affinity
    return affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None
