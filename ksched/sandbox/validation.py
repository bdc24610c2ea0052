"""Field errors as the API server words them, and the checks that several kinds share.

`Findings` collects what is wrong with one object and refuses it with a single 422 `Status`, as a real API
server does; `defaults.py` and `pod_rules.py` say what to check. Checks of single strings are cached: a cluster
has few distinct labels, names of containers and quantities, and a benchmark creates thousands of pods a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from ksched.errors import QuantityError, Refused
from ksched.model.quantity import Quantity, parse_quantity
from ksched.sandbox.resources import STORED_KINDS

Json = dict[str, Any]

_LABEL_TEXT: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_TEXT: Final = rf"{_LABEL_TEXT}(\.{_LABEL_TEXT})*"
_QUALIFIED_TEXT: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_TEXT: Final = f"({_QUALIFIED_TEXT})?"
_SERVICE_TEXT: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"

_label = re.compile(_LABEL_TEXT).fullmatch
_subdomain = re.compile(_SUBDOMAIN_TEXT).fullmatch
_qualified = re.compile(_QUALIFIED_TEXT).fullmatch
_service = re.compile(_SERVICE_TEXT).fullmatch

_BETWEEN: Final = "must start and end with an alphanumeric character"
_SUBDOMAIN_RULE: Final = (
    f"a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and {_BETWEEN}"
    f" (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_TEXT}')"
)
_LABEL_RULE: Final = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and {_BETWEEN}"
    f" (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL_TEXT}')"
)
_SERVICE_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character"
    f" (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_SERVICE_TEXT}')"
)
_KEY_RULE: Final = (
    f"name part must consist of alphanumeric characters, '-', '_' or '.', and {_BETWEEN}"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED_TEXT}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and"
    f" {_BETWEEN}"
    f" (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '{_VALUE_TEXT}')"
)


class Findings:
    """What is wrong with one object; `refuse` turns it into the answer."""

    __slots__ = ("_causes",)

    def __init__(self) -> None:
        self._causes: list[dict[str, str]] = []

    def __bool__(self) -> bool:
        return bool(self._causes)

    def required(self, field: str, detail: str = "") -> None:
        """A field must be there and is not."""
        self._add("FieldValueRequired", field, f"Required value: {detail}" if detail else "Required value")

    def invalid(self, field: str, value: object, detail: str) -> None:
        """A field has a value that breaks a rule."""
        self._add("FieldValueInvalid", field, f"Invalid value: {_shown(value)}: {detail}")

    def duplicate(self, field: str, value: object) -> None:
        """Two entries that must differ are the same."""
        self._add("FieldValueDuplicate", field, f"Duplicate value: {_shown(value)}")

    def unsupported(self, field: str, value: object, supported: Iterable[str]) -> None:
        """A field has a value that is not in its enumeration."""
        known = ", ".join(f'"{each}"' for each in sorted(supported))
        self._add("FieldValueNotSupported", field, f"Unsupported value: {_shown(value)}: supported values: {known}")

    def forbidden(self, field: str, detail: str) -> None:
        """A field may not be set or changed."""
        self._add("FieldValueForbidden", field, f"Forbidden: {detail}")

    def refuse(self, kind: str, name: str) -> None:
        """Raise `Refused` (422 Invalid) if anything was found."""
        if not self._causes:
            return
        texts = [f"{cause['field']}: {cause['message']}" for cause in self._causes]
        listed = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        group = STORED_KINDS[kind].group if kind in STORED_KINDS else ""
        qualified = f"{kind}.{group}" if group else kind
        details = {"name": name, "group": group, "kind": kind}
        raise Refused(422, "Invalid", f'{qualified} "{name}" is invalid: {listed}', self._causes, details=details)

    def _add(self, reason: str, field: str, message: str) -> None:
        self._causes.append({"reason": reason, "message": message, "field": field})


def check_name(findings: Findings, kind: str, name: str) -> None:
    """Check `metadata.name` by the rule of its kind."""
    rule = _name_fault(kind, name)
    if rule:
        findings.invalid("metadata.name", name, rule)


def _name_fault(kind: str, name: str) -> str | None:
    if kind == "Service":
        valid, limit, rule = _service, 63, _SERVICE_RULE
    elif kind == "Namespace":
        valid, limit, rule = _label, 63, _LABEL_RULE
    else:
        valid, limit, rule = _subdomain, 253, _SUBDOMAIN_RULE
    if len(name) > limit:
        return f"must be no more than {limit} bytes"
    return None if valid(name) else rule


def check_labels(findings: Findings, labels: Mapping[str, str], field: str) -> None:
    """Check keys and values of labels (or of a node selector, which follows the same rules)."""
    for key, value in labels.items():
        if not _label_is_valid(key, value):
            _explain_label(findings, key, value, field)


@lru_cache(maxsize=1 << 15)
def _label_is_valid(key: str, value: str) -> bool:
    return _key_fault(key) is None and _value_fault(value) is None


def _explain_label(findings: Findings, key: str, value: str, field: str) -> None:
    key_fault, value_fault = _key_fault(key), _value_fault(value)
    if key_fault:
        findings.invalid(field, key, key_fault)
    if value_fault:
        findings.invalid(field, value, value_fault)


def _key_fault(key: str) -> str | None:
    prefix, slash, name = key.rpartition("/")
    if slash and not (_subdomain(prefix) and len(prefix) <= 253):
        return f"prefix part {_SUBDOMAIN_RULE}"
    if not name:
        return "name part must be non-empty"
    if len(name) > 63:
        return "name part must be no more than 63 bytes"
    return None if _qualified(name) else _KEY_RULE


def _value_fault(value: str) -> str | None:
    if len(value) > 63:
        return "must be no more than 63 bytes"
    return None if not value or _qualified(value) else _VALUE_RULE


@lru_cache(maxsize=1 << 12)
def label_key_fault(key: str) -> str | None:
    """Why `key` is not a valid label key, or None."""
    return _key_fault(key)


@lru_cache(maxsize=1 << 12)
def dns_label_fault(name: str) -> str | None:
    """Why `name` is not an RFC 1123 label (names of containers, volumes, gates), or None."""
    if len(name) > 63:
        return "must be no more than 63 bytes"
    return None if _label(name) else _LABEL_RULE


@lru_cache(maxsize=1 << 14)
def quantity(text: str, kind: str) -> Quantity:
    """The quantity written as `text`; raises `Refused` (400) as the API server's decoder does."""
    try:
        return parse_quantity(text)
    except QuantityError as error:
        raise malformed(kind, str(error)) from error


def malformed(kind: str, why: str) -> Refused:
    """The refusal (400) of an object that is not of its kind's shape."""
    version = STORED_KINDS[kind].api_version if kind in STORED_KINDS else "v1"
    return Refused(400, "BadRequest", f'{kind} in version "{version}" cannot be handled as a {kind}: {why}')


def _shown(value: object) -> str:
    if isinstance(value, Quantity):
        return f'"{value}"'
    return orjson.dumps(value).decode()
