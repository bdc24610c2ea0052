"""Whether a change in the cluster may help a pod that InterPodAffinity turned down.

As upstream, a pod that comes, changes or goes is laid beside *all* terms of a kind, in a namespace whose labels are not
known. A pod with several anti-affinity terms, or with terms that select namespaces by labels, may thus wait longer than
it need: until something else wakes it.
"""

from __future__ import annotations

from ksched.cache.shapes import PodInfo
from ksched.cache.terms import terms_of
from ksched.model.node import Node
from ksched.model.pod import Affinity, Pod
from ksched.model.pod_affinity import NO_TERMS, PodTerms, match_all, pod_terms


class _LastTerms:
    """The terms of the pod that was asked about last: one event is laid beside every pod that waits."""

    __slots__ = ("_affinity", "_namespace", "_terms")

    def __init__(self) -> None:
        self._affinity: Affinity | None = None
        self._namespace = ""
        self._terms = NO_TERMS

    def of(self, pod: Pod) -> PodTerms:
        """The pod's terms; copies of a placed pod share one affinity."""
        if pod.spec.affinity is not self._affinity or pod.namespace != self._namespace:
            self._affinity, self._namespace, self._terms = pod.spec.affinity, pod.namespace, pod_terms(pod)
        return self._terms


_last = _LastTerms()


def pod_may_help(pod: PodInfo, old: Pod | None, new: Pod | None) -> bool:
    """Another pod has come, changed or gone, or this one has changed itself."""
    if old is not None and new is not None and new.uid == pod.uid:
        return True
    if any(other is not None and not _has_place(other) for other in (old, new)):
        return False
    own = terms_of(pod)
    if own.error:
        return True
    if new is None:
        return old is not None and _may_help_by_going(pod, own, old)
    came_near = match_all(own.required, new.namespace, new.labels)
    if old is None:
        return came_near
    return (came_near and not match_all(own.required, old.namespace, old.labels)) or (
        match_all(own.required_anti, old.namespace, old.labels)
        and not match_all(own.required_anti, new.namespace, new.labels)
    )


def node_may_help(pod: PodInfo, old: Node | None, new: Node | None) -> bool:
    """A node has come or changed its labels: whether it may have entered a domain that is looked for, or left one that
    is avoided."""
    own = terms_of(pod)
    if own.error or new is None:
        return True
    if old is None:
        return bool(own.required_anti) or any(term.topology_key in new.labels for term in own.required)
    near = {term.topology_key for term in own.required}
    away = {term.topology_key for term in own.required_anti}
    return any(new.labels.get(key) not in (None, old.labels.get(key)) for key in near) or any(
        old.labels.get(key) not in (None, new.labels.get(key)) for key in away
    )


def _has_place(other: Pod) -> bool:
    return bool(other.node_name or other.status.nominated_node_name)


def _may_help_by_going(pod: PodInfo, own: PodTerms, gone: Pod) -> bool:
    theirs = _last.of(gone)
    return (
        match_all(own.required_anti, gone.namespace, gone.labels)
        or match_all(theirs.required_anti, pod.namespace, pod.labels)
        or bool(theirs.error)
    )
