"""How a configuration is written: the object that `--write-config-to` and `/configz` show.

A field of a Kubernetes object is either always written or left out when it is empty; which one, nobody can guess, so
the ones that are left out are listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ksched.config.args import (
    DynamicResourcesArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ScoringStrategy,
)
from ksched.config.types import (
    API_VERSION,
    KIND,
    ClientConnectionConfiguration,
    Configuration,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    KubeSchedulerProfile,
    PluginConfig,
    PluginSet,
)
from ksched.model.objects import LabelSelector, LabelSelectorRequirement, NodeSelectorTerm
from ksched.model.pod import TopologySpreadConstraint

_LEFT_OUT_WHEN_EMPTY: Mapping[type[msgspec.Struct], frozenset[str]] = {
    Configuration: frozenset({"profiles", "extenders", "delay_cache_until_active"}),
    KubeSchedulerProfile: frozenset({"plugin_config"}),
    PluginSet: frozenset({"enabled", "disabled"}),
    Extender: frozenset(Extender.__struct_fields__) - {"url_prefix", "http_timeout"},
    ExtenderManagedResource: frozenset({"ignored_by_scheduler"}),
    ExtenderTLSConfig: frozenset(ExtenderTLSConfig.__struct_fields__),
    NodeResourcesFitArgs: frozenset({"ignored_resources", "ignored_resource_groups"}),
    ScoringStrategy: frozenset({"type", "resources"}),
    PodTopologySpreadArgs: frozenset({"default_constraints", "defaulting_type"}),
    LabelSelector: frozenset({"match_labels", "match_expressions"}),
    LabelSelectorRequirement: frozenset({"values"}),
    NodeSelectorTerm: frozenset({"match_expressions", "match_fields"}),
    TopologySpreadConstraint: frozenset({"match_label_keys"}),
}

_WRITTEN_AS_NULL: Mapping[type[msgspec.Struct], frozenset[str]] = {
    PluginConfig: frozenset({"args"}),
    DynamicResourcesArgs: frozenset({"filter_timeout"}),
}
"""Fields that say null where all others are left out."""

_CLIENT_LIMITS = {"qps": 50, "burst": 100}
"""What kube-scheduler uses, and shows, where a file gives no limit."""


def configuration_as_written(configuration: Configuration) -> dict[str, Any]:
    """The configuration as the object that a file would hold."""
    return {"apiVersion": API_VERSION, "kind": KIND, **_written(configuration)}


def args_as_written(args: PluginArgs) -> dict[str, Any]:
    """The arguments of a plugin as they stand in a file, with `apiVersion` and `kind`."""
    return {"apiVersion": API_VERSION, "kind": type(args).__name__, **_written(args)}


def _written(struct: msgspec.Struct) -> dict[str, Any]:
    kind = type(struct)
    left_out = _LEFT_OUT_WHEN_EMPTY.get(kind, frozenset())
    nulls = _WRITTEN_AS_NULL.get(kind, frozenset())
    result: dict[str, Any] = dict(_CLIENT_LIMITS) if kind is ClientConnectionConfiguration else {}
    for field, name in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
        value = getattr(struct, field)
        if value is None and field not in nulls:
            continue
        if field in left_out and not value:
            continue
        result[name] = _plain(value)
    return result


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return _written(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
