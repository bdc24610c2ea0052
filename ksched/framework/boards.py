"""Boards: what a cycle found out about one shape of pod, kept for the next pod of that shape.

A board (native, `_kernels/board.pxi`) holds a verdict and a total for every node. When the next pod of the shape comes,
it reads the cluster's journal since its last use and judges only the nodes named there. This module decides which pods
have a board, what it is made of, and when it must be made anew.

A plugin takes part through its `key`, its `scope` and, where it has one, its native rule. Without a rule its answers
are computed once into a column: over all nodes when the board is made, and node by node for those that changed since.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from ksched import _core
from ksched.cache.cluster import NODE, PODS, TOUCHED, Cluster
from ksched.cache.node_info import NodeInfo
from ksched.cache.shapes import PodInfo
from ksched.cache.table import Amounts, Codes, Flags, Table
from ksched.framework.faults import called
from ksched.framework.plugin import (
    ArrayFilterPlugin,
    ArrayScorePlugin,
    Normalization,
    Plugin,
    Scope,
)
from ksched.framework.state import CycleState
from ksched.framework.status import Status

MOST_BYTES = 256 << 20
"""Memory that the boards of a profile may take; the least recently used go first."""

FEW_NODES = 64
"""Nodes of whose attributes a board is told one by one; after more changes it is made anew."""

_SLOTS_AT_ONCE = 256
_SLOTS_TO_SPARE = 64
"""A board has room for this many nodes more than there are, rounded up to the former."""

_LARGEST_TOTAL = 2**31 - 1

_PODS_ONLY = 1 << PODS
_ANY_KIND = 1 << PODS | 1 << TOUCHED | 1 << NODE


@runtime_checkable
class TwoFormFilter(Protocol):
    """A filter in both forms, by whose `reasons` a single node's status has a code."""

    name: ClassVar[str]
    scope: ClassVar[Scope]
    reasons: ClassVar[Sequence[Status]]

    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None: ...
    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Flags | Codes | None: ...


@runtime_checkable
class TwoFormScore(Protocol):
    """A score in both forms."""

    name: ClassVar[str]
    scope: ClassVar[Scope]
    normalization: ClassVar[Normalization]

    def is_settled(self, state: CycleState, pod: PodInfo) -> bool: ...
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status: ...
    def score_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Amounts: ...


@dataclass(slots=True)
class FilterColumn:
    """A filter without a native rule: its codes, one per slot; None while it keeps every node."""

    plugin: TwoFormFilter
    scope: Scope
    codes: Codes | None


@dataclass(slots=True)
class ScoreColumn:
    """A score without a native rule: its raw scores, one per slot; None while they are 0 on every node."""

    plugin: TwoFormScore
    scope: Scope
    scores: Codes | None


@dataclass(slots=True)
class Standing:
    """A board and what is needed to keep it up to date: the cycle that it was made in, and its columns."""

    board: _core.Board
    state: CycleState
    pod: PodInfo
    filters: Sequence[FilterColumn]
    scores: Sequence[ScoreColumn]
    versions: tuple[int, ...]
    node_entries: int
    bytes: int

    @property
    def reads_all(self) -> bool:
        """Whether some column depends on more than its node's attributes, so that every kind of change matters."""
        scopes = [column.scope for column in self.filters] + [column.scope for column in self.scores]
        return any(scope != Scope.STATIC for scope in scopes)


