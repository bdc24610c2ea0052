"""The native module's functions as benchmarks.

A case is a function with the decorator `kernel`: it gets columns for n nodes, prepares what it needs, and returns the
call that is timed. `covers` names what of `ksched._core` it is about, as the stub has it; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.kernels.columns import Codes, Columns
from ksched import _core

Call = Callable[[], object]
Prepare = Callable[[Columns], Call]

POD_CHANGED, NODE_CHANGED = 0, 2
"""Kinds of a journal's entries: a node's pods ask for something else; a node itself is another."""

PODS_BIT = 1
"""The set of kinds that a board's replay is to look at: changes of what pods ask for."""


@dataclass(frozen=True)
class Kernel:
    """One case."""

    name: str
    covers: tuple[str, ...]
    prepare: Prepare
    per_node: bool
    """Whether its cost grows with the nodes, so that nanoseconds per node mean something."""


KERNELS: list[Kernel] = []


def kernel(*covers: str, name: str = "", per_node: bool = True) -> Callable[[Prepare], Prepare]:
    """Declare a case."""

    def declare(prepare: Prepare) -> Prepare:
        KERNELS.append(Kernel(name or covers[0], covers, prepare, per_node))
        return prepare

    return declare


# -- resources


@kernel("Resources.fit")
def fit(columns: Columns) -> Call:
    """Which nodes have room."""
    c = columns
    return lambda: c.resources.fit(c.rows, c.asked, c.alive, c.out_codes, c.n)


@kernel("Resources.score_least")
def score_least(columns: Columns) -> Call:
    """LeastAllocated."""
    c = columns
    return lambda: c.resources.score_least(c.rows, c.asked, c.weights, c.scores, c.n)


@kernel("Resources.score_most")
def score_most(columns: Columns) -> Call:
    """MostAllocated."""
    c = columns
    return lambda: c.resources.score_most(c.rows, c.asked, c.weights, c.scores, c.n)


@kernel("Resources.score_ratio")
def score_ratio(columns: Columns) -> Call:
    """RequestedToCapacityRatio."""
    c = columns
    return lambda: c.resources.score_ratio(c.rows, c.asked, c.weights, c.utilization, c.shape_scores, c.scores, c.n)


@kernel("Resources.score_balanced")
def score_balanced(columns: Columns) -> Call:
    """BalancedAllocation."""
    c = columns
    bypassed = np.zeros(2, dtype=np.uint8)
    return lambda: c.resources.score_balanced(c.rows, c.asked, bypassed, c.scores, c.n)


@kernel("Resources.book", per_node=False)
def book(columns: Columns) -> Call:
    """A pod comes to a node and goes."""
    c = columns
    slot = c.n // 2

    def both() -> None:
        c.resources.book(slot, c.rows, c.asked, 1)
        c.resources.book(slot, c.rows, c.asked, -1)

    return both


@kernel("Resources.add_row", per_node=False)
def add_row(columns: Columns) -> Call:
    """A new cluster's rows."""
    c = columns

    def made() -> None:
        resources = _core.Resources(c.allowed_pods, c.pod_count)
        for room, used in zip(c.rooms, c.used, strict=True):
            resources.add_row(room, used)

    return made


# -- the sieve


@kernel("Sieve.start")
def start(columns: Columns) -> Call:
    """All nodes are in."""
    c = columns
    return lambda: c.sieve.start(c.present, c.n)


@kernel("Sieve.keep_only")
def keep_only(columns: Columns) -> Call:
    """A hundred nodes of PreFilter's are kept."""
    c = columns
    return lambda: c.sieve.keep_only(c.slots, c.n)


@kernel("Sieve.reject")
def reject(columns: Columns) -> Call:
    """A plugin's verdicts are taken."""
    c = columns
    return lambda: c.sieve.reject(c.codes, 1, c.n)


@kernel("Sieve.reject_small")
def reject_small(columns: Columns) -> Call:
    """The same with small codes."""
    c = columns
    return lambda: c.sieve.reject_small(c.small_codes, 1, c.n)


# -- ranking


@kernel("weigh")
def weigh(columns: Columns) -> Call:
    """A plugin's scores, normalised by their maximum, are added to the totals."""
    c = columns
    totals = np.zeros(c.n, dtype=np.int64)
    return lambda: _core.weigh(c.raw, c.present, totals, 1, 1, c.n)


@kernel("best")
def best(columns: Columns) -> Call:
    """The highest total, and how many nodes have it."""
    c = columns
    return lambda: _core.best(c.totals, c.present, c.n)


@kernel("nth_with")
def nth_with(columns: Columns) -> Call:
    """The last of the nodes with the highest total."""
    c = columns
    top, count = _core.best(c.totals, c.present, c.n)
    return lambda: _core.nth_with(c.totals, c.present, top, count - 1, c.n)


