"""What kube-scheduler decided beside what ksched decided, for one pod.

While ksched lacks some plugins, a pod may depend on one of them. Such a pod is *absent*: counted apart, never as
passed. That must not hide a mistake of the plugins that ksched has, so of an absent pod everything is still compared
that the lacking plugin cannot have changed: verdicts of plugins that run before it, nodes that it kept, raw scores.

A pod that needs a lacking plugin is turned down by ksched before any node is looked at. It is then decided once more
as if the lacking plugins had no objection, and this second decision is what is compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tests.conformance.cases import Decision, PostFilterVerdict, Scores, Verdict

_BLAMED = re.compile(r'^running (?:\w+ plugin )?"(?P<plugin>\w+)"')
"""The plugin in the text of an internal error."""


_BY_THE_SET = frozenset({"PodTopologySpread"})
"""Plugins whose raw score of a node depends on which others are feasible."""


@dataclass(frozen=True)
class Plugins:
    """What one profile of ksched consists of: the plugins that it has, and the order of all, lacking ones included.

    `silent` are lacking plugins which may have scored although the vector, for being slim, does not show it. `unsure`
    are plugins that ksched has, but whose scores of this pod follow from what only a lacking plugin knows.
    """

    has: Callable[[str], bool]
    order: Mapping[str, Sequence[str]]
    silent: frozenset[str] = frozenset()
    unsure: frozenset[str] = frozenset()

    def scores(self, name: str) -> bool:
        """Whether a plugin's scores can be compared."""
        return self.has(name) and name not in self.unsure

    def precedes(self, point: str, first: str, second: str) -> bool:
        """Whether `first` runs before `second`; one that does not run at all precedes nothing."""
        names = self.order.get(point, ())
        return first in names and (second not in names or names.index(first) < names.index(second))

    def lacks(self, verdict: Verdict | None) -> bool:
        """Whether a verdict is that of a lacking plugin."""
        return verdict is not None and bool(verdict.plugin) and not self.has(verdict.plugin)


@dataclass(frozen=True)
class Difference:
    """A field of a decision in which ksched is wrong."""

    field: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.field}: expected {shown(self.expected)}, got {shown(self.got)}"


@dataclass
class Comparison:
    """How one pod went. It is `core` if nothing differs and no lacking plugin had a say (`absent`)."""

    differences: list[Difference] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)
    full: bool = False
    totals_unseen: bool = False

    @property
    def core(self) -> bool:
        """Whether ksched decided as kube-scheduler in everything that the plugins it has are about."""
        return not self.differences and not self.absent

    def differ(self, name: str, expected: Any, got: Any) -> None:
        """Note a difference if there is one."""
        if expected != got:
            self.differences.append(Difference(name, expected, got))


def compare(
    expected: Decision, got: Decision, plugins: Plugins, *, turned_down_for: str | None = None, slim: bool = False
) -> Comparison:
    """Lay two decisions side by side.

    `turned_down_for` is the lacking plugin for which ksched turned the pod down; `got` is then the second decision,
    without lacking plugins.
    """
    result = Comparison()
    if turned_down_for is not None:
        result.absent.add(turned_down_for)
    _compare_in_order(result, expected, got, plugins, slim)
    result.full = result.core and not full_differences(expected, got)
    return result


def full_differences(expected: Decision, got: Decision) -> list[Difference]:
    """Every field of the vector that is not exactly the same in `got`."""
    found = Comparison()
    for name in Decision.__struct_fields__:
        if name not in ("pod", "chosen"):
            found.differ(name, getattr(expected, name), getattr(got, name))
    return found.differences


