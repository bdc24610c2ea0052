"""Random pod affinity and anti-affinity, and the namespaces that it speaks of, over the vocabulary of `strategies`."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

from ksched.model.objects import Namespace

Strategy = st.SearchStrategy[Any]

NAMESPACES = ["default", "other", "third"]

_expressions = st.one_of(
    st.fixed_dictionaries(
        {
            "key": st.sampled_from(["zone", "disk"]),
            "operator": st.sampled_from(["In", "NotIn"]),
            "values": st.lists(st.sampled_from(["a", "b", "ssd"]), min_size=1, max_size=2),
        }
    ),
    st.fixed_dictionaries(
        {"key": st.sampled_from(["zone", "disk"]), "operator": st.sampled_from(["Exists", "DoesNotExist"])}
    ),
)

_selectors = st.one_of(
    st.just({}),
    st.fixed_dictionaries({"matchLabels": st.sampled_from([{"zone": "a"}, {"disk": "ssd"}, {}])}),
    st.fixed_dictionaries({"matchExpressions": st.lists(_expressions, min_size=1, max_size=2)}),
)

_namespace_selectors = st.sampled_from(
    [
        {},
        {"matchLabels": {"team": "red"}},
        {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]},
        {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
    ]
)

_malformed = st.just({"topologyKey": "zone", "labelSelector": {"matchLabels": {"not a key!": ""}}})

_sound = st.fixed_dictionaries(
    {"topologyKey": st.sampled_from(["zone", "zone", "disk", "gen"])},
    optional={
        "labelSelector": _selectors,
        "namespaces": st.lists(st.sampled_from([*NAMESPACES, "unknown"]), max_size=2),
        "namespaceSelector": _namespace_selectors,
    },
)

_terms = st.sampled_from([_sound] * 24 + [_malformed]).flatmap(lambda chosen: chosen)

_preferred = st.fixed_dictionaries({"weight": st.sampled_from([1, 30, 100, 0]), "podAffinityTerm": _terms})

pod_affinities: Strategy = st.fixed_dictionaries(
    {},
    optional={
        "requiredDuringSchedulingIgnoredDuringExecution": st.lists(_terms, max_size=2),
        "preferredDuringSchedulingIgnoredDuringExecution": st.lists(_preferred, max_size=2),
    },
)
"""What stands under `podAffinity` and `podAntiAffinity`."""


@st.composite
def namespaces(draw: st.DrawFn) -> Namespace:
    """One of a few namespaces, of some team or none."""
    labels = draw(st.sampled_from([{}, {"team": "red"}, {"team": "blue"}]))
    return msgspec.convert({"metadata": {"name": draw(st.sampled_from(NAMESPACES)), "labels": labels}}, Namespace)
