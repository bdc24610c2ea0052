"""Plain objects to configuration classes, as strict as kube-scheduler and with its messages.

Two kinds of mistakes are told apart. An unknown or repeated field is a *strict* complaint: all of them are collected,
and told if nothing worse is found. A value of the wrong type ends the reading: the first one is told, with the names
that Go's JSON decoder gives to types and fields, because those are the messages that people search for.

Null counts as absent. What is absent keeps the class's default.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import inspect

from ksched.config.document import Number, Repeating
from ksched.config.durations import canonical
from ksched.config.types import ClientConnectionConfiguration, Configuration, LeaderElectionConfiguration
from ksched.errors import ConfigurationError

S = TypeVar("S", bound=msgspec.Struct)

_GO_NAMES: Mapping[type, str] = {Configuration: "KubeSchedulerConfiguration"}
_GO_PACKAGES: Mapping[type, str] = {
    LeaderElectionConfiguration: "v1alpha1",
    ClientConnectionConfiguration: "v1alpha1",
}
_EMBEDDED: Mapping[tuple[type, str], str] = {
    (Configuration, "enableProfiling"): "DebuggingConfiguration.",
    (Configuration, "enableContentionProfiling"): "DebuggingConfiguration.",
}
"""Fields that belong to a struct embedded in Go's; its name stands in messages, though not in files."""

_LARGEST_FLOAT32 = 3.4028234663852886e38


class Decoded(NamedTuple):
    """A decoded object and the strict complaints about it."""

    value: Any
    complaints: list[str]


def decode_struct(value: Mapping[str, Any], into: type[S]) -> tuple[S, list[str]]:
    """`value` as an object of the class `into`, with the strict complaints; ConfigurationError for a wrong type."""
    walk = _Walk()
    result = walk.struct(value, _struct_type(into), "", "")
    if walk.first_problem is not None:
        raise ConfigurationError(walk.first_problem)
    return result, walk.complaints


@cache
def _struct_type(cls: type[msgspec.Struct]) -> inspect.StructType:
    described = inspect.type_info(cls)
    assert isinstance(described, inspect.StructType)
    return described


class _Place(NamedTuple):
    """Where a value stands: the struct and field names of Go's messages, and the path of strict complaints."""

    struct: str
    field: str
    path: str


class _Walk:
    """One decoding. Goes on after a wrong type, as Go does, so that it is the first one that is told."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.first_problem: str | None = None

    def struct(self, value: Mapping[str, Any], kind: inspect.StructType, path: str, go_path: str) -> Any:
        fields = {field.encode_name: field for field in kind.fields}
        repeated = value.repeated if isinstance(value, Repeating) else ()
        self.complaints += [f'duplicate field "{_joined(path, name)}"' for name in repeated]
        attributes = {}
        for name, item in value.items():
            if name not in fields:
                if not (path == "" and name in ("apiVersion", "kind")):
                    self.complaints.append(f'unknown field "{_joined(path, name)}"')
            elif item is not None:
                place = _Place(
                    struct=_GO_NAMES.get(kind.cls, kind.cls.__name__),
                    field=_joined(go_path, _EMBEDDED.get((kind.cls, name), "") + name),
                    path=_joined(path, name),
                )
                attributes[fields[name].name] = self.value(item, fields[name].type, place)
        return kind.cls(**attributes)

    def value(self, value: Any, kind: inspect.Type, place: _Place) -> Any:
        """`value` as `kind`; where that cannot be, the kind's zero value, and the problem is noted."""
        kind, go_kind = _unwrapped(kind)
        if isinstance(kind, inspect.AnyType):
            return value
        if value is None:
            return _zero(kind)
        if isinstance(kind, inspect.StructType) and isinstance(value, Mapping):
            return self.struct(value, kind, place.path, place.field)
        if isinstance(kind, inspect.ListType | inspect.VarTupleType) and isinstance(value, list):
            items = [
                self.value(item, kind.item_type, place._replace(path=f"{place.path}[{position}]"))
                for position, item in enumerate(value)
            ]
            return items if isinstance(kind, inspect.ListType) else tuple(items)
        if isinstance(kind, inspect.DictType) and isinstance(value, Mapping):
            return {
                key: self.value(item, kind.value_type, place._replace(path=f"{place.path}.{key}"))
                for key, item in value.items()
            }
        return self._scalar(value, kind, go_kind, place)

    def _scalar(self, value: Any, kind: inspect.Type, go_kind: str, place: _Place) -> Any:
        if isinstance(kind, inspect.StrType) and isinstance(value, str):
            return self._text(value, go_kind)
        if isinstance(kind, inspect.BoolType) and isinstance(value, bool):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            if isinstance(kind, inspect.FloatType) and abs(value) <= _LARGEST_FLOAT32:
                return float(value)
            if isinstance(kind, inspect.IntType) and isinstance(value, int) and _in_range(value, kind):
                return value
            if isinstance(kind, inspect.IntType | inspect.FloatType):
                return self._wrong_type(f"number {_number_text(value)}", kind, go_kind, place)
        return self._wrong_type(json_kind(value), kind, go_kind, place)

    def _text(self, value: str, go_kind: str) -> str:
        if go_kind == "duration":
            # A type of its own in Go, with its own decoding: its mistake ends the reading at once.
            return canonical(value)
        if go_kind == "bytes":
            try:
                base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
            except binascii.Error:
                offset = len(_BASE64.match(value)[0])  # type: ignore[index]  # matches the empty text too
                self._problem(f"illegal base64 data at input byte {offset}")
        return value

    def _wrong_type(self, got: str, kind: inspect.Type, go_kind: str, place: _Place) -> Any:
        self._problem(
            f"json: cannot unmarshal {got} into Go struct field {place.struct}.{place.field}"
            f" of type {_go_type(kind, go_kind)}"
        )
        return _zero(kind)

    def _problem(self, text: str) -> None:
        if self.first_problem is None:
            self.first_problem = text


