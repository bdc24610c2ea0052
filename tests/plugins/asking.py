"""Asking one plugin about one pod and one node, through both of its forms."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from ksched.cache.cluster import Cluster
from ksched.config.args import KINDS, defaulted, from_written
from ksched.config.gates import FeatureGates
from ksched.config.types import Configuration
from ksched.engine.cycle import Cycle, Evaluation
from ksched.framework import CycleState, Plugin, PreFilterPlugin, Status
from ksched.framework.build import build_profiles
from ksched.plugins.registry import IN_TREE
from ksched.testing import NodeBuilder, PodBuilder, assert_forms_agree, cluster, handle

Outcome = tuple[str, list[str]]
KEPT: Outcome = ("Success", [])


def plugin_of(
    name: str, here: Cluster, args: Mapping[str, Any] | None = None, gates: FeatureGates | None = None
) -> Plugin:
    """The in-tree plugin `name`, made as a profile makes it."""
    kind = IN_TREE[name]
    gates = gates or FeatureGates()
    made = defaulted(from_written(name, args or {}), gates) if name in KINDS else kind.Args()
    return kind(made, handle(here, gates))


def verdict(
    name: str,
    pod: PodBuilder,
    node: NodeBuilder,
    *placed: PodBuilder,
    args: Mapping[str, Any] | None = None,
    gates: FeatureGates | None = None,
) -> Outcome:
    """(code, reasons) of a filter plugin for `pod` on `node` with `placed` on it; both forms must say it."""
    here = cluster([node], placed)
    plugin = plugin_of(name, here, args, gates)
    assert_forms_agree(plugin, here, [pod])
    info = here.shapes.info(pod.build())
    state = CycleState()
    if isinstance(plugin, PreFilterPlugin):
        answer = plugin.pre_filter(state, info, here.table)
        if isinstance(answer, Status):
            return outcome(None if str(answer.code) == "Skip" else answer)
    target = here.node(node.build().name)
    assert target is not None
    return outcome(plugin.filter(state, info, target))  # type: ignore[attr-defined]  # a filter plugin, by the contract


def outcome(status: Status | None) -> Outcome:
    """A status as (code, reasons)."""
    return KEPT if status is None else (str(status.code), list(status.reasons))


def evaluate(
    pod: PodBuilder, nodes: list[NodeBuilder], placed: list[PodBuilder] | None = None, gates: FeatureGates | None = None
) -> Evaluation:
    """What the default profile finds out about `pod`."""
    gates = gates or FeatureGates()
    here = cluster(nodes, placed or [])
    profile = build_profiles(Configuration.default(gates), gates, handle(here, gates), IN_TREE)["default-scheduler"]
    return Cycle(here, rng=random.Random(7)).evaluate(profile, here.shapes.info(pod.build()), {})


def raw_scores(
    name: str,
    pod: PodBuilder,
    nodes: list[NodeBuilder],
    placed: list[PodBuilder] | None = None,
    args: Mapping[str, Any] | None = None,
) -> list[int] | str:
    """A score plugin's raw scores in the order of `nodes`, by both forms; or why PreScore gives none."""
    here = cluster(nodes, placed or [])
    here.begin_cycle()
    plugin: Any = plugin_of(name, here, args)
    assert_forms_agree(plugin, here, [pod])
    info = here.shapes.info(pod.build())
    state = CycleState()
    if hasattr(plugin, "pre_score"):
        here.table.sieve.start(here.table.present, here.table.size)
        status = plugin.pre_score(state, info, here.table)
        if status is not None:
            return status.message or str(status.code)
    found = []
    for one in nodes:
        target = here.node(one.build().name)
        assert target is not None
        found.append(plugin.score(state, info, target))
    return found
