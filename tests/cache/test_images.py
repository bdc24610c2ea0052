"""Images: three rules of upstream's cache that show in ImageLocality's scores."""

from __future__ import annotations

from ksched.cache.cluster import Cluster
from ksched.testing import cluster, node, pod

MIB = 1 << 20
APP = "app:1"


def seen(of: Cluster, name: str) -> tuple[int, int] | None:
    """(size, number of nodes) as a node knows the image."""
    info = of.node(name)
    assert info is not None
    return info.image(APP)


def test_the_first_nodes_size_counts_for_all() -> None:
    here = cluster([node("a").image(APP, 50 * MIB), node("b").image(APP, 70 * MIB)])
    here.begin_cycle()
    assert seen(here, "b") == (50 * MIB, 2)


def test_a_sole_holder_renews_the_size() -> None:
    here = cluster([node("a").image(APP, 50 * MIB)])
    here.put_node(node("a").image(APP, 60 * MIB).build())
    here.begin_cycle()
    assert seen(here, "a") == (60 * MIB, 1)


def test_a_node_that_nothing_happened_to_keeps_an_older_count() -> None:
    here = cluster([node("a").image(APP, 50 * MIB)])
    here.begin_cycle()
    here.put_node(node("b").image(APP, 50 * MIB).build())
    here.begin_cycle()
    assert seen(here, "a") == (50 * MIB, 1)
    assert seen(here, "b") == (50 * MIB, 2)


def test_a_pod_on_the_node_refreshes_its_count() -> None:
    here = cluster([node("a").image(APP, 50 * MIB)])
    here.begin_cycle()
    here.put_node(node("b").image(APP, 50 * MIB).build())
    here.put_pod(pod("p").on("a").build())
    here.begin_cycle()
    assert seen(here, "a") == (50 * MIB, 2)


def test_a_node_that_names_an_image_twice_counts_once() -> None:
    here = cluster([node("a").image(APP, 50 * MIB).image(APP, 50 * MIB)])
    here.begin_cycle()
    assert seen(here, "a") == (50 * MIB, 1)


def test_an_image_that_no_node_has_is_forgotten_with_its_size() -> None:
    here = cluster([node("a").image(APP, 50 * MIB)])
    here.put_node(node("a").build())
    here.put_node(node("a").image(APP, 80 * MIB).build())
    here.begin_cycle()
    assert seen(here, "a") == (80 * MIB, 1)


def test_a_long_history_of_an_image_is_shortened() -> None:
    here = cluster([node("a").image(APP, 50 * MIB)])
    for i in range(1000):
        here.put_node(node("b").image(APP, 50 * MIB).build() if i % 2 else node("b").build())
        here.put_pod(pod("p").label(turn=str(i)).on("a").build())
        here.begin_cycle()
    image = here.images.get(APP)
    assert image is not None
    assert len(image.since) < 200
    assert seen(here, "a") == (50 * MIB, 2)
