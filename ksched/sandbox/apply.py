"""Server-side apply: a manager states the fields that it wants, and the server remembers whose they are.

Ownership is kept in `metadata.managedFields` as sets of field paths (`FieldsV1`). Here a set is a Python set of
paths, a path is a tuple of steps as FieldsV1 writes them: `f:spec` for a field, `k:{"name":"main"}` for an
entry of a list that is a map in disguise, `v:"x"` for a member of a set. `list_keys.py` says which list is
what.

It is good for what `kubectl apply --server-side` does: create, change, give up fields, and conflict with
another manager. Only managers that apply are recorded, and, through `record_update`, what others write to an
object that somebody applied.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import orjson

from ksched.errors import ApplyConflict, PatchError
from ksched.sandbox.defaults import drop_nulls
from ksched.sandbox.list_keys import KEY_DEFAULTS, SETS, apply_keys

Json = dict[str, Any]
FieldPath = tuple[str, ...]

# Maps that are one value, as the API's types have it.
_ATOMIC_MAPS: Final = frozenset({"selector", "labelSelector", "namespaceSelector", "nodeSelector", "claimRef"})
# What identifies the object or belongs to the server is nobody's field.
_UNOWNED: Final = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        *(
            ("f:metadata", f"f:{field}")
            for field in (
                "name",
                "namespace",
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "managedFields",
            )
        ),
    }
)


@dataclass(slots=True)
class _Share:
    """One entry of managedFields: who owns which fields, and how they came by them."""

    entry: Json
    fields: set[FieldPath]

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes two entries the same: manager, operation, subresource."""
        return self.entry["manager"], self.entry["operation"], self.entry.get("subresource", "")

    def describe(self) -> str:
        """The owner, as a conflict names it."""
        text = f'"{self.entry["manager"]}"'
        if self.entry.get("subresource"):
            text += f' with subresource "{self.entry["subresource"]}"'
        return text if self.entry["operation"] == "Apply" else f"{text} using {self.entry['apiVersion']}"


def server_side_apply(live: Json | None, applied: Any, *, manager: str, force: bool, kind: str, now: str) -> Json:
    """The object after `manager` applied its configuration to `live` (None creates it).

    Fields that the manager applied before and does not any more are removed, unless somebody else owns them. A field
    that another manager owns with another value raises `ApplyConflict`, or changes hands with `force`.
    """
    wanted_object = _configuration(applied)
    wanted = {path for path in _paths(wanted_object, kind) if not _is_unowned(path)}
    shares = _shares(live)
    own = next((share for share in shares if share.identity == (manager, "Apply", "")), None)
    others = [share for share in shares if share is not own]
    conflicts = _conflicts(live or {}, wanted_object, wanted, others)
    if conflicts and not force:
        raise _conflict_error(conflicts)
    for share, paths in conflicts:
        share.fields -= set(paths)
    merged = _merge(live or {}, wanted_object, (), kind)
    if own is not None:
        given_up = own.fields - wanted
        _remove_fields(merged, given_up, wanted.union(*(share.fields for share in others)))
    entry = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": wanted_object.get("apiVersion") or (live or {}).get("apiVersion", ""),
        "time": now,
        "fieldsType": "FieldsV1",
    }
    if own is not None and own.fields == wanted and _same_but_shares(live or {}, merged):
        entry["time"] = own.entry.get("time", now)
    _write_shares(merged, [_Share(entry, wanted), *others])
    return merged


def record_update(old: Json, new: Json, *, manager: str, subresource: str, kind: str, now: str) -> Json:
    """The new object with `manager` recorded as the owner of what it changed, if anybody applied the object before.

    Who writes a field without applying takes it from its owners, who learn of it when they apply again.
    """
    shares = _shares(old)
    if not shares:
        return new
    before = {path for path in _paths(old, kind) if not _is_unowned(path)}
    after = {path for path in _paths(new, kind) if not _is_unowned(path)}
    changed = {
        path for path in after if path not in before or (_is_leaf(path) and _value(old, path) != _value(new, path))
    }
    if not changed and before == after:
        return new
    identity = (manager, "Update", subresource)
    own = next((share for share in shares if share.identity == identity), None)
    if own is None:
        entry = {"manager": manager, "operation": "Update", "fieldsType": "FieldsV1"}
        own = _Share(entry | ({"subresource": subresource} if subresource else {}), set())
        shares.append(own)
    own.entry = {**own.entry, "apiVersion": new.get("apiVersion", ""), "time": now}
    for share in shares:
        share.fields = ((share.fields - changed) & after) if share is not own else ((own.fields | changed) & after)
    recorded = {**new, "metadata": dict(new["metadata"])}
    _write_shares(recorded, shares)
    return recorded


