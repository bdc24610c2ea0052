"""Base classes of plugins, one per extension point.

A plugin class inherits the points that it implements. `filter`, `score` and the other per-node forms are called once
per node; the array forms once per pod, over every slot of the table. Where a plugin has both, the array form is used
and the per-node form is the rule as one reads it, and the reference in tests.

From `pre_filter` to `reserve` nothing waits: these are ordinary functions, and nothing else changes the cluster
meanwhile. `pre_bind`, `bind` and `post_bind` are coroutines, and run after the pod has been assumed on its node.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import msgspec
import numpy as np

from ksched import _core
from ksched.cache.cluster import Cluster
from ksched.cache.node_info import NodeInfo
from ksched.cache.shapes import PodInfo
from ksched.cache.table import Amounts, Codes, Flags, Table
from ksched.config.gates import FeatureGates
from ksched.framework.state import CycleState
from ksched.framework.status import Status, Wait

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

MAX_NODE_SCORE = 100
"""The highest score of a node, before its weight; the lowest is 0."""


class Args(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Base of a plugin's arguments, as written under `pluginConfig`: camelCase, unknown fields are errors."""


class Normalization(IntEnum):
    """How raw scores become 0..100."""

    NONE = 0
    MAX = 1
    """DefaultNormalizeScore: 100 * score / highest; unchanged when all are 0."""
    REVERSED_MAX = 2
    """DefaultNormalizeScore reversed: 100 - 100 * score / highest; 100 when all are 0."""
    CUSTOM = 3
    """The plugin's own `normalize`."""


class Scope(IntEnum):
    """What one change can affect, of a plugin's raw verdicts and scores. The framework reuses them accordingly."""

    STATIC = 0
    """A node's own attributes (labels, taints, what it has): only for that node."""
    NODE = 1
    """Also the pods on it: only for that node."""
    CLUSTER = 2
    """Anything: nothing is reused."""


class Binder(Protocol):
    """Writes a binding to the API server."""

    async def bind(self, pod: PodInfo, node_name: str) -> None:
        """POST the binding; raises `errors.ClientError` when the pod is not bound afterwards."""


class Handle(Protocol):
    """What the scheduler lends to its plugins."""

    @property
    def cluster(self) -> Cluster:
        """The cluster as it is now, assumed pods included."""

    @property
    def gates(self) -> FeatureGates:
        """The feature gates in force."""

    @property
    def binder(self) -> Binder:
        """The way to bind a pod."""


class Plugin(ABC):
    """Base of every plugin. `name` is what configuration, metrics and messages call it."""

    name: ClassVar[str]
    Args: ClassVar[type[msgspec.Struct]] = Args

    scope: ClassVar[Scope] = Scope.CLUSTER
    """What the plugin's verdicts and raw scores depend on besides the pod."""

    shape_decides: ClassVar[bool] = False
    """Whether the plugin's answers depend on nothing of the pod but its shape: `key` need not be asked then."""

    native: bool = False
    """Whether the profile uses array forms where there are some: per-node forms, asked about few nodes then, may read
    what array forms keep up to date, instead of working everything out as one reads it."""

    def __init__(self, args: Any, handle: Handle) -> None:
        self.args = args
        self.handle = handle

    def key(self, pod: PodInfo) -> Hashable | None:
        """What the plugin's answers depend on of the pod, besides its shape (upstream's Sign); `()` for nothing more.

        None, the default unless `shape_decides`, means that answers are never reused for another pod.
        """
        return () if self.shape_decides else None


class PreEnqueuePlugin(Plugin):
    """Decides whether a pod may enter the active queue at all."""

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """None lets the pod in; anything else gates it."""


class QueueSortPlugin(Plugin):
    """Orders the active queue. Exactly one is enabled, and it is the same in all profiles."""

    @abstractmethod
    def sort_key(self, pod: PodInfo, timestamp: float) -> Any:
        """A key such that smaller goes first; `timestamp` is when the pod entered the queue, in seconds."""


