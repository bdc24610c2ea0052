"""The store as controllers in the server's process use it."""

from __future__ import annotations

import pytest

from ksched.errors import Refused
from ksched.sandbox.clock import Clock
from ksched.sandbox.control import Control
from ksched.sandbox.revisions import Change, Revisions
from ksched.sandbox.store import Store

from .wire import binding, node, pod


@pytest.fixture
def store() -> Store:
    """A store with a namespace and a node."""
    store = Control(Revisions(), Clock()).store
    store.create("Namespace", {"metadata": {"name": "default"}})
    store.create("Node", node("node-1"))
    return store


def test_objects_are_the_callers_own(store: Store) -> None:
    store.create("Pod", pod("a", labels={"x": "y"}))
    first = store.get("Pod", "default", "a")
    assert first is not None
    first["metadata"]["labels"]["x"] = "changed"
    again = store.get("Pod", "default", "a")
    assert again is not None
    assert again["metadata"]["labels"] == {"x": "y"}
    assert store.get("Pod", "default", "nobody") is None


def test_lists_are_of_a_namespace_or_all_and_may_be_filtered(store: Store) -> None:
    store.create("Namespace", {"metadata": {"name": "other"}})
    for name, namespace in (("a", "default"), ("b", "default"), ("c", "other")):
        store.create("Pod", pod(name, namespace=namespace))
    assert [each["metadata"]["name"] for each in store.list("Pod")] == ["a", "b", "c"]
    assert [each["metadata"]["name"] for each in store.list("Pod", "other")] == ["c"]
    filtered = store.list("Pod", predicate=lambda each: each["metadata"]["name"] > "a")
    assert [each["metadata"]["name"] for each in filtered] == ["b", "c"]


def test_updates_conflict_as_over_http(store: Store) -> None:
    created = store.create("Pod", pod("a"))
    store.update("Pod", {**created, "metadata": {**created["metadata"], "labels": {"x": "y"}}})
    with pytest.raises(Refused) as caught:
        store.update_status("Pod", created)
    assert caught.value.code == 409
    present = store.get("Pod", "default", "a")
    assert present is not None
    present["status"]["phase"] = "Running"
    assert store.update_status("Pod", present)["status"]["phase"] == "Running"


def test_subscribers_hear_of_their_kinds_until_they_leave(store: Store) -> None:
    heard: list[tuple[str, str, str]] = []

    def note(change: Change) -> None:
        heard.append((change.type, change.kind, change.object["metadata"]["name"]))

    unsubscribe = store.subscribe(["Pod", "Node"], note)
    store.create("Pod", pod("a"))
    store.create("Node", node("node-2"))
    store.create("ConfigMap", {"metadata": {"name": "unheard"}})
    store.verbs.bind("default", "a", binding("a", "node-1"))
    store.delete("Pod", "default", "a", grace=0)
    unsubscribe()
    store.delete("Node", "", "node-2")
    assert heard == [
        ("ADDED", "Pod", "a"),
        ("ADDED", "Node", "node-2"),
        ("MODIFIED", "Pod", "a"),
        ("DELETED", "Pod", "a"),
    ]


def test_a_pod_on_a_node_is_deleted_by_its_grace_period_or_at_once(store: Store) -> None:
    store.create("Pod", pod("a"))
    store.verbs.bind("default", "a", binding("a", "node-1"))
    store.delete("Pod", "default", "a")
    waiting = store.get("Pod", "default", "a")
    assert waiting is not None
    assert waiting["metadata"]["deletionGracePeriodSeconds"] == 30
    store.delete("Pod", "default", "a", grace=0)
    assert store.get("Pod", "default", "a") is None


def test_events_are_dropped_when_they_are_old(store: Store) -> None:
    for name in ("a", "b"):
        store.create(
            "Event", {"metadata": {"name": name}, "involvedObject": {}, "lastTimestamp": "2026-01-01T00:00:00Z"}
        )
    store.create("Event", {"metadata": {"name": "c"}, "involvedObject": {}, "lastTimestamp": "2026-01-01T02:00:00Z"})
    store.verbs.drop_events_before("2026-01-01T01:00:00Z")
    assert [each["metadata"]["name"] for each in store.list("Event")] == ["c"]