def _configuration(applied: Any) -> Json:
    if not isinstance(applied, dict):
        raise PatchError(f"an applied configuration is an object, got {type(applied).__name__}")
    if not isinstance(applied.get("metadata") or {}, dict):
        raise PatchError("metadata: expected an object")
    if (applied.get("metadata") or {}).get("managedFields"):
        raise PatchError("metadata.managedFields must be nil")
    configuration = copy.deepcopy(applied)
    drop_nulls(configuration)
    return configuration


# ---- conflicts


def _conflicts(
    live: Json, applied: Json, wanted: set[FieldPath], others: list[_Share]
) -> list[tuple[_Share, list[FieldPath]]]:
    found: list[tuple[_Share, list[FieldPath]]] = []
    for share in others:
        paths = sorted(
            path for path in wanted & share.fields if _is_leaf(path) and _value(live, path) != _value(applied, path)
        )
        if paths:
            found.append((share, paths))
    return found


def _conflict_error(conflicts: list[tuple[_Share, list[FieldPath]]]) -> ApplyConflict:
    causes: list[dict[str, str]] = []
    texts: list[str] = []
    for share, paths in conflicts:
        fields = [_shown(path) for path in paths]
        message = f"conflict with {share.describe()}"
        causes.extend({"reason": "FieldManagerConflict", "message": message, "field": field} for field in fields)
        if len(fields) == 1:
            texts.append(f"{message}: {fields[0]}")
        else:
            texts.append("\n- ".join([f"conflicts with {share.describe()}:", *fields]))
    count = len(causes)
    plural = "conflict" if count == 1 else "conflicts"
    return ApplyConflict(causes, f"Apply failed with {count} {plural}: " + "\n".join(texts))


def _shown(path: FieldPath) -> str:
    """A path as people read it: .spec.containers[name="main"].image."""
    text = ""
    for step in path:
        kind, rest = step[:2], step[2:]
        if kind == "f:":
            text += f".{rest}"
        elif kind == "k:":
            keys = orjson.loads(rest)
            text += "[" + ",".join(f"{key}={orjson.dumps(value).decode()}" for key, value in keys.items()) + "]"
        else:
            text += f"[={rest}]"
    return text


# ---- field paths


def _paths(obj: Json, kind: str) -> Iterable[FieldPath]:
    """Every path that an object has: its leaves, and the entries of its keyed lists."""
    yield from _paths_of_map(obj, (), (), kind)


def _paths_of_map(value: Json, prefix: FieldPath, fields: tuple[str, ...], kind: str) -> Iterable[FieldPath]:
    for field, inner in value.items():
        path = (*prefix, f"f:{field}")
        if isinstance(inner, dict) and inner and field not in _ATOMIC_MAPS:
            yield from _paths_of_map(inner, path, (*fields, field), kind)
        elif isinstance(inner, list) and inner and field in SETS:
            yield from ((*path, f"v:{_json(member)}") for member in _strings(inner, field))
        elif isinstance(inner, list) and inner and (keys := apply_keys(field, fields, kind)):
            for entry in inner:
                step = _entry_step(entry, keys, field)
                yield (*path, step)
                yield from _paths_of_map(entry, (*path, step), (*fields, field), kind)
        else:
            yield path


def _entry_step(entry: Any, keys: tuple[str, ...], field: str) -> str:
    if not isinstance(entry, dict):
        raise PatchError(f"{field}: entries must be objects, got {type(entry).__name__}")
    return f"k:{_json(_identity(entry, keys, field))}"


def _identity(entry: Json, keys: tuple[str, ...], field: str) -> Json:
    identity = {key: entry.get(key, KEY_DEFAULTS.get(key)) for key in sorted(keys)}
    missing = [key for key, value in identity.items() if value is None]
    if missing:
        raise PatchError(f"{field}: an entry without {missing[0]}, which tells it from the others")
    return identity


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


def _is_leaf(path: FieldPath) -> bool:
    """Whether a path ends in a field: entries and members have no value of their own."""
    return path[-1].startswith("f:")


def _is_unowned(path: FieldPath) -> bool:
    return path[:1] in _UNOWNED or path[:2] in _UNOWNED


def _value(obj: Any, path: FieldPath) -> Any:
    """What an object has at a path, or None."""
    for step in path:
        obj = _descend(obj, step)
        if obj is None:
            return None
    return obj


def _descend(obj: Any, step: str) -> Any:
    kind, rest = step[:2], step[2:]
    if kind == "f:":
        return obj.get(rest) if isinstance(obj, dict) else None
    if not isinstance(obj, list):
        return None
    wanted = orjson.loads(rest)
    if kind == "v:":
        return wanted if wanted in obj else None
    return next((entry for entry in obj if _is_entry(entry, wanted)), None)


def _is_entry(entry: Any, identity: Json) -> bool:
    return isinstance(entry, dict) and all(
        entry.get(key, KEY_DEFAULTS.get(key)) == value for key, value in identity.items()
    )


