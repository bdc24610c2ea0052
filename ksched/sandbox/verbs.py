"""What each verb does to an object: create, replace, patch, delete, bind, evict, scale.

The rules that every kind shares are here: names and namespaces exist or not, versions and uids match or not,
finalizers and grace periods hold, owners take their dependents along. Kind by kind rules (defaults, what is
immutable) are in `defaults.py`, patch formats in `patches.py` and `apply.py`. A verb answers with a revision or
raises `Refused`; nothing here knows HTTP.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ksched.errors import ApplyConflict, PatchError, Refused
from ksched.sandbox import defaults, status
from ksched.sandbox.apply import record_update, server_side_apply
from ksched.sandbox.clock import Clock
from ksched.sandbox.ledger import Ledger
from ksched.sandbox.patches import json_patch, merge_patch, strategic_merge
from ksched.sandbox.resources import STORED_KINDS, Resource
from ksched.sandbox.revisions import Object, Revision, Revisions
from ksched.sandbox.selectors import labels_match
from ksched.sandbox.tables import table
from ksched.sandbox.validation import malformed

log = logging.getLogger(__name__)

_NAME_TRIES = 8
_GARBAGE_PER_TURN = 200
_DEFAULT_GRACE_SECONDS = 30
_TEXTS = ("name", "namespace", "uid", "resourceVersion", "generateName")
_OWNER_TEXTS = ("kind", "name", "uid")
# Pods are checked field by field. Of the other kinds, an object whose columns cannot be filled in has fields of other
# types than the API's, and must not spoil every table that it is in. Events come by the thousand and have a cheaper
# check.
_CHECKED_OTHERWISE = frozenset({"Event", "Pod"})
_EVENT_PARTS = ("involvedObject", "related", "series", "source")
_KEPT_NAMESPACES = ("default", "kube-public", "kube-system")
_FOREGROUND = "foregroundDeletion"

Defer = Callable[[Callable[[], None]], object]


def at_once(act: Callable[[], None]) -> None:
    """Run deferred work immediately: for a store without a loop."""
    act()


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a DELETE may ask for."""

    grace_seconds: int | None = None
    uid: str | None = None
    version: str | None = None
    propagation: str = "Background"
    dry_run: bool = False


@dataclass(frozen=True, slots=True)
class PatchRequest:
    """One patch: its media type, its decoded body, and who sends it."""

    media_type: str
    body: Any
    manager: str = "unknown"
    force: bool = False
    dry_run: bool = False


