"""From configuration and plugin classes to profiles.

Which classes exist is passed in, so that this package knows no plugin by name. A class implements the extension points
of its bases; a class for a plugin that ksched does not have yet (`MissingPlugin`) says which points the real one has,
so that configurations which name them still make sense.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from ksched.cache.shapes import PodInfo
from ksched.cache.table import Table
from ksched.config import args as in_tree_args
from ksched.config.expansion import ExpandedPlugins, expand_all
from ksched.config.gates import FeatureGates
from ksched.config.types import Configuration, KubeSchedulerProfile, args_for
from ksched.errors import ConfigurationError, KschedError
from ksched.framework.plugin import (
    ArrayFilterPlugin,
    ArrayScorePlugin,
    BindPlugin,
    FilterPlugin,
    Handle,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    Scope,
    ScorePlugin,
)
from ksched.framework.profile import Profile
from ksched.framework.state import CycleState
from ksched.framework.status import Status

FORMS_VARIABLE = "KSCHED_FORMS"
"""Which forms of plugins are used: `native` (array forms and boards), `array` (a full pass per pod), `plain` (per
node)."""

_FORMS = ("native", "array", "plain")

_BASES: Mapping[str, tuple[type[Plugin], ...]] = {
    "pre_enqueue": (PreEnqueuePlugin,),
    "queue_sort": (QueueSortPlugin,),
    "pre_filter": (PreFilterPlugin,),
    "filter": (FilterPlugin, ArrayFilterPlugin),
    "post_filter": (PostFilterPlugin,),
    "pre_score": (PreScorePlugin,),
    "score": (ScorePlugin, ArrayScorePlugin),
    "reserve": (ReservePlugin,),
    "permit": (PermitPlugin,),
    "pre_bind": (PreBindPlugin,),
    "bind": (BindPlugin,),
    "post_bind": (PostBindPlugin,),
}


class MissingPlugin(PreFilterPlugin):
    """Stands in for an in-tree plugin that ksched does not have yet.

    A pod that uses a field which only that plugin understands is turned down, never placed as if the field were absent.
    All other pods are not its business.
    """

    scope = Scope.STATIC
    shape_decides = True
    points: ClassVar[frozenset[str]]
    """The extension points of the real plugin."""
    always: ClassVar[bool] = False
    """Whether to stand in even where the profile does not enable the plugin."""

    def used_field(self, pod: PodInfo) -> str | None:
        """The field of the pod that needs the plugin, as one writes it in a manifest; None where there is none."""
        raise NotImplementedError

    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """Turn down a pod that needs the plugin."""
        field = self.used_field(pod)
        if field is None:
            return Status.skip()
        return Status.unresolvable(
            f"pod uses {field}, which needs the {self.name} plugin, and ksched does not have it yet"
        )


def points_of(plugin: type[Plugin]) -> frozenset[str]:
    """The extension points that a plugin class implements."""
    if issubclass(plugin, MissingPlugin):
        return plugin.points
    return frozenset(point for point, bases in _BASES.items() if issubclass(plugin, bases))


def build_profiles(
    configuration: Configuration,
    gates: FeatureGates,
    handle: Handle,
    registry: Mapping[str, type[Plugin]],
    *,
    forms: str | None = None,
) -> dict[str, Profile]:
    """One profile per scheduler name. `forms` is `native`, `array` or `plain`; by default what KSCHED_FORMS says, else
    native.

    Raises ConfigurationError with upstream's words where the plugins do not make a profile.
    """
    form = forms or os.environ.get(FORMS_VARIABLE) or "native"
    if form not in _FORMS:
        raise ConfigurationError(f"{FORMS_VARIABLE}: must be one of {', '.join(_FORMS)}, got {form!r}")
    expanded = expand_all(configuration, {name: points_of(plugin) for name, plugin in registry.items()})
    return {
        profile.scheduler_name: _build(profile, expanded[profile.scheduler_name], gates, handle, registry, form=form)
        for profile in configuration.profiles
    }


def _build(
    profile: KubeSchedulerProfile,
    expanded: ExpandedPlugins,
    gates: FeatureGates,
    handle: Handle,
    registry: Mapping[str, type[Plugin]],
    *,
    form: str,
) -> Profile:
    made: dict[str, Plugin] = {}
    names = {enabled.name for plugins in expanded.values() for enabled in plugins}
    names |= {name for name, plugin in registry.items() if issubclass(plugin, MissingPlugin) and plugin.always}
    for name in sorted(names):
        try:
            made[name] = registry[name](_args(profile, registry[name], gates), handle)
            made[name].native = form != "plain"
        except (KschedError, msgspec.ValidationError) as error:
            raise ConfigurationError(
                f"initializing profiles: creating profile for scheduler name {profile.scheduler_name}: "
                f'initializing plugin "{name}": {error}'
            ) from error
    enabled = {point: [(made[name], weight) for name, weight in plugins] for point, plugins in expanded.items()}
    running = [plugin for plugin, _ in enabled["pre_filter"]]
    enabled["pre_filter"] += [
        (plugin, 0) for plugin in made.values() if isinstance(plugin, MissingPlugin) and plugin not in running
    ]
    return Profile(profile.scheduler_name, handle.cluster, enabled, native=form != "plain", boards=form == "native")


def _args(profile: KubeSchedulerProfile, plugin: type[Plugin], gates: FeatureGates) -> msgspec.Struct:
    written = args_for(profile, plugin.name)
    kind = plugin.Args
    if issubclass(kind, in_tree_args.PluginArgs):
        return in_tree_args.defaulted(msgspec.convert(written, kind), gates)
    return msgspec.convert(written, kind)
