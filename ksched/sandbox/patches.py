"""Patches that clients send: JSON patch (RFC 6902), merge patch (RFC 7396), and Kubernetes' strategic merge patch.

Each function takes the stored object and the decoded patch and gives a new object; neither is changed, though
parts of both may be shared with the result. A patch that cannot be understood or does not apply raises
`PatchError`. Server-side apply is in `apply.py`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Final

from ksched.errors import PatchError
from ksched.sandbox.list_keys import SETS, merge_key

Json = dict[str, Any]
Path = tuple[str, ...]

_DOES_NOT_APPLY: Final = 422


# ---- JSON patch


def json_patch(obj: Json, ops: list[Any]) -> Json:
    """The object after the operations of a JSON patch, in order; all of them or none."""
    if not isinstance(ops, list):
        raise PatchError(f"a JSON patch is a list of operations, got {_type_of(ops)}")
    document: Any = copy.deepcopy(obj)
    for index, op in enumerate(ops):
        try:
            document = _apply_op(document, op)
        except PatchError as error:
            raise PatchError(f"operation {index}: {error}", error.code) from None
    if not isinstance(document, dict):
        raise PatchError(f"the patched document must be an object, got {_type_of(document)}", _DOES_NOT_APPLY)
    return document


def _apply_op(document: Any, op: Any) -> Any:
    if not isinstance(op, dict):
        raise PatchError(f"expected an object, got {_type_of(op)}")
    act = _OPERATIONS.get(op.get("op", ""))
    if act is None:
        raise PatchError(f"op must be one of {', '.join(sorted(_OPERATIONS))}, got {op.get('op')!r}")
    return act(document, op)


def _op_add(document: Any, op: Json) -> Any:
    return _add(document, _pointer(op, "path"), copy.deepcopy(_value(op)))


def _op_remove(document: Any, op: Json) -> Any:
    return _remove(document, _pointer(op, "path"))


def _op_replace(document: Any, op: Json) -> Any:
    way = _pointer(op, "path")
    value = copy.deepcopy(_value(op))
    if not way:
        return value
    holder, step = _holder(document, way), way[-1]
    _get(holder, step)
    holder[_index(holder, step) if isinstance(holder, list) else step] = value
    return document


def _op_move(document: Any, op: Json) -> Any:
    source, target = _pointer(op, "from"), _pointer(op, "path")
    if len(target) > len(source) and target[: len(source)] == source:
        raise PatchError(f"{op['from']!r} cannot be moved into itself", _DOES_NOT_APPLY)
    value = _find(document, source)
    return _add(_remove(document, source), target, value)


def _op_copy(document: Any, op: Json) -> Any:
    return _add(document, _pointer(op, "path"), copy.deepcopy(_find(document, _pointer(op, "from"))))


def _op_test(document: Any, op: Json) -> Any:
    expected, found = _value(op), _find(document, _pointer(op, "path"))
    if not _same(expected, found):
        raise PatchError(f"test of {op['path']!r} failed: expected {expected!r}, got {found!r}", _DOES_NOT_APPLY)
    return document


_OPERATIONS: Final[dict[str, Callable[[Any, Json], Any]]] = {
    "add": _op_add,
    "remove": _op_remove,
    "replace": _op_replace,
    "move": _op_move,
    "copy": _op_copy,
    "test": _op_test,
}


def _value(op: Json) -> Any:
    if "value" not in op:
        raise PatchError(f"{op['op']} needs a value")
    return op["value"]


def _pointer(op: Json, field: str) -> Path:
    """The steps of a JSON pointer (RFC 6901)."""
    pointer = op.get(field)
    if not isinstance(pointer, str) or (pointer and not pointer.startswith("/")):
        raise PatchError(f"{field} must be a JSON pointer that starts with '/', got {pointer!r}")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])


def _find(document: Any, way: Path) -> Any:
    for step in way:
        document = _get(document, step)
    return document


def _holder(document: Any, way: Path) -> Any:
    holder = _find(document, way[:-1])
    if not isinstance(holder, dict | list):
        raise PatchError(f"{way[-1]!r} is in {_type_of(holder)}, not in an object or list", _DOES_NOT_APPLY)
    return holder


def _get(holder: Any, step: str) -> Any:
    if isinstance(holder, dict):
        if step in holder:
            return holder[step]
    elif isinstance(holder, list):
        index = _index(holder, step)
        if index < len(holder):
            return holder[index]
    raise PatchError(f"there is no {step!r} on the path", _DOES_NOT_APPLY)


def _index(holder: list[Any], step: str) -> int:
    if step == "-":
        return len(holder)
    # Pointers have no signs and no leading zeros; isdecimal alone would take other scripts' digits.
    if not (step.isascii() and step.isdecimal()) or (len(step) > 1 and step.startswith("0")):
        raise PatchError(f"{step!r} is not a position in a list", _DOES_NOT_APPLY)
    return int(step)


def _add(document: Any, way: Path, value: Any) -> Any:
    if not way:
        return value
    holder, step = _holder(document, way), way[-1]
    if isinstance(holder, dict):
        holder[step] = value
        return document
    index = _index(holder, step)
    if index > len(holder):
        raise PatchError(f"position {index} is beyond a list of {len(holder)}", _DOES_NOT_APPLY)
    holder.insert(index, value)
    return document


def _remove(document: Any, way: Path) -> Any:
    if not way:
        raise PatchError("the whole document cannot be removed", _DOES_NOT_APPLY)
    holder, step = _holder(document, way), way[-1]
    _get(holder, step)
    del holder[_index(holder, step) if isinstance(holder, list) else step]
    return document


def _same(left: Any, right: Any) -> bool:
    """Equality of JSON, where true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


