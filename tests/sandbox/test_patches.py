"""Patches of all three kinds: what they change, what they refuse, and that they leave their input alone."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.errors import PatchError
from ksched.sandbox.patches import json_patch, merge_patch, strategic_merge

Json = dict[str, Any]

# ---- JSON patch

DOCUMENT: Json = {"a": {"b": [1, 2, 3]}, "m~n": 1, "x/y": 2, "yes": True}


@pytest.mark.parametrize(
    ("ops", "result"),
    [
        pytest.param([{"op": "add", "path": "/c", "value": 1}], {**DOCUMENT, "c": 1}, id="a field is added"),
        pytest.param(
            [{"op": "add", "path": "/a/b/1", "value": 9}],
            {**DOCUMENT, "a": {"b": [1, 9, 2, 3]}},
            id="an entry is inserted",
        ),
        pytest.param(
            [{"op": "add", "path": "/a/b/-", "value": 9}], {**DOCUMENT, "a": {"b": [1, 2, 3, 9]}}, id="or appended"
        ),
        pytest.param(
            [{"op": "add", "path": "/yes", "value": 0}], {**DOCUMENT, "yes": 0}, id="adding a present field replaces it"
        ),
        pytest.param([{"op": "remove", "path": "/a/b/0"}], {**DOCUMENT, "a": {"b": [2, 3]}}, id="an entry is removed"),
        pytest.param([{"op": "replace", "path": "/m~0n", "value": 5}], {**DOCUMENT, "m~n": 5}, id="~0 is a tilde"),
        pytest.param([{"op": "replace", "path": "/x~1y", "value": 5}], {**DOCUMENT, "x/y": 5}, id="~1 is a slash"),
        pytest.param([{"op": "replace", "path": "", "value": {"n": 1}}], {"n": 1}, id="the whole document is replaced"),
        pytest.param(
            [{"op": "move", "from": "/a/b/0", "path": "/first"}],
            {**DOCUMENT, "a": {"b": [2, 3]}, "first": 1},
            id="an entry moves",
        ),
        pytest.param(
            [{"op": "copy", "from": "/a", "path": "/z"}, {"op": "add", "path": "/z/b/-", "value": 4}],
            {**DOCUMENT, "z": {"b": [1, 2, 3, 4]}},
            id="a copy is a copy",
        ),
        pytest.param(
            [{"op": "test", "path": "/a/b", "value": [1, 2, 3]}], DOCUMENT, id="a test that holds changes nothing"
        ),
        pytest.param([], DOCUMENT, id="no operations change nothing"),
    ],
)
def test_json_patch(ops: list[Json], result: Json) -> None:
    before = copy.deepcopy(DOCUMENT)
    assert json_patch(before, ops) == result
    assert before == DOCUMENT


@pytest.mark.parametrize(
    ("ops", "code", "text"),
    [
        pytest.param(
            [{"op": "test", "path": "/a/b/0", "value": 2}], 422, "test of '/a/b/0' failed", id="a test that fails"
        ),
        pytest.param([{"op": "test", "path": "/yes", "value": 1}], 422, "expected 1, got True", id="true is not 1"),
        pytest.param([{"op": "remove", "path": "/none"}], 422, "there is no 'none'", id="removing what is not there"),
        pytest.param(
            [{"op": "replace", "path": "/none", "value": 1}],
            422,
            "there is no 'none'",
            id="replacing what is not there",
        ),
        pytest.param(
            [{"op": "add", "path": "/none/a", "value": 1}], 422, "there is no 'none'", id="adding to what is not there"
        ),
        pytest.param(
            [{"op": "add", "path": "/a/b/4", "value": 1}], 422, "position 4 is beyond", id="adding beyond the end"
        ),
        pytest.param(
            [{"op": "add", "path": "/a/b/01", "value": 1}], 422, "not a position", id="a position with a leading zero"
        ),
        pytest.param(
            [{"op": "add", "path": "/yes/a", "value": 1}], 422, "not in an object or list", id="a field of a scalar"
        ),
        pytest.param([{"op": "remove", "path": "/a/b/-"}], 422, "there is no '-'", id="removing after the end"),
        pytest.param([{"op": "move", "from": "/a", "path": "/a/c"}], 422, "into itself", id="moving into itself"),
        pytest.param([{"op": "merge", "path": "/a"}], 400, "op must be one of", id="an operation that is none"),
        pytest.param([{"op": "add", "path": "/a"}], 400, "add needs a value", id="an add without a value"),
        pytest.param(
            [{"op": "add", "path": "a", "value": 1}], 400, "must be a JSON pointer", id="a path that is no pointer"
        ),
        pytest.param([1], 400, "expected an object, got a number", id="an operation that is no object"),
        pytest.param({"op": "add"}, 400, "a list of operations, got an object", id="a patch that is no list"),
        pytest.param(
            [{"op": "replace", "path": "", "value": 1}], 422, "must be an object", id="a document that is no object"
        ),
    ],
)
def test_json_patch_that_fails(ops: Any, code: int, text: str) -> None:
    before = copy.deepcopy(DOCUMENT)
    with pytest.raises(PatchError) as failed:
        json_patch(before, ops)
    assert failed.value.code == code
    assert text in str(failed.value)
    assert before == DOCUMENT


# ---- merge patch


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="a value replaces"),
        pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="a field is added"),
        pytest.param({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="null removes"),
        pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="a value replaces a list"),
        pytest.param({"a": [{"b": 1}]}, {"a": [1]}, {"a": [1]}, id="a list replaces a list"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": None}}, {"a": {"c": 2}}, id="objects are merged"),
        pytest.param({"a": 1}, {"a": {"b": {"c": None}}}, {"a": {"b": {}}}, id="nulls of new objects are dropped"),
        pytest.param({"e": None}, {"a": 1}, {"e": None, "a": 1}, id="a null of the target stays"),
    ],
)
def test_merge_patch(target: Json, patch: Json, result: Json) -> None:
    before = copy.deepcopy(target)
    assert merge_patch(target, patch) == result
    assert target == before


def test_a_merge_patch_is_an_object() -> None:
    with pytest.raises(PatchError, match="a merge patch is an object, got a list"):
        merge_patch({}, [])


_FIELDS = st.sampled_from(["a", "b", "c", "d"])
_VALUES = st.recursive(
    st.booleans() | st.integers(0, 3) | st.sampled_from(["x", "y"]) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(_FIELDS, inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(_FIELDS, _VALUES, max_size=4)


def _difference(before: Json, after: Json) -> Json:
    """The merge patch that turns one object into the other."""
    patch: Json = dict.fromkeys(before.keys() - after.keys())
    for field, value in after.items():
        old = before.get(field)
        if isinstance(value, dict) and isinstance(old, dict):
            patch[field] = _difference(old, value)
        elif field not in before or old is not value:
            patch[field] = value
    return patch


@given(_OBJECTS, _OBJECTS)
def test_merging_the_difference_gives_the_target(before: Json, after: Json) -> None:
    kept = copy.deepcopy(before)
    assert merge_patch(before, _difference(before, after)) == after
    assert before == kept


@given(_OBJECTS, _OBJECTS)
def test_without_known_lists_a_strategic_merge_is_a_merge(before: Json, after: Json) -> None:
    patch = _difference(before, after)
    assert strategic_merge(before, patch, "Pod") == merge_patch(before, patch)


# ---- strategic merge patch

POD: Json = {
    "metadata": {"name": "web", "labels": {"app": "web"}, "finalizers": ["a", "b"]},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "nginx:1",
                "env": [{"name": "A", "value": "1"}],
                "ports": [{"containerPort": 80}],
            },
            {"name": "side", "image": "proxy:1"},
        ],
        "tolerations": [{"key": "a", "operator": "Exists"}],
        "volumes": [{"name": "data", "emptyDir": {}}],
    },
    "status": {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]},
}
MAIN, SIDE = POD["spec"]["containers"]


def at(obj: Any, path: str) -> Any:
    for step in path.split("."):
        obj = obj[int(step)] if isinstance(obj, list) else obj.get(step)
    return obj


@pytest.mark.parametrize(
    ("patch", "path", "result"),
    [
        pytest.param(
            {"spec": {"containers": [{"name": "main", "image": "nginx:2"}]}},
            "spec.containers",
            [{**MAIN, "image": "nginx:2"}, SIDE],
            id="containers are merged by name",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "new", "image": "n"}]}},
            "spec.containers",
            [MAIN, SIDE, {"name": "new", "image": "n"}],
            id="a new container is appended",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "side", "$patch": "delete"}]}},
            "spec.containers",
            [MAIN],
            id="a container is deleted",
        ),
        pytest.param(
            {"spec": {"containers": [{"$patch": "replace"}, {"name": "only", "image": "o"}]}},
            "spec.containers",
            [{"name": "only", "image": "o"}],
            id="a list is replaced where it says so",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}]}},
            "spec.containers.0.env",
            [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
            id="lists within lists are merged",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "main", "ports": [{"containerPort": 80, "name": "http"}]}]}},
            "spec.containers.0.ports",
            [{"containerPort": 80, "name": "http"}],
            id="ports of containers by number",
        ),
        pytest.param(
            {"spec": {"containers": [{"name": "main", "image": None}]}},
            "spec.containers.0.image",
            None,
            id="null removes within an entry",
        ),
        pytest.param(
            {"spec": {"tolerations": [{"key": "b"}]}},
            "spec.tolerations",
            [{"key": "b"}],
            id="tolerations are one value",
        ),
        pytest.param(
            {"spec": {"volumes": [{"name": "data", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/d"}}]}},
            "spec.volumes",
            [{"name": "data", "hostPath": {"path": "/d"}}],
            id="retained keys drop the others",
        ),
        pytest.param(
            {"metadata": {"finalizers": ["b", "c"]}}, "metadata.finalizers", ["a", "b", "c"], id="finalizers are a set"
        ),
        pytest.param(
            {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"]}},
            "metadata.finalizers",
            ["b"],
            id="from which one is deleted",
        ),
        pytest.param(
            {"metadata": {"$setElementOrder/finalizers": ["c", "b", "a"], "finalizers": ["c"]}},
            "metadata.finalizers",
            ["c", "b", "a"],
            id="and which has an order",
        ),
        pytest.param(
            {
                "spec": {
                    "$setElementOrder/containers": [{"name": "side"}, {"name": "main"}],
                    "containers": [{"name": "main", "image": "nginx:2"}],
                }
            },
            "spec.containers",
            [SIDE, {**MAIN, "image": "nginx:2"}],
            id="entries are put in order",
        ),
        pytest.param(
            {"spec": {"$setElementOrder/containers": [{"name": "side"}, {"name": "main"}]}},
            "spec.containers",
            [SIDE, MAIN],
            id="an order alone is enough",
        ),
        pytest.param(
            {"metadata": {"labels": {"$patch": "replace", "b": "c"}}},
            "metadata.labels",
            {"b": "c"},
            id="a map is replaced",
        ),
        pytest.param({"metadata": {"labels": {"$patch": "delete"}}}, "metadata.labels", None, id="a map is deleted"),
        pytest.param(
            {
                "status": {
                    "$setElementOrder/conditions": [{"type": "PodScheduled"}, {"type": "DisruptionTarget"}],
                    "conditions": [{"type": "DisruptionTarget", "status": "True", "lastProbeTime": None}],
                }
            },
            "status.conditions",
            [*POD["status"]["conditions"], {"type": "DisruptionTarget", "status": "True"}],
            id="a condition is added, without its nulls",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "PodScheduled", "status": "True", "reason": None}]}},
            "status.conditions",
            [{"type": "PodScheduled", "status": "True"}],
            id="a condition is changed",
        ),
    ],
)
def test_strategic_merge(patch: Json, path: str, result: Any) -> None:
    before, sent = copy.deepcopy(POD), copy.deepcopy(patch)
    assert at(strategic_merge(before, patch, "Pod"), path) == result
    assert (before, patch) == (POD, sent)


@pytest.mark.parametrize(
    ("present", "wanted", "result"),
    [
        pytest.param("abc", "ca", "bca", id="an entry that stood before the client's next one goes first"),
        pytest.param("sab", "ba", "sba", id="an entry of the server stays in front"),
        pytest.param("abs", "ba", "bas", id="or at the end"),
        pytest.param("as", "na", "sna", id="a new entry goes after what the server has before it"),
    ],
)
def test_order_with_entries_that_the_client_does_not_know(present: str, wanted: str, result: str) -> None:
    obj = {"spec": {"volumes": [{"name": name} for name in present]}}
    order = [{"name": name} for name in wanted]
    new = [{"name": name} for name in wanted if name not in present]
    merged = strategic_merge(obj, {"spec": {"$setElementOrder/volumes": order, "volumes": new}}, "Pod")
    assert "".join(volume["name"] for volume in merged["spec"]["volumes"]) == result


@pytest.mark.parametrize(
    ("kind", "obj", "patch", "result"),
    [
        pytest.param(
            "Service",
            {"spec": {"ports": [{"port": 80, "name": "http"}]}},
            {"spec": {"ports": [{"port": 80, "targetPort": 8080}, {"port": 443}]}},
            {"spec": {"ports": [{"port": 80, "name": "http", "targetPort": 8080}, {"port": 443}]}},
            id="ports of services by port",
        ),
        pytest.param(
            "Node",
            {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
            {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}},
            {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}},
            id="taints are one value, as kubectl taint expects",
        ),
        pytest.param(
            "Node",
            {"spec": {"unschedulable": True}},
            {"spec": {"unschedulable": None}},
            {"spec": {}},
            id="uncordon",
        ),
        pytest.param(
            "Deployment",
            {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}},
            {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
            {"spec": {"strategy": {"type": "Recreate"}}},
            id="a strategy leaves its old parameters behind",
        ),
        pytest.param(
            "Pod",
            {"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}]}},
            {"metadata": {"ownerReferences": [{"uid": "1", "$patch": "delete"}]}},
            {"metadata": {"ownerReferences": []}},
            id="owners by uid",
        ),
    ],
)
def test_strategic_merge_of_other_kinds(kind: str, obj: Json, patch: Json, result: Json) -> None:
    assert strategic_merge(obj, patch, kind) == result


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        pytest.param([], "is an object, got a list", id="a patch that is no object"),
        pytest.param(
            {"spec": {"$patch": "swap"}}, "$patch must be replace, delete or merge", id="a directive that is none"
        ),
        pytest.param({"spec": {"$swap/x": []}}, "unknown directive '$swap/x'", id="another one"),
        pytest.param(
            {"spec": {"containers": [{"image": "a"}]}},
            "does not contain declared merge key: name",
            id="an entry without its key",
        ),
        pytest.param(
            {"spec": {"containers": ["a"]}}, "entries must be objects, got a string", id="an entry that is no object"
        ),
        pytest.param(
            {"spec": {"$retainKeys": "a"}}, "must be a list of field names", id="retained keys that are no list"
        ),
        pytest.param(
            {"spec": {"$retainKeys": ["a"], "b": 1}}, "'b' is missing", id="retained keys without one of the patch"
        ),
        pytest.param(
            {"spec": {"$setElementOrder/volumes": {}}}, "must be a list, got an object", id="an order that is no list"
        ),
    ],
)
def test_strategic_merge_that_fails(patch: Any, text: str) -> None:
    with pytest.raises(PatchError) as failed:
        strategic_merge(POD, patch, "Pod")
    assert text in str(failed.value)
    assert failed.value.code == 400
