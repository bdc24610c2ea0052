"""Whether a change in the cluster may help a pod that PodTopologySpread turned down.

Only pods and nodes matter: pods of the same namespace that a hard constraint counts, and nodes that have the labels it
speaks of. Where what the pod wrote is not the whole truth (default constraints, `matchLabelKeys`) or cannot be
understood, the answer is yes.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from ksched.cache.shapes import PodInfo
from ksched.errors import SelectorError
from ksched.model.node import Node
from ksched.model.pod import Pod, TopologySpreadConstraint
from ksched.model.selectors import Selector, label_selector

_HARD: Final = "DoNotSchedule"


class _Watched(Struct, frozen=True):
    """What a pod's hard constraints look at; `is_narrowed` where its labels say more about whom they count."""

    keys: tuple[str, ...]
    selectors: tuple[Selector, ...]
    honors_taints: bool
    is_narrowed: bool


def pod_may_help(pod: PodInfo, old: Pod | None, new: Pod | None) -> bool:
    """Another pod has come, changed or gone, or this one has changed itself."""
    if any(other is not None and not _is_involved(pod, other) for other in (old, new)):
        return False
    watched = _watched(pod)
    if watched is None:
        return True
    if old is None or new is None:
        other = old or new
        return other is not None and any(selector.matches(other.labels) for selector in watched.selectors)
    if new.uid == pod.uid and watched.honors_taints and old.spec.tolerations != new.spec.tolerations:
        return True
    if old.labels == new.labels:
        return False
    return watched.is_narrowed or any(
        selector.matches(old.labels) != selector.matches(new.labels) for selector in watched.selectors
    )


def node_may_help(pod: PodInfo, old: Node | None, new: Node | None) -> bool:
    """A node has come, changed or gone: whether it is, or was, one that the constraints count."""
    watched = _watched(pod)
    if watched is None:
        return True
    keys = watched.keys
    was, is_now = (node is not None and all(key in node.labels for key in keys) for node in (old, new))
    if old is None or new is None:
        return was or is_now
    if was != is_now:
        return True
    return is_now and (
        any(old.labels.get(key) != new.labels.get(key) for key in keys) or old.spec.taints != new.spec.taints
    )


def _is_involved(pod: PodInfo, other: Pod) -> bool:
    placed = bool(other.node_name or other.status.nominated_node_name)
    return other.uid == pod.uid or (placed and other.namespace == pod.namespace)


def _watched(pod: PodInfo) -> _Watched | None:
    """None where it is not known."""
    memo = pod.shape.memo
    if _Watched not in memo:
        memo[_Watched] = _compiled(pod.spec.topology_spread_constraints)
    known: _Watched | None = memo[_Watched]
    return known


def _compiled(written: list[TopologySpreadConstraint]) -> _Watched | None:
    if not written:
        return None  # turned down for a default constraint
    hard = [constraint for constraint in written if constraint.when_unsatisfiable == _HARD]
    try:
        selectors = tuple(label_selector(constraint.label_selector) for constraint in hard)
    except SelectorError:
        return None
    return _Watched(
        keys=tuple(constraint.topology_key for constraint in hard),
        selectors=selectors,
        honors_taints=any(constraint.node_taints_policy == "Honor" for constraint in hard),
        is_narrowed=any(constraint.match_label_keys for constraint in hard),
    )
