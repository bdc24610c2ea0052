"""Scoring: how good the nodes are that filtering left."""

from __future__ import annotations

import numpy as np

from ksched.cache.cluster import Cluster
from ksched.cache.shapes import PodInfo
from ksched.cache.table import Amounts, Table
from ksched.framework.faults import called
from ksched.framework.plugin import ArrayScorePlugin, ScorePlugin
from ksched.framework.state import CycleState
from ksched.framework.status import Status


class ScoreStep:
    """One score plugin in a profile, in the form that is used, and its weight."""

    __slots__ = ("array", "plain", "plugin", "weight")

    def __init__(self, plugin: ScorePlugin | ArrayScorePlugin, weight: int, native: bool) -> None:
        self.plugin = plugin
        self.weight = weight
        self.plain = plugin if isinstance(plugin, ScorePlugin) else None
        self.array = plugin if isinstance(plugin, ArrayScorePlugin) and (native or self.plain is None) else None

    def raw(self, cluster: Cluster, state: CycleState, pod: PodInfo) -> Amounts | Status:
        """The plugin's scores before normalisation, one per slot."""
        table = cluster.table
        if self.array is not None:
            return called(self.plugin, "Score", self.array.score_array, state, pod, table)
        assert self.plain is not None
        scores = np.zeros(table.size, dtype=np.int64)
        for slot in np.flatnonzero(table.alive[: table.size]).tolist():
            score = called(self.plugin, "Score", self.plain.score, state, pod, cluster.at(slot))
            if isinstance(score, Status):
                return score
            scores[slot] = score
        return scores

    def normal(self, state: CycleState, pod: PodInfo, raw: Amounts, table: Table) -> Amounts | Status:
        """The scores as the plugin's own normalisation has them."""
        if self.array is not None:
            return called(self.plugin, "NormalizeScore", self.array.normalize_array, state, pod, raw, table)
        assert self.plain is not None
        feasible = table.alive[: table.size] != 0
        normal = called(self.plugin, "NormalizeScore", self.plain.normalize, state, pod, raw[: table.size][feasible])
        if isinstance(normal, Status):
            return normal
        spread = np.zeros(table.size, dtype=np.int64)
        spread[feasible] = normal
        return spread


class Scored:
    """What scoring found: totals per slot; with `details`, each plugin's raw and weighted scores too."""

    __slots__ = ("raw", "totals", "weighted")

    def __init__(self, totals: Amounts) -> None:
        self.totals = totals
        self.raw: dict[str, Amounts] = {}
        self.weighted: dict[str, Amounts] = {}
