"""Lists and the start of watches: versions, pages, selectors, and what may be asked together.

The rules are the API's own: a list may be of now, of at least a version, or of exactly one; a page continues the list
that it belongs to; a watch starts at a version, or with the present state (the watch-list form, ended by a bookmark).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ksched.errors import Refused
from ksched.sandbox import status
from ksched.sandbox.forms import Form
from ksched.sandbox.http import TRUE
from ksched.sandbox.resources import Resource
from ksched.sandbox.revisions import Object, Revision, Revisions, Shelf
from ksched.sandbox.selectors import field_selector, label_selector, only_name
from ksched.sandbox.watches import Scope, Watch, Watches

Parameters = Mapping[str, str]


class Place(msgspec.Struct, rename={"version": "rv", "after": "start"}):
    """Where a page ended; a `continue` token is this as base64 of JSON."""

    version: int
    after: tuple[str, str]


def answer_list(
    revisions: Revisions, resource: Resource, namespace: str | None, parameters: Parameters, form: Form
) -> bytes:
    """The list that the parameters ask for, encoded."""
    found, meta = select(revisions, resource, namespace, parameters)
    return form.many(found, meta)


def select(
    revisions: Revisions, resource: Resource, namespace: str | None, parameters: Parameters
) -> tuple[Sequence[Revision], Object]:
    """The revisions that a list holds, in order, and the list's metadata."""
    shelf = revisions.shelves[resource.kind]
    scope = scope_of(resource, namespace, parameters)
    limit = _number(parameters, "limit")
    place = _place(parameters)
    version = place.version if place is not None else _list_version(revisions, parameters)
    pinned = only_name(parameters.get("fieldSelector", "")) if version >= revisions.version else None
    if pinned is not None and (namespace is not None or not shelf.namespaced):
        one = shelf.get(namespace or "", pinned)
        return ([one] if one is not None and scope.has(one) else []), {"resourceVersion": str(version)}
    if place is None and version >= shelf.changed_at:
        found = shelf.present(namespace)
    else:
        found = _snapshot(shelf, version, place)
        if place is not None:
            found = [revision for revision in found if (revision.namespace, revision.name) > place.after]
    if scope.selective or namespace is not None:
        found = [revision for revision in found if scope.has(revision)]
    meta: Object = {"resourceVersion": str(version)}
    if limit and len(found) > limit:
        last = found[limit - 1]
        meta["continue"] = _token(Place(version, (last.namespace, last.name)))
        if not scope.selective:
            meta["remainingItemCount"] = len(found) - limit
        found = found[:limit]
    return found, meta


def open_watch(
    revisions: Revisions,
    watches: Watches,
    resource: Resource,
    namespace: str | None,
    parameters: Parameters,
    form: Form,
) -> Watch:
    """The watch that the parameters ask for, with what it has to send first."""
    shelf = revisions.shelves[resource.kind]
    scope = scope_of(resource, namespace, parameters)
    bookmarks = _flag(parameters, "allowWatchBookmarks")
    initial = _sends_initial_events(parameters)
    version = _version(parameters.get("resourceVersion", ""))
    timeout = _number(parameters, "timeoutSeconds")
    watch = watches.open(shelf, form, scope, bookmarks=bookmarks, timeout_seconds=timeout)
    if initial or (version == 0 and "sendInitialEvents" not in parameters):
        if version > revisions.version:
            raise _version_too_large(version, revisions.version)
        watch.begin_with([revision for revision in shelf.present(namespace) if scope.has(revision)])
        if initial and bookmarks:
            watch.bookmark(revisions.version, initial_end=True)
    elif version:
        if version > revisions.version:
            # A version from before this server lost its state: the client has to list again.
            raise Refused(410, "Expired", f"too old resource version: {version} ({revisions.version})")
        watch.replay(shelf.since(version))
    return watch


def scope_of(resource: Resource, namespace: str | None, parameters: Parameters) -> Scope:
    """What a list, watch or collection delete concerns; `Refused` (400) for a selector that cannot be parsed."""
    labels, fields = parameters.get("labelSelector", ""), parameters.get("fieldSelector", "")
    return Scope(
        namespace,
        label_selector(labels) if labels else None,
        field_selector(resource.kind, fields) if fields else None,
    )


def _snapshot(shelf: Shelf, version: int, place: Place | None) -> list[Revision]:
    try:
        return shelf.snapshot(version)
    except Refused as refused:
        if place is None:
            raise
        message = (
            "The provided continue parameter is too old to display a consistent list result. "
            "You can start a new list without the continue parameter."
        )
        raise Refused(410, "Expired", message) from refused


def _list_version(revisions: Revisions, parameters: Parameters) -> int:
    """The version a list is of: the present one, unless exactly an older one is asked for."""
    asked = parameters.get("resourceVersion", "")
    match = parameters.get("resourceVersionMatch", "")
    version = _version(asked)
    if match not in ("", "NotOlderThan", "Exact"):
        raise _invalid_option("resourceVersionMatch", f'Unsupported value: "{match}"')
    if match and not asked:
        why = "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise _invalid_option("resourceVersionMatch", why)
    if match == "Exact" and version == 0:
        why = 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        raise _invalid_option("resourceVersionMatch", why)
    if version > revisions.version:
        raise _version_too_large(version, revisions.version)
    return version if match == "Exact" else revisions.version


def _sends_initial_events(parameters: Parameters) -> bool:
    match = parameters.get("resourceVersionMatch", "")
    if "sendInitialEvents" not in parameters:
        if match:
            raise _invalid_option(
                "resourceVersionMatch",
                "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        return False
    if match != "NotOlderThan":
        raise _invalid_option(
            "resourceVersionMatch",
            "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        )
    return _flag(parameters, "sendInitialEvents")


def _place(parameters: Parameters) -> Place | None:
    token = parameters.get("continue", "")
    if not token:
        return None
    if parameters.get("resourceVersion", "") not in ("", "0"):
        raise status.bad_request("specifying resource version is not allowed when using continue")
    try:
        return msgspec.json.decode(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=Place)
    except (ValueError, msgspec.DecodeError) as error:
        raise status.bad_request(f"continue key is not valid: {error}") from error


def _token(place: Place) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def _version(text: str) -> int:
    if text in ("", "0"):
        return 0
    if not text.isdecimal():
        why = "strconv.ParseUint: invalid syntax"
        raise _invalid_option("resourceVersion", f'Invalid value: "{text}": {why}')
    return int(text)


def _number(parameters: Parameters, name: str) -> int | None:
    text = parameters.get(name, "")
    if not text:
        return None
    if not text.isdecimal():
        raise status.bad_request(f"{name}: expected a whole number, got {text!r}")
    return int(text)


def _flag(parameters: Parameters, name: str) -> bool:
    return parameters.get(name, "") in TRUE


def _invalid_option(field: str, why: str) -> Refused:
    causes: list[dict[str, Any]] = [{"reason": "FieldValueForbidden", "message": why, "field": field}]
    message = f'ListOptions.meta.k8s.io "" is invalid: {field}: {why}'
    return Refused(422, "Invalid", message, causes, details={"group": "meta.k8s.io", "kind": "ListOptions"})


def _version_too_large(version: int, present: int) -> Refused:
    """504: the client has seen a version that this server has not; upstream's clients then list without one."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    message = f"Timeout: Too large resource version: {version}, current: {present}"
    return Refused(504, "Timeout", message, [cause], details={"retryAfterSeconds": 1})
