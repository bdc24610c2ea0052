"""The objects whose pods belong together, and the selector that they give a pod which says nothing about spreading.

Services, replication controllers, replica sets and stateful sets are known here by what they select and nothing else.
PodTopologySpread counts with the result when it applies default constraints.
"""

from __future__ import annotations

from collections import defaultdict

from ksched.errors import SelectorError
from ksched.model.objects import (
    LabelSelector,
    OwnerReference,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from ksched.model.pod import Pod
from ksched.model.selectors import EVERYTHING, NOTHING, Selector, label_selector, selector_of_labels

SelectorSource = Service | ReplicationController | ReplicaSet | StatefulSet

MOST_ANSWERS = 10_000
"""Answers that are remembered per namespace; beyond that remembering starts afresh."""

_ANY = ("", "")
"""Where services that select every pod are found: no label is called nothing."""


class SelectorSources:
    """What is known of them. `version` grows with every change of what one selects."""

    def __init__(self) -> None:
        self.version = 0
        self._namespaces: defaultdict[str, _Sources] = defaultdict(_Sources)

    def put(self, source: SelectorSource) -> None:
        """Note an object as it is now."""
        if self._namespaces[source.metadata.namespace].put(source):
            self.version += 1

    def remove(self, kind: type[SelectorSource], key: str) -> None:
        """Drop an object, by `namespace/name`."""
        namespace, _, name = key.partition("/")
        sources = self._namespaces.get(namespace)
        if sources is None or not sources.remove(kind, name):
            return
        self.version += 1
        if sources.empty:
            del self._namespaces[namespace]

    def default_selector(self, pod: Pod) -> Selector:
        """What the pod's services and its controller select, all of it together; empty where there is nothing."""
        sources = self._namespaces.get(pod.namespace)
        return EVERYTHING if sources is None else sources.default_selector(pod)


class _Sources:
    """Those of one namespace."""

    def __init__(self) -> None:
        self._services: dict[str, dict[str, str]] = {}
        self._by_label: defaultdict[tuple[str, str], dict[str, dict[str, str]]] = defaultdict(dict)
        self._controllers: dict[_Controller, dict[str, str] | Selector] = {}
        self._answers: dict[tuple[tuple[tuple[str, str], ...], _Controller | None], Selector] = {}

    @property
    def empty(self) -> bool:
        return not self._services and not self._controllers

    def put(self, source: SelectorSource) -> bool:
        """Note an object; whether anything is different now."""
        name, spec = source.metadata.name, source.spec
        if isinstance(source, Service):
            assert not isinstance(spec.selector, LabelSelector)
            return self._put_service(name, spec.selector)
        key = (_OWNERS[type(source)], name)
        selects = _selector_of(spec.selector)
        if self._controllers.get(key) == selects:
            return False
        self._controllers[key] = selects
        self._answers.clear()
        return True

    def remove(self, kind: type[SelectorSource], name: str) -> bool:
        """Drop an object; whether it was there."""
        if kind is Service:
            return self._put_service(name, None)
        known = self._controllers.pop((_OWNERS[kind], name), None) is not None
        if known:
            self._answers.clear()
        return known

    def default_selector(self, pod: Pod) -> Selector:
        key = (tuple(pod.labels.items()), _controller_of(pod))
        found = self._answers.get(key)
        if found is None:
            if len(self._answers) >= MOST_ANSWERS:
                self._answers.clear()
            found = self._answers[key] = self._default_selector(pod.labels, key[1])
        return found

    def _default_selector(self, labels: dict[str, str], owner: _Controller | None) -> Selector:
        selected: dict[str, str] = {}
        for pair in (_ANY, *labels.items()):
            for service in self._by_label.get(pair, {}).values():
                if service.items() <= labels.items():
                    selected |= service
        selects = self._controllers.get(owner) if owner is not None else None
        if isinstance(selects, dict):
            return selector_of_labels(selected | selects)
        selector = selector_of_labels(selected)
        if selects is None or selects.selects_nothing:
            return selector
        return Selector(tuple(dict.fromkeys((*selector.requirements, *selects.requirements))))

    def _put_service(self, name: str, selects: dict[str, str] | None) -> bool:
        """A service selects this now; None: nothing, or it is gone."""
        before = self._services.get(name)
        if before == selects:
            return False
        if before is not None:
            del self._services[name]
            pair = _first_label(before)
            del self._by_label[pair][name]
            if not self._by_label[pair]:
                del self._by_label[pair]
        if selects is not None:
            self._services[name] = selects
            self._by_label[_first_label(selects)][name] = selects
        self._answers.clear()
        return True


_Controller = tuple[tuple[str, str], str]
"""(API version and kind) and name, as a pod's owner reference has them."""

_OWNERS: dict[type[SelectorSource], tuple[str, str]] = {
    ReplicationController: ("v1", "ReplicationController"),
    ReplicaSet: ("apps/v1", "ReplicaSet"),
    StatefulSet: ("apps/v1", "StatefulSet"),
}


def _controller_of(pod: Pod) -> _Controller | None:
    """The pod's controller; found by name, whatever its uid."""
    owner: OwnerReference | None = next((each for each in pod.metadata.owner_references if each.controller), None)
    return None if owner is None else ((owner.api_version, owner.kind), owner.name)


def _selector_of(written: dict[str, str] | LabelSelector | None) -> dict[str, str] | Selector:
    """What a controller selects; one that cannot be read selects nothing, which is how an absent one counts too."""
    if isinstance(written, dict):
        return written
    try:
        return label_selector(written)
    except SelectorError:
        return NOTHING


def _first_label(selects: dict[str, str]) -> tuple[str, str]:
    """A label that every pod of a service has."""
    return min(selects.items(), default=_ANY)
