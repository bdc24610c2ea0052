"""The running demo, with and without a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from ksched.cli.demo import screen as module
from ksched.cli.demo.screen import Screen


def running(screen: Screen) -> None:
    """A demo in its middle."""
    state = screen.state
    state.step, state.nodes, state.nodes_total = "scheduling", 5, 5
    state.created, state.pods_total, state.bound, state.pods_per_second = 900, 1000, 650, 1234.5
    state.latency_p50, state.latency_p99 = 0.01, 0.25
    state.scheduler_cpu_seconds, state.scheduler_rss_bytes = 1.5, 80 * 2**20
    state.utilization = {"general": {"cpu": 0.5}, "gpu": {"cpu": 0.1, "nvidia.com/gpu": 0.9}}


def test_without_a_terminal_there_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LINE_SECONDS", 3600.0)
    out = io.StringIO()
    with Screen(Console(file=out, width=80)) as screen:
        running(screen)
        screen._last_line = -7200.0
        screen.tick()
        screen.tick()
    (line,) = out.getvalue().splitlines()
    assert line.endswith(
        "scheduling: 900/1,000 pods created, 650 bound, 250 waiting, 1,234 pods/s since the first create,"
        " latency p50 0.010 s p99 0.250 s"
    )


def test_before_there_are_pods_the_line_counts_nodes() -> None:
    screen = Screen(Console(file=io.StringIO()))
    screen.state.step, screen.state.nodes, screen.state.nodes_total = "creating the cluster", 3, 5
    assert screen.line().endswith("creating the cluster: 3/5 nodes")


def test_on_a_terminal_there_is_a_table_that_goes_away() -> None:
    out = io.StringIO()
    console = Console(file=out, width=120, force_terminal=True)
    with Screen(console) as screen:
        running(screen)
        screen.tick()
        console.print(screen._render())
        screen.say("a line that stays")
        screen.end()
        screen.say("another")
    text = out.getvalue()
    for piece in (
        "650/1,000",
        "1,234 pods/s since",
        "latency p50 10 ms",
        "p99 250 ms",
        "80 MiB",
        "nvidia.com/gpu",
        " 90 %",
    ):
        assert piece in text
    assert "another" in text
