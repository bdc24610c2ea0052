"""Object templates: YAML files, most of them with `{{.Index}}` and `{{.Count}}` in Go's template notation.

What such templates use is here: fields, numbers, strings, brackets, pipes, and the nine arithmetic functions that
scheduler_perf gives them. Control structures are refused. Arithmetic is scheduler_perf's: everything is computed as
float64, and the functions ending in Int, and Mod, cut the fraction off.

A file without actions is read once, and every object made of it is the same bytes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from benchmarks.errors import WorkloadError

Value = int | float | str

_ACTION = re.compile(
    r"(?P<before>\s*)\{\{(?P<trim_left>- )?(?P<body>.*?)(?P<trim_right> -)?\}\}(?P<after>\s*)", re.DOTALL
)
_TOKEN = re.compile(
    r'\s*(?:(?P<number>-?\d+(?:\.\d+)?)|\.(?P<field>\w+)|(?P<word>\w+)|"(?P<text>[^"\\]*)"|(?P<sign>[()|]))'
)
_CONTROL = frozenset(
    {"if", "else", "end", "range", "with", "define", "block", "template", "break", "continue", "and", "or", "not"}
)

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ObjectTemplate:
    """One template file. `where` is its path, for messages."""

    def __init__(self, text: str, where: str) -> None:
        self.where = where
        self._pieces = _pieces(text, where)
        self._constant: dict[str, Any] | None = None
        if all(isinstance(piece, str) for piece in self._pieces):
            self._constant = self._read(self.text(0, 1))

    @classmethod
    def from_file(cls, path: Path) -> ObjectTemplate:
        """The template in a file."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise WorkloadError(f"{path}: cannot be read: {error.strerror}") from error
        return cls(text, str(path))

    @property
    def is_constant(self) -> bool:
        """Whether every object made of it is the same."""
        return self._constant is not None

    def object(self, index: int, count: int) -> dict[str, Any]:
        """The object number `index` of `count`, a copy of the caller's own."""
        if self._constant is not None:
            copy: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(self._constant))
            return copy
        return self._read(self.text(index, count))

    def text(self, index: int, count: int) -> str:
        """The file with its actions carried out."""
        fields: dict[str, Value] = {"Index": index, "Count": count}
        return "".join(piece if isinstance(piece, str) else _written(piece.value(fields)) for piece in self._pieces)

    def _read(self, text: str) -> dict[str, Any]:
        try:
            found = yaml.load(text, _Loader)
        except yaml.YAMLError as error:
            raise WorkloadError(f"{self.where}: not YAML: {' '.join(str(error).split())}") from error
        if not isinstance(found, dict) or not found.get("kind") or not found.get("apiVersion"):
            raise WorkloadError(f"{self.where}: must be one object with apiVersion and kind")
        found.setdefault("metadata", {})
        return found


# -- expressions


@dataclass(frozen=True, slots=True)
class _Call:
    """An expression: a literal, a field, or a function of expressions."""

    where: str
    name: str
    arguments: tuple[_Call, ...] = ()
    literal: Value | None = None

    def value(self, fields: Mapping[str, Value]) -> Value:
        if self.literal is not None:
            return self.literal
        if self.name.startswith("."):
            return fields[self.name[1:]]
        try:
            return FUNCTIONS[self.name](*(argument.value(fields) for argument in self.arguments))
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise WorkloadError(f"{self.where}: {self.name}: {error}") from error


def _pieces(text: str, where: str) -> list[str | _Call]:
    """The text between actions, and the actions."""
    pieces: list[str | _Call] = []
    at = 0
    for action in _ACTION.finditer(text):
        before = "" if action["trim_left"] else action["before"]
        after = "" if action["trim_right"] else action["after"]
        pieces += [text[at : action.start()] + before]
        body = action["body"].strip()
        if not body.startswith("/*"):
            pieces.append(_Parser(body, f"{where}: {{{{{action['body']}}}}}").expression())
        pieces.append(after)
        at = action.end()
    rest = text[at:]
    if "{{" in rest:
        raise WorkloadError(f"{where}: an action is not closed: {rest[rest.index('{{') :][:40]!r}")
    pieces.append(rest)
    return pieces