def _compare_in_order(result: Comparison, expected: Decision, got: Decision, plugins: Plugins, slim: bool) -> None:
    """The steps of a cycle, for as long as both came that far."""
    if expected.skip is not None or got.skip is not None:
        result.differ("skip", expected.skip, got.skip)
        return
    for name, point in (("preEnqueue", "pre_enqueue"), ("preFilter", "pre_filter")):
        if _ended_before_nodes(result, name, point, expected, got, plugins):
            _compare_message(result, expected, got)
            return
    if not _compare_nominated(result, expected, got, plugins):
        return
    _compare_filters(result, expected, got, plugins)
    if expected.error is not None or got.error is not None:
        _compare_error(result, expected, got, plugins)
        return
    if slim:
        _compare_slim_totals(result, expected, got, plugins)
    elif expected.feasible:
        _compare_scores(result, expected, got, plugins)
    _compare_message(result, expected, got)
    if plugins.lacks(expected.reserve):
        assert expected.reserve is not None
        result.absent.add(expected.reserve.plugin)
    else:
        result.differ("reserve", expected.reserve, got.reserve)


def _ended_before_nodes(
    result: Comparison, name: str, point: str, expected: Decision, got: Decision, plugins: Plugins
) -> bool:
    """PreEnqueue or PreFilter: compare, and whether that was the end for either of the two."""
    wanted: Verdict | None = getattr(expected, point)
    said: Verdict | None = getattr(got, point)
    if wanted is not None and plugins.lacks(wanted):
        result.absent.add(wanted.plugin)
        # Unschedulable is kept while later plugins run and yields to a worse word of theirs.
        final = said is not None and said.code != "Unschedulable"
        if said is not None and final and plugins.precedes(point, said.plugin, wanted.plugin):
            result.differ(name, wanted, said)
        return True
    if wanted is not None and not wanted.plugin and result.absent:
        return True  # What several plugins left has nothing in common; one of them is lacking.
    result.differ(name, wanted, said)
    return wanted is not None or said is not None


def _compare_nominated(result: Comparison, expected: Decision, got: Decision, plugins: Plugins) -> bool:
    """PreFilter's nodes and the nominated node; whether the same nodes were then looked at."""
    nodes, narrowed = expected.pre_filter_nodes, got.pre_filter_nodes
    narrower = nodes is not None and (narrowed is None or set(nodes) <= set(narrowed))
    if not (result.absent and narrower):
        result.differ("preFilterNodes", nodes, narrowed)
    if expected.nominated_node_hit == got.nominated_node_hit:
        return True
    nominated = got.feasible[0] if got.nominated_node_hit and got.feasible else ""
    outside = bool(result.absent) and nodes is not None and nominated not in nodes
    if nominated and (plugins.lacks(expected.filter.get(nominated)) or outside):
        # A lacking plugin turned the nominated node down, so kube-scheduler went on to all nodes.
        result.absent |= {verdict.plugin for verdict in expected.filter.values() if plugins.lacks(verdict)}
        return False
    result.differ("nominatedNodeHit", expected.nominated_node_hit, got.nominated_node_hit)
    return False


def _compare_filters(result: Comparison, expected: Decision, got: Decision, plugins: Plugins) -> None:
    """Every node's verdict. Of a node that a lacking plugin rejected one knows that no earlier plugin did."""
    seen = {*expected.filter, *expected.feasible}
    needs_lacking = bool(result.absent)
    for node in sorted(seen):
        wanted, said = expected.filter.get(node), got.filter.get(node)
        if wanted is None and said is None:
            if node not in got.feasible:
                result.differ(f"feasible[{node}]", True, False)
        elif wanted is not None and plugins.lacks(wanted):
            result.absent.add(wanted.plugin)
            if said is not None and plugins.precedes("filter", said.plugin, wanted.plugin):
                result.differ(f"filter[{node}]", wanted, said)
        else:
            result.differ(f"filter[{node}]", wanted, said)
    if expected.error is not None and not expected.feasible:
        return  # A filter failed: nodes that had passed all filters are not told.
    for node in sorted({*got.filter, *got.feasible} - seen):
        if not (needs_lacking and expected.pre_filter_nodes is not None):
            result.differ(f"filter[{node}]", "not looked at", got.filter.get(node, "feasible"))


