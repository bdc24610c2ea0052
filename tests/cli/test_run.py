"""`ksched run` and `ksched sandbox` as processes: what they print, how they end."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import IO

import pytest
import yaml

from tests.cli.conftest import Started

SECONDS = 30.0


def line_with(stream: IO[str] | None, text: str) -> str:
    """Read lines until one holds `text`."""
    assert stream is not None
    seen: list[str] = []
    for line in stream:
        seen.append(line)
        if text in line:
            return line
    raise AssertionError(f"expected a line with {text!r}, got:\n{''.join(seen)}")


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit code and what was still written to standard error."""
    _, errors = process.communicate(timeout=SECONDS)
    return process.returncode, errors


@pytest.fixture
def kubeconfig(started: Started, tmp_path: Path) -> Path:
    """A sandbox with three nodes, by its kubeconfig."""
    path = tmp_path / "kubeconfig"
    sandbox = started("sandbox", "--nodes", 3, "--kubeconfig-out", path)
    line_with(sandbox.stdout, "listening")
    return path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_a_scheduler_cleanly(started: Started, kubeconfig: Path, number: signal.Signals) -> None:
    scheduler = started("run", "--kubeconfig", kubeconfig)
    line = line_with(scheduler.stderr, "cluster known nodes=3")
    assert re.match(r"I\d{4} [\d:.]+ +\d+ scheduler\.py:\d+\] ", line)
    scheduler.send_signal(number)
    code, errors = ended(scheduler)
    assert code == 0
    assert errors.splitlines()[-1].endswith("stopped")


def test_a_second_signal_ends_it_at_once(started: Started, kubeconfig: Path) -> None:
    scheduler = started("run", "--kubeconfig", kubeconfig)
    line_with(scheduler.stderr, "cluster known")
    # Both are pending when it goes on, so the second is there before the first can be obeyed.
    scheduler.send_signal(signal.SIGSTOP)
    scheduler.send_signal(signal.SIGTERM)
    scheduler.send_signal(signal.SIGINT)
    scheduler.send_signal(signal.SIGCONT)
    code, errors = ended(scheduler)
    assert code == 1
    assert "stopped" not in errors


def test_the_log_can_be_json(started: Started, kubeconfig: Path) -> None:
    scheduler = started("run", "--kubeconfig", kubeconfig, "--logging-format", "json", "--v=2")
    line = json.loads(line_with(scheduler.stderr, "cluster known"))
    assert line["msg"].startswith("cluster known nodes=3")
    assert line["v"] == 0


def test_the_kubeconfig_may_be_named_in_the_configuration(started: Started, kubeconfig: Path, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        f"clientConnection: {{kubeconfig: {kubeconfig}}}\n"
        "profiles: [{schedulerName: mine}, {schedulerName: yours}]\n",
        encoding="utf-8",
    )
    scheduler = started("run", "--config", config)
    assert "profiles=mine,yours" in line_with(scheduler.stderr, "starting")


def test_a_server_that_is_not_kubernetes_is_told_in_one_line(started: Started) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        scheduler = started("run", "--master", f"http://127.0.0.1:{port}")
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
            code, errors = ended(scheduler)
    assert code == 1
    (line,) = errors.splitlines()
    assert line.startswith("ksched: ")
    assert "is not a Kubernetes API server: expected a version from GET /version" in line


def test_a_port_in_use_is_told_in_one_line(started: Started) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        code, errors = ended(started("sandbox", "--port", port))
    assert code == 1
    (line,) = errors.splitlines()
    assert line.startswith(f"ksched: cannot listen on 127.0.0.1:{port}: ")
    assert line.lower().endswith("address already in use")


def test_a_wrong_authority_is_told_in_one_line(started: Started, tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("one.yaml", "other.yaml")]
    servers = [started("sandbox", "--tls", "--kubeconfig-out", file) for file in files]
    for server in servers:
        line_with(server.stdout, "listening")
    documents = [yaml.safe_load(file.read_text(encoding="utf-8")) for file in files]
    ours, theirs = (document["clusters"][0]["cluster"] for document in documents)
    ours["certificate-authority-data"] = theirs["certificate-authority-data"]
    files[0].write_text(yaml.safe_dump(documents[0]), encoding="utf-8")
    code, errors = ended(started("run", "--kubeconfig", files[0]))
    assert code == 1
    (line,) = errors.splitlines()
    assert "the server's certificate is not trusted" in line


def test_a_sandbox_stops_cleanly(started: Started, tmp_path: Path) -> None:
    sandbox = started("sandbox", "--kubeconfig-out", tmp_path / "kubeconfig")
    line_with(sandbox.stdout, "listening")
    began = time.monotonic()
    sandbox.send_signal(signal.SIGINT)
    code, errors = ended(sandbox)
    assert (code, errors) == (0, "")
    assert time.monotonic() - began < 10
