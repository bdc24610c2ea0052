"""`Status` objects, the form in which the API answers what is not an object: failures, and successes without a body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from ksched.errors import ApplyConflict, PatchError, Refused
from ksched.sandbox.resources import Resource

CREATED = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
"""What a successful binding or eviction is answered with."""


def failure(refused: Refused) -> dict[str, Any]:
    """The `Status` of a refusal."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": refused.message,
        "reason": refused.reason,
        "code": refused.code,
    }
    details = {key: value for key, value in refused.details.items() if value != ""}
    if refused.causes:
        details["causes"] = [dict(cause) for cause in refused.causes]
    if refused.retry_after_seconds is not None:
        details["retryAfterSeconds"] = refused.retry_after_seconds
    if details:
        status["details"] = details
    return status


def success(details: Mapping[str, str]) -> bytes:
    """The `Status` that answers a deletion which left no object to show."""
    return orjson.dumps(
        {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": dict(details)}
    )


def as_refusal(error: PatchError | ApplyConflict) -> Refused:
    """The refusal that a failed patch or apply is answered with."""
    if isinstance(error, ApplyConflict):
        return Refused(409, "Conflict", error.message, error.causes)
    return Refused(error.code, "Invalid" if error.code == 422 else "BadRequest", str(error))


def not_found(resource: Resource, name: str) -> Refused:
    """404: no object of that name."""
    return Refused(404, "NotFound", f'{_qualified(resource)} "{name}" not found', details=_details(resource, name))


def already_exists(resource: Resource, name: str) -> Refused:
    """409: a create of a name that is taken."""
    message = f'{_qualified(resource)} "{name}" already exists'
    return Refused(409, "AlreadyExists", message, details=_details(resource, name))


def conflict(resource: Resource, name: str, why: str, subresource: str = "") -> Refused:
    """409: a write that does not fit the object as it is; `why` is the sentence after the name."""
    target = _qualified(resource) + (f"/{subresource}" if subresource else "")
    details = _details(resource, name)
    details["kind"] = resource.plural + (f"/{subresource}" if subresource else "")
    return Refused(409, "Conflict", f'Operation cannot be fulfilled on {target} "{name}": {why}', details=details)


def modified(resource: Resource, name: str) -> Refused:
    """409: an update that was made from an older revision."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(resource, name, why)


def forbidden(resource: Resource, name: str, why: str) -> Refused:
    """403: a write that a rule of the API forbids."""
    message = f'{_qualified(resource)} "{name}" is forbidden: {why}'
    return Refused(403, "Forbidden", message, details=_details(resource, name))


def bad_request(message: str) -> Refused:
    """400: a request that makes no sense."""
    return Refused(400, "BadRequest", message)


def invalid(resource: Resource, name: str, field: str, why: str, reason: str = "FieldValueInvalid") -> Refused:
    """422: an object with a field that Kubernetes refuses."""
    kind = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    message = f'{kind} "{name}" is invalid: {field}: {why}'
    causes = [{"reason": reason, "message": why, "field": field}]
    details = {"name": name, "group": resource.group, "kind": resource.kind}
    return Refused(422, "Invalid", message, causes, details=details)


def _qualified(resource: Resource) -> str:
    return f"{resource.plural}.{resource.group}" if resource.group else resource.plural


def _details(resource: Resource, name: str) -> dict[str, str]:
    return {"name": name, "group": resource.group, "kind": resource.plural}
