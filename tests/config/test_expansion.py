"""Which plugins run at which extension point, in which order, with which weight; and profiles that cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from ksched.config.defaults import EVERYTHING
from ksched.config.expansion import EXTENSION_POINTS, expand, expand_all
from ksched.config.types import Configuration, KubeSchedulerProfile, Plugin, PluginConfig, Plugins, PluginSet
from ksched.errors import ConfigurationError

POINTS = {
    "Sort": frozenset({"queue_sort"}),
    "OtherSort": frozenset({"queue_sort"}),
    "Binder": frozenset({"bind"}),
    "A": frozenset({"filter", "score"}),
    "B": frozenset({"filter", "score", "placement_score"}),
    "C": frozenset({"filter"}),
    "Placer": frozenset({"placement_generate"}),
    "OtherPlacer": frozenset({"placement_generate"}),
}


def plugins(*entries: str | tuple[str, int]) -> tuple[Plugin, ...]:
    return tuple(
        Plugin(name=entry) if isinstance(entry, str) else Plugin(name=entry[0], weight=entry[1]) for entry in entries
    )


def profile(*multi_point: str | tuple[str, int], **points: PluginSet) -> KubeSchedulerProfile:
    multi = PluginSet(enabled=plugins("Sort", "Binder", *multi_point))
    return KubeSchedulerProfile(scheduler_name="s", plugins=Plugins(multi_point=multi, **points))


def enabled(*entries: str | tuple[str, int], disabled: tuple[str, ...] = ()) -> PluginSet:
    return PluginSet(enabled=plugins(*entries), disabled=plugins(*disabled))


@pytest.mark.parametrize(
    ("given", "filters"),
    [
        pytest.param(profile("A", "C", "B"), "A C B", id="MultiPoint's order is the order"),
        pytest.param(profile("A", "B", "C", filter=enabled("C", "B")), "C B A", id="what a point names comes first"),
        pytest.param(profile("A", filter=enabled("C")), "A C", id="what only the point names comes last"),
        pytest.param(profile("A", "B", filter=enabled(disabled=("A",))), "B", id="a point may disable a plugin"),
        pytest.param(profile("A", "B", filter=enabled(disabled=(EVERYTHING,))), "", id="or all"),
        pytest.param(
            profile("A", "B", filter=enabled("C", disabled=(EVERYTHING,))), "C", id="a star keeps what the point names"
        ),
        pytest.param(
            profile("A", "B", filter=enabled("A", disabled=("A",))),
            "B A",
            id="one disabled and enabled at once comes last",
        ),
        pytest.param(
            profile("A", "B", filter=enabled("C", "B")),
            "B A C",
            id="overriding, then MultiPoint's, then the point's own",
        ),
    ],
)
def test_order(given: KubeSchedulerProfile, filters: str) -> None:
    expanded = expand(given, POINTS)
    assert " ".join(plugin.name for plugin in expanded["filter"]) == filters
    assert set(expanded) == set(EXTENSION_POINTS)
    assert {plugin.weight for plugin in expanded["filter"]} <= {0}


@pytest.mark.parametrize(
    ("given", "scores"),
    [
        pytest.param(profile(("A", 3), "B"), [("A", 3), ("B", 1)], id="a weight that is not given is 1"),
        pytest.param(
            profile(("A", 3), score=enabled(("A", 5))), [("A", 5)], id="the point's weight comes before MultiPoint's"
        ),
        pytest.param(profile(("A", 3), score=enabled("A")), [("A", 1)], id="even when it gives none"),
        pytest.param(
            profile(("A", 2**31 - 1), ("B", 2**31 - 1)),
            [("A", 2**31 - 1), ("B", 2**31 - 1)],
            id="the largest weights fit",
        ),
    ],
)
def test_weights(given: KubeSchedulerProfile, scores: list[tuple[str, int]]) -> None:
    assert list(expand(given, POINTS)["score"]) == scores


def test_placement_scores_have_weights_too() -> None:
    assert list(expand(profile(("B", 4)), POINTS)["placement_score"]) == [("B", 4)]


PREFIX = "initializing profiles: creating profile for scheduler name s: "


@pytest.mark.parametrize(
    ("given", "message"),
    [
        pytest.param(profile("Nope"), 'PreFilterPlugin "Nope" does not exist', id="an unknown plugin under MultiPoint"),
        pytest.param(
            profile(score=enabled("Nope")), 'ScorePlugin "Nope" does not exist', id="an unknown plugin at a point"
        ),
        pytest.param(
            profile(score=enabled("C")),
            'plugin "C" does not extend ScorePlugin plugin',
            id="a plugin in the wrong place",
        ),
        pytest.param(
            profile(score=enabled("A", "A")), 'plugin "A" already registered as "ScorePlugin"', id="twice at a point"
        ),
        pytest.param(profile("A", "A"), 'plugin "A" already registered as "FilterPlugin"', id="twice under MultiPoint"),
        pytest.param(
            profile(queue_sort=enabled(disabled=(EVERYTHING,))),
            'only one queue sort plugin required for profile with scheduler name "s", but got 0',
            id="no order of the queue",
        ),
        pytest.param(
            profile("OtherSort"),
            'only one queue sort plugin required for profile with scheduler name "s", but got 2',
            id="two orders of the queue",
        ),
        pytest.param(
            profile(bind=enabled(disabled=("Binder",))),
            'at least one bind plugin is needed for profile with scheduler name "s"',
            id="nobody to bind",
        ),
        pytest.param(
            profile("Placer", "OtherPlacer"),
            'at most one placement generate plugin is allowed for profile with scheduler name "s"',
            id="two that generate placements",
        ),
        pytest.param(
            profile(("A", -3), "B"),
            "score plugins: total score of Score plugins could overflow",
            id="a negative weight",
        ),
    ],
)
def test_profiles_that_cannot_be(given: KubeSchedulerProfile, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        expand(given, POINTS)
    assert str(raised.value) == PREFIX + message


def test_repeated_arguments_are_refused() -> None:
    twice = KubeSchedulerProfile(scheduler_name="s", plugin_config=(PluginConfig(name="A"), PluginConfig(name="A")))
    with pytest.raises(ConfigurationError, match="repeated config for plugin A"):
        expand(twice, POINTS)


def test_arguments_of_node_resources_fit_are_checked_here() -> None:
    points = POINTS | {"NodeResourcesFit": frozenset({"filter"})}
    wrong = PluginConfig(name="NodeResourcesFit", args={"scoringStrategy": {"type": "Best"}})
    given = profile("NodeResourcesFit")
    with pytest.raises(ConfigurationError) as raised:
        expand(KubeSchedulerProfile(scheduler_name="s", plugins=given.plugins, plugin_config=(wrong,)), points)
    assert str(raised.value) == (
        f'{PREFIX}initializing plugin "NodeResourcesFit": scoringStrategy.type: Unsupported value: "Best": '
        'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
    )
    unused = KubeSchedulerProfile(scheduler_name="s", plugins=profile().plugins, plugin_config=(wrong,))
    assert not expand(unused, points)["filter"]


def named(name: str, sort: str, args: Any = None) -> KubeSchedulerProfile:
    multi = PluginSet(enabled=plugins(sort, "Binder"))
    configs = () if args is None else (PluginConfig(name=sort, args=args),)
    return KubeSchedulerProfile(scheduler_name=name, plugins=Plugins(multi_point=multi), plugin_config=configs)


def test_profiles_that_agree_on_the_queue() -> None:
    expanded = expand_all(Configuration(profiles=(named("a", "Sort", {"x": 1}), named("b", "Sort", {"x": 1}))), POINTS)
    assert {name: points["queue_sort"][0].name for name, points in expanded.items()} == {"a": "Sort", "b": "Sort"}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        pytest.param(
            named("b", "OtherSort"),
            'different queue sort plugins for profile "b": "OtherSort", first: "Sort"',
            id="another order",
        ),
        pytest.param(
            named("b", "Sort", {"x": 2}),
            'different queue sort plugin args for profile "b"',
            id="the same with other arguments",
        ),
        pytest.param(named("a", "Sort"), 'duplicate profile with scheduler name "a"', id="the same name twice"),
    ],
)
def test_profiles_that_cannot_share_a_queue(second: KubeSchedulerProfile, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        expand_all(Configuration(profiles=(named("a", "Sort"), second)), POINTS)
    assert str(raised.value) == f"initializing profiles: {message}"
