"""The pools themselves."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ksched.cache.cluster import Cluster
from ksched.queue import events
from ksched.queue.pools import Happening, Heap, InFlight, Place, QueuedPod, UnschedulablePods
from ksched.testing import pod

SHAPES = Cluster(max_nodes=64).shapes


def queued(name: str, timestamp: float = 0.0) -> QueuedPod:
    return QueuedPod(SHAPES.info(pod(name).build()), timestamp)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["push", "pop", "remove"]), st.integers(0, 9), st.integers(0, 3)), max_size=80)
)
def test_heap_is_a_sorted_list_that_keeps_the_order_of_equals(operations: list[tuple[str, int, int]]) -> None:
    heap = Heap(Place.ACTIVE, lambda one: one.timestamp)
    model: list[tuple[int, int, QueuedPod]] = []
    for number, (operation, name, order) in enumerate(operations):
        if operation == "push":
            one = queued(f"pod-{name}", order)
            heap.push(one)
            model.append((order, number, one))
        elif model and operation == "pop":
            model.sort(key=lambda entry: entry[:2])
            assert heap.pop() is model.pop(0)[2]
        elif model:
            one = model.pop(name % len(model))[2]
            heap.remove(one)
            assert one.place is Place.NOWHERE
        assert len(heap) == len(model)
        assert list(heap) == [entry[2] for entry in sorted(model, key=lambda entry: entry[:2])]
        assert heap.peek() is (min(model, key=lambda entry: entry[:2])[2] if model else None)


def test_heap_does_not_keep_what_was_taken_out_of_its_middle() -> None:
    heap = Heap(Place.ACTIVE, lambda one: one.timestamp)
    pods = [queued(f"pod-{number}", number) for number in range(1000)]
    for one in pods:
        heap.push(one)
    for one in pods[1:]:
        heap.remove(one)
    assert len(heap._entries) < 50


def test_pool_gives_the_pods_of_the_groups_that_an_event_concerns_oldest_first() -> None:
    pool = UnschedulablePods()
    for name, timestamp, plugin, gate in (("a", 3.0, "Fit", ""), ("b", 1.0, "Taints", ""), ("c", 2.0, "Fit", "Gate")):
        one = queued(name, timestamp)
        one.unschedulable_plugins, one.gating_plugin = frozenset({plugin}), gate
        pool.add(one)
    assert [one.pod.name for one in pool.concerned(lambda group: True)] == ["b", "c", "a"]
    assert [one.pod.name for one in pool.concerned(lambda group: "Fit" in group.rejecting_plugins)] == ["c", "a"]
    assert (len(pool), pool.gated) == (3, 1)
    for one in list(pool):
        pool.remove(one)
    assert (len(pool), pool.gated) == (0, 0)


def test_what_happened_is_remembered_for_the_oldest_pod_in_flight_and_no_longer() -> None:
    flight = InFlight()
    first, second = queued("first"), queued("second")
    added, deleted = Happening(events.NODE_ADD, None, None), Happening(events.NODE_DELETE, None, None)
    flight.record(added)
    flight.start(first)
    flight.record(added)
    flight.start(second)
    flight.record(deleted)
    assert flight.since(first.uid) == [added, deleted]
    assert flight.since(second.uid) == [deleted]
    flight.done(first.uid)
    assert flight.timeline() == [second, deleted]
    flight.done(second.uid)
    flight.done(second.uid)
    assert flight.timeline() == []
