"""Made-up columns over nodes: half-full machines of a few sizes, the same for the same number of nodes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ksched import _core

Amounts = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
Flags = npt.NDArray[np.uint8]

GIBIBYTE = 1 << 30


class Columns:
    """What kernels read and write, for `n` nodes: CPU and memory in rows 0 and 1, asked of by one pod."""

    def __init__(self, n: int) -> None:
        rng = np.random.default_rng(n)
        self.n = n
        self.allowed_pods: Amounts = np.full(n, 110, dtype=np.int64)
        self.pod_count: Amounts = rng.integers(0, 60, n)
        self.resources = _core.Resources(self.allowed_pods, self.pod_count)
        cpus = rng.choice(np.array([4_000, 8_000, 16_000], dtype=np.int64), n)
        memory = cpus * (4 * GIBIBYTE // 1000)
        self.rooms = (cpus, memory)
        self.used = ((cpus * rng.random(n)).astype(np.int64), (memory * rng.random(n)).astype(np.int64))
        for room, used in zip(self.rooms, self.used, strict=True):
            self.resources.add_row(room, used)
        self.rows: Codes = np.array([0, 1], dtype=np.int32)
        self.asked: Amounts = np.array([500, GIBIBYTE], dtype=np.int64)
        self.weights: Amounts = np.array([1, 1], dtype=np.int64)
        self.utilization: Amounts = np.array([0, 100], dtype=np.int64)
        self.shape_scores: Amounts = np.array([0, 100], dtype=np.int64)
        self.present: Flags = np.ones(n, dtype=np.uint8)
        self.alive: Flags = np.ones(n, dtype=np.uint8)
        self.verdicts: Codes = np.zeros(n, dtype=np.int32)
        self.sieve = _core.Sieve(self.alive, self.verdicts)
        self.codes: Codes = (rng.random(n) < 0.3).astype(np.int32)
        self.small_codes: Flags = (rng.random(n) < 0.3).astype(np.uint8)
        self.out_codes: Codes = np.zeros(n, dtype=np.int32)
        self.scores: Amounts = np.zeros(n, dtype=np.int64)
        self.raw: Amounts = rng.integers(0, 101, n)
        self.totals: Amounts = rng.integers(0, 1000, n)
        self.slots: Codes = rng.choice(n, min(n, 100), replace=False).astype(np.int32)
        self.rng = rng
