"""What extenders change in the rest of a configuration, before anything is made of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from ksched.config.types import Configuration, Extender, KubeSchedulerProfile
from ksched.errors import ConfigurationError


def in_calling_order(extenders: tuple[Extender, ...]) -> tuple[Extender, ...]:
    """Extenders that must answer come before those that may fail, and keep their order otherwise."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def without_ignored_resources(configuration: Configuration) -> Configuration:
    """The configuration in which NodeResourcesFit leaves alone the resources that extenders ask to be ignored.

    They replace the resources that a profile's own arguments ignore. ConfigurationError if a profile has no such
    arguments.
    """
    ignored = [
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    ]
    if not ignored:
        return configuration
    return replace(configuration, profiles=tuple(_ignoring(profile, ignored) for profile in configuration.profiles))


def _ignoring(profile: KubeSchedulerProfile, resources: list[str]) -> KubeSchedulerProfile:
    changed = False
    configs = []
    for config in profile.plugin_config:
        if config.name == "NodeResourcesFit" and isinstance(config.args, Mapping):
            args: dict[str, Any] = {**config.args, "ignoredResources": resources}
            configs.append(replace(config, args=args))
            changed = True
        else:
            configs.append(config)
    if not changed:
        raise ConfigurationError("couldn't build extenders: can't find NodeResourcesFitArgs in plugin config")
    return replace(profile, plugin_config=tuple(configs))
