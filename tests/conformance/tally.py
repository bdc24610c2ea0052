"""What came of the cases of one measured file.

Every case is one of: exact, different, or left out because it needs something that ksched does not have. What is left
out is counted under the reason and never as exact. A difference that is known has a reason too; it stays a difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

SHOWN = 5
"""Differences of a file that are kept."""


class Tally:
    """Counts the cases of a file and keeps the first differences, the unexpected ones before the known ones."""

    def __init__(self, file: str, subject: str) -> None:
        self._file = file
        self._subject = subject
        self._cases = 0
        self._different = 0
        self._left_out: Counter[str] = Counter()
        self._known: Counter[str] = Counter()
        self._unexpected_kept: list[Mapping[str, Any]] = []
        self._known_kept: list[Mapping[str, Any]] = []

    def compare(self, case: str, differences: Iterable[Mapping[str, Any]], known: str = "") -> None:
        """Count a case that is exact if there are no differences; `known` is why it is expected to differ."""
        found = list(differences)
        self._cases += 1
        self._different += bool(found)
        if found and known:
            self._known[known] += 1
        kept = self._known_kept if known else self._unexpected_kept
        told = {"known": known} if known else {}
        kept += [{"case": case, **difference, **told} for difference in found][: SHOWN - len(kept)]

    def leave_out(self, why: str) -> None:
        """Count a case that needs what `why` names."""
        self._cases += 1
        self._left_out[why] += 1

    def result(self) -> dict[str, Any]:
        """The file's part of the report."""
        left_out = self._left_out.total()
        return {
            "file": self._file,
            "subject": self._subject,
            "cases": self._cases,
            "exact": self._cases - left_out - self._different,
            "different": self._different,
            "leftOut": dict(sorted(self._left_out.items())),
            "known": dict(sorted(self._known.items())),
            "differences": [*self._unexpected_kept, *self._known_kept][:SHOWN],
        }
