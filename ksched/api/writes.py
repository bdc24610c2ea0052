"""What the scheduler writes about pods: binding, status, deletion.

A bind must happen once, and whoever asked must learn the truth: an answer that was lost (a cut connection, a timeout, a
5xx) is resolved by looking at the pod, never by guessing. If the pod has our node it is bound; if it has none the bind
is sent again; the server itself refuses a second bind, so sending again can do no harm. Status patches of one pod never
overtake each other, and a newer one replaces one that has not been sent yet.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import orjson

from ksched.api.client import MAX_RETRY_AFTER_SECONDS, Call, Client, Outcome, segment
from ksched.api.decode import POD
from ksched.api.http1 import Response
from ksched.api.transport import JSON, Priority
from ksched.errors import ApiError, ClientError, ConnectionFailed, ObjectError
from ksched.model.pod import Pod

STRATEGIC_MERGE = "application/strategic-merge-patch+json"

MAX_BINDS = 6
"""How often one bind is sent, when looking shows each time that it had no effect."""

MAX_LOOKS = 8
"""How often a pod is looked at in vain before its bind is given up as lost; each look has its own tries."""

PATCH_DELAYS_SECONDS = (0.010, 0.050, 0.250)
"""As kube-scheduler waits between its four attempts at a status patch."""

PATCH_AGAIN = frozenset({409, 500, 503})


class BindOutcome(Enum):
    """How a bind ended."""

    BOUND = "bound"
    CONFLICT = "the pod is on another node, or the server says that it cannot be bound now"
    NOT_FOUND = "the pod is gone"
    UID_MISMATCH = "another pod has the name"
    REFUSED = "the server refused; the pod is not bound"
    LOST = "nobody knows: no answer, and looking failed too"


@dataclass(frozen=True, slots=True)
class BindResult:
    """How a bind ended, and why. `node` is where the pod is, when it is known to be on another node.

    After LOST the room must stay held until the watch tells: the bind may have taken effect.
    """

    outcome: BindOutcome
    error: ClientError | None = None
    node: str = ""

    @property
    def bound(self) -> bool:
        """Whether the pod is on the node it was to be on."""
        return self.outcome is BindOutcome.BOUND


class WriteOutcome(Enum):
    """How a status patch or a deletion ended."""

    DONE = "done"
    SUPERSEDED = "a newer patch of the same pod was sent instead"
    NOT_FOUND = "the pod is gone"
    REFUSED = "the server refused"
    LOST = "no answer"


@dataclass(frozen=True, slots=True)
class WriteResult:
    """How a status patch or a deletion ended, and why."""

    outcome: WriteOutcome
    error: ClientError | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing is left to do."""
        return self.outcome in (WriteOutcome.DONE, WriteOutcome.SUPERSEDED)


@dataclass(slots=True)
class WriteCounters:
    """What was written since the start; each bind ends in exactly one of the first three."""

    bound: int = 0
    binds_refused: int = 0
    binds_lost: int = 0
    looks: int = 0
    binds_again: int = 0
    patched: int = 0
    patches_superseded: int = 0
    patches_failed: int = 0
    patches_again: int = 0
    deleted: int = 0
    deletes_failed: int = 0


_BOUND = BindResult(BindOutcome.BOUND)
_DONE = WriteResult(WriteOutcome.DONE)
_SUPERSEDED = WriteResult(WriteOutcome.SUPERSEDED)
_DELETE_OPTIONS = b'{"kind":"DeleteOptions","apiVersion":"v1"}'


