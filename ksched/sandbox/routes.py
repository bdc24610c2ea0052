"""From a path and a method to a verb on a resource.

`Routes.resolve` names what a request is (which faults and statistics go by); `Routes.handle` does it and turns every
refusal into a `Status`. Objects' rules are in `verbs.py`, lists and watches in `lists.py`, bodies in `bodies.py`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import unquote

import orjson

from ksched.errors import Refused
from ksched.sandbox import bodies, documents, lists, scale, status
from ksched.sandbox.control import Control
from ksched.sandbox.events import to_core
from ksched.sandbox.faults import Rule, refusal
from ksched.sandbox.forms import PlainForm, form_for
from ksched.sandbox.http import BODY_LIMIT_BYTES, TRUE, Answer, Request
from ksched.sandbox.resources import BY_PATH, STORED_KINDS, Resource
from ksched.sandbox.reviews import review
from ksched.sandbox.revisions import Object, Revision
from ksched.sandbox.verbs import DeleteOptions, PatchRequest, part
from ksched.sandbox.watches import Watch

log = logging.getLogger(__name__)

_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@dataclass(frozen=True, slots=True)
class Route:
    """What a path names. A path outside of the resources' has no resource."""

    resource: Resource | None = None
    namespace: str | None = None
    name: str = ""
    subresource: str = ""


