"""Request bodies: JSON or YAML into objects, patches and delete options; other formats are refused as the API does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import yaml

from ksched.errors import Refused
from ksched.sandbox import protobuf, status
from ksched.sandbox.http import TRUE, Request
from ksched.sandbox.resources import Resource
from ksched.sandbox.revisions import Object
from ksched.sandbox.verbs import DeleteOptions, PatchRequest, part

_APPLY = "application/apply-patch+yaml"
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    _APPLY,
)


def decode(request: Request) -> Object:
    """The body as an object; `Refused` with 415 for formats that the sandbox does not read, 400 for malformed ones."""
    media = _media_type(request)
    if media in ("", "application/json"):
        return _object(_json(request.body))
    if media == "application/yaml":
        return _object(_yaml(request.body))
    if media == protobuf.MEDIA_TYPE:
        try:
            return protobuf.decode(request.body)
        except protobuf.Unreadable as error:
            raise _unsupported(f"{media}: {error}", ("application/json", "application/yaml")) from error
    raise _unsupported(media, ("application/json", "application/yaml"))


def check_kind(resource: Resource, body: Object) -> None:
    """Refuse (400) a body that says it is of another kind than the path; one that says nothing is taken as its own."""
    kind, api_version = body.get("kind") or "", body.get("apiVersion") or ""
    if kind in ("", resource.kind) and api_version in ("", resource.api_version):
        return
    got = f"{api_version}, Kind={kind}"
    raise status.bad_request(
        f"the object provided is unrecognized (must be of type {resource.kind}): "
        f"expected {resource.api_version}, Kind={resource.kind}, got {got}"
    )


def patch_request(request: Request) -> PatchRequest:
    """The patch that a PATCH carries."""
    media = _media_type(request)
    if media not in _PATCHES:
        raise _unsupported(media, _PATCHES)
    parameters = request.parameters()
    asked = parameters.get("dryRun", "")
    if asked not in ("", "All"):
        raise status.bad_request(f'dryRun: Unsupported value: "{asked}": supported values: "All"')
    manager = parameters.get("fieldManager", "")
    if media == _APPLY and not manager:
        raise Refused(
            422,
            "Invalid",
            'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
            [{"reason": "FieldValueRequired", "message": "Required value", "field": "fieldManager"}],
        )
    return PatchRequest(
        media,
        _yaml(request.body) if media == _APPLY else _json(request.body),
        manager or "unknown",
        parameters.get("force", "") in TRUE,
        asked == "All",
    )


def delete_options(body: Mapping[str, Any], parameters: Mapping[str, str], dry_run: bool) -> DeleteOptions:
    """The options of a deletion: the body's where it gives them, else the query's."""
    preconditions = part(body, "preconditions")
    grace = body.get("gracePeriodSeconds", parameters.get("gracePeriodSeconds"))
    try:
        seconds = None if grace is None else int(grace)
    except (TypeError, ValueError) as error:
        raise status.bad_request(f"gracePeriodSeconds: expected a whole number, got {grace!r}") from error
    propagation = body.get("propagationPolicy") or parameters.get("propagationPolicy") or "Background"
    if body.get("orphanDependents"):
        propagation = "Orphan"
    if propagation not in ("Background", "Foreground", "Orphan"):
        raise status.bad_request(
            f'propagationPolicy: Unsupported value: "{propagation}": '
            'supported values: "Background", "Foreground", "Orphan"'
        )
    return DeleteOptions(
        grace_seconds=seconds,
        uid=preconditions.get("uid"),
        version=preconditions.get("resourceVersion"),
        propagation=propagation,
        dry_run=dry_run or bool(body.get("dryRun")),
    )


def _media_type(request: Request) -> str:
    return request.content_type.partition(";")[0].strip().lower()


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise status.bad_request(f"the body of the request is not valid JSON: {error}") from error


def _yaml(body: bytes) -> Any:
    """YAML, of which JSON (what clients mostly send as apply patches) is read by the faster parser."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        pass  # not JSON: YAML proper
    try:
        return yaml.safe_load(body)
    except yaml.YAMLError as error:
        raise status.bad_request(f"the body of the request is not valid YAML: {error}") from error


def _object(decoded: Any) -> Object:
    if not isinstance(decoded, dict):
        raise status.bad_request(f"the body of the request: expected a JSON object, got {type(decoded).__name__}")
    return decoded


def _unsupported(media: str, accepted: tuple[str, ...]) -> Refused:
    message = (
        f"the body of the request was in an unknown format ({media or 'none given'}) - "
        f"accepted media types include: {', '.join(accepted)}"
    )
    return Refused(415, "UnsupportedMediaType", message)
