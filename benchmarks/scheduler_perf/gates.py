"""What becomes of a workload's feature gates: obeyed, or recorded with the reason why not.

scheduler_perf's files set gates that have since been locked, or that belong to other components. Such a gate never
stops a run; the result says what happened to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ksched.config.gates import KNOWN_GATES, SCHEDULER_GATES

BATCHING = "OpportunisticBatching"
QUEUEING_HINTS = "SchedulerQueueingHints"


@dataclass(frozen=True)
class GateDecision:
    """Gates that the scheduler is started with, and those that it is not, with the reason."""

    obeyed: Mapping[str, bool]
    recorded: Mapping[str, str]


def decide(asked: Mapping[str, bool], *, foreign: bool = False) -> GateDecision:
    """What to do with the gates that a workload asks for.

    A foreign scheduler gets, as from scheduler_perf, batching switched off unless the workload mentions it.
    """
    obeyed: dict[str, bool] = {}
    recorded: dict[str, str] = {}
    for name, wanted in sorted(asked.items()):
        gate = KNOWN_GATES.get(name)
        if gate is None:
            recorded[name] = f"{_text(wanted)} was asked for; Kubernetes 1.36 has no such gate"
        elif gate.locked:
            recorded[name] = f"{_text(wanted)} was asked for; locked to {_text(gate.default)}"
        elif name not in SCHEDULER_GATES:
            recorded[name] = f"{_text(wanted)} was asked for; nothing in a scheduler depends on it"
        else:
            obeyed[name] = wanted
    if foreign and asked.get(QUEUEING_HINTS, True) and BATCHING not in asked:
        obeyed[BATCHING] = False
    _switch_off_dependents(obeyed, recorded)
    return GateDecision(obeyed, recorded)


def _switch_off_dependents(obeyed: dict[str, bool], recorded: dict[str, str]) -> None:
    """A gate that is on and depends on one that was switched off would be refused: it is switched off, too."""
    changed = True
    while changed:
        changed = False
        for name, gate in KNOWN_GATES.items():
            missing = [other for other in gate.depends_on if not obeyed.get(other, KNOWN_GATES[other].default)]
            if missing and not gate.locked and obeyed.get(name, gate.default):
                recorded[name] = f"switched off: it depends on {', '.join(missing)}"
                obeyed[name] = False
                changed = True


def _text(value: bool) -> str:
    return str(value).lower()
