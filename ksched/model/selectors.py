"""Label selectors, node selectors and tolerations, compiled once and asked often.

Everything that selects is made of `Requirement`s: plain data about one key, with `holds` to ask about one value.
`Selector` and `NodeTerm` answer for a whole object; a caller with columns asks each requirement once per distinct
value instead and gathers.

Whether something is wrong is found when compiling. `label_selector`, `strict_node_selector` and `preferred_terms`
raise SelectorError; a pod's required node affinity does not, since for Kubernetes a term with an error only matches
nothing (`RequiredNodeAffinity.error` tells it, if no other term matched). The sentences are Kubernetes' own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from ksched.errors import SelectorError
from ksched.model.label_syntax import key_faults, value_faults
from ksched.model.node import Taint
from ksched.model.objects import LabelSelector, LabelSelectorRequirement, NodeSelector, NodeSelectorTerm, NoValues
from ksched.model.pod import Pod, PreferredSchedulingTerm, Toleration

Labels = Mapping[str, str]
Operator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]

NODE_NAME_FIELD: Final = "metadata.name"
"""The one field that nodes can be selected by."""

DO_NOT_SCHEDULE: Final = ("NoSchedule", "NoExecute")
"""The effects of a taint that keep pods away."""

_LABEL_OPERATORS: Final[dict[str, Operator]] = {
    "In": "In",
    "NotIn": "NotIn",
    "Exists": "Exists",
    "DoesNotExist": "DoesNotExist",
}
_FIELD_OPERATORS: Final[dict[str, Operator]] = {"In": "In", "NotIn": "NotIn"}
_NODE_OPERATORS: Final[dict[str, Operator]] = {**_LABEL_OPERATORS, "Gt": "Gt", "Lt": "Lt"}

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,30}")
_CANONICAL_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]{0,18}")
_INT64: Final = range(-(2**63), 2**63)


class Requirement(Struct, frozen=True):
    """What the value of one label, or of one field, must be.

    `number` is the operand of Gt and Lt. `text` is the requirement as a selector string has it.
    """

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()
    number: int = 0
    text: str = ""

    def holds(self, value: str | None) -> bool:
        """Whether `value` is as required; None stands for a label that is not there."""
        operator = self.operator
        if operator == "In":
            return value in self.values
        if operator == "NotIn":
            return value not in self.values
        if operator == "Exists":
            return value is not None
        if operator == "DoesNotExist":
            return value is None
        number = None if value is None else _int64(value)
        if number is None:
            return False
        return number > self.number if operator == "Gt" else number < self.number


class Selector(Struct, frozen=True, cache_hash=True):
    """Requirements on labels, all of which must hold; without any, all is selected, unless it `selects_nothing`."""

    requirements: tuple[Requirement, ...] = ()
    selects_nothing: bool = False

    @property
    def empty(self) -> bool:
        """Whether everything is selected."""
        return not self.requirements and not self.selects_nothing

    @property
    def anchors(self) -> tuple[tuple[str, str] | None, ...]:
        """Labels of which every selected object has exactly one; (None,) where the selector does not say."""
        for requirement in self.requirements:
            if requirement.operator == "In":
                return tuple((requirement.key, value) for value in requirement.values)
        return (None,)

    def matches(self, labels: Labels) -> bool:
        """Whether an object with `labels` is selected."""
        return not self.selects_nothing and _all_hold(self.requirements, labels)

    def __str__(self) -> str:
        return ",".join(requirement.text for requirement in self.requirements)


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(selects_nothing=True)


class NodeTerm(Struct, frozen=True):
    """A term of a node selector: requirements on the node's labels and on its fields, all of which must hold.

    A term with `errors` matches nothing.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    errors: tuple[str, ...] = ()

    def matches(self, labels: Labels, name: str) -> bool:
        """Whether a node with `labels` and `name` is selected; fields of a node without a name are not looked at."""
        if self.errors or not _all_hold(self.expressions, labels):
            return False
        return not name or all(requirement.holds(field_value(requirement.key, name)) for requirement in self.fields)


class NodeTerms(Struct, frozen=True):
    """The terms of a node selector, one of which must match; terms without any requirement are left out."""

    terms: tuple[NodeTerm, ...] = ()

    def matches(self, labels: Labels, name: str) -> bool:
        """Whether a node with `labels` and `name` is selected."""
        return any(term.matches(labels, name) for term in self.terms)

    @property
    def errors(self) -> tuple[str, ...]:
        """What is wrong with the terms."""
        return tuple(error for term in self.terms for error in term.errors)


