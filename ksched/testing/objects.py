"""What the builders share: an object's JSON, changed by copying, and the small forms in which tests write its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any, Self

from ksched.model.objects import QuantityText

Json = dict[str, Any]

Expression = Sequence[str]
"""A requirement in few words: key, operator, values. `("zone", "In", "a", "b")`."""


class ObjectBuilder:
    """A Kubernetes object in the making. Builders are values: a call changes nothing and returns another builder."""

    __slots__ = ("_body",)

    def __init__(self, body: Json) -> None:
        self._body = body

    def label(self, labels: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add labels: `label(app="web")`, and as a mapping where a key is no Python name."""
        return self._merged("metadata.labels", {**(labels or {}), **more})

    def annotation(self, annotations: Mapping[str, str] | None = None, /, **more: str) -> Self:
        """Add annotations, written like labels."""
        return self._merged("metadata.annotations", {**(annotations or {}), **more})

    def uid(self, uid: str) -> Self:
        """Give the object this uid."""
        return self._merged("metadata", {"uid": uid})

    def spec(self, **fields: Any) -> Self:
        """Set fields of the spec as Kubernetes writes them, for what has no method here: `spec(hostNetwork=True)`."""
        return self._merged("spec", fields)

    def status(self, **fields: Any) -> Self:
        """Set fields of the status as Kubernetes writes them."""
        return self._merged("status", fields)

    def to_dict(self) -> Json:
        """The object as Kubernetes' JSON."""
        return deepcopy(self._body)

    def _copy(self) -> Self:
        twin = object.__new__(type(self))
        twin._body = deepcopy(self._body)
        return twin

    def _merged(self, path: str, fields: Mapping[str, Any]) -> Self:
        """A copy in which the fields are set in the object that the path ("spec.affinity") leads to."""
        twin = self._copy()
        at = twin._body
        for step in path.split("."):
            at = at.setdefault(step, {})
        at.update(deepcopy(dict(fields)))
        return twin

    def _appended(self, path: str, *items: Any) -> Self:
        """A copy in which the items are added to the list that the path leads to."""
        twin = self._copy()
        *steps, last = path.split(".")
        at = twin._body
        for step in steps:
            at = at.setdefault(step, {})
        at.setdefault(last, []).extend(deepcopy(items))
        return twin

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._body['metadata']['name']}>"


def resources(amounts: Mapping[str, QuantityText] | None, more: Mapping[str, QuantityText]) -> dict[str, QuantityText]:
    """A resource list; in keyword arguments `_` stands for `-`, so `hugepages_2Mi` is hugepages-2Mi."""
    return {**(amounts or {}), **{name.replace("_", "-"): amount for name, amount in more.items()}}


def requirement(expression: Expression) -> Json:
    """The JSON of a requirement that is written as `(key, operator, *values)`."""
    if isinstance(expression, str) or len(expression) < 2:
        raise TypeError(f'expected a requirement such as ("zone", "In", "a"), got {expression!r}')
    key, operator, *values = expression
    return {"key": key, "operator": operator, **({"values": values} if values else {})}
