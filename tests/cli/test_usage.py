"""What people read when they ask for help or type something wrong, and the exit codes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ksched import __version__
from ksched.cli import COMMANDS
from tests.cli.conftest import ROOT, Typed


def test_help_names_every_command(typed: Typed) -> None:
    result = typed("--help")
    assert result.exit_code == 0
    for name in COMMANDS:
        assert f"\n  {name} " in result.output


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_fits_a_terminal(typed: Typed, name: str) -> None:
    result = typed(name, "-h")
    assert result.exit_code == 0
    assert result.output.startswith(f"Usage: ksched {name} [OPTIONS]\n")
    assert [line for line in result.output.splitlines() if len(line) > 120] == []


def test_version_says_whose_behaviour_it_is(typed: Typed) -> None:
    result = typed("version")
    assert result.exit_code == 0
    assert result.output.startswith(f"ksched {__version__} (behaves like kube-scheduler v1.36")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["walk"], "No such command 'walk'", id="a command that does not exist"),
        pytest.param(["run", "--secure-port", "1"], "No such option '--secure-port'", id="a flag that is not known"),
        pytest.param(["run", "now"], "Got unexpected extra argument (now)", id="run takes no arguments"),
        pytest.param(["run", "--v=many"], "'many' is not a valid level", id="a level that is no number"),
        pytest.param(["run", "-v", "-1"], "-1 is not in the range x>=0", id="a negative level"),
        pytest.param(
            ["run", "--feature-gates", "Nope=true"],
            "Invalid value for --feature-gates: unrecognized feature gate: Nope",
            id="a gate that nobody knows",
        ),
        pytest.param(
            ["run", "--feature-gates", "NodeDeclaredFeatures"],
            "Invalid value for --feature-gates: missing bool value for NodeDeclaredFeatures",
            id="a gate without a value",
        ),
        pytest.param(["run", "--logging-format", "xml"], "'xml' is not one of 'text', 'json'", id="a log format"),
        pytest.param(["sandbox", "--port", "65536"], "65536 is not in the range 0<=x<=65535", id="a port"),
        pytest.param(["demo", "--nodes", "0"], "0 is not in the range x>=1", id="a demo without nodes"),
        pytest.param(
            ["demo", "--pods", "3", "--unschedulable", "4"],
            "Invalid value for --unschedulable: must be at most --pods, 3, got 4",
            id="more pods that cannot fit than pods",
        ),
        pytest.param(
            ["demo", "--json", "/nowhere/report.json"],
            "Invalid value for '--json': /nowhere/report.json: there is no folder /nowhere",
            id="a report in a folder that is not there",
        ),
        pytest.param(["demo", "--json", "/"], "'/' is a directory", id="a report that is a folder"),
        pytest.param(["demo", "--trace", "borg", "."], "'borg' is not 'alibaba'", id="a trace that is not known"),
        pytest.param(["demo", "--trace", "alibaba", "/nowhere"], "'/nowhere' does not exist", id="no such folder"),
        pytest.param(
            ["demo", "--trace", "alibaba", ".", "--nodes", "5"],
            "--nodes and --trace do not go together",
            id="a size for a recorded cluster",
        ),
    ],
)
def test_wrong_usage_is_told_and_exits_2(typed: Typed, words: list[str], said: str) -> None:
    result = typed(*words)
    assert result.exit_code == 2
    assert said in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["run", "--config", "{}/none.yaml"], "open {}/none.yaml: no such file or directory", id="no file"),
        pytest.param(
            ["run", "--config", "{}/bad.yaml"],
            'no kind "KubeSchedulerConfiguratio" is registered',
            id="a configuration of another kind",
        ),
        pytest.param(
            ["run", "--config", "{}/empty.yaml"],
            "{}/empty.yaml: Object 'Kind' is missing in ''",
            id="an empty configuration",
        ),
        pytest.param(
            ["run", "--config", "{}/extended.yaml"],
            "extenders: ksched has none yet, expected no entry, got 1",
            id="extenders",
        ),
        pytest.param(["run", "--kubeconfig", "{}/none.yaml"], "{}/none.yaml", id="no kubeconfig"),
        pytest.param(["run", "--kubeconfig", "{}/bad.yaml"], "{}/bad.yaml", id="a kubeconfig of another kind"),
        pytest.param(["run"], "expected --kubeconfig FILE", id="neither kubeconfig nor pod"),
        pytest.param(
            ["run", "--master", "http://127.0.0.1:9"],
            "http://127.0.0.1:9: connection refused: nothing listens there",
            id="a server that is not there",
        ),
        pytest.param(
            ["demo", "--trace", "alibaba", "{}"],
            "{}: expected the files openb_node_list_all_node.csv and openb_pod_list_default.csv, no ",
            id="no trace there",
        ),
        pytest.param(
            ["sandbox", "--kubeconfig-out", "{}/bad.yaml/kubeconfig"],
            "kubeconfig {}/bad.yaml/kubeconfig: cannot be written",
            id="a kubeconfig that cannot be written",
        ),
    ],
)
def test_a_failure_is_one_line_and_exits_1(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    (tmp_path / "bad.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguratio\n", encoding="utf-8"
    )
    (tmp_path / "empty.yaml").touch()
    (tmp_path / "extended.yaml").write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: 'http://extender.example', filterVerb: filter}]\n",
        encoding="utf-8",
    )
    result = typed(*[word.replace("{}", str(tmp_path)) for word in words])
    assert result.exit_code == 1
    lines = [line for line in result.stderr.splitlines() if line.startswith("ksched: ")]
    assert len(lines) == 1
    assert said.replace("{}", str(tmp_path)) in lines[0]
    assert "Traceback" not in result.stderr


def test_a_demo_that_is_too_large_for_its_nodes_says_what_would_fit(typed: Typed) -> None:
    result = typed("demo", "--pods", 6000, "--nodes", 50)
    assert result.exit_code == 2
    assert re.search(
        r"6,000 pods are too many for 50 nodes, which have room for \d,\d{3}; use more --nodes or fewer --pods",
        result.stderr,
    )


def test_ctrl_c_before_a_demo_has_begun_exits_130(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ksched.cli.demo.made_up", interrupted)
    assert typed("demo").exit_code == 130


def test_a_traceback_comes_with_verbosity(typed: Typed) -> None:
    result = typed("run", "--config", "/nowhere", "-v=1")
    assert result.exit_code == 1
    assert type(result.exception).__name__ == "ConfigurationError"


def test_python_m_ksched_is_the_same_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "ksched", "version"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.startswith(f"ksched {__version__}")