class Verbs:
    """The verbs over one set of revisions."""

    def __init__(self, revisions: Revisions, clock: Clock, ledger: Ledger, defer: Defer = at_once) -> None:
        self.revisions = revisions
        self.clock = clock
        self.ledger = ledger
        self._defer = defer
        self._garbage: deque[tuple[str, str, str]] = deque()
        self._collecting = False
        # For uids and generated names. No option seeds it: a restart on the same data must not repeat them.
        self._random = random.Random()

    def defer_to(self, defer: Defer) -> None:
        """Have garbage collected in turns of a loop instead of within the deletion that made it."""
        self._defer = defer

    def find(self, kind: str, namespace: str, name: str) -> Revision:
        """The present revision; `Refused` (404) when there is none."""
        found = self.revisions.shelves[kind].get(namespace, name)
        if found is None:
            raise status.not_found(STORED_KINDS[kind], name)
        return found

    def create(self, kind: str, namespace: str, obj: Object, *, dry_run: bool = False) -> Revision:
        """Admit and store a new object."""
        resource = STORED_KINDS[kind]
        metadata = _metadata(resource, obj)
        _settle_namespace(resource, metadata, namespace)
        if metadata.get("resourceVersion"):
            raise status.bad_request("resourceVersion should not be set on objects to be created")
        if resource.namespaced:
            self._require_namespace(namespace)
        obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version
        generated = bool(metadata.get("generateName")) and not metadata.get("name")
        obj = defaults.prepare_create(kind, obj, self._lookup, self.clock.stamp(), rng=self._random)
        shelf = self.revisions.shelves[kind]
        for _ in range(_NAME_TRIES if generated else 0):
            if shelf.get(namespace, obj["metadata"]["name"]) is None:
                break
            obj["metadata"]["name"] = ""
            obj = defaults.prepare_create(kind, obj, self._lookup, self.clock.stamp(), rng=self._random)
        name = obj["metadata"]["name"]
        if shelf.get(namespace, name) is not None:
            raise status.already_exists(resource, name)
        if dry_run:
            return Revision(kind, obj, 0)
        revision = self._put(kind, obj)
        if kind == "Pod":
            self.ledger.created(revision.namespace, revision.name, revision.uid)
        return revision

    def replace(
        self, kind: str, namespace: str, name: str, obj: Object, *, subresource: str = "", dry_run: bool = False
    ) -> Revision:
        """Store `obj` in place of the present object; refused (409) when it was made from an older one."""
        resource = STORED_KINDS[kind]
        metadata = _metadata(resource, obj)
        if metadata.get("name") != name:
            raise status.bad_request(
                f"the name of the object ({metadata.get('name', '')}) does not match the name on the URL ({name})"
            )
        _settle_namespace(resource, metadata, namespace)
        present = self.find(kind, namespace, name)
        obj["kind"], obj["apiVersion"] = resource.kind, resource.api_version
        return self._store_changed(present, present.decode(), obj, subresource, dry_run)

    def patch(self, kind: str, namespace: str, name: str, patch: PatchRequest, *, subresource: str = "") -> Revision:
        """Apply a patch of any of the four kinds. An apply patch of a name that is free creates the object."""
        resource = STORED_KINDS[kind]
        applies = patch.media_type == "application/apply-patch+yaml"
        present = self.revisions.shelves[kind].get(namespace, name)
        if present is None and not (applies and not subresource):
            raise status.not_found(resource, name)
        old = present.decode() if present is not None else None
        try:
            new = self._patched(resource, old, patch)
            if old is not None and not applies:
                new = record_update(
                    old, new, manager=patch.manager, subresource=subresource, kind=kind, now=self.clock.stamp()
                )
        except (PatchError, ApplyConflict) as error:
            raise status.as_refusal(error) from error
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise malformed(kind, f"a field of the patch has another type than in the API: {error}") from error
        metadata = _metadata(resource, new)
        if present is None or old is None:
            metadata.setdefault("name", name)
            return self.create(kind, namespace, new, dry_run=patch.dry_run)
        if metadata.get("name") != name:
            raise status.bad_request(
                f"the name of the object ({metadata.get('name', '')}) does not match the name on the URL ({name})"
            )
        _settle_namespace(resource, metadata, namespace)
        return self._store_changed(present, old, new, subresource, patch.dry_run)

    def delete(self, kind: str, namespace: str, name: str, options: DeleteOptions) -> tuple[Revision, bool]:
        """Delete an object, or begin to: the answer is its last revision and whether it is gone.

        Pods on a node wait for their grace period (the node agent ends it), objects with finalizers for those who set
        them.
        """
        present = self.find(kind, namespace, name)
        resource = STORED_KINDS[kind]
        if options.uid is not None and options.uid != present.uid:
            why = f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {present.uid}"
            raise status.conflict(resource, name, why)
        if options.version is not None and options.version != str(present.version):
            why = (
                f"Precondition failed: ResourceVersion in precondition: {options.version}, "
                f"ResourceVersion in object meta: {present.version}"
            )
            raise status.conflict(resource, name, why)
        obj = present.decode()
        if kind == "Namespace" and name in _KEPT_NAMESPACES:
            raise status.forbidden(resource, name, "this namespace may not be deleted")
        grace = _grace_seconds(kind, obj, options.grace_seconds)
        finalizers = list(obj["metadata"].get("finalizers") or ())
        if options.propagation == "Foreground" and _FOREGROUND not in finalizers and self._has_dependents(present):
            finalizers.append(_FOREGROUND)
        if options.dry_run:
            return present, not finalizers and not grace
        if options.propagation == "Orphan":
            self._orphan(present)
        if finalizers or grace:
            revision = self._mark_deleted(present, obj, grace, finalizers)
            if _FOREGROUND in finalizers:
                self._collect(present.uid)
            return self.revisions.shelves[kind].get(namespace, name) or revision, False
        return self._remove(present), True

    def bind(self, namespace: str, name: str, binding: Object) -> Revision:
        """Let a binding take effect: the pod is on the node from now on. Refused (409) if it is on one already."""
        pod = self.find("Pod", namespace, name)
        resource = STORED_KINDS["Pod"]
        target = part(binding, "target")
        node_name = target.get("name") or ""
        if not node_name or not isinstance(node_name, str):
            raise status.invalid(resource, name, "target.name", "Required value", "FieldValueRequired")
        if target.get("kind") not in (None, "", "Node"):
            why = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
            raise status.invalid(resource, name, "target.kind", why, "FieldValueNotSupported")
        obj = pod.decode()
        why_not = _why_not_bindable(pod, obj, binding)
        if why_not:
            self.ledger.bind_conflicts += 1
            raise status.conflict(resource, name, why_not, "binding")
        node = self.revisions.shelves["Node"].get("", node_name)
        # Binding looks only at the node's labels: decoding the whole node would be most of a bind's cost.
        seen = None if node is None else {"metadata": {"name": node.name, "labels": node.labels}}
        revision = self.revisions.put("Pod", defaults.bind(obj, seen, binding, self.clock.stamp()))
        self.ledger.bound(namespace, name, revision.uid, node_name)
        return revision

    def evict(self, namespace: str, name: str, options: DeleteOptions) -> None:
        """Delete a pod unless a disruption budget forbids it (429), which is charged for it otherwise.

        The budgets' statuses are taken as they are stored: computing them is the disruption controller's work.
        """
        pod = self.find("Pod", namespace, name)
        if pod.fields[2] not in ("Succeeded", "Failed", "Pending"):
            for budget in self.revisions.shelves["PodDisruptionBudget"].within(namespace):
                self._charge(budget, pod, options.dry_run)
        self.delete("Pod", namespace, name, options)

    def drop_events_before(self, stamp: str) -> None:
        """Remove events that were last seen before `stamp`."""
        shelf = self.revisions.shelves["Event"]
        for namespace in list(shelf.objects):
            for revision in shelf.within(namespace):
                obj = revision.decode()
                last = (obj.get("series") or {}).get("lastObservedTime") or obj.get("lastTimestamp")
                if (last or obj["metadata"]["creationTimestamp"]) >= stamp:
                    break  # events are kept in the order in which they came
                self.revisions.remove(revision)

    def _charge(self, budget: Revision, pod: Revision, dry_run: bool) -> None:
        obj = budget.decode()
        if not labels_match((obj.get("spec") or {}).get("selector"), pod.labels):
            return
        state = obj.setdefault("status", {})
        allowed = state.get("disruptionsAllowed") or 0
        if allowed <= 0:
            why = (
                f"The disruption budget {budget.name} needs {state.get('desiredHealthy', 0)} healthy pods "
                f"and has {state.get('currentHealthy', 0)} currently"
            )
            raise Refused(
                429,
                "TooManyRequests",
                "Cannot evict pod as it would violate the pod's disruption budget.",
                [{"reason": "DisruptionBudget", "message": why}],
            )
        if not dry_run:
            state["disruptionsAllowed"] = allowed - 1
            state.setdefault("disruptedPods", {})[pod.name] = self.clock.stamp()
            self.revisions.put("PodDisruptionBudget", obj)

    def _require_namespace(self, namespace: str) -> None:
        if self.revisions.shelves["Namespace"].get("", namespace) is None:
            raise status.not_found(STORED_KINDS["Namespace"], namespace)

    def _lookup(self, kind: str, namespace: str, name: str) -> Object | None:
        if kind == "PriorityClass" and not name:
            return self._global_default_class()
        found = self.revisions.shelves[kind].get(namespace, name)
        return found.decode() if found is not None else None

    def _global_default_class(self) -> Object | None:
        """The priority class for pods that name none; of several, the one with the lowest value, as upstream."""
        shelf = self.revisions.shelves["PriorityClass"]
        found = [revision.decode() for revision in shelf if b'"globalDefault":true' in revision.raw]
        return min(found, key=lambda each: each["value"], default=None)

    def _patched(self, resource: Resource, old: Object | None, patch: PatchRequest) -> Object:
        match patch.media_type:
            case "application/apply-patch+yaml":
                return server_side_apply(
                    old,
                    patch.body,
                    manager=patch.manager,
                    force=patch.force,
                    kind=resource.kind,
                    now=self.clock.stamp(),
                )
            case "application/json-patch+json":
                return json_patch(old or {}, patch.body)
            case "application/merge-patch+json":
                return merge_patch(old or {}, patch.body)
            case "application/strategic-merge-patch+json":
                return strategic_merge(old or {}, patch.body, resource.kind)
        supported = (
            "application/json-patch+json, application/merge-patch+json, "
            "application/apply-patch+yaml, application/strategic-merge-patch+json"
        )
        raise Refused(
            415,
            "UnsupportedMediaType",
            f"the body of the request was in an unknown format - accepted media types include: {supported}",
        )

    def _store_changed(self, present: Revision, old: Object, new: Object, subresource: str, dry_run: bool) -> Revision:
        resource = STORED_KINDS[present.kind]
        metadata = new["metadata"]
        version = metadata.get("resourceVersion")
        if version and version != str(present.version):
            raise status.modified(resource, present.name)
        if metadata.get("uid") not in (None, "", present.uid):
            why = f"Precondition failed: UID in precondition: {metadata['uid']}, UID in object meta: {present.uid}"
            raise status.conflict(resource, present.name, why)
        new = defaults.prepare_update(present.kind, old, new, subresource, self.clock.stamp())
        new["metadata"]["resourceVersion"] = str(present.version)
        if new == old:
            return present  # as upstream: a write that changes nothing makes no new version and no event
        if dry_run:
            return Revision(present.kind, new, present.version)
        revision = self._put(present.kind, new, subresource)
        if _may_go(new):
            return self._remove(revision)
        return revision

    def _put(self, kind: str, obj: Object, subresource: str = "") -> Revision:
        """Store an object, unless a field of it is not of the type that its kind has there."""
        try:
            self._check_shape(kind, obj, subresource)
            revision = self.revisions.next(kind, obj)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise malformed(kind, f"a field is missing or has another type than in the API: {error}") from error
        return self.revisions.store(revision)

    def _check_shape(self, kind: str, obj: Object, subresource: str) -> None:
        metadata = obj["metadata"]
        for field in ("labels", "annotations"):
            for value in part(metadata, field).values():
                if not isinstance(value, str):
                    raise TypeError(f"metadata.{field}: {value!r} is not a string")
        for owner in metadata.get("ownerReferences") or ():
            if not all(isinstance(owner[field], str) for field in _OWNER_TEXTS):
                raise TypeError(f"metadata.ownerReferences: {owner}")
        if kind not in _CHECKED_OTHERWISE or subresource == "status":
            table(kind, [obj], list_meta={}, now=self.clock.now(), include_object="None")
        if kind == "Event":
            for field in _EVENT_PARTS:
                part(obj, field)
        elif kind == "PodDisruptionBudget":
            selector = part(part(obj, "spec"), "selector")
            part(selector, "matchLabels")
            for expression in selector.get("matchExpressions") or ():
                labels_match({"matchExpressions": [expression]}, {})

    def _mark_deleted(self, present: Revision, obj: Object, grace: int, finalizers: list[str]) -> Revision:
        metadata = obj["metadata"]
        already = metadata.get("deletionTimestamp")
        shorter = already and grace < (metadata.get("deletionGracePeriodSeconds") or 0)
        if already and not shorter and finalizers == (metadata.get("finalizers") or []):
            return present
        if not already or shorter:
            metadata["deletionTimestamp"] = self.clock.stamp_after(grace)
            metadata["deletionGracePeriodSeconds"] = grace
        if not already and "generation" in metadata:
            metadata["generation"] += 1
        if finalizers:
            metadata["finalizers"] = finalizers
        return self.revisions.put(present.kind, obj)

    def _remove(self, present: Revision) -> Revision:
        if present.kind == "Namespace":
            self._empty(present.name)
        last = self.revisions.remove(present)
        self._collect(present.uid)
        if any(owner not in self.revisions.dependents for owner in present.owners):
            self._release_owners(present)
        return last

    def _empty(self, namespace: str) -> None:
        """Remove what is in a namespace that goes, without grace or finalizers: no controller is there to be asked."""
        for shelf in self.revisions.shelves.values():
            for revision in shelf.within(namespace):
                self.revisions.remove(revision)

    def _has_dependents(self, owner: Revision) -> bool:
        return bool(self.revisions.dependents.get(owner.uid))

    def _orphan(self, owner: Revision) -> None:
        for kind, namespace, name in list(self.revisions.dependents.get(owner.uid, ())):
            obj = self.find(kind, namespace, name).decode()
            metadata = obj["metadata"]
            metadata["ownerReferences"] = [each for each in metadata["ownerReferences"] if each["uid"] != owner.uid]
            self.revisions.put(kind, obj)

    def _collect(self, owner: str) -> None:
        """Queue the dependents of an owner that is gone (or waits for them) for deletion."""
        self._garbage.extend(self.revisions.dependents.get(owner, ()))
        if self._garbage and not self._collecting:
            self._collecting = True
            self._defer(self._collect_some)

    def _collect_some(self) -> None:
        """Delete a bounded number of dependents, so that a big owner's end does not hold the loop."""
        for _ in range(min(len(self._garbage), _GARBAGE_PER_TURN)):
            kind, namespace, name = self._garbage.popleft()
            found = self.revisions.shelves[kind].get(namespace, name)
            if found is None or self._has_living_owner(found):
                continue
            try:
                self.delete(kind, namespace, name, DeleteOptions())
            except Refused as refused:
                log.warning("not collected with its owner: %s %s/%s: %s", kind, namespace, name, refused)
        if self._garbage:
            self._defer(self._collect_some)
        else:
            self._collecting = False

    def _has_living_owner(self, revision: Revision) -> bool:
        return any(not _is_waiting(owner) for owner in self._owners(revision))

    def _release_owners(self, dependent: Revision) -> None:
        """Let owners go that waited in the foreground for the last of their dependents."""
        for owner in self._owners(dependent):
            if owner.uid in self.revisions.dependents or not _is_waiting(owner):
                continue
            obj = owner.decode()
            obj["metadata"]["finalizers"] = [each for each in obj["metadata"]["finalizers"] if each != _FOREGROUND]
            revision = self.revisions.put(owner.kind, obj)
            if _may_go(obj):
                self._remove(revision)

    def _owners(self, dependent: Revision) -> Iterator[Revision]:
        """The present owners that a revision refers to."""
        for reference in dependent.decode()["metadata"].get("ownerReferences") or ():
            shelf = self.revisions.shelves.get(reference.get("kind", ""))
            if shelf is None:
                continue
            owner = shelf.get(dependent.namespace if shelf.namespaced else "", reference.get("name", ""))
            if owner is not None and owner.uid == reference["uid"]:
                yield owner


