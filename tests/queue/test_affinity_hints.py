"""What may help a pod that InterPodAffinity turned down. The measured cases are in `tests.conformance`."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.cache.cluster import Cluster
from ksched.queue.affinity_hints import node_may_help, pod_may_help
from ksched.testing import NodeBuilder, PodBuilder, node, pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def term(app: str, **more: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": app}}, **more}


def near(*terms: Any) -> PodBuilder:
    return pod("waits").spec(affinity={"podAffinity": {REQUIRED: terms}})


def away(*terms: Any, name: str = "waits") -> PodBuilder:
    return pod(name).spec(affinity={"podAntiAffinity": {REQUIRED: terms}})


WEB, DB = (pod(app).label(app=app).on("n") for app in ("web", "db"))
ALL_NAMESPACES = {"namespaceSelector": {}}
MALFORMED = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"not a key!": ""}}}


@pytest.mark.parametrize(
    ("waiting", "old", "new", "helps"),
    [
        pytest.param(near(term("web")), None, WEB, True, id="whom it wants near has come"),
        pytest.param(near(term("web")), None, DB, False, id="somebody else has come"),
        pytest.param(near(term("web")), None, pod("web").label(app="web"), False, id="a pod that is nowhere yet"),
        pytest.param(near(term("web")), None, pod("web").label(app="web").nominated("n"), True, id="or is nominated"),
        pytest.param(near(term("web"), term("db")), None, WEB, False, id="only one of its terms means the pod"),
        pytest.param(near(term("web", **ALL_NAMESPACES)), None, WEB, True, id="any namespace"),
        pytest.param(near(term("web")), WEB, None, False, id="whom it wants near has gone"),
        pytest.param(near(term("web")), DB, DB.label(app="web"), True, id="a pod has become such a one"),
        pytest.param(near(term("web")), WEB, WEB.label(tier="x"), False, id="a pod has stayed such a one"),
        pytest.param(away(term("web")), WEB, None, True, id="whom it wants away has gone"),
        pytest.param(away(term("web")), WEB, WEB.label(app="db"), True, id="or is no such pod any more"),
        pytest.param(
            away(term("web"), term("db")), WEB, None, False, id="of two terms, one means the pod: as upstream"
        ),
        pytest.param(
            pod("waits").label(app="web"), away(term("web"), name="alone").on("n"), None, True, id="who wants it away"
        ),
        pytest.param(
            pod("waits").label(app="db"),
            away(term("web"), name="alone").on("n"),
            None,
            False,
            id="who wants others away",
        ),
        pytest.param(pod("waits"), away(MALFORMED, name="alone").on("n"), None, True, id="who wants nobody knows what"),
        pytest.param(near(MALFORMED), DB, None, True, id="terms that cannot be understood"),
        pytest.param(near(term("web")), near(term("web")), near(term("web")).label(app="web"), True, id="itself"),
    ],
)
def test_pods(waiting: PodBuilder, old: PodBuilder | None, new: PodBuilder | None, helps: bool) -> None:
    info = Cluster(max_nodes=64).shapes.info(waiting.build())
    assert pod_may_help(info, old and old.build(), new and new.build()) is helps


A, B, NONE = node("n").label(zone="a"), node("n").label(zone="b"), node("n")


@pytest.mark.parametrize(
    ("waiting", "old", "new", "helps"),
    [
        pytest.param(near(term("web")), None, A, True, id="near: a node in a domain"),
        pytest.param(near(term("web")), None, NONE, False, id="near: a node in none"),
        pytest.param(near(term("web")), NONE, A, True, id="near: a node has entered a domain"),
        pytest.param(near(term("web")), A, B, True, id="near: or another one"),
        pytest.param(near(term("web")), A, NONE, False, id="near: or left it"),
        pytest.param(away(term("web")), None, NONE, True, id="away: any new node"),
        pytest.param(away(term("web")), NONE, A, False, id="away: a node has entered a domain"),
        pytest.param(away(term("web")), A, B, True, id="away: or another one"),
        pytest.param(away(term("web")), A, NONE, True, id="away: or left it"),
        pytest.param(away(term("web")), A, A.label(disk="ssd"), False, id="another label"),
        pytest.param(pod("waits"), None, A, False, id="a pod that is kept away by others alone"),
    ],
)
def test_nodes(waiting: PodBuilder, old: NodeBuilder | None, new: NodeBuilder, helps: bool) -> None:
    info = Cluster(max_nodes=64).shapes.info(waiting.build())
    assert node_may_help(info, old and old.build(), new.build()) is helps
