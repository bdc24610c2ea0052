"""Everything that can go wrong, at random and at once, for a minute (`make soak`)."""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.scenarios.api import Api, Refusal, eventually
from tests.scenarios.conftest import SandboxPlane
from tests.scenarios.objects import node, pod

NODES = 20
ROOM = 20
LANES = 3
SECONDS = 45.0

RULES = [
    {"verbs": ["bind"], "cut_after_answer": True, "probability": 0.1},
    {"verbs": ["bind"], "cut_before_answer": True, "probability": 0.1},
    {"verbs": ["bind"], "status": 500, "probability": 0.1},
    {"verbs": ["bind"], "status": 429, "retry_after_seconds": 1, "probability": 0.05},
    {"verbs": ["bind"], "latency_seconds": 0.05, "probability": 0.5},
    {"path": "/status$", "status": 500, "probability": 0.2},
]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_the_books_are_right_whatever_happened(sandbox: SandboxPlane, seed: int) -> None:
    dice = random.Random(seed)
    for number in range(NODES):
        sandbox.api.create(node(f"node-{number}", cpu="2", pods=str(ROOM)))
    with sandbox.scheduler() as scheduler, ThreadPoolExecutor() as lanes:
        sandbox.misbehave(rules=RULES, duplicate_events=0.1, reorder_events=0.1, seed=seed)
        end = time.monotonic() + SECONDS
        churning = [
            lanes.submit(churn, Api(sandbox.kubeconfig), lane, random.Random(seed * 10 + lane), end)
            for lane in range(LANES)
        ]
        while time.monotonic() < end:
            time.sleep(dice.uniform(0.5, 2.0))
            what = dice.choice(["kill", "restart", "cut", "expire", "nothing"])
            if what == "kill":
                scheduler.kill()
                time.sleep(dice.uniform(0, 0.5))
                scheduler.start()
            elif what == "restart":
                sandbox.process.restart(crash=dice.random() < 0.5)
                sandbox.misbehave(rules=RULES, duplicate_events=0.1, reorder_events=0.1)
            elif what == "cut":
                sandbox.misbehave(cut_watches=True)
            elif what == "expire":
                sandbox.misbehave(expire_watches=True, expire_history=True)
        for lane in churning:
            lane.result()
        sandbox.behave()
        left = len(sandbox.api.pods())
        assert left <= NODES * ROOM
        for number in range(NODES * ROOM - left):
            sandbox.api.create(pod(f"last-{number}"))
        eventually(lambda: len(sandbox.api.placements()) == NODES * ROOM, 40, "every pod has its node: no room is lost")
    audit = sandbox.audit()
    assert audit["overcommitted"] == audit["bound_more_than_once"] == []


def churn(api: Api, lane: int, dice: random.Random, end: float) -> None:
    """Create and delete pods, whatever the server does; names come back."""
    while time.monotonic() < end:
        made = pod(f"churn-{lane}-{dice.randrange(NODES * ROOM // LANES)}")
        try:
            if dice.random() < 0.6:
                api.create(made)
            else:
                api.delete(made)
        except (OSError, Refusal):
            time.sleep(0.02)
    api.close()
