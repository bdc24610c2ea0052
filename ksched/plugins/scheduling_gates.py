"""SchedulingGates: a pod with gates is not looked at (KEP-3521)."""

from __future__ import annotations

from ksched.framework import PodInfo, PreEnqueuePlugin, Status


class SchedulingGates(PreEnqueuePlugin):
    """Keep a pod out of the active queue until its last gate is removed."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """The reason names the gates in the order in which they are written."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return None
        return Status.unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")
