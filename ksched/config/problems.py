"""What is wrong with a field, in the sentences of Kubernetes' API validation.

A problem is a value: validation collects all of them, in order, before anybody raises.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """A field's path, the kind of mistake, and what it should be."""

    path: str
    mistake: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.mistake}" + (f": {self.detail}" if self.detail else "")

    def under(self, prefix: str) -> Problem:
        """The same problem of an object that is part of another."""
        return self._replace(path=f"{prefix}.{self.path}")


def invalid(path: str, value: Any, detail: str) -> Problem:
    """A value that is not allowed; `detail` says what is."""
    return Problem(path, f"Invalid value: {_shown(value)}", detail)


def required(path: str, detail: str = "") -> Problem:
    """A value that is missing."""
    return Problem(path, "Required value", detail)


def forbidden(path: str, detail: str) -> Problem:
    """A value that may not be given here."""
    return Problem(path, "Forbidden", detail)


def duplicate(path: str, value: Any) -> Problem:
    """A value that is there already."""
    return Problem(path, f"Duplicate value: {_shown(value)}")


def unsupported(path: str, value: str, supported: Iterable[str]) -> Problem:
    """A value that is not one of those that are supported."""
    values = ", ".join(_shown(choice) for choice in supported)
    return Problem(path, f"Unsupported value: {_shown(value)}", f"supported values: {values}")


def aggregated(messages: Iterable[str]) -> str:
    """Several messages as one, as Kubernetes joins them: each once, in brackets."""
    unique = list(dict.fromkeys(messages))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
