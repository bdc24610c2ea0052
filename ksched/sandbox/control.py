"""The parts of a server, put together, and its own paths under /sandbox/: what happened, and how to misbehave."""

from __future__ import annotations

import random
import resource
import time
from typing import Any

import orjson

from ksched.errors import Refused
from ksched.sandbox.audit import audit
from ksched.sandbox.clock import Clock
from ksched.sandbox.faults import Faults
from ksched.sandbox.http import Answer, Request
from ksched.sandbox.ledger import Ledger
from ksched.sandbox.revisions import Revisions
from ksched.sandbox.store import Store
from ksched.sandbox.verbs import Defer, Verbs, at_once
from ksched.sandbox.watches import Watches


class Control:
    """One server's parts, put together; no I/O of its own."""

    def __init__(
        self,
        revisions: Revisions,
        clock: Clock,
        *,
        seed: int = 0,
        token: str | None = None,
        defer: Defer = at_once,
    ) -> None:
        self.revisions = revisions
        self.clock = clock
        self.token = token
        self.counts: dict[str, int] = {}
        """Requests by verb."""
        self.ledger = Ledger(clock)
        self.verbs = Verbs(revisions, clock, self.ledger, defer)
        self.store = Store(self.verbs)
        self.watches = Watches(revisions, seed)
        self.faults = Faults(revisions, self.watches, random.Random(seed))
        self._started = clock.ticks()

    def answer(self, request: Request) -> Answer:
        """Answer a request to one of the sandbox's own paths."""
        match request.method, request.path:
            case "GET", "/sandbox/stats":
                return _json(self.stats())
            case "GET", "/sandbox/timeline":
                return _json(self.ledger.timeline(request.parameters().get("namespace")))
            case "GET", "/sandbox/placements":
                after = request.parameters().get("after", "0")
                if not after.isdecimal():
                    raise Refused(400, "BadRequest", f"after: must be a number of bindings, got {after!r}")
                return _json({"placements": self.ledger.placements(int(after))})
            case "GET", "/sandbox/times":
                return _json({"pods": self.ledger.times(request.parameters().get("namespace"))})
            case "GET", "/sandbox/audit":
                return _json(audit(self.revisions, self.ledger))
            case "GET", "/sandbox/faults":
                return _json(self.faults.report())
            case "POST", "/sandbox/faults":
                self.faults.order(request.body)
                return _json(self.faults.report())
            case "DELETE", "/sandbox/faults":
                self.faults.clear()
                return _json(self.faults.report())
        paths = "GET stats, timeline, placements, times, audit and faults, POST and DELETE faults"
        raise Refused(404, "NotFound", f"{request.method} {request.path}: /sandbox/ has {paths}")

    def stats(self) -> dict[str, Any]:
        """Counters since the start, by the server's clock."""
        usage = resource.getrusage(resource.RUSAGE_SELF)
        timeline = self.ledger.timeline()
        return {
            "uptime_seconds": (self.clock.ticks() - self._started) / 1e9,
            "resource_version": self.revisions.version,
            "requests": dict(sorted(self.counts.items())),
            "objects": {kind: shelf.count for kind, shelf in self.revisions.shelves.items() if shelf.count},
            "pods_created": timeline["created"],
            "pods_bound": timeline["bound"],
            "binds": self.ledger.binds,
            "bind_conflicts": self.ledger.bind_conflicts,
            "first_pod_created": timeline["first_create"],
            "last_pod_bound": timeline["last_bind"],
            "watchers": len(self.watches.active),
            "watch_events_sent": self.watches.sent_events,
            "cpu_seconds": time.process_time(),
            "rss_bytes": _rss_bytes(),
            "peak_rss_bytes": usage.ru_maxrss * 1024,
        }


def _rss_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def _json(body: dict[str, Any]) -> Answer:
    return Answer(200, orjson.dumps(body))