class Routes:
    """The application behind the wire."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self._methods: dict[str, Callable[[Request, Route, Resource], Answer | Watch]] = {
            "GET": self._get,
            "POST": self._post,
            "PUT": self._put,
            "PATCH": self._patch,
            "DELETE": self._delete,
        }

    def fault(self, request: Request) -> Rule | None:
        """The rule that disturbs this request, if any. The sandbox's own paths are never disturbed."""
        faults = self.control.faults
        if not faults.armed or request.path.startswith("/sandbox/"):
            return None
        return faults.strike(_verb(request, resolve(request.path)), request.path)

    def refuse(self, rule: Rule) -> Answer:
        """The answer of a rule that has a status."""
        return _failure(refusal(rule))

    def too_large(self) -> Answer:
        """The answer to a body beyond the limit."""
        message = f"Request entity too large: limit is {BODY_LIMIT_BYTES}"
        return _failure(Refused(413, "RequestEntityTooLarge", message))

    def settle(self) -> None:
        """Bring the journal up to date before answers are written."""
        self.control.revisions.flush()

    def handle(self, request: Request) -> Answer | Watch:
        """Answer a request."""
        try:
            return self._handle(request)
        except Refused as refused:
            return _failure(refused)
        except Exception as error:
            # A bug in one request's handling must not take down the server that a whole test run depends on.
            log.exception("request failed: %s %s", request.method, request.path)
            return _failure(Refused(500, "InternalError", f"Internal error occurred: {type(error).__name__}: {error}"))

    def _handle(self, request: Request) -> Answer | Watch:
        route = resolve(request.path)
        control = self.control
        if control.token and request.authorization != f"Bearer {control.token}":
            raise Refused(401, "Unauthorized", "Unauthorized")
        verb = _verb(request, route)
        control.counts[verb] = control.counts.get(verb, 0) + 1
        if route.resource is None:
            return self._other(request)
        method = self._methods.get(request.method)
        if method is None:
            raise _not_allowed(request)
        return method(request, route, route.resource)

    def _other(self, request: Request) -> Answer:
        if request.path.startswith("/sandbox/"):
            return self.control.answer(request)
        return documents.answer(request)

    def _get(self, request: Request, route: Route, resource: Resource) -> Answer | Watch:
        parameters = request.parameters()
        control = self.control
        _require_verb(request, resource, "get")
        include = parameters.get("includeObject", "")
        form = form_for(resource, request.accept, include_object=include, clock=control.clock)
        if not route.name:
            if parameters.get("watch") in TRUE:
                return lists.open_watch(control.revisions, control.watches, resource, route.namespace, parameters, form)
            body = lists.answer_list(control.revisions, resource, route.namespace, parameters, form)
            return Answer(200, body, form.content_type)
        revision = control.verbs.find(resource.kind, route.namespace or "", route.name)
        if route.subresource == "scale":
            return _json(200, scale.of(resource, revision.decode()))
        return Answer(200, form.one(revision), form.content_type)

    def _post(self, request: Request, route: Route, resource: Resource) -> Answer:
        parameters = request.parameters()
        dry_run = _dry_run(parameters)
        body = bodies.decode(request)
        if route.subresource or resource.kind == "Binding":
            return self._post_subresource(request, route, resource, body, dry_run)
        if not resource.stored:
            return _json(201, review(resource, body))
        if route.name:
            raise _not_allowed(request)
        bodies.check_kind(resource, body)
        namespace = _namespace_for_create(resource, route)
        revision = self.control.verbs.create(resource.kind, namespace, _stored_form(resource, body), dry_run=dry_run)
        return self._object(201, request, resource, revision)

    def _post_subresource(
        self, request: Request, route: Route, resource: Resource, body: Object, dry_run: bool
    ) -> Answer:
        verbs, namespace = self.control.verbs, route.namespace or ""
        if resource.kind == "Binding" or route.subresource == "binding":
            bodies.check_kind(BY_PATH["", "v1", "bindings"], body)
            name = route.name or str(part(body, "metadata").get("name", ""))
            if not dry_run:
                verbs.bind(namespace, name, body)
            return Answer(201, status.CREATED)
        if route.subresource == "eviction":
            options = bodies.delete_options(part(body, "deleteOptions"), {}, dry_run)
            verbs.evict(namespace, route.name, options)
            return Answer(201, status.CREATED)
        raise _not_allowed(request)

    def _put(self, request: Request, route: Route, resource: Resource) -> Answer:
        _require_name(request, route, resource, "update")
        dry_run = _dry_run(request.parameters())
        body = bodies.decode(request)
        verbs, namespace = self.control.verbs, route.namespace or ""
        if route.subresource == "scale":
            return self._write_scale(request, route, resource, body, dry_run)
        bodies.check_kind(resource, body)
        revision = verbs.replace(
            resource.kind,
            namespace,
            route.name,
            _stored_form(resource, body),
            subresource=route.subresource,
            dry_run=dry_run,
        )
        return self._object(200, request, resource, revision)

    def _patch(self, request: Request, route: Route, resource: Resource) -> Answer:
        _require_name(request, route, resource, "patch")
        verbs, namespace = self.control.verbs, route.namespace or ""
        patch = bodies.patch_request(request)
        if route.subresource == "scale":
            present = scale.of(resource, verbs.find(resource.kind, namespace, route.name).decode())
            return self._write_scale(request, route, resource, scale.patched(present, patch), patch.dry_run)
        before = verbs.revisions.shelves[resource.kind].get(namespace, route.name)
        if STORED_KINDS[resource.kind] is not resource:
            patch = _patch_in_stored_form(patch)
        revision = verbs.patch(resource.kind, namespace, route.name, patch, subresource=route.subresource)
        return self._object(200 if before is not None else 201, request, resource, revision)

    def _write_scale(self, request: Request, route: Route, resource: Resource, wanted: Object, dry_run: bool) -> Answer:
        verbs, namespace = self.control.verbs, route.namespace or ""
        obj = scale.applied(resource, verbs.find(resource.kind, namespace, route.name).decode(), wanted)
        revision = verbs.replace(resource.kind, namespace, route.name, obj, dry_run=dry_run)
        return _json(200, scale.of(resource, revision.decode()))

    def _delete(self, request: Request, route: Route, resource: Resource) -> Answer:
        parameters = request.parameters()
        body = bodies.decode(request) if request.body else {}
        options = bodies.delete_options(body, parameters, _dry_run(parameters))
        _require_verb(request, resource, "delete" if route.name else "deletecollection")
        if not route.name:
            return self._delete_collection(request, route, resource, options)
        if route.subresource:
            raise _not_allowed(request)
        revision, gone = self.control.verbs.delete(resource.kind, route.namespace or "", route.name, options)
        if gone and resource.kind != "Pod":
            details = {"name": revision.name, "group": resource.group, "kind": resource.plural, "uid": revision.uid}
            return Answer(200, status.success({key: value for key, value in details.items() if value}))
        return self._object(200, request, resource, revision)

    def _delete_collection(self, request: Request, route: Route, resource: Resource, options: DeleteOptions) -> Answer:
        control = self.control
        found, meta = lists.select(control.revisions, resource, route.namespace, request.parameters())
        deleted = [
            control.verbs.delete(resource.kind, revision.namespace, revision.name, options)[0] for revision in found
        ]
        return Answer(200, PlainForm(resource).many(deleted, meta))

    def _object(self, code: int, request: Request, resource: Resource, revision: Revision) -> Answer:
        form = form_for(resource, request.accept, include_object="", clock=self.control.clock)
        return Answer(code, form.one(revision), form.content_type)


