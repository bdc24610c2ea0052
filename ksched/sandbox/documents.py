"""The paths outside of the resources: discovery, OpenAPI, the version, health."""

from __future__ import annotations

from typing import Any

import orjson

from ksched.errors import Refused
from ksched.sandbox import discovery
from ksched.sandbox.forms import media_ranges, not_acceptable
from ksched.sandbox.http import Answer, Request

_AGGREGATED = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
_HEALTH = ("healthz", "livez", "readyz")


def answer(request: Request) -> Answer:
    """The document that a path names; `Refused` (404) for a path that names nothing."""
    parts = request.path.strip("/").split("/")
    if request.method not in ("GET", "HEAD"):
        raise _not_found() if parts[0] in ("api", "apis") else Refused(405, "MethodNotAllowed", "method not allowed")
    if parts[0] in _HEALTH:
        return Answer(200, b"ok", b"text/plain; charset=utf-8")
    match parts:
        case ["api"]:
            return _discovery(request, discovery.api_versions, discovery.aggregated_core)
        case ["apis"]:
            return _discovery(request, discovery.api_groups, discovery.aggregated_groups)
        case ["api", version]:
            return _document(request, discovery.resource_list("", version))
        case ["apis", group]:
            return _document(request, _group(group))
        case ["apis", group, version]:
            return _document(request, discovery.resource_list(group, version))
        case ["version"]:
            return _document(request, discovery.version_info())
        case ["openapi", "v2"]:
            return _document(request, discovery.openapi_v2())
        case ["openapi", "v3"]:
            return _document(request, discovery.openapi_v3_index())
        case ["openapi", "v3", "api", version]:
            return _document(request, discovery.openapi_v3("", version))
        case ["openapi", "v3", "apis", group, version]:
            return _document(request, discovery.openapi_v3(group, version))
    raise _not_found()


def _discovery(request: Request, plain: Any, aggregated: Any) -> Answer:
    for media, parameters in media_ranges(request.accept):
        if media == "application/json" and parameters.get("as") == "APIGroupDiscoveryList":
            if parameters.get("v") == "v2":
                return Answer(200, orjson.dumps(aggregated()), _AGGREGATED)
        elif media in ("application/json", "application/*", "*/*"):
            return Answer(200, orjson.dumps(plain()))
    raise not_acceptable()


def _group(group: str) -> dict[str, Any] | None:
    for each in discovery.api_groups()["groups"]:
        if each["name"] == group:
            return {"kind": "APIGroup", "apiVersion": "v1", **each}
    return None


def _document(request: Request, document: dict[str, Any] | None) -> Answer:
    if document is None:
        raise _not_found()
    accepts = {media for media, _ in media_ranges(request.accept)}
    if not accepts & {"application/json", "application/*", "*/*"}:
        raise not_acceptable()
    return Answer(200, orjson.dumps(document))


def _not_found() -> Refused:
    return Refused(404, "NotFound", "the server could not find the requested resource")
