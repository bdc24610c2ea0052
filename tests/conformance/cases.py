"""Golden vectors as they lie in their files: families, cases, and what kube-scheduler decided.

Objects stay the bytes that they are in the file, so that they go through ksched's own decoding like an API server's
answer. A `Decision` is both what a vector expects and what ksched said, so that the two can be laid side by side.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ksched.errors import KschedError

Scores = dict[str, dict[str, int]]
"""Node name: plugin name: score."""


class Verdict(msgspec.Struct, frozen=True):
    """A plugin's word about a pod or a node; reasons are sorted."""

    plugin: str
    code: str
    reasons: tuple[str, ...] = ()


class PostFilterVerdict(msgspec.Struct, rename="camel", frozen=True):
    """What PostFilter answered. The rest of the fields is there only if a node was found."""

    code: str
    message: str = ""
    nominated_node: str | None = None
    nominated_nodes: tuple[str, ...] | None = None
    victims: tuple[str, ...] = ()
    candidates: dict[str, Any] | None = None
    cleared_nominations: tuple[str, ...] | None = None


class Decision(msgspec.Struct, rename="camel", frozen=True):
    """Everything that is decided about one pod."""

    pod: str = ""
    skip: str | None = None
    pre_enqueue: Verdict | None = None
    pre_filter: Verdict | None = None
    pre_filter_nodes: tuple[str, ...] | None = None
    filter: dict[str, Verdict] = {}
    feasible: tuple[str, ...] = ()
    nominated_node_hit: bool = False
    raw: Scores = {}
    scores: Scores = {}
    total: dict[str, int] = {}
    best: tuple[str, ...] = ()
    message: str = ""
    error: str | None = None
    post_filter: PostFilterVerdict | None = None
    reserve: Verdict | None = None
    allocations: Any = None
    chosen: str = ""


class Case(msgspec.Struct, rename="camel"):
    """One case: a cluster, and pods to schedule one after the other."""

    name: str
    family: str
    config: dict[str, Any] | None
    feature_gates: dict[str, bool]
    objects: list[msgspec.Raw]
    pods: list[msgspec.Raw]
    description: str = ""
    mode: str = ""
    detail: str = ""
    expected: tuple[Decision, ...] = ()
    expected_groups: dict[str, Any] | None = None

    @property
    def is_slim(self) -> bool:
        """Whether the scores of single plugins are left out."""
        return self.detail == "slim"

    @property
    def is_group(self) -> bool:
        """Whether pods are scheduled in groups, so that there is no decision per pod."""
        return self.mode == "group"


class VectorError(KschedError):
    """A file of vectors cannot be understood."""


_case = msgspec.json.Decoder(Case)
_SUFFIXES = (".jsonl.gz", ".jsonl")


def families(folder: Path) -> dict[str, Path]:
    """Family name: its file."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        for suffix in _SUFFIXES:
            if path.name.endswith(suffix):
                found[path.name.removesuffix(suffix)] = path
                break
    return found


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file; VectorError names the line that is none."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                case = _case.decode(line)
            except msgspec.DecodeError as error:
                raise VectorError(f"{path}:{number}: expected a case: {error}") from error
            if not case.is_group and len(case.pods) != len(case.expected):
                raise VectorError(
                    f"{path}:{number}: case {case.name} has {len(case.pods)} pods but {len(case.expected)} decisions"
                )
            yield case
