"""Who is told of changes: one `Watch` per open stream, flushed together once per turn of the loop.

A watch notes the bytes of each change that concerns it; `Watches.flush` then sends every watch what it has in one
write. Lists and the form of a watch's start (from a version, or with the present state first) are decided in
`routes.py`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import orjson

from ksched.errors import Refused
from ksched.sandbox import status
from ksched.sandbox.forms import Form
from ksched.sandbox.revisions import Change, ChangeType, Revision, Revisions, Shelf

log = logging.getLogger(__name__)

_BACKLOG_LIMIT_BYTES = 256 * 1024 * 1024
"""A client that reads so slowly that this much waits for it is cut off, as upstream ends slow watchers."""


class Sink(Protocol):
    """Where a watch's bytes go: an HTTP connection with a streaming answer."""

    @property
    def congested(self) -> bool:
        """Whether the client reads too slowly to be sent more now."""

    def send(self, data: bytes) -> None:
        """Send a piece of the stream."""

    def finish(self) -> None:
        """End the stream properly; the connection may serve further requests."""

    def cut(self) -> None:
        """Drop the connection without a word."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Which objects a list or watch concerns."""

    namespace: str | None = None
    labels: Callable[[Mapping[str, str]], bool] | None = None
    fields: Callable[[Revision], bool] | None = None

    @property
    def selective(self) -> bool:
        """Whether a selector may make an object enter or leave while it lives."""
        return self.labels is not None or self.fields is not None

    def has(self, revision: Revision) -> bool:
        """Whether a revision is inside."""
        if self.namespace is not None and revision.namespace != self.namespace:
            return False
        if self.labels is not None and not self.labels(revision.labels):
            return False
        return self.fields is None or self.fields(revision)


class Watch:
    """One open watch stream."""

    def __init__(self, hub: Watches, shelf: Shelf, form: Form, scope: Scope, bookmarks: bool) -> None:
        self.form = form
        self.bookmarks = bookmarks
        self.pending: list[bytes] = []
        self.silent = False
        self.sink: Sink | None = None
        self.timeout_seconds = 0.0
        self._hub = hub
        self._shelf = shelf
        self._scope = scope
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False

    def begin_with(self, revisions: Sequence[Revision]) -> None:
        """Put the present state at the head of the stream, as ADDED events."""
        self.pending.extend(self.form.event("ADDED", revision) for revision in revisions)

    def replay(self, changes: Sequence[Change]) -> None:
        """Put past changes at the head of the stream."""
        for change in changes:
            self._note(change)

    def bookmark(self, version: int, *, initial_end: bool = False) -> None:
        """Note a bookmark: everything up to `version` has been sent."""
        resource = self.form.resource
        metadata: dict[str, object] = {"resourceVersion": str(version), "creationTimestamp": None}
        if initial_end:
            metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
        body = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata}
        self.pending.append(b'{"type":"BOOKMARK","object":%b}\n' % orjson.dumps(body))
        self._hub.wake(self)

    def start(self, sink: Sink, loop: asyncio.AbstractEventLoop) -> None:
        """Follow the changes from now on; the stream ends by itself after its timeout."""
        self.sink = sink
        self._shelf.observers.append(self._see)
        self._hub.active[self] = None
        self._timer = loop.call_later(self.timeout_seconds, self.end)
        if self.pending:
            self._hub.wake(self)

    def resume(self) -> None:
        """Go on sending: the client, which was too slow, has caught up."""
        self._hub.wake(self)

    def end(self) -> None:
        """End the stream properly, after what is pending."""
        sink = self.sink
        if self._ended or self.silent or sink is None:
            return
        self._hub.send(self)
        self.stop()
        sink.finish()

    def expire(self, refused: Refused) -> None:
        """End the stream with an ERROR event."""
        self.pending.append(b'{"type":"ERROR","object":%b}\n' % orjson.dumps(status.failure(refused)))
        self.end()

    def stop(self) -> None:
        """Forget the watch: its connection is gone or its stream has ended."""
        if self._ended or self.sink is None:
            return
        self._ended = True
        self._shelf.observers.remove(self._see)
        self._hub.active.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()

    def _see(self, change: Change) -> None:
        before = len(self.pending)
        try:
            self._note(change)
        except Exception:
            # The change stands and everybody else must hear of it, whatever is wrong with this watch's form of it.
            log.exception("watch cut: cannot show %s %s/%s", change.kind, change.namespace, change.name)
            if self.sink is not None:
                self.sink.cut()
        if len(self.pending) != before:
            self._hub.wake(self)

    def _note(self, change: Change) -> None:
        scope, revision = self._scope, change.revision
        if not scope.selective:
            if scope.namespace is None or revision.namespace == scope.namespace:
                self.pending.append(self.form.line(change))
            return
        previous = change.previous
        was = previous is not None and scope.has(previous)
        if change.type == "DELETED":
            if was:
                self.pending.append(self.form.line(change))
            return
        if scope.has(revision):
            type_: ChangeType = "MODIFIED" if was else "ADDED"
            line = self.form.line(change) if type_ == change.type else self.form.event(type_, revision)
            self.pending.append(line)
        elif was and previous is not None:
            # The object as it last matched, under the version at which it stopped to.
            self.pending.append(
                self.form.event("DELETED", Revision(revision.kind, previous.decode(), revision.version))
            )