class Writes:
    """Writes about pods through one client; callbacks run on its loop."""

    def __init__(self, client: Client, *, rng: random.Random, timeout_seconds: float = 30.0) -> None:
        self.counters = WriteCounters()
        self.in_flight = 0
        self._client = client
        self._rng = rng
        self._timeout_seconds = timeout_seconds
        self._loop = asyncio.get_running_loop()
        self._statuses: dict[str, _StatusPatch] = {}
        self._delayed: dict[_Bind | _StatusPatch, asyncio.TimerHandle] = {}
        self._idle = asyncio.Event()

    def bind(self, namespace: str, name: str, uid: str, node_name: str, done: Callable[[BindResult], None]) -> None:
        """Bind a pod to a node; `done` is called once, when it is known what became of it."""
        self.in_flight += 1
        self._client.submit(_Bind(self, namespace, name, uid, node_name, done))

    async def bind_pod(self, namespace: str, name: str, uid: str, node_name: str) -> BindResult:
        """The same for whoever can wait."""
        result: asyncio.Future[BindResult] = self._loop.create_future()
        self.bind(namespace, name, uid, node_name, lambda ended: None if result.done() else result.set_result(ended))
        return await result

    def patch_pod_status(
        self, namespace: str, name: str, uid: str, patch: dict[str, Any], done: Callable[[WriteResult], None]
    ) -> None:
        """Strategic merge of `patch` ({"status": {...}}) into a pod's status.

        One patch per pod is on its way at a time. A patch that has not gone out yet is merged into this one, which
        wins, and its `done` gets SUPERSEDED.
        """
        self.in_flight += 1
        waiting = self._statuses.get(uid)
        if waiting is not None:
            waiting.add(patch, done)
            return
        self._statuses[uid] = status = _StatusPatch(self, namespace, name, uid, patch, done)
        status.send()

    def delete_pod(
        self, namespace: str, name: str, uid: str, done: Callable[[WriteResult], None], *, only_uid: bool = False
    ) -> None:
        """Delete a pod with its own grace period, as a preemption victim; a pod that is gone already counts as deleted.

        `only_uid` makes the server refuse when another pod has taken the name; kube-scheduler does not ask for that.
        """
        self.in_flight += 1
        body = _DELETE_OPTIONS
        if only_uid:
            body = orjson.dumps({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}})
        self._client.send(
            "DELETE",
            pod_path(namespace, name),
            body,
            on_done=lambda outcome: self._deleted(outcome, done),
            priority=Priority.BIND,
            timeout_seconds=self._timeout_seconds,
            idempotent=only_uid,
        )

    async def drain(self, timeout_seconds: float) -> int:
        """Wait until nothing is in flight, or the time is over; the number of writes still in flight."""
        try:
            async with asyncio.timeout(timeout_seconds):
                while self.in_flight:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            return self.in_flight
        return 0

    def close(self) -> None:
        """Give up what waits for another try; its callbacks are told that it is lost."""
        delayed, self._delayed = self._delayed, {}
        closed = ConnectionFailed("the scheduler is stopping", sent=True)
        for write, timer in delayed.items():
            timer.cancel()
            write.give_up(closed)

    # Binds.

    def _bind_answered(self, bind: _Bind, outcome: Outcome) -> None:
        """An answer to a bind, or none."""
        if isinstance(outcome, Response) and outcome.status < 400:
            self._bind_ended(bind, _BOUND)
            return
        error = outcome.error() if isinstance(outcome, Response) else outcome
        bind.error = error
        if isinstance(error, ConnectionFailed):
            if error.sent:
                bind.lost = True
                self._look(bind)
            else:
                self._bind_again(bind)
        elif error.code >= 500:
            bind.lost = True
            self._look(bind)
        elif error.code == 409 and bind.lost:
            # An earlier attempt whose answer was lost may be what it conflicts with.
            self._look(bind)
        else:
            self._bind_ended(bind, BindResult(_refusal(error), error))

    def _look(self, bind: _Bind) -> None:
        """Ask where the pod is."""
        self.counters.looks += 1
        bind.looks += 1
        self._client.send(
            "GET",
            pod_path(bind.namespace, bind.name),
            on_done=lambda outcome: self._looked(bind, outcome),
            priority=Priority.BIND,
            timeout_seconds=self._timeout_seconds,
        )

    def _looked(self, bind: _Bind, outcome: Outcome) -> None:
        """An answer to a look, or none."""
        if isinstance(outcome, Response) and outcome.ok:
            try:
                pod = POD.object(outcome.body)
            except ObjectError as unreadable:
                self._look_again(bind, ClientError(str(unreadable)))
            else:
                self._found(bind, pod)
            return
        error = outcome.error() if isinstance(outcome, Response) else outcome
        if isinstance(error, ApiError) and error.code == 404:
            self._bind_ended(bind, BindResult(BindOutcome.NOT_FOUND, error))
        else:
            self._look_again(bind, error)

    def _found(self, bind: _Bind, pod: Pod) -> None:
        """What the pod says decides: bound, somewhere else, another pod, or to be bound again."""
        if pod.uid != bind.uid:
            error = ClientError(f"{pod.key} is another pod now: uid {pod.uid}, expected {bind.uid}")
            self._bind_ended(bind, BindResult(BindOutcome.UID_MISMATCH, error))
        elif pod.node_name == bind.node_name:
            self._bind_ended(bind, _BOUND)
        elif pod.node_name:
            error = ClientError(f"{pod.key} is on node {pod.node_name} already")
            self._bind_ended(bind, BindResult(BindOutcome.CONFLICT, error, pod.node_name))
        else:
            bind.looks = 0
            self._bind_again(bind)

    def _bind_again(self, bind: _Bind) -> None:
        """It is known to have had no effect: send it again, later, unless it has had its chances."""
        if bind.binds >= MAX_BINDS:
            self._bind_ended(bind, BindResult(BindOutcome.REFUSED, bind.error))
            return
        self.counters.binds_again += 1
        delay = max(self._backoff(bind.binds), _asked_to_wait(bind.error))
        self._later(bind, delay, lambda: self._send_bind(bind))

    def _send_bind(self, bind: _Bind) -> None:
        bind.binds += 1
        bind.renew()
        self._client.submit(bind)

    def _look_again(self, bind: _Bind, error: ClientError) -> None:
        if bind.looks >= MAX_LOOKS:
            self._bind_ended(bind, BindResult(BindOutcome.LOST, error))
        else:
            self._later(bind, self._backoff(bind.looks), lambda: self._look(bind))

    def _bind_ended(self, bind: _Bind, result: BindResult) -> None:
        if result is _BOUND:
            self.counters.bound += 1
        elif result.outcome is BindOutcome.LOST:
            self.counters.binds_lost += 1
        else:
            self.counters.binds_refused += 1
        self._ended()
        bind.told(result)

    # Status patches.

    def _patch_ended(self, status: _StatusPatch, result: WriteResult) -> None:
        """One patch of a pod is through: the next one may go."""
        if result.ok:
            self.counters.patched += 1
        else:
            self.counters.patches_failed += 1
        told = status.told
        if status.next_patch is None:
            del self._statuses[status.uid]
        else:
            status.take_next()
            status.send()
        self._ended()
        told(result)

    def _patch_superseded(self, told: Callable[[WriteResult], None]) -> None:
        self.counters.patches_superseded += 1
        self._ended()
        told(_SUPERSEDED)

    # Deletions.

    def _deleted(self, outcome: Outcome, done: Callable[[WriteResult], None]) -> None:
        result = _write_result(outcome)
        if result.outcome in (WriteOutcome.DONE, WriteOutcome.NOT_FOUND):
            self.counters.deleted += 1
        else:
            self.counters.deletes_failed += 1
        self._ended()
        done(result)

    # Time.

    def _backoff(self, failures: int) -> float:
        return min(0.02 * 2.0**failures, 5.0) * (0.5 + self._rng.random())

    def _later(self, write: _Bind | _StatusPatch, seconds: float, act: Callable[[], None]) -> None:
        def due() -> None:
            del self._delayed[write]
            act()

        self._delayed[write] = self._loop.call_later(seconds, due)

    def _ended(self) -> None:
        self.in_flight -= 1
        if not self.in_flight:
            self._idle.set()


