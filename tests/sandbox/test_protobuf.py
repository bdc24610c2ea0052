"""The protobuf bodies that kubectl writes, as it wrote them, and those that are answered 415."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.sandbox.protobuf import MEDIA_TYPE, Unreadable, decode

from .wire import PODS, Client

# kubectl create deployment web --image=registry.example/web:1 --replicas=0 --port=80
DEPLOYMENT = bytes.fromhex(
    "6b3873000a150a07617070732f7631120a4465706c6f796d656e7412c7010a1f0a0377656212001a0022002a003200380042005a0a0a"
    "0361707012037765621295010800120c0a0a0a0361707012037765621a7b0a1c0a0012001a0022002a003200380042005a0a0a036170"
    "701203776562125b123d0a03776562121672656769737472792e6578616d706c652f7765623a312a00320a0a001000185022002a0042"
    "006a007200800100880100900100a201001a00320042004a0052005800600068008201008a01009a0100c2010022020a00280038001a"
    "0c0800100018002000280038001a002200"
)
# kubectl create namespace foo
NAMESPACE = bytes.fromhex(
    "6b3873000a0f0a02763112094e616d657370616365121b0a130a03666f6f12001a0022002a0032003800420012001a020a001a002200"
)
# kubectl create priorityclass high --value=-5
PRIORITY_CLASS = bytes.fromhex(
    "6b3873000a250a147363686564756c696e672e6b38732e696f2f7631120d5072696f72697479436c617373123b0a140a046869676812"
    "001a0022002a0032003800420010fbffffffffffffffff01180022002a14507265656d70744c6f7765725072696f726974791a002200"
)
# kubectl create poddisruptionbudget x --selector=app=web --min-available=50%
BUDGET = bytes.fromhex(
    "6b3873000a200a09706f6c6963792f76311213506f6444697372757074696f6e427564676574123a0a110a017812001a0022002a0032"
    "003800420012190a09080110001a03353025120c0a0a0a0361707012037765621a0a080018002000280030001a002200"
)
# kubectl create secret generic s --from-literal=a=b
SECRET = bytes.fromhex(
    "6b3873000a0c0a0276311206536563726574121d0a110a017312001a0022002a0032003800420012060a01611201621a001a002200"
)


def envelope(kind: str, raw: bytes = b"") -> bytes:
    """A body of any kind, in Kubernetes' envelope."""
    meta = b"\x0a\x02v1" + b"\x12%c%b" % (len(kind), kind.encode())
    return b"k8s\x00\x0a%c%b\x12%c%b" % (len(meta), meta, len(raw), raw)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(
            DEPLOYMENT,
            {
                "kind": "Deployment",
                "apiVersion": "apps/v1",
                "metadata": {"name": "web", "labels": {"app": "web"}},
                "spec": {
                    "replicas": 0,
                    "selector": {"matchLabels": {"app": "web"}},
                    "template": {
                        "metadata": {"labels": {"app": "web"}},
                        "spec": {
                            "containers": [
                                {"name": "web", "image": "registry.example/web:1", "ports": [{"containerPort": 80}]}
                            ]
                        },
                    },
                },
            },
            id="a deployment, with its zero replicas",
        ),
        pytest.param(
            NAMESPACE, {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "foo"}}, id="a namespace"
        ),
        pytest.param(
            PRIORITY_CLASS,
            {
                "kind": "PriorityClass",
                "apiVersion": "scheduling.k8s.io/v1",
                "metadata": {"name": "high"},
                "value": -5,
                "preemptionPolicy": "PreemptLowerPriority",
            },
            id="a priority class, with a negative number",
        ),
        pytest.param(
            BUDGET,
            {
                "kind": "PodDisruptionBudget",
                "apiVersion": "policy/v1",
                "metadata": {"name": "x"},
                "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
            },
            id="a disruption budget, with a share as text",
        ),
        pytest.param(
            SECRET,
            {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": "s"}, "data": {"a": "Yg=="}},
            id="a secret, with bytes in base64",
        ),
    ],
)
def test_what_kubectl_writes(body: bytes, expected: dict[str, Any]) -> None:
    assert decode(body) == expected


@pytest.mark.parametrize(
    ("body", "why"),
    [
        pytest.param(b"", "does not begin", id="nothing"),
        pytest.param(b"{}", "does not begin", id="JSON"),
        pytest.param(envelope("Pod"), "Pod is only read as JSON", id="a pod"),
        pytest.param(envelope("Binding"), "Binding is only read as JSON", id="a binding"),
        pytest.param(b"k8s\x00", "an object without a kind", id="an empty envelope"),
        pytest.param(envelope("Namespace", b"\x78\x01"), "field 15 of Namespace", id="a field that is not known"),
        pytest.param(envelope("Namespace", b"\x0a\x05\x0a"), "ends within a field", id="half a field"),
        pytest.param(envelope("Namespace", b"\x08\x01"), "wire type 0", id="a number where an object is expected"),
        pytest.param(envelope("Namespace", b"\x0a\x03\x0a\x01\xff"), "not UTF-8", id="text that is none"),
        pytest.param(envelope("Namespace", b"\xff" * 11), "longer than 64 bits", id="a number without an end"),
    ],
)
def test_what_is_not_read(body: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why):
        decode(body)


ENTRY = st.tuples(st.integers(1, 14), st.sampled_from([0, 2]), st.binary(max_size=12))


@given(st.lists(ENTRY, max_size=6), st.integers(1, 14))
def test_no_body_breaks_the_decoder(entries: list[tuple[int, int, bytes]], field: int) -> None:
    inner = b"".join(_entry(*each) for each in entries)
    for kind in ("Deployment", "Secret", "DeleteOptions"):
        for raw in (inner, _entry(field, 2, inner[:100])):
            with suppress(Unreadable):
                assert decode(envelope(kind, raw))["kind"] == kind


def _entry(number: int, wire_type: int, data: bytes) -> bytes:
    tag = bytes([number << 3 | wire_type])
    if wire_type == 2:
        return tag + bytes([len(data)]) + data
    return tag + bytes(byte | 0x80 for byte in data[:9]) + b"\x01"


def test_a_deployment_is_created_from_protobuf_and_answered_in_json(client: Client) -> None:
    path = "/apis/apps/v1/namespaces/default/deployments"
    answer = client.request("POST", path, DEPLOYMENT, media=MEDIA_TYPE, accept=f"{MEDIA_TYPE},application/json")
    assert (answer.code, answer.body["spec"]["replicas"]) == (201, 0)


def test_other_bodies_are_415(client: Client) -> None:
    refused = client.refused("POST", PODS, envelope("Pod"), media=MEDIA_TYPE)
    assert refused[:2] == (415, "UnsupportedMediaType")