class _Parser:
    """Reads one action: pipes of calls, each a word followed by operands."""

    def __init__(self, body: str, where: str) -> None:
        self._where = where
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        position = 0
        while body[position:].strip():
            match = _TOKEN.match(body, position)
            if match is None or match.lastgroup is None:
                raise WorkloadError(f"{where}: not understood from {body[position:].strip()[:20]!r}")
            self._tokens.append((match.lastgroup, match[match.lastgroup]))
            position = match.end()

    def expression(self) -> _Call:
        """The whole action."""
        found = self._pipe()
        if self._at < len(self._tokens):
            raise WorkloadError(f"{self._where}: unexpected {self._tokens[self._at][1]!r}")
        return found

    def _pipe(self) -> _Call:
        left = self._call(())
        while self._take("sign", "|"):
            left = self._call((left,))
        return left

    def _call(self, last: tuple[_Call, ...]) -> _Call:
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if kind != "word":
            if last:
                raise WorkloadError(f"{self._where}: expected a function after |")
            return self._operand()
        self._at += 1
        if text in _CONTROL:
            raise WorkloadError(f"{self._where}: {text}: control structures are not supported in templates")
        if text not in FUNCTIONS:
            raise WorkloadError(f"{self._where}: function {text!r} not defined; there are {', '.join(FUNCTIONS)}")
        arguments: list[_Call] = []
        while self._at < len(self._tokens) and self._tokens[self._at] not in (("sign", ")"), ("sign", "|")):
            arguments.append(self._operand())
        return _Call(self._where, text, (*arguments, *last))

    def _operand(self) -> _Call:
        if self._at >= len(self._tokens):
            raise WorkloadError(f"{self._where}: expected a value")
        kind, text = self._tokens[self._at]
        self._at += 1
        if kind == "number":
            return _Call(self._where, "", literal=float(text) if "." in text else int(text))
        if kind == "text":
            return _Call(self._where, "", literal=text)
        if kind == "field":
            if text not in ("Index", "Count"):
                raise WorkloadError(f"{self._where}: there is no field .{text}; there are .Index and .Count")
            return _Call(self._where, f".{text}")
        if kind == "sign" and text == "(":
            inner = self._pipe()
            if not self._take("sign", ")"):
                raise WorkloadError(f"{self._where}: expected )")
            return inner
        raise WorkloadError(f"{self._where}: expected a value, got {text!r}")

    def _take(self, kind: str, text: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == (kind, text):
            self._at += 1
            return True
        return False


def _written(value: Value) -> str:
    """A value as Go's templates print it: floats without an exponent where they are whole."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    return str(value)


# -- functions


def _quotient(dividend: Value, divisor: Value) -> float:
    if float(divisor) == 0.0:
        raise ZeroDivisionError("division by zero")
    return float(dividend) / float(divisor)


def _difference(minuend: Value, subtrahend: Value) -> float:
    return float(minuend) - float(subtrahend)


def _remainder(dividend: Value, divisor: Value) -> int:
    """Go's %: the sign is the dividend's."""
    if int(float(divisor)) == 0:
        raise ZeroDivisionError("division by zero")
    return int(math.fmod(int(float(dividend)), int(float(divisor))))


FUNCTIONS: Mapping[str, Callable[..., Value]] = {
    "AddInt": lambda *numbers: int(sum(map(float, numbers))),
    "SubtractInt": lambda minuend, subtrahend: int(_difference(minuend, subtrahend)),
    "MultiplyInt": lambda *numbers: int(math.prod(map(float, numbers))),
    "DivideInt": lambda dividend, divisor: int(_quotient(dividend, divisor)),
    "Mod": _remainder,
    "AddFloat": lambda *numbers: sum(map(float, numbers)),
    "SubtractFloat": _difference,
    "MultiplyFloat": lambda *numbers: math.prod(map(float, numbers)),
    "DivideFloat": _quotient,
}
