"""Which plugin runs at which extension point, in which order and with which weight.

A profile names plugins under MultiPoint, which stands for every point that a plugin implements, and at single points.
What a plugin implements is not known here, so the framework passes it in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from ksched.config.args import NodeResourcesFitArgs
from ksched.config.args_validation import fit_args_problems
from ksched.config.defaults import EVERYTHING, enabled_anywhere
from ksched.config.problems import aggregated
from ksched.config.types import Configuration, KubeSchedulerProfile, Plugin, PluginSet, args_for
from ksched.errors import ConfigurationError

EXTENSION_POINTS: Mapping[str, str] = {
    "pre_filter": "PreFilterPlugin",
    "filter": "FilterPlugin",
    "post_filter": "PostFilterPlugin",
    "reserve": "ReservePlugin",
    "pre_score": "PreScorePlugin",
    "score": "ScorePlugin",
    "pre_bind": "PreBindPlugin",
    "bind": "BindPlugin",
    "post_bind": "PostBindPlugin",
    "permit": "PermitPlugin",
    "pre_enqueue": "PreEnqueuePlugin",
    "queue_sort": "QueueSortPlugin",
    "placement_generate": "PlacementGeneratePlugin",
    "placement_score": "PlacementScorePlugin",
}
"""Extension point: its interface's name in messages. Points are filled in this order, which decides who errs first."""

MAX_NODE_SCORE = 100
_WEIGHED = {"score": "score plugins", "placement_score": "placement score plugins"}


class EnabledPlugin(NamedTuple):
    """A plugin at an extension point; the weight is 0 at points that do not score."""

    name: str
    weight: int


ExpandedPlugins = Mapping[str, tuple[EnabledPlugin, ...]]
"""Extension point: its plugins in the order in which they run. Every point of `EXTENSION_POINTS` is there."""


def expand(profile: KubeSchedulerProfile, points_of: Mapping[str, frozenset[str]]) -> ExpandedPlugins:
    """The plugins of `profile` at every extension point.

    `points_of` says for every plugin that exists which extension points it implements. ConfigurationError for a
    plugin that does not exist, is in the wrong place or twice in one, and for a profile without exactly one queue
    sort plugin or without a bind plugin.
    """
    try:
        return _expanded(profile, points_of)
    except ConfigurationError as error:
        message = f"initializing profiles: creating profile for scheduler name {profile.scheduler_name}: {error}"
        raise ConfigurationError(message) from error


def expand_all(configuration: Configuration, points_of: Mapping[str, frozenset[str]]) -> Mapping[str, ExpandedPlugins]:
    """Scheduler name: the expanded plugins of its profile. All profiles share one queue and must agree on its order."""
    expanded: dict[str, ExpandedPlugins] = {}
    for profile in configuration.profiles:
        if profile.scheduler_name in expanded:
            raise ConfigurationError(
                f'initializing profiles: duplicate profile with scheduler name "{profile.scheduler_name}"'
            )
        expanded[profile.scheduler_name] = expand(profile, points_of)
        _check_same_queue_sort(configuration.profiles[0], profile, expanded)
    return expanded


def _expanded(profile: KubeSchedulerProfile, points_of: Mapping[str, frozenset[str]]) -> ExpandedPlugins:
    _check_no_repeated_config(profile)
    _check_fit_args(profile)
    specific = {point: _specific(point, getattr(profile.plugins, point), points_of) for point in EXTENSION_POINTS}
    names = {point: _with_multi_point(point, specific[point], profile, points_of) for point in EXTENSION_POINTS}
    _check_numbers(profile.scheduler_name, names)
    weights = {point: _weights(point, profile, points_of) for point in _WEIGHED}
    return {
        point: tuple(EnabledPlugin(name, weights[point][name] if point in weights else 0) for name in names[point])
        for point in EXTENSION_POINTS
    }


def _check_no_repeated_config(profile: KubeSchedulerProfile) -> None:
    seen: set[str] = set()
    for config in profile.plugin_config:
        if config.name in seen:
            raise ConfigurationError(f"repeated config for plugin {config.name}")
        seen.add(config.name)


def _check_fit_args(profile: KubeSchedulerProfile) -> None:
    """NodeResourcesFit's arguments are the only ones that validation leaves to the making of the plugin (see there)."""
    name = "NodeResourcesFit"
    if name not in enabled_anywhere(profile.plugins):
        return
    problems = [
        str(problem) for problem in fit_args_problems(msgspec.convert(args_for(profile, name), NodeResourcesFitArgs))
    ]
    if problems:
        raise ConfigurationError(f'initializing plugin "{name}": {aggregated(problems)}')


