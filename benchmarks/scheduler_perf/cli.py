"""`python -m benchmarks.scheduler_perf`: choose workloads, run them, show and keep what came of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import uvloop
import yaml
from rich.console import Console
from rich.markup import escape

from benchmarks import report
from benchmarks.console import wide_console
from benchmarks.errors import WorkloadError
from benchmarks.scheduler_perf import executor, gates, needs, results, screen, selection
from benchmarks.scheduler_perf.cases import Param, Workload, load
from benchmarks.scheduler_perf.executor import RunPlan
from benchmarks.scheduler_perf.objects import Templates
from benchmarks.scheduler_perf.results import Outcome
from benchmarks.scheduler_perf.schedulers import SchedulerChoice
from benchmarks.scheduler_perf.server import ServerChoice
from ksched.errors import KschedError

_HELP = """Run workloads in scheduler_perf's format and measure what a scheduler does with them.

By default each run has a sandbox (an embedded API server) of its own, and a scheduler process of its own.

\b
Examples:
  python -m benchmarks.scheduler_perf --config ../shared/scheduler_perf --list
  python -m benchmarks.scheduler_perf --config ../shared/scheduler_perf/misc/performance-config.yaml \\
      --select SchedulingBasic/5000Nodes_10000Pods --param measurePods=60000 --repeat 5 --json ksched.json
  ... --scheduler null                             the ceiling of server and loader
  ... --scheduler-cmd 'kube-scheduler --config {config} --secure-port 0'      another scheduler
  ... --kubeconfig ~/.kube/config                  a cluster that is there; what is created is deleted again

A run whose window, from the first creation to the last binding of a measured pod, is shorter than 10 s says so and is
not a result. docs/performance.md tells what each figure means."""


@click.command(help=_HELP, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.option(
    "--config",
    "configs",
    multiple=True,
    required=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="FILE_OR_DIR",
    help="Workload file, or a folder with performance-config.yaml files below. May be repeated.",
)
@click.option("--select", multiple=True, metavar="CASE/WORKLOAD", help="Run exactly this workload. May be repeated.")
@click.option(
    "--label-filter",
    metavar="LABELS",
    help="x or +x must be there, -x must not; '' takes all.  [default: performance, unless --select is given]",
)
@click.option(
    "--list", "list_only", is_flag=True, help="Only list what would be run, and what would be skipped and why."
)
@click.option(
    "--scheduler", type=click.Choice(["ksched", "null"]), default="ksched", show_default=True, help="What is measured."
)
@click.option(
    "--scheduler-cmd",
    metavar="COMMAND",
    help="Any other scheduler; {kubeconfig}, {config} and {feature_gates} are filled in. There is no shell.",
)
@click.option("--scheduler-config", type=click.Path(exists=True, path_type=Path), help="In place of the workload's.")
@click.option("--null-events", is_flag=True, help="The null scheduler writes an event per pod, as schedulers do.")
@click.option("--label", default="", help="What results call the scheduler.  [default: its name]")
@click.option("--kubeconfig", type=click.Path(exists=True, path_type=Path), help="A real cluster instead of sandboxes.")
@click.option("--server-pid", type=int, multiple=True, help="A process of that cluster's server, to be measured.")
@click.option("--tls", is_flag=True, help="The sandbox speaks HTTPS.")
@click.option("--repeat", type=click.IntRange(1), default=1, show_default=True, help="Runs per workload.")
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="Replace a workload's parameter.")
@click.option("--timeout", type=float, default=600.0, show_default=True, help="Seconds that pods are waited for.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the results here.")
@click.option("--html", "html_path", type=click.Path(path_type=Path), help="Write a report here.")
@click.option("--png", "png_path", type=click.Path(path_type=Path), help="Write the report's charts here (matplotlib).")
@click.option("--logs", type=click.Path(path_type=Path), help="Keep the schedulers' logs in this folder.")
def main(
    *,
    configs: tuple[Path, ...],
    select: tuple[str, ...],
    label_filter: str | None,
    list_only: bool,
    scheduler: str,
    scheduler_cmd: str | None,
    scheduler_config: Path | None,
    null_events: bool,
    label: str,
    kubeconfig: Path | None,
    server_pid: tuple[int, ...],
    tls: bool,
    repeat: int,
    params: tuple[str, ...],
    timeout: float,
    json_path: Path | None,
    html_path: Path | None,
    png_path: Path | None,
    logs: Path | None,
) -> None:
    """Run what was chosen; exit code 1 when a run failed."""
    if tls and kubeconfig is not None:
        raise click.UsageError("--tls is about the sandbox; a cluster's kubeconfig says how to reach it")
    choice = SchedulerChoice(
        "command" if scheduler_cmd else scheduler, scheduler_cmd or "", label, scheduler_config, null_events
    )
    plan = RunPlan(choice, ServerChoice(kubeconfig, tls, server_pid), timeout, logs)
    console = wide_console()
    try:
        workloads = chosen(configs, select, label_filter, overrides(params))
        outcomes = [prepared(workload, plan) for workload in workloads]
        if list_only:
            _show_list(console, outcomes)
            return
        with screen.Screen(console) as shown:
            for outcome in outcomes:
                if outcome.status != "skipped":
                    _run(outcome, plan, repeat, shown)
        screen.show_outcomes(console, outcomes)
        document = results.document(
            outcomes, scheduler=choice.name, server=plan.server.describe, command=["scheduler_perf", *sys.argv[1:]]
        )
        if json_path is not None:
            results.write(json_path, document)
        if html_path is not None:
            report.write_html(html_path, [document])
        if png_path is not None:
            report.write_png(png_path, [document])
    except KschedError as fault:
        raise click.ClickException(str(fault)) from fault
    if any(outcome.status == "failed" for outcome in outcomes):
        sys.exit(1)


def overrides(written: Sequence[str]) -> dict[str, Param]:
    """The parameters of `--param NAME=VALUE`, typed as YAML types them."""
    found: dict[str, Param] = {}
    for each in written:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise WorkloadError(f"--param {each}: must be NAME=VALUE")
        read: Any = yaml.safe_load(value)
        if not isinstance(read, int | float | str | bool):
            raise WorkloadError(f"--param {each}: must be a number, a text, true or false")
        found[name] = read
    return found


def chosen(
    configs: Sequence[Path], select: Sequence[str], label_filter: str | None, params: dict[str, Param]
) -> list[Workload]:
    """The workloads that were asked for. Raises WorkloadError when there are none, or a parameter is nobody's."""
    workloads = [workload for config in configs for workload in load(config, params)]
    found = selection.by_name(workloads, select) if select else workloads
    if label_filter is None:
        label_filter = "" if select else selection.DEFAULT_FILTER
    found = selection.by_labels(found, label_filter)
    if not found:
        raise WorkloadError(f"no workload has the labels {label_filter!r}")
    for name in params:
        without = [workload.full_name for workload in found if name not in workload.params]
        if len(without) == len(found) or (select and without):
            raise WorkloadError(f"--param {name}: {', '.join(without[:3])}: there is no such parameter")
    return found


