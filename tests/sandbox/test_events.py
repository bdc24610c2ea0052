"""Events: two APIs, one store."""

from __future__ import annotations

from .wire import Client

CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"

SCHEDULED = {
    "kind": "Event",
    "apiVersion": "events.k8s.io/v1",
    "metadata": {"name": "low-a.18ecffda5b73186d", "namespace": "default"},
    "eventTime": "2026-12-01T02:21:04.716203Z",
    "reportingController": "default-scheduler",
    "reportingInstance": "default-scheduler-host",
    "action": "Binding",
    "reason": "Scheduled",
    "regarding": {"kind": "Pod", "namespace": "default", "name": "low-a", "uid": "pod-uid", "apiVersion": "v1"},
    "note": "Successfully assigned default/low-a to node-1",
    "type": "Normal",
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}


def test_an_event_of_the_newer_api_is_read_through_the_older_one(client: Client) -> None:
    created = client.post(NEW, SCHEDULED)
    assert {key: created[key] for key in ("apiVersion", "note", "regarding")} == {
        "apiVersion": "events.k8s.io/v1",
        "note": SCHEDULED["note"],
        "regarding": SCHEDULED["regarding"],
    }
    core = client.get(f"{CORE}/low-a.18ecffda5b73186d")
    assert (core["apiVersion"], core["message"]) == ("v1", SCHEDULED["note"])
    assert core["involvedObject"] == SCHEDULED["regarding"]
    assert core["reportingComponent"] == "default-scheduler"
    assert core["metadata"] == created["metadata"]
    assert client.get(f"{NEW}/low-a.18ecffda5b73186d") == created


def test_an_event_of_the_older_api_is_read_through_the_newer_one(client: Client) -> None:
    event = {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "kube-scheduler.1", "namespace": "default"},
        "involvedObject": {"kind": "Lease", "namespace": "kube-system", "name": "kube-scheduler"},
        "reason": "LeaderElection",
        "message": "host became leader",
        "source": {"component": "default-scheduler"},
        "firstTimestamp": "2026-12-01T02:21:04Z",
        "lastTimestamp": "2026-12-01T02:21:04Z",
        "count": 1,
        "type": "Normal",
    }
    client.post(CORE, event)
    new = client.get(NEW)["items"][0]
    assert (new["note"], new["deprecatedCount"]) == ("host became leader", 1)
    assert new["deprecatedSource"] == {"component": "default-scheduler"}
    assert new["regarding"]["kind"] == "Lease"


def test_a_series_is_patched_through_either(client: Client) -> None:
    client.post(NEW, SCHEDULED)
    path = f"{NEW}/low-a.18ecffda5b73186d"
    series = {"count": 2, "lastObservedTime": "2026-12-01T02:22:04.000000Z"}
    patched = client.patch(path, {"series": series, "note": "again"}, "application/strategic-merge-patch+json")
    assert (patched["series"], patched["note"]) == (series, "again")
    core = client.get(f"{CORE}/low-a.18ecffda5b73186d")
    assert (core["series"], core["message"]) == (series, "again")


def test_a_pods_events_are_found_as_describe_asks_for_them(client: Client) -> None:
    client.post(NEW, SCHEDULED)
    selector = "involvedObject.name=low-a,involvedObject.namespace=default,involvedObject.uid=pod-uid"
    assert len(client.get(CORE, fieldSelector=selector)["items"]) == 1
    assert client.get(CORE, fieldSelector="involvedObject.uid=other")["items"] == []
    assert len(client.get(NEW, fieldSelector="regarding.name=low-a,reason=Scheduled")["items"]) == 1


def test_each_api_watches_in_its_own_form(client: Client) -> None:
    core, new = client.watch(CORE, resourceVersion=0), client.watch(NEW, resourceVersion=0)
    client.post(NEW, SCHEDULED)
    assert core.next()["object"]["message"] == SCHEDULED["note"]
    assert new.next()["object"]["note"] == SCHEDULED["note"]
    for stream in (core, new):
        stream.close()
