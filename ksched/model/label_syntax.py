"""Which label keys and values Kubernetes accepts, and what it says of others.

Resource names follow the rule of label keys, `selectors` and `resource_names` ask here. The sentences are Kubernetes'
own, as they come back in conditions and events.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_MAX_NAME_BYTES: Final = 63
_MAX_PREFIX_BYTES: Final = 253
_REMEMBERED: Final = 4096
_LONGEST_REMEMBERED: Final = 320
"""Longer texts are wrong and may be megabytes: they are looked at anew each time, so that memory stays bounded."""

_NAME_SYNTAX: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_SYNTAX: Final = f"({_NAME_SYNTAX})?"
_SUBDOMAIN_SYNTAX: Final = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"

_NAME: Final = re.compile(_NAME_SYNTAX)
_VALUE: Final = re.compile(_VALUE_SYNTAX)
_SUBDOMAIN: Final = re.compile(_SUBDOMAIN_SYNTAX)

_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME_SYNTAX}')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE_SYNTAX}')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_SYNTAX}')"
)
_PARTS_RULE: Final = (
    f"a valid label key {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)


def key_faults(key: str) -> tuple[str, ...]:
    """What is wrong with `key`: a name of at most 63 bytes, with an optional DNS subdomain and a slash before it."""
    return _key_faults(key) if len(key) <= _LONGEST_REMEMBERED else _key_faults.__wrapped__(key)


def value_faults(value: str) -> tuple[str, ...]:
    """What is wrong with `value` as the value of a label."""
    return _value_faults(value) if len(value) <= _LONGEST_REMEMBERED else _value_faults.__wrapped__(value)


@lru_cache(_REMEMBERED)
def _key_faults(key: str) -> tuple[str, ...]:
    parts = key.split("/")
    if len(parts) > 2:
        return (_PARTS_RULE,)
    *prefix, name = parts
    return (*(_prefix_faults(prefix[0]) if prefix else ()), *_name_faults(name))


@lru_cache(_REMEMBERED)
def _value_faults(value: str) -> tuple[str, ...]:
    faults = []
    if _bytes(value) > _MAX_NAME_BYTES:
        faults.append(f"must be no more than {_MAX_NAME_BYTES} bytes")
    if _VALUE.fullmatch(value) is None:
        faults.append(_VALUE_RULE)
    return tuple(faults)


def _prefix_faults(prefix: str) -> list[str]:
    if not prefix:
        return ["prefix part must be non-empty"]
    faults = []
    if _bytes(prefix) > _MAX_PREFIX_BYTES:
        faults.append(f"prefix part must be no more than {_MAX_PREFIX_BYTES} bytes")
    if _SUBDOMAIN.fullmatch(prefix) is None:
        faults.append(f"prefix part {_SUBDOMAIN_RULE}")
    return faults


def _name_faults(name: str) -> list[str]:
    faults = []
    if not name:
        faults.append("name part must be non-empty")
    elif _bytes(name) > _MAX_NAME_BYTES:
        faults.append(f"name part must be no more than {_MAX_NAME_BYTES} bytes")
    if _NAME.fullmatch(name) is None:
        faults.append(f"name part {_NAME_RULE}")
    return faults


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
