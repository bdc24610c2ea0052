"""Replays a family of vectors, case by case, and counts how each pod went."""

from __future__ import annotations

from pathlib import Path

from ksched.model.pod import Pod
from tests.conformance.cases import Case, Decision, read_cases
from tests.conformance.comparison import compare, full_differences
from tests.conformance.report import FamilyReport
from tests.conformance.world import World, has_plugin

GROUPS = "GangScheduling"
"""The plugin without which a case of pod groups cannot be replayed."""


def replay_family(family: str, path: Path) -> FamilyReport:
    """Every case of a family's file."""
    report = FamilyReport(family)
    for case in read_cases(path):
        replay_case(case, report)
    return report


def replay_case(case: Case, report: FamilyReport) -> None:
    """One case. A fault of ksched ends the case, not the run: what is left of its pods counts as different."""
    report.cases += 1
    if case.is_group:
        _count_group(case, report)
        return
    done = 0
    try:
        world = World(case)
        for pod, expected in zip(world.pods(), case.expected, strict=True):
            _replay_pod(world, pod, expected, case, report)
            done += 1
            if expected.chosen:
                world.place(pod, expected.chosen)
    except Exception as fault:  # noqa: BLE001 - whatever is raised is a difference, and the other cases still count
        at = case.expected[done].pod if done < len(case.expected) else case.expected[-1].pod
        report.add_fault(case.name, at, len(case.expected) - done, fault)


def _replay_pod(world: World, pod: Pod, expected: Decision, case: Case, report: FamilyReport) -> None:
    answer = world.decide(pod)
    comparison = compare(
        expected, answer.decision, answer.plugins, turned_down_for=answer.turned_down_for, slim=case.is_slim
    )
    report.add(case.name, expected.pod, comparison)
    if comparison.core and not comparison.full:
        report.keep_full_differences(case.name, expected.pod, full_differences(expected, answer.decision))


def _count_group(case: Case, report: FamilyReport) -> None:
    if has_plugin(GROUPS):
        raise NotImplementedError(f"ksched has {GROUPS}, so cases of pod groups must be replayed through the engine")
    report.add_absent(len(case.pods), GROUPS)
