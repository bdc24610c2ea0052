"""PodTopologySpread: which nodes are too crowded, how even the rest is, and that nothing that is kept goes stale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksched.cache.cluster import Cluster
from ksched.cache.node_info import NodeInfo
from ksched.cache.shapes import PodInfo
from ksched.config.gates import FeatureGates
from ksched.framework import CycleState, Status
from ksched.model.objects import ReplicaSet, ReplicationController, Service, StatefulSet
from ksched.model.pod import TopologySpreadConstraint
from ksched.plugins.pod_topology_spread import PodTopologySpread, rounded
from ksched.testing import NodeBuilder, PodBuilder, assert_forms_agree, cluster, node, pod
from tests.plugins import spread_reference as reference
from tests.plugins.asking import KEPT, Outcome, outcome, plugin_of

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB: dict[str, Any] = {"matchLabels": {"app": "web"}}
DB: dict[str, Any] = {"matchLabels": {"app": "db"}}

MISSING = (reference.MISSING[0], [reference.MISSING[1]])
SKEWED = (reference.SKEWED[0], [reference.SKEWED[1]])


def hard(key: str = ZONE, skew: int = 1, **fields: Any) -> dict[str, Any]:
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB} | fields


def soft(key: str = HOST, skew: int = 1, **fields: Any) -> dict[str, Any]:
    return hard(key, skew, whenUnsatisfiable="ScheduleAnyway") | fields


def web(*constraints: dict[str, Any], name: str = "new") -> PodBuilder:
    return pod(name).label(app="web").spec(topologySpreadConstraints=list(constraints))


def placed(*counts: int, app: str = "web", first: int = 0) -> list[PodBuilder]:
    """So many pods on node n0, n1, ..."""
    return [
        pod(f"{app}-{first}-{on}-{number}").label(app=app).on(f"n{on}")
        for on, count in enumerate(counts)
        for number in range(count)
    ]


def dying(one: PodBuilder) -> PodBuilder:
    return one._merged("metadata", {"deletionTimestamp": "2026-01-01T00:00:00Z"})


def zones(*names: str | None) -> list[NodeBuilder]:
    """Nodes n0, n1, ... in these zones; None for a node without one."""
    return [node(f"n{number}") if name is None else node(f"n{number}").zone(name) for number, name in enumerate(names)]


def plugin_for(here: Cluster, args: dict[str, Any] | None = None, **gates: bool) -> PodTopologySpread:
    made = plugin_of("PodTopologySpread", here, args, FeatureGates(gates))
    assert isinstance(made, PodTopologySpread)
    return made


def named(here: Cluster, name: str) -> NodeInfo:
    found = here.node(name)
    assert found is not None
    return found


def verdicts(
    new: PodBuilder, nodes: list[NodeBuilder], pods: Sequence[PodBuilder] = (), **gates: bool
) -> list[Outcome] | Outcome:
    """What is said of each node, or of the pod before any."""
    here = cluster(nodes, pods)
    plugin = plugin_for(here, **gates)
    assert_forms_agree(plugin, here, [new])
    state = CycleState()
    info = here.shapes.info(new.build())
    answer = plugin.pre_filter(state, info, here.table)
    if answer is not None:
        return (str(answer.code), list(answer.reasons))
    return [outcome(plugin.filter(state, info, named(here, f"n{number}"))) for number in range(len(nodes))]


# -- filter


@pytest.mark.parametrize(
    ("new", "nodes", "pods", "expected"),
    [
        pytest.param(web(), zones("a"), [], ("Skip", []), id="a pod without constraints is not spread"),
        pytest.param(web(soft()), zones("a"), [], ("Skip", []), id="soft constraints keep no node away"),
        pytest.param(
            web(hard()), zones("a", "a", "b"), placed(1), [SKEWED, SKEWED, KEPT], id="every node of a crowded zone"
        ),
        pytest.param(web(hard(skew=2)), zones("a", "b"), placed(1), [KEPT, KEPT], id="a skew of 2 allows one more"),
        pytest.param(
            web(hard()), zones("a", None), [], [KEPT, MISSING], id="a node without the label is out, for good"
        ),
        pytest.param(
            pod("other").label(app="db").spec(topologySpreadConstraints=[hard()]),
            zones("a", "b"), placed(1), [KEPT, KEPT], id="a pod that its own selector does not count adds nothing",
        ),
        pytest.param(
            web(hard()), zones("a", "b"), [dying(one) for one in placed(1)], [KEPT, KEPT],
            id="pods that are being deleted do not count",
        ),
        pytest.param(
            web(hard()), zones("a", "b"), [pod("x", namespace="other").label(app="web").on("n0")], [KEPT, KEPT],
            id="nor do those of other namespaces",
        ),
        pytest.param(
            web(hard(labelSelector={})), zones("a", "b"), placed(3), [KEPT, KEPT],
            id="a selector of everything counts only the pod itself",
        ),
        pytest.param(
            web(hard(labelSelector=None)), zones("a", "b"), placed(3), [KEPT, KEPT], id="no selector counts nobody"
        ),
        pytest.param(
            web(hard(minDomains=3)), zones("a", "b"), placed(1, 1), [SKEWED, SKEWED],
            id="fewer domains than there should be: the lowest count is taken to be 0",
        ),
        pytest.param(web(hard(minDomains=2)), zones("a", "b"), placed(1, 1), [KEPT, KEPT], id="enough domains"),
        pytest.param(
            web(hard(), hard(HOST)), zones("a", "a", "b"), placed(1, 0, 1), [SKEWED, KEPT, SKEWED],
            id="all constraints must hold",
        ),
        pytest.param(
            web(hard(), hard("rack", 9)),
            [node("n0").zone("a").label(rack="r"), node("n1").zone("b").label(rack="r"), *zones("", "", "a", "b")[2:]],
            placed(1), [SKEWED, KEPT, SKEWED, MISSING], id="the first constraint that fails gives the reason",
        ),
        pytest.param(
            web(hard()).node_selector({ZONE: "a"}), zones("a", "a", "b"), placed(1), [KEPT, KEPT, KEPT],
            id="zones that the pod cannot run in are not compared with",
        ),
        pytest.param(
            web(hard(nodeAffinityPolicy="Ignore")).node_selector({ZONE: "a"}), zones("a", "a", "b"), placed(1),
            [SKEWED, SKEWED, KEPT], id="unless affinity is ignored",
        ),
        pytest.param(
            web(hard()), [*zones("a"), node("n1").zone("b").taint("gpu")], placed(1), [SKEWED, KEPT],
            id="taints are ignored",
        ),
        pytest.param(
            web(hard(nodeTaintsPolicy="Honor")), [*zones("a"), node("n1").zone("b").taint("gpu")], placed(1),
            [KEPT, KEPT], id="unless they are honored",
        ),
        pytest.param(
            web(hard(nodeTaintsPolicy="Honor")).tolerate("gpu"), [*zones("a"), node("n1").zone("b").taint("gpu")],
            placed(1), [SKEWED, KEPT], id="taints that are tolerated do not matter",
        ),
        pytest.param(
            web(hard(matchLabelKeys=["version", "absent"])).label(version="2"), zones("a", "b"), placed(1),
            [KEPT, KEPT], id="matchLabelKeys: pods of another version do not count",
        ),
        pytest.param(
            web(hard(labelSelector={}, matchLabelKeys=["app"])), zones("a", "b"), placed(1), [SKEWED, KEPT],
            id="matchLabelKeys make a selector of everything count",
        ),
        pytest.param(
            web(hard(labelSelector=None, matchLabelKeys=["app"])), zones("a", "b"), placed(1), [KEPT, KEPT],
            id="matchLabelKeys do not help where nobody is selected",
        ),
        pytest.param(
            web(hard(labelSelector={"matchLabels": {"app": "not a value!"}})), zones("a"), [],
            ("Error", ["get constraints from pod: obtaining pod's hard topology spread constraints: values[0][app]: "
                       'Invalid value: "not a value!": a valid label must be an empty string or consist of '
                       "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
                       "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                       "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"]), id="a selector that cannot be read",
        ),
    ],
)  # fmt: skip
def test_filter(
    new: PodBuilder, nodes: list[NodeBuilder], pods: list[PodBuilder], expected: list[Outcome] | Outcome
) -> None:
    assert verdicts(new, nodes, pods) == expected


OFF = {"MatchLabelKeysInPodTopologySpread": False, "MatchLabelKeysInPodTopologySpreadSelectorMerge": False}


def test_match_label_keys_do_nothing_where_the_gate_is_off() -> None:
    new = web(hard(matchLabelKeys=["version"])).label(version="2")
    assert verdicts(new, zones("a", "b"), placed(1), **OFF) == [SKEWED, KEPT]


# -- what-ifs


@pytest.mark.parametrize(
    ("other", "on", "by", "expected"),
    [
        pytest.param(pod("x").label(app="web"), "n1", 1, [KEPT, KEPT], id="one more where there was none"),
        pytest.param(pod("x").label(app="web"), "n0", -1, [KEPT, KEPT], id="one less where there was one"),
        pytest.param(pod("x").label(app="db"), "n1", 1, [SKEWED, KEPT], id="a pod that does not count"),
        pytest.param(pod("x", "other").label(app="web"), "n1", 1, [SKEWED, KEPT], id="a pod of another namespace"),
        pytest.param(pod("x").label(app="web"), "n2", 1, [SKEWED, KEPT], id="a node without the label"),
        pytest.param(
            dying(pod("x").label(app="web")),
            "n0",
            -1,
            [KEPT, KEPT],
            id="a dying pod is taken off, though never counted",
        ),
    ],
)  # fmt: skip
def test_what_ifs_change_a_copy(other: PodBuilder, on: str, by: int, expected: list[Outcome]) -> None:
    here = cluster(zones("a", "b", None), placed(1))
    plugin, new = plugin_for(here), here.shapes.info(web(hard()).build())
    state = CycleState()
    assert plugin.pre_filter(state, new, here.table) is None
    before = [outcome(plugin.filter(state, new, named(here, name))) for name in ("n0", "n1")]
    what_if = state.clone()
    tell = plugin.add_pod if by > 0 else plugin.remove_pod
    tell(what_if, new, here.shapes.info(other.build()), named(here, on))
    assert [outcome(plugin.filter(what_if, new, named(here, name))) for name in ("n0", "n1")] == expected
    assert [outcome(plugin.filter(state, new, named(here, name))) for name in ("n0", "n1")] == before == [SKEWED, KEPT]


def test_a_selector_of_everything_starts_counting_in_a_what_if() -> None:
    here = cluster(zones("a", "b"))
    plugin, new = plugin_for(here), here.shapes.info(web(hard(labelSelector={})).build())
    state = CycleState()
    assert plugin.pre_filter(state, new, here.table) is None
    plugin.add_pod(state, new, here.shapes.info(pod("x").build()), named(here, "n0"))
    assert outcome(plugin.filter(state, new, named(here, "n0"))) == SKEWED


# -- score


def scored(
    here: Cluster, new: PodBuilder, feasible: Sequence[str] | None = None, args: dict[str, Any] | None = None
) -> tuple[list[int], list[int]] | Status:
    """Raw and normalised scores of the feasible nodes, in order; by both forms."""
    plugin, info = plugin_for(here, args), here.shapes.info(new.build())
    names = [each.name for each in here.nodes()] if feasible is None else list(feasible)
    table, state = here.table, CycleState()
    table.sieve.start(table.present, table.size)
    table.sieve.keep_only(np.array([named(here, name).slot for name in names], dtype=np.int32), table.size)
    status = plugin.pre_score(state, info, table)
    if status is not None:
        return status
    raw = [plugin.score(state, info, named(here, name)) for name in names]
    array = plugin.score_array(state, info, table)
    slots = [named(here, name).slot for name in names]
    assert [int(array[slot]) for slot in slots] == raw
    in_slot_order = sorted(slots)
    normal = plugin.normalize(state, info, array[np.array(in_slot_order)])
    spread = plugin.normalize_array(state, info, array, table)
    assert normal.tolist() == [int(spread[slot]) for slot in in_slot_order]
    return [int(each) for each in raw if isinstance(each, int)], [int(spread[slot]) for slot in slots]


FOUR = zones("a", "a", "b", "b")
THREE_OF_FOUR = ["n0", "n1", "n2"]


@pytest.mark.parametrize(
    ("nodes", "pods", "feasible", "constraints", "raw", "normal"),
    [
        pytest.param(FOUR, placed(2, 1, 0, 3), None, [soft()], [4, 2, 0, 5], [20, 60, 100, 0], id="four hosts"),
        pytest.param(FOUR, placed(2, 1, 0, 3), None, [soft(skew=2)], [5, 3, 1, 6], [33, 66, 100, 16], id="skew of 2"),
        pytest.param(FOUR, placed(4, 3, 2, 1), None, [soft(skew=3)], [9, 7, 6, 4], [44, 66, 77, 100], id="skew of 3"),
        pytest.param(
            FOUR, placed(4, 2, 1, 3), THREE_OF_FOUR, [soft()], [6, 3, 2], [33, 83, 100],
            id="what a host weighs depends on how many are feasible",
        ),
        pytest.param(
            [node("n0"), node("n1")._merged("metadata", {"labels": {}}), node("n2"), node("n3")], placed(4, 2, 1, 3),
            THREE_OF_FOUR, [soft()], [6, 0, 1], [16, 0, 100], id="a host without the label gets 0",
        ),
        pytest.param(
            FOUR, placed(4, 2, 1, 3), THREE_OF_FOUR, [soft(ZONE)], [8, 8, 6], [75, 75, 100],
            id="zones count all their nodes",
        ),
        pytest.param(
            FOUR, placed(2, 1, 2, 4), ["n0", "n2"], [soft(ZONE), soft(HOST)], [7, 11], [100, 63],
            id="zone and host are added up",
        ),
        pytest.param(
            zones("a", "b"), [*placed(3, 3), *placed(2, 1, app="db")], None, [soft(ZONE), soft(ZONE, labelSelector=DB)],
            [7, 6], [85, 100], id="two selectors over zones",
        ),
        pytest.param(
            zones("a", "a", "b", "b", "a"), placed(0, 1, 0, 1, 1), ["n0", "n1", "n2", "n3"], [soft(ZONE), soft(HOST)],
            [3, 5, 1, 3], [60, 20, 100, 60], id="the pods of a node that is not feasible count for its zone",
        ),
        pytest.param(FOUR, [], None, [soft()], [0, 0, 0, 0], [100] * 4, id="no pods: all the best"),
        pytest.param(
            FOUR, placed(1, 2, 3, 4), None, [soft(labelSelector=None)], [0] * 4, [100] * 4, id="no selector"
        ),
        pytest.param(
            FOUR, placed(1, 2, 3, 4), None, [soft(labelSelector={})], [0] * 4, [100] * 4, id="a selector of everything"
        ),
    ],
)  # fmt: skip
def test_scores(
    nodes: list[NodeBuilder],
    pods: list[PodBuilder],
    feasible: list[str] | None,
    constraints: list[dict[str, Any]],
    raw: list[int],
    normal: list[int],
) -> None:
    assert scored(cluster(nodes, pods), web(*constraints), feasible) == (raw, normal)


@pytest.mark.parametrize(
    ("zoned", "raw", "normal"),
    [
        pytest.param(False, [9, 7, 6, 4], [44, 66, 77, 100], id="without zones: hosts alone"),
        pytest.param(True, [23, 21, 14, 12], [52, 60, 91, 100], id="with zones"),
    ],
)
def test_system_defaults(zoned: bool, raw: list[int], normal: list[int]) -> None:
    here = cluster(FOUR if zoned else zones(None, None, None, None), placed(4, 3, 2, 1))
    here.put_selector_source(service(app="web"))
    assert scored(here, web()) == (raw, normal)


def test_a_profile_with_its_own_defaults_rates_only_nodes_with_all_labels() -> None:
    here = cluster(zones("a", None), placed(2, 1))
    here.put_selector_source(service(app="web"))
    args = {"defaultingType": "List", "defaultConstraints": [dict(soft(ZONE)) | {"labelSelector": None}]}
    args["defaultConstraints"][0].pop("labelSelector")
    assert scored(here, web(), args=args) == ([2, 0], [100, 0])


@pytest.mark.parametrize(
    ("new", "message"),
    [
        pytest.param(web(), "", id="a pod of no service and no controller"),
        pytest.param(web(hard()), "", id="a pod with hard constraints alone gets no defaults"),
        pytest.param(
            web(soft(labelSelector={"matchExpressions": [{"key": "a", "operator": "Like"}]})),
            "calculating preScoreState: obtaining pod's soft topology spread constraints: "
            '"Like" is not a valid label selector operator',
            id="a selector that cannot be read",
        ),
    ],
)
def test_pods_that_are_not_scored(new: PodBuilder, message: str) -> None:
    here = cluster(zones("a"))
    if new.build().spec.topology_spread_constraints:
        here.put_selector_source(service(app="web"))
    status = scored(here, new)
    assert isinstance(status, Status)
    assert status.message == message


@pytest.mark.parametrize(
    ("value", "whole"),
    [(0.5, 1), (1.5, 2), (2.5, 3), (-0.5, -1), (0.49999999999999994, 0), (22.0, 22), (-2.4, -2)],
)
def test_halves_are_rounded_away_from_zero(value: float, whole: int) -> None:
    assert rounded(value) == whole


def service(name: str = "service", **selects: str) -> Service:
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"selector": selects}}
    return msgspec.convert(body, Service)


# -- boards


@pytest.mark.parametrize(
    ("new", "selects", "key"),
    [
        pytest.param(web(), None, (), id="a pod that is not spread shares its board"),
        pytest.param(web(), "web", None, id="a pod of a service has none"),
        pytest.param(web(), "db", (), id="a pod of no service has one"),
        pytest.param(web(hard()), None, None, id="a pod with constraints has none"),
    ],
)
def test_keys(new: PodBuilder, selects: str | None, key: tuple[()] | None) -> None:
    here = cluster(zones("a"))
    if selects is not None:
        here.put_selector_source(service(app=selects))
    assert plugin_for(here).key(here.shapes.info(new.build())) == key


# -- whatever happens, the answers are those of somebody who counts anew each time

NODES = [f"n{number}" for number in range(5)]
KEYS = [ZONE, ZONE, HOST, "rack"]

selectors = st.sampled_from(
    [
        WEB,
        WEB,
        None,
        {},
        {"matchLabels": {"app": "web", "version": "1"}},
        {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]},
    ]
)

constraints = st.fixed_dictionaries(
    {
        "topologyKey": st.sampled_from(KEYS),
        "maxSkew": st.integers(1, 3),
        "whenUnsatisfiable": st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
        "labelSelector": selectors,
    },
    optional={
        "minDomains": st.integers(1, 4),
        "nodeAffinityPolicy": st.sampled_from(["Honor", "Ignore"]),
        "nodeTaintsPolicy": st.sampled_from(["Honor", "Ignore"]),
        "matchLabelKeys": st.sampled_from([[], ["version"], ["version", "absent"]]),
    },
)

pod_labels = st.sampled_from([{}, {"app": "web"}, {"app": "web", "version": "1"}, {"app": "db", "version": "1"}])


@st.composite
def some_nodes(draw: st.DrawFn, name: str | None = None) -> NodeBuilder:
    made = node(name or draw(st.sampled_from(NODES)))
    labels = {
        HOST: draw(st.sampled_from([made.build().name] * 4 + [None, "shared"])),
        ZONE: draw(st.sampled_from(["a", "b", "b", "", None])),
        "rack": draw(st.sampled_from(["r", "s", None])),
    }
    made = made._merged("metadata", {"labels": {key: value for key, value in labels.items() if value is not None}})
    return made.taint("gpu") if draw(st.integers(0, 3)) == 0 else made


@st.composite
def some_placed(draw: st.DrawFn) -> PodBuilder:
    one = pod(f"p{draw(st.integers(0, 9))}", draw(st.sampled_from(["default", "default", "default", "other"])))
    one = one.label(draw(pod_labels)).on(draw(st.sampled_from([*NODES, "nowhere"])))
    return dying(one) if draw(st.integers(0, 4)) == 0 else one


@st.composite
def some_incoming(draw: st.DrawFn) -> PodBuilder:
    one = pod("incoming").label(draw(pod_labels))
    one = one.spec(topologySpreadConstraints=draw(st.lists(constraints, max_size=3)))
    match draw(st.integers(0, 5)):
        case 0:
            one = one.node_selector(rack="r")
        case 1:
            one = one.require_node((ZONE, "NotIn", "b"))
        case 2:
            one = one.require_node(fields=(("metadata.name", "In", "n0"),))
    one = one.tolerate("gpu") if draw(st.booleans()) else one
    return one.owner("ReplicaSet", "owner") if draw(st.booleans()) else one


def source(kind: type[Any], selector: Any) -> Any:
    return msgspec.convert(
        {"metadata": {"name": "owner", "namespace": "default"}, "spec": {"selector": selector}}, kind
    )


some_sources = st.one_of(
    st.sampled_from([{"app": "web"}, {"app": "db"}, {}, None]).map(lambda labels: source(Service, labels)),
    selectors.map(lambda selector: source(ReplicaSet, selector)),
)

Step = Any
steps = st.one_of(
    some_nodes(),
    some_placed(),
    some_placed(),
    some_sources,
    st.sampled_from(NODES),
    st.integers(0, 9),
    st.just(Service),
)


def apply(here: Cluster, step: Step) -> None:
    match step:
        case NodeBuilder():
            here.put_node(step.build())
        case PodBuilder():
            here.put_pod(step.build())
        case str():
            here.remove_node(step)
        case int():
            here.remove_pod(f"uid-default-p{step}")
        case type():
            here.remove_selector_source(step, "default/owner")
        case _:
            here.put_selector_source(step)


LISTED: dict[str, Any] = {
    "defaultingType": "List",
    "defaultConstraints": [
        {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
        {"topologyKey": HOST, "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"},
    ],
}


class Witness:
    """Holds the plugin against the reference."""

    def __init__(self, here: Cluster, args: dict[str, Any]) -> None:
        self.here = here
        self.plugin = plugin_for(here, args)
        self.is_system = not args
        listed = args.get("defaultConstraints", [])
        self.defaults = reference.SYSTEM if self.is_system else msgspec.convert(listed, list[TopologySpreadConstraint])

    def check(self, new: PodInfo, others: list[PodInfo], feasible: set[str]) -> None:
        self.check_filter(new, others)
        self.check_score(new, [each for each in self.here.nodes() if each.name in feasible])

    def check_filter(self, new: PodInfo, others: list[PodInfo]) -> None:
        here, plugin, state = self.here, self.plugin, CycleState()
        answer = plugin.pre_filter(state, new, here.table)
        rules = self._rules(new, "DoNotSchedule")
        assert (answer is not None) == (not rules)
        if not rules:
            return
        by_hand = reference.Hard(here, new, rules)
        codes = plugin.filter_array(state, new, here.table)
        for each in here.nodes():
            expected = by_hand.verdict(each)
            assert shown(plugin.filter(state, new, each)) == expected, each.name
            code = int(codes[each.slot])
            assert shown(plugin.explain(state, new, code) if code else None) == expected, each.name
        for each in here.nodes():
            what_if, told = state.clone(), reference.Hard(here, new, rules)
            for number, other in enumerate(others):
                by = -1 if number % 2 else 1
                (plugin.add_pod if by > 0 else plugin.remove_pod)(what_if, new, other, each)
                told.change(other, each, by)
                assert shown(plugin.filter(what_if, new, each)) == told.verdict(each), each.name

    def check_score(self, new: PodInfo, feasible: list[NodeInfo]) -> None:
        here, plugin, state = self.here, self.plugin, CycleState()
        if not feasible:
            return
        table = here.table
        table.alive[: table.size] = 0
        for each in feasible:
            table.alive[each.slot] = 1
        rules = self._rules(new, "ScheduleAnyway")
        status = plugin.pre_score(state, new, table)
        assert (status is not None) == (not rules)
        if not rules:
            return
        requires_all = bool(new.spec.topology_spread_constraints) or not self.is_system
        scores, ignored = reference.raw_scores(here, new, rules, feasible, requires_all)
        array = plugin.score_array(state, new, table)
        assert {each.name: plugin.score(state, new, each) for each in feasible} == scores
        assert {each.name: int(array[each.slot]) for each in feasible} == scores
        expected = reference.normalized(scores, ignored)
        in_order = sorted(feasible, key=lambda each: each.slot)
        normal = plugin.normalize(state, new, array[np.array([each.slot for each in in_order])])
        assert dict(zip([each.name for each in in_order], normal.tolist(), strict=True)) == expected
        spread = plugin.normalize_array(state, new, array, table)
        assert {each.name: int(spread[each.slot]) for each in feasible} == expected

    def _rules(self, new: PodInfo, action: str) -> list[reference.Rule]:
        selector = self.here.selector_sources.default_selector(new.pod)
        return reference.rules(new, action, self.defaults, selector)


def shown(status: Status | None) -> reference.Verdict:
    return None if status is None else (str(status.code), status.message)


def check_history(data: st.DataObject) -> None:
    here = cluster([data.draw(some_nodes(name)) for name in NODES[: data.draw(st.integers(1, 5))]])
    for one in data.draw(st.lists(some_placed(), max_size=12)):
        here.put_pod(one.build())
    witness = Witness(here, data.draw(st.sampled_from([{}, LISTED])))
    pods = [here.shapes.info(one.build()) for one in data.draw(st.lists(some_incoming(), min_size=1, max_size=2))]
    others = [here.shapes.info(one.build()) for one in data.draw(st.lists(some_placed(), max_size=3))]
    for step in [None, *data.draw(st.lists(steps, max_size=8))]:
        if step is not None:
            apply(here, step)
        feasible = data.draw(st.sets(st.sampled_from(NODES)))
        for new in pods:
            witness.check(new, others, feasible)


@settings(max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_plugin_says_what_counting_anew_says(data: st.DataObject) -> None:
    check_history(data)


@pytest.mark.soak
@settings(max_examples=2500, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_plugin_says_what_counting_anew_says_of_very_many(data: st.DataObject) -> None:
    check_history(data)


def test_every_kind_of_source_is_known_by_its_owner_reference() -> None:
    for kind, version in ((ReplicaSet, "apps/v1"), (StatefulSet, "apps/v1"), (ReplicationController, "v1")):
        here = cluster([])
        one = pod("x").label(app="web").owner(kind.__name__, "owner", version).build()
        selector = {"app": "web"} if kind is ReplicationController else WEB
        here.put_selector_source(source(kind, selector))
        assert str(here.selector_sources.default_selector(one)) == "app=web", kind.__name__
        here.remove_selector_source(kind, "default/owner")
        assert here.selector_sources.default_selector(one).empty, kind.__name__