def resolve(path: str) -> Route:
    """What a path names."""
    parts = [unquote(part) for part in path.strip("/").split("/")] if "%" in path else path.strip("/").split("/")
    match parts:
        case ["api", version, *rest] if rest:
            return _resolve("", version, rest)
        case ["apis", group, version, *rest] if rest:
            return _resolve(group, version, rest)
    return Route()


def _resolve(group: str, version: str, rest: list[str]) -> Route:
    namespace: str | None = None
    if (
        rest[0] == "namespaces"
        and len(rest) >= 3
        and not (group == "" and len(rest) == 3 and rest[2] in _NAMESPACE_SUBRESOURCES)
    ):
        namespace, rest = rest[1], rest[2:]
    resource = BY_PATH.get((group, version, rest[0]))
    if resource is None or len(rest) > 3 or (namespace is not None and not resource.namespaced):
        return Route()
    name = rest[1] if len(rest) > 1 else ""
    subresource = rest[2] if len(rest) > 2 else ""
    if subresource and resource.subresource(subresource) is None:
        return Route()
    return Route(resource, namespace, name, subresource)


_ASKS_TO_WATCH = re.compile(rf"(?:^|&)watch=(?:{'|'.join(TRUE)})(?:&|$)")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def _verb(request: Request, route: Route) -> str:
    """The request's verb, in the words of the API's authorization, with bind and evict told apart."""
    if route.resource is None:
        return "other"
    if request.method == "GET":
        if route.name:
            return "get"
        return "watch" if _ASKS_TO_WATCH.search(request.query) else "list"
    if request.method == "POST" and route.subresource:
        return {"binding": "bind", "eviction": "evict"}.get(route.subresource, "create")
    if request.method == "POST" and route.resource.kind == "Binding":
        return "bind"
    if request.method == "DELETE" and not route.name:
        return "deletecollection"
    return _VERBS.get(request.method, "other")


def _require_verb(request: Request, resource: Resource, verb: str) -> None:
    if verb not in resource.verbs:
        raise _not_allowed(request)


def _require_name(request: Request, route: Route, resource: Resource, verb: str) -> None:
    _require_verb(request, resource, verb)
    if not route.name:
        raise _not_allowed(request)


def _namespace_for_create(resource: Resource, route: Route) -> str:
    if not resource.namespaced:
        return ""
    if not route.namespace:
        raise status.bad_request("an empty namespace may not be set during creation")
    return route.namespace


def _stored_form(resource: Resource, body: Object) -> Object:
    """The body in the form in which its kind is kept."""
    return body if STORED_KINDS[resource.kind] is resource else to_core(body)


def _patch_in_stored_form(patch: PatchRequest) -> PatchRequest:
    if not isinstance(patch.body, dict):
        raise status.bad_request("events.k8s.io: only merge, strategic merge and apply patches are supported")
    return PatchRequest(patch.media_type, to_core(patch.body), patch.manager, patch.force, patch.dry_run)


def _dry_run(parameters: dict[str, str]) -> bool:
    asked = parameters.get("dryRun", "")
    if asked not in ("", "All"):
        raise status.bad_request(f'dryRun: Unsupported value: "{asked}": supported values: "All"')
    return asked == "All"


def _not_allowed(request: Request) -> Refused:
    return Refused(
        405, "MethodNotAllowed", f"the server does not allow this method on the requested resource: {request.method}"
    )


def _json(code: int, body: Object) -> Answer:
    return Answer(code, orjson.dumps(body))


def _failure(refused: Refused) -> Answer:
    body = orjson.dumps(status.failure(refused))
    return Answer(refused.code, body, retry_after_seconds=refused.retry_after_seconds)
