"""Back-off: how long, until when, and whether still."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.queue.backoff import duration, expiry, is_backing_off

NANOSECONDS = 10**9


@pytest.mark.parametrize(
    ("attempts", "initial", "longest", "waits"),
    [
        pytest.param(0, 1.0, 10.0, 0.0, id="no attempt, no wait"),
        pytest.param(1, 1.0, 10.0, 1.0, id="the first wait is the initial one"),
        pytest.param(2, 1.0, 10.0, 2.0, id="each is twice as long"),
        pytest.param(4, 1.0, 10.0, 8.0, id="and again"),
        pytest.param(5, 1.0, 10.0, 10.0, id="up to the longest"),
        pytest.param(100_000, 1.0, 10.0, 10.0, id="however many attempts"),
        pytest.param(1, 20.0, 3.0, 3.0, id="even the first is not longer than that"),
        pytest.param(100_000, 0.0, 10.0, 0.0, id="nothing doubled stays nothing"),
        pytest.param(5, 1.0, 0.0, 0.0, id="a longest of nothing turns back-off off"),
        pytest.param(100_000, 1e-9, 9e9, 9e9, id="the shortest wait reaches the longest one"),
    ],
)
def test_duration(attempts: int, initial: float, longest: float, waits: float) -> None:
    assert duration(attempts, initial, longest) == waits


@pytest.mark.parametrize(
    ("second", "expires"),
    [
        pytest.param(None, 102.75, id="to the moment"),
        pytest.param(1.0, 102.0, id="cut to the second"),
    ],
)
def test_expiry(second: float | None, expires: float) -> None:
    assert expiry(100.75, 2.0, second) == expires


@pytest.mark.parametrize(
    ("expires", "now", "second", "waiting"),
    [
        pytest.param(102.0, 101.9, 1.0, True, id="before the second"),
        pytest.param(102.0, 102.9, 1.0, True, id="within the second in which it ends"),
        pytest.param(102.0, 103.0, 1.0, False, id="after it"),
        pytest.param(102.5, 102.5, None, True, id="at the very moment, without seconds"),
        pytest.param(102.5, 102.6, None, False, id="after the moment"),
    ],
)
def test_is_backing_off(expires: float, now: float, second: float | None, waiting: bool) -> None:
    assert is_backing_off(expires, now, second) is waiting


@given(st.integers(0, 80), st.integers(0, 3600), st.integers(0, 3600))
def test_seconds_and_nanoseconds_agree(attempts: int, initial: int, longest: int) -> None:
    in_seconds = duration(attempts, float(initial), float(longest))
    assert in_seconds * NANOSECONDS == duration(attempts, initial * NANOSECONDS, longest * NANOSECONDS)
