"""One pod's way to a node, up to the point where something has to wait.

Nothing here waits. The cluster cannot change between the first filter and the reservation, because no other task runs
in between; what waits is in `binding`. The order of steps is kube-scheduler's.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ksched import _core
from ksched.cache.cluster import Cluster
from ksched.cache.shapes import PodInfo
from ksched.framework.boards import Standing
from ksched.framework.filtering import Filtered, PreFiltered
from ksched.framework.plugin import PostFilterResult
from ksched.framework.profile import Profile
from ksched.framework.scoring import Scored
from ksched.framework.state import CycleState
from ksched.framework.status import Code, Status

log = logging.getLogger("ksched.engine")

Nominated = Mapping[str, Sequence[PodInfo]]
"""Node name: the pods in the queue that are nominated to it."""

NO_NODES = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class Placement:
    """A node was found and the pod is assumed on it. `waits` are the permit plugins that hold it back, with their
    seconds."""

    pod: PodInfo
    node_name: str
    feasible: int
    evaluated: int
    state: CycleState
    waits: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Unplaced:
    """No node, or something failed; nothing is assumed.

    `message` is what the pod's condition says. `nominated_node` is None to leave a nomination as it is, "" to clear it.
    A pod that no plugin turned down (both sets are empty) is retried on its back-off alone.
    """

    pod: PodInfo
    status: Status
    message: str
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominated_node: str | None = ""

    @property
    def reason(self) -> str:
        """The condition's reason."""
        return "Unschedulable" if self.status.is_rejected else "SchedulerError"


