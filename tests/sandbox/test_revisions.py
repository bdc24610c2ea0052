"""The past of a kind, rebuilt from its history, against a plain copy of every state."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.errors import Refused
from ksched.sandbox.revisions import Change, Revisions

NAMES = st.sampled_from(["a", "b", "c"])
STEPS = st.lists(st.tuples(st.sampled_from(["put", "remove", "other"]), NAMES), max_size=30)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-of-{name}"}, "data": data}


def state(revisions: Revisions) -> dict[str, bytes]:
    return {revision.name: revision.raw for revision in revisions.shelves["ConfigMap"]}


@given(STEPS)
def test_every_version_can_be_rebuilt(steps: list[tuple[str, str]]) -> None:
    revisions = Revisions(history=100)
    shelf = revisions.shelves["ConfigMap"]
    states = {revisions.version: state(revisions)}
    for number, (step, name) in enumerate(steps):
        present = shelf.get("ns", name)
        if step == "put":
            revisions.put("ConfigMap", config_map(name, step=str(number)))
        elif step == "other":
            revisions.put("Secret", config_map(name))
        elif present is not None:
            revisions.remove(present)
        states[revisions.version] = state(revisions)
    for version, expected in states.items():
        rebuilt = shelf.snapshot(version)
        assert {revision.name: revision.raw for revision in rebuilt} == expected
        assert [revision.name for revision in rebuilt] == sorted(expected)


@given(STEPS, st.integers(0, 40))
def test_replaying_the_changes_since_a_version_leads_to_the_present(steps: list[tuple[str, str]], back: int) -> None:
    revisions = Revisions(history=100)
    shelf = revisions.shelves["ConfigMap"]
    versions = [revisions.version]
    states = [state(revisions)]
    for number, (step, name) in enumerate(steps):
        present = shelf.get("ns", name)
        if step == "remove" and present is not None:
            revisions.remove(present)
        elif step == "put":
            revisions.put("ConfigMap", config_map(name, step=str(number)))
        versions.append(revisions.version)
        states.append(state(revisions))
    start = max(0, len(versions) - 1 - back)
    replayed = dict(states[start])
    for change in shelf.since(versions[start]):
        if change.type == "DELETED":
            del replayed[change.name]
        else:
            assert (change.type == "ADDED") is (change.name not in replayed)
            replayed[change.name] = change.revision.raw
    assert replayed == states[-1]


def test_versions_that_the_history_has_lost_are_410() -> None:
    revisions = Revisions(history=3)
    shelf = revisions.shelves["ConfigMap"]
    first = revisions.version
    for number in range(5):
        revisions.put("ConfigMap", config_map("a", step=str(number)))
    assert [change.revision.version for change in shelf.since(revisions.version - 3)] == [4, 5, 6]
    for lost in (shelf.since, shelf.snapshot):
        with pytest.raises(Refused) as caught:
            lost(first)
        assert (caught.value.code, caught.value.reason) == (410, "Expired")


def test_a_forgotten_history_leaves_the_present() -> None:
    revisions = Revisions()
    revisions.put("ConfigMap", config_map("a"))
    before = revisions.version
    revisions.forget_history()
    shelf = revisions.shelves["ConfigMap"]
    assert shelf.since(revisions.version) == []
    assert [revision.name for revision in shelf.snapshot(revisions.version)] == ["a"]
    with pytest.raises(Refused):
        shelf.since(before)


def test_all_kinds_share_one_version() -> None:
    revisions = Revisions()
    kinds = ("ConfigMap", "Secret", "ConfigMap")
    versions = [revisions.put(kind, config_map(str(at))).version for at, kind in enumerate(kinds)]
    assert versions == [versions[0], versions[0] + 1, versions[0] + 2]


def test_dependents_follow_owner_references() -> None:
    revisions = Revisions()
    owned = config_map("owned")
    owned["metadata"]["ownerReferences"] = [{"uid": "owner", "kind": "Secret", "name": "owner"}]
    revision = revisions.put("ConfigMap", owned)
    assert list(revisions.dependents["owner"]) == [("ConfigMap", "ns", "owned")]
    released = revision.decode()
    del released["metadata"]["ownerReferences"]
    revisions.put("ConfigMap", released)
    assert revisions.dependents == {}


def test_observers_are_told_of_each_change_once() -> None:
    revisions = Revisions()
    seen: list[Change] = []
    revisions.shelves["ConfigMap"].observers.append(seen.append)
    revision = revisions.put("ConfigMap", config_map("a"))
    revision = revisions.put("ConfigMap", revision.decode())
    revisions.remove(revision)
    assert [change.type for change in seen] == ["ADDED", "MODIFIED", "DELETED"]
    assert seen[-1].object["metadata"]["resourceVersion"] == str(revisions.version)
