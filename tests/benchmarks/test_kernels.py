"""The kernels' benchmark: nothing of the native module is forgotten, and everything can be timed."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ksched
from benchmarks.kernels import cycles, timing
from benchmarks.kernels.cases import KERNELS, Kernel
from benchmarks.kernels.columns import Columns

MADE_ALONG = {"Resources", "Sieve"}
"""Classes whose making is no work on nodes."""


def offered() -> set[str]:
    """What the native module's stub offers to be called: functions and methods, without properties."""
    tree = ast.parse((Path(ksched.__file__).parent / "_core.pyi").read_text())
    found = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and not member.decorator_list and member.name[0] != "_":
                    found.add(f"{node.name}.{member.name}")
    return found


NOT_WORTH_A_CASE = {"Board.is_feasible", "Board.total"}
"""They look at one number."""


def test_every_native_function_has_a_case() -> None:
    covered = {name for kernel in KERNELS for name in kernel.covers}
    assert covered - offered() == set()
    assert offered() - covered - NOT_WORTH_A_CASE == set()


def test_names_are_unique() -> None:
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)


@pytest.mark.parametrize("kernel", [pytest.param(kernel, id=kernel.name) for kernel in KERNELS])
def test_a_kernel_can_be_timed(kernel: Kernel) -> None:
    found = timing.timed(kernel.prepare(Columns(200)), samples=1, shortest=1e-4)
    assert found.median > 0
    assert found.calls > 0


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in cycles.CASES])
def test_a_cycle_can_be_timed(case: cycles.CycleCase) -> None:
    found = cycles.timed(case, 120, calls=50)
    assert 0 < found.least_us <= found.median_us <= found.most_us