@kernel("Resources.fit", "Sieve.start", "Sieve.reject", "weigh", "best", name="a whole pass without a board")
def whole_pass(columns: Columns) -> Call:
    """What a pod without a board costs: fit, two scores over resources, one column, and the choice."""
    c = columns
    bypassed = np.zeros(2, dtype=np.uint8)
    totals = np.zeros(c.n, dtype=np.int64)

    def run() -> None:
        c.sieve.start(c.present, c.n)
        c.resources.fit(c.rows, c.asked, c.alive, c.out_codes, c.n)
        c.sieve.reject(c.out_codes, 1, c.n)
        totals[:] = 0
        c.resources.score_least(c.rows, c.asked, c.weights, c.scores, c.n)
        _core.weigh(c.scores, c.alive, totals, 1, 0, c.n)
        c.resources.score_balanced(c.rows, c.asked, bypassed, c.scores, c.n)
        _core.weigh(c.scores, c.alive, totals, 1, 0, c.n)
        _core.weigh(c.raw, c.alive, totals, 3, 2, c.n)
        _core.best(totals, c.alive, c.n)

    return run


# -- pod affinity


def _domains(columns: Columns, nodes_each: int) -> tuple[Codes, Codes]:
    """Each node's domain, and how many pods each domain has."""
    domains = np.arange(columns.n, dtype=np.int32) // nodes_each
    return domains, (np.arange(int(domains[-1]) + 1, dtype=np.int32) % 3).astype(np.int32)


@kernel("require_domains")
def require_domains(columns: Columns) -> Call:
    """Nodes in zones with pods that the pod wants near."""
    c, verdicts = columns, np.zeros(columns.n, dtype=np.uint8)
    domains, counts = _domains(c, 1000)

    def judge() -> None:
        verdicts.fill(0)
        _core.require_domains(domains, counts, 1, 1, verdicts, c.n)

    return judge


@kernel("avoid_domains")
def avoid_domains(columns: Columns) -> Call:
    """Hosts with pods that the pod wants away."""
    c, verdicts = columns, np.zeros(columns.n, dtype=np.uint8)
    domains, counts = _domains(c, 1)

    def judge() -> None:
        verdicts.fill(0)
        _core.avoid_domains(domains, counts, 1, verdicts, c.n)

    return judge


@kernel("add_affinity_scores")
def add_affinity_scores(columns: Columns) -> Call:
    """A preferred term over hosts."""
    c = columns
    domains, counts = _domains(c, 1)
    return lambda: _core.add_affinity_scores(domains, counts, 50, c.scores, c.n)


@kernel("normalize_between")
def normalize_between(columns: Columns) -> Call:
    """Scores between their extremes."""
    c, out = columns, np.empty(columns.n, dtype=np.int64)
    return lambda: _core.normalize_between(c.raw, c.alive, out, c.n)


# -- topology spread


@kernel("count_domains")
def count_domains(columns: Columns) -> Call:
    """Pods per zone, counted anew."""
    c = columns
    domains, counts = _domains(c, 1000)
    pods = np.ones(c.n, dtype=np.int32)
    seen = np.zeros(len(counts), dtype=np.uint8)
    return lambda: _core.count_domains(domains, pods, c.present, counts, seen, len(counts) - 1, c.n)


@kernel("judge_domains")
def judge_domains(columns: Columns) -> Call:
    """Nodes in zones that have too many."""
    c, verdicts = columns, np.zeros(columns.n, dtype=np.uint8)
    domains, counts = _domains(c, 1000)
    return lambda: _core.judge_domains(domains, counts, 1, verdicts, c.n)


@kernel("distinct_domains")
def distinct_domains(columns: Columns) -> Call:
    """How many zones have a feasible node."""
    c = columns
    domains, counts = _domains(c, 1000)
    seen = np.zeros(len(counts), dtype=np.uint8)

    def count() -> None:
        seen.fill(0)
        _core.distinct_domains(domains, c.alive, seen, len(counts) - 1, c.n)

    return count


@kernel("add_spread_scores", "round_sums", "normalize_spread", name="a soft constraint over zones")
def soft_constraint(columns: Columns) -> Call:
    """Score, round, and normalise."""
    c = columns
    domains, counts = _domains(c, 1000)
    sums, raw, normal = np.zeros(c.n), np.zeros(c.n, dtype=np.int64), np.zeros(c.n, dtype=np.int64)

    def score() -> None:
        sums.fill(0)
        _core.add_spread_scores(domains, counts, False, 1.6, 4.0, sums, c.n)
        _core.round_sums(sums, c.present, raw, c.n)
        _core.normalize_spread(raw, c.alive, c.present, normal, c.n)

    return score