def _compare_error(result: Comparison, expected: Decision, got: Decision, plugins: Plugins) -> None:
    """The text of an internal error, unless a lacking plugin is to blame for the one of kube-scheduler."""
    blamed = _BLAMED.match(expected.error or "")
    if blamed is not None and not plugins.has(blamed["plugin"]):
        result.absent.add(blamed["plugin"])
        expected = msgspec.structs.replace(expected, error=None)
    result.differ("error", expected.error, got.error)


def _compare_scores(result: Comparison, expected: Decision, got: Decision, plugins: Plugins) -> None:
    """Raw scores wherever both have them; what depends on the set of nodes only if that is the same."""
    if not expected.raw and len(expected.feasible) == 1:
        # Scoring the only node would fail, so it was not scored: there is nothing but the node.
        if not result.absent:
            result.differ("best", expected.best, got.best)
        return
    result.absent |= _lacking_that_matter(expected.scores, plugins)
    same = expected.feasible == got.feasible
    for node in sorted({*expected.feasible} & {*got.feasible}):
        for name in ("raw", "scores") if same else ("raw",):
            wanted, said = (
                _comparable(scores, node, plugins, but=frozenset() if same else _BY_THE_SET)
                for scores in (getattr(expected, name), getattr(got, name))
            )
            result.differ(f"{name}[{node}]", wanted, said)
    if result.absent or not same:
        return
    total, best = _present_total(expected, plugins)
    if total is not None:
        result.differ("total", total, got.total)
    result.differ("best", best, got.best)


def _lacking_that_matter(scores: Scores, plugins: Plugins) -> set[str]:
    """Lacking plugins whose scores differ between nodes. One and the same score everywhere decides nothing."""
    lacking = {name for by_plugin in scores.values() for name in by_plugin if not plugins.has(name)}
    return {name for name in lacking if len({by_plugin.get(name) for by_plugin in scores.values()}) > 1}


def _comparable(scores: Scores, node: str, plugins: Plugins, but: frozenset[str] = frozenset()) -> dict[str, int]:
    return {name: score for name, score in scores.get(node, {}).items() if plugins.scores(name) and name not in but}


def _present_total(expected: Decision, plugins: Plugins) -> tuple[dict[str, int] | None, tuple[str, ...]]:
    """Total and best set as they are without lacking plugins; None where only lacking plugins scored."""
    if all(plugins.has(name) for by_plugin in expected.scores.values() for name in by_plugin):
        return expected.total, expected.best
    present = {node: _comparable(expected.scores, node, plugins) for node in expected.feasible}
    if not any(present.values()):
        return None, expected.feasible
    total = {node: sum(scores.values()) for node, scores in present.items()}
    return total, tuple(sorted(node for node, score in total.items() if score == max(total.values())))


def _compare_slim_totals(result: Comparison, expected: Decision, got: Decision, plugins: Plugins) -> None:
    """Only totals are known. If they differ, a lacking plugin may be the reason, if one can have scored at all."""
    if expected.feasible != got.feasible:
        return
    if expected.total != got.total and (plugins.silent or result.absent):
        result.absent |= plugins.silent
        result.totals_unseen = True
        return
    result.differ("total", expected.total, got.total)
    result.differ("best", expected.best, got.best)


def _compare_message(result: Comparison, expected: Decision, got: Decision) -> None:
    if not result.absent:
        result.differ(
            "message",
            without_post_filter(expected.message, expected.post_filter),
            without_post_filter(got.message, got.post_filter),
        )


def without_post_filter(message: str, post_filter: PostFilterVerdict | None) -> str:
    """A pod's message without what PostFilter appended to it."""
    if post_filter is None or not post_filter.message:
        return message
    return message.removesuffix(post_filter.message).removesuffix(" ")


def differences_by_field(differences: Sequence[Difference]) -> Iterator[tuple[str, Any, Any]]:
    """Differences as plain values, for the report."""
    for difference in differences:
        yield difference.field, plain(difference.expected), plain(difference.got)


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    return msgspec.to_builtins(value)


def shown(value: Any) -> str:
    """A value in one line, shortened."""
    text = msgspec.json.encode(value, order="deterministic").decode()
    return text if len(text) <= 300 else f"{text[:300]}..."
