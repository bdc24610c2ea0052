"""What the API server sends becomes objects, or a complaint that names the object and the field."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.api.decode import DEVICE_CLASS, NAMESPACE, NODE, POD, ApiStatus, Malformed, identity, status_of
from ksched.errors import ObjectError
from ksched.model.pod import Pod


def pod(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "metadata": {"name": "a", "namespace": "default", "uid": "u1", "resourceVersion": "7"},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]},
        "status": {"phase": "Pending"},
    }
    for path, value in changes.items():
        here = made
        *parents, last = path.split("__")
        for parent in parents:
            here = here.setdefault(parent, {})
        here[last] = value
    return made


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.mark.parametrize(
    ("raw", "reads"),
    [
        pytest.param(encoded(pod()), lambda p: p.key == "default/a", id="a plain pod"),
        pytest.param(
            encoded(pod(spec__nodeName=None)), lambda p: p.node_name == "", id="an explicit null is an absent field"
        ),
        pytest.param(encoded(pod(metadata__labels=None)), lambda p: p.labels == {}, id="a null map is an empty one"),
        pytest.param(
            encoded(pod(spec__containers=[{"name": "c", "ports": None, "resources": {"requests": None}}])),
            lambda p: p.spec.containers[0].ports == [],
            id="a null deep inside is dropped too",
        ),
        pytest.param(
            encoded(pod(spec__mystery={"x": None})),
            lambda p: p.name == "a",
            id="unknown fields are ignored, whatever is in them",
        ),
        pytest.param(
            encoded(pod(metadata__annotations={"big": "x" * 1_000_000})),
            lambda p: len(p.metadata.annotations["big"]) == 1_000_000,
            id="1 MB annotations",
        ),
        pytest.param(
            b'{"metadata":{"name":"a","namespace":"default","labels":{"x":"\xff"}}}',
            lambda p: p.labels == {"x": "\ufffd"},
            id="invalid UTF-8 is replaced, as in Go",
        ),
        pytest.param(
            encoded(pod(spec__overhead={"cpu": 10**60})),
            lambda p: p.spec.overhead["cpu"] == pytest.approx(1e60),
            id="a huge quantity is left to whoever reads quantities",
        ),
    ],
)
def test_what_is_understood(raw: bytes, reads: Any) -> None:
    assert reads(POD.object(raw))


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        pytest.param(
            encoded(pod(spec__nodeName=5)),
            "Pod default/a: spec.nodeName: expected str, got int",
            id="a number for a text",
        ),
        pytest.param(
            encoded(pod(spec__priority="high")),
            "Pod default/a: spec.priority: expected int, got str",
            id="a text for a number",
        ),
        pytest.param(
            encoded(pod(spec__priority=10**30)),
            "Pod default/a: spec.priority: expected int <= 2147483647",
            id="a number out of range",
        ),
        pytest.param(
            encoded(pod(spec__containers={"name": "c"})),
            "Pod default/a: spec.containers: expected array, got object",
            id="an object for an array",
        ),
        pytest.param(
            encoded(pod(spec__containers=[None])),
            "Pod default/a: spec.containers[0]: expected object, got null",
            id="a null in an array",
        ),
        pytest.param(
            encoded(pod(metadata__name=None)), "Pod (unnamed): metadata.name: expected a name, got none", id="no name"
        ),
        pytest.param(b'{"metadata":{"name":"a"', "Pod (unnamed): input data was truncated", id="half an object"),
        pytest.param(b"", "Pod (unnamed): input data was truncated", id="nothing"),
        pytest.param(b"<html>", "Pod (unnamed): JSON is malformed", id="not JSON"),
        pytest.param(b"[1]", "Pod (unnamed): expected object, got array", id="an array"),
        pytest.param(
            b'{"metadata":{"name":"a","namespace":"n"},"spec":{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
            "Pod (unnamed): nested too deeply",
            id="nested without end",
        ),
    ],
)
def test_what_is_refused_is_named(raw: bytes, complaint: str) -> None:
    with pytest.raises(ObjectError) as refused:
        POD.object(raw)
    assert complaint.lower() in str(refused.value).lower()


def event(type: str, object: Any) -> bytes:
    return encoded({"type": type, "object": object})


def test_a_watch_line_is_a_type_and_an_object() -> None:
    type, decoded = POD.event(event("ADDED", pod()))
    assert type == "ADDED"
    assert isinstance(decoded, Pod)
    assert decoded.key == "default/a"


def test_a_bookmark_has_only_a_version() -> None:
    type, decoded = POD.event(
        event(
            "BOOKMARK",
            {
                "kind": "Pod",
                "metadata": {"resourceVersion": "12", "annotations": {"k8s.io/initial-events-end": "true"}},
            },
        )
    )
    assert type == "BOOKMARK"
    assert isinstance(decoded, Pod)
    assert (decoded.metadata.resource_version, decoded.metadata.annotations) == (
        "12",
        {"k8s.io/initial-events-end": "true"},
    )


@pytest.mark.parametrize("decoder", [POD, NODE, NAMESPACE, DEVICE_CLASS], ids=lambda decoder: decoder.kind)
def test_an_error_event_carries_a_status(decoder: Any) -> None:
    error = {
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": "too old resource version",
        "reason": "Expired",
        "code": 410,
    }
    type, decoded = decoder.event(event("ERROR", error))
    assert type == "ERROR"
    assert decoded == ApiStatus(status="Failure", message="too old resource version", reason="Expired", code=410)


def test_a_malformed_object_in_a_watch_keeps_its_identity() -> None:
    type, decoded = POD.event(event("MODIFIED", pod(spec__priority="high")))
    assert type == "MODIFIED"
    assert isinstance(decoded, Malformed)
    assert decoded.identity == ("default", "a", "u1", "7")
    assert decoded.identity.key == "default/a"


def test_a_line_that_is_no_event_is_refused_with_an_excerpt() -> None:
    with pytest.raises(ObjectError, match=r"Pod: a watch line is not an event: .*oops"):
        POD.event(b"oops")


def test_one_bad_item_costs_only_itself() -> None:
    body = encoded(
        {
            "metadata": {"resourceVersion": "40", "continue": "more"},
            "items": [pod(), pod(metadata__name="b", spec__priority=[]), pod(metadata__name="")],
        }
    )
    page = POD.page(body)
    assert [item.name for item in page.items] == ["a"]
    assert [bad.identity.key for bad in page.malformed] == ["default/b", "default/"]
    assert (page.resource_version, page.continue_token) == ("40", "more")


@pytest.mark.parametrize("items", [None, []], ids=["null", "empty"])
def test_an_empty_list(items: Any) -> None:
    assert POD.page(encoded({"metadata": {"resourceVersion": "1"}, "items": items})) == ([], [], "1", "")


def test_a_page_that_is_no_list() -> None:
    with pytest.raises(ObjectError, match=r"Pod: the answer to a list is not a list: .*items"):
        POD.page(b'{"kind":"Pod"}')


def test_status_of_an_answer_that_is_none() -> None:
    assert status_of(b"<html>") is None
    assert status_of(b'{"hello":"world"}') is None


def test_identity_is_read_from_what_is_otherwise_nonsense() -> None:
    assert identity(b'{"spec":1e999,"metadata":{"name":"x","uid":3}}') == ("", "x", "", "")
    assert identity(b"null") == ("", "", "", "")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["metadata", "name", "spec", "containers", "status", "labels", "x"]), inner, max_size=4
        )
    ),
    max_leaves=20,
)


@given(json_values)
def test_no_object_does_more_than_be_refused(value: Any) -> None:
    type, decoded = POD.event(event("ADDED", value))
    assert type == "ADDED"
    assert isinstance(decoded, Pod | Malformed)


@given(st.binary(max_size=60))
def test_no_bytes_do_more_than_be_refused(raw: bytes) -> None:
    for read in (POD.object, POD.event, POD.page):
        with contextlib.suppress(ObjectError):
            read(raw)


@given(st.dictionaries(st.text(min_size=1, max_size=5), st.text(max_size=5), max_size=3), st.booleans())
def test_both_paths_read_the_same_pod(labels: dict[str, str], with_null: bool) -> None:
    plain = pod(metadata__labels=labels)
    other = pod(metadata__labels=labels, **({"spec__nodeName": None} if with_null else {}))
    assert msgspec.to_builtins(POD.object(encoded(plain))) == msgspec.to_builtins(POD.object(encoded(other)))
