"""Label and field selectors as written in a query."""

from __future__ import annotations

import pytest

from ksched.errors import Refused
from ksched.sandbox.revisions import Object, Revision
from ksched.sandbox.selectors import field_selector, label_selector, labels_match

WEB = {"app": "web", "tier": "front", "example.com/size": "12"}


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        pytest.param("app=web", True, id="= is equality"),
        pytest.param("app==web", True, id="== is equality too"),
        pytest.param("app=db", False, id="another value is not equal"),
        pytest.param("gone=web", False, id="a missing label equals nothing"),
        pytest.param("app!=db", True, id="!= selects another value"),
        pytest.param("app!=web", False, id="!= drops the value"),
        pytest.param("gone!=web", True, id="!= selects objects without the label"),
        pytest.param("app in (web,db)", True, id="in selects one of the values"),
        pytest.param("app in (db, cache)", False, id="in drops other values"),
        pytest.param("gone in (web)", False, id="in drops objects without the label"),
        pytest.param("app notin (db)", True, id="notin selects other values"),
        pytest.param("app notin (web)", False, id="notin drops the value"),
        pytest.param("gone notin (web)", True, id="notin selects objects without the label"),
        pytest.param("app", True, id="a key alone asks for the label"),
        pytest.param("gone", False, id="a key alone drops objects without it"),
        pytest.param("!gone", True, id="! asks for its absence"),
        pytest.param("!app", False, id="! drops objects that have it"),
        pytest.param("example.com/size>5", True, id="> compares numbers"),
        pytest.param("example.com/size<5", False, id="< compares numbers"),
        pytest.param("app>5", False, id="> drops what is no number"),
        pytest.param("app=web,tier=front", True, id="all terms must hold"),
        pytest.param("app=web,tier=back", False, id="one term that fails drops it"),
        pytest.param("app in (web,db),!gone,tier!=back", True, id="commas within parentheses separate values"),
        pytest.param(" app = web , tier ", True, id="spaces do not matter"),
        pytest.param("app=", False, id="an empty value is a value"),
    ],
)
def test_a_label_selector(text: str, selected: bool) -> None:
    selector = label_selector(text)
    assert selector is not None
    assert selector(WEB) is selected


def test_an_empty_label_selector_selects_everything() -> None:
    assert label_selector("") is None


@pytest.mark.parametrize(
    "text", ["app=web,", "app in web", "=web", "a b", "app=we b", "-x", "app===x", "app in (a", "a=b=c"]
)
def test_a_malformed_label_selector_is_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        label_selector(text)
    assert caught.value.code == 400


POD = {
    "metadata": {"name": "one", "namespace": "ns", "uid": "u"},
    "spec": {"nodeName": "node-1", "schedulerName": "ksched"},
    "status": {"phase": "Running"},
}
EVENT = {
    "metadata": {"name": "one.1", "namespace": "ns", "uid": "u"},
    "involvedObject": {"kind": "Pod", "name": "one", "namespace": "ns", "uid": "pod-uid"},
    "reason": "Scheduled",
    "type": "Normal",
    "reportingComponent": "ksched",
}
NODE = {"metadata": {"name": "node-1", "uid": "u"}, "spec": {"unschedulable": True}}


@pytest.mark.parametrize(
    ("kind", "obj", "text", "selected"),
    [
        pytest.param("Pod", POD, "metadata.name=one", True, id="every kind has its name"),
        pytest.param("Pod", POD, "metadata.namespace!=ns", False, id="and its namespace"),
        pytest.param("Pod", POD, "spec.nodeName=node-1", True, id="pods on a node"),
        pytest.param("Pod", POD, "spec.nodeName=", False, id="pods on no node"),
        pytest.param("Pod", POD, "spec.nodeName!=", True, id="pods on any node"),
        pytest.param("Pod", POD, "spec.schedulerName==ksched", True, id="pods of a scheduler"),
        pytest.param("Pod", POD, "status.phase!=Succeeded,status.phase!=Failed", True, id="pods that still run"),
        pytest.param("Pod", POD, "status.phase=Running,spec.nodeName=node-2", False, id="all terms must hold"),
        pytest.param("Event", EVENT, "involvedObject.uid=pod-uid,involvedObject.name=one", True, id="a pod's events"),
        pytest.param("Event", EVENT, "regarding.uid=pod-uid", True, id="a pod's events, in the newer words"),
        pytest.param("Event", EVENT, "reason=Scheduled,type!=Warning", True, id="events by reason and type"),
        pytest.param("Event", EVENT, "reportingController=other", False, id="events by who reports"),
        pytest.param("Node", NODE, "spec.unschedulable=true", True, id="cordoned nodes"),
        pytest.param("Node", NODE, "spec.unschedulable=false", False, id="nodes that are not cordoned"),
    ],
)
def test_a_field_selector(kind: str, obj: Object, text: str, selected: bool) -> None:
    selector = field_selector(kind, text)
    assert selector is not None
    assert selector(Revision(kind, obj, 1)) is selected


@pytest.mark.parametrize(
    ("kind", "text"), [("Pod", "spec.image=x"), ("Node", "spec.nodeName=x"), ("Pod", "spec.nodeName")]
)
def test_a_field_that_is_not_selectable_is_refused(kind: str, text: str) -> None:
    with pytest.raises(Refused) as caught:
        field_selector(kind, text)
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        pytest.param(None, False, id="no selector selects nothing"),
        pytest.param({}, True, id="the empty selector selects all"),
        pytest.param({"matchLabels": {"app": "web"}}, True, id="labels that match"),
        pytest.param({"matchLabels": {"app": "db"}}, False, id="labels that do not"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}, True, id="In"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}, False, id="NotIn"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, True, id="Exists"),
        pytest.param({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, False, id="DoesNotExist"),
    ],
)
def test_a_selector_object(selector: Object | None, selected: bool) -> None:
    assert labels_match(selector, WEB) is selected
