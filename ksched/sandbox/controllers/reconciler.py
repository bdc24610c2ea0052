"""A queue of objects to look at again, and the task that does: what every controller is built on.

A controller says which changes concern which key (`observe`) and what to do about a key (`reconcile`). Keys
wait once however often they are named, so a burst of changes costs one look. Work is done in slices, between
which requests are served; what the store refuses is tried again, later each time.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Final

from ksched.errors import Refused
from ksched.sandbox.revisions import Change, Revision
from ksched.sandbox.store import Store

log = logging.getLogger(__name__)

Key = tuple[str, str, str]
"""Kind, namespace and name of an object."""

_SLICE: Final = 50
_FIRST_RETRY_SECONDS: Final = 0.05
_LAST_RETRY_SECONDS: Final = 10.0


class Reconciler(ABC):
    """A controller over the store; it works from `start` (or inside `run`) until `stop`."""

    kinds: Sequence[str] = ()

    def __init__(self, store: Store) -> None:
        self.store = store
        self.clock = store.verbs.clock
        self._queue: dict[Key, None] = {}
        self._failures: dict[Key, int] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @abstractmethod
    def observe(self, revision: Revision, *, deleted: bool) -> None:
        """Take note of a change: `enqueue` what must be looked at. It is called inside a write and must not write."""

    @abstractmethod
    def reconcile(self, key: Key) -> None:
        """Bring what the key names closer to what is wanted; the object may be gone by now."""

    @property
    def idle(self) -> bool:
        """Whether nothing waits to be looked at now; appointments do not count."""
        return not self._queue

    async def start(self) -> None:
        """Begin, with everything that is already there."""
        self._task = asyncio.create_task(self.run(), name=type(self).__name__)

    async def stop(self) -> None:
        """End; what is still in the queue stays undone."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def run(self) -> None:
        """Work until cancelled."""
        unsubscribe = self.store.subscribe(self.kinds, self._on_change)
        try:
            for kind in self.kinds:
                for revision in list(self.store.verbs.revisions.shelves[kind]):
                    self.observe(revision, deleted=False)
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._queue:
                    self._work_off_a_slice()
                    await asyncio.sleep(0)
        finally:
            unsubscribe()
            for timer in self._timers.values():
                timer.cancel()
            self._timers.clear()

    def enqueue(self, key: Key) -> None:
        """Have the key looked at soon."""
        self._queue[key] = None
        self._wake.set()

    def enqueue_after(self, key: Key, seconds: float) -> None:
        """Have the key looked at after a while, at the latest; an earlier appointment stands."""
        timer = self._timers.get(key)
        loop = asyncio.get_running_loop()
        if timer is not None and timer.when() <= loop.time() + seconds:
            return
        if timer is not None:
            timer.cancel()
        self._timers[key] = loop.call_later(seconds, self._on_timer, key)

    def _on_timer(self, key: Key) -> None:
        del self._timers[key]
        self.enqueue(key)

    def _on_change(self, change: Change) -> None:
        self.observe(change.revision, deleted=change.type == "DELETED")

    def _work_off_a_slice(self) -> None:
        for _ in range(min(_SLICE, len(self._queue))):
            key = next(iter(self._queue))
            del self._queue[key]
            self._reconcile(key)

    def _reconcile(self, key: Key) -> None:
        try:
            self.reconcile(key)
        except Refused as refused:
            failures = self._failures[key] = self._failures.get(key, 0) + 1
            delay = min(_FIRST_RETRY_SECONDS * 2**failures, _LAST_RETRY_SECONDS)
            log.debug("%s: %s %s/%s refused: %s", type(self).__name__, *key, refused)
            self.enqueue_after(key, delay)
        except Exception:
            # The objects come from clients: one that the controller cannot digest must not stop the others.
            log.exception("%s: cannot reconcile %s %s/%s", type(self).__name__, *key)
        else:
            self._failures.pop(key, None)
