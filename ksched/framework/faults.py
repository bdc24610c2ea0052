"""Calling plugins, so that a fault of theirs fails one pod's cycle and nothing else."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeVar

from ksched.framework.status import Status

log = logging.getLogger("ksched.framework")

T = TypeVar("T")


class Named(Protocol):
    """Whatever can be blamed by name."""

    name: ClassVar[str]


def called(plugin: Named, point: str, function: Callable[..., T], *arguments: Any) -> T | Status:
    """Call a plugin; an exception is a fault of the plugin and becomes a status of code Error. The scheduler never dies
    of a plugin."""
    try:
        return function(*arguments)
    except Exception as fault:  # noqa: BLE001 - whatever somebody else's code raises must not end the scheduler
        return _fault(plugin, point, fault)


async def awaited(plugin: Named, point: str, waiting: Any) -> Any:
    """`called` for the points that are coroutines."""
    try:
        return await waiting
    except Exception as fault:  # noqa: BLE001 - whatever somebody else's code raises must not end the scheduler
        return _fault(plugin, point, fault)


def _fault(plugin: Named, point: str, fault: Exception) -> Status:
    log.error('plugin failed plugin="%s" point="%s" error="%s"', plugin.name, point, fault, exc_info=fault)
    return Status.error(f"{type(fault).__name__}: {fault}").by(plugin.name)
