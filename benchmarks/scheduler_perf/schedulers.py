"""The scheduler that is measured, as a child process: ksched, the null scheduler, or any command.

Each gets the kubeconfig of the run's server and, but for the null scheduler, a configuration file: what the workload
brings (scheduler_perf passes on only some of its fields), without leader election, since there is one process.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from benchmarks.errors import WorkloadError
from benchmarks.processes import ChildProcess, project_environ, python_command
from benchmarks.scheduler_perf.cases import Workload

API_VERSION = "kubescheduler.config.k8s.io/v1"

PASSED_ON = (
    "profiles",
    "percentageOfNodesToScore",
    "podInitialBackoffSeconds",
    "podMaxBackoffSeconds",
    "extenders",
    "parallelism",
)
"""The fields of a workload's scheduler configuration that scheduler_perf hands to the scheduler."""

QPS = 5000
"""scheduler_perf's client limit, given to foreign schedulers; ksched has none unless one is written."""


@dataclass(frozen=True)
class SchedulerChoice:
    """Which scheduler runs use. `command` is for a foreign one, with `{kubeconfig}` and `{config}` in it."""

    kind: str = "ksched"
    """ksched, null or command."""
    command: str = ""
    label: str = ""
    config: Path | None = None
    """A configuration that takes the place of the workload's."""
    null_events: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What results call it."""
        if self.label:
            return self.label
        if self.kind == "command":
            return Path(shlex.split(self.command)[0]).name
        return "null+events" if self.kind == "null" and self.null_events else self.kind


def start(
    choice: SchedulerChoice, workload: Workload, gates: Mapping[str, bool], kubeconfig: Path, directory: Path
) -> ChildProcess:
    """Start a scheduler; its log and configuration go to `directory`."""
    if choice.kind == "null":
        command = python_command("benchmarks.scheduler_perf.null", "--kubeconfig", str(kubeconfig))
        if choice.null_events:
            command.append("--events")
    else:
        config = directory / "scheduler.yaml"
        config.write_text(yaml.safe_dump(configuration(choice, workload, kubeconfig), sort_keys=False))
        flags = ",".join(f"{name}={str(value).lower()}" for name, value in sorted(gates.items()))
        if choice.kind == "ksched":
            command = python_command("ksched", "run", "--kubeconfig", str(kubeconfig), "--config", str(config))
            if flags:
                command += ["--feature-gates", flags]
        else:
            command = _foreign(choice.command, kubeconfig, config, flags)
    environ = {**project_environ(), **choice.environ}
    return ChildProcess(command, directory / "scheduler.log", environ=environ)


def configuration(choice: SchedulerChoice, workload: Workload, kubeconfig: Path) -> dict[str, Any]:
    """The configuration file's content."""
    source = choice.config or workload.scheduler_config
    written: dict[str, Any] = {}
    if source is not None:
        try:
            written = yaml.safe_load(source.read_text(encoding="utf-8"))
        except (OSError, yaml.YAMLError) as error:
            raise WorkloadError(f"{source}: not a scheduler configuration: {error}") from error
    content: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "KubeSchedulerConfiguration"}
    content["leaderElection"] = {"leaderElect": False}
    content["clientConnection"] = {"kubeconfig": str(kubeconfig)}
    if choice.kind == "command":
        content["clientConnection"] |= {"qps": QPS, "burst": QPS, "contentType": "application/json"}
    return content | {key: written[key] for key in PASSED_ON if key in written}


def _foreign(command: str, kubeconfig: Path, config: Path, flags: str) -> list[str]:
    """The command with its placeholders filled in, without a shell."""
    values = {"{kubeconfig}": str(kubeconfig), "{config}": str(config), "{feature_gates}": flags}
    filled = []
    for word in shlex.split(command):
        for placeholder, value in values.items():
            word = word.replace(placeholder, value)
        filled.append(word)
    return filled
