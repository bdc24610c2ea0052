"""The three ways of asking what is served agree, and say what kubectl looks for."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.sandbox import discovery
from ksched.sandbox.resources import RESOURCES

GROUP_VERSIONS = sorted({(each.group, each.version) for each in RESOURCES})


def _aggregated() -> dict[tuple[str, str, str], dict[str, Any]]:
    items = discovery.aggregated_core()["items"] + discovery.aggregated_groups()["items"]
    return {
        (item["metadata"].get("name", ""), version["version"], entry["resource"]): entry
        for item in items
        for version in item["versions"]
        for entry in version["resources"]
    }


def test_the_core_group_is_asked_for_apart() -> None:
    assert discovery.api_versions()["versions"] == ["v1"]
    assert [item["metadata"].get("name", "") for item in discovery.aggregated_core()["items"]] == [""]
    assert "" not in [group["name"] for group in discovery.api_groups()["groups"]]


def test_every_resource_is_in_aggregated_discovery_once() -> None:
    assert set(_aggregated()) == {(each.group, each.version, each.plural) for each in RESOURCES}


@pytest.mark.parametrize(("group", "version"), GROUP_VERSIONS)
def test_old_and_aggregated_discovery_agree(group: str, version: str) -> None:
    answer = discovery.resource_list(group, version)
    assert answer is not None
    assert answer["groupVersion"] == (f"{group}/{version}" if group else version)
    listed = {entry["name"]: entry for entry in answer["resources"]}
    for (found_group, found_version, plural), entry in _aggregated().items():
        if (found_group, found_version) != (group, version):
            continue
        assert listed[plural]["verbs"] == entry["verbs"]
        assert listed[plural]["namespaced"] == (entry["scope"] == "Namespaced")
        assert listed[plural]["kind"] == entry["responseKind"]["kind"]
        for sub in entry.get("subresources", []):
            assert listed[f"{plural}/{sub['subresource']}"]["kind"] == sub["responseKind"]["kind"]


@pytest.mark.parametrize(
    ("plural", "name", "kind"),
    [
        pytest.param("pods", "binding", ("", "v1", "Binding"), id="a binding is of the core group"),
        pytest.param("pods", "eviction", ("policy", "v1", "Eviction"), id="an eviction is of the policy group"),
        pytest.param("pods", "status", ("", "v1", "Pod"), id="a status is of its parent's kind"),
        pytest.param("deployments", "scale", ("autoscaling", "v1", "Scale"), id="a scale is of the autoscaling group"),
    ],
)
def test_kind_of_a_subresource(plural: str, name: str, kind: tuple[str, str, str]) -> None:
    entry = next(entry for (_, _, found), entry in _aggregated().items() if found == plural)
    found = next(sub["responseKind"] for sub in entry["subresources"] if sub["subresource"] == name)
    assert (found["group"], found["version"], found["kind"]) == kind


@pytest.mark.parametrize(
    ("group", "version"),
    [
        pytest.param("", "v2", id="a version that is not served"),
        pytest.param("example.com", "v1", id="a group that is not served"),
    ],
)
def test_what_is_not_served_has_no_document(group: str, version: str) -> None:
    assert discovery.resource_list(group, version) is None
    assert discovery.openapi_v3(group, version) is None


@pytest.mark.parametrize(("group", "version"), GROUP_VERSIONS)
def test_openapi_index_names_a_document_for_every_group_version(group: str, version: str) -> None:
    path = f"apis/{group}/{version}" if group else f"api/{version}"
    assert discovery.openapi_v3_index()["paths"][path]["serverRelativeURL"].startswith(f"/openapi/v3/{path}?hash=")
    assert discovery.openapi_v3(group, version) is not None


def test_every_patch_says_that_the_server_validates_fields() -> None:
    """kubectl sends objects unvalidated, or not at all, for a kind whose PATCH does not list `fieldValidation`."""
    seen = set()
    for group, version in GROUP_VERSIONS:
        document = discovery.openapi_v3(group, version)
        assert document is not None
        for methods in document["paths"].values():
            if "patch" not in methods:
                continue
            kind = methods["patch"]["x-kubernetes-group-version-kind"]
            seen.add((kind["group"], kind["version"], kind["kind"]))
            names = {parameter["name"] for parameter in methods["patch"]["parameters"]}
            assert {"fieldValidation", "dryRun"} <= names
    assert {(each.group, each.version, each.kind) for each in RESOURCES if "patch" in each.verbs} <= seen


def test_openapi_v2_has_the_paths_of_v3() -> None:
    documents = [discovery.openapi_v3(group, version) for group, version in GROUP_VERSIONS]
    paths = {path for document in documents if document is not None for path in document["paths"]}
    assert set(discovery.openapi_v2()["paths"]) == paths


@pytest.mark.parametrize(
    ("versions", "ordered"),
    [
        pytest.param(["v1beta1", "v1"], ["v1", "v1beta1"], id="stable comes before beta"),
        pytest.param(["v1alpha3", "v1beta1"], ["v1beta1", "v1alpha3"], id="beta comes before alpha"),
        pytest.param(["v1", "v2"], ["v2", "v1"], id="newer comes first"),
        pytest.param(["odd", "v1alpha1"], ["v1alpha1", "odd"], id="what is not a version comes last"),
    ],
)
def test_preferred_version_comes_first(versions: list[str], ordered: list[str]) -> None:
    assert sorted(versions, key=discovery._version_rank) == ordered


def test_the_version_is_one_that_clients_can_parse() -> None:
    version = discovery.version_info()
    assert (version["major"], version["minor"]) == ("1", "36")
    assert version["gitVersion"].startswith("v1.36.")
