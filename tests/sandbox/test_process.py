"""The sandbox as a process: ready, stopped, killed, restarted, and what it says when it cannot start."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from ksched.errors import SandboxError
from ksched.sandbox import certificates
from ksched.sandbox.process import SandboxProcess
from ksched.sandbox.server import SandboxOptions

from .wire import NODES, PODS, Client, binding, node, pod

QUIET = SandboxOptions(agent=False, deployments=False)


def options(**changes: Any) -> SandboxOptions:
    return SandboxOptions(**{"agent": False, "deployments": False, **changes})


def test_a_sandbox_is_ready_when_its_constructor_context_is_entered_and_gone_when_it_is_left() -> None:
    with SandboxProcess(options(nodes=3)) as sandbox:
        client = Client(sandbox.url)
        assert [item["metadata"]["name"] for item in client.get(NODES)["items"]] == [
            "node-000000",
            "node-000001",
            "node-000002",
        ]
        client.close()
        written = yaml.safe_load(sandbox.kubeconfig.read_text())
        assert written["clusters"][0]["cluster"] == {"server": sandbox.url}
        assert sandbox.kubeconfig.stat().st_mode & 0o077 == 0
        pid = sandbox.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly_and_ends_watches_properly(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "ksched", "sandbox", "--no-agent", "--no-deployments"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[3].rstrip(b",").decode()
        client = Client(url)
        stream = client.watch(PODS)
        process.send_signal(number)
        assert list(stream) == []
        assert process.wait(10) == 0
        for each in (stream, client):
            each.close()


@pytest.mark.parametrize("crash", [False, True], ids=["stopped", "killed"])
def test_a_restart_with_a_data_directory_knows_what_was_confirmed(tmp_path: Path, crash: bool) -> None:
    with SandboxProcess(options(data_dir=str(tmp_path))) as sandbox:
        client = Client(sandbox.url)
        client.post(NODES, node("node-1"))
        for name in ("a", "b", "c"):
            client.post(PODS, pod(name))
        client.post(f"{PODS}/a/binding", binding("a", "node-1"))
        client.delete(f"{PODS}/c")
        before = client.get(PODS)
        client.close()
        url = sandbox.url
        sandbox.restart(crash=crash)
        assert sandbox.url == url
        client = Client(sandbox.url)
        assert client.get(PODS) == before
        refused = client.refused("POST", f"{PODS}/a/binding", binding("a", "node-1"))
        assert refused[:2] == (409, "Conflict")
        old = int(before["metadata"]["resourceVersion"])
        assert client.refused("GET", PODS, watch="true", resourceVersion=old - 1)[0] == 410
        stream = client.watch(PODS, resourceVersion=old)
        client.post(f"{PODS}/b/binding", binding("b", "node-1"))
        event = stream.next()
        assert int(event["object"]["metadata"]["resourceVersion"]) == old + 1
        assert client.get("/sandbox/audit")["ok"]
        for each in (stream, client):
            each.close()


def test_a_restart_without_one_begins_anew() -> None:
    with SandboxProcess(QUIET) as sandbox:
        client = Client(sandbox.url)
        client.post(PODS, pod("a"))
        client.close()
        sandbox.restart()
        client = Client(sandbox.url)
        assert client.get(PODS)["items"] == []
        client.close()


def test_https_with_the_kubeconfigs_certificates_and_no_others(tmp_path: Path) -> None:
    with SandboxProcess(options(tls=True, token="secret")) as sandbox:
        written = yaml.safe_load(sandbox.kubeconfig.read_text())
        assert written["users"][0]["user"]["token"] == "secret"
        authority = tmp_path / "ca.crt"
        authority.write_bytes(base64.b64decode(written["clusters"][0]["cluster"]["certificate-authority-data"]))
        trusting = ssl.create_default_context(cafile=str(authority))
        request = urllib.request.Request(f"{sandbox.url}{NODES}", headers={"Authorization": "Bearer secret"})
        with urllib.request.urlopen(request, context=trusting, timeout=10) as answer:
            assert json.load(answer)["kind"] == "NodeList"
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{sandbox.url}{NODES}", context=trusting, timeout=10)
        refused.value.close()
        assert refused.value.code == 401
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            urllib.request.urlopen(request, timeout=10)


def test_certificates_are_made_once(tmp_path: Path) -> None:
    made = certificates.ensure(tmp_path / "pki", "127.0.0.1")
    authority = made.authority.read_bytes()
    assert certificates.ensure(tmp_path / "pki", "127.0.0.1").authority.read_bytes() == authority
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "pki").iterdir())


def test_tls_without_openssl_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="needs the openssl command"):
        certificates.ensure(tmp_path / "pki", "127.0.0.1")


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "ksched", "sandbox", "--port", str(port), "--no-agent", "--no-deployments"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert f"127.0.0.1:{port}" in done.stderr


def test_a_kubeconfig_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    sandbox = SandboxProcess(options(kubeconfig_out=str(tmp_path / "file" / "kubeconfig")))
    with pytest.raises(SandboxError, match="ended with code 1 before it was ready"):
        sandbox.start()
    sandbox.__exit__(None, None, None)


def test_it_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    script = (
        "import os, signal\n"
        "from ksched.sandbox.process import SandboxProcess\n"
        "sandbox = SandboxProcess()\n"
        "sandbox.start()\n"
        "print(sandbox.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)
    child = int(done.stdout)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{child}").exists() and "zombie" not in Path(f"/proc/{child}/status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
