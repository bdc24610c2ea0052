"""ksched: a drop-in kube-scheduler with a native hot path.

Public: `ksched.framework` (the plugin API), `ksched.testing` (build pods, nodes and clusters in tests), the command
line, the configuration and the metrics. Everything else may change without notice. ARCHITECTURE.md draws the packages
and says who may import whom.
"""

__version__ = "0.1.0"