# ---- merge patch


def merge_patch(obj: Json, patch: Any) -> Json:
    """The object after a merge patch: null removes a field, objects are merged, everything else replaces."""
    if not isinstance(patch, dict):
        raise PatchError(f"a merge patch is an object, got {_type_of(patch)}")
    return _merged(obj, patch)


def _merged(target: Any, patch: Json) -> Json:
    merged = dict(target) if isinstance(target, dict) else {}
    for field, value in patch.items():
        if value is None:
            merged.pop(field, None)
        elif isinstance(value, dict):
            merged[field] = _merged(merged.get(field), value)
        else:
            merged[field] = copy.deepcopy(value)
    return merged


# ---- strategic merge patch

_DIRECTIVE: Final = "$patch"
_RETAIN: Final = "$retainKeys"
_ORDER: Final = "$setElementOrder/"
_DELETE_PRIMITIVES: Final = "$deleteFromPrimitiveList/"


def strategic_merge(obj: Json, patch: Any, kind: str) -> Json:
    """The object after a strategic merge patch of its kind.

    Lists that are maps in disguise (containers by name, conditions by type, ...) are merged entry by entry, other lists
    replaced; the directives `$patch`, `$retainKeys`, `$setElementOrder/...` and `$deleteFromPrimitiveList/...` are
    obeyed wherever they may stand.
    """
    if not isinstance(patch, dict):
        raise PatchError(f"a strategic merge patch is an object, got {_type_of(patch)}")
    return _merge_map(obj, patch, (), kind)


def _merge_map(target: Json, patch: Json, path: Path, kind: str) -> Json:
    directive = patch.get(_DIRECTIVE)
    if directive == "replace":
        return {field: _without_directives(value) for field, value in patch.items() if field != _DIRECTIVE}
    if directive == "delete":
        return {}
    if directive not in {None, "merge"}:
        raise PatchError(f"{_where(path)}: $patch must be replace, delete or merge, got {directive!r}")
    merged = _retained(target, patch, path)
    for field, value in patch.items():
        if not field.startswith("$"):
            _merge_field(merged, field, value, patch, path, kind)
        elif field not in {_DIRECTIVE, _RETAIN}:
            _merge_bare_directive(merged, field, patch, path, kind)
    return merged


def _retained(target: Json, patch: Json, path: Path) -> Json:
    """A copy of the target, without the fields that `$retainKeys` does not name."""
    if _RETAIN not in patch:
        return dict(target)
    keep = patch[_RETAIN]
    if not isinstance(keep, list):
        raise PatchError(f"{_where(path)}: $retainKeys must be a list of field names, got {_type_of(keep)}")
    unnamed = [field for field in patch if not field.startswith("$") and field not in keep]
    if unnamed:
        raise PatchError(f"{_where(path)}: $retainKeys must name every field of its patch, {unnamed[0]!r} is missing")
    return {field: value for field, value in target.items() if field in keep}


def _merge_field(merged: Json, field: str, value: Any, patch: Json, path: Path, kind: str) -> None:
    if value is None:
        merged.pop(field, None)
    elif isinstance(value, dict):
        present = merged.get(field)
        merged[field] = _merge_map(present if isinstance(present, dict) else {}, value, (*path, field), kind)
        if value.get(_DIRECTIVE) == "delete":
            del merged[field]
    elif isinstance(value, list):
        present = merged.get(field)
        merged[field] = _merge_list(present if isinstance(present, list) else [], field, value, patch, path, kind)
    else:
        merged[field] = value


def _merge_bare_directive(merged: Json, directive: str, patch: Json, path: Path, kind: str) -> None:
    """Obey a list directive whose list the patch does not name: it only reorders or deletes."""
    for prefix in (_ORDER, _DELETE_PRIMITIVES):
        if directive.startswith(prefix):
            field = directive[len(prefix) :]
            if field not in patch and isinstance(merged.get(field), list):
                merged[field] = _merge_list(merged[field], field, [], patch, path, kind)
            return
    raise PatchError(f"{_where(path)}: unknown directive {directive!r}")


