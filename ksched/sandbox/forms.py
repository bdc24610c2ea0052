"""The forms in which objects are sent: as they are stored, in the other event group, as table rows, or metadata only.

A form is chosen from the request's Accept header and then used for answers, lists and watch events alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import orjson

from ksched.errors import Refused
from ksched.sandbox.clock import Clock
from ksched.sandbox.events import to_events_v1
from ksched.sandbox.resources import STORED_KINDS, Resource
from ksched.sandbox.revisions import Change, ChangeType, Object, Revision
from ksched.sandbox.tables import table

Shape = Literal["plain", "Table", "PartialObjectMetadata"]

JSON = b"application/json"


class PlainForm:
    """Objects as they are stored: the bytes of the revision, or of its other group's form."""

    content_type = JSON

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self._stored = STORED_KINDS[resource.kind] is resource
        self._head = b'{"kind":"%b","apiVersion":"%b","metadata":' % (
            f"{resource.kind}List".encode(),
            resource.api_version.encode(),
        )

    def one(self, revision: Revision) -> bytes:
        """The object."""
        if self._stored:
            return revision.raw
        if revision.other_form is None:
            revision.other_form = memoryview(orjson.dumps(to_events_v1(revision.decode()))).tobytes()
        return revision.other_form

    def many(self, revisions: Sequence[Revision], list_meta: Object) -> bytes:
        """The list object."""
        items = b",".join([self.one(revision) for revision in revisions])
        return b'%b%b,"items":[%b]}\n' % (self._head, orjson.dumps(list_meta), items)

    def event(self, type_: ChangeType, revision: Revision) -> bytes:
        """One line of a watch stream."""
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), self.one(revision))

    def line(self, change: Change) -> bytes:
        """One line of a watch stream, for a change as it happened; shared by everyone who watches in this form."""
        return change.line if self._stored else self.event(change.type, change.revision)


class TableForm:
    """Rows for people, as kubectl asks for them."""

    def __init__(self, resource: Resource, include_object: str, clock: Clock) -> None:
        self.resource = resource
        self.content_type = b"application/json;as=Table;v=v1;g=meta.k8s.io"
        self._include = include_object
        self._clock = clock
        self._columns_sent = False

    def one(self, revision: Revision) -> bytes:
        """The object as a table of one row."""
        return orjson.dumps(self._table([revision], {"resourceVersion": str(revision.version)}))

    def many(self, revisions: Sequence[Revision], list_meta: Object) -> bytes:
        """The list as a table."""
        return orjson.dumps(self._table(revisions, list_meta))

    def event(self, type_: ChangeType, revision: Revision) -> bytes:
        """One line of a watch stream; only the first one of a stream carries the columns, as upstream's."""
        rows = self._table([revision], {"resourceVersion": str(revision.version)})
        if self._columns_sent:
            rows["columnDefinitions"] = None
        self._columns_sent = True
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), orjson.dumps(rows))

    def line(self, change: Change) -> bytes:
        """One line of a watch stream, for a change as it happened."""
        return self.event(change.type, change.revision)

    def _table(self, revisions: Sequence[Revision], list_meta: Object) -> Object:
        objects = [revision.decode() for revision in revisions]
        return table(
            self.resource.kind,
            objects,
            list_meta=list_meta,
            now=self._clock.now(),
            include_object=self._include,
        )


class MetadataForm:
    """Only the metadata, as garbage collectors and metadata informers ask for it."""

    def __init__(self, resource: Resource) -> None:
        self.resource = resource
        self.content_type = b"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

    def one(self, revision: Revision) -> bytes:
        """The object's metadata."""
        return orjson.dumps(self._partial(revision))

    def many(self, revisions: Sequence[Revision], list_meta: Object) -> bytes:
        """The list of metadata."""
        return orjson.dumps(
            {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": list_meta,
                "items": [self._partial(revision) for revision in revisions],
            }
        )

    def event(self, type_: ChangeType, revision: Revision) -> bytes:
        """One line of a watch stream."""
        return b'{"type":"%b","object":%b}\n' % (type_.encode(), self.one(revision))

    def line(self, change: Change) -> bytes:
        """One line of a watch stream, for a change as it happened."""
        return self.event(change.type, change.revision)

    def _partial(self, revision: Revision) -> dict[str, Any]:
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": revision.decode()["metadata"],
        }


Form = PlainForm | TableForm | MetadataForm

_PLAIN: dict[tuple[str, str], PlainForm] = {}


def form_for(resource: Resource, accept: str, *, include_object: str, clock: Clock) -> Form:
    """The form that `accept` asks for; `Refused` (406) when it names nothing that the sandbox can write."""
    shape = _shape(accept)
    if shape == "Table":
        return TableForm(resource, include_object or "Metadata", clock)
    if shape == "PartialObjectMetadata":
        return MetadataForm(resource)
    key = (resource.group, resource.kind)
    plain = _PLAIN.get(key)
    if plain is None:
        plain = _PLAIN[key] = PlainForm(resource)
    return plain


@lru_cache(maxsize=256)
def _shape(accept: str) -> Shape:
    for media, parameters in media_ranges(accept):
        if media not in ("application/json", "*/*", "application/*"):
            continue
        match parameters.get("as", ""):
            case "":
                return "plain"
            case "Table" if parameters.get("v", "v1") == "v1":
                return "Table"
            case "PartialObjectMetadata" | "PartialObjectMetadataList" if parameters.get("v", "v1") == "v1":
                return "PartialObjectMetadata"
            case _:
                continue
    raise not_acceptable()


def media_ranges(accept: str) -> list[tuple[str, dict[str, str]]]:
    """The media types of an Accept header with their parameters, as ordered; an empty header takes anything."""
    ranges = []
    for part in (accept or "*/*").split(","):
        media, *parameters = (piece.strip() for piece in part.split(";"))
        pairs = (parameter.partition("=") for parameter in parameters)
        ranges.append((media.lower(), {name.strip(): value.strip() for name, _, value in pairs}))
    return ranges


def not_acceptable() -> Refused:
    """406: the client accepts nothing that the sandbox can write."""
    supported = "application/json"
    return Refused(406, "NotAcceptable", f"only the following media types are accepted: {supported}")