@kernel(
    "PodColumn.count_in",
    "PodColumn.tell",
    "PodColumn.add",
    "DomainTally.follow",
    "DomainTally.add",
    "move_count",
    name="a pod comes to a counted node and goes",
    per_node=False,
)
def counted_pod(columns: Columns) -> Call:
    """A column and its count per zone follow."""
    c, column, tally = columns, _core.PodColumn(), _core.DomainTally()
    domains, counts = _domains(c, 1000)
    having: dict[int, int] = {}
    for count in counts.tolist():
        having[count] = having.get(count, 0) + 1
    tally.follow(domains, c.present, counts, having, len(counts) - 1, c.n, _core.Journal(16))
    column.count_in(np.zeros(c.n, dtype=np.int32))
    column.tell([tally])

    def come_and_go() -> None:
        column.add(0, 1)
        column.add(0, -1)

    return come_and_go


# -- boards


def _board(columns: Columns) -> tuple[_core.Board, _core.Journal]:
    """A board as the default profile's is for a plain pod: fit, both scores over resources, and two columns."""
    c = columns
    filters: list[tuple[int, _core.FilterRule]] = [
        (1, _core.ColumnFilter(c.verdicts)),
        (2, _core.FitFilter(c.resources, c.rows, c.asked)),
    ]
    column = c.raw.astype(np.int32)
    scores: list[tuple[_core.ScoreRule, int, int]] = [
        (_core.ColumnScore(column), 3, 2),
        (_core.LeastAllocatedScore(c.resources, c.rows, c.asked, c.weights), 1, 0),
        (_core.BalancedScore(c.resources, c.rows, c.asked, c.weights), 1, 0),
    ]
    board = _core.Board(c.present, c.n, filters, scores)
    journal = _core.Journal(1 << 16)
    board.build(journal)
    return board, journal


@kernel("Board.build")
def board_build(columns: Columns) -> Call:
    """A board from nothing."""
    board, journal = _board(columns)
    return lambda: board.build(journal)


@kernel(
    "Journal.note",
    "Board.replay",
    "Board.best",
    "Board.nth_best",
    name="Board: identical pods, one after the other",
    per_node=False,
)
def board_identical_pods(columns: Columns) -> Call:
    """The next pod of a shape: what the last one changed is replayed, the best node chosen, and the pod booked.

    Each pod is taken off again a hundred pods later, so that nodes do not fill up.
    """
    c = columns
    board, journal = _board(c)
    placed: list[int] = []

    def pod() -> None:
        board.replay(journal, PODS_BIT)
        _, count = board.best()
        slot = board.nth_best(count - 1)
        c.resources.book(slot, c.rows, c.asked, 1)
        journal.note(slot, POD_CHANGED)
        placed.append(slot)
        if len(placed) > 100:
            gone = placed.pop(0)
            c.resources.book(gone, c.rows, c.asked, -1)
            journal.note(gone, POD_CHANGED)

    return pod


@kernel("Board.replay", "Board.behind", name="Board.replay of 1000 changes", per_node=False)
def board_replay(columns: Columns) -> Call:
    """What a board costs that was not used while a thousand pods of other shapes were placed."""
    c = columns
    board, journal = _board(c)
    slots = c.rng.integers(0, c.n, 1000).tolist()

    def late() -> None:
        for slot in slots:
            journal.note(slot, POD_CHANGED)
        board.replay(journal, PODS_BIT)

    return late


@kernel("Board.restate", "Board.dirty", name="Board.restate of 100 nodes", per_node=False)
def board_restate(columns: Columns) -> Call:
    """A hundred nodes change themselves, as heartbeats with news do."""
    c = columns
    board, journal = _board(c)
    slots = c.slots.tolist()

    def heartbeats() -> None:
        for slot in slots:
            journal.note(slot, NODE_CHANGED)
        board.dirty(journal, NODE_CHANGED)
        board.restate(journal, c.slots)
        board.replay(journal, PODS_BIT)

    return heartbeats


@kernel("Board.hold_out", "Board.take_back", name="Board.hold_out of 100 nodes, and back", per_node=False)
def board_hold_out(columns: Columns) -> Call:
    """A hundred nodes with nominated pods are left out for one pod."""
    c = columns
    board, _ = _board(c)

    def around() -> None:
        board.hold_out(c.slots)
        board.take_back(c.slots)

    return around


@kernel("Board.copy_verdicts", "Sieve.overrule", "Board.extremes_hold", "Board.copy_totals", name="beside a board")
def beside_a_board(columns: Columns) -> Call:
    """What a board gives to a pod that others have to be asked about: verdicts, one more filter, totals."""
    c = columns
    board, journal = _board(c)
    board.build(journal)

    def follow() -> None:
        board.copy_verdicts(c.alive, c.verdicts)
        c.sieve.overrule(c.small_codes, 1, c.n)
        board.extremes_hold(c.alive)
        board.copy_totals(c.totals)

    return follow


@kernel("Board.copy_verdicts")
def board_copy_verdicts(columns: Columns) -> Call:
    """Every node's verdict, for a message."""
    c = columns
    board, _ = _board(c)
    return lambda: board.copy_verdicts(c.alive, c.out_codes)
