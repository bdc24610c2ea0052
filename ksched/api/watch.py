"""List and watch: every change of one kind of object, without gaps and without repeats, in batches.

A `Reflector` lists once (as a watch list where the server has them, else in pages), then watches from where the list
ended. Of every object it keeps only uid and resourceVersion: enough to drop duplicates and stale events, and to find
out after a new list what vanished meanwhile. What it tells its handler is always consistent: ADDED once, MODIFIED with
rising versions, DELETED once, and a name that passes to another object is DELETED and then ADDED. Whatever the server
sends, the reflector carries on: a connection that breaks or falls silent is made again from the last version, history
that is gone is listed again, and a malformed object is skipped and named in the log.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from msgspec import Struct

from ksched.api.backoff import Backoff
from ksched.api.client import Client
from ksched.api.decode import ApiStatus, KubeObject, Malformed, ObjectDecoder, Page
from ksched.errors import ApiError, ClientError, ConnectionFailed, ObjectError

log = logging.getLogger(__name__)

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"

INITIAL_EVENTS_END = "k8s.io/initial-events-end"

SILENCE_SECONDS = 90.0
"""A server sends a bookmark about every minute; a connection that is silent for longer is taken for dead."""

WATCH_SECONDS = (300, 600)
"""For how long a watch is asked for, at random, so that not all end at once."""

MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_GONE = 1000
MAX_COMPLAINTS = 1000
PATIENCE = 3
"""After so many watches in a row that brought nothing, the version to go on from is doubted: list again."""

T = TypeVar("T", bound=KubeObject)


class Event(Struct, Generic[T], frozen=True, gc=False):
    """A change. `object` is None for a DELETED whose last state the server did not send."""

    kind: str
    type: str
    object: T | None
    key: str
    uid: str


class Handler(Protocol[T]):
    """Who is told. Called on the loop, between two reads of the socket; must not wait."""

    def apply(self, events: list[Event[T]]) -> None:
        """Changes, in the order in which they happened."""

    def synced(self, kind: str) -> None:
        """The first list is complete; called once."""


@dataclass(slots=True)
class ReflectorCounters:
    """What a reflector has seen."""

    lists: int = 0
    watches: int = 0
    expired: int = 0
    cut: int = 0
    events: int = 0
    bookmarks: int = 0
    stale: int = 0
    vanished: int = 0
    malformed: int = 0


class Reflector(Generic[T]):
    """Follows one resource of an API server until it is cancelled."""

    def __init__(
        self,
        client: Client,
        resource_path: str,
        decoder: ObjectDecoder[T],
        handler: Handler[T],
        *,
        rng: random.Random,
        field_selector: str = "",
        label_selector: str = "",
        page_size: int = 500,
        use_watch_list: bool = True,
        silence_seconds: float = SILENCE_SECONDS,
        on_list_start: Callable[[], None] | None = None,
        on_list_end: Callable[[], None] | None = None,
    ) -> None:
        self.kind = decoder.kind
        self.counters = ReflectorCounters()
        self.resource_version = ""
        """Where the next watch goes on; empty when everything has to be listed first."""
        self.has_synced = False
        self._client = client
        self._path = resource_path
        self._decoder = decoder
        self._handler = handler
        self._rng = rng
        self._backoff = Backoff(rng, 0.1, 30.0)
        selectors = {"fieldSelector": field_selector, "labelSelector": label_selector}
        self._selectors = {name: value for name, value in selectors.items() if value}
        self._page_size = page_size
        self._use_watch_list = use_watch_list
        self._silence_seconds = silence_seconds
        self._on_list_start = on_list_start
        self._on_list_end = on_list_end
        self._known: dict[str, tuple[str, int]] = {}
        self._gone: dict[str, int] = {}
        self._complaints: dict[str, str] = {}
        self._listed: set[str] | None = None
        """Keys seen by the list in progress; None while watching."""
        self._line: list[bytes] = []
        self._line_bytes = 0
        self._progress = False
        self._fruitless = 0

    async def run(self) -> None:
        """List and watch until cancelled; only faults of the handler end it otherwise."""
        while True:
            self._progress = False
            why: ClientError | None = None
            try:
                if not self.resource_version and not self._use_watch_list:
                    await self._list()
                await (self._watch() if self.resource_version else self._watch_list())
            except ClientError as error:
                why = error
            except ObjectError as error:
                # What cannot be read may have been a change; only a new list makes up for it.
                why = ApiError(410, "Unreadable", str(error))
            finally:
                self._end_list()
            # Without a version and a reason, watch lists were given up just now: list in pages at once.
            if why is not None or self.resource_version:
                await self._recover(why)

    async def _recover(self, why: ClientError | None) -> None:
        """Decide where to go on after a list or watch has ended, and how soon."""
        if self._progress:
            self._backoff.reset()
            self._fruitless = 0
            if why is None:
                return
        self._fruitless += 1
        if isinstance(why, ConnectionFailed):
            self.counters.cut += 1
        if self.resource_version and (_expired(why) or self._fruitless >= PATIENCE):
            self.counters.expired += 1
            self.resource_version = ""
            self._fruitless = 0
        delay = self._backoff.next()
        if isinstance(why, ApiError) and why.retry_after_seconds:
            delay += min(why.retry_after_seconds, 30.0)
        if why is not None:
            what = "watching" if self.resource_version else "listing"
            log.warning("%s: %s; %s again in %.1f s", self._path, why, what, delay)
        await asyncio.sleep(delay)

    # Lists.

    async def _watch_list(self) -> None:
        """List by watching: the server sends what there is, says where that ends, and goes on with changes."""
        query = {"resourceVersionMatch": "NotOlderThan", "sendInitialEvents": "true"}
        self._start_list()
        try:
            await self._stream(query)
        except ApiError as error:
            if error.code not in (400, 422) or self.resource_version:
                raise
            log.info("%s: the server has no watch lists (%s); listing in pages", self._path, error)
            self._use_watch_list = False
            return
        if self._listed is not None:
            # Ended before everything was sent: this server may not know what was asked of it.
            self._use_watch_list = False

    async def _list(self) -> None:
        """List in pages. A token that has expired means starting over, the second time without pages."""
        self._start_list()
        paged, token = True, ""
        restarts = 0
        while True:
            query = dict(self._selectors)
            if paged:
                query["limit"] = str(self._page_size)
            if token:
                query["continue"] = token
            answer = await self._client.request("GET", self._path, query=query, timeout_seconds=60.0)
            if token and answer.status == 410:
                token, restarts = "", restarts + 1
                paged = restarts < 2
                self._listed = set()
                continue
            if not answer.ok:
                raise answer.error()
            page = self._decoder.page(answer.body)
            self._take_page(page)
            if not page.continue_token:
                self._list_complete(page.resource_version)
                return
            token = page.continue_token

    def _take_page(self, page: Page[T]) -> None:
        batch: list[Event[T]] = []
        for item in page.items:
            self._put(item, batch)
        for bad in page.malformed:
            self._complain(ADDED, bad, batch)
        self._deliver(batch)

    def _start_list(self) -> None:
        self.counters.lists += 1
        self._listed = set()
        if self._on_list_start is not None:
            self._on_list_start()

    def _list_complete(self, resource_version: str) -> None:
        """Everything was listed: what is known and was not listed is gone."""
        if not resource_version:
            raise ObjectError(f"{self.kind}: metadata.resourceVersion of the list: expected a version, got none")
        listed, self._listed = self._listed or set(), None
        vanished = [key for key in self._known if key not in listed]
        self.counters.vanished += len(vanished)
        self._deliver([self._forget(key) for key in vanished])
        # The list is the truth, also where it is older than what was known: the server may have been restored.
        self._gone.clear()
        self.resource_version = resource_version
        if self._on_list_end is not None:
            self._on_list_end()
        if not self.has_synced:
            self.has_synced = True
            self._handler.synced(self.kind)

    def _end_list(self) -> None:
        """A list that was not completed ends, too."""
        if self._listed is not None:
            self._listed = None
            if self._on_list_end is not None:
                self._on_list_end()

    # Watches.

    async def _watch(self) -> None:
        """Watch from where we are."""
        await self._stream({"resourceVersion": self.resource_version})

    async def _stream(self, query: dict[str, str]) -> None:
        """One watch, until the server ends it or it breaks."""
        self.counters.watches += 1
        self._line.clear()
        self._line_bytes = 0
        seconds = self._rng.randint(*WATCH_SECONDS)
        always = {"allowWatchBookmarks": "true", "watch": "true", "timeoutSeconds": str(seconds)}
        await self._client.stream(
            self._path,
            query={**always, **self._selectors, **query},
            on_data=self._read,
            silence_seconds=self._silence_seconds,
            timeout_seconds=seconds + 30.0,
        )

    def _read(self, data: bytes) -> None:
        """Some bytes of a watch: hand on the events that are complete."""
        batch: list[Event[T]] = []
        try:
            for line in self._lines(data):
                if line:
                    self._take_event(line, batch)
        finally:
            # What came before an error has happened.
            self._deliver(batch)

    def _lines(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes; the rest is kept for the next call."""
        lines = data.split(b"\n")
        if len(lines) == 1:
            self._line.append(data)
            self._line_bytes += len(data)
            if self._line_bytes > MAX_LINE_BYTES:
                raise ObjectError(f"{self.kind}: a watch line without an end after {self._line_bytes} bytes")
            return []
        if self._line:
            self._line.append(lines[0])
            lines[0] = b"".join(self._line)
            self._line.clear()
        rest = lines.pop()
        if rest:
            self._line.append(rest)
        self._line_bytes = len(rest)
        return lines

    def _take_event(self, line: bytes, batch: list[Event[T]]) -> None:
        """One line of a watch."""
        type, object = self._decoder.event(line)
        if isinstance(object, ApiStatus):
            raise ApiError(object.code, object.reason, object.message)
        if isinstance(object, Malformed):
            version = object.identity.resource_version
            self._complain(type, object, batch)
        elif type == "BOOKMARK":
            self._bookmark(object, batch)
            return
        else:
            version = object.metadata.resource_version
            if type == DELETED:
                self._delete(object, batch)
            else:
                self._put(object, batch)
        # Initial events are in no order; where they end, a bookmark tells.
        if self._listed is None and version:
            self.resource_version = version
            self._progress = True

    def _bookmark(self, object: T, batch: list[Event[T]]) -> None:
        """The server tells how far we are."""
        self.counters.bookmarks += 1
        version = object.metadata.resource_version
        if self._listed is not None:
            if object.metadata.annotations.get(INITIAL_EVENTS_END) == "true":
                # What was listed comes before what is told about the list's end.
                self._deliver(batch.copy())
                batch.clear()
                self._list_complete(version)
            return
        if 0 < _number(version) < _number(self.resource_version):
            raise ApiError(410, "Expired", f"the server went back from version {self.resource_version} to {version}")
        self.resource_version = version
        self._progress = True

    # What is known.

    def _put(self, object: T, batch: list[Event[T]]) -> None:
        """An object as it is now: new, changed, another one of the same name, or nothing new."""
        metadata = object.metadata
        key = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
        uid, version = metadata.uid, _number(metadata.resource_version)
        known = self._known.get(key)
        listed = self._listed
        if listed is not None:
            listed.add(key)
            stale = known is not None and known == (uid, version) and version > 0
        else:
            newest = known[1] if known is not None else self._gone.get(key, 0)
            # Two objects of one name never share a version, so an equal one is a duplicate.
            stale = 0 < version <= newest
        if stale:
            self.counters.stale += 1
            return
        if known is not None and known[0] != uid:
            batch.append(self._forget(key))
            known = None
        self._known[key] = (uid, version)
        batch.append(Event(self.kind, ADDED if known is None else MODIFIED, object, key, uid))

    def _delete(self, object: T, batch: list[Event[T]]) -> None:
        """An object is gone, or is not selected any more."""
        metadata = object.metadata
        key = f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name
        version = _number(metadata.resource_version)
        known = self._known.get(key)
        if known is None or 0 < version < known[1]:
            self.counters.stale += 1
            return
        forgotten = self._forget(key)
        same = known[0] == metadata.uid
        batch.append(Event(self.kind, DELETED, object, key, metadata.uid) if same else forgotten)
        self._gone[key] = version
        if len(self._gone) > MAX_GONE:
            del self._gone[next(iter(self._gone))]

    def _forget(self, key: str) -> Event[T]:
        """Remove what is known of `key`; the event that says so, without the object."""
        uid, version = self._known.pop(key)
        self._gone[key] = version
        return Event(self.kind, DELETED, None, key, uid)

    def _complain(self, type: str, bad: Malformed, batch: list[Event[T]]) -> None:
        """Name a malformed object once per version; what is known of it stays, unless this is another object."""
        self.counters.malformed += 1
        identity = bad.identity
        key = identity.key
        if self._listed is not None:
            self._listed.add(key)
        known = self._known.get(key)
        if known is not None and (type == DELETED or (identity.uid and identity.uid != known[0])):
            batch.append(self._forget(key))
            known = None
        if self._complaints.get(key) == identity.resource_version:
            return
        if len(self._complaints) >= MAX_COMPLAINTS:
            self._complaints.clear()
        self._complaints[key] = identity.resource_version
        kept = "it is skipped" if known is None else "the last good version is kept"
        log.warning("%s (resourceVersion %s); %s", bad.error, identity.resource_version or "unknown", kept)

    def _deliver(self, batch: list[Event[T]]) -> None:
        if batch:
            self.counters.events += len(batch)
            self._handler.apply(batch)


def _expired(why: Exception | None) -> bool:
    """Whether the server has no history any more to go on from."""
    return isinstance(why, ApiError) and (why.code == 410 or why.reason in ("Expired", "Gone"))


def _number(resource_version: str) -> int:
    """A resourceVersion as a number; 0 where it is none, which compares with nothing."""
    return int(resource_version) if resource_version.isascii() and resource_version.isdigit() else 0
