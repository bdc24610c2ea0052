"""What a run found: per family of vectors and per measured file, as JSON and in a few lines for the terminal.

The JSON's shape is documented in docs/conformance.md.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.conformance.comparison import Comparison, Difference, plain, shown

COUNTED = ("cases", "pods", "core", "full", "absent", "different")

MOST_KEPT = 10
"""Differences that a report keeps per family."""

MOST_PRINTED = 5
"""Differences that the terminal shows per family."""


@dataclass
class FamilyReport:
    """Counts of one family. Every pod is one of core, absent and different; `full` is a part of core."""

    family: str
    cases: int = 0
    pods: int = 0
    core: int = 0
    full: int = 0
    absent: int = 0
    different: int = 0
    totals_unseen: int = 0
    absent_for: Counter[str] = field(default_factory=Counter)
    first_differences: list[dict[str, Any]] = field(default_factory=list)
    first_full_differences: list[dict[str, Any]] = field(default_factory=list)

    def add(self, case: str, pod: str, comparison: Comparison) -> None:
        """Count one pod."""
        self.pods += 1
        self.totals_unseen += comparison.totals_unseen
        if comparison.differences:
            self.different += 1
            self._keep(self.first_differences, case, pod, comparison.differences)
        elif comparison.absent:
            self.absent += 1
            self.absent_for.update(comparison.absent)
        else:
            self.core += 1
            self.full += comparison.full

    def add_absent(self, pods: int, plugin: str) -> None:
        """Count pods that cannot be compared one by one, since they need a lacking plugin."""
        self.pods += pods
        self.absent += pods
        self.absent_for[plugin] += pods

    def add_fault(self, case: str, pod: str, pods: int, fault: Exception) -> None:
        """Count pods that could not be decided at all because ksched failed."""
        self.pods += pods
        self.different += pods
        text = f"{type(fault).__name__}: {fault}"
        self._keep(self.first_differences, case, pod, [Difference("fault", "a decision", text)])

    def keep_full_differences(self, case: str, pod: str, differences: list[Difference]) -> None:
        """Keep in what a pod differs beyond core."""
        self._keep(self.first_full_differences, case, pod, differences)

    def _keep(self, kept: list[dict[str, Any]], case: str, pod: str, differences: list[Difference]) -> None:
        for difference in differences:
            if len(kept) < MOST_KEPT:
                expected, got = plain(difference.expected), plain(difference.got)
                kept.append({"case": case, "pod": pod, "field": difference.field, "expected": expected, "got": got})

    def as_json(self) -> dict[str, Any]:
        """The family's part of the report."""
        return {
            "cases": self.cases,
            "pods": self.pods,
            "core": self.core,
            "full": self.full,
            "absent": self.absent,
            "different": self.different,
            "absentFor": dict(sorted(self.absent_for.items())),
            "totalsUnseen": self.totals_unseen,
            "firstDifferences": self.first_differences,
            "firstFullDifferences": self.first_full_differences,
        }

    def failures(self, full: bool) -> str:
        """What is wrong in this family, in words; empty if nothing is."""
        if self.first_differences:
            return "\n".join([f"{self.different} of {self.pods} pods differ", *_lines(self.first_differences)])
        if full and self.full < self.pods:
            return "\n".join(
                [f"{self.pods - self.full} of {self.pods} pods are not full", *_lines(self.first_full_differences)]
            )
        return ""


@dataclass
class Report:
    """A whole run."""

    forms: str
    vectors: Path
    measured: Path
    families: dict[str, FamilyReport] = field(default_factory=dict)
    measured_files: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def add_measured(self, result: Mapping[str, Any]) -> None:
        """Note how a measured file went: the result of a `Tally`."""
        self.measured_files[result["file"]] = result

    def as_json(self) -> dict[str, Any]:
        """The report as it is written."""
        families = {name: family.as_json() for name, family in sorted(self.families.items())}
        return {
            "forms": self.forms,
            "vectors": str(self.vectors),
            "measured": str(self.measured),
            "total": {name: sum(family[name] for family in families.values()) for name in COUNTED},
            "families": families,
            "measuredFiles": {
                name: {
                    "subject": result["subject"],
                    "cases": result["cases"],
                    "exact": result["exact"],
                    "leftOut": result["leftOut"],
                    "different": result["different"],
                    "known": result["known"],
                    "firstDifferences": list(result["differences"]),
                }
                for name, result in sorted(self.measured_files.items())
            },
        }

    def write(self, path: Path) -> None:
        """Write the report as JSON."""
        path.write_text(json.dumps(self.as_json(), indent=1, default=str) + "\n")

    def lines(self) -> Iterator[str]:
        """The report for the terminal."""
        if self.families:
            yield f"{'family':22}" + "".join(f"{name:>10}" for name in COUNTED) + "  absent for"
        for name, family in sorted(self.families.items()):
            counts = (
                f"{family.cases:7}{family.pods:7}{family.core:7}{family.full:7}{family.absent:8}{family.different:11}"
            )
            reasons = ", ".join(f"{plugin} {count}" for plugin, count in family.absent_for.most_common())
            yield f"{name:22}{counts}  {reasons}".rstrip()
            if family.totals_unseen:
                yield f"    {family.totals_unseen} totals not compared: the vector has no scores of single plugins"
        if self.measured_files:
            yield f"{'measured file':40}{'cases':>7}{'exact':>7}{'left out':>10}{'different':>11}  left out for"
        for name, result in sorted(self.measured_files.items()):
            left_out = sum(result["leftOut"].values())
            counts = f"{result['cases']:7}{result['exact']:7}{left_out:10}{result['different']:11}"
            reasons = ", ".join(f"{why} {count}" for why, count in result["leftOut"].items())
            yield f"{name:40}{counts}  {reasons}".rstrip()
            yield from (f"    {shown(difference)}" for difference in list(result["differences"])[:MOST_PRINTED])


def _lines(differences: list[dict[str, Any]]) -> list[str]:
    return [
        f"  {kept['case']} {kept['pod']} {kept['field']}\n    expected {shown(kept['expected'])}\n"
        f"    got      {shown(kept['got'])}"
        for kept in differences[:MOST_PRINTED]
    ]
