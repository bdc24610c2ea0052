"""A cluster that was recorded: Alibaba's GPU cluster trace of 2023 ("openb"), as nodes and pods.

GPUs are whole extended resources here: a pod that used a part of one asks for one. The models of GPUs that a
pod accepts become node affinity on a label of the model. A pod without GPUs has only cpu and memory. Times of
the trace are not used, except that pods keep its order.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from ksched.errors import SandboxError
from ksched.sandbox.clusters.nodes import GPU, REGION, node

Json = dict[str, Any]

MODEL_LABEL: Final = "nvidia.com/gpu.product"
NODE_FILE: Final = "openb_node_list_all_node.csv"
POD_FILE: Final = "openb_pod_list_default.csv"
_NODE_COLUMNS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
_POD_COLUMNS: Final = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_spec", "qos")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_TRACE_PODS_PER_NODE: Final = 250


def alibaba(directory: str | Path) -> tuple[list[Json], list[Json]]:
    """The nodes and the pods of the trace in a directory, in its order.

    Raises SandboxError naming file, line and column of what cannot be used.
    """
    folder = Path(directory)
    absent = [name for name in (NODE_FILE, POD_FILE) if not (folder / name).exists()]
    if absent:
        raise SandboxError(
            f"{folder}: expected the files {NODE_FILE} and {POD_FILE}, no {' and no '.join(absent)} there"
        )
    nodes = [_node(row) for row in _rows(folder / NODE_FILE, _NODE_COLUMNS)]
    pods = [_pod(row) for row in _rows(folder / POD_FILE, _POD_COLUMNS)]
    return nodes, pods


class _Row:
    """One line of a file, whose values are read with the place in mind."""

    def __init__(self, path: Path, line: int, values: dict[str, str]) -> None:
        self._path = path
        self._line = line
        self._values = values

    def text(self, column: str) -> str:
        return self._values[column].strip()

    def name(self, column: str) -> str:
        value = self.text(column)
        if not value:
            raise self.wrong(column, "a name")
        return value

    def count(self, column: str) -> int:
        value = self.text(column)
        if not value.isascii() or not value.isdecimal():
            raise self.wrong(column, "a whole number that is not negative")
        return int(value)

    def wrong(self, column: str, expected: str) -> SandboxError:
        place = f"{self._path}, line {self._line}, column {column}"
        return SandboxError(f"{place}: expected {expected}, got {self.text(column)!r}")


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[_Row]:
    seen: set[str] = set()
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            missing = [column for column in columns if column not in (reader.fieldnames or ())]
            if missing:
                found = ", ".join(reader.fieldnames or ()) or "nothing"
                raise SandboxError(f"{path}, line 1: expected a column {missing[0]}, got {found}")
            for values in reader:
                if None in values or None in values.values():
                    expected = len(reader.fieldnames or ())
                    raise SandboxError(f"{path}, line {reader.line_num}: expected {expected} values")
                row = _Row(path, reader.line_num, values)
                name = row.name(columns[0])
                if name in seen:
                    raise row.wrong(columns[0], "a name that is not on an earlier line")
                seen.add(name)
                yield row
    except OSError as error:
        raise SandboxError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise SandboxError(f"{path}: cannot be read: {error}") from error


def _node(row: _Row) -> Json:
    gpus, model = row.count("gpu"), row.text("model")
    if gpus and not model:
        raise row.wrong("model", "the model of the GPUs")
    return node(
        row.name("sn"),
        cpu=f"{row.count('cpu_milli')}m",
        memory=f"{row.count('memory_mib')}Mi",
        pods=_TRACE_PODS_PER_NODE,
        zone=f"{REGION}a",
        instance_type=model or "cpu",
        labels={MODEL_LABEL: model} if gpus else {},
        extended={GPU: str(gpus)} if gpus else {},
    )


def _pod(row: _Row) -> Json:
    requests = {"cpu": f"{row.count('cpu_milli')}m", "memory": f"{row.count('memory_mib')}Mi"}
    gpus = row.count("num_gpu")
    resources: Json = {"requests": requests}
    spec: Json = {"containers": [{"name": "main", "image": "registry.example/task:1", "resources": resources}]}
    if gpus:
        requests[GPU] = str(gpus)
        resources["limits"] = {GPU: str(gpus)}
        models = [model for model in row.text("gpu_spec").split("|") if model]
        if models:
            expression = {"key": MODEL_LABEL, "operator": "In", "values": models}
            terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
            spec["affinity"] = {"nodeAffinity": {_REQUIRED: terms}}
    labels = {"app": "task", "example.com/qos": row.text("qos") or "none"}
    metadata = {"name": row.name("name"), "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
