"""Events have two APIs and one store: they are kept as core/v1, and events.k8s.io/v1 is converted on the way."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

# events.k8s.io/v1 name -> core/v1 name; the other fields are called the same in both.
_RENAMED = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
}
_RENAMED_BACK = {core: new for new, core in _RENAMED.items()}


def to_core(event: Object) -> Object:
    """The core/v1 form of an events.k8s.io/v1 event."""
    converted = {_RENAMED.get(name, name): value for name, value in event.items()}
    converted["apiVersion"] = "v1"
    return converted


def to_events_v1(event: Object) -> Object:
    """The events.k8s.io/v1 form of a core/v1 event."""
    converted = {_RENAMED_BACK.get(name, name): value for name, value in event.items()}
    converted["apiVersion"] = "events.k8s.io/v1"
    return converted
