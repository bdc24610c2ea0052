"""Go's durations: reading, refusing and writing them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched.config.durations import canonical, nanoseconds, seconds
from ksched.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "written"),
    [
        pytest.param("15s", "15s", id="seconds stay seconds"),
        pytest.param("90s", "1m30s", id="minutes are counted out"),
        pytest.param("1.5h", "1h30m0s", id="a fraction of an hour is minutes"),
        pytest.param("600s", "10m0s", id="even minutes keep their seconds"),
        pytest.param("1500ms", "1.5s", id="more than a second is written in seconds"),
        pytest.param("10us", "10µs", id="microseconds have their own letter"),
        pytest.param("-1s", "-1s", id="a duration may be negative"),
        pytest.param("0", "0s", id="zero needs no unit"),
        pytest.param("1m10s500ms", "1m10.5s", id="parts are added up"),
        pytest.param(".5s", "500ms", id="a leading point is a fraction"),
        pytest.param("2562047h47m16.854775807s", "2562047h47m16.854775807s", id="the longest duration has 64 bits"),
    ],
)
def test_canonical(text: str, written: str) -> None:
    assert canonical(text) == written
    assert nanoseconds(written) == nanoseconds(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("15x", 'time: unknown unit "x" in duration "15x"', id="a unit that does not exist"),
        pytest.param("15", 'time: missing unit in duration "15"', id="a number without a unit"),
        pytest.param("PT15S", 'time: invalid duration "PT15S"', id="ISO 8601 is another notation"),
        pytest.param("", 'time: invalid duration ""', id="nothing"),
        pytest.param("-", 'time: invalid duration "-"', id="a sign alone"),
        pytest.param(".s", 'time: invalid duration ".s"', id="a point without digits"),
        pytest.param("9999999h", 'time: invalid duration "9999999h"', id="more than 64 bits of nanoseconds"),
    ],
)
def test_what_is_not_a_duration(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        nanoseconds(text)
    assert str(raised.value) == message


def test_seconds_are_a_number() -> None:
    assert seconds("1m0.25s") == 60.25


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_what_is_written_reads_back(amount: int) -> None:
    assert nanoseconds(canonical(f"{amount}ns")) == amount
