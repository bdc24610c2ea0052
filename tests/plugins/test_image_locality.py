"""ImageLocality: worked examples, and the order of its floating-point steps."""

from __future__ import annotations

import pytest

from ksched.plugins.image_locality import normal_name
from ksched.testing import NodeBuilder, PodBuilder, node, pod
from tests.plugins.asking import raw_scores


def nodes(count: int, *images: tuple[str, int, int]) -> list[NodeBuilder]:
    """`count` nodes; of each (image, mebibytes, holders) the first `holders` have it."""
    made = [node(f"n{i}") for i in range(count)]
    for name, mebibytes, holders in images:
        made[:holders] = [each.image(f"{name}:latest", f"{mebibytes}Mi") for each in made[:holders]]
    return made


TWO = pod().image("a").container("second").image("b")
THREE = TWO.container("third").image("c")


@pytest.mark.parametrize(
    ("one", "here", "score"),
    [
        pytest.param(TWO, nodes(2, ("a", 250, 1)), 5, id="one of two images on one of two nodes"),
        pytest.param(TWO, nodes(2, ("a", 40, 1), ("b", 300, 1)), 7, id="images add up"),
        pytest.param(TWO, nodes(2, ("a", 40, 1)), 0, id="below 23 MiB nothing counts"),
        pytest.param(TWO, nodes(2, ("a", 4000, 1)), 100, id="above 1000 MiB a container more does not help"),
        pytest.param(TWO, nodes(3, ("a", 4000, 1)), 66, id="a rare image counts less"),
        pytest.param(THREE, nodes(3, ("a", 600, 2), ("b", 900, 2)), 32, id="three containers"),
        pytest.param(THREE, nodes(3, ("a", 600, 2), ("b", 900, 2), ("c", 300, 1)), 36, id="and a third image"),
        pytest.param(
            pod().image("x").volume("v", image={"reference": "a"}),
            nodes(2, ("a", 300, 1)),
            12,
            id="an image volume counts as an image but not as a container",
        ),
        pytest.param(
            pod().image("x").init_container("i").image("a"), nodes(2, ("a", 300, 1)), 6, id="init containers count"
        ),
        pytest.param(pod().image("a:v2"), nodes(2, ("a", 900, 1)), 0, id="another tag is another image"),
    ],
)
def test_score(one: PodBuilder, here: list[NodeBuilder], score: int) -> None:
    found = raw_scores("ImageLocality", one, here)
    assert found[0] == score


@pytest.mark.parametrize(
    ("image", "normal"),
    [
        pytest.param("app", "app:latest", id="no tag"),
        pytest.param("app:1", "app:1", id="a tag"),
        pytest.param("repo:5000/app", "repo:5000/app:latest", id="a port is no tag"),
        pytest.param("app@sha256:00ff", "app@sha256:00ff", id="a digest"),
        pytest.param("", ":latest", id="nothing"),
    ],
)
def test_normal_name(image: str, normal: str) -> None:
    assert normal_name(image) == normal
