"""What plugins remember of one pod between the steps of its cycle."""

from __future__ import annotations

from typing import Any


class CycleState(dict[Any, Any]):
    """A dictionary for one pod's cycle; a plugin uses itself as the key. `skip_filter` and `skip_score` name the
    plugins that said Skip."""

    __slots__ = ("skip_filter", "skip_score")

    def __init__(self) -> None:
        super().__init__()
        self.skip_filter: set[str] = set()
        self.skip_score: set[str] = set()

    def clone(self) -> CycleState:
        """A copy for a what-if; values that have a `clone` method are cloned, the others are shared."""
        copy = CycleState()
        for key, value in self.items():
            copy[key] = value.clone() if hasattr(value, "clone") else value
        copy.skip_filter, copy.skip_score = self.skip_filter, self.skip_score
        return copy
