"""A profile: the plugins of one scheduler name, and how they are run at each extension point.

The rules are kube-scheduler's framework runtime: which codes end a cycle, whose words are shown, what Skip leaves out.
The steps over nodes are in `filtering` and `scoring`; what is kept of them for the next pod of the same shape is in
`boards`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ksched import _core
from ksched.cache.cluster import Cluster
from ksched.cache.node_info import NodeInfo
from ksched.cache.shapes import PodInfo
from ksched.cache.table import Amounts, Table, column
from ksched.framework.boards import Boards, Standing
from ksched.framework.faults import awaited, called
from ksched.framework.filtering import Filtered, FilteredAll, FilteredFew, FilterStep, PreFiltered
from ksched.framework.plugin import (
    ArrayFilterPlugin,
    ArrayScorePlugin,
    BindPlugin,
    FilterPlugin,
    Normalization,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    Scope,
    ScorePlugin,
)
from ksched.framework.scoring import Scored, ScoreStep
from ksched.framework.state import CycleState
from ksched.framework.status import Code, Status, Wait

T = TypeVar("T")

FEW_NODES = 16
"""Where PreFilter leaves no more nodes than this, they are looked at one by one instead of in a pass over all."""

NOT_FOUND_BY_PREFILTER = "node(s) didn't satisfy plugin(s) [{}]"


class Profile:
    """The plugins of one scheduler name. Made by `ksched.framework.build.build_profiles`."""

    def __init__(
        self,
        scheduler_name: str,
        cluster: Cluster,
        enabled: Mapping[str, Sequence[tuple[Plugin, int]]],
        *,
        native: bool,
        boards: bool = False,
    ) -> None:
        self.scheduler_name = scheduler_name
        self.cluster = cluster
        self._pre_enqueue = _at(enabled, "pre_enqueue", PreEnqueuePlugin)
        self._queue_sort = _at(enabled, "queue_sort", QueueSortPlugin)[0]
        self._pre_filter = _at(enabled, "pre_filter", PreFilterPlugin)
        self._told_of_pods = [each for each in self._pre_filter if type(each).add_pod is not PreFilterPlugin.add_pod]
        filters = [
            plugin for plugin, _ in enabled.get("filter", ()) if isinstance(plugin, FilterPlugin | ArrayFilterPlugin)
        ]
        self._filters = [FilterStep(number, plugin, native) for number, plugin in enumerate(filters)]
        self._post_filter = _at(enabled, "post_filter", PostFilterPlugin)
        self._pre_score = _at(enabled, "pre_score", PreScorePlugin)
        self._scores = [
            ScoreStep(plugin, weight, native)
            for plugin, weight in enabled.get("score", ())
            if isinstance(plugin, ScorePlugin | ArrayScorePlugin)
        ]
        self._reserve = _at(enabled, "reserve", ReservePlugin)
        self._permit = _at(enabled, "permit", PermitPlugin)
        self._pre_bind = _at(enabled, "pre_bind", PreBindPlugin)
        self._bind = _at(enabled, "bind", BindPlugin)
        self._post_bind = _at(enabled, "post_bind", PostBindPlugin)
        self._totals: Amounts = column(np.int64, cluster.table.max_nodes)
        deciding: list[Plugin] = [
            *self._pre_filter,
            *filters,
            *self._pre_score,
            *(step.plugin for step in self._scores),
        ]
        self._boards = Boards(
            cluster,
            list(dict.fromkeys(deciding)),
            [(step.number, step.plugin) for step in self._filters],
            [(step.plugin, step.weight) for step in self._scores],
        )
        self._has_boards = boards and self._boards.useful
        self._beside = _ClusterWide.of(self._pre_filter, self._filters, self._pre_score, self._scores)
        self._partial = Boards(
            cluster,
            [plugin for plugin in dict.fromkeys(deciding) if plugin.scope != Scope.CLUSTER],
            [(step.number, step.plugin) for step in self._filters if step.plugin.scope != Scope.CLUSTER],
            [(step.plugin, step.weight) for step in self._scores if step.plugin.scope != Scope.CLUSTER],
        )
        self._has_partial = boards and self._partial.useful and self._beside.can_follow

    # -- what engine asks

    @property
    def has_post_filter(self) -> bool:
        """Whether some plugin can make room when no node is left."""
        return bool(self._post_filter)

    @property
    def binds_plainly(self) -> bool:
        """Whether binding is DefaultBinder's one request and nothing else."""
        return (
            not self._pre_bind and not self._post_bind and [plugin.name for plugin in self._bind] == ["DefaultBinder"]
        )

    @property
    def keeps_state(self) -> bool:
        """Whether a plugin after the choice of a node may read what others prepared before it."""
        return bool(self._reserve or self._permit) or not self.binds_plainly

    @property
    def has_permit(self) -> bool:
        """Whether some plugin may hold a pod back after it has been reserved."""
        return bool(self._permit)

    @property
    def score_plugins(self) -> tuple[str, ...]:
        """The names of the score plugins, in order."""
        return tuple(step.plugin.name for step in self._scores)

    # -- the queue's points

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """The first plugin's reason to keep the pod out of the active queue, or None."""
        for plugin in self._pre_enqueue:
            status = called(plugin, "PreEnqueue", plugin.pre_enqueue, pod)
            if status is not None:
                return status.by(plugin.name)
        return None

    def sort_key(self, pod: PodInfo, timestamp: float) -> Any:
        """The pod's place in the active queue: smaller goes first."""
        return self._queue_sort.sort_key(pod, timestamp)

    # -- the scheduling cycle's points

    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFiltered:
        """Run PreFilter: sets of nodes are intersected, Unschedulable is remembered while the rest still runs, anything
        worse ends it at once."""
        return self._pre_filtered(state, pod, self._pre_filter)

    def _pre_filtered(self, state: CycleState, pod: PodInfo, plugins: Sequence[PreFilterPlugin]) -> PreFiltered:
        rejected: Status | None = None
        nodes: frozenset[str] | None = None
        narrowed_by: set[str] = set()
        for plugin in plugins:
            answer = called(plugin, "PreFilter", plugin.pre_filter, state, pod, self.cluster.table)
            if answer is None:
                continue
            if not isinstance(answer, Status):
                nodes = frozenset(answer) if nodes is None else nodes & answer
                narrowed_by.add(plugin.name)
                if not nodes:
                    return PreFiltered(_nothing_in_common(narrowed_by), None, frozenset(narrowed_by))
            elif answer.code == Code.SKIP:
                state.skip_filter.add(plugin.name)
            elif answer.code == Code.UNSCHEDULABLE:
                rejected = answer.by(plugin.name)
            elif answer.code == Code.UNRESOLVABLE:
                return PreFiltered(answer.by(plugin.name), None, frozenset(narrowed_by))
            else:
                failed = Status.error(f'running PreFilter plugin "{plugin.name}": {answer.message}').by(plugin.name)
                return PreFiltered(failed, None, frozenset(narrowed_by))
        return PreFiltered(rejected, None if rejected else nodes, frozenset(narrowed_by))

    def filter(
        self, state: CycleState, pod: PodInfo, found: PreFiltered, nominated: Mapping[str, Sequence[PodInfo]]
    ) -> Filtered:
        """Run every filter over all nodes, or over those that PreFilter left.

        `nominated` are the pods nominated to nodes, by node name. A node with nominated pods of at least this pod's
        priority must fit the pod with them and without them.
        """
        if found.nodes is not None and len(found.nodes) <= FEW_NODES:
            return self._filter_few(state, pod, found, nominated)
        table = self.cluster.table
        filtered = FilteredAll(self.cluster, state, pod, self._filters)
        filtered.feasible = int(table.sieve.start(table.present, table.size))
        if found.nodes is not None:
            known = [node.slot for name in found.nodes if (node := self.cluster.node(name)) is not None]
            filtered.feasible = int(table.sieve.keep_only(np.array(known, dtype=np.int32), table.size))
            filtered.absent = _left_out_by(found)
        crowded = self._nodes_with_nominated(pod, nominated, table) if nominated else []
        for step in self._filters:
            if not filtered.feasible or filtered.error is not None:
                break
            if step.plugin.name not in state.skip_filter:
                filtered.feasible -= step.reject(self.cluster, filtered)
        for node, pods in crowded:
            self._recheck_with_nominated(filtered, node, pods)
        return filtered

    def _filter_few(
        self, state: CycleState, pod: PodInfo, found: PreFiltered, nominated: Mapping[str, Sequence[PodInfo]]
    ) -> FilteredFew:
        verdicts: dict[str, tuple[NodeInfo, Status | None]] = {}
        for name in found.nodes or ():
            node = self.cluster.node(name)
            if node is not None:
                status = self.filter_one_with_nominated(state, pod, node, nominated.get(name, ()))
                verdicts[name] = node, status
        return FilteredFew(self.cluster, verdicts, _left_out_by(found))

    def filter_one(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """Every filter on one node, which may be a what-if; None if it is kept."""
        for step in self._filters:
            if step.plugin.name in state.skip_filter:
                continue
            status = step.one(state, pod, node)
            if status is not None and status.code != Code.SUCCESS:
                return status.by(step.plugin.name)
        return None

    def filter_one_with_nominated(
        self, state: CycleState, pod: PodInfo, node: NodeInfo, nominated: Sequence[PodInfo]
    ) -> Status | None:
        """Both passes on one node: with the pods nominated there that count against this pod, then without them."""
        pods = _that_count(pod, nominated)
        if pods:
            status = self._filter_crowded(state, pod, node, pods)
            if status is not None:
                return status
        return self.filter_one(state, pod, node)

    def post_filter(
        self, state: CycleState, pod: PodInfo, statuses: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Run PostFilter until a plugin succeeds, fails or says that nothing can help; None as status is success."""
        reasons: list[str] = []
        result: PostFilterResult | None = None
        for plugin in self._post_filter:
            answer = called(plugin, "PostFilter", plugin.post_filter, state, pod, statuses)
            proposed, status = (None, answer) if isinstance(answer, Status) else answer
            if status is None:
                return proposed, None
            if not status.is_rejected or status.code == Code.UNRESOLVABLE:
                return proposed, status.by(plugin.name)
            if proposed is not None and proposed.nominated_node is not None:
                result = proposed
            reasons.extend(status.reasons)
        return result, Status.unschedulable(*reasons)

    def score(self, state: CycleState, pod: PodInfo, filtered: Filtered, *, details: bool = False) -> Scored | Status:
        """Score the nodes that filtering left: PreScore, Score, normalisation, weights. A status is a failure that ends
        the cycle."""
        filtered.mark_feasible()
        table = self.cluster.table
        totals = self._totals[: table.size]
        totals.fill(0)
        scored = Scored(totals)
        status = self._pre_scored(state, pod, self._pre_score)
        if status is not None:
            return status
        if not self._scores:
            totals.fill(1)
        for step in self._scores:
            if step.plugin.name in state.skip_score:
                continue
            failed = self._add_scores(step, state, pod, scored, details)
            if failed is not None:
                return failed.by(step.plugin.name)
        return scored

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Run Reserve; if a plugin objects, everything is unreserved and its status returned."""
        for plugin in self._reserve:
            status = called(plugin, "Reserve", plugin.reserve, state, pod, node_name)
            if status is not None:
                self.unreserve(state, pod, node_name)
                if status.is_rejected:
                    return status.by(plugin.name)
                return Status.error(f'running Reserve plugin "{plugin.name}": {status.message}').by(plugin.name)
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Undo Reserve: every reserve plugin, last first."""
        for plugin in reversed(self._reserve):
            called(plugin, "Unreserve", plugin.unreserve, state, pod, node_name)

    def permit(
        self, state: CycleState, pod: PodInfo, node_name: str
    ) -> tuple[Status | None, tuple[tuple[str, float], ...]]:
        """Run Permit: a status that turns the pod down, or None and the plugins that want it to wait, with their
        seconds."""
        waits: list[tuple[str, float]] = []
        for plugin in self._permit:
            answer = called(plugin, "Permit", plugin.permit, state, pod, node_name)
            if isinstance(answer, Wait):
                waits.append((plugin.name, answer.seconds))
            elif answer is not None:
                if answer.is_rejected:
                    return answer.by(plugin.name), ()
                return Status.error(f'running Permit plugin "{plugin.name}": {answer.message}').by(plugin.name), ()
        return None, tuple(waits)

    # -- the binding cycle's points

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Run PreBind, one plugin after the other; the first that objects ends it."""
        for plugin in self._pre_bind:
            status: Status | None = await awaited(plugin, "PreBind", plugin.pre_bind(state, pod, node_name))
            if status is not None:
                if status.is_rejected:
                    return status.by(plugin.name)
                return Status.error(f'running PreBind plugin "{plugin.name}": {status.message}').by(plugin.name)
        return None

    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Ask the bind plugins in turn until one does not say Skip."""
        for plugin in self._bind:
            status: Status | None = await awaited(plugin, "Bind", plugin.bind(state, pod, node_name))
            if status is None:
                return None
            if status.code == Code.SKIP:
                continue
            if status.is_rejected:
                return status.by(plugin.name)
            return Status.error(f'running Bind plugin "{plugin.name}": {status.message}').by(plugin.name)
        return Status.error("every bind plugin skipped the pod")

    async def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Tell the PostBind plugins."""
        for plugin in self._post_bind:
            await awaited(plugin, "PostBind", plugin.post_bind(state, pod, node_name))

    # -- boards

    def board(self, pod: PodInfo) -> Standing | None:
        """The board of the pod's shape, up to date; None where the pod needs a full pass.

        A shape has no board the first time that it is seen, nor one whose PreFilter says anything but yes for all
        nodes.
        """
        return self._standing(self._boards, pod, self._pre_filter, self._pre_score) if self._has_boards else None

    def partial_board(self, pod: PodInfo) -> Standing | None:
        """A board of the plugins that look at one node at a time, for a pod that others have to be asked about."""
        if not self._has_partial:
            return None
        return self._standing(self._partial, pod, self._beside.narrow_pre_filter, self._beside.narrow_pre_score)

    def filtered_beside(self, standing: Standing, state: CycleState, pod: PodInfo) -> FilteredAll | None:
        """Filter by a partial board and the plugins that look at the whole cluster; None where a pass must tell more.

        `state` begins as the board's, and has what those plugins prepared in it afterwards.
        """
        found = self._pre_filtered(state, pod, self._beside.pre_filter)
        if found.status is not None or found.nodes is not None:
            return None
        filtered = self.filtered_by(standing, pod, state)
        table = self.cluster.table
        for step in self._beside.filters:
            if step.plugin.name in state.skip_filter:
                continue
            codes: Any = step.codes(filtered)
            if codes is None:
                continue
            if isinstance(codes, Status) or codes.dtype != np.uint8:
                return None
            filtered.feasible -= int(table.sieve.overrule(codes, step.number, table.size))
        return filtered

    def score_beside(self, standing: Standing, state: CycleState, pod: PodInfo) -> Scored | None:
        """Score what `filtered_beside` left: the board's totals and the other plugins' scores; None as there."""
        table = self.cluster.table
        if not standing.board.extremes_hold(table.alive) or self._pre_scored(state, pod, self._beside.pre_score):
            return None
        standing.board.copy_totals(self._totals)
        scored = Scored(self._totals[: table.size])
        for step in self._beside.scores:
            if step.plugin.name not in state.skip_score and self._add_scores(step, state, pod, scored, False):
                return None
        return scored

    def _standing(
        self, boards: Boards, pod: PodInfo, pre_filter: Sequence[PreFilterPlugin], pre_score: Sequence[PreScorePlugin]
    ) -> Standing | None:
        key = boards.key(pod)
        if key is None:
            return None
        standing = boards.get(key)
        if standing is not None:
            return standing
        if (boards, "seen") not in pod.shape.memo:
            pod.shape.memo[boards, "seen"] = True
            return None
        state = CycleState()
        found = self._pre_filtered(state, pod, pre_filter)
        if found.status is not None or found.nodes is not None or self._pre_scored(state, pod, pre_score) is not None:
            return None
        return boards.make(key, state, pod)

    def claimed(self, standing: Standing, pod: PodInfo, nominated: Mapping[str, Sequence[PodInfo]]) -> list[int] | None:
        """The slots that a board has as feasible and that would not be with the pods nominated there.

        None where a filter failed, which is for a full pass to tell.
        """
        slots = []
        for name, others in nominated.items():
            node = self.cluster.node(name)
            pods = _that_count(pod, others)
            if node is None or not pods or not standing.board.is_feasible(node.slot):
                continue
            status = self._filter_crowded(standing.state, pod, node, pods)
            if status is not None:
                if not status.is_rejected:
                    return None
                slots.append(node.slot)
        return slots

    def filtered_by(self, standing: Standing, pod: PodInfo, state: CycleState | None = None) -> FilteredAll:
        """A board's verdicts, as if filtering had just been run."""
        table = self.cluster.table
        standing.board.copy_verdicts(table.alive, table.verdicts)
        filtered = FilteredAll(self.cluster, state or standing.state, pod, self._filters)
        filtered.feasible = standing.board.feasible
        return filtered

    # -- steps of the above

    def _nodes_with_nominated(
        self, pod: PodInfo, nominated: Mapping[str, Sequence[PodInfo]], table: Table
    ) -> list[tuple[NodeInfo, list[PodInfo]]]:
        found = []
        for name, candidates in nominated.items():
            node = self.cluster.node(name)
            if node is not None and table.alive[node.slot] and (pods := _that_count(pod, candidates)):
                found.append((node, pods))
        return found

    def _recheck_with_nominated(self, filtered: FilteredAll, node: NodeInfo, pods: Sequence[PodInfo]) -> None:
        """The first of the two passes. The second has been run over all nodes; where both object, the first one's words
        count."""
        status = self._filter_crowded(filtered.state, filtered.pod, node, pods)
        if status is not None:
            if not status.is_rejected:
                filtered.error = status
            filtered.reject_one(node, status)

    def _filter_crowded(
        self, state: CycleState, pod: PodInfo, node: NodeInfo, pods: Sequence[PodInfo]
    ) -> Status | None:
        """Every filter on one node as it would be with more pods on it."""
        crowded = node.what_if()
        told = [plugin for plugin in self._told_of_pods if plugin.name not in state.skip_filter]
        if told:
            state = state.clone()
        for other in pods:
            crowded.add((other,))
            for plugin in told:
                failed = called(plugin, "AddPod", plugin.add_pod, state, pod, other, crowded)
                if failed is not None:
                    words = f'running AddPod on PreFilter plugin "{plugin.name}": {failed.message}'
                    return Status.error(words).by(plugin.name)
        return self.filter_one(state, pod, crowded)

    def _pre_scored(self, state: CycleState, pod: PodInfo, plugins: Sequence[PreScorePlugin]) -> Status | None:
        """Run PreScore; a status is a failure."""
        for plugin in plugins:
            status = called(plugin, "PreScore", plugin.pre_score, state, pod, self.cluster.table)
            if status is None:
                continue
            if status.code != Code.SKIP:
                return Status.error(f'running PreScore plugin "{plugin.name}": {status.message}').by(plugin.name)
            state.skip_score.add(plugin.name)
        return None

    def _add_scores(
        self, step: ScoreStep, state: CycleState, pod: PodInfo, scored: Scored, details: bool
    ) -> Status | None:
        table = self.cluster.table
        raw = step.raw(self.cluster, state, pod)
        if isinstance(raw, Status):
            return Status.error(f'running Score plugins: plugin "{step.plugin.name}" failed with: {raw.message}')
        if details:
            scored.raw[step.plugin.name] = raw[: table.size].copy()
            before = scored.totals.copy()
        normalization = step.plugin.normalization
        if normalization == Normalization.CUSTOM:
            normal = step.normal(state, pod, raw, table)
            if isinstance(normal, Status):
                return Status.error(
                    f'running Normalize on Score plugins: plugin "{step.plugin.name}" failed with: {normal.message}'
                )
            raw, normalization = normal, Normalization.NONE
        bad = _core.weigh(raw, table.alive, scored.totals, step.weight, normalization, table.size)
        if details:
            scored.weighted[step.plugin.name] = scored.totals - before
        if bad is not None:
            return Status.error(
                f'applying score defaultWeights on Score plugins: plugin "{step.plugin.name}" returns an invalid score '
                f"{bad}, it should in the range of [0, 100] after normalizing"
            )
        return None


@dataclass(frozen=True, slots=True)
class _ClusterWide:
    """The plugins of a profile that look at the whole cluster, and those beside them that look at single nodes."""

    pre_filter: Sequence[PreFilterPlugin]
    filters: Sequence[FilterStep]
    pre_score: Sequence[PreScorePlugin]
    scores: Sequence[ScoreStep]
    narrow_pre_filter: Sequence[PreFilterPlugin]
    narrow_pre_score: Sequence[PreScorePlugin]

    @classmethod
    def of(
        cls,
        pre_filter: Sequence[PreFilterPlugin],
        filters: Sequence[FilterStep],
        pre_score: Sequence[PreScorePlugin],
        scores: Sequence[ScoreStep],
    ) -> _ClusterWide:
        """Tell them apart by their scope."""
        return cls(
            [plugin for plugin in pre_filter if plugin.scope == Scope.CLUSTER],
            [step for step in filters if step.plugin.scope == Scope.CLUSTER],
            [plugin for plugin in pre_score if plugin.scope == Scope.CLUSTER],
            [step for step in scores if step.plugin.scope == Scope.CLUSTER],
            [plugin for plugin in pre_filter if plugin.scope != Scope.CLUSTER],
            [plugin for plugin in pre_score if plugin.scope != Scope.CLUSTER],
        )

    @property
    def can_follow(self) -> bool:
        """Whether they can be run after a board: a filter must be able to speak about all nodes at once."""
        return all(step.array is not None for step in self.filters)


def _left_out_by(found: PreFiltered) -> Status:
    return Status.unresolvable(NOT_FOUND_BY_PREFILTER.format(" ".join(sorted(found.narrowed_by))))


def _nothing_in_common(narrowed_by: Iterable[str]) -> Status:
    names = sorted(narrowed_by)
    if len(names) == 1:
        return Status.unresolvable(f"node(s) didn't satisfy plugin {names[0]}")
    return Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(names)}] simultaneously")


def _that_count(pod: PodInfo, nominated: Sequence[PodInfo]) -> list[PodInfo]:
    """The nominated pods whose claim to a node stands against this pod's."""
    return [other for other in nominated if other.priority >= pod.priority and other.uid != pod.uid]


def _at(enabled: Mapping[str, Sequence[tuple[Plugin, int]]], point: str, base: Callable[..., T]) -> list[T]:
    """The plugins at a point that are of its base (typed as callable, since the bases are abstract)."""
    assert isinstance(base, type)
    found: list[Any] = [plugin for plugin, _ in enabled.get(point, ()) if isinstance(plugin, base)]
    return found