class _Bind(Call):
    """One bind, from the first request to the answer that settles it."""

    __slots__ = ("binds", "error", "looks", "lost", "name", "namespace", "node_name", "told", "uid", "writes")

    def __init__(
        self,
        writes: Writes,
        namespace: str,
        name: str,
        uid: str,
        node_name: str,
        told: Callable[[BindResult], None],
    ) -> None:
        path, body = pod_path(namespace, name, "/binding"), bind_body(namespace, name, uid, node_name)
        Call.__init__(self, "POST", path, body, JSON, Priority.BIND, writes._timeout_seconds, False, 1)
        self.writes = writes
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.node_name = node_name
        self.told = told
        self.binds = 1
        self.looks = 0
        self.lost = False
        self.error: ClientError | None = None

    def done(self, outcome: Outcome) -> None:
        self.writes._bind_answered(self, outcome)

    def give_up(self, why: ClientError) -> None:
        """Nobody will try again: what became of it is known only if it never went out."""
        outcome = BindOutcome.LOST if self.lost else BindOutcome.REFUSED
        self.writes._bind_ended(self, BindResult(outcome, why))


class _StatusPatch:
    """The patches of one pod's status: one on its way, and at most one that waits for it."""

    __slots__ = ("attempts", "call", "name", "namespace", "next_patch", "next_told", "patch", "told", "uid", "writes")

    def __init__(
        self,
        writes: Writes,
        namespace: str,
        name: str,
        uid: str,
        patch: dict[str, Any],
        told: Callable[[WriteResult], None],
    ) -> None:
        self.writes = writes
        self.namespace = namespace
        self.name = name
        self.uid = uid
        self.patch = patch
        self.told = told
        self.attempts = 0
        self.call: Call | None = None
        self.next_patch: dict[str, Any] | None = None
        self.next_told: Callable[[WriteResult], None] | None = None

    def send(self) -> None:
        """Send the patch, for the first time or again."""
        self.attempts += 1
        self.call = self.writes._client.send(
            "PATCH",
            pod_path(self.namespace, self.name, "/status"),
            orjson.dumps(self.patch),
            on_done=self.answered,
            content_type=STRATEGIC_MERGE,
            priority=Priority.STATUS,
            timeout_seconds=self.writes._timeout_seconds,
            idempotent=False,
            max_tries=1,
        )

    def add(self, patch: dict[str, Any], told: Callable[[WriteResult], None]) -> None:
        """A newer patch: it takes the place of what has not gone out yet."""
        call = self.call
        if call is None or not call.headers:
            superseded, self.told = self.told, told
            self.patch = merged(self.patch, patch)
            if call is not None:
                call.body = orjson.dumps(self.patch)
            self.writes._patch_superseded(superseded)
            return
        if self.next_told is not None:
            self.writes._patch_superseded(self.next_told)
        self.next_patch = patch if self.next_patch is None else merged(self.next_patch, patch)
        self.next_told = told

    def take_next(self) -> None:
        """The patch that waited is the one to send."""
        assert self.next_patch is not None
        assert self.next_told is not None
        self.patch, self.told = self.next_patch, self.next_told
        self.next_patch = self.next_told = None
        self.attempts = 0

    def answered(self, outcome: Outcome) -> None:
        """Done, or refused for good, or to be tried again as kube-scheduler does: four attempts in all."""
        self.call = None
        again = outcome.status in PATCH_AGAIN if isinstance(outcome, Response) else True
        if again and self.attempts <= len(PATCH_DELAYS_SECONDS):
            writes = self.writes
            writes.counters.patches_again += 1
            delay = PATCH_DELAYS_SECONDS[self.attempts - 1] * (1.0 + 0.1 * writes._rng.random())
            error = outcome.error() if isinstance(outcome, Response) else outcome
            writes._later(self, max(delay, _asked_to_wait(error)), self.send)
            return
        self.writes._patch_ended(self, _write_result(outcome))

    def give_up(self, why: ClientError) -> None:
        """Nobody will try again."""
        if self.next_told is not None:
            self.next_patch, told, self.next_told = None, self.next_told, None
            self.writes._patch_superseded(told)
        self.writes._patch_ended(self, WriteResult(WriteOutcome.LOST, why))