class Cycle:
    """Schedules one pod at a time on one cluster. `rng` breaks ties between nodes of the same score, each being as
    likely."""

    def __init__(self, cluster: Cluster, *, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng

    def schedule(self, profile: Profile, pod: PodInfo, nominated: Nominated) -> Placement | Unplaced:
        """Choose a node for `pod` and hold its room there, or say why none will do."""
        self._cluster.begin_cycle()
        if not self._cluster.node_count:
            return Unplaced(pod, Status.unresolvable(NO_NODES), NO_NODES)
        standing = None if pod.pod.status.nominated_node_name else profile.board(pod)
        if standing is not None:
            decided = self._schedule_by(standing, profile, pod, nominated)
            if decided is not None:
                return decided
        elif not nominated and not pod.pod.status.nominated_node_name:
            partial = profile.partial_board(pod)
            decided = self._schedule_beside(partial, profile, pod) if partial is not None else None
            if decided is not None:
                return decided
        state = CycleState()
        found = profile.pre_filter(state, pod)
        if found.status is not None:
            return self._unplaced_by_pre_filter(profile, state, pod, found)
        filtered, _ = self._filter(profile, state, pod, found, nominated)
        if filtered.error is not None:
            return _failed(pod, filtered.error, filtered.error.message)
        if not filtered.feasible:
            return self._unplaced(profile, state, pod, found, filtered)
        slot = self._pick(profile, state, pod, filtered)
        if isinstance(slot, Status):
            return _failed(pod, slot, slot.message)
        name = self._cluster.table.names[slot]
        return self._hold(profile, state, pod, name, filtered.feasible, filtered.evaluated())

    def evaluate(self, profile: Profile, pod: PodInfo, nominated: Nominated) -> Evaluation:
        """Everything that a cycle finds out about a pod, node by node, without placing it. Slow: for people who ask
        why, and for tests."""
        self._cluster.begin_cycle()
        if not self._cluster.node_count:
            return Evaluation(message=NO_NODES)
        state = CycleState()
        found = profile.pre_filter(state, pod)
        report = Evaluation(pre_filter=found.status, pre_filter_nodes=found.nodes)
        if found.status is not None:
            if found.status.code == Code.ERROR:
                report.error = found.status
            unplaced = self._unplaced_by_pre_filter(profile, state, pod, found)
            report.message, report.post_filter = unplaced.message, unplaced
            return report
        filtered, report.nominated_hit = self._filter(profile, state, pod, found, nominated)
        report.rejected = {node.name: status for node, status in filtered.rejected()}
        slots = filtered.feasible_slots()
        names = self._cluster.table.names
        report.feasible = sorted(names[slot] for slot in slots)
        if filtered.error is not None:
            report.error = filtered.error
        elif slots:
            self._report_scores(report, profile, state, pod, filtered)
        else:
            unplaced = self._unplaced(profile, state, pod, found, filtered)
            report.message, report.post_filter = unplaced.message, unplaced
        return report

    # -- steps

    def _schedule_by(
        self, standing: Standing, profile: Profile, pod: PodInfo, nominated: Nominated
    ) -> Placement | Unplaced | None:
        """`schedule` for a pod whose shape has a board: the same decision without a pass over the nodes.

        Nodes that nominated pods have a claim to are looked at beside the board. If nothing is left then, a full pass
        has to tell why (None).
        """
        board = standing.board
        claimed = profile.claimed(standing, pod, nominated) if nominated else []
        if claimed is None:
            return None
        if not claimed:
            if not board.feasible:
                if nominated:
                    return None
                everything = PreFiltered(None, None, frozenset())
                return self._unplaced(profile, standing.state, pod, everything, profile.filtered_by(standing, pod))
            return self._take_best(standing, profile, pod)
        slots = np.array(claimed, dtype=np.int32)
        board.hold_out(slots)
        decided = self._take_best(standing, profile, pod) if board.feasible and not board.out_of_range else None
        board.take_back(slots)
        return decided

    def _schedule_beside(self, standing: Standing, profile: Profile, pod: PodInfo) -> Placement | Unplaced | None:
        """`schedule` for a pod that depends on other pods: a board for what it does not, and one pass for what it does.

        None where only a full pass can tell.
        """
        state = standing.state.clone()
        filtered = profile.filtered_beside(standing, state, pod)
        if filtered is None:
            return None
        if not filtered.feasible:
            return self._unplaced(profile, state, pod, PreFiltered(None, None, frozenset()), filtered)
        if filtered.feasible == 1:
            slot = filtered.feasible_slots()[0]
        else:
            scored = profile.score_beside(standing, state, pod)
            if scored is None:
                return None
            slot = self._best_of(scored)
        name = self._cluster.table.names[slot]
        return self._hold(profile, state, pod, name, filtered.feasible, self._cluster.table.count)

    def _take_best(self, standing: Standing, profile: Profile, pod: PodInfo) -> Placement | Unplaced:
        board, table = standing.board, self._cluster.table
        _, count = board.best()
        slot = board.nth_best(self._among(count))
        state = standing.state.clone() if profile.keeps_state else CycleState()
        return self._hold(profile, state, pod, table.names[slot], board.feasible, table.count)

    def _filter(
        self, profile: Profile, state: CycleState, pod: PodInfo, found: PreFiltered, nominated: Nominated
    ) -> tuple[Filtered, bool]:
        """The node that the pod is nominated to, if it will still do; otherwise all nodes. The flag says which."""
        target = self._cluster.node(pod.pod.status.nominated_node_name) if pod.pod.status.nominated_node_name else None
        if target is not None:
            status = profile.filter_one_with_nominated(state, pod, target, nominated.get(target.name, ()))
            if status is None:
                return profile.filter(
                    state, pod, PreFiltered(None, frozenset({target.name}), found.narrowed_by), nominated
                ), True
        return profile.filter(state, pod, found, nominated), False

    def _pick(self, profile: Profile, state: CycleState, pod: PodInfo, filtered: Filtered) -> int | Status:
        """The slot of the best node. A single one is taken without being scored, as upstream."""
        if filtered.feasible == 1:
            return filtered.feasible_slots()[0]
        scored = profile.score(state, pod, filtered)
        if isinstance(scored, Status):
            return scored
        return self._best_of(scored)

    def _best_of(self, scored: Scored) -> int:
        """The slot of a node with the highest total, each of them being as likely."""
        table = self._cluster.table
        top, count = _core.best(scored.totals, table.alive, table.size)
        return _core.nth_with(scored.totals, table.alive, top, self._among(count), table.size)

    def _among(self, count: int) -> int:
        """One of `count` equally good nodes."""
        return self._rng.randrange(count) if count > 1 else 0

    def _hold(
        self, profile: Profile, state: CycleState, pod: PodInfo, node_name: str, feasible: int, evaluated: int
    ) -> Placement | Unplaced:
        """Assume, Reserve, Permit; whatever goes wrong is undone."""
        placed = self._cluster.assume(pod, node_name)
        status = profile.reserve(state, placed, node_name)
        if status is not None:
            self._cluster.forget(pod.uid)
            return _turned_down(pod, status)
        status, waits = profile.permit(state, placed, node_name) if profile.has_permit else (None, ())
        if status is not None:
            profile.unreserve(state, placed, node_name)
            self._cluster.forget(pod.uid)
            return _turned_down(pod, status)
        return Placement(placed, node_name, feasible, evaluated, state, waits)

    def _unplaced_by_pre_filter(
        self, profile: Profile, state: CycleState, pod: PodInfo, found: PreFiltered
    ) -> Unplaced:
        status = found.status
        assert status is not None
        if not status.is_rejected:
            return _failed(pod, status, status.message)
        statuses = {node.name: status for node in self._cluster.nodes()} if profile.has_post_filter else {}
        result, said = self._post_filter(profile, state, pod, statuses)
        message = fit_message(self._cluster.node_count, status.message, Counter(), said)
        plugins = found.narrowed_by | ({status.plugin} if status.plugin else set())
        return Unplaced(pod, Status.unschedulable(status.message), message, plugins, frozenset(), _nomination(result))

    def _unplaced(
        self, profile: Profile, state: CycleState, pod: PodInfo, found: PreFiltered, filtered: Filtered
    ) -> Unplaced:
        """Every node said no: count the reasons, and let PostFilter make room."""
        counts, left_out = filtered.counts()
        reasons: Counter[str] = Counter()
        for status, nodes in counts.items():
            for reason in status.reasons:
                reasons[reason] += nodes
        if filtered.absent is not None and left_out:
            for reason in filtered.absent.reasons:
                reasons[reason] += left_out
        statuses = {node.name: status for node, status in filtered.rejected()} if profile.has_post_filter else {}
        result, said = self._post_filter(profile, state, pod, statuses)
        message = fit_message(self._cluster.node_count, "", reasons, said)
        plugins = found.narrowed_by | {status.plugin for status in counts}
        pending = frozenset(status.plugin for status in counts if status.code == Code.PENDING)
        return Unplaced(pod, Status.unschedulable(message), message, plugins - pending, pending, _nomination(result))

    def _post_filter(
        self, profile: Profile, state: CycleState, pod: PodInfo, statuses: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, str]:
        if not profile.has_post_filter:
            return None, ""
        result, status = profile.post_filter(state, pod, statuses)
        return result, status.message if status is not None else ""

    def _report_scores(
        self, report: Evaluation, profile: Profile, state: CycleState, pod: PodInfo, filtered: Filtered
    ) -> None:
        slots = filtered.feasible_slots()
        scored = profile.score(state, pod, filtered, details=True)
        names = self._cluster.table.names
        if isinstance(scored, Status):
            if len(slots) == 1:  # the scheduler takes it unscored
                report.best = [names[slots[0]]]
            else:
                report.error = scored
            return
        report.read(scored, {slot: names[slot] for slot in slots})


@dataclass(slots=True)
class Evaluation:
    """What a cycle finds out about a pod. Nodes that PreFilter left out are neither in `rejected` nor in `feasible`."""

    pre_filter: Status | None = None
    pre_filter_nodes: frozenset[str] | None = None
    rejected: dict[str, Status] = field(default_factory=dict)
    feasible: list[str] = field(default_factory=list)
    nominated_hit: bool = False
    error: Status | None = None
    raw: dict[str, dict[str, int]] = field(default_factory=dict)
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    total: dict[str, int] = field(default_factory=dict)
    best: list[str] = field(default_factory=list)
    message: str = ""
    post_filter: Unplaced | None = None

    def read(self, scored: Scored, names: Mapping[int, str]) -> None:
        """Take over scores, per node."""
        self.raw = {
            name: {plugin: int(raw[slot]) for plugin, raw in scored.raw.items()} for slot, name in names.items()
        }
        self.scores = {
            name: {plugin: int(weighted[slot]) for plugin, weighted in scored.weighted.items()}
            for slot, name in names.items()
        }
        self.total = {name: int(scored.totals[slot]) for slot, name in names.items()}
        top = max(self.total.values())
        self.best = sorted(name for name, total in self.total.items() if total == top)


def fit_message(nodes: int, pre_filter: str, reasons: Mapping[str, int], post_filter: str) -> str:
    """Upstream's FitError text: each reason with the number of its nodes, sorted as text, so that "10 x" comes before
    "2 y"."""
    said = pre_filter or ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return (
        f"0/{nodes} nodes are available:" + (f" {said}." if said else "") + (f" {post_filter}" if post_filter else "")
    )


def _failed(pod: PodInfo, status: Status, message: str) -> Unplaced:
    """Something went wrong that says nothing about the pod."""
    return Unplaced(pod, status, message)


def _turned_down(pod: PodInfo, status: Status) -> Unplaced:
    """Reserve or Permit said no to the node that was chosen."""
    if not status.is_rejected:
        return _failed(pod, status, status.message)
    message = fit_message(1, "", Counter(status.reasons), "")
    pending = frozenset({status.plugin}) if status.code == Code.PENDING else frozenset()
    return Unplaced(pod, status, message, frozenset({status.plugin}) - pending, pending)


def _nomination(result: PostFilterResult | None) -> str | None:
    return None if result is None else result.nominated_node