def _metadata(resource: Resource, obj: Any) -> Object:
    """The metadata of a body, made if absent; refuses what is not an object of this kind."""
    if not isinstance(obj, dict):
        raise status.bad_request(f"expected a {resource.kind} as a JSON object, got {type(obj).__name__}")
    metadata = obj.get("metadata")
    if metadata is None:
        metadata = obj["metadata"] = {}
    if not isinstance(metadata, dict):
        raise status.bad_request(f"{resource.kind}.metadata: expected an object, got {type(metadata).__name__}")
    for field in _TEXTS:
        if not isinstance(metadata.get(field, ""), str | None):
            raise status.bad_request(f"{resource.kind}.metadata.{field}: expected a string, got {metadata[field]!r}")
    return metadata


def part(body: Mapping[str, Any], field: str) -> Object:
    """The object in a field of a body, empty where it is absent; refused (400) if it is no object."""
    value = body.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise status.bad_request(f"{field}: expected an object, got {type(value).__name__}")
    return value


def _settle_namespace(resource: Resource, metadata: Object, namespace: str) -> None:
    """Make the object's namespace that of the URL, or refuse when the two differ."""
    if not resource.namespaced:
        metadata.pop("namespace", None)
    elif metadata.get("namespace") in (None, ""):
        metadata["namespace"] = namespace
    elif metadata["namespace"] != namespace:
        raise status.bad_request(
            f"the namespace of the provided object does not match the namespace sent on the request "
            f"({metadata['namespace']} is not {namespace})"
        )


