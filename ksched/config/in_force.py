"""What a configuration becomes when a scheduler is made of it: what `--write-config-to` and `/configz` show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ksched.config.defaults import enabled_anywhere
from ksched.config.durations import nanoseconds
from ksched.config.types import Configuration, Extender, KubeSchedulerProfile, PluginConfig
from ksched.errors import ConfigurationError

DEFAULT_HTTP_TIMEOUT = "5s"


def in_force(configuration: Configuration) -> Configuration:
    """A valid configuration as the scheduler uses it: extenders have a timeout, and NodeResourcesFit
    ignores what they ask to be ignored.

    ConfigurationError if resources are to be ignored and a profile has no arguments of NodeResourcesFit.
    """
    ignored = tuple(
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    return replace(
        configuration,
        extenders=tuple(_with_timeout(extender) for extender in configuration.extenders),
        profiles=tuple(_with_used_args(_ignoring(profile, ignored)) for profile in configuration.profiles),
    )


def in_calling_order(extenders: tuple[Extender, ...]) -> tuple[Extender, ...]:
    """Extenders that must answer come before those that may fail, and keep their order otherwise."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def _with_timeout(extender: Extender) -> Extender:
    return extender if nanoseconds(extender.http_timeout) else replace(extender, http_timeout=DEFAULT_HTTP_TIMEOUT)


def _with_used_args(profile: KubeSchedulerProfile) -> KubeSchedulerProfile:
    """The profile with the arguments of the plugins that it enables, by name."""
    enabled = enabled_anywhere(profile.plugins)
    used = [config for config in profile.plugin_config if config.name in enabled and config.args is not None]
    return replace(profile, plugin_config=tuple(sorted(used, key=lambda config: config.name)))


def _ignoring(profile: KubeSchedulerProfile, resources: tuple[str, ...]) -> KubeSchedulerProfile:
    """The profile whose NodeResourcesFit ignores `resources` and, if there are any, nothing else."""
    if not resources:
        return profile
    if not any(_is_fit(config) for config in profile.plugin_config):
        raise ConfigurationError("couldn't build extenders: can't find NodeResourcesFitArgs in plugin config")
    return replace(
        profile,
        plugin_config=tuple(
            replace(config, args=_args_ignoring(config.args, resources)) if _is_fit(config) else config
            for config in profile.plugin_config
        ),
    )


def _is_fit(config: PluginConfig) -> bool:
    return config.name == "NodeResourcesFit" and isinstance(config.args, Mapping)


def _args_ignoring(args: Mapping[str, Any], resources: tuple[str, ...]) -> dict[str, Any]:
    return {**args, "ignoredResources": list(resources)}
