"""What the sandbox holds: every object as encoded bytes per revision, one rising resourceVersion, a bounded history.

A revision never changes. Its bytes are what clients and watchers are sent, so a change costs one encoding however
many watch. The history of a kind serves watches that resume and lists of the past (`continue`, `resourceVersionMatch`
of Exact): both are the present with later changes undone. What a write means is in `verbs.py`, who is told in
`watches.py`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol

import orjson

from ksched.errors import Refused
from ksched.sandbox.resources import STORED_KINDS
from ksched.sandbox.selectors import FIELDS

Object = dict[str, Any]
ChangeType = Literal["ADDED", "MODIFIED", "DELETED"]

_NO_LABELS: dict[str, str] = {}
_SNAPSHOTS_KEPT = 8


class Revision:
    """One state of one object: its bytes, and the few values that are asked for without decoding them."""

    __slots__ = ("fields", "kind", "labels", "name", "namespace", "other_form", "owners", "raw", "uid", "version")

    def __init__(self, kind: str, obj: Object, version: int) -> None:
        metadata = obj["metadata"]
        metadata["resourceVersion"] = str(version)
        self.kind = kind
        self.version = version
        self.namespace: str = metadata.get("namespace") or ""
        self.name: str = metadata["name"]
        self.uid: str = metadata["uid"]
        self.labels: dict[str, str] = metadata.get("labels") or _NO_LABELS
        owners = metadata.get("ownerReferences")
        self.owners: tuple[str, ...] = tuple(owner["uid"] for owner in owners) if owners else ()
        fields = FIELDS.get(kind)
        self.fields: tuple[str, ...] = fields[1](obj) if fields else ()
        # orjson's own result keeps the buffer that it grew (8 KB for 1.2 KB, measured): what is kept is a copy.
        self.raw: bytes = memoryview(orjson.dumps(obj)).tobytes()
        self.other_form: bytes | None = None  # filled by forms.py for kinds that two groups serve

    def decode(self) -> Object:
        """The object, decoded anew: the caller may change it."""
        decoded: Object = orjson.loads(self.raw)
        return decoded


class Change:
    """One entry of the history: what happened, to which revision, and what was there before."""

    __slots__ = ("_line", "_object", "previous", "revision", "type")

    def __init__(self, type_: ChangeType, revision: Revision, previous: Revision | None) -> None:
        self.type: ChangeType = type_
        self.revision = revision
        self.previous = previous
        self._line: bytes | None = None
        self._object: Object | None = None

    @property
    def kind(self) -> str:
        """The kind of the object that changed."""
        return self.revision.kind

    @property
    def namespace(self) -> str:
        """The namespace of the object that changed, "" for cluster-scoped ones."""
        return self.revision.namespace

    @property
    def name(self) -> str:
        """The name of the object that changed."""
        return self.revision.name

    @property
    def object(self) -> Object:
        """The object after the change (its last state, if deleted), decoded once and shared: not to be changed."""
        if self._object is None:
            self._object = self.revision.decode()
        return self._object

    def let_go(self) -> None:
        """Drop what was made for the observers: the history keeps revisions, and makes the rest again if asked."""
        self._line = None
        self._object = None

    @property
    def line(self) -> bytes:
        """The watch event in its plain form, encoded once for all watchers."""
        if self._line is None:
            self._line = b'{"type":"%b","object":%b}\n' % (self.type.encode(), self.revision.raw)
        return self._line


Observer = Callable[[Change], None]


class Journal(Protocol):
    """Where changes are written so that a restart keeps them (`journal.py`)."""

    def note(self, change: Change) -> None:
        """Take down `change`; it is written with the next flush."""

    def note_version(self, version: int) -> None:
        """Take down that the version has risen without a change."""

    def flush(self) -> None:
        """Write what was noted. Called before any answer that tells a client about it."""


class Shelf:
    """All objects of one kind, their history, and those who observe it."""

    def __init__(self, kind: str, history: int, floor: int) -> None:
        self.kind = kind
        self.namespaced = STORED_KINDS[kind].namespaced
        self.objects: dict[str, dict[str, Revision]] = {}
        self.count = 0
        self.history: deque[Change] = deque()
        self.history_limit = history
        self.floor = floor
        """Changes after this version are all in the history; watches from before it are told 410."""
        self.changed_at = floor
        self.observers: list[Observer] = []
        self._snapshots: dict[int, list[Revision]] = {}

    def get(self, namespace: str, name: str) -> Revision | None:
        """The present revision, or None."""
        inside = self.objects.get(namespace)
        return inside.get(name) if inside is not None else None

    def __iter__(self) -> Iterator[Revision]:
        for inside in self.objects.values():
            yield from inside.values()

    def within(self, namespace: str) -> list[Revision]:
        """The objects of one namespace."""
        return list(self.objects.get(namespace, {}).values())

    def present(self, namespace: str | None = None) -> list[Revision]:
        """The objects of one namespace or all, in order of namespace and name."""
        namespaces = sorted(self.objects) if namespace is None else [namespace]
        found: list[Revision] = []
        for each in namespaces:
            inside = self.objects.get(each, {})
            found.extend([inside[name] for name in sorted(inside)])
        return found

    def file(self, change: Change) -> None:
        """Make `change` the present, remember it, and tell the observers."""
        revision = change.revision
        inside = self.objects.setdefault(revision.namespace, {})
        if change.type == "DELETED":
            del inside[revision.name]
            self.count -= 1
            if not inside:
                del self.objects[revision.namespace]
        else:
            self.count += change.type == "ADDED"
            inside[revision.name] = revision
        history = self.history
        history.append(change)
        if len(history) > self.history_limit:
            self.floor = history.popleft().revision.version
        self.changed_at = revision.version
        for observe in self.observers:
            observe(change)
        change.let_go()

    def since(self, version: int) -> list[Change]:
        """The changes after `version`, oldest first; `Refused` (410) when the history does not reach back that far."""
        if version < self.floor:
            raise Refused(410, "Expired", f"too old resource version: {version} ({self.floor})")
        found: list[Change] = []
        for change in reversed(self.history):
            if change.revision.version <= version:
                break
            found.append(change)
        found.reverse()
        return found

    def snapshot(self, version: int) -> list[Revision]:
        """All objects as they were at `version`, by namespace and name; `Refused` (410) when that is forgotten."""
        version = min(version, self.changed_at) if version >= self.changed_at else version
        if version < self.floor:
            raise Refused(
                410, "Expired", "The provided continue parameter is too old to display a consistent list result."
            )
        found = self._snapshots.get(version)
        if found is None:
            found = self._rebuild(version)
            while len(self._snapshots) >= _SNAPSHOTS_KEPT:
                del self._snapshots[next(iter(self._snapshots))]
            self._snapshots[version] = found
        return found

    def _rebuild(self, version: int) -> list[Revision]:
        if version == self.changed_at:
            return self.present()
        present = {(revision.namespace, revision.name): revision for revision in self}
        for change in reversed(self.history):
            if change.revision.version <= version:
                break
            key = (change.revision.namespace, change.revision.name)
            if change.previous is None:
                del present[key]
            else:
                present[key] = change.previous
        return [present[key] for key in sorted(present)]

    def forget_history(self, version: int) -> None:
        """Drop the history and the kept snapshots: from now on everything before `version` is 410."""
        self.history.clear()
        self._snapshots.clear()
        self.floor = version
        self.changed_at = max(self.changed_at, version)


class Revisions:
    """Every shelf under one resourceVersion; the only place where an object becomes a revision."""

    def __init__(self, history: int = 50_000, start: int = 1, journal: Journal | None = None) -> None:
        self.version = start
        self.journal = journal
        self.shelves: dict[str, Shelf] = {kind: Shelf(kind, history, start) for kind in STORED_KINDS}
        self.dependents: dict[str, dict[tuple[str, str, str], None]] = {}
        """By the uid of an owner: (kind, namespace, name) of what it owns, for garbage collection."""

    def put(self, kind: str, obj: Object) -> Revision:
        """Store `obj`, which has its uid, as the newest revision of its name, and tell everyone."""
        return self.store(self.next(kind, obj))

    def next(self, kind: str, obj: Object) -> Revision:
        """What would be stored for `obj` now; raises a TypeError or the like if it does not have its kind's shape."""
        return Revision(kind, obj, self.version + 1)

    def store(self, revision: Revision) -> Revision:
        """Store what `next` has made, and tell everyone."""
        shelf = self.shelves[revision.kind]
        self.version = revision.version
        previous = shelf.get(revision.namespace, revision.name)
        if revision.owners or (previous is not None and previous.owners):
            self._own(revision, previous)
        self._file(shelf, Change("ADDED" if previous is None else "MODIFIED", revision, previous))
        return revision

    def remove(self, revision: Revision) -> Revision:
        """Remove the object whose present revision is `revision`; the answer is its last state under a new version."""
        shelf = self.shelves[revision.kind]
        self.version += 1
        last = Revision(revision.kind, revision.decode(), self.version)
        self._own(None, revision)
        self._file(shelf, Change("DELETED", last, revision))
        return last

    def flush(self) -> None:
        """Bring the journal up to date, if there is one."""
        if self.journal is not None:
            self.journal.flush()

    def restore(self, kind: str, obj: Object) -> None:
        """Put back an object read from the journal, with the version it had."""
        revision = Revision(kind, obj, int(obj["metadata"]["resourceVersion"]))
        shelf = self.shelves[kind]
        inside = shelf.objects.setdefault(revision.namespace, {})
        shelf.count += revision.name not in inside
        self._own(revision, inside.get(revision.name))
        inside[revision.name] = revision

    def restored(self, version: int) -> None:
        """End a restore: the present is `version`, and nothing before it is known."""
        self.version = version
        for shelf in self.shelves.values():
            shelf.forget_history(version)

    def forget_history(self) -> None:
        """Make every version before the present unknown, as after a compaction."""
        self.version += 1
        if self.journal is not None:
            self.journal.note_version(self.version)
        for shelf in self.shelves.values():
            shelf.forget_history(self.version)

    def _file(self, shelf: Shelf, change: Change) -> None:
        if self.journal is not None:
            self.journal.note(change)
        shelf.file(change)

    def _own(self, revision: Revision | None, previous: Revision | None) -> None:
        if previous is not None:
            key = (previous.kind, previous.namespace, previous.name)
            for owner in previous.owners:
                owned = self.dependents.get(owner)
                if owned is not None:
                    owned.pop(key, None)
                    if not owned:
                        del self.dependents[owner]
        if revision is not None:
            key = (revision.kind, revision.namespace, revision.name)
            for owner in revision.owners:
                self.dependents.setdefault(owner, {})[key] = None
