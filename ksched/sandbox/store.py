"""The store as the sandbox's own controllers see it: objects as dicts, the same verbs and rules as over HTTP.

`NodeAgent` and `DeploymentController` run in the server's process and work through this. Revisions and their bytes
are in `revisions.py`, what the verbs mean in `verbs.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ksched.sandbox.resources import STORED_KINDS
from ksched.sandbox.revisions import Change, Object
from ksched.sandbox.verbs import DeleteOptions, Verbs


class Store:
    """Objects by kind, namespace and name. What is returned is the caller's to change; what is passed in is taken over.

    Writes raise `Refused` exactly as clients would be answered: 404, 409 and so on in its `code`.
    """

    def __init__(self, verbs: Verbs) -> None:
        self.verbs = verbs

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        """The object, or None; `namespace` is "" for cluster-scoped kinds."""
        found = self.verbs.revisions.shelves[kind].get(namespace, name)
        return found.decode() if found is not None else None

    def list(
        self, kind: str, namespace: str | None = None, predicate: Callable[[Object], bool] | None = None
    ) -> list[Object]:
        """The objects of a kind, of one namespace or all, that `predicate` holds for."""
        shelf = self.verbs.revisions.shelves[kind]
        revisions = list(shelf) if namespace is None else shelf.within(namespace)
        objects = [revision.decode() for revision in revisions]
        return objects if predicate is None else [obj for obj in objects if predicate(obj)]

    def create(self, kind: str, obj: Object) -> Object:
        """Create an object in the namespace that its metadata names (`default` if it names none)."""
        return self.verbs.create(kind, _namespace_of(kind, obj), obj).decode()

    def update(self, kind: str, obj: Object) -> Object:
        """Replace an object; refused (409) when its resourceVersion is not the present one."""
        return self._replace(kind, obj, "")

    def update_status(self, kind: str, obj: Object) -> Object:
        """Replace an object's status alone; refused (409) when its resourceVersion is not the present one."""
        return self._replace(kind, obj, "status")

    def delete(self, kind: str, namespace: str, name: str, grace: int | None = None) -> None:
        """Delete an object; `grace` 0 removes a pod at once, None waits its own grace period."""
        self.verbs.delete(kind, namespace, name, DeleteOptions(grace_seconds=grace))

    def subscribe(self, kinds: Iterable[str], callback: Callable[[Change], None]) -> Callable[[], None]:
        """Have `callback` told of every later change of these kinds; the answer ends that.

        It is called inside the write, so it may only take a note (put a key on a queue) and must not write itself. A
        `Change` has type ("ADDED", "MODIFIED", "DELETED"), kind, namespace, name and object (decoded when first asked
        for, shared, not to be changed).
        """
        shelves = [self.verbs.revisions.shelves[kind] for kind in kinds]
        for shelf in shelves:
            shelf.observers.append(callback)

        def unsubscribe() -> None:
            for shelf in shelves:
                shelf.observers.remove(callback)

        return unsubscribe

    def _replace(self, kind: str, obj: Object, subresource: str) -> Object:
        namespace, name = _namespace_of(kind, obj), obj["metadata"]["name"]
        return self.verbs.replace(kind, namespace, name, obj, subresource=subresource).decode()


def _namespace_of(kind: str, obj: Object) -> str:
    if not STORED_KINDS[kind].namespaced:
        return ""
    return (obj.get("metadata") or {}).get("namespace") or "default"