def _grace_seconds(kind: str, obj: Object, asked: int | None) -> int:
    """How long a deletion waits: only pods that a node may be running do."""
    if kind != "Pod":
        return 0
    spec, state = obj.get("spec") or {}, obj.get("status") or {}
    if not spec.get("nodeName") or state.get("phase") in ("Succeeded", "Failed"):
        return 0
    if asked is not None:
        return max(asked, 0)
    own = spec.get("terminationGracePeriodSeconds")
    return _DEFAULT_GRACE_SECONDS if own is None else max(int(own), 0)


def _may_go(obj: Object) -> bool:
    """Whether a deletion that began has nothing left to wait for."""
    metadata = obj["metadata"]
    if not metadata.get("deletionTimestamp") or metadata.get("finalizers"):
        return False
    return not metadata.get("deletionGracePeriodSeconds")


def _is_waiting(owner: Revision) -> bool:
    """Whether an owner is deleted in the foreground and waits for its dependents."""
    if b'"foregroundDeletion"' not in owner.raw:
        return False
    metadata = owner.decode()["metadata"]
    return bool(metadata.get("deletionTimestamp")) and _FOREGROUND in (metadata.get("finalizers") or ())


def _why_not_bindable(pod: Revision, obj: Object, binding: Mapping[str, Any]) -> str | None:
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    wanted = part(binding, "metadata")
    if wanted.get("uid") not in (None, "", pod.uid):
        return f"Precondition failed: UID in precondition: {wanted['uid']}, UID in object meta: {pod.uid}"
    if wanted.get("resourceVersion") not in (None, "", str(pod.version)):
        return (
            f"Precondition failed: ResourceVersion in precondition: {wanted['resourceVersion']}, "
            f"ResourceVersion in object meta: {pod.version}"
        )
    if metadata.get("deletionTimestamp"):
        return f"pod {pod.name} is being deleted, cannot be assigned to a host"
    if spec.get("nodeName"):
        return f'pod {pod.name} is already assigned to node "{spec["nodeName"]}"'
    if spec.get("schedulingGates"):
        return f"pod {pod.name} has non-empty .spec.schedulingGates"
    return None
