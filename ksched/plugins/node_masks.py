"""Which nodes a selector, a term or a pod's tolerations accept, as masks over all slots.

A requirement is asked once per distinct value of its label and gathered, tolerations once per distinct list of taints.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ksched.cache.cluster import Cluster
from ksched.model.pod import Toleration
from ksched.model.selectors import (
    NODE_NAME_FIELD,
    NodeTerm,
    NodeTerms,
    RequiredNodeAffinity,
    Requirement,
    field_value,
    first_untolerated,
)

Mask = npt.NDArray[np.bool_]


def required_mask(required: RequiredNodeAffinity, cluster: Cluster) -> Mask:
    """The nodes on which a pod may run by its node selector and required affinity."""
    table = cluster.table
    keeps = np.ones(table.size, dtype=np.bool_)
    if required.node_selector is not None:
        for requirement in required.node_selector.requirements:
            keeps &= table.label(requirement.key).gather(requirement.holds, table.size)
    if required.affinity is not None:
        keeps &= any_term_mask(required.affinity, cluster)
    return keeps


def any_term_mask(terms: NodeTerms, cluster: Cluster) -> Mask:
    """The nodes that one of the terms matches."""
    found = np.zeros(cluster.table.size, dtype=np.bool_)
    for term in terms.terms:
        found |= term_mask(term, cluster)
    return found


def term_mask(term: NodeTerm, cluster: Cluster) -> Mask:
    """The nodes that a term matches."""
    table = cluster.table
    if term.errors:
        return np.zeros(table.size, dtype=np.bool_)
    found = np.ones(table.size, dtype=np.bool_)
    for requirement in term.expressions:
        found &= table.label(requirement.key).gather(requirement.holds, table.size)
    for requirement in term.fields:
        found &= _field_mask(requirement, cluster)
    return found


def untainted_mask(tolerations: Sequence[Toleration], comparison_operators: bool, cluster: Cluster) -> Mask:
    """The nodes without a NoSchedule or NoExecute taint that is not tolerated."""
    table = cluster.table
    answers = np.array(
        [first_untolerated(taints, tolerations, comparison_operators) is None for taints in table.taint_sets.values],
        dtype=np.bool_,
    )
    kept: Mask = answers[table.taint_set[: table.size]]
    return kept


def _field_mask(requirement: Requirement, cluster: Cluster) -> Mask:
    """A requirement on a field. Only the nodes that it names can differ from the rest."""
    holds = np.full(cluster.table.size, requirement.holds(field_value(requirement.key, "")), dtype=np.bool_)
    if requirement.key == NODE_NAME_FIELD:
        for name in requirement.values:
            node = cluster.node(name)
            if node is not None:
                holds[node.slot] = requirement.holds(name)
    return holds
