"""The loader's requests: many of them at once for creating, single ones for everything else.

Creating uses callbacks and at most thirty requests at a time, scheduler_perf's number of workers. Kinds are mapped to
paths by asking the server what it serves, so that any object of a template finds its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import msgspec

from benchmarks.errors import RunFailed
from benchmarks.scheduler_perf.objects import served_version
from ksched.api.client import Call, Client, Outcome, segment
from ksched.api.http1 import Response
from ksched.errors import ApiError

Json = dict[str, Any]

WORKERS = 30
"""As scheduler_perf creates pods."""

REQUEST_SECONDS = 120.0
PAGE = 5000
"""Objects in a page of a list. Few large pages: they are read outside of what is measured."""

Created = Callable[[int, Response], None]


class Indexed(Protocol):
    """Request bodies by number."""

    def __getitem__(self, index: int, /) -> bytes:
        """The body of number `index`."""


@dataclass(frozen=True)
class Kind:
    """Where objects of one kind are."""

    base: str
    plural: str
    namespaced: bool

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of the collection, of an object, or of a part of it."""
        within = f"/namespaces/{segment(namespace)}" if self.namespaced and namespace else ""
        below = "".join(f"/{segment(part)}" for part in (name, subresource) if part)
        return f"{self.base}{within}/{self.plural}{below}"


class Api:
    """One server, as the loader sees it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._kinds: dict[str, dict[str, Kind]] = {}

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """The decoded answer of a GET."""
        answer = await self.client.request("GET", path, query=query, timeout_seconds=REQUEST_SECONDS)
        if not answer.ok:
            raise RunFailed(f"GET {path}: {answer.error()} ({answer.status})")
        return msgspec.json.decode(answer.body)

    async def write(self, method: str, path: str, body: Json | bytes | None = None, query: Json | None = None) -> Any:
        """The decoded answer of a write. Raises ApiError when the server refuses it."""
        encoded = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        answer = await self.client.request(method, path, body=encoded, query=query, timeout_seconds=REQUEST_SECONDS)
        if not answer.ok:
            raise answer.error()
        return msgspec.json.decode(answer.body)

    async def patch(self, path: str, body: Json) -> None:
        """A merge patch. Raises ApiError when the server refuses it."""
        answer = await self.client.request(
            "PATCH",
            path,
            body=msgspec.json.encode(body),
            content_type="application/merge-patch+json",
            timeout_seconds=REQUEST_SECONDS,
        )
        if not answer.ok:
            raise answer.error()

    async def kind(self, thing: Json, where: str) -> Kind:
        """Where the object's kind is. Raises RunFailed for one that the server does not serve."""
        api_version = served_version(thing["apiVersion"])
        if api_version not in self._kinds:
            base = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
            answer = await self.client.request("GET", base)
            served = msgspec.json.decode(answer.body)["resources"] if answer.ok else []
            self._kinds[api_version] = {
                each["kind"]: Kind(base, each["name"], each["namespaced"]) for each in served if "/" not in each["name"]
            }
        found = self._kinds[api_version].get(thing["kind"])
        if found is None:
            raise RunFailed(f"{where}: the server has no {thing['kind']} in {api_version}")
        return found

    async def ensure_namespace(self, name: str, *, with_account: bool = False) -> None:
        """Create a namespace unless it is there. `with_account` also creates the service account that a real server's
        admission wants for every pod, which its controller would be too late for."""
        await self._ensure("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        if with_account:
            account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
            await self._ensure(f"/api/v1/namespaces/{segment(name)}/serviceaccounts", account)

    async def _ensure(self, path: str, thing: Json) -> None:
        try:
            await self.write("POST", path, thing)
        except ApiError as error:
            if error.code != 409:
                raise RunFailed(f"POST {path}: {thing['metadata']['name']}: {error}") from error

    async def pages(self, path: str, query: Mapping[str, str] | None = None) -> list[Json]:
        """Every object of a list, read in pages."""
        found: list[Json] = []
        more = ""
        while True:
            asked = {**(query or {}), "limit": str(PAGE), **({"continue": more} if more else {})}
            page = await self.get(path, asked)
            found += page["items"]
            more = page["metadata"].get("continue", "")
            if not more:
                return found

    async def create_all(
        self, path: str, bodies: Indexed, count: int, created: Created | None = None, *, workers: int = WORKERS
    ) -> None:
        """Create the bodies 0 to `count` - 1 in order; `created` is told of each. Raises RunFailed at a refusal."""
        await _Batch(self.client, path, bodies, count, created).run(workers)

    async def delete_each(self, paths: Sequence[str], query: Mapping[str, str] | None = None) -> None:
        """Delete objects, a few at a time; those that are gone are fine."""
        limit = asyncio.Semaphore(WORKERS)

        async def delete(path: str) -> None:
            async with limit:
                answer = await self.client.request("DELETE", path, query=query, timeout_seconds=REQUEST_SECONDS)
                if not answer.ok and answer.status != 404:
                    raise RunFailed(f"DELETE {path}: {answer.error()}")

        await asyncio.gather(*(delete(path) for path in paths))


class _Batch:
    """Creations on their way, a fixed number at a time. Nothing is awaited per object."""

    def __init__(self, client: Client, path: str, bodies: Indexed, count: int, created: Created | None) -> None:
        self._client = client
        self._path = path
        self._bodies = bodies
        self._count = count
        self._created = created
        self._next = 0
        self._done = 0
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calls: set[Call] = set()

    async def run(self, workers: int) -> None:
        """Send all, and return when the last answer is there."""
        if self._count == 0:
            return
        for _ in range(min(workers, self._count)):
            self._send()
        try:
            await self._ended
        finally:
            for call in self._calls:
                self._client.abandon(call)

    def _send(self) -> None:
        path, index = self._path, self._next
        if index >= self._count or self._ended.done():
            return
        self._next += 1

        def done(outcome: Outcome) -> None:
            self._calls.discard(call)
            if self._ended.done():
                return
            if not isinstance(outcome, Response):
                self._ended.set_exception(RunFailed(f"POST {path}: {outcome}"))
            elif not outcome.ok:
                self._ended.set_exception(RunFailed(f"POST {path}: {outcome.error()} ({outcome.status})"))
            else:
                self._done += 1
                if self._created is not None:
                    self._created(index, outcome)
                if self._done == self._count:
                    self._ended.set_result(None)
                else:
                    self._send()

        call = self._client.send("POST", path, self._bodies[index], on_done=done, timeout_seconds=REQUEST_SECONDS)
        self._calls.add(call)
