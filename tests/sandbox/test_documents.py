"""The documents around the resources, as negotiated over HTTP; what they hold is tested with `discovery`."""

from __future__ import annotations

import pytest

from .wire import Client

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/api", "APIVersions"),
        ("/apis", "APIGroupList"),
        ("/apis/apps", "APIGroup"),
        ("/api/v1", "APIResourceList"),
        ("/apis/apps/v1", "APIResourceList"),
    ],
)
def test_plain_discovery(client: Client, path: str, kind: str) -> None:
    assert client.get(path)["kind"] == kind


@pytest.mark.parametrize("path", ["/api", "/apis"])
def test_aggregated_discovery_is_given_to_those_who_ask(client: Client, path: str) -> None:
    answer = client.request("GET", path, accept=f"{AGGREGATED},application/json")
    assert answer.headers["Content-Type"] == AGGREGATED
    assert answer.body["kind"] == "APIGroupDiscoveryList"


def test_an_older_aggregated_form_falls_back_to_the_plain_one(client: Client) -> None:
    older = AGGREGATED.replace("v=v2", "v=v2beta1")
    assert client.request("GET", "/apis", accept=f"{older},application/json").body["kind"] == "APIGroupList"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
def test_health(client: Client, path: str) -> None:
    answer = client.request("GET", path)
    assert (answer.code, answer.raw) == (200, b"ok")


def test_openapi(client: Client) -> None:
    paths = client.get("/openapi/v3")["paths"]
    for path in ("api/v1", "apis/apps/v1"):
        assert client.get(f"/{paths[path]['serverRelativeURL'].lstrip('/')}")["openapi"].startswith("3.")
    assert client.get("/openapi/v2")["swagger"] == "2.0"
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    assert client.refused("GET", "/openapi/v2", accept=protobuf)[:2] == (406, "NotAcceptable")


def test_version(client: Client) -> None:
    assert client.get("/version")["gitVersion"].startswith("v1.36.")


@pytest.mark.parametrize("path", ["/apis/nothing", "/apis/apps/v9", "/api/v2", "/openapi/v3/apis/apps/v9"])
def test_what_is_not_there(client: Client, path: str) -> None:
    assert client.refused("GET", path)[:2] == (404, "NotFound")
