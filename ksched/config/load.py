"""A configuration file, read as kube-scheduler reads it.

The steps are kube-scheduler's: the text becomes an object, the object says that it is a KubeSchedulerConfiguration of
a known version, it is decoded strictly, its plugins' arguments are decoded strictly, defaults are filled in, and the
whole is validated. Each step's mistakes are told in its words. `decode` stops before validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ksched.config import args as plugin_args
from ksched.config.decode import decode_struct, json_kind
from ksched.config.defaults import with_defaults
from ksched.config.document import read_document
from ksched.config.gates import FeatureGates
from ksched.config.problems import aggregated
from ksched.config.types import (
    API_VERSION,
    KIND,
    ClientConnectionConfiguration,
    Configuration,
    KubeSchedulerProfile,
    LeaderElectionConfiguration,
    PluginConfig,
)
from ksched.config.validation import problems_of
from ksched.config.write import args_as_written
from ksched.errors import ConfigurationError


def load(path: Path, gates: FeatureGates) -> Configuration:
    """The configuration in the file at `path`; ConfigurationError says what is wrong with it, and where."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"open {path}: {(error.strerror or str(error)).lower()}") from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path}: expected UTF-8 text, got byte 0x{data[error.start]:02x} at {error.start}"
        ) from error
    try:
        return parse(text, gates)
    except ConfigurationError as error:
        raise ConfigurationError(f"{path}: {error}") from error


def parse(text: str, gates: FeatureGates) -> Configuration:
    """The configuration in `text`, YAML or JSON: defaulted, merged with the default plugins, and valid."""
    configuration = decode(text, gates)
    problems = problems_of(configuration, gates)
    if problems:
        raise ConfigurationError(aggregated(str(problem) for problem in problems))
    return configuration


def decode(text: str, gates: FeatureGates) -> Configuration:
    """The configuration in `text`, defaulted and merged with the default plugins, but not validated."""
    document = read_document(text)
    if _is_internal(document.value):
        return _internal(document.value)
    kind = _kind_of(document.value, text, default_kind="")
    if kind != KIND:
        raise ConfigurationError(f"couldn't decode as {KIND}, got {API_VERSION}, Kind={kind}: ")
    written, complaints = decode_struct(document.value, Configuration)
    profiles, complaints_of_args = _with_decoded_args(_with_own_names(written.profiles, document.value), gates)
    complaints = [*document.complaints, *complaints, *complaints_of_args]
    if complaints:
        raise ConfigurationError(_strict(complaints))
    return with_defaults(replace(written, profiles=profiles), gates)


_REGISTERED_KINDS = frozenset({KIND} | {kind.__name__ for kind in plugin_args.KINDS.values()})
_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_SCHEME = "pkg/scheduler/apis/config/scheme/scheme.go:29"
"""Where kube-scheduler registers its kinds; it says so in its messages."""
_INTERNAL_VERSION = API_VERSION.replace("/v1", "/__internal")


def _is_internal(value: Any) -> bool:
    return isinstance(value, Mapping) and (value.get("apiVersion"), value.get("kind")) == (_INTERNAL_VERSION, KIND)


def _internal(value: Mapping[str, Any]) -> Configuration:
    """kube-scheduler's own form of a configuration, which it takes for a version: without defaults, and so never valid.

    Its fields are called otherwise and nobody writes them; here it has none.
    """
    unknown = [name for name in value if name not in ("apiVersion", "kind")]
    if unknown:
        raise ConfigurationError(_strict([f'unknown field "{name}"' for name in unknown]))
    return Configuration(
        parallelism=0,
        leader_election=LeaderElectionConfiguration(
            leader_elect=False,
            lease_duration="0s",
            renew_deadline="0s",
            retry_period="0s",
            resource_lock="",
            resource_name="",
            resource_namespace="",
        ),
        client_connection=ClientConnectionConfiguration(content_type="", qps=0.0, burst=0),
        enable_profiling=False,
        enable_contention_profiling=False,
        pod_initial_backoff_seconds=0,
        pod_max_backoff_seconds=0,
    )


