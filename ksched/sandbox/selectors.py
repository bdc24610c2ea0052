"""Label and field selectors as they stand in a query string, compiled into predicates over revisions.

`ksched.model.selectors` has the structured selectors of pods; this is the textual form that list, watch and
deletecollection take, which only an API server reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ksched.errors import Refused

if TYPE_CHECKING:
    from ksched.sandbox.revisions import Revision

Labels = Mapping[str, str]

_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")
_SET_TERM = re.compile(r"(?P<key>\S+)\s+(?P<operator>in|notin)\s*\((?P<values>[^()]*)\)\Z")
_EQUAL_TERM = re.compile(r"(?P<key>[^=!<>\s]+)\s*(?P<operator>==|=|!=)\s*(?P<value>[^=!<>\s]*)\Z")
_NUMBER_TERM = re.compile(r"(?P<key>[^=!<>\s]+)\s*(?P<operator>[<>])\s*(?P<value>-?\d+)\Z")
_EXISTS_TERM = re.compile(r"(?P<not>!?)\s*(?P<key>[^=!<>\s()]+)\Z")


def label_selector(text: str) -> Callable[[Labels], bool] | None:
    """The predicate that `text` means, or None where it selects everything.

    Raises `Refused` (400) for a selector that Kubernetes cannot parse.
    """
    terms = [_label_term(term) for term in _split(text)]
    if not terms:
        return None
    if len(terms) == 1:
        return terms[0]
    return lambda labels: all(term(labels) for term in terms)


def _split(text: str) -> list[str]:
    """The terms of a selector: separated by commas outside of parentheses."""
    terms, depth, start = [], 0, 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if character == "," and depth == 0:
            terms.append(text[start:at].strip())
            start = at + 1
    terms.append(text[start:].strip())
    if terms == [""]:
        return []
    if "" in terms:
        raise _unparsable(text, "found '', expected: identifier")
    return terms


def _label_term(term: str) -> Callable[[Labels], bool]:
    if found := _SET_TERM.match(term):
        key, values = found["key"], frozenset(value.strip() for value in found["values"].split(","))
        _check_label(term, key, *values)
        if found["operator"] == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if found := _EQUAL_TERM.match(term):
        key, value = found["key"], found["value"]
        _check_label(term, key, value)
        if found["operator"] == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if found := _NUMBER_TERM.match(term):
        key, bound, greater = found["key"], int(found["value"]), found["operator"] == ">"
        _check_label(term, key)
        return lambda labels: _compares(labels.get(key), bound, greater)
    if found := _EXISTS_TERM.match(term):
        key = found["key"]
        _check_label(term, key)
        if found["not"]:
            return lambda labels: key not in labels
        return lambda labels: key in labels
    raise _unparsable(term, "expected a key, key=value, key!=value, key in (...), key notin (...) or !key")


def _compares(value: str | None, bound: int, greater: bool) -> bool:
    if value is None or not value.removeprefix("-").isdecimal():
        return False
    return int(value) > bound if greater else int(value) < bound


def _check_label(term: str, key: str, *values: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if not _LABEL_NAME.match(name) or (slash and not _DNS_SUBDOMAIN.match(prefix)):
        raise _unparsable(term, f"{key!r} is not a label key")
    for value in values:
        if not _LABEL_VALUE.match(value):
            raise _unparsable(term, f"{value!r} is not a label value")


def _unparsable(text: str, why: str) -> Refused:
    return Refused(400, "BadRequest", f"unable to parse requirement: {why} in {text!r}")


def labels_match(selector: Mapping[str, Any] | None, labels: Labels) -> bool:
    """Whether a `LabelSelector` object selects `labels`: the empty one selects all, None selects nothing."""
    if selector is None:
        return False
    for key, value in (selector.get("matchLabels") or {}).items():
        if labels.get(key) != value:
            return False
    return all(_expression_matches(each, labels) for each in selector.get("matchExpressions") or ())


def _expression_matches(expression: Mapping[str, Any], labels: Labels) -> bool:
    key, values = expression.get("key", ""), expression.get("values") or ()
    match expression.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case other:
            raise Refused(400, "BadRequest", f"{other!r} is not a valid label selector operator")


# Fields are read once, when a revision is stored, because a selector is asked of every later change.

Extract = Callable[[dict[str, Any]], tuple[str, ...]]


def _pod(obj: dict[str, Any]) -> tuple[str, ...]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    return (
        spec.get("nodeName") or "",
        spec.get("schedulerName") or "",
        status.get("phase") or "",
        status.get("nominatedNodeName") or "",
        status.get("podIP") or "",
        spec.get("restartPolicy") or "",
        spec.get("serviceAccountName") or "",
        "true" if spec.get("hostNetwork") else "false",
    )


def _event(obj: dict[str, Any]) -> tuple[str, ...]:
    about, source = obj.get("involvedObject") or {}, obj.get("source") or {}
    return (
        about.get("kind") or "",
        about.get("namespace") or "",
        about.get("name") or "",
        about.get("uid") or "",
        about.get("apiVersion") or "",
        about.get("resourceVersion") or "",
        about.get("fieldPath") or "",
        obj.get("reason") or "",
        obj.get("reportingComponent") or source.get("component") or "",
        source.get("component") or obj.get("reportingComponent") or "",
        obj.get("type") or "",
    )


_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)


def _node(obj: dict[str, Any]) -> tuple[str, ...]:
    return ("true" if (obj.get("spec") or {}).get("unschedulable") else "false",)


def _phase(obj: dict[str, Any]) -> tuple[str, ...]:
    return ((obj.get("status") or {}).get("phase") or "",)


def _secret(obj: dict[str, Any]) -> tuple[str, ...]:
    return (obj.get("type") or "",)


def _slice(obj: dict[str, Any]) -> tuple[str, ...]:
    spec = obj.get("spec") or {}
    return (spec.get("nodeName") or "", spec.get("driver") or "")


FIELDS: dict[str, tuple[tuple[str, ...], Extract]] = {
    "Pod": (
        (
            "spec.nodeName",
            "spec.schedulerName",
            "status.phase",
            "status.nominatedNodeName",
            "status.podIP",
            "spec.restartPolicy",
            "spec.serviceAccountName",
            "spec.hostNetwork",
        ),
        _pod,
    ),
    "Event": (_EVENT_FIELDS, _event),
    "Node": (("spec.unschedulable",), _node),
    "Namespace": (("status.phase",), _phase),
    "Secret": (("type",), _secret),
    "ResourceSlice": (("spec.nodeName", "spec.driver"), _slice),
}
"""The selectable fields of a kind beyond metadata.name and metadata.namespace, and how they are read."""

# events.k8s.io names the fields of the one stored event differently.
_FIELD_ALIASES = {
    "regarding.kind": "involvedObject.kind",
    "regarding.namespace": "involvedObject.namespace",
    "regarding.name": "involvedObject.name",
    "regarding.uid": "involvedObject.uid",
    "regarding.apiVersion": "involvedObject.apiVersion",
    "regarding.resourceVersion": "involvedObject.resourceVersion",
    "regarding.fieldPath": "involvedObject.fieldPath",
    "reportingController": "reportingComponent",
}

_FIELD_TERM = re.compile(r"(?P<key>[^=!]+?)\s*(?P<operator>==|!=|=)\s*(?P<value>.*)\Z", re.DOTALL)
_UNESCAPED_COMMA = re.compile(r"(?<!\\),")


def field_selector(kind: str, text: str) -> Callable[[Revision], bool] | None:
    """The predicate over revisions of `kind` that `text` means, or None where it selects everything.

    Raises `Refused` (400) for a selector that cannot be parsed or names a field that is not selectable.
    """
    terms = [_field_term(kind, term.strip()) for term in _UNESCAPED_COMMA.split(text) if term.strip()]
    if not terms:
        return None
    if len(terms) == 1:
        return terms[0]
    return lambda revision: all(term(revision) for term in terms)


def _field_term(kind: str, term: str) -> Callable[[Revision], bool]:
    found = _FIELD_TERM.match(term)
    if not found:
        raise Refused(400, "BadRequest", f"invalid field selector {term!r}: expected field=value or field!=value")
    key = found["key"].strip()
    value = re.sub(r"\\(.)", r"\1", found["value"].strip())
    wanted = found["operator"] != "!="
    if key == "metadata.name":
        return lambda revision: (revision.name == value) is wanted
    if key == "metadata.namespace":
        return lambda revision: (revision.namespace == value) is wanted
    names = FIELDS[kind][0] if kind in FIELDS else ()
    if kind == "Event":
        key = _FIELD_ALIASES.get(key, key)
    if key not in names:
        raise Refused(400, "BadRequest", f"field label not supported: {key}")
    index = names.index(key)
    return lambda revision: (revision.fields[index] == value) is wanted


def only_name(text: str) -> str | None:
    """The name that a field selector pins (`metadata.name=NAME`), or None: then every object must be looked at."""
    found = re.fullmatch(r"metadata\.name==?([^,=!\\]+)", text)
    return found[1] if found else None
