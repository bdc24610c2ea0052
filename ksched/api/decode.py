"""Bytes from the API server become objects here; what cannot be understood is named and never fatal.

The fast path decodes a watch line or a list page straight into Structs in one pass. When msgspec refuses, the object is
decoded again without types, explicit nulls are dropped (Go treats null as absent, msgspec does not) and what is left is
converted. What is still wrong becomes a `Malformed` that says which object, which field, what was expected and what
came. `watch` decides what to do about it.
"""

from __future__ import annotations

import re
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct, field

from ksched.errors import ObjectError
from ksched.model.node import Node
from ksched.model.objects import (
    DeviceClass,
    Namespace,
    ObjectMeta,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from ksched.model.pod import Pod


class KubeObject(Protocol):
    """What every decoded object has."""

    metadata: ObjectMeta


T = TypeVar("T", bound=KubeObject)


class Identity(NamedTuple):
    """Which object it is, as far as that can be read; fields that cannot be read are empty."""

    namespace: str
    name: str
    uid: str
    resource_version: str

    @property
    def key(self) -> str:
        """`namespace/name`, or the name alone for kinds without namespaces."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Malformed(NamedTuple):
    """An object that cannot be understood: which one, and why."""

    identity: Identity
    error: ObjectError


class StatusDetails(Struct, rename="camel"):
    """The part of a `Status` that says when to come back."""

    retry_after_seconds: int | None = None


class ApiStatus(Struct, rename="camel"):
    """A `Status` object: how the API server reports an error."""

    status: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: StatusDetails | None = None


class Page(NamedTuple, Generic[T]):
    """One page of a list. `continue_token` is empty on the last one."""

    items: list[T]
    malformed: list[Malformed]
    resource_version: str
    continue_token: str


class ObjectDecoder(Generic[T]):
    """Decodes one kind: single objects, watch lines and list pages."""

    def __init__(self, kind: str, cls: type[T]) -> None:
        self.kind = kind
        self._type = cls
        self._object = msgspec.json.Decoder(cls)
        event = msgspec.defstruct(f"{kind}Event", [("type", str), ("object", cls)], gc=False)
        page = msgspec.defstruct(
            f"{kind}Page",
            [
                ("items", list.__class_getitem__(cls)),
                ("metadata", _ListMeta, field(default_factory=lambda: _ListMeta())),
            ],
        )
        self._event: msgspec.json.Decoder[Any] = msgspec.json.Decoder(event)
        self._page: msgspec.json.Decoder[Any] = msgspec.json.Decoder(page)

    def object(self, raw: bytes | msgspec.Raw) -> T:
        """The object in `raw`; raises ObjectError that names the object and the field."""
        try:
            decoded = self._object.decode(raw)
        except (msgspec.DecodeError, RecursionError):
            decoded = self._carefully(bytes(raw))
        return self._named(decoded)

    def event(self, line: bytes) -> tuple[str, T | Malformed | ApiStatus]:
        """The type and object of one watch line; an ERROR's object is an `ApiStatus`.

        Raises ObjectError when not even the type can be read.
        """
        try:
            event = self._event.decode(line)
        except (msgspec.DecodeError, RecursionError):
            return self._odd_event(line)
        if event.type == "ERROR" or not event.object.metadata.name:
            return self._odd_event(line)
        return event.type, event.object

    def page(self, body: bytes) -> Page[T]:
        """One page of a list; raises ObjectError when it is not a list at all."""
        try:
            page = self._page.decode(body)
        except (msgspec.DecodeError, RecursionError):
            return self._odd_page(body)
        if all(item.metadata.name for item in page.items):
            return Page(page.items, [], page.metadata.resource_version, page.metadata.continue_)
        return self._odd_page(body)

    def _odd_event(self, line: bytes) -> tuple[str, T | Malformed | ApiStatus]:
        """A watch line that the fast path refuses: an error, a bookmark without a name, or a malformed object."""
        try:
            event = _raw_event.decode(line)
        except (msgspec.DecodeError, RecursionError) as refused:
            raise ObjectError(
                f"{self.kind}: a watch line is not an event: {_reason(refused)}: {_excerpt(line)}"
            ) from None
        if event.type == "ERROR":
            return event.type, _api_status(event.object)
        if event.type == "BOOKMARK":
            return event.type, self._carefully(bytes(event.object))
        return event.type, self._object_or_malformed(event.object)

    def _odd_page(self, body: bytes) -> Page[T]:
        """A page that the fast path refuses: each item is decoded on its own, and a bad one costs only itself."""
        try:
            page = _raw_page.decode(body)
        except (msgspec.DecodeError, RecursionError) as refused:
            raise ObjectError(
                f"{self.kind}: the answer to a list is not a list: {_reason(refused)}: {_excerpt(body)}"
            ) from None
        items: list[T] = []
        malformed: list[Malformed] = []
        for raw in page.items or []:
            decoded = self._object_or_malformed(raw)
            if isinstance(decoded, Malformed):
                malformed.append(decoded)
            else:
                items.append(decoded)
        metadata = page.metadata or _ListMeta()
        return Page(items, malformed, metadata.resource_version, metadata.continue_)

    def _object_or_malformed(self, raw: msgspec.Raw) -> T | Malformed:
        try:
            return self.object(raw)
        except ObjectError as error:
            return Malformed(identity(raw), error)

    def _carefully(self, raw: bytes) -> T:
        """Decode as Go would: nulls are absent, invalid UTF-8 is replaced."""
        try:
            untyped = msgspec.json.decode(raw.decode("utf-8", "replace"))
            return msgspec.convert(_without_nulls(untyped), self._type)
        except (msgspec.DecodeError, msgspec.ValidationError, RecursionError) as refused:
            raise ObjectError(f"{self.kind} {identity(raw).key or '(unnamed)'}: {_reason(refused)}") from None

    def _named(self, decoded: T) -> T:
        if not decoded.metadata.name:
            raise ObjectError(f"{self.kind} (unnamed): metadata.name: expected a name, got none")
        return decoded


def identity(raw: bytes | msgspec.Raw) -> Identity:
    """Which object `raw` is, read with as little of it as possible."""
    try:
        metadata = _identified.decode(raw).metadata
    except (msgspec.DecodeError, RecursionError):
        return Identity("", "", "", "")
    if not isinstance(metadata, dict):
        return Identity("", "", "", "")
    return Identity(*(_text(metadata.get(name)) for name in ("namespace", "name", "uid", "resourceVersion")))


def status_of(body: bytes) -> ApiStatus | None:
    """The `Status` in an error answer, or None where the body is something else."""
    try:
        answer = _status.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    return answer if answer.status or answer.reason or answer.message else None


class _ListMeta(Struct, rename={"resource_version": "resourceVersion", "continue_": "continue"}):
    resource_version: str = ""
    continue_: str = ""


class _RawEvent(Struct):
    type: str
    object: msgspec.Raw


class _RawPage(Struct):
    items: list[msgspec.Raw] | None
    metadata: _ListMeta | None = None


class _Identified(Struct):
    metadata: Any = None


_raw_event = msgspec.json.Decoder(_RawEvent)
_raw_page = msgspec.json.Decoder(_RawPage)
_identified = msgspec.json.Decoder(_Identified)
_status = msgspec.json.Decoder(ApiStatus)


def _api_status(raw: msgspec.Raw) -> ApiStatus:
    return status_of(bytes(raw)) or ApiStatus(
        status="Failure", message=f"an ERROR event without a Status: {_excerpt(bytes(raw))}"
    )


def _without_nulls(value: Any) -> Any:
    """`value` without null members; null elements of arrays stay, since dropping one would move the others."""
    if isinstance(value, dict):
        return {name: _without_nulls(member) for name, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(element) for element in value]
    return value


_AT_PATH = re.compile(r"(?P<what>.*) - at `\$\.?(?P<path>.*)`", re.DOTALL)


def _reason(refused: Exception) -> str:
    """msgspec's complaint, with the field first: `spec.priority: expected int, got str`."""
    if isinstance(refused, RecursionError):
        return "nested too deeply"
    what, path = str(refused), ""
    if found := _AT_PATH.fullmatch(what):
        what, path = found["what"], found["path"]
    what = what.replace("`", "").replace(" | null", "")
    if not what[:2].isupper():
        what = what[:1].lower() + what[1:]
    return f"{path}: {what}" if path else what


def _excerpt(raw: bytes) -> str:
    text = raw[:80].decode("utf-8", "replace")
    return repr(text + "..." if len(raw) > 80 else text)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


POD = ObjectDecoder("Pod", Pod)
NODE = ObjectDecoder("Node", Node)
NAMESPACE = ObjectDecoder("Namespace", Namespace)
SERVICE = ObjectDecoder("Service", Service)
REPLICATION_CONTROLLER = ObjectDecoder("ReplicationController", ReplicationController)
REPLICA_SET = ObjectDecoder("ReplicaSet", ReplicaSet)
STATEFUL_SET = ObjectDecoder("StatefulSet", StatefulSet)
DEVICE_CLASS = ObjectDecoder("DeviceClass", DeviceClass)
