"""The pod (anti-)affinity terms of placed pods, kept up to date as pods come and go.

Most pods are copies, so what counts is the number of different terms, not that of pods: a term is kept once, with the
slots where pods carry it. Whoever wants to know what the placed pods say about a pod that waits asks by the pod's
namespace and labels (`towards`) and gets columns over node slots: terms of the same kind, topology key and weight that
mean the pod are counted together. What the pod says about placed pods is counted in `counts`.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Iterator, Mapping
from enum import IntEnum

import numpy as np
from msgspec import Struct

from ksched import _core
from ksched.cache.domains import Domains, NodeSet
from ksched.cache.shapes import PodInfo
from ksched.cache.table import NO_VALUE, Codes, Flags, Table, column
from ksched.model.pod_affinity import PodTerms, Term, pod_terms
from ksched.model.selectors import Labels

MOST_BYTES = 64 << 20
"""Memory that columns may take; the ones that were not asked for the longest go first."""

FEWEST_COLUMNS = 64
"""Columns that are kept whatever they take."""

MOST_COLUMNS = 10_000
"""Columns that are kept at most, however small they are."""

MOST_ANSWERS = 10_000
"""Answers that are remembered; beyond that remembering starts afresh."""

_BYTES_PER_NODE = 8

_TERMS = "pod affinity terms"
"""Under what a shape remembers its compiled terms, with the namespace."""


class Kind(IntEnum):
    """How a placed pod means a term."""

    REQUIRED_ANTI = 0
    REQUIRED = 1
    PREFERRED = 2


class TermKey(Struct, frozen=True, cache_hash=True):
    """A term as pods carry it; a weight below 0 is anti-affinity, required terms have none."""

    kind: Kind
    weight: int
    term: Term


class CarriedTerm:
    """A term, on which slots pods carry it and how often, and the columns that count it."""

    __slots__ = ("columns", "key", "slots")

    def __init__(self, key: TermKey) -> None:
        self.key = key
        self.slots: dict[int, int] = {}
        self.columns: list[TermColumn] = []


class TermColumn(_core.PodColumn):
    """Terms of one kind, topology key and weight: how often pods carry them, per slot and per topology domain."""

    __slots__ = ("domains", "slots", "terms", "topology_key", "weight")

    def __init__(self, terms: frozenset[CarriedTerm], table: Table, nodes: NodeSet, journal: _core.Journal) -> None:
        """`nodes` are those that have the topology key."""
        key = next(iter(terms)).key
        self.terms = terms
        self.topology_key = key.term.topology_key
        self.weight = key.weight
        self.slots: Codes = column(np.int32, table.max_nodes)
        self.count_in(self.slots)
        for carried in terms:
            carried.columns.append(self)
            for slot, count in carried.slots.items():
                self.add(slot, count)
        self.domains = Domains(self.slots, table.label(self.topology_key), nodes, table, journal)
        self.tell([self.domains])


class Towards(Struct, frozen=True):
    """What placed pods say about pods with some namespace and labels."""

    required_anti: tuple[TermColumn, ...] = ()
    required: tuple[TermColumn, ...] = ()
    preferred: tuple[TermColumn, ...] = ()


NOTHING_SAID = Towards()

_ClassKey = tuple[str, tuple[tuple[str, str], ...]]
_Pair = tuple[str, str] | None


class CarriedTerms:
    """All terms that pods on known nodes carry."""

    def __init__(
        self,
        table: Table,
        journal: _core.Journal,
        namespaces: Mapping[str, Labels],
        most_bytes: int = MOST_BYTES,
    ) -> None:
        """`namespaces` are all namespaces with their labels; new labels come as a new mapping."""
        self._table = table
        self._journal = journal
        self._namespaces = namespaces
        self._most_bytes = most_bytes
        self._terms: dict[TermKey, CarriedTerm] = {}
        self._about: defaultdict[str | None, defaultdict[_Pair, list[CarriedTerm]]] = defaultdict(
            lambda: defaultdict(list)
        )
        self._columns: OrderedDict[frozenset[CarriedTerm], TermColumn] = OrderedDict()
        self._answers: dict[_ClassKey, tuple[Labels | None, Towards]] = {}
        self._labelled: dict[str, NodeSet] = {}

    def towards(self, namespace: str, labels: dict[str, str]) -> Towards:
        """What the placed pods say about a pod with this namespace and these labels. To be asked for anew for each
        pod: columns of an older answer may not be kept up to date any more."""
        if not self._terms:
            return NOTHING_SAID
        key = (namespace, tuple(labels.items()))
        known = self._namespaces.get(namespace)
        found = self._answers.get(key)
        if found is not None and found[0] is known:
            for each in found[1].required_anti, found[1].required, found[1].preferred:
                for counted in each:
                    counted.domains.refresh()
                    self._columns.move_to_end(counted.terms)
            return found[1]
        if len(self._answers) >= MOST_ANSWERS:
            self._answers.clear()
        self._make_room()
        answer = self._find(namespace, labels, {} if known is None else known)
        self._answers[key] = known, answer
        return answer

    def labelled(self, key: str) -> NodeSet:
        """The nodes that have a label."""
        found = self._labelled.get(key)
        if found is None:
            labels = self._table.label(key)

            def answer() -> Flags:
                flags: Flags = (labels.slots[: self._table.size] != NO_VALUE).astype(np.uint8)
                return flags

            found = self._labelled[key] = NodeSet(answer)
        return found

    def add(self, slot: int, pod: PodInfo) -> None:
        """A pod has been put on a node."""
        for key in carried_by(pod):
            carried = self._terms.get(key)
            if carried is None:
                carried = self._terms[key] = CarriedTerm(key)
                self._index(carried)
            carried.slots[slot] = carried.slots.get(slot, 0) + 1
            for counted in carried.columns:
                counted.add(slot, 1)

    def remove(self, slot: int, pod: PodInfo) -> None:
        """A pod has been taken off its node."""
        for key in carried_by(pod):
            carried = self._terms[key]
            for counted in carried.columns:
                counted.add(slot, -1)
            left = carried.slots[slot] - 1
            if left:
                carried.slots[slot] = left
                continue
            del carried.slots[slot]
            if not carried.slots:
                del self._terms[key]
                self._unindex(carried)

    def replace(self, slot: int, old: PodInfo, new: PodInfo) -> None:
        """A pod has changed where it is; what it says of other pods it says from its namespace."""
        if old.namespace != new.namespace:
            self.remove(slot, old)
            self.add(slot, new)

    def __len__(self) -> int:
        return len(self._terms)

    # -- which terms mean a pod

    def _find(self, namespace: str, labels: dict[str, str], namespace_labels: Labels) -> Towards:
        groups: defaultdict[tuple[Kind, str, int], list[CarriedTerm]] = defaultdict(list)
        for index in (self._about.get(namespace), self._about.get(None)):
            if index is None:
                continue
            for pair in (None, *labels.items()):
                for carried in index.get(pair, ()):
                    if carried.key.term.matches(namespace, labels, namespace_labels):
                        key = carried.key
                        groups[key.kind, key.term.topology_key, key.weight].append(carried)
        found: defaultdict[Kind, list[TermColumn]] = defaultdict(list)
        for (kind, _, _), terms in groups.items():
            found[kind].append(self._column(frozenset(terms)))
        return Towards(tuple(found[Kind.REQUIRED_ANTI]), tuple(found[Kind.REQUIRED]), tuple(found[Kind.PREFERRED]))

    def _index(self, carried: CarriedTerm) -> None:
        for namespace, pair in _places(carried.key.term):
            self._about[namespace][pair].append(carried)
        self._answers.clear()

    def _unindex(self, carried: CarriedTerm) -> None:
        for namespace, pair in _places(carried.key.term):
            index = self._about[namespace]
            index[pair].remove(carried)
            if not index[pair]:
                del index[pair]
            if not index:
                del self._about[namespace]
        for counted in list(carried.columns):
            self._drop(self._columns.pop(counted.terms))
        self._answers.clear()

    # -- columns

    def _column(self, terms: frozenset[CarriedTerm]) -> TermColumn:
        found = self._columns.get(terms)
        if found is not None:
            found.domains.refresh()
            self._columns.move_to_end(terms)
            return found
        nodes = self.labelled(next(iter(terms)).key.term.topology_key)
        made = self._columns[terms] = TermColumn(terms, self._table, nodes, self._journal)
        return made

    def _make_room(self) -> None:
        """Drop columns before new ones are made; with them go all answers, which may name them."""
        fitting = self._most_bytes // max(1, _BYTES_PER_NODE * self._table.size)
        most = max(FEWEST_COLUMNS, min(fitting, MOST_COLUMNS))
        if len(self._columns) > most:
            self._answers.clear()
        while len(self._columns) > most:
            self._drop(self._columns.popitem(last=False)[1])

    def _drop(self, counted: TermColumn) -> None:
        for carried in counted.terms:
            carried.columns.remove(counted)


def terms_of(pod: PodInfo) -> PodTerms:
    """A pod's compiled terms, worked out once for all its copies in the namespace."""
    memo = pod.shape.memo
    found: PodTerms | None = memo.get((_TERMS, pod.namespace))
    if found is None:
        found = memo[_TERMS, pod.namespace] = pod_terms(pod.pod)
    return found


def carried_by(pod: PodInfo) -> tuple[TermKey, ...]:
    """The terms of a placed pod."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return ()
    memo = pod.shape.memo
    found: tuple[TermKey, ...] | None = memo.get((CarriedTerms, pod.namespace))
    if found is None:
        terms = terms_of(pod)
        found = memo[CarriedTerms, pod.namespace] = (
            *(TermKey(Kind.REQUIRED_ANTI, 0, term) for term in terms.required_anti),
            *(TermKey(Kind.REQUIRED, 0, term) for term in terms.required),
            *(TermKey(Kind.PREFERRED, weight, term) for weight, term in terms.preferred),
        )
    return found


def has_pods(domains: Domains) -> bool:
    """Whether any domain has a count other than 0."""
    having = domains.having
    return len(having) > (0 in having)


def _places(term: Term) -> Iterator[tuple[str | None, _Pair]]:
    """Where a term is found: by namespace, unless that is selected by labels, and by a label that each pod has which
    the term means."""
    namespaces = term.namespaces if term.namespace_selector.selects_nothing else (None,)
    for namespace in namespaces:
        for pair in term.selector.anchors:
            yield namespace, pair
