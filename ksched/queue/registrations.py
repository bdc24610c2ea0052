"""Which events could help a pod that a plugin turned down.

`EVENTS` is the table of the in-tree plugins: what each one registers for, as upstream's `EventsToRegister` does. An
entry may carry a hint, a function that looks at the event and says whether this pod could fit now; without one every
matching event counts. A plugin that is not in the table is told of everything, which is also upstream's default.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from ksched.cache.shapes import PodInfo
from ksched.model.features import required_features
from ksched.queue import affinity_hints, events, spread_hints
from ksched.queue.events import ClusterEvent

Hint = Callable[[PodInfo, Any, Any], bool]
"""Called with the waiting pod, the object before and the object now (None: there was or is none): is it worth a try?"""


class Registration(NamedTuple):
    """A plugin wants to hear of `actions` on `resource`, where `hint` agrees."""

    resource: str
    actions: int
    hint: Hint | None = None


def _is_own_update(pod: PodInfo, _old: Any, new: Any) -> bool:
    return new is not None and new.metadata.uid == pod.uid


def _needs_other_features(pod: PodInfo, old: Any, new: Any) -> bool:
    return _is_own_update(pod, old, new) and (old is None or required_features(old) != required_features(new))


_POD: Final = events.POD
_NODE: Final = events.NODE
_ADD: Final = events.ADD
_DELETE: Final = events.DELETE

EVENTS: Final[Mapping[str, tuple[Registration, ...]]] = {
    "SchedulingGates": (Registration(_POD, events.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, _is_own_update),),
    "PrioritySort": (),
    "NodeUnschedulable": (
        Registration(_NODE, _ADD | events.UPDATE_NODE_TAINT),
        Registration(_POD, events.UPDATE_POD_TOLERATION, _is_own_update),
    ),
    "NodeName": (Registration(_NODE, _ADD),),
    "TaintToleration": (
        Registration(_NODE, _ADD | events.UPDATE_NODE_TAINT),
        Registration(_POD, events.UPDATE_POD_TOLERATION, _is_own_update),
    ),
    "NodeAffinity": (Registration(_NODE, _ADD | events.UPDATE_NODE_LABEL),),
    "NodePorts": (Registration(_POD, _DELETE), Registration(_NODE, _ADD)),
    "NodeResourcesFit": (
        Registration(_POD, _DELETE | events.UPDATE_POD_SCALE_DOWN),
        Registration(_NODE, _ADD | events.UPDATE_NODE_ALLOCATABLE),
        Registration(events.DEVICE_CLASS, _ADD | events.UPDATE),
    ),
    "PodTopologySpread": (
        Registration(
            _POD, _ADD | events.UPDATE_POD_LABEL | events.UPDATE_POD_TOLERATION | _DELETE, spread_hints.pod_may_help
        ),
        Registration(
            _NODE, _ADD | _DELETE | events.UPDATE_NODE_LABEL | events.UPDATE_NODE_TAINT, spread_hints.node_may_help
        ),
    ),
    "InterPodAffinity": (
        Registration(_POD, _ADD | events.UPDATE_POD_LABEL | _DELETE, affinity_hints.pod_may_help),
        Registration(_NODE, _ADD | events.UPDATE_NODE_LABEL, affinity_hints.node_may_help),
    ),
    "NodeResourcesBalancedAllocation": (),
    "ImageLocality": (),
    "DefaultBinder": (),
    "NodeDeclaredFeatures": (
        Registration(_NODE, _ADD | events.UPDATE_NODE_DECLARED_FEATURE),
        Registration(_POD, events.UPDATE, _needs_other_features),
    ),
}

_EVERYTHING: Final = (
    *(
        Registration(resource, events.ALL)
        for resource in (
            events.POD,
            events.NODE,
            events.PERSISTENT_VOLUME,
            events.PERSISTENT_VOLUME_CLAIM,
            events.CSI_NODE,
            events.CSI_DRIVER,
            events.CSI_STORAGE_CAPACITY,
            events.STORAGE_CLASS,
            events.RESOURCE_CLAIM,
            events.DEVICE_CLASS,
        )
    ),
)


class Registrations:
    """What the plugins of one profile have registered for."""

    def __init__(self, by_plugin: Mapping[str, Iterable[Registration]]) -> None:
        self._by_plugin = {plugin: tuple(entries) for plugin, entries in by_plugin.items()}
        self._told: dict[ClusterEvent, Mapping[str, tuple[Hint | None, ...]]] = {}

    @classmethod
    def of(cls, plugins: Iterable[str], without_events: Collection[str] = ()) -> Registrations:
        """The registrations of these plugins, by name. Those in `without_events` are woken by nothing."""
        return cls(
            {name: () if name in without_events else _with_taints(EVENTS.get(name, _EVERYTHING)) for name in plugins}
        )

    def told(self, event: ClusterEvent) -> Mapping[str, tuple[Hint | None, ...]]:
        """The plugins that are told of an event, with their hints; the answer is remembered, there are few kinds."""
        found = self._told.get(event)
        if found is None:
            found = self._told[event] = self._find(event)
        return found

    def _find(self, event: ClusterEvent) -> dict[str, tuple[Hint | None, ...]]:
        found = {}
        for plugin, entries in self._by_plugin.items():
            hints = tuple(entry.hint for entry in entries if event.is_matched_by(entry.resource, entry.actions))
            if hints:
                found[plugin] = hints
        return found


def _with_taints(entries: tuple[Registration, ...]) -> tuple[Registration, ...]:
    """A plugin that waits for new nodes also hears of taints that go.

    Upstream adds this because a node is often added with a taint, as not ready, that keeps the event from counting; the
    event that does count is then the taint's removal.
    """
    adds = any(entry.resource == events.NODE and entry.actions & events.ADD for entry in entries)
    taints = any(entry.resource == events.NODE and entry.actions & events.UPDATE_NODE_TAINT for entry in entries)
    return (*entries, Registration(events.NODE, events.UPDATE_NODE_TAINT)) if adds and not taints else entries
