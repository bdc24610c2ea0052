"""The native counting over domains, against the same in Python, with numbers that no cluster has."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ksched import _core
from ksched.plugins.pod_topology_spread import normal, rounded

Row = tuple[int, int, bool]
"""A slot's domain (-1: none), its pods, and whether it takes part."""

rows = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 5), st.booleans()), max_size=20)


def codes(values: list[int]) -> np.ndarray:
    return np.array(values, dtype=np.int32)


def flags(values: list[bool]) -> np.ndarray:
    return np.array(values, dtype=np.uint8)


@given(rows, st.sampled_from([-1, 3, 4]))
def test_counting(slots: list[Row], absent: int) -> None:
    domains, pods, included = ([row[column] for row in slots] for column in range(3))
    counts, seen, room = codes([9] * 5), flags([True] * 5), flags([True] * 5)
    found = _core.count_domains(codes(domains), codes(pods), flags(included), counts, seen, absent, len(slots))
    expected: dict[int, int] = {}
    for domain, count, takes_part in slots:
        at = absent if domain < 0 else domain
        if takes_part and at >= 0:
            expected[at] = expected.get(at, 0) + count
    assert found == len(expected)
    assert {number: int(count) for number, count in enumerate(counts) if seen[number]} == expected
    assert _core.distinct_domains(codes(domains), flags(included), room, absent, len(slots)) == len(expected)


@given(st.lists(st.tuples(st.integers(-1, 5), st.sampled_from([0, 0, 1])), max_size=20), st.integers(-1, 4))
def test_judging(slots: list[tuple[int, int]], most: int) -> None:
    counts, out = codes([0, 1, 2, 3]), np.array([said for _, said in slots], dtype=np.uint8)
    _core.judge_domains(codes([domain for domain, _ in slots]), counts, most, out, len(slots))
    expected = [
        said or (1 if domain < 0 else 2 * ((int(counts[domain]) if domain < 4 else 0) > most)) for domain, said in slots
    ]
    assert out.tolist() == expected


@given(rows, st.booleans(), st.floats(0.1, 20), st.integers(0, 9))
def test_scores(slots: list[Row], per_slot: bool, weight: float, plus: int) -> None:
    domains, pods, rated = ([row[column] for row in slots] for column in range(3))
    of_domains = [7, 0, 3]
    sums, out = np.full(len(slots), 0.25), np.empty(len(slots), dtype=np.int64)
    _core.add_spread_scores(
        codes(domains), codes(pods if per_slot else of_domains), per_slot, weight, plus, sums, len(slots)
    )
    for number, domain in enumerate(domains):
        known = domain >= 0 and (per_slot or domain < 3)
        count = (pods[number] if per_slot else of_domains[domain]) if known else 0
        assert sums[number] == (0.25 + (float(count) * weight + float(plus)) if known else 0.25)
    _core.round_sums(sums, flags(rated), out, len(slots))
    assert out.tolist() == [rounded(float(sum_)) if is_rated else 0 for sum_, is_rated in zip(sums, rated, strict=True)]


@given(
    st.lists(
        st.tuples(st.one_of(st.integers(0, 50), st.integers(0, 2**55), st.just(2**44)), st.booleans(), st.booleans()),
        max_size=20,
    )
)
def test_normalizing(slots: list[tuple[int, bool, bool]]) -> None:
    raw, alive, rated = ([row[column] for row in slots] for column in range(3))
    out = np.empty(len(slots), dtype=np.int64)
    _core.normalize_spread(np.array(raw, dtype=np.int64), flags(alive), flags(rated), out, len(slots))
    assert out.tolist() == normal(raw, [a and r for a, r in zip(alive, rated, strict=True)])


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda few, many: _core.count_domains(few, many, few.view("u1"), many, many, 0, 9), id="count"),
        pytest.param(lambda few, many: _core.judge_domains(few, many, 1, few.view("u1"), 9), id="judge"),
        pytest.param(lambda few, many: _core.judge_domains(many, few[:0], 1, many.view("u1"), 2), id="no domains"),
        pytest.param(
            lambda few, many: _core.distinct_domains(few, few.view("u1"), few.view("u1"), 0, 9), id="distinct"
        ),
        pytest.param(lambda few, many: _core.round_sums(np.zeros(2), few.view("u1"), np.zeros(2, "i8"), 9), id="round"),
        pytest.param(lambda few, many: _core.add_spread_scores(few, many, True, 1.0, 0.0, np.zeros(9), 9), id="add"),
    ],
)
def test_more_slots_than_are_given_are_refused(call: Callable[[np.ndarray, np.ndarray], object]) -> None:
    with pytest.raises(ValueError, match=r"given|expected"):
        call(codes([0, 0]), codes([0] * 9))
