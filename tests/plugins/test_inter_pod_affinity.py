"""InterPodAffinity: near to whom, away from whom, by both forms; worked numbers; what-ifs; two ways of counting."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ksched.cache.cluster import Cluster
from ksched.framework import CycleState, NodeInfo, Status
from ksched.model.objects import Namespace
from ksched.model.pod import Pod
from ksched.plugins.inter_pod_affinity import InterPodAffinity, normal
from ksched.testing import NodeBuilder, PodBuilder, assert_forms_agree, cluster, node, pod
from tests.plugins.affinities import namespaces
from tests.plugins.asking import KEPT, Outcome, evaluate, outcome, plugin_of, raw_scores
from tests.plugins.strategies import NODE_NAMES, clusters, incoming_pods, nodes, placed_pods

NO_AFFINITY: Outcome = ("UnschedulableAndUnresolvable", ["node(s) didn't match pod affinity rules"])
NO_ANTI: Outcome = ("Unschedulable", ["node(s) didn't match pod anti-affinity rules"])
NO_EXISTING: Outcome = ("Unschedulable", ["node(s) didn't satisfy existing pods anti-affinity rules"])

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def term(key: str = "zone", *, names: Any = None, selected: Any = None, **labels: str) -> dict[str, Any]:
    """A term about pods with labels."""
    return {
        "topologyKey": key,
        "labelSelector": {"matchLabels": labels},
        **({} if names is None else {"namespaces": names}),
        **({} if selected is None else {"namespaceSelector": selected}),
    }


def liking(weight: int, **labels: str) -> dict[str, Any]:
    return {"weight": weight, "podAffinityTerm": term(**labels)}


def near(*terms: Any, name: str = "asks") -> PodBuilder:
    return pod(name).spec(affinity={"podAffinity": {REQUIRED: list(terms)}})


def away(*terms: Any, name: str = "asks") -> PodBuilder:
    return pod(name).spec(affinity={"podAntiAffinity": {REQUIRED: list(terms)}})


def prefers(*liked: Any, but_not: tuple[Any, ...] = (), name: str = "asks") -> PodBuilder:
    return pod(name).spec(affinity={"podAffinity": {PREFERRED: list(liked)}, "podAntiAffinity": {PREFERRED: but_not}})


X1, X2 = node("x1").label(zone="x"), node("x2").label(zone="x")
Y = node("y").label(zone="y")
NOWHERE = node("nowhere")
NODES = [X1, X2, Y, NOWHERE]


def web(name: str = "web", namespace: str = "default") -> PodBuilder:
    return pod(name, namespace=namespace).label(app="web")


def namespace(name: str, **labels: str) -> Namespace:
    return msgspec.convert({"metadata": {"name": name, "labels": labels}}, Namespace)


RED = namespace("red", team="red")
BLUE = namespace("blue", team="blue")


def world(placed: list[PodBuilder], known: list[Namespace]) -> Cluster:
    here = cluster(NODES, placed)
    for each in known:
        here.put_namespace(each)
    return here


def verdicts(one: PodBuilder, placed: list[PodBuilder], *known: Namespace) -> list[Outcome]:
    """What each of NODES is told, by both forms and by both ways of counting."""
    here = world(placed, list(known))
    plugin = plugin_of("InterPodAffinity", here)
    assert_forms_agree(plugin, here, [one])
    info = here.shapes.info(one.build())
    told = []
    for native in (False, True):
        plugin.native = native
        state = CycleState()
        answer = plugin.pre_filter(state, info, here.table)  # type: ignore[attr-defined]
        if answer is not None:
            told.append([KEPT if str(answer.code) == "Skip" else outcome(answer)] * len(NODES))
            continue
        told.append([outcome(plugin.filter(state, info, at(here, each))) for each in NODES])  # type: ignore[attr-defined]
    assert told[0] == told[1]
    return told[0]


def at(here: Cluster, one: NodeBuilder) -> NodeInfo:
    found = here.node(one.build().name)
    assert found is not None
    return found


NOT_X = {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]}
HAS_TEAM = {"matchExpressions": [{"key": "team", "operator": "Exists"}]}


@pytest.mark.parametrize(
    ("one", "placed", "expected"),
    [
        pytest.param(pod(), [web().on("x1")], [KEPT] * 4, id="a pod without terms may go anywhere"),
        pytest.param(
            near(term(app="web")),
            [web().on("x1")],
            [KEPT, KEPT, NO_AFFINITY, NO_AFFINITY],
            id="near: the domain of a pod that is meant, and no node without the label",
        ),
        pytest.param(
            near(term(app="web")),
            [web().on("nowhere")],
            [NO_AFFINITY] * 4,
            id="near: a pod on a node without the label is in no domain",
        ),
        pytest.param(
            near(term(app="web"), term(tier="front")),
            [web().on("x1"), pod("front").label(tier="front").on("x1")],
            [NO_AFFINITY] * 4,
            id="near: one pod must be meant by all terms",
        ),
        pytest.param(
            near(term(app="web"), term("kubernetes.io/hostname", tier="front")),
            [web().label(tier="front").on("x1")],
            [KEPT, NO_AFFINITY, NO_AFFINITY, NO_AFFINITY],
            id="near: within the domains of all terms",
        ),
        pytest.param(
            near(term(app="web")).label(app="web"),
            [],
            [KEPT, KEPT, KEPT, NO_AFFINITY],
            id="near: the first of a group may go wherever the label is",
        ),
        pytest.param(
            near(term(app="web")).label(app="web"),
            [web().on("y")],
            [NO_AFFINITY, NO_AFFINITY, KEPT, NO_AFFINITY],
            id="near: the second goes where the first is",
        ),
        pytest.param(
            near(term(app="web")).label(app="web"),
            [web().on("nowhere")],
            [KEPT, KEPT, KEPT, NO_AFFINITY],
            id="near: who is in no domain does not count as the first",
        ),
        pytest.param(
            near(term(app="web"), term(tier="front")).label(app="web"),
            [],
            [NO_AFFINITY] * 4,
            id="near: who is not meant by its own terms is not the first of a group",
        ),
        pytest.param(
            near({"topologyKey": "zone"}),
            [web().on("x1")],
            [NO_AFFINITY] * 4,
            id="a term without selector means nobody",
        ),
        pytest.param(
            away(term(app="web")),
            [web().on("x1")],
            [NO_ANTI, NO_ANTI, KEPT, KEPT],
            id="away: not in the domain of a pod that is meant, but where no label is",
        ),
        pytest.param(
            away(term(app="web"), term("kubernetes.io/hostname", app="db")),
            [pod("db").label(app="db").on("y")],
            [KEPT, KEPT, NO_ANTI, KEPT],
            id="away: each term counts for itself",
        ),
        pytest.param(
            away(term(app="web")),
            [web().on("x1")._merged("metadata", {"deletionTimestamp": "2026-01-01T00:00:00Z"})],
            [NO_ANTI, NO_ANTI, KEPT, KEPT],
            id="away: a pod that is being deleted still counts",
        ),
        pytest.param(
            web("asks"),
            [away(term(app="web"), name="alone").on("y")],
            [KEPT, KEPT, NO_EXISTING, KEPT],
            id="a placed pod wants this one away",
        ),
        pytest.param(
            pod("asks").label(app="db"),
            [away(term(app="web"), name="alone").on("y")],
            [KEPT] * 4,
            id="a placed pod wants others away",
        ),
        pytest.param(
            away(term(app="web")).label(app="web"),
            [away(term(app="web"), name="alone").label(app="web").on("y")],
            [KEPT, KEPT, NO_ANTI, KEPT],
            id="both want each other away: the pod's own words come first",
        ),
        pytest.param(
            pod("asks")
            .label(app="web")
            .spec(
                affinity={"podAffinity": {REQUIRED: [term(app="db")]}, "podAntiAffinity": {REQUIRED: [term(app="db")]}}
            ),
            [pod("db").label(app="db").on("x1"), away(term(app="web"), name="alone").on("y")],
            [NO_ANTI, NO_ANTI, NO_AFFINITY, NO_AFFINITY],
            id="affinity before anti-affinity before that of placed pods",
        ),
    ],
)
def test_filter(one: PodBuilder, placed: list[PodBuilder], expected: list[Outcome]) -> None:
    assert verdicts(one, placed) == expected


HERE: list[Outcome] = [KEPT, KEPT, NO_AFFINITY, NO_AFFINITY]
NONE: list[Outcome] = [NO_AFFINITY] * 4


@pytest.mark.parametrize(
    ("one", "known", "expected"),
    [
        pytest.param(near(term(app="web")), (), NONE, id="without namespaces only the pod's own is meant"),
        pytest.param(near(term(app="web", names=["red"])), (), HERE, id="namespaces by name need not be known"),
        pytest.param(near(term(app="web", names=["blue"])), (RED, BLUE), NONE, id="another name"),
        pytest.param(near(term(app="web", selected={})), (), HERE, id="an empty selector means all, known or not"),
        pytest.param(
            near(term(app="web", selected={"matchLabels": {"team": "red"}})), (RED, BLUE), HERE, id="by their labels"
        ),
        pytest.param(
            near(term(app="web", selected={"matchLabels": {"team": "red"}})), (BLUE,), NONE, id="one that is not known"
        ),
        pytest.param(
            near(term(app="web", names=["red"], selected={"matchLabels": {"team": "blue"}})),
            (RED, BLUE),
            HERE,
            id="names and selector add up",
        ),
        pytest.param(
            near(term(app="web", names=["blue", "default"]), term(app="web", names=["red", "blue"])),
            (),
            NONE,
            id="a pod must be in the namespaces of all terms",
        ),
        pytest.param(
            near(term(app="web", selected={}), term(app="web", names=["blue", "red"])),
            (),
            HERE,
            id="which is no limit where a term means all of them",
        ),
        pytest.param(near(term(app="web", selected=HAS_TEAM)), (), NONE, id="Exists means none that is not known"),
        pytest.param(
            near(term(app="web", selected=NOT_X)), (), HERE, id="NotIn alone means every namespace, known or not"
        ),
        pytest.param(
            near(
                term(
                    app="web",
                    selected={"matchExpressions": [*NOT_X["matchExpressions"], *HAS_TEAM["matchExpressions"]]},
                )
            ),
            (namespace("red", team="x"),),
            NONE,
            id="NotIn beside Exists means what it says",
        ),
    ],
)
def test_namespaces_of_the_pods_own_terms(
    one: PodBuilder, known: tuple[Namespace, ...], expected: list[Outcome]
) -> None:
    assert verdicts(one, [web(namespace="red").on("x1")], *known) == expected


@pytest.mark.parametrize(
    ("written", "known", "meant"),
    [
        pytest.param({}, (), False, id="only the placed pod's own namespace"),
        pytest.param({"names": ["red"]}, (), True, id="by name"),
        pytest.param({"selected": {}}, (), True, id="all"),
        pytest.param({"selected": {"matchLabels": {"team": "red"}}}, (RED,), True, id="by labels"),
        pytest.param({"selected": {"matchLabels": {"team": "red"}}}, (), False, id="a namespace that is not known"),
        pytest.param({"selected": NOT_X}, (namespace("red", team="x"),), False, id="NotIn looks at the real labels"),
        pytest.param({"selected": NOT_X}, (), True, id="NotIn holds for a namespace that is not known"),
    ],
)
def test_namespaces_of_placed_pods_terms(written: dict[str, Any], known: tuple[Namespace, ...], meant: bool) -> None:
    placed = [away(term(app="web", **written), name="alone").on("y")]
    expected = [KEPT, KEPT, NO_EXISTING if meant else KEPT, KEPT]
    assert verdicts(web("asks", namespace="red"), placed, *known) == expected


MALFORMED = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}}
WRONG = '"Is" is not a valid label selector operator'


@pytest.mark.parametrize(
    ("affinity", "says"),
    [
        pytest.param({"podAffinity": {REQUIRED: [MALFORMED]}}, f"requiredAffinityTerms: {WRONG}", id="required"),
        pytest.param(
            {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": MALFORMED}]}},
            f"preferredAntiAffinityTerms: {WRONG}",
            id="even a preferred one",
        ),
        pytest.param(
            {"podAffinity": {REQUIRED: [MALFORMED]}, "podAntiAffinity": {REQUIRED: [MALFORMED]}},
            f"[requiredAffinityTerms: {WRONG}, requiredAntiAffinityTerms: {WRONG}]",
            id="several",
        ),
    ],
)
def test_a_malformed_term_turns_the_pod_down(affinity: Any, says: str) -> None:
    report = evaluate(pod().spec(affinity=affinity), NODES)
    assert report.message == f"0/4 nodes are available: parsing pod: {says}."


def test_a_malformed_term_of_a_placed_pod_takes_its_list_with_it() -> None:
    assert verdicts(web("asks"), [away(term(app="web"), MALFORMED, name="alone").on("y")]) == [KEPT] * 4


# -- scores

CHINA1, CHINA2 = (node(name).label(region="China") for name in ("china1", "china2"))
INDIA, US = node("india").label(region="India"), node("us").label(region="US")


def in_region(weight: int, *expressions: tuple[str, ...]) -> dict[str, Any]:
    written = [
        {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
        for key, operator, *values in expressions
    ]
    return {
        "weight": weight,
        "podAffinityTerm": {"topologyKey": "region", "labelSelector": {"matchExpressions": written}},
    }


def test_the_weights_of_terms_add_up_per_domain() -> None:
    one = prefers(
        in_region(8, ("security", "In", "S2"), ("security", "NotIn", "S1")), in_region(2, ("security", "Exists"))
    )
    placed = [pod("s1").label(security="S1").on("china1"), pod("s2").label(security="S2").on("india")]
    scores = raw_scores("InterPodAffinity", one, [CHINA1, INDIA, US], placed)
    assert scores == [2, 10, 0]
    assert isinstance(scores, list)
    assert normal(scores) == [20, 100, 0]


@pytest.mark.parametrize(
    ("one", "placed", "args", "scores"),
    [
        pytest.param(
            prefers(in_region(5, ("app", "Exists"))),
            [web().on("china1")],
            {},
            [5, 5, 0],
            id="near, in the whole domain",
        ),
        pytest.param(
            prefers(but_not=(in_region(5, ("app", "Exists")),)), [web().on("china1")], {}, [-5, -5, 0], id="away"
        ),
        pytest.param(
            web("asks"),
            [prefers(in_region(5, ("app", "Exists")), name="likes").on("us")],
            {},
            [0, 0, 5],
            id="a placed pod would like it near",
        ),
        pytest.param(
            web("asks"),
            [prefers(but_not=(in_region(5, ("app", "Exists")),), name="shuns").on("us")],
            {},
            [0, 0, -5],
            id="a placed pod would like it away",
        ),
        pytest.param(
            web("asks"),
            [near(term("region", app="web"), name="needs").on("us")],
            {},
            [0, 0, 1],
            id="what a placed pod requires counts a little",
        ),
        pytest.param(
            web("asks"),
            [near(term("region", app="web"), name="needs").on("us")],
            {"hardPodAffinityWeight": 7},
            [0, 0, 7],
            id="or as much as the profile says",
        ),
        pytest.param(
            web("asks"),
            [near(term("region", app="web"), name="needs").on("us")],
            {"hardPodAffinityWeight": 0},
            "Skip",
            id="or not at all",
        ),
        pytest.param(
            web("asks"),
            [prefers(in_region(5, ("app", "Exists")), name="likes").on("us")],
            {"ignorePreferredTermsOfExistingPods": True},
            "Skip",
            id="placed pods' wishes may be ignored",
        ),
        pytest.param(
            prefers(in_region(3, ("app", "Exists"))).label(app="web"),
            [prefers(in_region(5, ("app", "Exists")), name="likes").on("us")],
            {"ignorePreferredTermsOfExistingPods": True},
            [0, 0, 5],
            id="but not if the pod has wishes of its own",
        ),
        pytest.param(prefers(in_region(3, ("app", "Exists"))), [], {}, "Skip", id="nobody whom it likes"),
        pytest.param(
            prefers(in_region(3, ("app", "Exists")), but_not=(in_region(3, ("app", "Exists")),)),
            [web().on("us")],
            {},
            [0, 0, 0],
            id="wishes that cancel out are not nothing",
        ),
    ],
)
def test_scores(one: PodBuilder, placed: list[PodBuilder], args: dict[str, Any], scores: list[int] | str) -> None:
    assert raw_scores("InterPodAffinity", one, [CHINA1, CHINA2, US], placed, args) == scores


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param([2, 10, 0], [20, 100, 0], id="the highest gets 100"),
        pytest.param([-5, 0], [0, 100], id="the lowest gets 0"),
        pytest.param([-5, 0, 5], [0, 50, 100], id="the middle"),
        pytest.param([29, 100, 0], [28, 100, 0], id="the division comes first"),
        pytest.param([0, 57, 58, 100], [0, 56, 57, 100], id="also here"),
        pytest.param([-100, -43, 0], [0, 56, 100], id="and below 0"),
        pytest.param([7, 7, 7], [0, 0, 0], id="all the same is 0"),
        pytest.param([3, 0, 29, 50], [6, 0, 57, 100], id="of 50"),
    ],
)
def test_normalized(raw: list[int], expected: list[int]) -> None:
    here = cluster([node(f"n{number}") for number in range(len(raw) + 1)])
    plugin = plugin_of("InterPodAffinity", here)
    assert isinstance(plugin, InterPodAffinity)
    state, one = CycleState(), here.shapes.info(pod().build())
    assert plugin.normalize(state, one, np.array(raw)).tolist() == expected
    here.table.alive[: len(raw)] = 1
    here.table.alive[len(raw)] = 0
    everywhere = plugin.normalize_array(state, one, np.array([*raw, 1_000]), here.table)
    assert everywhere.tolist() == [*expected, 0]


# -- which pods are the plugin's business


@pytest.mark.parametrize(
    ("one", "args", "concerned"),
    [
        pytest.param(pod("asks"), {}, False, id="nobody means it"),
        pytest.param(pod("asks").label(app="db"), {}, True, id="a placed pod wants it away"),
        pytest.param(pod("asks").label(app="web"), {}, True, id="a placed pod would like it near"),
        pytest.param(
            pod("asks").label(app="web"), {"ignorePreferredTermsOfExistingPods": True}, False, id="which is ignored"
        ),
        pytest.param(pod("asks").label(app="cache"), {}, True, id="a placed pod needs it near"),
        pytest.param(
            pod("asks").label(app="cache"), {"hardPodAffinityWeight": 0}, False, id="which counts for nothing here"
        ),
        pytest.param(near(term(app="x")), {}, True, id="it means others"),
        pytest.param(near(MALFORMED), {}, True, id="or tries to"),
    ],
)
def test_only_pods_that_are_concerned_need_a_pass_of_their_own(
    one: PodBuilder, args: dict[str, Any], concerned: bool
) -> None:
    placed = [
        away(term(app="db"), name="alone").on("y"),
        prefers(liking(3, app="web"), name="likes").on("y"),
        near(term(app="cache"), name="needs").on("y"),
    ]
    here = cluster(NODES, placed)
    key = plugin_of("InterPodAffinity", here, args).key(here.shapes.info(one.build()))
    assert key == (None if concerned else ())


# -- both ways of counting, before and after changes, and in what-ifs

changes = st.lists(
    st.one_of(
        nodes(),
        placed_pods(),
        namespaces(),
        st.tuples(st.just("node"), st.sampled_from(NODE_NAMES)),
        st.tuples(st.just("pod"), st.integers(0, 5).map(lambda number: f"uid-placed-{number}")),
    ),
    max_size=4,
)


def happen(here: Cluster, change: Any) -> None:
    match change:
        case Pod():
            here.put_pod(change)
        case Namespace():
            here.put_namespace(change)
        case ("node", name):
            here.remove_node(name)
        case ("pod", uid):
            here.remove_pod(uid)
        case _:
            here.put_node(change)


def found_out(here: Cluster, one: Pod, args: dict[str, Any], moves: list[tuple[Pod, str]], native: bool) -> Any:
    """Everything that the plugin says of a pod: filter, what-ifs of pods that come to nodes or leave them, scores."""
    plugin = plugin_of("InterPodAffinity", here, args)
    assert isinstance(plugin, InterPodAffinity)
    plugin.native = native
    state, info = CycleState(), here.shapes.info(one)
    answer = plugin.pre_filter(state, info, here.table)
    said: list[Any] = [answer]
    if answer is None:
        said.append([plugin.filter(state, info, each) for each in here.nodes()])
        codes = plugin.filter_array(state, info, here.table)
        said.append([codes[each.slot] and plugin.explain(state, info, codes[each.slot]) for each in here.nodes()])
        for other, name in moves:
            what_if = state.clone()
            for each in here.nodes():
                for placed in each.pods.values():
                    if placed.uid == other.uid:
                        plugin.remove_pod(what_if, info, placed, each)
            said.append([plugin.filter(what_if, info, each) for each in here.nodes()])
            target = here.node(name)
            if target is not None:
                plugin.add_pod(what_if, info, here.shapes.info(other), target)
            said.append([plugin.filter(what_if, info, each) for each in here.nodes()])
        said.append([plugin.filter(state, info, each) for each in here.nodes()])
    here.table.sieve.start(here.table.present, here.table.size)
    scored = plugin.pre_score(state, info, here.table)
    said.append(scored)
    if scored is None:
        said.append([plugin.score(state, info, each) for each in here.nodes()])
        scores = plugin.score_array(state, info, here.table)
        said.append([int(scores[each.slot]) for each in here.nodes()])
        normal_scores = plugin.normalize_array(state, info, scores, here.table)
        said.append([int(normal_scores[each.slot]) for each in here.nodes()])
        said.append(normal([int(scores[each.slot]) for each in here.nodes()]))
    return said


ARGUMENTS = [{}, {"hardPodAffinityWeight": 0}, {"ignorePreferredTermsOfExistingPods": True}]


def check_counting(data: st.DataObject) -> None:
    here = cluster(data.draw(clusters()), data.draw(st.lists(placed_pods(), max_size=6)))
    for each in data.draw(st.lists(namespaces(), max_size=3)):
        here.put_namespace(each)
    pods = data.draw(st.lists(incoming_pods(), min_size=1, max_size=2))
    args = data.draw(st.sampled_from(ARGUMENTS))
    for some in ([], data.draw(changes)):
        for change in some:
            happen(here, change)
        moves = data.draw(st.lists(st.tuples(placed_pods(), st.sampled_from(NODE_NAMES)), max_size=2))
        for one in pods:
            kept_up, scanned = (found_out(here, one, args, moves, native) for native in (True, False))
            assert kept_up == scanned
            if kept_up[0] is None:
                assert [status or 0 for status in kept_up[1]] == kept_up[2]


@settings(max_examples=200, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_counts_that_are_kept_up_to_date_say_what_a_scan_says(data: st.DataObject) -> None:
    check_counting(data)


@pytest.mark.soak
@settings(max_examples=3000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_counts_that_are_kept_up_to_date_say_what_a_scan_says_of_very_many(data: st.DataObject) -> None:
    check_counting(data)


def test_who_was_there_first_is_gone_in_a_what_if_and_the_group_begins_anew() -> None:
    here = cluster(NODES, [web().on("y")])
    plugin = plugin_of("InterPodAffinity", here)
    assert isinstance(plugin, InterPodAffinity)
    info = here.shapes.info(near(term(app="web")).label(app="web").build())
    first = here.pod("uid-default-web")
    assert first is not None
    for native in (False, True):
        plugin.native = native
        state = CycleState()
        assert plugin.pre_filter(state, info, here.table) is None
        what_if = state.clone()
        plugin.remove_pod(what_if, info, first, at(here, Y))
        told: list[Status | None] = [plugin.filter(each, info, at(here, X1)) for each in (state, what_if)]
        assert [outcome(status) for status in told] == [NO_AFFINITY, KEPT]
        plugin.add_pod(what_if, info, first, at(here, X2))
        assert plugin.filter(what_if, info, at(here, X1)) is None
        assert outcome(plugin.filter(what_if, info, at(here, Y))) == NO_AFFINITY