# ---- merging and removing


def _merge(live: Any, applied: Json, fields: tuple[str, ...], kind: str) -> Json:
    """The live map with what was applied written over it; nothing of either is shared where it may change."""
    merged = dict(live) if isinstance(live, dict) else {}
    for field, value in applied.items():
        present = merged.get(field)
        if isinstance(value, dict) and value and field not in _ATOMIC_MAPS:
            merged[field] = _merge(present, value, (*fields, field), kind)
        elif isinstance(value, list) and field in SETS:
            merged[field] = list(dict.fromkeys([*_list(present), *_strings(value, field)]))
        elif isinstance(value, list) and (keys := apply_keys(field, fields, kind)):
            merged[field] = _merge_entries(_list(present), value, keys, (*fields, field), kind)
        elif not (value == {} and isinstance(present, dict)):
            merged[field] = value
    return merged


def _merge_entries(
    present: list[Json], applied: list[Json], keys: tuple[str, ...], fields: tuple[str, ...], kind: str
) -> list[Json]:
    merged = list(present)
    for entry in applied:
        identity = _identity(entry, keys, fields[-1])
        index = next((number for number, other in enumerate(merged) if _is_entry(other, identity)), None)
        if index is None:
            merged.append(_merge({}, entry, fields, kind))
        else:
            merged[index] = _merge(merged[index], entry, fields, kind)
    return merged


def _list(present: Any) -> list[Any]:
    return present if isinstance(present, list) else []


def _strings(members: list[Any], field: str) -> list[str]:
    for member in members:
        if not isinstance(member, str):
            raise PatchError(f"{field}: members must be strings, got {type(member).__name__}")
    return members


def _remove_fields(obj: Json, given_up: set[FieldPath], kept: set[FieldPath]) -> None:
    """Remove what its only owner gave up. An entry goes with all that it holds, unless somebody owns a part of it."""
    for path in sorted(given_up, key=len):
        if path in kept or any(other[: len(path)] == path for other in kept):
            continue
        _remove_at(obj, path)


def _remove_at(holder: Any, path: FieldPath) -> None:
    """Remove one path from a map or list, copying what is on the way, and maps and lists that are left empty."""
    step, rest = path[0], path[1:]
    child = _descend(holder, step)
    if child is None:
        return
    if rest:
        if not isinstance(child, dict | list):
            return
        child = copy.copy(child)
        _remove_at(child, rest)
        if child:
            _replace(holder, step, child)
            return
    _drop(holder, step)


def _replace(holder: Any, step: str, child: Any) -> None:
    if isinstance(holder, dict):
        holder[step[2:]] = child
    else:
        identity = orjson.loads(step[2:])
        holder[:] = [child if _is_entry(entry, identity) else entry for entry in holder]


def _drop(holder: Any, step: str) -> None:
    if isinstance(holder, dict):
        del holder[step[2:]]
        return
    wanted = orjson.loads(step[2:])
    if step.startswith("v:"):
        holder.remove(wanted)
    else:
        holder[:] = [entry for entry in holder if not _is_entry(entry, wanted)]


# ---- managedFields


def _shares(obj: Json | None) -> list[_Share]:
    metadata = (obj or {}).get("metadata") or {}
    return [
        _Share(entry, _from_fields_v1(entry.get("fieldsV1") or {})) for entry in metadata.get("managedFields") or ()
    ]


def _write_shares(obj: Json, shares: list[_Share]) -> None:
    entries = [{**share.entry, "fieldsV1": _to_fields_v1(share.fields)} for share in shares if share.fields]
    metadata = obj["metadata"] = dict(obj.get("metadata") or {})
    if entries:
        metadata["managedFields"] = entries
    else:
        metadata.pop("managedFields", None)


def _same_but_shares(left: Json, right: Json) -> bool:
    def rest(obj: Json) -> Json:
        metadata = {field: value for field, value in (obj.get("metadata") or {}).items() if field != "managedFields"}
        return {**obj, "metadata": metadata}

    return rest(left) == rest(right)


def _from_fields_v1(fields: Json) -> set[FieldPath]:
    paths: set[FieldPath] = set()
    pending: list[tuple[FieldPath, Json]] = [((), fields)]
    while pending:
        prefix, node = pending.pop()
        for step, inner in node.items():
            if step == ".":
                paths.add(prefix)
            elif inner:
                pending.append(((*prefix, step), inner))
            else:
                paths.add((*prefix, step))
    return paths


def _to_fields_v1(paths: set[FieldPath]) -> Json:
    root: Json = {}
    ends: list[Json] = []
    for path in sorted(paths):
        node = root
        for step in path:
            node = node.setdefault(step, {})
        ends.append(node)
    for node in ends:
        if node:
            node["."] = {}
    return root