def bind_body(namespace: str, name: str, uid: str, node_name: str) -> bytes:
    """A Binding, byte for byte as kube-scheduler writes it."""
    return orjson.dumps(
        {
            "kind": "Binding",
            "apiVersion": "v1",
            "metadata": {"name": name, "namespace": namespace, "uid": uid},
            "target": {"kind": "Node", "name": node_name},
        }
    )


def pod_path(namespace: str, name: str, subresource: str = "") -> str:
    """Where a pod is in the API."""
    return f"/api/v1/namespaces/{segment(namespace)}/pods/{segment(name)}{subresource}"


def merged(older: dict[str, Any], newer: dict[str, Any]) -> dict[str, Any]:
    """One patch with the effect of both, `newer` last: what it does not speak of is kept from `older`."""
    status = {**older.get("status", {}), **newer.get("status", {})}
    order = "$setElementOrder/conditions"
    if "conditions" in newer.get("status", {}) and order not in newer["status"]:
        status.pop(order, None)
    return {**older, **newer, "status": status}


def _refusal(error: ApiError) -> BindOutcome:
    """What a refused bind means."""
    if error.code == 404:
        return BindOutcome.NOT_FOUND
    if error.code == 409:
        # "Precondition failed: UID in precondition: X, UID in object meta: Y"
        return BindOutcome.UID_MISMATCH if "UID in " in error.message else BindOutcome.CONFLICT
    return BindOutcome.REFUSED


def _asked_to_wait(error: ClientError | None) -> float:
    """Retry-After, bounded; 0 where the server asked for nothing."""
    seconds = error.retry_after_seconds if isinstance(error, ApiError) else None
    return min(seconds or 0.0, MAX_RETRY_AFTER_SECONDS)


def _write_result(outcome: Outcome) -> WriteResult:
    if isinstance(outcome, ConnectionFailed):
        return WriteResult(WriteOutcome.LOST, outcome)
    if outcome.ok:
        return _DONE
    error = outcome.error()
    return WriteResult(WriteOutcome.NOT_FOUND if error.code == 404 else WriteOutcome.REFUSED, error)