class Boards:
    """The boards of one profile, by shape and what the plugins' keys add to it."""

    def __init__(
        self,
        cluster: Cluster,
        plugins: Sequence[Plugin],
        filters: Sequence[tuple[int, Plugin]],
        scores: Sequence[tuple[Plugin, int]],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`plugins` are all that have a say in where a pod goes; `filters` are numbered as verdicts number them."""
        self._cluster = cluster
        self._keys = [plugin.key for plugin in plugins if not plugin.shape_decides]
        self._filters = filters
        self._scores = scores
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Hashable, Standing] = OrderedDict()
        self._bytes = 0
        self.useful = (
            all(plugin.shape_decides or type(plugin).key is not Plugin.key for plugin in plugins)
            and sum(weight for _, weight in scores) * 100 < _LARGEST_TOTAL
        )
        """Whether pods of this profile can have boards at all."""

    def key(self, pod: PodInfo) -> Hashable | None:
        """What pods that share a board have in common; None for a pod that cannot have one."""
        beyond = []
        for key in self._keys:
            part = key(pod)
            if part is None:
                return None
            if part:
                beyond.append(part)
        return (pod.shape, *beyond) if beyond else pod.shape

    def get(self, key: Hashable) -> Standing | None:
        """The board of a key, up to date; None where there is none, or where it has to be made anew."""
        standing = self._kept.get(key)
        if standing is None:
            return None
        if self._refresh(standing):
            self._kept.move_to_end(key)
            return standing
        self._drop(key)
        return None

    def make(self, key: Hashable, state: CycleState, pod: PodInfo) -> Standing | None:
        """A new board for the pod's shape, after its PreFilter and PreScore; None if a plugin's answers do not allow
        one."""
        table = self._cluster.table
        size = min(-(-(table.size + _SLOTS_TO_SPARE) // _SLOTS_AT_ONCE) * _SLOTS_AT_ONCE, table.max_nodes)
        filter_rules: list[tuple[int, _core.FilterRule]] = []
        score_rules: list[tuple[_core.ScoreRule, int, int]] = []
        filters: list[FilterColumn] = []
        scores: list[ScoreColumn] = []
        table.sieve.start(table.present, table.size)
        for number, plugin in self._filters:
            if plugin.name in state.skip_filter:
                continue
            if plugin.scope == Scope.CLUSTER:
                return None
            rule = _native_filter(plugin, state, pod, table)
            if rule is None:
                if not isinstance(plugin, TwoFormFilter):
                    return None
                column = _filter_column(plugin, state, pod, table, size)
                if column is None:
                    return None
                filters.append(column)
                if column.codes is None:
                    continue
                rule = _core.ColumnFilter(column.codes)
            filter_rules.append((number, rule))
        for plugin, weight in self._scores:
            if plugin.name in state.skip_score:
                continue
            if plugin.scope == Scope.CLUSTER:
                return None
            score_rule = _native_score(plugin, state, pod, table)
            if score_rule is None:
                if not isinstance(plugin, TwoFormScore) or plugin.normalization == Normalization.CUSTOM:
                    return None
                scored = _score_column(plugin, state, pod, table, size)
                if scored is None:
                    return None
                scores.append(scored)
                if scored.scores is not None:
                    score_rule = _core.ColumnScore(scored.scores)
                elif plugin.normalization == Normalization.NONE:
                    continue
                else:
                    score_rule = _core.ZeroScore()
            normalization: Normalization = plugin.normalization  # type: ignore[attr-defined]  # every score plugin has it
            score_rules.append((score_rule, weight, int(normalization)))
        board = _core.Board(table.present, size, filter_rules, score_rules)
        board.build(self._cluster.journal)
        if board.out_of_range:
            return None
        taken = board.nbytes + sum(4 * size for each in filters if each.codes is not None)
        taken += sum(4 * size for each in scores if each.scores is not None)
        standing = Standing(board, state, pod, filters, scores, self._versions(), self._cluster.journal.nodes, taken)
        self._keep(key, standing)
        return standing

    def __len__(self) -> int:
        return len(self._kept)

    # -- keeping up to date

    def _refresh(self, standing: Standing) -> bool:
        """Bring a board up to date; False if it has to be made anew."""
        journal, board = self._cluster.journal, standing.board
        behind = board.behind(journal)
        if not behind:
            return standing.versions == self._versions()
        if behind < 0 or behind > board.size or standing.versions != self._versions():
            return False
        if self._cluster.table.size > board.size:
            return False
        if standing.node_entries == journal.nodes and not standing.reads_all:
            board.replay(journal, _PODS_ONLY)
        elif not self._recompute(standing):
            return False
        return not board.out_of_range

    def _recompute(self, standing: Standing) -> bool:
        """Ask the plugins without a rule about each node that changed; False if the board has to be made anew."""
        journal, board = self._cluster.journal, standing.board
        changed: set[int] = board.dirty(journal, PODS)
        if len(changed) > FEW_NODES:
            return False
        renewed: set[int] = board.dirty(journal, NODE) if standing.node_entries != journal.nodes else set()
        for column in standing.filters:
            for slot in renewed if column.scope == Scope.STATIC else changed:
                code = self._code(standing, column.plugin, slot)
                if code is None:
                    return False
                if column.codes is not None:
                    column.codes[slot] = code
                elif code:
                    return False
        for scored in standing.scores:
            for slot in renewed if scored.scope == Scope.STATIC else changed:
                score = self._score(standing, scored.plugin, slot)
                if score is None:
                    return False
                if scored.scores is not None:
                    scored.scores[slot] = score
                elif score:
                    return False
        if renewed:
            board.restate(journal, np.fromiter(changed, dtype=np.int32, count=len(changed)))
            standing.node_entries = journal.nodes
        else:
            board.replay(journal, _ANY_KIND)
        return True

    def _code(self, standing: Standing, plugin: TwoFormFilter, slot: int) -> int | None:
        """The plugin's code for a slot; None for a status that is none of its reasons."""
        if not self._cluster.table.present[slot]:
            return 0
        status = called(plugin, "Filter", plugin.filter, standing.state, standing.pod, self._cluster.at(slot))
        if status is None:
            return 0
        return plugin.reasons.index(status) + 1 if status in plugin.reasons else None

    def _score(self, standing: Standing, plugin: TwoFormScore, slot: int) -> int | None:
        """The plugin's raw score of a slot; None where it fails."""
        if not self._cluster.table.present[slot]:
            return 0
        score = called(plugin, "Score", plugin.score, standing.state, standing.pod, self._cluster.at(slot))
        return None if isinstance(score, Status) else score

    # -- what is kept

    def _versions(self) -> tuple[int, ...]:
        """What a board as a whole depends on, beside what the journal tells of single nodes."""
        cluster = self._cluster
        return cluster.images.version, cluster.node_count, cluster.class_version, len(cluster.table.rows)

    def _keep(self, key: Hashable, standing: Standing) -> None:
        if key in self._kept:
            self._drop(key)
        self._kept[key] = standing
        self._bytes += standing.bytes
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            self._bytes -= self._kept.popitem(last=False)[1].bytes

    def _drop(self, key: Hashable) -> None:
        self._bytes -= self._kept.pop(key).bytes


def _native_filter(plugin: Plugin, state: CycleState, pod: PodInfo, table: Table) -> _core.FilterRule | None:
    return plugin.filter_rule(state, pod, table) if isinstance(plugin, ArrayFilterPlugin) else None


def _native_score(plugin: Plugin, state: CycleState, pod: PodInfo, table: Table) -> _core.ScoreRule | None:
    return plugin.score_rule(state, pod, table) if isinstance(plugin, ArrayScorePlugin) else None


def _filter_column(
    plugin: TwoFormFilter, state: CycleState, pod: PodInfo, table: Table, size: int
) -> FilterColumn | None:
    codes = called(plugin, "Filter", plugin.filter_array, state, pod, table)
    if isinstance(codes, Status):
        return None
    if codes is None or not codes[: table.size].any():
        return FilterColumn(plugin, plugin.scope, None)
    column = np.zeros(size, dtype=np.int32)
    column[: table.size] = codes[: table.size]
    return FilterColumn(plugin, plugin.scope, column)


def _score_column(plugin: TwoFormScore, state: CycleState, pod: PodInfo, table: Table, size: int) -> ScoreColumn | None:
    scores = called(plugin, "Score", plugin.score_array, state, pod, table)
    if isinstance(scores, Status):
        return None
    scope = Scope.STATIC if plugin.is_settled(state, pod) else plugin.scope
    raw = scores[: table.size]
    if not raw.any():
        return ScoreColumn(plugin, scope, None)
    column = np.zeros(size, dtype=np.int32)
    column[: table.size] = raw
    return ScoreColumn(plugin, scope, column)