def _merge_list(present: list[Any], field: str, patched: list[Any], patch: Json, path: Path, kind: str) -> list[Any]:
    where = (*path, field)
    order = _list_of(patch, _ORDER + field, where)
    key = merge_key(field, path, kind)
    if key is not None:
        return _merge_entries(present, patched, key, order, where, kind)
    if field in SETS or _DELETE_PRIMITIVES + field in patch:
        gone = _list_of(patch, _DELETE_PRIMITIVES + field, where) or []
        return _merge_set(present, patched, gone, order, where)
    return [_without_directives(entry) for entry in patched]


def _list_of(patch: Json, directive: str, path: Path) -> list[Any] | None:
    value = patch.get(directive)
    if value is not None and not isinstance(value, list):
        raise PatchError(f"{_where(path)}: {directive} must be a list, got {_type_of(value)}")
    return value


def _merge_entries(
    present: list[Any], patched: list[Any], key: str, order: list[Any] | None, path: Path, kind: str
) -> list[Any]:
    """Merge a list whose entries are identified by `key`."""
    for entry in patched:
        if not isinstance(entry, dict):
            raise PatchError(f"{_where(path)}: entries must be objects, got {_type_of(entry)}")
    if any(entry.get(_DIRECTIVE) == "replace" for entry in patched):
        return [_without_directives(entry) for entry in patched if _DIRECTIVE not in entry]
    merged = list(present)
    for entry in patched:
        if key not in entry:
            raise PatchError(f"{_where(path)}: map: {entry} does not contain declared merge key: {key}")
        index = _index_of(merged, key, entry[key])
        if entry.get(_DIRECTIVE) == "delete":
            merged = [other for other in merged if not _has_key(other, key, entry[key])]
        elif index is None:
            merged.append(_merge_map({}, entry, path, kind))
        else:
            merged[index] = _merge_map(merged[index], entry, path, kind)
    if order is None:
        return merged
    wanted = [entry.get(key) if isinstance(entry, dict) else entry for entry in order]
    return _ordered(merged, present, wanted, lambda entry: entry.get(key) if isinstance(entry, dict) else entry)


def _index_of(entries: list[Any], key: str, value: Any) -> int | None:
    return next((index for index, entry in enumerate(entries) if _has_key(entry, key, value)), None)


def _has_key(entry: Any, key: str, value: Any) -> bool:
    return isinstance(entry, dict) and bool(entry.get(key) == value)


def _merge_set(
    present: list[Any], patched: list[Any], gone: list[Any], order: list[Any] | None, path: Path
) -> list[Any]:
    """Merge a list of strings: what the patch has is added once, what it deletes is gone."""
    for entry in [*present, *patched, *gone, *(order or ())]:
        if isinstance(entry, dict | list):
            raise PatchError(f"{_where(path)}: entries must be strings, got {_type_of(entry)}")
    merged = [entry for entry in dict.fromkeys([*present, *patched]) if entry not in gone]
    return merged if order is None else _ordered(merged, present, order, lambda entry: entry)


def _ordered(merged: list[Any], present: list[Any], wanted: list[Any], identify: Callable[[Any], Any]) -> list[Any]:
    """Sort the entries that the client knows as it wants them; others stay before what they stood before."""
    before = {identify(entry): position for position, entry in enumerate(present)}
    rank = {identity: position for position, identity in enumerate(wanted)}
    known = sorted((entry for entry in merged if identify(entry) in rank), key=lambda entry: rank[identify(entry)])
    others = [entry for entry in merged if identify(entry) not in rank]
    ordered: list[Any] = []
    while known and others:
        # An entry of the server goes first only where it stood before the client's next one.
        first, other = identify(known[0]), identify(others[0])
        other_first = first in before and other in before and before[other] < before[first]
        ordered.append(others.pop(0) if other_first or first not in before else known.pop(0))
    return ordered + known + others


def _without_directives(value: Any) -> Any:
    """A copy of a value that goes in as it is: no directives, no nulls."""
    if isinstance(value, dict):
        return {
            field: _without_directives(inner)
            for field, inner in value.items()
            if inner is not None and not field.startswith("$")
        }
    if isinstance(value, list):
        return [_without_directives(inner) for inner in value]
    return value


def _where(path: Path) -> str:
    return ".".join(path) or "the patch"


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    return _TYPE_NAMES.get(type(value), type(value).__name__)


_TYPE_NAMES: Final[dict[type, str]] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "true or false",
    int: "a number",
    float: "a number",
}
