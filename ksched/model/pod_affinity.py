"""Pod affinity and anti-affinity terms, compiled.

A term says which pods it is about and within which topology; what follows for a pod that waits is told by the plugin
(`plugins/inter_pod_affinity`), and the terms of pods that run already are counted in `cache/terms`.
`matchLabelKeys` and `mismatchLabelKeys` are not looked at: the API server has folded them into the selector.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from ksched.errors import SelectorError
from ksched.model.pod import Pod, PodAffinityTerm, WeightedPodAffinityTerm
from ksched.model.selectors import NOTHING, Labels, Selector, label_selector


class Term(Struct, frozen=True, cache_hash=True):
    """One term. The pods in `namespaces`, and in the namespaces whose labels `namespace_selector` selects, are meant,
    if `selector` selects their labels."""

    topology_key: str
    selector: Selector
    namespaces: frozenset[str]
    namespace_selector: Selector

    def matches(self, namespace: str, labels: Labels, namespace_labels: Labels) -> bool:
        """Whether the term means a pod with these labels, in a namespace with those."""
        return (
            namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        ) and self.selector.matches(labels)

    def among(self, namespaces: Mapping[str, Labels]) -> Term:
        """The term as it stands for a pod that waits, given all namespaces and their labels.

        The namespaces that are selected are added to the names, and the selector is then asked about a namespace
        without labels. Upstream means to drop the selector but keeps it, so that one made of NotIn and DoesNotExist
        alone selects every namespace.
        """
        if self.namespace_selector.empty or self.namespace_selector.selects_nothing:
            return self
        selected = {name for name, labels in namespaces.items() if self.namespace_selector.matches(labels)}
        return Term(self.topology_key, self.selector, self.namespaces | selected, self.namespace_selector)

    @property
    def counted_namespaces(self) -> frozenset[str] | None:
        """The namespaces that are meant if the labels of none are known; None for all."""
        return None if self.namespace_selector.matches({}) else self.namespaces


Weighted = tuple[int, Term]
"""A preferred term; the weight is negative for anti-affinity."""


class PodTerms(Struct, frozen=True):
    """All terms of a pod. A list in which a term is wrong is empty; `error` tells what is wrong."""

    required: tuple[Term, ...] = ()
    required_anti: tuple[Term, ...] = ()
    preferred: tuple[Weighted, ...] = ()
    error: str = ""

    @property
    def none(self) -> bool:
        """Whether there is no term at all."""
        return not (self.required or self.required_anti or self.preferred or self.error)


NO_TERMS = PodTerms()


def pod_terms(pod: Pod) -> PodTerms:
    """Compile the terms of a pod."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return NO_TERMS
    near, apart = affinity.pod_affinity, affinity.pod_anti_affinity
    errors: list[str] = []

    def compiled(what: str, written: Sequence[WeightedPodAffinityTerm], sign: int) -> tuple[Weighted, ...]:
        try:
            return tuple((sign * each.weight, _term(each.pod_affinity_term, pod.namespace)) for each in written)
        except SelectorError as error:
            errors.append(f"{what}: {error}")
            return ()

    required = compiled("requiredAffinityTerms", _unweighted(near.required if near else ()), 1)
    required_anti = compiled("requiredAntiAffinityTerms", _unweighted(apart.required if apart else ()), 1)
    preferred = compiled("preferredAffinityTerms", near.preferred if near else (), 1)
    preferred += compiled("preferredAntiAffinityTerms", apart.preferred if apart else (), -1)
    return PodTerms(
        tuple(term for _, term in required),
        tuple(term for _, term in required_anti),
        preferred,
        errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]" if errors else "",
    )


def match_all(terms: Sequence[Term], namespace: str, labels: Labels) -> bool:
    """Whether each of the terms, of which there is one, means a pod in a namespace whose labels are not known."""
    return bool(terms) and all(term.matches(namespace, labels, {}) for term in terms)


def _unweighted(terms: Sequence[PodAffinityTerm]) -> list[WeightedPodAffinityTerm]:
    return [WeightedPodAffinityTerm(pod_affinity_term=term) for term in terms]


def _term(written: PodAffinityTerm, own_namespace: str) -> Term:
    selector = label_selector(written.label_selector)
    namespaces = frozenset(written.namespaces)
    if not namespaces and written.namespace_selector is None:
        namespaces = frozenset((own_namespace,))
    namespace_selector = NOTHING if written.namespace_selector is None else label_selector(written.namespace_selector)
    return Term(written.topology_key, selector, namespaces, namespace_selector)
