"""Waiting longer after every failure, with jitter, so that many clients do not come back at the same moment."""

from __future__ import annotations

import random


class Backoff:
    """Delays that double from `initial_seconds` to `max_seconds`, each spread over half to one and a half of it."""

    def __init__(self, rng: random.Random, initial_seconds: float, max_seconds: float) -> None:
        self._rng = rng
        self._initial = initial_seconds
        self._max = max_seconds
        self._failures = 0

    def next(self) -> float:
        """The delay after one more failure."""
        base = min(self._initial * 2.0 ** min(self._failures, 30), self._max)
        self._failures += 1
        return base * (0.5 + self._rng.random())

    def reset(self) -> None:
        """It went well: the next failure is the first one again."""
        self._failures = 0
