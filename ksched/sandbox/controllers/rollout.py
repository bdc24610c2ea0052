"""The arithmetic of a rolling update: how large each replica set may be next.

Pure functions of sizes. Two rules hold at every step: never more pods than wanted plus the surge, and never
fewer available pods than wanted minus the allowance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a deployment asks for: pods, how many more there may be, and how many may be missing."""

    replicas: int
    surge: int
    unavailable: int


@dataclass(frozen=True, slots=True)
class Size:
    """A replica set: how many pods it is to have, and how many are available."""

    replicas: int
    available: int


def limits(spec: Json) -> Limits:
    """The limits of a deployment's spec; percentages of the surge are rounded up, of the allowance down."""
    replicas: int = spec["replicas"]
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return Limits(replicas, 0, replicas)
    rolling = strategy.get("rollingUpdate") or {}
    surge = _share(rolling.get("maxSurge", "25%"), replicas, math.ceil)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), replicas, math.floor)
    if surge == 0 and unavailable == 0:
        unavailable = 1  # with neither, nothing could ever be replaced
    return Limits(replicas, surge, min(unavailable, replicas))


def _share(amount: int | str, whole: int, rounding: Any) -> int:
    if isinstance(amount, int):
        return amount
    return int(rounding(int(amount.rstrip("%")) * whole / 100))


def next_sizes(
    limits: Limits, current: Size | None, old: list[Size], *, recreate: bool, paused: bool, old_pods: int
) -> list[int]:
    """The next size of every old replica set (oldest first) and, if there is one, of the current one, in that order.

    `old_pods` counts the pods that old replica sets still have, those that are leaving included.
    """
    if current is None:
        return [size.replicas for size in old]
    if paused:
        return [
            *(size.replicas for size in old),
            current.replicas if any(size.replicas for size in old) else limits.replicas,
        ]
    if recreate:
        return [*(0 for _ in old), current.replicas if old_pods else limits.replicas]
    grown = _grown(limits, current, old)
    return [*_shrunk(limits, Size(grown, current.available), old), grown]


def _grown(limits: Limits, current: Size, old: list[Size]) -> int:
    """The current replica set, as large as the surge allows."""
    if current.replicas >= limits.replicas:
        return limits.replicas
    total = current.replicas + sum(size.replicas for size in old)
    room = max(limits.replicas + limits.surge - total, 0)
    return min(current.replicas + room, limits.replicas)


def _shrunk(limits: Limits, current: Size, old: list[Size]) -> list[int]:
    """The old replica sets, as small as the allowance lets them be: first pods that are not available, then others."""
    sizes = [size.replicas for size in old]
    minimum = limits.replicas - limits.unavailable
    total = current.replicas + sum(sizes)
    budget = total - minimum - max(current.replicas - current.available, 0)
    for index, size in enumerate(old):
        idle = min(max(size.replicas - size.available, 0), max(budget, 0))
        sizes[index] -= idle
        budget -= idle
    spare = current.available + sum(min(size, each.available) for size, each in zip(sizes, old, strict=True)) - minimum
    for index in range(len(old)):
        gone = min(sizes[index], max(spare, 0))
        sizes[index] -= gone
        spare -= gone
    return sizes
