"""The collector is held back while the cluster is listed, and left as it was found."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from ksched.engine.garbage import IDLE_OBJECTS, YOUNG_OBJECTS, Garbage


@pytest.fixture(autouse=True)
def _untouched() -> Iterator[None]:
    before = gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()
    yield
    assert (gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()) == before


def test_nothing_is_collected_until_it_settles_then_what_stays_is_frozen() -> None:
    garbage = Garbage()
    garbage.list_starts()
    assert not gc.isenabled()
    garbage.list_ends()
    assert gc.isenabled()
    assert gc.get_freeze_count() > 0
    assert gc.get_threshold()[0] == YOUNG_OBJECTS
    garbage.release()


def test_release_before_it_settled_leaves_the_collector_as_it_was() -> None:
    garbage = Garbage()
    garbage.list_starts()
    garbage.release()


def test_idle_moments_collect_cycles_that_have_piled_up() -> None:
    garbage = Garbage()
    garbage.list_starts()
    garbage.list_ends()
    for _ in range(IDLE_OBJECTS + 1):
        cycle: list[object] = []
        cycle.append(cycle)
    garbage.idle()
    assert gc.get_count()[0] < IDLE_OBJECTS
    garbage.release()


def test_while_one_list_is_read_another_that_ends_changes_nothing() -> None:
    garbage = Garbage()
    garbage.list_starts()
    garbage.list_starts()
    garbage.list_ends()
    assert not gc.isenabled()
    garbage.list_ends()
    assert gc.isenabled()
    garbage.release()
