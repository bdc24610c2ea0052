"""Lists: versions, pages and selectors, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.sandbox.server import SandboxOptions

from .conftest import Start
from .wire import MERGE, PODS, Client, pod

NAMES = [f"pod-{number}" for number in range(7)]


@pytest.fixture
def pods(client: Client) -> Client:
    for name in NAMES:
        client.post(PODS, pod(name, labels={"number": name[-1], "odd": str(int(name[-1]) % 2)}))
    return client


def names(listed: dict[str, Any]) -> list[str]:
    return [item["metadata"]["name"] for item in listed["items"]]


def test_a_list_is_ordered_by_namespace_and_name(client: Client) -> None:
    for namespace in ("zeta", "alpha"):
        client.post("/api/v1/namespaces", {"metadata": {"name": namespace}})
        for name in ("b", "a"):
            client.post(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": name}})
    listed = client.get("/api/v1/configmaps")
    assert listed["kind"] == "ConfigMapList"
    found = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in listed["items"]]
    assert found == [("alpha", "a"), ("alpha", "b"), ("zeta", "a"), ("zeta", "b")]


def test_pages_make_up_one_consistent_list(pods: Client) -> None:
    page = pods.get(PODS, limit=3)
    first_version = page["metadata"]["resourceVersion"]
    assert (names(page), page["metadata"]["remainingItemCount"]) == (NAMES[:3], 4)
    pods.delete(f"{PODS}/pod-4")
    pods.post(PODS, pod("pod-3-and-a-half"))
    pods.patch(f"{PODS}/pod-5", {"metadata": {"labels": {"late": "yes"}}}, MERGE)
    rest = []
    while token := page["metadata"].get("continue"):
        page = pods.get(PODS, limit=2, **{"continue": token})
        assert page["metadata"]["resourceVersion"] == first_version
        rest.extend(page["items"])
    assert [item["metadata"]["name"] for item in rest] == NAMES[3:]
    assert all("late" not in item["metadata"]["labels"] for item in rest)


def test_a_page_whose_list_is_forgotten_is_410(pods: Client) -> None:
    token = pods.get(PODS, limit=3)["metadata"]["continue"]
    pods.post("/sandbox/faults", {"expire_history": True})
    code, reason, message = pods.refused("GET", PODS, limit=3, **{"continue": token})
    assert (code, reason) == (410, "Expired")
    assert "continue" in message


def test_the_last_page_has_no_token(pods: Client) -> None:
    assert pods.get(PODS, limit=7)["metadata"].keys() == {"resourceVersion"}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        pytest.param({"labelSelector": "odd=1"}, ["pod-1", "pod-3", "pod-5"], id="by label"),
        pytest.param({"labelSelector": "number in (2,3),odd!=1"}, ["pod-2"], id="by several terms"),
        pytest.param({"fieldSelector": "metadata.name=pod-2"}, ["pod-2"], id="by name"),
        pytest.param({"fieldSelector": "metadata.name=nobody"}, [], id="by a name that nobody has"),
        pytest.param({"fieldSelector": "spec.nodeName=node-1"}, [], id="by node"),
        pytest.param(
            {"fieldSelector": "status.phase!=Running", "labelSelector": "odd=0", "limit": 2},
            ["pod-0", "pod-2"],
            id="all together",
        ),
    ],
)
def test_a_list_with_selectors(pods: Client, parameters: dict[str, object], expected: list[str]) -> None:
    assert names(pods.get(PODS, **parameters)) == expected
    assert names(pods.get("/api/v1/pods", **parameters)) == expected


def test_selected_pages_do_not_count_what_remains(pods: Client) -> None:
    page = pods.get(PODS, labelSelector="odd=1", limit=2)
    assert "remainingItemCount" not in page["metadata"]
    rest = pods.get(PODS, labelSelector="odd=1", limit=2, **{"continue": page["metadata"]["continue"]})
    assert names(page) + names(rest) == ["pod-1", "pod-3", "pod-5"]


def test_a_list_of_exactly_a_version_shows_the_past(pods: Client) -> None:
    version = pods.get(PODS)["metadata"]["resourceVersion"]
    pods.delete(f"{PODS}/pod-0")
    now = pods.get(PODS)
    past = pods.get(PODS, resourceVersion=version, resourceVersionMatch="Exact")
    assert (names(past), past["metadata"]["resourceVersion"]) == (NAMES, version)
    newer = pods.get(PODS, resourceVersion=version, resourceVersionMatch="NotOlderThan")
    assert newer == now
    assert pods.get(PODS, resourceVersion=0) == now


@pytest.mark.parametrize(
    ("parameters", "code", "reason"),
    [
        pytest.param({"resourceVersion": "x"}, 422, "Invalid", id="a version that is no number"),
        pytest.param({"resourceVersion": 10**9}, 504, "Timeout", id="a version from the future"),
        pytest.param({"resourceVersionMatch": "Exact"}, 422, "Invalid", id="a match without a version"),
        pytest.param({"resourceVersion": 0, "resourceVersionMatch": "Exact"}, 422, "Invalid", id="exactly any version"),
        pytest.param({"resourceVersion": 5, "resourceVersionMatch": "Best"}, 422, "Invalid", id="an unknown match"),
        pytest.param({"continue": "###"}, 400, "BadRequest", id="a token that is none"),
        pytest.param({"continue": "e30", "resourceVersion": 5}, 400, "BadRequest", id="a token and a version"),
        pytest.param({"limit": "many"}, 400, "BadRequest", id="a limit that is no number"),
        pytest.param({"labelSelector": "a in b"}, 400, "BadRequest", id="a malformed label selector"),
        pytest.param({"fieldSelector": "spec.image=x"}, 400, "BadRequest", id="a field that is not selectable"),
    ],
)
def test_what_a_list_refuses(client: Client, parameters: dict[str, object], code: int, reason: str) -> None:
    assert client.refused("GET", PODS, **parameters)[:2] == (code, reason)


def test_a_past_beyond_the_history_is_410(start: Start) -> None:
    client = start(SandboxOptions(history=3, agent=False))
    version = client.get(PODS)["metadata"]["resourceVersion"]
    for name in NAMES:
        client.post(PODS, pod(name))
    refused = client.refused("GET", PODS, resourceVersion=version, resourceVersionMatch="Exact")
    assert refused[:2] == (410, "Expired")
