"""Event objects: what people see in `kubectl describe`. Aggregated, bounded, the first to be dropped, never waited for.

The JSON is kube-scheduler's, field by field. Identical events become a series: the second is a PATCH with count 2,
later ones are counted in memory and written every half hour and when the series has been quiet for six minutes. The
number of events on their way is bounded; beyond it they are dropped and counted, so that a storm of them cannot hold up
a bind or fill the memory. Where events.k8s.io is not served, the same events go to the core group.
"""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from ksched.api.client import Client, Outcome, segment
from ksched.api.http1 import Response
from ksched.api.transport import JSON, Priority
from ksched.api.writes import STRATEGIC_MERGE
from ksched.errors import ClientError, ConnectionFailed
from ksched.model.pod import Pod

QUEUE_SIZE = 20_000
"""Events on their way at once, about 15 MB. kube-scheduler's 1000 would drop most of a burst of binds."""

MAX_NOTE_BYTES = 1024

MAX_SERIES = 10_000
"""Events remembered to find repetitions; the oldest are forgotten first and then repeat as new ones."""

REFRESH_SECONDS = 30 * 60.0
QUIET_SECONDS = 6 * 60.0

MAX_TRIES = 12
RETRY_SECONDS = 10.0


class ObjectReference(NamedTuple):
    """The object that an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str
    api_version: str
    resource_version: str = ""

    def to_json(self) -> dict[str, str]:
        """As in an Event, without what is empty."""
        wire = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion")
        return {name: value for name, value in zip(wire, self, strict=True) if value}


@dataclass(slots=True)
class EventCounters:
    """What became of the events; `recorded` is the sum of what was sent, counted into series and dropped."""

    recorded: int = 0
    sent: int = 0
    counted: int = 0
    dropped: int = 0
    rejected: int = 0
    retried: int = 0


class EventRecorder:
    """Writes events through one client, on its loop."""

    def __init__(
        self,
        client: Client,
        *,
        hostname: str,
        clock: Callable[[], int] = time.time_ns,
        rng: random.Random,
        queue_size: int = QUEUE_SIZE,
    ) -> None:
        """`clock` gives nanoseconds since 1970: an event's name ends in them."""
        self.counters = EventCounters()
        self.outstanding = 0
        self._client = client
        self._hostname = hostname
        self._clock = clock
        self._rng = rng
        self._queue_size = queue_size
        self._loop = asyncio.get_running_loop()
        self._core = False
        self._series: dict[tuple[Any, ...], _Series] = {}
        self._last_ns = 0
        self._second = -1
        self._second_text = ""
        self._delayed: dict[_Sending, asyncio.TimerHandle] = {}
        self._idle = asyncio.Event()
        self._refresh_timer: asyncio.TimerHandle | None = None
        self._quiet_timer: asyncio.TimerHandle | None = None

    async def discover(self) -> None:
        """Ask which event API the server has, as kube-scheduler does; without an answer the newer one is assumed."""
        try:
            answer = await self._client.request("GET", "/apis/events.k8s.io/v1", priority=Priority.EVENT)
        except ClientError:
            return
        self._core = answer.status == 404

    def record(
        self,
        regarding: Pod | ObjectReference,
        type: str,
        reason: str,
        action: str,
        note: str,
        reporting_controller: str,
        related: ObjectReference | None = None,
    ) -> None:
        """Write an event, or count it into its series. Never waits and never fails."""
        counters = self.counters
        counters.recorded += 1
        if regarding.__class__ is Pod:
            regarding = _reference(regarding)
        assert isinstance(regarding, ObjectReference)
        # A pod is bound once, so Scheduled does not repeat, and there are too many of them to remember.
        repeats = reason != "Scheduled"
        key = (type, reason, action, reporting_controller, regarding, related)
        if repeats and (series := self._series.get(key)) is not None:
            counters.counted += 1
            self._repeat(series)
            return
        if self.outstanding >= self._queue_size:
            counters.dropped += 1
            return
        now = self._now()
        name = self._name(regarding.name, now)
        namespace = regarding.namespace or "default"
        event = self._event(name, namespace, now, regarding, type, reason, action, note, reporting_controller, related)
        if repeats:
            self._remember(key, _Series(name, namespace, event, now))
        self._send(_Sending("POST", self._path(namespace), orjson.dumps(event), JSON))

    def record_core(self, regarding: ObjectReference, type: str, reason: str, message: str, component: str) -> None:
        """Write an event of the core group, as leader election does."""
        self.counters.recorded += 1
        if self.outstanding >= self._queue_size:
            self.counters.dropped += 1
            return
        now = self._now()
        namespace = regarding.namespace or "default"
        event = _core_event(
            self._name(regarding.name, now),
            namespace,
            self._timestamp(now),
            regarding,
            type,
            reason,
            message,
            component,
        )
        self._send(_Sending("POST", f"/api/v1/namespaces/{segment(namespace)}/events", orjson.dumps(event), JSON))

    async def flush(self, timeout_seconds: float) -> int:
        """Wait until everything was written, or the time is over; the number of events still on their way."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while self.outstanding:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            return self.outstanding
        return 0

    def close(self) -> None:
        """Stop; what waits for another try is dropped."""
        for timer in (self._refresh_timer, self._quiet_timer, *self._delayed.values()):
            if timer is not None:
                timer.cancel()
        self._refresh_timer = self._quiet_timer = None
        self.counters.dropped += len(self._delayed)
        self.outstanding -= len(self._delayed)
        self._delayed.clear()
        self._series.clear()

    # Series.

    def _remember(self, key: tuple[Any, ...], series: _Series) -> None:
        if len(self._series) >= MAX_SERIES:
            del self._series[next(iter(self._series))]
        self._series[key] = series
        if self._quiet_timer is None:
            self._quiet_timer = self._loop.call_later(QUIET_SECONDS, self._end_quiet_series)
            self._refresh_timer = self._loop.call_later(REFRESH_SECONDS, self._refresh)

    def _repeat(self, series: _Series) -> None:
        """One more of an event: the second is written at once, later ones are only counted."""
        series.count += 1
        series.last_ns = self._now()
        if series.count == 2:
            self._write(series)

    def _write(self, series: _Series) -> None:
        """Write a series' count; an event that has expired on the server is made anew."""
        if self.outstanding >= self._queue_size:
            self.counters.dropped += 1
            return
        series.written = series.count
        last = self._timestamp(series.last_ns)
        if self._core:
            change: dict[str, Any] = {"count": series.count, "lastTimestamp": f"{last[:19]}Z"}
        else:
            change = {"series": {"count": series.count, "lastObservedTime": last}}
        path = self._path(series.namespace)
        again = _Sending("POST", path, orjson.dumps({**series.event, **change}), JSON)
        body = orjson.dumps(change)
        self._send(_Sending("PATCH", f"{path}/{segment(series.name)}", body, STRATEGIC_MERGE, again))

    def _refresh(self) -> None:
        """Every half hour: write the counts that have risen."""
        self._refresh_timer = self._loop.call_later(REFRESH_SECONDS, self._refresh)
        for series in self._series.values():
            if series.count > series.written:
                self._write(series)

    def _end_quiet_series(self) -> None:
        """Every six minutes: forget what has not repeated for as long, with its last count written."""
        self._quiet_timer = self._loop.call_later(QUIET_SECONDS, self._end_quiet_series)
        quiet_since = self._clock() - int(QUIET_SECONDS * 1e9)
        for key, series in list(self._series.items()):
            if series.last_ns < quiet_since:
                if series.count > series.written:
                    self._write(series)
                del self._series[key]

    # Sending.

    def _send(self, sending: _Sending) -> None:
        self.outstanding += 1
        self._try(sending)

    def _try(self, sending: _Sending) -> None:
        self._client.send(
            sending.method,
            sending.path,
            sending.body,
            on_done=lambda outcome: self._answered(sending, outcome),
            content_type=sending.content_type,
            priority=Priority.EVENT,
            timeout_seconds=60.0,
            max_tries=1,
        )

    def _answered(self, sending: _Sending, outcome: Outcome) -> None:
        """Written, rejected for good, or to be tried again."""
        if isinstance(outcome, ConnectionFailed):
            if sending.tries < MAX_TRIES:
                self._try_later(sending)
                return
            self.counters.dropped += 1
        elif outcome.status == 404 and sending.again is not None:
            # If the event is only late and not gone, it is there before this one.
            sending.again.tries = 2
            self._try(sending.again)
            return
        elif outcome.ok or _exists_already(sending, outcome):
            self.counters.sent += 1
        else:
            self.counters.rejected += 1
        self._ended()

    def _try_later(self, sending: _Sending) -> None:
        sending.tries += 1
        self.counters.retried += 1

        def due() -> None:
            del self._delayed[sending]
            self._try(sending)

        seconds = RETRY_SECONDS * (1.0 + 0.25 * self._rng.random())
        self._delayed[sending] = self._loop.call_later(seconds, due)

    def _ended(self) -> None:
        self.outstanding -= 1
        if not self.outstanding:
            self._idle.set()

    # What an event looks like.

    def _path(self, namespace: str) -> str:
        group = "/api/v1" if self._core else "/apis/events.k8s.io/v1"
        return f"{group}/namespaces/{segment(namespace)}/events"

    def _event(
        self,
        name: str,
        namespace: str,
        now: int,
        regarding: ObjectReference,
        type: str,
        reason: str,
        action: str,
        note: str,
        reporting_controller: str,
        related: ObjectReference | None,
    ) -> dict[str, Any]:
        note = note_of(note)
        if self._core:
            timestamp = self._timestamp(now)
            return _core_event(name, namespace, timestamp, regarding, type, reason, note, reporting_controller)
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "events.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": self._timestamp(now),
            "reportingController": reporting_controller,
            "reportingInstance": f"{reporting_controller}-{self._hostname}",
            "action": action,
            "reason": reason,
            "regarding": regarding.to_json(),
        }
        if related is not None:
            event["related"] = related.to_json()
        event["note"] = note
        event["type"] = type
        event["deprecatedSource"] = {}
        event["deprecatedFirstTimestamp"] = None
        event["deprecatedLastTimestamp"] = None
        return event

    def _now(self) -> int:
        """The time, never twice the same: names are made of it."""
        self._last_ns = now = max(self._clock(), self._last_ns + 1)
        return now

    def _timestamp(self, ns: int) -> str:
        """RFC 3339 with microseconds; the text of the second is kept, since events come many to a second."""
        second, rest = divmod(ns, 1_000_000_000)
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._second_text}.{rest // 1000:06d}Z"

    def _name(self, object_name: str, now: int) -> str:
        """The object's name and the time in hexadecimal, or a random name where that would not be valid."""
        name = f"{object_name}.{now:x}"
        if len(name) > 253 or not _DNS_SUBDOMAIN.fullmatch(name):
            bits = f"{self._rng.getrandbits(128):032x}"
            return "-".join((bits[:8], bits[8:12], bits[12:16], bits[16:20], bits[20:]))
        return name


class _Series:
    """An event that may repeat."""

    __slots__ = ("count", "event", "last_ns", "name", "namespace", "written")

    def __init__(self, name: str, namespace: str, event: dict[str, Any], now: int) -> None:
        self.name = name
        self.namespace = namespace
        self.event = event
        self.count = 1
        self.written = 1
        self.last_ns = now


class _Sending:
    """One request on its way; `again` is what to send when the event to be patched is not there any more."""

    __slots__ = ("again", "body", "content_type", "method", "path", "tries")

    def __init__(self, method: str, path: str, body: bytes, content_type: str, again: _Sending | None = None) -> None:
        self.method = method
        self.path = path
        self.body = body
        self.content_type = content_type
        self.again = again
        self.tries = 1


_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def note_of(text: str) -> str:
    """`text` as an event's note: at most 1024 bytes, as kube-scheduler cuts it."""
    if text.isascii() and len(text) <= MAX_NOTE_BYTES:
        return text
    # Half of a surrogate pair cannot be sent.
    encoded = text.encode("utf-8", "replace")
    if len(encoded) <= MAX_NOTE_BYTES:
        return encoded.decode()
    # A character that the cut goes through is left out.
    return encoded[: MAX_NOTE_BYTES - 4].decode("utf-8", "ignore") + " ..."


def _reference(pod: Pod) -> ObjectReference:
    metadata = pod.metadata
    return ObjectReference("Pod", metadata.namespace, metadata.name, metadata.uid, "v1", metadata.resource_version)


def _core_event(
    name: str,
    namespace: str,
    timestamp: str,
    regarding: ObjectReference,
    type: str,
    reason: str,
    message: str,
    component: str,
) -> dict[str, Any]:
    """An Event of the core group, as the older recorder writes it."""
    seconds = f"{timestamp[:19]}Z"
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": regarding.to_json(),
        "reason": reason,
        "message": message,
        "source": {"component": component},
        "firstTimestamp": seconds,
        "lastTimestamp": seconds,
        "count": 1,
        "type": type,
        "eventTime": None,
        "reportingComponent": component,
        "reportingInstance": "",
    }


def _exists_already(sending: _Sending, answer: Response) -> bool:
    """Whether an earlier try, whose answer was lost, had written the event."""
    return sending.tries > 1 and answer.status == 409 and answer.error().reason == "AlreadyExists"