class RequiredNodeAffinity(Struct, frozen=True):
    """Where a pod may run: `spec.nodeSelector` and the required node affinity, each None where it demands nothing."""

    node_selector: Selector | None = None
    affinity: NodeTerms | None = None

    def matches(self, labels: Labels, name: str) -> bool:
        """Whether the pod may run on a node with `labels` and `name`."""
        if self.node_selector is not None and not self.node_selector.matches(labels):
            return False
        return self.affinity is None or self.affinity.matches(labels, name)

    def error(self, labels: Labels, name: str) -> str | None:
        """What is wrong with the affinity, where that may be the reason why the node does not match."""
        if self.affinity is None or (self.node_selector is not None and not self.node_selector.matches(labels)):
            return None
        errors = self.affinity.errors
        return _joined(errors) if errors and not self.affinity.matches(labels, name) else None


class PreferredTerms(Struct, frozen=True):
    """Terms that add their weights to the score of the nodes that they match."""

    terms: tuple[tuple[int, NodeTerm], ...] = ()

    def score(self, labels: Labels, name: str) -> int:
        """The sum of the weights of all terms that match a node with `labels` and `name`."""
        return sum(weight for weight, term in self.terms if term.matches(labels, name))


def field_value(key: str, name: str) -> str:
    """The field `key` of a node called `name`; every other field is empty."""
    return name if key == NODE_NAME_FIELD else ""


def label_selector(selector: LabelSelector | None) -> Selector:
    """Compile `selector`: none selects nothing, an empty one everything. Raises SelectorError."""
    if selector is None:
        return NOTHING
    requirements = []
    for key, value in selector.match_labels.items():
        _refuse(_requirement_faults(key, "In", [value]))
        requirements.append(_equals(key, value))
    for written in selector.match_expressions:
        operator = _LABEL_OPERATORS.get(written.operator)
        if operator is None:
            raise SelectorError(f"{_quoted(written.operator)} is not a valid label selector operator")
        _refuse(_requirement_faults(written.key, operator, written.values))
        requirements.append(_requirement(written, operator))
    return Selector(tuple(sorted(requirements, key=_key))) if requirements else EVERYTHING


def selector_of_labels(labels: Labels | None) -> Selector:
    """The selector for objects that have all of `labels`, taken as they are; without labels it selects everything."""
    return Selector(tuple(_equals(key, value) for key, value in sorted(labels.items()))) if labels else EVERYTHING


def required_node_affinity(pod: Pod) -> RequiredNodeAffinity:
    """Compile where `pod` may run; errors in its terms are kept, not raised."""
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    return RequiredNodeAffinity(
        selector_of_labels(pod.spec.node_selector) if pod.spec.node_selector else None,
        lazy_node_selector(required) if required is not None else None,
    )


def lazy_node_selector(selector: NodeSelector) -> NodeTerms:
    """Compile `selector`; a term that is wrong keeps its errors and matches nothing."""
    return NodeTerms(
        tuple(
            _node_term(term, f"nodeSelectorTerms[{index}]")
            for index, term in enumerate(selector.node_selector_terms)
            if not _is_empty(term)
        )
    )


def strict_node_selector(selector: NodeSelector) -> NodeTerms:
    """Compile `selector`; raises SelectorError if any term is wrong."""
    compiled = lazy_node_selector(selector)
    _refuse(compiled.errors)
    return compiled


def preferred_terms(terms: Iterable[PreferredSchedulingTerm]) -> PreferredTerms:
    """Compile preferences, without those that lack a weight or requirements; raises SelectorError if one is wrong."""
    compiled = tuple(
        (term.weight, _node_term(term.preference, f"[{index}]"))
        for index, term in enumerate(terms)
        if term.weight != 0 and not _is_empty(term.preference)
    )
    _refuse([error for _, term in compiled for error in term.errors])
    return PreferredTerms(compiled)