def prepared(workload: Workload, plan: RunPlan) -> Outcome:
    """The workload with its gates decided: to be run, or skipped with the reason."""
    kind = plan.scheduler.kind
    decision = gates.decide(workload.feature_gates, foreign=kind == "command")
    templates = Templates(workload)
    sandbox = plan.server.is_sandbox
    reason = needs.why_not(workload, templates, scheduler=kind, sandbox=sandbox, gates=decision.obeyed)
    caveats = needs.caveats(workload, templates, scheduler=kind)
    return Outcome(workload, "skipped" if reason else "ran", reason, decision, caveats)


def _run(outcome: Outcome, plan: RunPlan, repeat: int, shown: screen.Screen) -> None:
    """All repeats of one workload; the first failure ends them."""
    name = outcome.workload.full_name
    for number in range(1, repeat + 1):
        shown.run(f"{name} [{plan.scheduler.name}] {number}/{repeat}")
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                found = runner.run(executor.run(outcome.workload, plan, outcome.gates.obeyed, shown))
        except KschedError as fault:
            outcome.status, outcome.reason = "failed", str(fault)
            shown.note(f"{name}: failed: {fault}")
            return
        outcome.runs.append(found)
        for collection in found["collections"]:
            if collection["acceptance"] is not None:
                rate, seconds = collection["acceptance"]["pods_per_second"], collection["acceptance"]["seconds"]
                cpu = collection["scheduler_cpu_ms_per_pod"]
                shown.note(f"{name} {number}/{repeat}: {rate:,.0f} pods/s in {seconds:.1f} s, {cpu:.3f} ms CPU per pod")


def _show_list(console: Console, outcomes: Sequence[Outcome]) -> None:
    for outcome in outcomes:
        skipped = f"  skipped: {outcome.reason}" if outcome.reason else ""
        console.print(f"{outcome.workload.topic}: {outcome.workload.full_name}{escape(skipped)}", highlight=False)
    runnable = sum(outcome.status != "skipped" for outcome in outcomes)
    console.print(f"{runnable} to run, {len(outcomes) - runnable} skipped", highlight=False)
