"""An audit of what was decided, at the server: is a node over-committed, was a pod bound twice?

It reads the stored objects alone and adds requests up by its own, plain rule, so that it shares no code with the
scheduler that it checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ksched.errors import QuantityError
from ksched.model.quantity import parse_quantity
from ksched.sandbox.ledger import Ledger
from ksched.sandbox.revisions import Object, Revisions

Amounts = dict[str, int]
"""Thousandths of each resource, so that CPU stays exact and memory does too."""


def audit(revisions: Revisions, ledger: Ledger) -> dict[str, Any]:
    """What every node has promised against what it has, and the pods that were bound more than once."""
    promised: dict[str, Amounts] = {}
    unreadable: list[str] = []
    for revision in revisions.shelves["Pod"]:
        node, phase = revision.fields[0], revision.fields[2]
        if not node or phase in ("Succeeded", "Failed"):
            continue
        total = promised.setdefault(node, {"pods": 0})
        total["pods"] += 1000
        try:
            _add(total, pod_amounts(revision.decode()))
        except QuantityError as error:
            unreadable.append(f"{revision.namespace}/{revision.name}: {error}")
    overcommitted: list[dict[str, Any]] = []
    unknown_nodes: list[str] = []
    for name in sorted(promised):
        node_revision = revisions.shelves["Node"].get("", name)
        if node_revision is None:
            unknown_nodes.append(name)
            continue
        overcommitted.extend(_excess(name, promised[name], node_revision.decode(), unreadable))
    twice = ledger.bound_more_than_once()
    return {
        "ok": not overcommitted and not twice and not unreadable,
        "nodes": len(promised),
        "pods": sum(total["pods"] for total in promised.values()) // 1000,
        "overcommitted": overcommitted,
        "bound_more_than_once": twice,
        "unknown_nodes": unknown_nodes,
        "unreadable": unreadable,
    }


def pod_amounts(pod: Object) -> Amounts:
    """What a pod asks for: containers and sidecars together, or its hungriest init step, plus overhead.

    Requests written for the pod as a whole take the place of the sum, resource by resource.
    """
    spec = pod.get("spec") or {}
    running: Amounts = {}
    for container in spec.get("containers") or ():
        _add(running, _requests(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        step = _requests(container)
        if container.get("restartPolicy") == "Always":
            _add(sidecars, step)
            step = {}
        _add(step, sidecars)
        _raise_to(peak, step)
    _add(running, sidecars)
    _raise_to(running, peak)
    running.update(_requests(spec))
    _add(running, _amounts(spec.get("overhead") or {}))
    return running


def _excess(name: str, promised: Amounts, node: Object, unreadable: list[str]) -> Iterable[dict[str, Any]]:
    state = node.get("status") or {}
    try:
        room = _amounts(state.get("allocatable") or state.get("capacity") or {})
    except QuantityError as error:
        unreadable.append(f"node {name}: {error}")
        return
    for resource, amount in sorted(promised.items()):
        if amount > room.get(resource, 0):
            yield {
                "node": name,
                "resource": resource,
                "promised_thousandths": amount,
                "allocatable_thousandths": room.get(resource, 0),
            }


def _requests(holder: Mapping[str, Any]) -> Amounts:
    return _amounts((holder.get("resources") or {}).get("requests") or {})


def _amounts(written: Mapping[str, Any]) -> Amounts:
    return {resource: parse_quantity(str(quantity)).milli_value() for resource, quantity in written.items()}


def _add(total: Amounts, more: Amounts) -> None:
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for resource, amount in least.items():
        total[resource] = max(total.get(resource, 0), amount)
