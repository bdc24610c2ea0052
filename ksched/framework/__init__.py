"""The plugin API, public: base classes for every extension point, what they answer, and what they may read.

    from ksched.framework import Args, FilterPlugin, Status

Extension points have kube-scheduler's names in snake case and its semantics. A plugin gives a per-node form, an array
form over all nodes, or both; `profile` runs them in order.
"""

from ksched.cache.node_info import NodeInfo
from ksched.cache.shapes import PodInfo
from ksched.cache.table import Table
from ksched.framework.plugin import (
    Args,
    ArrayFilterPlugin,
    ArrayScorePlugin,
    BindPlugin,
    FilterPlugin,
    Handle,
    Normalization,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    Scope,
    ScorePlugin,
)
from ksched.framework.state import CycleState
from ksched.framework.status import Code, Status, Wait

__all__ = [
    "Args",
    "ArrayFilterPlugin",
    "ArrayScorePlugin",
    "BindPlugin",
    "Code",
    "CycleState",
    "FilterPlugin",
    "Handle",
    "NodeInfo",
    "Normalization",
    "PermitPlugin",
    "Plugin",
    "PodInfo",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreScorePlugin",
    "QueueSortPlugin",
    "ReservePlugin",
    "Scope",
    "ScorePlugin",
    "Status",
    "Table",
    "Wait",
]
