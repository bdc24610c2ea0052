"""Replay of configuration files against what kube-scheduler made of them, and of its feature gates.

A case is a file's text and feature gates. kube-scheduler ended at a stage: it could not decode the file, found it
invalid, could not construct the scheduler, or went on. A case is exact when ksched ends at the same stage with the
same message, has the same object after defaulting, and runs the same plugins with the same weights.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from ksched.config.expansion import EXTENSION_POINTS, expand_all
from ksched.config.extender_tls import tls_context
from ksched.config.gates import KNOWN_GATES, FeatureGates
from ksched.config.in_force import in_calling_order, in_force
from ksched.config.load import decode
from ksched.config.problems import aggregated
from ksched.config.types import Configuration
from ksched.config.validation import problems_of
from ksched.config.write import configuration_as_written
from ksched.errors import ConfigurationError
from tests.conformance.tally import Tally

FILE = "config/cases.jsonl"
GATES_FILE = "config/gates.json"
SUBJECT = "configuration: decoding, defaults, validation and the expansion of plugins"

IN_TREE = {
    name: frozenset(points.split())
    for name, points in {
        "SchedulingGates": "pre_enqueue",
        "PrioritySort": "queue_sort",
        "NodeUnschedulable": "filter",
        "NodeName": "filter",
        "TaintToleration": "filter pre_score score",
        "NodeAffinity": "pre_filter filter pre_score score",
        "NodePorts": "pre_filter filter",
        "NodeResourcesFit": "pre_filter filter pre_score score placement_score",
        "VolumeRestrictions": "pre_filter filter",
        "NodeVolumeLimits": "pre_filter filter",
        "VolumeBinding": "pre_filter filter pre_score score reserve pre_bind",
        "VolumeZone": "pre_filter filter",
        "PodTopologySpread": "pre_filter filter pre_score score",
        "InterPodAffinity": "pre_filter filter pre_score score",
        "DynamicResources": "pre_enqueue pre_filter filter post_filter score reserve pre_bind",
        "DefaultPreemption": "pre_enqueue post_filter",
        "NodeResourcesBalancedAllocation": "pre_score score",
        "ImageLocality": "score",
        "DefaultBinder": "bind",
        "NodeDeclaredFeatures": "pre_filter filter",
        "GangScheduling": "pre_enqueue permit",
        "TopologyPlacementGenerator": "placement_generate",
        "PodGroupPodsCount": "placement_score",
    }.items()
}
"""kube-scheduler's plugins and what they implement: the files name all of them, whichever ksched has."""


def replay(path: Path) -> dict[str, Any]:
    """How many of the cases in the file at `path` come out exactly, and the first that do not."""
    tally = Tally(FILE, SUBJECT)
    for line in path.read_text().splitlines():
        case = json.loads(line)
        tally.compare(case["name"], islice(differences_of(case), 1))
    return tally.result()


def differences_of(case: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Where ksched differs from kube-scheduler on one file, the outcome first."""
    expected = case["expected"]
    got = outcome(case["config"], FeatureGates(case["featureGates"]))
    yield from _different("stage", expected["stage"], got["stage"])
    errors = expected.get("errorVariants") or [expected.get("error")]
    if got.get("error") not in errors:
        yield {"what": "error", "expected": errors[0], "got": got.get("error")}
    for what in ("defaulted", "plugins", "extenders", "written"):
        if what in expected:
            wanted = expected["defaulted"] if expected[what] == "same-as-defaulted" else expected[what]
            yield from _different(what, wanted, got.get(what))


def _different(what: str, expected: Any, got: Any) -> Iterator[dict[str, Any]]:
    if expected != got:
        yield {"what": what, "expected": expected, "got": got}


def outcome(text: str, gates: FeatureGates) -> dict[str, Any]:
    """How far ksched comes with the file `text`, in the form in which kube-scheduler's outcome was recorded."""
    try:
        configuration = decode(text, gates)
    except ConfigurationError as error:
        return {"stage": "decode", "error": str(error)}
    result: dict[str, Any] = {"defaulted": configuration_as_written(configuration)}
    problems = problems_of(configuration, gates)
    if problems:
        return {**result, "stage": "validate", "error": aggregated([str(problem) for problem in problems])}
    try:
        for extender in configuration.extenders:
            tls_context(extender)
        used = in_force(configuration)
        plugins = running_plugins(used)
    except ConfigurationError as error:
        return {**result, "stage": "construct", "error": str(error)}
    extenders = [
        {
            "name": extender.url_prefix,
            "filter": bool(extender.filter_verb),
            "prioritizer": bool(extender.prioritize_verb),
            "binder": bool(extender.bind_verb),
            "supportsPreemption": bool(extender.preempt_verb),
            "ignorable": extender.ignorable,
        }
        for extender in in_calling_order(used.extenders)
    ]
    written = configuration_as_written(used)
    return {**result, "stage": "ok", "error": None, "plugins": plugins, "extenders": extenders, "written": written}


def running_plugins(configuration: Configuration) -> dict[str, Any]:
    """The plugins of every profile by extension point, with weights where points score."""
    expanded = expand_all(configuration, IN_TREE)
    result: dict[str, Any] = {}
    for profile in configuration.profiles:
        points: dict[str, Any] = {"percentageOfNodesToScore": profile.percentage_of_nodes_to_score}
        for point in EXTENSION_POINTS:
            points[_wire_name(point)] = [
                {"name": name, "weight": weight} if point in ("score", "placement_score") else {"name": name}
                for name, weight in expanded[profile.scheduler_name][point]
            ]
        result[profile.scheduler_name] = points
    return result


def _wire_name(point: str) -> str:
    first, *rest = point.split("_")
    return first + "".join(word.capitalize() for word in rest)


def replay_gates(path: Path) -> dict[str, Any]:
    """Every gate that kube-scheduler or ksched knows: its stage and default, whether it is locked, what it needs."""
    measured = json.loads(path.read_text())["gates"]
    tally = Tally(GATES_FILE, "feature gates")
    for name in sorted({*measured, *KNOWN_GATES}):
        said, ours = measured.get(name), KNOWN_GATES.get(name)
        expected = said and [said["stage"], said["default"], said["lockToDefault"], sorted(said["dependsOn"])]
        got = ours and [ours.stage, ours.default, ours.locked, sorted(ours.depends_on)]
        tally.compare(name, _different("gate", expected, got))
    return tally.result()
