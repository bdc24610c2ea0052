"""Selectors and tolerations: what they match, and what is said of those that are wrong."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.errors import SelectorError
from ksched.model.label_syntax import key_faults, value_faults
from ksched.model.node import Taint
from ksched.model.objects import LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from ksched.model.pod import Pod, PreferredSchedulingTerm, Toleration
from ksched.model.selectors import (
    EVERYTHING,
    NOTHING,
    NodeTerm,
    Requirement,
    Selector,
    field_value,
    first_untolerated,
    is_tolerated,
    label_selector,
    lazy_node_selector,
    preferred_terms,
    required_node_affinity,
    selector_of_labels,
    strict_node_selector,
    tolerates,
)

NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def needs(key: str, operator: str, *values: str) -> LabelSelectorRequirement:
    return LabelSelectorRequirement(key, operator, list(values)) if values else LabelSelectorRequirement(key, operator)


def expressions(*requirements: LabelSelectorRequirement) -> LabelSelector:
    return LabelSelector(match_expressions=list(requirements))


def term(
    *requirements: LabelSelectorRequirement, fields: tuple[LabelSelectorRequirement, ...] = ()
) -> NodeSelectorTerm:
    return NodeSelectorTerm(list(requirements), list(fields))


def terms(*written: NodeSelectorTerm) -> NodeSelector:
    return NodeSelector(list(written))


def compiled(requirement: LabelSelectorRequirement) -> Requirement:
    return lazy_node_selector(terms(term(requirement))).terms[0].expressions[0]


@pytest.mark.parametrize(
    ("requirement", "value", "holds"),
    [
        pytest.param(needs("k", "In", "a", "b"), "a", True, id="In: one of the values"),
        pytest.param(needs("k", "In", "a", "b"), "c", False, id="In: another value"),
        pytest.param(needs("k", "In", ""), None, False, id="In: no label, even if the empty value would do"),
        pytest.param(needs("k", "NotIn", "a"), "b", True, id="NotIn: another value"),
        pytest.param(needs("k", "NotIn", "a"), "a", False, id="NotIn: the value"),
        pytest.param(needs("k", "NotIn", "a"), None, True, id="NotIn: no label"),
        pytest.param(needs("k", "Exists"), "", True, id="Exists: an empty label"),
        pytest.param(needs("k", "Exists"), None, False, id="Exists: no label"),
        pytest.param(needs("k", "DoesNotExist"), None, True, id="DoesNotExist: no label"),
        pytest.param(needs("k", "DoesNotExist"), "", False, id="DoesNotExist: an empty label"),
        pytest.param(needs("k", "Gt", "5"), "6", True, id="Gt: more"),
        pytest.param(needs("k", "Gt", "5"), "5", False, id="Gt: as much"),
        pytest.param(needs("k", "Gt", "5"), None, False, id="Gt: no label"),
        pytest.param(needs("k", "Gt", "5"), "many", False, id="Gt: not a number"),
        pytest.param(needs("k", "Lt", "5"), "-7", True, id="Lt: less"),
        pytest.param(needs("k", "Lt", "5"), "+004", True, id="Lt: numbers are read as Go reads them"),
        pytest.param(needs("k", "Lt", "5"), "1_0", False, id="Lt: but without underscores"),
        pytest.param(needs("k", "Lt", "5"), "-9223372036854775809", False, id="Lt: beyond int64 is no number"),
        pytest.param(needs("k", "Lt", "5"), "٣", False, id="Lt: digits of another script are none"),
    ],
)
def test_requirements_on_one_value(requirement: LabelSelectorRequirement, value: str | None, holds: bool) -> None:
    assert compiled(requirement).holds(value) is holds


def test_a_requirement_is_data() -> None:
    assert compiled(needs("cpus", "Gt", "05")) == Requirement("cpus", "Gt", frozenset({"05"}), 5, "cpus>05")
    assert compiled(needs("zone", "NotIn", "b", "a", "b")).values == frozenset({"a", "b"})


@pytest.mark.parametrize(
    ("selector", "labels", "matches", "empty", "text"),
    [
        pytest.param(None, {}, False, False, "", id="no selector selects nothing"),
        pytest.param(LabelSelector(), {"a": "1"}, True, True, "", id="an empty one everything"),
        pytest.param(LabelSelector({"b": "", "a": "1"}), {"a": "1", "b": ""}, True, False, "a=1,b=", id="all labels"),
        pytest.param(LabelSelector({"a": "1"}), {"a": "2"}, False, False, "a=1", id="another value"),
        pytest.param(
            expressions(needs("c", "Exists"), needs("b", "NotIn", "y", "x"), needs("a", "DoesNotExist")),
            {"c": ""},
            True,
            False,
            "!a,b notin (x,y),c",
            id="all expressions, in the order of their keys",
        ),
    ],
)
def test_label_selectors(
    selector: LabelSelector | None, labels: dict[str, str], matches: bool, empty: bool, text: str
) -> None:
    found = label_selector(selector)
    assert (found.matches(labels), found.empty, str(found)) == (matches, empty, text)


def test_labels_as_a_selector_are_taken_as_they_are() -> None:
    assert selector_of_labels(None) is EVERYTHING
    assert selector_of_labels({}) is EVERYTHING
    assert selector_of_labels({"not a key": "not / a value"}).matches({"not a key": "not / a value"})
    assert not NOTHING.matches({})


@pytest.mark.parametrize(
    ("selector", "said"),
    [
        pytest.param(
            expressions(needs("a", "Gt", "1")), '"Gt" is not a valid label selector operator', id="an operator of nodes"
        ),
        pytest.param(
            expressions(needs("a", "In")),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="no values",
        ),
        pytest.param(
            expressions(LabelSelectorRequirement("a", "In", [])),
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
            id="an empty list of values",
        ),
        pytest.param(
            expressions(needs("a", "Exists", "x", "é")),
            '[values: Invalid value: ["x","é"]: values set must be empty for exists and does not exist, '
            'values[1][a]: Invalid value: "é": a valid label must be an empty string or consist of alphanumeric '
            "characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or "
            "'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')]",
            id="several faults are listed",
        ),
        pytest.param(
            LabelSelector({"a\tb": "1"}), f'key: Invalid value: "a\\tb": {NAME_RULE}', id="texts are quoted as Go does"
        ),
        pytest.param(
            LabelSelector({"/x": "1"}), 'key: Invalid value: "/x": prefix part must be non-empty', id="no prefix"
        ),
    ],
)
def test_a_wrong_label_selector_is_refused_in_kubernetes_words(selector: LabelSelector, said: str) -> None:
    with pytest.raises(SelectorError) as caught:
        label_selector(selector)
    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        pytest.param('"\\', '"\\"\\\\"', id="quotation marks and backslashes"),
        pytest.param("\x00\x7f", '"\\x00\\x7f"', id="control characters"),
        pytest.param("\u200b\U000e0001é", '"\\u200b\\U000e0001é"', id="only what cannot be seen is escaped"),
    ],
)
def test_quotation_follows_go(text: str, quoted: str) -> None:
    with pytest.raises(SelectorError) as caught:
        label_selector(expressions(needs("a", text)))
    assert str(caught.value) == f"{quoted} is not a valid label selector operator"


HERE = ({"zone": "a", "cpus": "8"}, "node-1")


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        pytest.param(terms(), False, id="no terms match nothing"),
        pytest.param(terms(term()), False, id="nor does an empty term"),
        pytest.param(terms(term(), term(needs("zone", "In", "a"))), True, id="but one of several terms is enough"),
        pytest.param(terms(term(needs("zone", "In", "a"), needs("cpus", "Gt", "8"))), False, id="all of a term"),
        pytest.param(terms(term(fields=(needs("metadata.name", "In", "node-1"),))), True, id="the node's name"),
        pytest.param(terms(term(fields=(needs("metadata.name", "NotIn", "node-1"),))), False, id="not the name"),
        pytest.param(
            terms(term(needs("zone", "In", "b"), fields=(needs("metadata.name", "In", "node-1"),))),
            False,
            id="labels and fields",
        ),
        pytest.param(terms(term(fields=(needs("spec.x", "In", ""),))), True, id="every other field is empty"),
        pytest.param(terms(term(fields=(needs("spec.x", "In", "y"),))), False, id="and has no value"),
    ],
)
def test_node_selectors(selector: NodeSelector, matches: bool) -> None:
    assert lazy_node_selector(selector).matches(*HERE) is matches
    assert strict_node_selector(selector).matches(*HERE) is matches


def test_fields_of_a_node_without_a_name_are_not_looked_at() -> None:
    selector = lazy_node_selector(terms(term(fields=(needs("metadata.name", "In", "node-1"),))))
    assert selector.matches({}, "")
    assert not selector.matches({}, "node-2")


WRONG = term(needs("cpus", "Gt", "many"))
WRONG_SAID = (
    "nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: \"many\": for 'Gt', 'Lt' operators, the value "
    "must be an integer"
)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        pytest.param(WRONG, WRONG_SAID, id="not a number"),
        pytest.param(
            term(needs("cpus", "Gt", "1", "2")),
            "nodeSelectorTerms[0].matchExpressions[0].values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, "
            "exactly one value is required",
            id="two numbers",
        ),
        pytest.param(
            term(needs("cpus", "Above", "1")),
            'nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Above": supported values: "In", '
            '"NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
            id="an unknown operator",
        ),
        pytest.param(
            term(fields=(needs("metadata.name", "Exists"),)),
            'nodeSelectorTerms[0].matchFields[0].operator: Unsupported value: "Exists": supported values: "In", '
            '"NotIn"',
            id="an operator that fields do not have",
        ),
        pytest.param(
            term(fields=(needs("metadata.name", "In", "a", "b"),)),
            'nodeSelectorTerms[0].matchFields[0].values: Invalid value: ["a","b"]: must have one element',
            id="two names",
        ),
        pytest.param(
            term(needs("-", "Exists"), needs("-", "Exists")),
            f'[nodeSelectorTerms[0].matchExpressions[0].key: Invalid value: "-": {NAME_RULE}, '
            f'nodeSelectorTerms[0].matchExpressions[1].key: Invalid value: "-": {NAME_RULE}]',
            id="two faults",
        ),
    ],
)
def test_a_wrong_term_is_refused_when_strict_and_matches_nothing_when_lazy(
    written: NodeSelectorTerm, said: str
) -> None:
    with pytest.raises(SelectorError) as caught:
        strict_node_selector(terms(written))
    assert str(caught.value) == said
    lazy = lazy_node_selector(terms(written))
    assert not lazy.matches(*HERE)
    assert len(lazy.errors) == said.count("nodeSelectorTerms[0]")


def pod(node_selector: dict[str, str] | None = None, required: NodeSelector | None = None) -> Pod:
    spec: dict[str, Any] = {"nodeSelector": node_selector} if node_selector is not None else {}
    if required is not None:
        written = msgspec.to_builtins(required)
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": written}}
    return msgspec.convert({"spec": spec}, Pod)


@pytest.mark.parametrize(
    ("asking", "matches", "error"),
    [
        pytest.param(pod(), True, None, id="a pod that demands nothing"),
        pytest.param(pod({}), True, None, id="an empty nodeSelector demands nothing"),
        pytest.param(pod({"zone": "a"}), True, None, id="its nodeSelector"),
        pytest.param(pod({"zone": "b"}), False, None, id="another zone"),
        pytest.param(pod({"zone": "a"}, terms(term(needs("cpus", "Lt", "9")))), True, None, id="both"),
        pytest.param(pod({"zone": "b"}, terms(term(needs("cpus", "Lt", "9")))), False, None, id="only one of both"),
        pytest.param(pod(required=terms()), False, None, id="a required affinity without terms"),
        pytest.param(pod(required=terms(WRONG)), False, WRONG_SAID, id="an error is told when no term matches"),
        pytest.param(
            pod(required=terms(WRONG, term(needs("zone", "In", "a")))), True, None, id="but not when one does"
        ),
        pytest.param(pod({"zone": "b"}, terms(WRONG)), False, None, id="nor when the nodeSelector rules the node out"),
    ],
)
def test_required_node_affinity(asking: Pod, matches: bool, error: str | None) -> None:
    required = required_node_affinity(asking)
    assert required.matches(*HERE) is matches
    assert required.error(*HERE) == error


def test_preferences_add_the_weights_of_all_terms_that_match() -> None:
    preferred = preferred_terms(
        [
            PreferredSchedulingTerm(10, term(needs("zone", "In", "a"))),
            PreferredSchedulingTerm(20, term(needs("zone", "In", "b"))),
            PreferredSchedulingTerm(30, term(needs("cpus", "Exists"))),
            PreferredSchedulingTerm(40, term()),
        ]
    )
    assert preferred.score(*HERE) == 40
    assert [weight for weight, _ in preferred.terms] == [10, 20, 30]


def test_a_wrong_preference_fails_them_all_unless_it_has_no_weight() -> None:
    right = PreferredSchedulingTerm(10, term(needs("zone", "In", "a")))
    with pytest.raises(SelectorError, match=r"^\[1\]\.matchExpressions\[0\]\.values\[0\]: Invalid value: "):
        preferred_terms([right, PreferredSchedulingTerm(1, WRONG)])
    assert preferred_terms([right, PreferredSchedulingTerm(0, WRONG)]).score(*HERE) == 10


GPU = Taint("gpu", "yes", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        pytest.param(Toleration("gpu", "Equal", "yes", "NoSchedule"), True, id="the same taint"),
        pytest.param(Toleration("gpu", "", "yes"), True, id="any effect, and Equal understood"),
        pytest.param(Toleration("gpu", "Equal", "no"), False, id="another value"),
        pytest.param(Toleration("gpu", "Exists", effect="NoExecute"), False, id="another effect"),
        pytest.param(Toleration("cpu", "Exists"), False, id="another key"),
        pytest.param(Toleration("gpu", "Exists"), True, id="whatever its value"),
        pytest.param(Toleration("", "Exists"), True, id="everything"),
        pytest.param(Toleration("", "Equal", "yes"), True, id="an empty key still compares values: equal"),
        pytest.param(Toleration("", "Equal", ""), False, id="an empty key still compares values: different"),
        pytest.param(Toleration("gpu", "exists"), False, id="an unknown operator"),
    ],
)
def test_tolerations(toleration: Toleration, tolerated: bool) -> None:
    assert tolerates(toleration, GPU, comparison_operators=False) is tolerated
    assert tolerates(toleration, GPU, comparison_operators=True) is tolerated


@pytest.mark.parametrize(
    ("operator", "taint", "toleration", "tolerated"),
    [
        pytest.param("Gt", "5", "4", True, id="a taint that is greater"),
        pytest.param("Gt", "5", "5", False, id="greater means not equal"),
        pytest.param("Lt", "-5", "4", True, id="a taint that is less"),
        pytest.param("Lt", "+1", "4", False, id="only canonical numbers: no plus"),
        pytest.param("Lt", "01", "4", False, id="no leading zeros"),
        pytest.param("Lt", "-0", "4", False, id="no negative zero"),
        pytest.param("Lt", "1", "9223372036854775807", True, id="up to the largest int64"),
        pytest.param("Lt", "1", "9223372036854775808", False, id="and no further"),
        pytest.param("Lt", "", "4", False, id="nothing is no number"),
    ],
)
def test_numeric_tolerations_need_their_gate(operator: str, taint: str, toleration: str, tolerated: bool) -> None:
    written, accepting = Taint("k", taint, "NoSchedule"), Toleration("k", operator, toleration)
    assert tolerates(accepting, written, comparison_operators=True) is tolerated
    assert not tolerates(accepting, written, comparison_operators=False)


def test_the_first_untolerated_taint_is_in_the_order_of_the_node() -> None:
    soft, hard = Taint("soft", "", "PreferNoSchedule"), Taint("out", "", "NoExecute")
    assert first_untolerated([soft, GPU, hard], [], False) == GPU
    assert first_untolerated([soft, GPU, hard], [Toleration("gpu", "Exists")], False) == hard
    assert first_untolerated([soft, GPU, hard], [Toleration("", "Exists")], False) is None
    assert first_untolerated([soft, GPU], [], False, effects=("PreferNoSchedule",)) == soft
    assert not is_tolerated(GPU, [Toleration("a", "Exists"), Toleration("b", "Exists")], False)
    assert is_tolerated(GPU, [Toleration("a", "Exists"), Toleration("gpu", "Exists")], False)


@pytest.mark.parametrize("key", ["a", "A_b.c-1", "example.com/x", "a.b-c.d/X", "1/2", "x" * 63, f"{'a' * 253}/x"])
def test_right_keys(key: str) -> None:
    assert key_faults(key) == ()


@pytest.mark.parametrize(
    ("key", "beginnings"),
    [
        pytest.param("", ["name part must be non-empty", "name part must consist"], id="empty"),
        pytest.param("a/", ["name part must be non-empty", "name part must consist"], id="no name"),
        pytest.param("x" * 64, ["name part must be no more than 63 bytes"], id="too long"),
        pytest.param("é" * 32, ["name part must be no more than 63 bytes", "name part must consist"], id="in bytes"),
        pytest.param(f"{'a' * 254}/x", ["prefix part must be no more than 253 bytes"], id="a prefix too long"),
        pytest.param("A.b/x", ["prefix part a lowercase RFC 1123 subdomain"], id="capitals in the prefix"),
        pytest.param("a/b/c", ["a valid label key must consist"], id="two slashes"),
    ],
)
def test_wrong_keys(key: str, beginnings: list[str]) -> None:
    faults = key_faults(key)
    assert len(faults) == len(beginnings)
    assert all(fault.startswith(beginning) for fault, beginning in zip(faults, beginnings, strict=True))


def test_values_may_be_empty_but_not_long() -> None:
    assert value_faults("") == ()
    assert value_faults("x" * 64) == ("must be no more than 63 bytes",)
    assert len(value_faults("-" * 64)) == 2


KEYS = ("a", "b", "c")
VALUES = ("", "1", "2", "10", "x")
REQUIREMENTS = st.one_of(
    st.builds(
        lambda k, o, v: needs(k, o, *v),
        st.sampled_from(KEYS),
        st.sampled_from(("In", "NotIn")),
        st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
    ),
    st.builds(needs, st.sampled_from(KEYS), st.sampled_from(("Exists", "DoesNotExist"))),
    st.builds(needs, st.sampled_from(KEYS), st.sampled_from(("Gt", "Lt")), st.sampled_from(("0", "1", "5"))),
)
LABELS = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(VALUES))


@given(st.lists(st.lists(REQUIREMENTS, max_size=3), max_size=3), st.lists(LABELS, min_size=1, max_size=8))
def test_asking_nodes_and_asking_columns_give_the_same(
    written: list[list[LabelSelectorRequirement]], nodes: list[dict[str, str]]
) -> None:
    """Requirements asked once per distinct value of a label, and gathered, say what the terms say of every node."""
    selector = strict_node_selector(terms(*(term(*requirements) for requirements in written)))
    by_column = [False] * len(nodes)
    for compiled_term in selector.terms:
        column = [True] * len(nodes)
        for requirement in compiled_term.expressions:
            values = [labels.get(requirement.key) for labels in nodes]
            holds = {value: requirement.holds(value) for value in set(values)}
            column = [so_far and holds[value] for so_far, value in zip(column, values, strict=True)]
        by_column = [one or other for one, other in zip(by_column, column, strict=True)]
    assert [selector.matches(labels, "node") for labels in nodes] == by_column


@given(LABELS, LABELS)
def test_a_selector_of_labels_matches_what_has_them_all(wanted: dict[str, str], labels: dict[str, str]) -> None:
    compiled_selector = selector_of_labels(wanted)
    assert compiled_selector.matches(labels) is (wanted.items() <= labels.items())
    assert label_selector(LabelSelector(wanted)) == compiled_selector


def test_compiled_selectors_are_values() -> None:
    assert Selector() == EVERYTHING
    assert NodeTerm() == NodeTerm((), (), ())
    assert field_value("metadata.name", "node-1") == "node-1"
    assert field_value("metadata.namespace", "node-1") == ""