class Watches:
    """All open watches, flushed together, and what can go wrong with them."""

    def __init__(self, revisions: Revisions, seed: int = 0) -> None:
        self.active: dict[Watch, None] = {}
        self.sent_events = 0
        self.duplicate = 0.0
        self.reorder = 0.0
        self._revisions = revisions
        self._random = random.Random(seed)
        self._awake: dict[Watch, None] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bookmark_seconds = 0.0
        self._bookmark_timer: asyncio.TimerHandle | None = None

    def start(self, loop: asyncio.AbstractEventLoop, bookmark_seconds: float) -> None:
        """Begin to flush on `loop` and to send bookmarks every `bookmark_seconds`."""
        self._loop = loop
        self._bookmark_seconds = bookmark_seconds
        self._bookmark_timer = loop.call_later(bookmark_seconds, self._send_bookmarks)

    def stop(self) -> None:
        """End every watch properly."""
        if self._bookmark_timer is not None:
            self._bookmark_timer.cancel()
        for watch in list(self.active):
            watch.end()

    def open(self, shelf: Shelf, form: Form, scope: Scope, *, bookmarks: bool, timeout_seconds: float | None) -> Watch:
        """A watch that is not started yet; without a timeout it lasts 30 to 60 minutes, as upstream's do."""
        watch = Watch(self, shelf, form, scope, bookmarks)
        watch.timeout_seconds = timeout_seconds if timeout_seconds else 1800 * (1 + self._random.random())
        return watch

    def wake(self, watch: Watch) -> None:
        """Have `watch` flushed in the next turn of the loop."""
        if not self._awake and self._loop is not None:
            self._loop.call_soon(self.flush)
        self._awake[watch] = None

    def flush(self) -> None:
        """Send what is pending, one write per watch."""
        awake, self._awake = self._awake, {}
        self._revisions.flush()
        for watch in awake:
            self.send(watch)

    def send(self, watch: Watch) -> None:
        """Send one watch what is pending for it, unless its client is too slow to take it now."""
        sink, lines = watch.sink, watch.pending
        if sink is None or not lines or watch.silent:
            return
        if sink.congested:
            if sum(map(len, lines)) > _BACKLOG_LIMIT_BYTES:
                sink.cut()
            return
        if self.duplicate or self.reorder:
            lines = self._disturbed(lines)
        self.sent_events += len(lines)
        watch.pending = []
        sink.send(lines[0] if len(lines) == 1 else b"".join(lines))

    def cut_all(self) -> None:
        """Drop the connection of every watch without a word."""
        for watch in list(self.active):
            if watch.sink is not None:
                watch.sink.cut()

    def silence_all(self) -> None:
        """Let every open watch send nothing any more, not even its end, while its connection stays up."""
        for watch in self.active:
            watch.silent = True

    def expire_all(self) -> None:
        """End every watch with the ERROR event that says its version is too old."""
        for watch in list(self.active):
            watch.expire(Refused(410, "Expired", "The resourceVersion for the provided watch is too old."))

    def _send_bookmarks(self) -> None:
        if self._loop is None:
            return
        for watch in self.active:
            if watch.bookmarks:
                watch.bookmark(self._revisions.version)
        self._bookmark_timer = self._loop.call_later(self._bookmark_seconds, self._send_bookmarks)

    def _disturbed(self, lines: list[bytes]) -> list[bytes]:
        """`lines` with some sent twice and some neighbours swapped; bookmarks keep their place: they promise order."""
        disturbed: list[bytes] = []
        for line in lines:
            fixed = line.startswith(b'{"type":"BOOKMARK"')
            swap = bool(disturbed) and not fixed and not disturbed[-1].startswith(b'{"type":"BOOKMARK"')
            if swap and self._random.random() < self.reorder:
                disturbed.insert(-1, line)
            else:
                disturbed.append(line)
            if not fixed and self._random.random() < self.duplicate:
                disturbed.append(line)
        return disturbed
