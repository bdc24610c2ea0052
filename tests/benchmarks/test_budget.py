"""The budget of one pod: stages that exist, a stopwatch that charges the innermost, and a small run."""

from __future__ import annotations

import pytest

from benchmarks.budget import run
from benchmarks.budget.stages import STAGES, Overhead, Stage, Stopwatch, located
from benchmarks.errors import BenchmarkError


@pytest.mark.parametrize("stage", [pytest.param(stage, id=stage.title) for stage in STAGES])
def test_every_stage_is_a_function_of_the_scheduler(stage: Stage) -> None:
    assert callable(located(stage)[1])


def test_a_stage_that_moved_is_named() -> None:
    with pytest.raises(BenchmarkError, match=r"there is no ksched\.engine\.cycle\.Cycle\.gone"):
        located(Stage("gone", "ksched.engine.cycle", "Cycle", "gone"))


class Clock:
    """Ten nanoseconds pass at each look, and as many as a function says it takes."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        self.now += 10
        return self.now

    def take(self, nanoseconds: int) -> None:
        self.now += nanoseconds


def test_a_stage_is_not_charged_for_those_within_it() -> None:
    clock = Clock()
    watch = Stopwatch(clock)
    inner = watch.timed(lambda: clock.take(300), "inner")

    def both() -> None:
        clock.take(1000)
        inner()
        inner()

    watch.timed(both, "outer")()
    # What passes from one look to the next is charged; 10 ns of it are the look itself.
    assert watch.charged == {"outer": 1000 + 3 * 10, "inner": 2 * (300 + 10)}
    assert watch.calls == {"outer": 1, "inner": 2}


def test_a_stage_that_raises_is_charged_and_left() -> None:
    clock = Clock()
    watch = Stopwatch(clock)

    def fail() -> None:
        clock.take(100)
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        watch.timed(fail, "failing")()
    watch.timed(lambda: clock.take(5), "next")()
    assert watch.charged == {"failing": 110, "next": 15}


def test_functions_are_given_back() -> None:
    before = [located(stage)[1] for stage in STAGES]
    with Stopwatch().installed():
        assert [located(stage)[1] for stage in STAGES] != before
    assert [located(stage)[1] for stage in STAGES] == before


def test_the_stopwatchs_own_cost_is_taken_off() -> None:
    title = STAGES[0].title
    found = run.budget(1, 10, False, 100_000, {title: 50_000}, {title: 20}, Overhead(charged=500.0, uncharged=250.0))
    assert found.stages[0].us_per_pod == pytest.approx((50_000 - 20 * 500) / 10 / 1e3)
    assert found.total_us == pytest.approx((100_000 - 20 * 750) / 10 / 1e3)
    assert found.rest_us == pytest.approx(found.total_us - found.stages[0].us_per_pod)


def test_a_small_budget_adds_up() -> None:
    found = run.measure(5, 100, timeout_seconds=60.0)
    assert all(stage.us_per_pod > 0 for stage in found.stages)
    # Retries aside, a pod passes each stage once or twice; batches are shared.
    assert all(0 < stage.calls_per_pod < 3 for stage in found.stages)
    assert found.total_us == pytest.approx(sum(stage.us_per_pod for stage in found.stages) + found.rest_us)