def _specific(point: str, plugin_set: PluginSet, points_of: Mapping[str, frozenset[str]]) -> list[str]:
    """The plugins that the profile enables at this very point."""
    names: list[str] = []
    for plugin in plugin_set.enabled:
        if point not in _points(plugin.name, point, points_of):
            raise ConfigurationError(f'plugin "{plugin.name}" does not extend {EXTENSION_POINTS[point]} plugin')
        if plugin.name in names:
            raise ConfigurationError(f'plugin "{plugin.name}" already registered as "{EXTENSION_POINTS[point]}"')
        names.append(plugin.name)
    return names


def _with_multi_point(
    point: str, specific: list[str], profile: KubeSchedulerProfile, points_of: Mapping[str, frozenset[str]]
) -> list[str]:
    """First the plugins of both, in the point's order, then MultiPoint's alone, then the point's alone.

    A plugin that the point both disables and enables does not count as one of both: it ends up last.
    """
    disabled = {plugin.name for plugin in getattr(profile.plugins, point).disabled}
    if EVERYTHING in disabled:
        return specific
    overriding: set[str] = set()
    added: list[str] = []
    for plugin in profile.plugins.multi_point.enabled:
        if point not in _points(plugin.name, point, points_of) or plugin.name in disabled:
            continue
        if plugin.name in specific:
            overriding.add(plugin.name)
        elif plugin.name in added:
            raise ConfigurationError(f'plugin "{plugin.name}" already registered as "{EXTENSION_POINTS[point]}"')
        else:
            added.append(plugin.name)
    return [
        *(name for name in specific if name in overriding),
        *added,
        *(name for name in specific if name not in overriding),
    ]


def _points(name: str, point: str, points_of: Mapping[str, frozenset[str]]) -> frozenset[str]:
    if name not in points_of:
        raise ConfigurationError(f'{EXTENSION_POINTS[point]} "{name}" does not exist')
    return points_of[name]


def _check_numbers(scheduler_name: str, names: Mapping[str, list[str]]) -> None:
    of_profile = f'for profile with scheduler name "{scheduler_name}"'
    queue_sorts = len(names["queue_sort"])
    if queue_sorts != 1:
        raise ConfigurationError(f"only one queue sort plugin required {of_profile}, but got {queue_sorts}")
    if not names["bind"]:
        raise ConfigurationError(
            f'at least one bind plugin is needed for profile with scheduler name "{scheduler_name}"'
        )
    if len(names["placement_generate"]) > 1:
        raise ConfigurationError(f"at most one placement generate plugin is allowed {of_profile}")


def _weights(point: str, profile: KubeSchedulerProfile, points_of: Mapping[str, frozenset[str]]) -> dict[str, int]:
    """Plugin name: weight, the point's own before MultiPoint's; a weight that is not given is 1.

    The sum is checked with the overflow of 64 bits, as kube-scheduler does: that is what refuses a negative weight.
    """
    weights: dict[str, int] = {}
    total = 0
    plugins: Iterable[Plugin] = getattr(profile.plugins, point).enabled + profile.plugins.multi_point.enabled
    for plugin in plugins:
        if plugin.name in weights or point not in points_of[plugin.name]:
            continue
        weights[plugin.name] = plugin.weight or 1
        scaled = weights[plugin.name] * MAX_NODE_SCORE
        if scaled > _as_int64(2**63 - 1 - total):
            raise ConfigurationError(f"{_WEIGHED[point]}: total score of Score plugins could overflow")
        total += scaled
    return weights


def _as_int64(number: int) -> int:
    return (number + 2**63) % 2**64 - 2**63


def _check_same_queue_sort(
    first: KubeSchedulerProfile, profile: KubeSchedulerProfile, expanded: Mapping[str, ExpandedPlugins]
) -> None:
    name = profile.scheduler_name
    first_sort = expanded[first.scheduler_name]["queue_sort"][0].name
    sort = expanded[name]["queue_sort"][0].name
    if sort != first_sort:
        raise ConfigurationError(
            f'initializing profiles: different queue sort plugins for profile "{name}": "{sort}", first: "{first_sort}"'
        )
    if _written_args(first, sort) != _written_args(profile, sort):
        raise ConfigurationError(f'initializing profiles: different queue sort plugin args for profile "{name}"')


def _written_args(profile: KubeSchedulerProfile, name: str) -> object:
    return next((config.args for config in profile.plugin_config if config.name == name), None)