_BASE64 = re.compile(r"[A-Za-z0-9+/]*")


def _unwrapped(kind: inspect.Type) -> tuple[inspect.Type, str]:
    """The kind without "or null" and without our own mark, and that mark."""
    if isinstance(kind, inspect.UnionType):
        kind = next(member for member in kind.types if not isinstance(member, inspect.NoneType))
    if isinstance(kind, inspect.Metadata):
        return kind.type, str((kind.extra or {}).get("go", ""))
    return kind, ""


_ZEROS: tuple[tuple[Any, Callable[[], Any]], ...] = (
    (inspect.StrType, str),
    (inspect.BoolType, bool),
    (inspect.IntType, int),
    (inspect.FloatType, float),
    (inspect.ListType, list),
    (inspect.VarTupleType, tuple),
    (inspect.DictType, dict),
)


def _zero(kind: inspect.Type) -> Any:
    if isinstance(kind, inspect.StructType):
        return kind.cls()
    return next(zero() for described, zero in _ZEROS if isinstance(kind, described))


def _in_range(value: int, kind: inspect.IntType) -> bool:
    return (kind.ge is None or value >= kind.ge) and (kind.le is None or value <= kind.le)


def _number_text(value: float) -> str:
    if isinstance(value, Number):
        return value.text
    return re.sub(r"e([-+])0", r"e\1", repr(value))


def json_kind(value: Any) -> str:
    """What Go calls a JSON value of the wrong kind."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _go_type(kind: inspect.Type, go_kind: str) -> str:
    if isinstance(kind, inspect.StructType):
        return f"{_GO_PACKAGES.get(kind.cls, 'v1')}.{_GO_NAMES.get(kind.cls, kind.cls.__name__)}"
    if isinstance(kind, inspect.ListType | inspect.VarTupleType):
        return "[]" + _go_type(*_unwrapped(kind.item_type))
    if isinstance(kind, inspect.DictType):
        return "map[string]" + _go_type(*_unwrapped(kind.value_type))
    if isinstance(kind, inspect.IntType):
        return "int32" if kind.le == 2**31 - 1 else "int64"
    if isinstance(kind, inspect.FloatType):
        return "float32"
    if isinstance(kind, inspect.BoolType):
        return "bool"
    return "[]uint8" if go_kind == "bytes" else "string"


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
