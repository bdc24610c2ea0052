"""From the text of a configuration file, YAML or JSON, to plain objects.

kube-scheduler reads YAML as its library for it does, which is neither YAML 1.1 nor 1.2, so scalars are resolved here:
`yes` and `n` are booleans, `010` is 8, `1e2` is 100. Only the first document of a stream counts. What a mapping's
keys are called is text, whatever they look like.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ksched.errors import ConfigurationError

# libyaml's messages are the ones that kube-scheduler gives. Where PyYAML was built without it they are worded
# differently, and nothing else changes.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_PLAIN, _TEXT, _MERGE = "plain", "tag:yaml.org,2002:str", "tag:yaml.org,2002:merge"


class _Loader(_Parser):  # type: ignore[misc]  # one of two classes, see above
    """Builds nodes only; marks plain scalars, whose meaning `_scalar` finds, with a tag of our own."""

    def resolve(self, kind: type[Node], value: Any, implicit: Any) -> Any:
        if kind is not ScalarNode:
            return super().resolve(kind, value, implicit)
        if not implicit[0]:
            return _TEXT
        return _MERGE if value == "<<" else _PLAIN


_MOST_DIGITS = 20
"""An integer of more digits does not fit into 64 bits; it is read as a float, as Go does."""


class Number(float):
    """A number of a JSON text that is not an integer; keeps how it was written, for messages."""

    text: str

    def __new__(cls, text: str) -> Number:
        number = super().__new__(cls, text)
        number.text = text
        return number


class Repeating(dict[str, Any]):
    """An object of a JSON text in which keys were repeated; the last value of a key counts."""

    repeated: tuple[str, ...] = ()


class Document(NamedTuple):
    """What a file holds, and complaints about it that do not keep one from reading on."""

    value: Any
    complaints: list[str]


def read_document(text: str) -> Document:
    """The first document in `text`; ConfigurationError, in kube-scheduler's words, if it is neither YAML nor JSON."""
    try:
        if text.lstrip().startswith("{"):
            return Document(_read_json(text), [])
        return _read_yaml(text.removeprefix("\ufeff"))
    except RecursionError as error:
        raise ConfigurationError("expected a configuration, got lists or mappings nested hundreds deep") from error


def _read_json(text: str) -> Any:
    try:
        return json.loads(
            text, parse_float=Number, parse_int=_json_integer, parse_constant=_no_constant, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            problem = f"invalid character '{text[error.pos]}' after top-level value"
        elif error.pos >= len(text.rstrip()):
            problem = "unexpected end of JSON input"
        else:
            problem = f"{error.msg} at line {error.lineno}, column {error.colno}"
        raise ConfigurationError(f"couldn't get version/kind; json parse error: {problem}") from error


def _json_integer(text: str) -> int | Number:
    return int(text) if len(text) <= _MOST_DIGITS else Number(text)


def _no_constant(text: str) -> Any:
    raise ConfigurationError(f"couldn't get version/kind; json parse error: invalid character '{text[0]}'")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    repeating = Repeating(result)
    keys = [key for key, _ in pairs]
    repeating.repeated = tuple(key for position, key in enumerate(keys) if key in keys[:position])
    return repeating


def _read_yaml(text: str) -> Document:
    loader = _Loader(text)
    try:
        node = loader.get_node() if loader.check_node() else None
    except yaml.YAMLError as error:
        raise ConfigurationError(_yaml_problem(error)) from error
    finally:
        loader.dispose()
    if node is None:
        return Document(None, [])
    reading = _Reading()
    value = reading.plain(node)
    if reading.repeated:
        return Document(value, ["\n  ".join(["yaml: unmarshal errors:", *reading.repeated])])
    return Document(value, [])


def _yaml_problem(error: yaml.YAMLError) -> str:
    """The message of kube-scheduler's YAML library, which counts lines from 1 in scanner errors and else from 0."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"yaml: {error.reason}"
    if not isinstance(error, yaml.MarkedYAMLError):
        return f"yaml: {error}"
    line = 0
    if error.problem_mark is not None:
        line = error.problem_mark.line + isinstance(error, yaml.scanner.ScannerError)
    if not line and error.context_mark is not None:
        line = error.context_mark.line
    place = f"line {line}: " if line else ""
    return f"yaml: {place}{error.problem}"


class _Reading:
    """Makes plain objects of YAML nodes and notes the keys that are repeated."""

    def __init__(self) -> None:
        self.repeated: list[str] = []
        self._open: set[int] = set()

    def plain(self, node: Node) -> Any:
        if isinstance(node, ScalarNode):
            return _scalar(node)
        if id(node) in self._open:
            raise ConfigurationError(f"yaml: line {node.start_mark.line + 1}: an anchor contains itself")
        self._open.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return [self.plain(item) for item in node.value]
            assert isinstance(node, MappingNode)
            # In order: kube-scheduler makes JSON with sorted keys of YAML, and of several mistakes tells the first one.
            return dict(sorted(self._entries(node).items()))
        finally:
            self._open.discard(id(node))

    def _entries(self, node: MappingNode) -> dict[str, Any]:
        entries: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                entries = self._merged(value_node) | entries
                continue
            key = _key(self.plain(key_node))
            if key in entries:
                self.repeated.append(f'line {key_node.start_mark.line + 1}: key "{key}" already set in map')
            entries[key] = self.plain(value_node)
        return entries

    def _merged(self, node: Node) -> dict[str, Any]:
        """What `<<: *anchor` brings: of several mappings the first one wins."""
        if isinstance(node, MappingNode):
            return self._entries(node)
        if isinstance(node, SequenceNode) and all(isinstance(item, MappingNode) for item in node.value):
            result: dict[str, Any] = {}
            for item in reversed(node.value):
                result |= self._entries(item)
            return result
        raise ConfigurationError(
            f"yaml: line {node.start_mark.line + 1}: map merge requires map or sequence of maps as the value"
        )


_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
}
_INTEGER = re.compile(r"([-+]?)(0b[01]+|0x[0-9a-fA-F]+|0o?[0-7]+|[1-9][0-9]*|0)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LARGEST_PLAIN_FLOAT = 1e21
"""Above it a float that is a whole number is written with an exponent."""


def _scalar(node: ScalarNode) -> Any:
    text: str = node.value
    if node.tag == _TEXT:
        return text
    if text in _WORDS:
        return _WORDS[text]
    digits = text.replace("_", "")
    match = _INTEGER.fullmatch(digits)
    if match is not None and len(match[2]) <= _MOST_DIGITS:
        return _integer(match[1], match[2])
    if _FLOAT.fullmatch(digits):
        return _float(digits)
    return text


def _integer(sign: str, digits: str) -> int:
    base = {"0b": 2, "0x": 16, "0o": 8}.get(digits[:2], 8 if len(digits) > 1 and digits[0] == "0" else 10)
    return int(sign + (digits[2:] if digits[:2] in ("0b", "0x", "0o") else digits), base)


def _float(digits: str) -> int | float:
    """A float; one that is a whole number, and not huge, is written without decimals and so counts as an integer."""
    number = float(digits)
    if math.isinf(number):
        raise ConfigurationError(f"yaml: {digits} is out of range for a 64-bit float")
    return int(number) if number.is_integer() and abs(number) < _LARGEST_PLAIN_FLOAT else number


def _key(value: Any) -> str:
    """A mapping's key as JSON writes it."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    raise ConfigurationError(f"yaml: expected a text as the key of a mapping, got {json.dumps(value)}")
