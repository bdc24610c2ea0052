"""The selector that services and controllers give a pod which says nothing about spreading."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ksched.cache.selector_sources import SelectorSource, SelectorSources
from ksched.model.objects import ReplicaSet, ReplicationController, Service, StatefulSet
from ksched.testing import PodBuilder, pod


def source(kind: type[SelectorSource], name: str, selector: Any, namespace: str = "default") -> SelectorSource:
    made = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}
    return msgspec.convert(made, kind)


def service(name: str, selects: dict[str, str] | None, namespace: str = "default") -> SelectorSource:
    return source(Service, name, selects, namespace)


WEB = pod("web").label(app="web", tier="front")
OWNED = WEB.owner("ReplicaSet", "web")
LABELS = {"matchLabels": {"hash": "1"}}


@pytest.mark.parametrize(
    ("one", "sources", "selector"),
    [
        pytest.param(WEB, [], "", id="nothing is known"),
        pytest.param(WEB, [service("web", {"app": "web"})], "app=web", id="a service"),
        pytest.param(WEB, [service("db", {"app": "db"})], "", id="a service of other pods"),
        pytest.param(WEB, [service("web", {"app": "web"}, "other")], "", id="a service of another namespace"),
        pytest.param(WEB, [service("all", {})], "", id="a service of all pods says nothing"),
        pytest.param(WEB, [service("none", None)], "", id="a service without a selector"),
        pytest.param(
            WEB,
            [service("web", {"app": "web"}), service("front", {"tier": "front"}), service("all", {})],
            "app=web,tier=front",
            id="several services are all meant",
        ),
        pytest.param(OWNED, [source(ReplicaSet, "web", LABELS)], "hash=1", id="a replica set, match or not"),
        pytest.param(OWNED, [source(ReplicaSet, "other", LABELS)], "", id="a replica set that is not the owner"),
        pytest.param(OWNED, [source(StatefulSet, "web", LABELS)], "", id="an owner of another kind"),
        pytest.param(
            WEB.owner("ReplicaSet", "web", "extensions/v1beta1"), [source(ReplicaSet, "web", LABELS)], "",
            id="an owner of another API version",
        ),
        pytest.param(OWNED, [source(ReplicaSet, "web", None)], "", id="a replica set without a selector"),
        pytest.param(OWNED, [source(ReplicaSet, "web", {})], "", id="a replica set of all pods"),
        pytest.param(
            OWNED, [service("web", {"app": "web"}), source(ReplicaSet, "web", {"matchLabels": {"app": "not valid!"}})],
            "app=web", id="a selector that cannot be read is none",
        ),
        pytest.param(
            OWNED,
            [
                service("web", {"app": "web"}),
                source(ReplicaSet, "web", {"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}),
            ],
            "app=web,!x",
            id="service and replica set",
        ),
        pytest.param(
            WEB.owner("StatefulSet", "web"), [source(StatefulSet, "web", LABELS)], "hash=1", id="a stateful set"
        ),
        pytest.param(
            WEB.owner("ReplicationController", "web", "v1"),
            [service("web", {"app": "web"}), source(ReplicationController, "web", {"app": "other", "z": "1"})],
            "app=other,z=1",
            id="a replication controller overrides what services say",
        ),
    ],
)  # fmt: skip
def test_default_selector(one: PodBuilder, sources: list[SelectorSource], selector: str) -> None:
    known = SelectorSources()
    for each in sources:
        known.put(each)
    assert str(known.default_selector(one.build())) == selector


def test_an_answer_is_remembered_until_something_changes() -> None:
    known, one = SelectorSources(), OWNED.build()
    known.put(service("web", {"app": "web"}))
    before = known.version
    assert known.default_selector(one) is known.default_selector(WEB.owner("ReplicaSet", "web").build())
    known.put(service("web", {"app": "web"}))
    assert known.version == before, "the same again changes nothing"
    known.put(service("web", {"tier": "front"}))
    assert str(known.default_selector(one)) == "tier=front"
    known.put(source(ReplicaSet, "web", LABELS))
    assert str(known.default_selector(one)) == "tier=front,hash=1"
    known.remove(ReplicaSet, "default/web")
    known.remove(Service, "default/web")
    known.remove(Service, "default/web")
    known.remove(Service, "elsewhere/web")
    assert known.default_selector(one).empty
    assert known.version == before + 4
