"""Misbehaviour on request: latency, refusals, cut connections and disturbed watches, for tests of clients.

Rules are posted to /sandbox/faults and tried in order; the first that matches a request and whose dice fall decides.
The dice are seeded, so that a failing test repeats.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ksched.errors import Refused
from ksched.sandbox.revisions import Revisions
from ksched.sandbox.watches import Watches


class Rule(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """When a request is disturbed, and how. All that is given must match; a rule without an effect only counts."""

    verbs: list[str] = []
    """get, list, watch, create, update, patch, delete, deletecollection, bind, evict or other; empty: any."""
    path: str = ""
    """A regular expression searched for in the path."""
    probability: float = 1.0
    count: int | None = None
    """How many requests it disturbs before it is spent."""
    latency_seconds: float = 0.0
    status: int | None = None
    """Answer with this code instead of doing anything."""
    retry_after_seconds: int | None = None
    cut_before_answer: bool = False
    """Drop the connection; the request has no effect."""
    cut_after_answer: bool = False
    """Let the request take effect, then drop the connection instead of answering."""


class FaultsRequest(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The body of POST /sandbox/faults: rules replace the present ones where given, the rest happens at once."""

    seed: int | None = None
    rules: list[Rule] | None = None
    duplicate_events: float | None = None
    """The share of watch events that are sent twice."""
    reorder_events: float | None = None
    """The share of watch events that are swapped with the one before, if both are in one write."""
    cut_watches: bool = False
    silence_watches: bool = False
    expire_watches: bool = False
    """End open watches with an ERROR event, code 410."""
    expire_history: bool = False
    """Forget the past: watches and lists from an older version are answered 410."""


@dataclass(slots=True)
class _Armed:
    rule: Rule
    path: re.Pattern[str]
    hits: int = 0


_REASONS = {
    401: ("Unauthorized", "Unauthorized"),
    403: ("Forbidden", "forbidden on request"),
    429: ("TooManyRequests", "Too many requests, please try again later."),
    500: ("InternalError", "Internal error occurred: misbehaving on request"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "the request timed out on request"),
}


@dataclass
class Faults:
    """The rules in force."""

    revisions: Revisions
    watches: Watches
    random: random.Random
    armed: list[_Armed] = field(default_factory=list)

    def order(self, body: bytes) -> None:
        """Take new orders; `Refused` (400) names what is wrong in them."""
        try:
            asked = msgspec.json.decode(body or b"{}", type=FaultsRequest)
            armed = None if asked.rules is None else [_Armed(rule, re.compile(rule.path)) for rule in asked.rules]
        except (msgspec.DecodeError, re.error) as error:
            raise Refused(400, "BadRequest", f"/sandbox/faults: {error}") from error
        if asked.seed is not None:
            self.random.seed(asked.seed)
        if armed is not None:
            self.armed = armed
        if asked.duplicate_events is not None:
            self.watches.duplicate = asked.duplicate_events
        if asked.reorder_events is not None:
            self.watches.reorder = asked.reorder_events
        if asked.expire_history:
            self.revisions.forget_history()
        if asked.expire_watches:
            self.watches.expire_all()
        if asked.silence_watches:
            self.watches.silence_all()
        if asked.cut_watches:
            self.watches.cut_all()

    def clear(self) -> None:
        """Behave again."""
        self.armed = []
        self.watches.duplicate = self.watches.reorder = 0.0

    def strike(self, verb: str, path: str) -> Rule | None:
        """The rule that disturbs this request, if one does; it is counted."""
        for armed in self.armed:
            rule = armed.rule
            if rule.verbs and verb not in rule.verbs:
                continue
            if rule.count is not None and armed.hits >= rule.count:
                continue
            if not armed.path.search(path):
                continue
            if rule.probability < 1.0 and self.random.random() >= rule.probability:
                continue
            armed.hits += 1
            return rule
        return None

    def report(self) -> dict[str, Any]:
        """The rules in force and how often each struck."""
        return {
            "rules": [{**msgspec.to_builtins(armed.rule), "hits": armed.hits} for armed in self.armed],
            "duplicate_events": self.watches.duplicate,
            "reorder_events": self.watches.reorder,
        }


def refusal(rule: Rule) -> Refused:
    """What a rule with a status answers."""
    code = rule.status or 500
    reason, message = _REASONS.get(code, ("InternalError" if code >= 500 else "BadRequest", "misbehaving on request"))
    return Refused(code, reason, message, retry_after_seconds=rule.retry_after_seconds)
