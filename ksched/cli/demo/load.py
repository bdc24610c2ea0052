"""Creates many objects over HTTP as fast as the server takes them.

Requests go through the scheduler's own client, a fixed number at a time: enough to keep the server busy, few enough
that no request waits long for its turn. Nothing is awaited per object.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec

from ksched.api.client import Call, Client, Outcome
from ksched.errors import ConnectionFailed, KschedError

IN_FLIGHT = 16
"""More would only wait in the server: it has one thread."""

TIMEOUT_SECONDS = 60.0

Object = dict[str, Any]


async def create_all(
    client: Client, path: str, objects: Sequence[Object], progress: Callable[[int], None] = lambda made: None
) -> None:
    """Create `objects` by POST to `path`, in their order; `progress` is told how many there are.

    `{namespace}` in `path` stands for the object's own. Raises KschedError for the first object that is refused.
    """
    await _Loader(client, path, objects, progress).run()


class _Loader:
    def __init__(self, client: Client, path: str, objects: Sequence[Object], progress: Callable[[int], None]) -> None:
        self._client = client
        self._path = path
        self._left: Iterator[Object] = iter(objects)
        self._count = len(objects)
        self._made = 0
        self._progress = progress
        self._done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calls: dict[str, Call] = {}

    async def run(self) -> None:
        """Send all, and return when the last answer is there."""
        if self._count == 0:
            return
        for _ in range(IN_FLIGHT):
            self._send_next()
        try:
            await self._done
        finally:
            for call in self._calls.values():
                self._client.abandon(call)

    def _send_next(self) -> None:
        thing = None if self._done.done() else next(self._left, None)
        if thing is None:
            return
        metadata = thing["metadata"]
        key = f"{metadata.get('namespace', '')}/{metadata['name']}"
        path = self._path.replace("{namespace}", metadata.get("namespace", "default"))
        body = msgspec.json.encode(thing)
        on_done = partial(self._answered, key)
        self._calls[key] = self._client.send("POST", path, body, on_done=on_done, timeout_seconds=TIMEOUT_SECONDS)

    def _answered(self, key: str, outcome: Outcome) -> None:
        """Count the object that was made and send the next, or stop: a demo with a hole in it would tell nothing."""
        call = self._calls.pop(key)
        if self._done.done():
            return
        if isinstance(outcome, ConnectionFailed):
            self._done.set_exception(KschedError(f"cannot create {key}: {outcome}"))
        elif outcome.status != 201:
            self._done.set_exception(KschedError(f"cannot create {key}: POST {call.target}: {outcome.error()}"))
        else:
            self._made += 1
            self._progress(self._made)
            if self._made == self._count:
                self._done.set_result(None)
            else:
                self._send_next()
