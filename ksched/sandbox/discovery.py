"""What the embedded API server says of itself: groups, versions, resources, OpenAPI.

Everything here is computed from `resources.RESOURCES`, so that a kind is declared once. Clients ask in three
ways, and all three must agree: the old documents (`/api`, `/apis`, `/apis/GROUP/VERSION`), aggregated discovery
(one document for all of them, which kubectl and client-go prefer), and OpenAPI. The OpenAPI documents are
without schemas: kubectl looks in them only for whether a kind's PATCH takes `fieldValidation` and `dryRun`, and
then leaves validation to the server. `kubectl explain` needs schemas and has none here.

The answers are plain dicts and do not change while the process lives; the caller may keep their encoded form.
"""

from __future__ import annotations

import hashlib
import platform
import re
from typing import Any, Final

from ksched.sandbox.resources import RESOURCES, Resource, Subresource

Json = dict[str, Any]

KUBERNETES_MINOR: Final = 36
KUBERNETES_VERSION: Final = f"v1.{KUBERNETES_MINOR}.0+ksched"

_STABILITY: Final = {"": 0, "beta": 1, "alpha": 2}
_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?\Z")


def api_versions() -> Json:
    """The answer to `GET /api`."""
    return {"kind": "APIVersions", "versions": _versions(""), "serverAddressByClientCIDRs": []}


