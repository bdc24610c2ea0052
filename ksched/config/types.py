"""KubeSchedulerConfiguration v1 as frozen objects: what the rest of the scheduler reads.

The classes carry Kubernetes' names and its defaults, so an object that was never written in a file is a valid one.
Reading a file is `load`, the list of plugins that every profile starts from is `defaults`, which plugin runs where is
`expansion`, what may be written is `validation`, and the arguments of the in-tree plugins are `args`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta, field

from ksched.model.pod import DEFAULT_SCHEDULER_NAME

if TYPE_CHECKING:
    from ksched.config.gates import FeatureGates

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Float32 = Annotated[float, Meta(extra={"go": "float32"})]
Duration = Annotated[str, Meta(extra={"go": "duration"})]
"""A duration in Go's notation, such as "1m30s"; `durations.seconds` makes a number of it."""
Bytes = Annotated[str, Meta(extra={"go": "bytes"})]
"""Bytes as base64 text."""


class ConfigStruct(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the configuration: immutable, camelCase when written, and strict about what it is given."""


class LeaderElectionConfiguration(ConfigStruct, frozen=True):
    """Whether, and how, one of several schedulers is chosen to act."""

    leader_elect: bool = True
    lease_duration: Duration = "15s"
    renew_deadline: Duration = "10s"
    retry_period: Duration = "2s"
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ClientConnectionConfiguration(ConfigStruct, frozen=True):
    """How to talk to the API server.

    `qps` and `burst` are None unless the file gives them: ksched obeys a limit that somebody chose, and not
    kube-scheduler's default of 50 and 100 (a documented difference).
    """

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: Float32 | None = None
    burst: Int32 | None = None


class Plugin(ConfigStruct, frozen=True):
    """A plugin that is enabled or disabled, and its weight where it scores (0: not given)."""

    name: str = ""
    weight: Int32 = 0


class PluginSet(ConfigStruct, frozen=True):
    """What a profile enables and disables at one extension point; `*` disables everything that is there by default."""

    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(ConfigStruct, frozen=True):
    """The plugin sets of a profile: one for each extension point; `multi_point` is all the points that a plugin has."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()


class PluginConfig(ConfigStruct, frozen=True):
    """The arguments of one plugin, as written, with the defaults of its kind filled in where ksched knows the kind."""

    name: str = ""
    args: Any = None


class KubeSchedulerProfile(ConfigStruct, frozen=True):
    """One scheduler name and the plugins that serve the pods which ask for it."""

    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    percentage_of_nodes_to_score: Int32 | None = None
    """Accepted and checked; ksched looks at every node (a documented difference)."""
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()


class ExtenderManagedResource(ConfigStruct, frozen=True):
    """An extended resource that an extender looks after."""

    name: str = ""
    ignored_by_scheduler: bool = False


class ExtenderTLSConfig(ConfigStruct, frozen=True):
    """How to trust an extender, and how to be trusted by it."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: Bytes = ""
    key_data: Bytes = ""
    ca_data: Bytes = ""


class Extender(ConfigStruct, frozen=True):
    """A webhook that takes part in filtering, scoring, preemption or binding."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout: Duration = "0s"
    """0s: five seconds."""
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class Configuration(ConfigStruct, frozen=True):
    """A whole KubeSchedulerConfiguration, defaulted and merged with the default plugins."""

    parallelism: Int32 = 16
    leader_election: LeaderElectionConfiguration = LeaderElectionConfiguration()
    client_connection: ClientConnectionConfiguration = ClientConnectionConfiguration()
    enable_profiling: bool = True
    enable_contention_profiling: bool | None = None
    percentage_of_nodes_to_score: Int32 | None = None
    """Accepted and checked; ksched looks at every node (a documented difference)."""
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False

    @classmethod
    def default(cls, gates: FeatureGates) -> Configuration:
        """The configuration of a scheduler that was given no file: one profile with the default plugins."""
        # Imported here because `defaults` builds objects of this module.
        from ksched.config.defaults import with_defaults

        return with_defaults(cls(), gates)


def args_for(profile: KubeSchedulerProfile, plugin_name: str) -> dict[str, Any]:
    """The arguments of a plugin in a profile, without `apiVersion` and `kind`; empty where there are none."""
    for config in profile.plugin_config:
        if config.name == plugin_name and isinstance(config.args, Mapping):
            return {key: value for key, value in config.args.items() if key not in ("apiVersion", "kind")}
    return {}
