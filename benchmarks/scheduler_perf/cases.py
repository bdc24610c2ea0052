"""Workload files: test cases with templates of operations, and workloads that fill in their parameters.

The format is that of scheduler_perf's performance-config.yaml, read strictly: unknown fields, names that repeat,
parameters that nothing uses and test cases that measure nothing are errors. `load` reads a file or all files below a
folder; `Workload.operations` is what a run carries out, pod sets unrolled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import yaml

from benchmarks.errors import WorkloadError
from benchmarks.scheduler_perf.operations import AnyOperation, CreatePods, CreatePodSets, operation
from ksched.config import durations
from ksched.errors import ConfigurationError

FILE_NAME = "performance-config.yaml"

DECLARED_FEATURES = "numNodeDeclaredFeatures"
"""A parameter that no operation names: scheduler_perf's test for the topic gives each node so many features."""

Param = int | float | str | bool

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class ThresholdMetricSelector(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Which value a threshold is about."""

    name: str = "SchedulingThroughput"
    labels: dict[str, str] = {}
    data_bucket: str = "Average"
    expect_lower: bool = False


class WrittenWorkload(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A workload as the file has it."""

    name: str
    params: dict[str, Param] = {}
    labels: list[str] = []
    threshold: float | dict[str, float] = 0.0
    threshold_metric_selector: ThresholdMetricSelector | None = None
    feature_gates: dict[str, bool] = {}


class WrittenCase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A test case as the file has it."""

    name: str
    workload_template: list[dict[str, Any]]
    workloads: list[WrittenWorkload]
    feature_gates: dict[str, bool] = {}
    metrics_collector_config: dict[str, Any] = {}
    scheduler_config_path: str | None = None
    default_pod_template_path: str | None = None
    labels: list[str] = []
    default_threshold_metric_selector: ThresholdMetricSelector | None = None


@dataclass(frozen=True)
class Workload:
    """One workload, ready to be run."""

    topic: str
    """The folder of its file, below the folder that was read."""
    case: str
    name: str
    labels: frozenset[str]
    params: Mapping[str, Param]
    feature_gates: Mapping[str, bool]
    folder: Path
    """Where template paths begin."""
    operations: Sequence[AnyOperation]
    default_pod_template: str | None = None
    scheduler_config: Path | None = None
    threshold: float | Mapping[str, float] = 0.0
    threshold_selector: ThresholdMetricSelector = field(default_factory=ThresholdMetricSelector)

    @property
    def full_name(self) -> str:
        """`CASE/WORKLOAD`, as `--select` takes it."""
        return f"{self.case}/{self.name}"

    @property
    def declared_features(self) -> int:
        """How many features every node declares."""
        return int(self.params.get(DECLARED_FEATURES, 0))

    @property
    def lowest_throughput(self) -> float:
        """scheduler_perf's threshold for this topic; 0 where there is none."""
        if isinstance(self.threshold, Mapping):
            return self.threshold.get(self.topic, 0.0)
        return self.threshold


def load(path: Path, overrides: Mapping[str, Param] | None = None) -> list[Workload]:
    """Every workload of the file at `path`, or of all files below the folder `path`.

    `overrides` replaces parameters of the workloads that have them. Raises WorkloadError.
    """
    if path.is_dir():
        files = sorted(path.rglob(FILE_NAME))
        if not files:
            raise WorkloadError(f"{path}: there is no {FILE_NAME} in it or below")
        return [workload for file in files for workload in _of_file(file, _topic(file, path), overrides or {})]
    return _of_file(path, path.resolve().parent.name, overrides or {})


def _topic(file: Path, root: Path) -> str:
    below = file.parent.relative_to(root)
    return below.as_posix() if below.parts else root.resolve().name


def _of_file(file: Path, topic: str, overrides: Mapping[str, Param]) -> list[Workload]:
    try:
        written = yaml.load(file.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise WorkloadError(f"{file}: cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise WorkloadError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
    try:
        cases = msgspec.convert(written, type=list[WrittenCase])
    except msgspec.ValidationError as error:
        raise WorkloadError(f"{file}: {error}") from error
    _require_unique((case.name for case in cases), f"{file}: test cases")
    return [workload for case in cases for workload in _of_case(case, file, topic, overrides)]


def _of_case(case: WrittenCase, file: Path, topic: str, overrides: Mapping[str, Param]) -> list[Workload]:
    where = f"{file}: {case.name}"
    if not case.workloads:
        raise WorkloadError(f"{where}: there are no workloads")
    _require_unique((workload.name for workload in case.workloads), f"{where}: workloads")
    return [_workload(case, workload, file, topic, overrides) for workload in case.workloads]


def _workload(
    case: WrittenCase, written: WrittenWorkload, file: Path, topic: str, overrides: Mapping[str, Param]
) -> Workload:
    where = f"{file}: {case.name}/{written.name}"
    params = {**written.params, **{name: value for name, value in overrides.items() if name in written.params}}
    used: set[str] = {DECLARED_FEATURES}
    operations = [
        operation(_filled(template, params, used, f"{where}: operation {index}"), f"{where}: operation {index}")
        for index, template in enumerate(case.workload_template)
    ]
    if unused := sorted(params.keys() - used):
        raise WorkloadError(
            f"{where}: the parameters {unused} are defined, but unused; please make sure there are no typos"
        )
    if not any(each.collects for each in operations):
        raise WorkloadError(f"{where}: no operation collects metrics")
    unrolled = list(_unrolled(operations))
    _check_durations(unrolled, where)
    selector = written.threshold_metric_selector or case.default_threshold_metric_selector
    return Workload(
        topic=topic,
        case=case.name,
        name=written.name,
        labels=frozenset((*case.labels, *written.labels)),
        params=params,
        feature_gates={**case.feature_gates, **written.feature_gates},
        folder=file.parent,
        operations=unrolled,
        default_pod_template=case.default_pod_template_path,
        scheduler_config=None if case.scheduler_config_path is None else file.parent / case.scheduler_config_path,
        threshold=written.threshold,
        threshold_selector=selector or ThresholdMetricSelector(),
    )


def _filled(template: Mapping[str, Any], params: Mapping[str, Param], used: set[str], where: str) -> dict[str, Any]:
    """An operation with every `fooParam: $name` replaced by `foo: VALUE`."""
    filled: dict[str, Any] = {}
    for key, value in template.items():
        if isinstance(value, dict):
            filled[key] = _filled(value, params, used, where)
        elif key.endswith("Param"):
            if not isinstance(value, str) or not value.startswith("$"):
                raise WorkloadError(f"{where}: {key}: must be $ and a parameter's name, got {value!r}")
            if value[1:] not in params:
                raise WorkloadError(f"{where}: {key}: parameter {value[1:]} is undefined")
            used.add(value[1:])
            filled[key.removesuffix("Param")] = params[value[1:]]
        else:
            filled.setdefault(key, value)
    return filled


def _unrolled(operations: Iterable[AnyOperation]) -> Iterable[AnyOperation]:
    """Pod sets become operations of their own, so that later operations have higher numbers."""
    for each in operations:
        if isinstance(each, CreatePodSets):
            for number in range(each.count):
                yield msgspec.structs.replace(each.create_pods_op, namespace=f"{each.namespace_prefix}-{number}")
        else:
            yield each


def _check_durations(operations: Iterable[AnyOperation], where: str) -> None:
    for index, each in enumerate(operations):
        duration = getattr(each, "duration", None)
        if duration is None:
            continue
        try:
            seconds = durations.seconds(duration)
        except ConfigurationError as error:
            raise WorkloadError(f"{where}: operation {index}: duration: {error}") from error
        if isinstance(each, CreatePods) and each.steady_state and seconds <= 0:
            raise WorkloadError(
                f"{where}: operation {index}: when creating pods in a steady state, the test duration must be > 0"
            )


def _require_unique(names: Iterable[str], where: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise WorkloadError(f"{where}: {name} is there twice")
        seen.add(name)
