"""The scheduler's configuration, KubeSchedulerConfiguration v1 and feature gates: read, defaulted and validated.

`load` or `Configuration.default` gives a `Configuration`; `expand` says which plugins of a profile run where. Nothing
here knows a plugin's code.
"""

from ksched.config.expansion import EXTENSION_POINTS, EnabledPlugin, ExpandedPlugins, expand, expand_all
from ksched.config.gates import FeatureGates
from ksched.config.in_force import in_force
from ksched.config.load import load, parse
from ksched.config.types import Configuration, Extender, KubeSchedulerProfile, Plugin, Plugins, PluginSet, args_for

__all__ = [
    "EXTENSION_POINTS",
    "Configuration",
    "EnabledPlugin",
    "ExpandedPlugins",
    "Extender",
    "FeatureGates",
    "KubeSchedulerProfile",
    "Plugin",
    "PluginSet",
    "Plugins",
    "args_for",
    "expand",
    "expand_all",
    "in_force",
    "load",
    "parse",
]