def _kind_of(value: Any, text: str, default_kind: str) -> str:
    """The kind of an object, checked for being one of version v1 that a configuration may hold."""
    value = {} if value is None else value
    if not isinstance(value, Mapping):
        raise _no_kind(f"json: cannot unmarshal {json_kind(value)} into Go value of type {_TYPE_META}")
    for field in ("apiVersion", "kind"):
        if value.get(field) is not None and not isinstance(value[field], str):
            got = json_kind(value[field])
            raise _no_kind(f"json: cannot unmarshal {got} into Go struct field .{field} of type string")
    version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if version.count("/") > 1:
        raise ConfigurationError(f"unexpected GroupVersion string: {version}")
    if default_kind:
        version, kind = version or API_VERSION, kind or default_kind
    if not kind:
        raise ConfigurationError(f"Object 'Kind' is missing in '{text}'")
    if not version:
        raise ConfigurationError(f"Object 'apiVersion' is missing in '{text}'")
    if version != API_VERSION or kind not in _REGISTERED_KINDS:
        raise ConfigurationError(f'no kind "{kind}" is registered for version "{version}" in scheme "{_SCHEME}"')
    return kind


def _no_kind(problem: str) -> ConfigurationError:
    return ConfigurationError(f"couldn't get version/kind; json parse error: {problem}")


def _with_own_names(profiles: tuple[KubeSchedulerProfile, ...], value: Any) -> tuple[KubeSchedulerProfile, ...]:
    """The profiles, without the default name where there are several: only one that is alone may go without a name."""
    if len(profiles) < 2:
        return profiles
    named = [isinstance(item, Mapping) and item.get("schedulerName") is not None for item in value["profiles"]]
    return tuple(
        profile if has_name else replace(profile, scheduler_name="")
        for profile, has_name in zip(profiles, named, strict=True)
    )


def _with_decoded_args(
    profiles: tuple[KubeSchedulerProfile, ...], gates: FeatureGates
) -> tuple[tuple[KubeSchedulerProfile, ...], list[str]]:
    """The profiles with the arguments of in-tree plugins decoded and defaulted, and strict complaints about them."""
    complaints: list[str] = []
    decoded: list[KubeSchedulerProfile] = []
    for i, profile in enumerate(profiles):
        configs: list[PluginConfig] = []
        for j, config in enumerate(profile.plugin_config):
            place = f"decoding .profiles[{i}].pluginConfig[{j}]: "
            if config.name not in plugin_args.KINDS:
                configs.append(config)
                continue
            try:
                args, own_complaints = _decoded_args(config)
            except ConfigurationError as error:
                raise ConfigurationError(f"{place}{error}") from error
            if own_complaints:
                inner = _strict([f"decoding args for plugin {config.name}: {_strict(own_complaints)}"])
                complaints.append(f"{place}{inner}")
            configs.append(replace(config, args=args_as_written(plugin_args.defaulted(args, gates))))
        decoded.append(replace(profile, plugin_config=tuple(configs)))
    return tuple(decoded), complaints


def _decoded_args(config: PluginConfig) -> tuple[plugin_args.PluginArgs, list[str]]:
    expected = plugin_args.KINDS[config.name]
    try:
        kind = _kind_of(config.args, "", default_kind=expected.__name__)
        if kind == expected.__name__:
            return decode_struct(config.args or {}, expected)
    except ConfigurationError as error:
        raise ConfigurationError(f"decoding args for plugin {config.name}: {error}") from error
    group = API_VERSION.partition("/")[0]
    raise ConfigurationError(
        f"args for plugin {config.name} were not of type {expected.__name__}.{group}, got {kind}.{group}"
    )


def _strict(complaints: list[str]) -> str:
    return "strict decoding error: " + ", ".join(complaints)