def api_groups() -> Json:
    """The answer to `GET /apis`: all named groups, preferred version first."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_api_group(group) for group in _groups() if group]}


def api_group(group: str) -> Json | None:
    """The answer to `GET /apis/GROUP`, or None for a group that is not served."""
    if not group or group not in _groups():
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_api_group(group)}


def resource_list(group: str, version: str) -> Json | None:
    """The answer to `GET /api/v1` or `GET /apis/GROUP/VERSION`, or None for one that is not served."""
    served = _served(group, version)
    if not served:
        return None
    entries: list[Json] = []
    for resource in served:
        entries.append(_resource_entry(resource))
        entries.extend(_subresource_entry(resource, subresource) for subresource in resource.subresources)
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": _group_version(group, version),
        "resources": entries,
    }


def aggregated_core() -> Json:
    """The answer to `GET /api` for a client that accepts `as=APIGroupDiscoveryList`."""
    return _aggregated([""])


def aggregated_groups() -> Json:
    """The answer to `GET /apis` for a client that accepts `as=APIGroupDiscoveryList`."""
    return _aggregated([group for group in _groups() if group])


def version_info() -> Json:
    """The answer to `GET /version`: the Kubernetes release whose behaviour is served."""
    return {
        "major": "1",
        "minor": str(KUBERNETES_MINOR),
        "emulationMajor": "1",
        "emulationMinor": str(KUBERNETES_MINOR),
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": str(KUBERNETES_MINOR - 1),
        "gitVersion": KUBERNETES_VERSION,
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{_go_architecture()}",
    }


def openapi_v3_index() -> Json:
    """The answer to `GET /openapi/v3`: one document per group version, with a hash of its content."""
    paths: Json = {}
    for group in _groups():
        for version in _versions(group):
            path = _group_path(group, version)
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={_content_hash(group, version)}"}
    return {"paths": paths}


def openapi_v3(group: str, version: str) -> Json | None:
    """The answer to `GET /openapi/v3/api/v1` or `/openapi/v3/apis/GROUP/VERSION`: paths without schemas, or None."""
    served = _served(group, version)
    if not served:
        return None
    paths: Json = {}
    for resource in served:
        paths.update(_openapi_paths(resource, schema_version=3))
    return {"openapi": "3.0.0", "info": _openapi_info(), "paths": paths, "components": {"schemas": {}}}


def openapi_v2() -> Json:
    """The answer to `GET /openapi/v2`, as JSON: all paths, without definitions."""
    paths: Json = {}
    for resource in RESOURCES:
        paths.update(_openapi_paths(resource, schema_version=2))
    return {"swagger": "2.0", "info": _openapi_info(), "paths": paths, "definitions": {}}


# ---- groups and versions


def _groups() -> list[str]:
    return list(dict.fromkeys(resource.group for resource in RESOURCES))


def _versions(group: str) -> list[str]:
    """The versions of a group, preferred first: stable before beta before alpha, newer before older."""
    return sorted({resource.version for resource in RESOURCES if resource.group == group}, key=_version_rank)


def _version_rank(version: str) -> tuple[int, int, int]:
    parsed = _VERSION.match(version)
    if parsed is None:
        return (len(_STABILITY), 0, 0)
    major, stability, minor = parsed.groups()
    return (_STABILITY[stability or ""], -int(major), -int(minor or 0))


def _served(group: str, version: str) -> list[Resource]:
    return [resource for resource in RESOURCES if (resource.group, resource.version) == (group, version)]


def _group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _group_path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _api_group(group: str) -> Json:
    versions = [{"groupVersion": _group_version(group, version), "version": version} for version in _versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


# ---- the old resource lists


def _resource_entry(resource: Resource) -> Json:
    entry: Json = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    return entry


def _subresource_entry(resource: Resource, subresource: Subresource) -> Json:
    entry: Json = {
        "name": f"{resource.plural}/{subresource.name}",
        "singularName": "",
        "namespaced": resource.namespaced,
        "kind": subresource.kind,
        "verbs": list(subresource.verbs),
    }
    if subresource.version:
        entry["group"] = subresource.group
        entry["version"] = subresource.version
    return entry


# ---- aggregated discovery


def _aggregated(groups: list[str]) -> Json:
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
                "versions": [
                    {
                        "version": version,
                        "resources": [_aggregated_resource(resource) for resource in _served(group, version)],
                        "freshness": "Current",
                    }
                    for version in _versions(group)
                ],
            }
            for group in groups
        ],
    }


def _aggregated_resource(resource: Resource) -> Json:
    entry: Json = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [_aggregated_subresource(resource, each) for each in resource.subresources]
    return entry


def _aggregated_subresource(resource: Resource, subresource: Subresource) -> Json:
    return {
        "subresource": subresource.name,
        "responseKind": _kind(*_subresource_kind(resource, subresource)),
        "verbs": list(subresource.verbs),
    }


def _subresource_kind(resource: Resource, subresource: Subresource) -> tuple[str, str, str]:
    if subresource.version:
        return subresource.group, subresource.version, subresource.kind
    return resource.group, resource.version, subresource.kind


def _kind(group: str, version: str, kind: str) -> Json:
    return {"group": group, "version": version, "kind": kind}


# ---- OpenAPI


def _openapi_info() -> Json:
    return {"title": "Kubernetes", "version": KUBERNETES_VERSION}


def _openapi_paths(resource: Resource, *, schema_version: int) -> Json:
    """The paths of one resource: the collection, one object, and its subresources."""
    prefix = f"/{_group_path(resource.group, resource.version)}"
    collection = (
        f"{prefix}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else f"{prefix}/{resource.plural}"
    )
    one = f"{collection}/{{name}}"
    own_kind = (resource.group, resource.version, resource.kind)

    def operations(verbs: dict[str, str], kind: tuple[str, str, str], known: tuple[str, ...]) -> Json:
        return {
            method: _openapi_operation(action, kind, schema_version)
            for action, method in verbs.items()
            if action in known
        }

    paths = {
        collection: operations(
            {"list": "get", "create": "post", "deletecollection": "delete"}, own_kind, resource.verbs
        ),
        one: operations(
            {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}, own_kind, resource.verbs
        ),
    }
    methods = {"get": "get", "create": "post", "update": "put", "patch": "patch"}
    for subresource in resource.subresources:
        kind = _subresource_kind(resource, subresource)
        paths[f"{one}/{subresource.name}"] = operations(methods, kind, subresource.verbs)
    return {path: methods for path, methods in paths.items() if methods}


def _openapi_operation(action: str, kind: tuple[str, str, str], schema_version: int) -> Json:
    # No requestBody: with one, kubectl would build apply patches from schemas that are not here; without one it
    # uses its own types.
    operation: Json = {
        "x-kubernetes-action": {"create": "post", "update": "put"}.get(action, action),
        "x-kubernetes-group-version-kind": _kind(*kind),
        "responses": {"200": {"description": "OK"}},
    }
    if action in {"create", "update", "patch"}:
        names = ["dryRun", "fieldManager", "fieldValidation", *(["force"] if action == "patch" else [])]
        operation["parameters"] = [_openapi_parameter(name, schema_version) for name in names]
    elif action in {"delete", "deletecollection"}:
        operation["parameters"] = [_openapi_parameter("dryRun", schema_version)]
    return operation


def _openapi_parameter(name: str, schema_version: int) -> Json:
    value_type: Json = {"type": "boolean" if name == "force" else "string", "uniqueItems": True}
    if schema_version == 2:
        return {"name": name, "in": "query", **value_type}
    return {"name": name, "in": "query", "schema": value_type}


def _content_hash(group: str, version: str) -> str:
    described = repr([resource for resource in RESOURCES if (resource.group, resource.version) == (group, version)])
    return hashlib.sha256(described.encode()).hexdigest()[:32].upper()


def _go_architecture() -> str:
    """The machine's name as Go writes it, which is how Kubernetes' clients print it."""
    machine = platform.machine()
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)