class PreFilterPlugin(Plugin):
    """Looks at the pod before any node; may turn it down or narrow the nodes."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodInfo, nodes: Table) -> AbstractSet[str] | Status | None:
        """None goes on with all nodes, a set of names with those alone, Skip leaves this plugin's filter out, another
        status ends the cycle."""

    def add_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """In a what-if, `other` has been put on `node`: bring up to date what `pre_filter` left in `state`.

        A plugin that overrides this keeps in the state only values that have a `clone` method: `state` is a clone, and
        what really is must not change.
        """

    def remove_pod(self, state: CycleState, pod: PodInfo, other: PodInfo, node: NodeInfo) -> None:
        """In a what-if, `other` has been taken off `node`."""


class FilterPlugin(Plugin):
    """Says per node whether the pod may run there."""

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> Status | None:
        """None keeps the node."""


class ArrayFilterPlugin(Plugin):
    """A filter over all slots at once."""

    reasons: ClassVar[Sequence[Status]] = ()

    def filter_rule(self, state: CycleState, pod: PodInfo, nodes: Table) -> _core.FilterRule | None:
        """The same as a native rule for one slot, where there is one; its codes are those of `filter_array`."""
        return None

    @abstractmethod
    def filter_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Flags | Codes | None:
        """A code per slot (uint8 or int32, below 2**23): 0 keeps, k means `explain(k)`. None keeps all. Slots without a
        node may hold anything."""

    def explain(self, state: CycleState, pod: PodInfo, code: int) -> Status:
        """The status behind a code; by default `reasons[code - 1]`."""
        return self.reasons[code - 1]


@dataclass(frozen=True, slots=True)
class PostFilterResult:
    """What PostFilter decided: `nominated_node` names a node, "" clears an existing nomination, None leaves it."""

    nominated_node: str | None = None


class PostFilterPlugin(Plugin):
    """Called when no node is left; may make room (preemption)."""

    @abstractmethod
    def post_filter(
        self, state: CycleState, pod: PodInfo, statuses: Mapping[str, Status]
    ) -> tuple[PostFilterResult | None, Status | None]:
        """A success status (None) means that the pod has hope of the nominated node."""


class PreScorePlugin(Plugin):
    """Prepares scoring, once per pod."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: PodInfo, nodes: Table) -> Status | None:
        """Skip leaves this plugin's score out. `nodes.alive` marks the feasible nodes."""


class ScorePlugin(Plugin):
    """Rates one node for the pod."""

    normalization: ClassVar[Normalization] = Normalization.NONE

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, node: NodeInfo) -> int | Status:
        """The raw score, or a status of code Error."""

    def normalize(self, state: CycleState, pod: PodInfo, scores: Amounts) -> Amounts:
        """For `Normalization.CUSTOM`: scores 0..100 of the feasible nodes, from their raw ones."""
        raise NotImplementedError(f"{self.name} declares a custom normalization but has none")


class ArrayScorePlugin(Plugin):
    """Rates all slots at once."""

    normalization: ClassVar[Normalization] = Normalization.NONE

    def score_rule(self, state: CycleState, pod: PodInfo, nodes: Table) -> _core.ScoreRule | None:
        """The same as a native rule for one slot, where there is one."""
        return None

    def is_settled(self, state: CycleState, pod: PodInfo) -> bool:
        """Whether, for this pod, scores are STATIC although the plugin's scope is wider."""
        return False

    @abstractmethod
    def score_array(self, state: CycleState, pod: PodInfo, nodes: Table) -> Amounts:
        """The raw score per slot (int64). Slots that are not feasible may hold anything."""

    def normalize(self, state: CycleState, pod: PodInfo, scores: Amounts) -> Amounts:
        """For `Normalization.CUSTOM`: scores 0..100 of the feasible nodes, from their raw ones."""
        raise NotImplementedError(f"{self.name} declares a custom normalization but has none")

    def normalize_array(self, state: CycleState, pod: PodInfo, scores: Amounts, nodes: Table) -> Amounts:
        """The same over all slots, whatever the others hold; by default through `normalize`."""
        feasible = nodes.alive[: nodes.size] != 0
        normal = np.zeros(nodes.size, dtype=np.int64)
        normal[feasible] = self.normalize(state, pod, scores[: nodes.size][feasible])
        return normal


class ReservePlugin(Plugin):
    """Takes what the pod needs on its node, besides the node's room."""

    @abstractmethod
    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """Anything but None undoes the reservation of every plugin."""

    @abstractmethod
    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Give it back; called for every reserve plugin, in reverse order, also for those that never reserved."""


class PermitPlugin(Plugin):
    """Last word before binding."""

    @abstractmethod
    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | Wait | None:
        """None goes on, Wait holds the pod back, a status turns it down."""


class PreBindPlugin(Plugin):
    """Prepares what the pod needs before it is bound."""

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """None goes on."""


class BindPlugin(Plugin):
    """Binds the pod to its node."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """None: bound. Skip passes the pod to the next bind plugin."""


class PostBindPlugin(Plugin):
    """Told of a pod that has been bound."""

    @abstractmethod
    async def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """The answer is not looked at."""
