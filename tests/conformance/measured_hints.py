"""Replay of what wakes a pod: events that an update amounts to, what plugins register for, and what their hints say.

A hint function that kube-scheduler has and ksched does not is in `WITHOUT_FUNCTION`: ksched tries the pod at every such
event. A case that asks one of these is left out; that the list is right is part of the replay of registered events.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ksched.cache.cluster import Cluster
from ksched.config.gates import FeatureGates
from ksched.model.node import Node
from ksched.model.pod import Pod
from ksched.model.requests import RequestRules
from ksched.queue import events
from ksched.queue.changes import node_changes, pod_changes
from ksched.queue.registrations import EVENTS, Registration, Registrations
from tests.conformance.tally import Tally

Case = Mapping[str, Any]

OBJECT_CHANGES = "hints/object-changes.jsonl.gz"
REGISTERED_EVENTS = "hints/registered-events.jsonl.gz"
HINTS = {f"hints/{plugin}.jsonl.gz": plugin for plugin, registered in EVENTS.items() if registered}
"""Every plugin of ksched that waits for something."""

WITHOUT_FUNCTION = frozenset(
    {
        ("NodeAffinity", events.NODE),
        ("NodeDeclaredFeatures", events.NODE),
        ("NodePorts", events.POD),
        ("NodeResourcesFit", events.DEVICE_CLASS),
        ("NodeResourcesFit", events.NODE),
        ("NodeResourcesFit", events.POD),
        ("NodeUnschedulable", events.NODE),
        ("TaintToleration", events.NODE),
    }
)
"""Hint functions of kube-scheduler that ksched does not have, by plugin and resource."""

WRONG_TYPE = "objects of a wrong type, which cannot get as far as a hint"

ACTIONS = {name: bits for bits, name in events.ACTION_NAMES.items()}


def lines_of(path: Path) -> Iterator[dict[str, Any]]:
    """The cases of a file, one a line."""
    with gzip.open(path) as lines:
        yield from map(json.loads, lines)


def event_of(written: Case) -> events.ClusterEvent:
    """The event as a case writes it."""
    return events.event(written["resource"], bits_of(written), written.get("label", ""))


def bits_of(written: Case) -> int:
    """Its actions as bits."""
    bits = 0
    for action in written["actions"]:
        bits |= ACTIONS[action]
    return bits


def lacking_function(plugin: str, event: events.ClusterEvent) -> str:
    """The function of this plugin that kube-scheduler would ask about this event and ksched lacks; empty if none."""
    for entry in EVENTS.get(plugin, ()):
        if (plugin, entry.resource) in WITHOUT_FUNCTION and event.is_matched_by(entry.resource, entry.actions):
            return f"the hint function of {plugin} for {entry.resource}"
    return ""


# -- hints


def replay_hints(path: Path) -> dict[str, Any]:
    """What the hints of one plugin say."""
    plugin = path.name.removesuffix(".jsonl.gz")
    registrations = Registrations.of([plugin])
    shapes = Cluster(max_nodes=64).shapes
    tally = Tally(f"hints/{path.name}", f"queueing hints of {plugin}")
    for case in lines_of(path):
        event = event_of(case["event"])
        if case["description"] == "object of a wrong type":
            tally.leave_out(WRONG_TYPE)
            continue
        if (lacking := lacking_function(plugin, event)) and case["expected"]["answers"]:
            tally.leave_out(lacking)
            continue
        waiting = msgspec.convert(case["pod"], Pod)
        hints = registrations.told(event).get(plugin)
        got = "NotRegistered"
        if hints is not None:
            old, new = (_pod_or_node(case[which]) for which in ("oldObj", "newObj"))
            info = shapes.info(waiting)
            got = "Queue" if any(hint is None or hint(info, old, new) for hint in hints) else "QueueSkip"
        expected = case["expected"]["result"]
        differences = [{"what": "result", "expected": expected, "got": got}] if got != expected else []
        tally.compare(case["name"], differences, _wakes_too_often(plugin, waiting) if got == "Queue" else "")
    return tally.result()


def _wakes_too_often(plugin: str, waiting: Pod) -> str:
    """Why ksched may try a pod where kube-scheduler knows that it is of no use."""
    if plugin == "NodeUnschedulable":
        return ANY_TOLERATION
    if plugin != "PodTopologySpread":
        return ""
    constraints = waiting.spec.topology_spread_constraints
    if not constraints:
        return DEFAULT_CONSTRAINTS
    return MATCH_LABEL_KEYS if any(each.match_label_keys for each in constraints) else ""


ANY_TOLERATION = "a pod that NodeUnschedulable turned down is tried at any toleration of its own, also of other taints"
DEFAULT_CONSTRAINTS = "a hint does not know the default constraints: a pod without its own is tried at every event"
MATCH_LABEL_KEYS = "a hint does not merge matchLabelKeys into the selector: a pod that has them is tried more often"


def _pod_or_node(written: dict[str, Any] | None) -> Pod | Node | None:
    if written is None:
        return None
    return msgspec.convert(written, Node) if written["kind"] == "Node" else msgspec.convert(written, Pod)


# -- updates


def replay_changes(path: Path) -> dict[str, Any]:
    """The events that an update of a pod or node amounts to, in order."""
    tally = Tally(OBJECT_CHANGES, "the events that an update amounts to")
    for case in lines_of(path):
        if "extendedResourceClaimStatus" in case["newObj"]["status"]:
            tally.leave_out("the plugin DynamicResources")
            continue
        expected, got = [event_of(written) for written in case["expected"]], _changes(case)
        differences = [{"what": "events", "expected": expected, "got": got}] if got != expected else []
        tally.compare(case["name"], differences)
    return tally.result()


def _changes(case: Case) -> list[events.ClusterEvent]:
    gates = FeatureGates(case.get("featureGates") or {})
    old, new = _pod_or_node(case["oldObj"]), _pod_or_node(case["newObj"])
    if isinstance(old, Node) and isinstance(new, Node):
        return list(node_changes(old, new, declared_features=gates.enabled("NodeDeclaredFeatures")))
    assert isinstance(old, Pod)
    assert isinstance(new, Pod)
    return list(pod_changes(old, new, RequestRules()))


# -- registrations


def replay_registered(path: Path) -> dict[str, Any]:
    """What each plugin registers for; a case is one plugin in one configuration."""
    tally = Tally(REGISTERED_EVENTS, "the events that plugins register for")
    for line in lines_of(path):
        gates = FeatureGates(line["featureGates"])
        heard = line["expected"]["eventMap"]
        for said in line["expected"]["plugins"]:
            plugin = said["plugin"]
            if plugin not in EVENTS:
                tally.leave_out(f"the plugin {plugin}")
                continue
            written = [(entry["resource"], bits_of(entry), entry["hasFn"]) for entry in said["events"]]
            ours = [
                (entry.resource, entry.actions, entry.hint is not None or (plugin, entry.resource) in WITHOUT_FUNCTION)
                for entry in EVENTS[plugin]
            ]
            expected = {"events": sorted(written), "told": _told_of(heard, plugin)}
            got = {"events": sorted(ours), "told": _told_by(plugin)}
            differences = [
                {"what": what, "expected": expected[what], "got": got[what]}
                for what in expected
                if expected[what] != got[what]
            ]
            tally.compare(f"{line['name']} {plugin}", differences, _whatever_the_gates_say(plugin, gates))
    return tally.result()


def _whatever_the_gates_say(plugin: str, gates: FeatureGates) -> str:
    if plugin == "NodeResourcesFit" and not gates.enabled("DRAExtendedResource"):
        return DEVICE_CLASSES
    return ""


DEVICE_CLASSES = "device classes wake a pod of NodeResourcesFit also where DRAExtendedResource is off"

_KINDS = [
    events.event(resource, actions)
    for resource in (
        events.ASSIGNED_POD,
        events.UNSCHEDULABLE_POD,
        *sorted({entry.resource for entries in EVENTS.values() for entry in entries} - {events.POD}),
    )
    for actions in events.ACTION_NAMES
]
"""Everything that can happen to what plugins of ksched register for."""


def _told_of(event_map: list[Case], plugin: str) -> list[str]:
    entries = [(entry["resource"], bits_of(entry)) for entry in event_map if plugin in entry["plugins"]]
    return [kind.label for kind in _KINDS if any(kind.is_matched_by(*entry) for entry in entries)]


def _told_by(plugin: str) -> list[str]:
    registrations = Registrations.of([plugin])
    return [kind.label for kind in _KINDS if plugin in registrations.told(kind)]


def events_of_plugins(path: Path, plugins: frozenset[str]) -> list[tuple[str, Registration]]:
    """What these plugins register for with kube-scheduler's defaults; `path` is the file of registered events."""
    default = next(lines_of(path))
    return [
        (said["plugin"], Registration(entry["resource"], bits_of(entry)))
        for said in default["expected"]["plugins"]
        if said["plugin"] in plugins
        for entry in said["events"]
    ]
