"""What a plugin answers: a code, and reasons in words.

Expected outcomes are values of this type; `None` is success. An exception is a fault of the plugin and becomes code
Error.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum


class Code(IntEnum):
    """kube-scheduler's status codes; `str()` is their name there."""

    SUCCESS = 0
    ERROR = 1
    UNSCHEDULABLE = 2
    UNRESOLVABLE = 3
    WAIT = 4
    SKIP = 5
    PENDING = 6

    def __str__(self) -> str:
        return _NAMES[self]


_NAMES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

_REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})


@dataclass(frozen=True, slots=True)
class Status:
    """An outcome other than plain success. `plugin` is filled in by the framework."""

    code: Code
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @classmethod
    def unschedulable(cls, *reasons: str) -> Status:
        """Not now; removing pods (preemption) might help."""
        return cls(Code.UNSCHEDULABLE, reasons)

    @classmethod
    def unresolvable(cls, *reasons: str) -> Status:
        """Not here, whatever pods are removed."""
        return cls(Code.UNRESOLVABLE, reasons)

    @classmethod
    def skip(cls) -> Status:
        """This plugin has nothing to do for this pod: its coupled filter or score is left out."""
        return _SKIP

    @classmethod
    def pending(cls, *reasons: str) -> Status:
        """Not before something outside has happened."""
        return cls(Code.PENDING, reasons)

    @classmethod
    def error(cls, text: str) -> Status:
        """Something went wrong that says nothing about the pod or the node."""
        return cls(Code.ERROR, (text,))

    @property
    def is_rejected(self) -> bool:
        """Whether the pod (or the node for the pod) is turned down, rather than something having failed."""
        return self.code in _REJECTED

    @property
    def message(self) -> str:
        """The reasons in one line."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """The same status, said by `plugin`; a status that has a plugin already keeps it."""
        return self if self.plugin else replace(self, plugin=plugin)


_SKIP = Status(Code.SKIP)


@dataclass(frozen=True, slots=True)
class Wait:
    """Permit's answer that the pod is to wait, for at most `seconds`."""

    seconds: float