def tolerates(toleration: Toleration, taint: Taint, comparison_operators: bool) -> bool:
    """Whether `toleration` accepts `taint`; Lt and Gt only count with `comparison_operators`."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    operator = toleration.operator
    if operator in ("", "Equal"):
        return toleration.value == taint.value
    if operator == "Exists":
        return True
    return comparison_operators and operator in ("Lt", "Gt") and _compares(operator, taint.value, toleration.value)


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration], comparison_operators: bool) -> bool:
    """Whether any of `tolerations` accepts `taint`."""
    return any(tolerates(toleration, taint, comparison_operators) for toleration in tolerations)


def first_untolerated(
    taints: Iterable[Taint],
    tolerations: Sequence[Toleration],
    comparison_operators: bool,
    effects: Sequence[str] = DO_NOT_SCHEDULE,
) -> Taint | None:
    """The first of `taints` with one of `effects` that none of `tolerations` accepts."""
    for taint in taints:
        if taint.effect in effects and not is_tolerated(taint, tolerations, comparison_operators):
            return taint
    return None


def _all_hold(requirements: Iterable[Requirement], labels: Labels) -> bool:
    return all(requirement.holds(labels.get(requirement.key)) for requirement in requirements)


def _compares(operator: str, taint_value: str, toleration_value: str) -> bool:
    """Whether the taint's number is less (Lt) or greater (Gt) than the toleration's, both written canonically."""
    taint, toleration = _canonical_int64(taint_value), _canonical_int64(toleration_value)
    if taint is None or toleration is None:
        return False
    return taint < toleration if operator == "Lt" else taint > toleration


def _is_empty(term: NodeSelectorTerm) -> bool:
    return not term.match_expressions and not term.match_fields


def _node_term(term: NodeSelectorTerm, path: str) -> NodeTerm:
    expressions, faults = _compile(
        term.match_expressions, f"{path}.matchExpressions", _NODE_OPERATORS, _requirement_faults
    )
    fields, field_faults = _compile(term.match_fields, f"{path}.matchFields", _FIELD_OPERATORS, _field_faults)
    return NodeTerm(expressions, fields, (*faults, *field_faults))


def _compile(
    requirements: Sequence[LabelSelectorRequirement],
    path: str,
    operators: Mapping[str, Operator],
    faults_of: Callable[[str, Operator, list[str]], list[str]],
) -> tuple[tuple[Requirement, ...], list[str]]:
    """The requirements that can be understood, and what is wrong with the others."""
    compiled, faults = [], []
    for index, written in enumerate(requirements):
        operator = operators.get(written.operator)
        if operator is None:
            supported = ", ".join(_quoted(name) for name in operators)
            wrong = [f"operator: Unsupported value: {_quoted(written.operator)}: supported values: {supported}"]
        else:
            wrong = faults_of(written.key, operator, written.values)
        faults += [f"{path}[{index}].{fault}" for fault in wrong]
        if operator is not None and not wrong:
            compiled.append(_requirement(written, operator))
    return tuple(sorted(compiled, key=_key)), faults


def _requirement_faults(key: str, operator: Operator, values: list[str]) -> list[str]:
    faults = []
    if wrong := key_faults(key):
        faults.append(f"key: Invalid value: {_quoted(key)}: {'; '.join(wrong)}")
    if (rule := _broken_count_rule(operator, len(values))) is not None:
        faults.append(f"values: Invalid value: {_listed(values)}: {rule}")
    if operator in ("Gt", "Lt"):
        rule = "for 'Gt', 'Lt' operators, the value must be an integer"
        for index, value in enumerate(values):
            if _int64(value) is None:
                faults.append(f"values[{index}]: Invalid value: {_quoted(value)}: {rule}")
    for index, value in enumerate(values):
        if wrong := value_faults(value):
            faults.append(f"values[{index}][{key}]: Invalid value: {_quoted(value)}: {'; '.join(wrong)}")
    return faults


def _broken_count_rule(operator: Operator, count: int) -> str | None:
    """The rule about the number of values that is broken, if one is."""
    if operator in ("In", "NotIn"):
        return None if count else "for 'in', 'notin' operators, values set can't be empty"
    if operator in ("Exists", "DoesNotExist"):
        return "values set must be empty for exists and does not exist" if count else None
    return None if count == 1 else "for 'Gt', 'Lt' operators, exactly one value is required"


def _field_faults(key: str, operator: Operator, values: list[str]) -> list[str]:
    return [] if len(values) == 1 else [f"values: Invalid value: {_listed(values)}: must have one element"]


def _requirement(written: LabelSelectorRequirement, operator: Operator) -> Requirement:
    key, values = written.key, written.values
    number = (_int64(values[0]) or 0) if operator in ("Gt", "Lt") else 0
    return Requirement(key, operator, frozenset(values), number, _spelled(key, operator, values))


def _equals(key: str, value: str) -> Requirement:
    return Requirement(key, "In", frozenset((value,)), text=f"{key}={value}")


def _spelled(key: str, operator: Operator, values: list[str]) -> str:
    if operator == "Exists":
        return key
    if operator == "DoesNotExist":
        return f"!{key}"
    if operator in ("Gt", "Lt"):
        return f"{key}{'>' if operator == 'Gt' else '<'}{values[0]}"
    return f"{key} {operator.lower()} ({','.join(sorted(values))})"


def _key(requirement: Requirement) -> str:
    return requirement.key


def _int64(text: str) -> int | None:
    """`text` as Go's ParseInt reads it, None if that fails."""
    if _INTEGER.fullmatch(text) is None:
        return None
    number = int(text)
    return number if number in _INT64 else None


def _canonical_int64(text: str) -> int | None:
    return _int64(text) if _CANONICAL_INTEGER.fullmatch(text) is not None else None


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise SelectorError(_joined(faults))


def _joined(faults: Sequence[str]) -> str:
    """Faults as Kubernetes lists them: each once, in brackets if there are several."""
    different = list(dict.fromkeys(faults))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]"


def _listed(values: list[str]) -> str:
    return "null" if isinstance(values, NoValues) else json.dumps(values, ensure_ascii=False, separators=(",", ":"))


_ESCAPES: Final = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


def _quoted(text: str) -> str:
    """`text` as Go quotes it."""
    return '"' + "".join(map(_quoted_character, text)) + '"'


def _quoted_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return _ESCAPES.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
