"""The table: columns at fixed addresses, interned labels."""

from __future__ import annotations

import numpy as np
import pytest

from ksched.cache.table import Table
from ksched.errors import CacheError
from ksched.testing import cluster, node, pod


def test_a_label_column_that_is_built_late_knows_every_node() -> None:
    here = cluster([node("a").label(disk="ssd"), node("b"), node("c").label(disk="hdd")])
    disk = here.table.label("disk")
    assert disk.gather(lambda value: value == "ssd", here.table.size).tolist() == [True, False, False]
    assert disk.gather(lambda value: value is None, here.table.size).tolist() == [False, True, False]


def test_a_label_column_follows_its_nodes() -> None:
    here = cluster([node("a").label(disk="ssd"), node("b")])
    disk = here.table.label("disk")
    here.put_node(node("a").build())
    here.put_node(node("b").label(disk="ssd").build())
    here.put_node(node("c").label(disk="ssd").build())
    assert disk.gather(lambda value: value == "ssd", here.table.size).tolist() == [False, True, True]


def test_a_resource_that_comes_late_has_a_row_for_every_node() -> None:
    here = cluster([node("a"), node("b")])
    here.put_node(node("c").capacity({"example.com/gpu": 2}).build())
    here.put_pod(pod("p").request({"example.com/gpu": 1}).on("c").build())
    assert here.table.allocatable("example.com/gpu").tolist() == [0, 0, 2]
    assert here.table.requested("example.com/gpu").tolist() == [0, 0, 1]


def test_columns_do_not_move_when_nodes_come() -> None:
    here = cluster([node("a")], max_nodes=1000)
    before = here.table.room(0)
    for i in range(900):
        here.put_node(node(f"n{i}").capacity(cpu="2").build())
    assert before is here.table.room(0)
    assert int(before[900]) == 2000
    assert here.table.count == 901


def test_a_full_table_says_so() -> None:
    here = cluster([node("a"), node("b")], max_nodes=2)
    with pytest.raises(CacheError, match="no room for node c: the cache was made for 2 nodes"):
        here.put_node(node("c").build())
    here.remove_node("a")
    here.put_node(node("c").build())
    assert sorted(info.name for info in here.nodes()) == ["b", "c"]


def test_a_million_slots_cost_no_memory_until_they_are_used() -> None:
    table = Table(1 << 20)
    assert table.present.nbytes == 1 << 20
    assert not np.any(table.present[:4096])
